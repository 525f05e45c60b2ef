//! Checksums of files: known ones, and ones written down at the first download.
//!
//! A file without a published checksum gets a note beside it, `NAME.sha256` in the format of `sha256sum`, when
//! it is downloaded; from then on a change is noticed.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::AtomicFile;
use crate::{InFile, Problem, Result};

/// A SHA-256 checksum.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sha256Sum([u8; 32]);

impl Sha256Sum {
    /// The checksum that 64 hexadecimal digits say.
    pub fn from_hex(digits: &str) -> Option<Sha256Sum> {
        let digits = digits.as_bytes();
        let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
        let mut sum = [0; 32];
        if digits.len() != 64 {
            return None;
        }
        for (byte, pair) in sum.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = value(pair[0])? << 4 | value(pair[1])?;
        }
        Some(Sha256Sum(sum))
    }

    /// The checksum of a file.
    pub fn of_file(path: &Path) -> Result<Sha256Sum> {
        File::open(path).and_then(Sha256Sum::of).in_file(path)
    }

    fn of(mut content: impl Read) -> io::Result<Sha256Sum> {
        let mut hasher = Sha256::new();
        let mut block = vec![0; 1 << 16];
        loop {
            match content.read(&mut block) {
                Ok(0) => return Ok(Sha256Sum(hasher.finalize().into())),
                Ok(read) => hasher.update(&block[..read]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

impl fmt::Display for Sha256Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sha256Sum({self})")
    }
}

/// Against what a file was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verification {
    /// A published checksum.
    Published,
    /// The checksum written down when it was downloaded.
    FirstDownload,
    /// Nothing: no checksum is known.
    None,
}

/// Compares a file with its known checksum, or else with the note beside it; a difference is an error.
pub(super) fn verify(path: &Path, known: Option<Sha256Sum>) -> Result<Verification> {
    let (expected, verification) = match (known, noted(path)?) {
        (Some(known), _) => (known, Verification::Published),
        (None, Some(noted)) => (noted, Verification::FirstDownload),
        (None, None) => return Ok(Verification::None),
    };
    let found = Sha256Sum::of_file(path)?;
    if found != expected {
        let problem = Problem::Checksum { expected: expected.to_string(), found: found.to_string() };
        return Err(problem.in_file(path));
    }
    Ok(verification)
}

/// Where the checksum of a file is written down.
pub(super) fn note_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".sha256");
    name.into()
}

fn noted(path: &Path) -> Result<Option<Sha256Sum>> {
    let note = note_path(path);
    let mut text = String::new();
    match File::open(&note).and_then(|file| file.take(4096).read_to_string(&mut text)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        result => result.in_file(&note)?,
    };
    let sum = text.split_whitespace().next().and_then(Sha256Sum::from_hex);
    sum.map(Some).ok_or_else(|| Problem::Corrupt("it holds no SHA-256 checksum".into()).in_file(&note))
}

/// Writes down the checksum of a file.
#[cfg_attr(not(feature = "fetch"), allow(dead_code))]
pub(super) fn note(path: &Path) -> Result<()> {
    let sum = Sha256Sum::of_file(path)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let note = note_path(path);
    let mut file = AtomicFile::create(&note)?;
    writeln!(file, "{sum}  {name}").in_file(&note)?;
    file.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noted_file_cannot_change_unnoticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "abc").unwrap();
        assert_eq!(verify(&path, None).unwrap(), Verification::None);
        note(&path).unwrap();
        assert_eq!(verify(&path, None).unwrap(), Verification::FirstDownload);
        // The example of FIPS 180.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(std::fs::read_to_string(note_path(&path)).unwrap(), format!("{abc}  file\n"));
        assert_eq!(verify(&path, Sha256Sum::from_hex(abc)).unwrap(), Verification::Published);
        std::fs::write(&path, "abd").unwrap();
        for known in [None, Sha256Sum::from_hex(abc)] {
            assert!(matches!(verify(&path, known).unwrap_err().problem(), Problem::Checksum { .. }));
        }
        std::fs::write(note_path(&path), "nonsense").unwrap();
        assert!(verify(&path, None).is_err());
        assert!(Sha256Sum::from_hex("ba").is_none() && Sha256Sum::from_hex(&"x".repeat(64)).is_none());
    }
}
