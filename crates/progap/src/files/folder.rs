//! The one place through which every file of a release, a run or an export is opened.
//!
//! Such a folder may come from a stranger. So its files are named by plain relative names, opened component by
//! component without following a link, and must be regular files: a device, a pipe or a socket is never read, and
//! opening one never waits. How much is read is bounded before the first byte is, by what the caller knows of the file.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use progap_graph::{Buffer, Dataset, free_memory, store};
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::error::InFile;
use crate::{Error, Result, files, memory};

/// The most bytes of a file of settings, statements or names: far more than any has.
pub const SMALL: u64 = 1 << 20;
/// The most entries of a folder that are looked at, and how deep they may lie.
const MAX_ENTRIES: usize = 1000;
const DEEPEST: usize = 3;

/// The kind of an entry in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    File,
    Folder,
    Link,
    /// A pipe, a socket or a device.
    Special,
}

impl Kind {
    /// The problem with an entry of this kind where a file is due.
    fn problem(self) -> Option<&'static str> {
        match self {
            Kind::File => None,
            Kind::Folder => {
                Some("it is a folder where a file is due: restore it, or ask for the folder again")
            }
            Kind::Link => Some(
                "it is a link, and nothing outside of the folder is read: put the file itself there, or do not trust \
                 the folder",
            ),
            Kind::Special => Some(
                "it is a pipe, a socket or a device and not a file: remove it, and do not trust the folder",
            ),
        }
    }
}

/// A folder whose files are opened safely.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    #[cfg(unix)]
    handle: rustix::fd::OwnedFd,
}

impl Folder {
    /// Opens a folder, which the user named: it alone may be behind a link. `missing` says what is not there otherwise.
    pub fn open(root: &Path, missing: &str) -> Result<Folder> {
        if !root.is_dir() {
            return Err(Error::file(root, missing));
        }
        Ok(Folder {
            root: root.to_path_buf(),
            #[cfg(unix)]
            handle: unix::root(root).in_file(root)?,
        })
    }

    /// Where a file of it lies, to name it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The kind of the entry under a name; nothing where there is none. A link on the way there counts as a link.
    pub fn kind(&self, name: &str) -> Result<Option<Kind>> {
        self.parts(name)?;
        #[cfg(unix)]
        let kind = unix::kind(&self.handle, name);
        #[cfg(not(unix))]
        let kind = plain::kind(&self.root, name);
        kind.in_file(&self.path(name))
    }

    /// Whether anything lies under a name, of whatever kind.
    pub fn has(&self, name: &str) -> Result<bool> {
        Ok(self.kind(name)?.is_some())
    }

    /// Opens a regular file of at most this many bytes.
    pub fn file(&self, name: &str, at_most: u64) -> Result<File> {
        let path = self.path(name);
        match self.kind(name)? {
            None => {
                return Err(Error::file(
                    &path,
                    "there is no such file: restore it, or ask for the folder again",
                ));
            }
            Some(kind) => {
                if let Some(problem) = kind.problem() {
                    return Err(Error::file(&path, problem));
                }
            }
        }
        #[cfg(unix)]
        let file = unix::open(&self.handle, name);
        #[cfg(not(unix))]
        let file = File::open(&path);
        let file = file.in_file(&path)?;
        // The entry that was opened may be another than the one that was looked at.
        let data = file.metadata().in_file(&path)?;
        if !data.is_file() {
            return Err(Error::file(&path, Kind::Special.problem().unwrap_or_default()));
        }
        if data.len() > at_most {
            let problem = format!(
                "it has {} bytes, and {at_most} are the most that it can have: it was damaged or changed",
                data.len()
            );
            return Err(Error::file(&path, problem));
        }
        // Where there is a bound, large files pass through.
        let held = memory::bound().is_none() && data.len() > 64 * SMALL;
        if held && free_memory().is_some_and(|free| data.len() > free) {
            let problem = format!(
                "it has {} bytes, more than the memory that is free: use a machine with more, or do not trust the \
                 folder",
                data.len()
            );
            return Err(Error::file(&path, problem));
        }
        Ok(file)
    }

    /// Reads a file of at most this many bytes.
    pub fn read(&self, name: &str, at_most: u64) -> Result<Vec<u8>> {
        let file = self.file(name, at_most)?;
        let path = self.path(name);
        let length = file.metadata().in_file(&path)?.len();
        let mut content = Vec::with_capacity(length as usize);
        // It may grow while it is read.
        (&file).take(at_most.saturating_add(1)).read_to_end(&mut content).in_file(&path)?;
        match content.len() as u64 > at_most {
            true => Err(Error::file(&path, format!("it grew beyond {at_most} bytes while it was read"))),
            false => Ok(content),
        }
    }

    /// The content of a file of at most this many bytes: mapped where the process keeps to a bound, on the condition of
    /// [`store::open`], else read.
    pub fn content(&self, name: &str, at_most: u64) -> Result<Buffer<u8>> {
        match memory::bound() {
            None => Ok(self.read(name, at_most)?.into()),
            Some(_) => store::map_file(&self.file(name, at_most)?).in_file(&self.path(name)),
        }
    }

    /// Reads a small JSON file.
    pub fn json<T: DeserializeOwned>(&self, name: &str, at_most: u64) -> Result<T> {
        serde_json::from_slice(&self.read(name, at_most)?).in_file(&self.path(name))
    }

    /// The SHA-256 of a file, in hexadecimal.
    pub fn checksum(&self, name: &str, at_most: u64) -> Result<String> {
        checksum(&self.file(name, at_most)?, at_most).in_file(&self.path(name))
    }

    /// Opens a data set in place, as [`store::open`] does, together with its checksum.
    pub fn dataset(&self, name: &str, at_most: u64) -> Result<(Dataset, String)> {
        let file = self.file(name, at_most)?;
        let path = self.path(name);
        let sum = checksum(&file, at_most).in_file(&path)?;
        Ok((store::open_file(&file, &path)?, sum))
    }

    /// Everything below the folder but folders themselves, in order. Links are named and not followed.
    ///
    /// # Errors
    /// More than any release or run has.
    pub fn list(&self) -> Result<Vec<(String, Kind)>> {
        self.list_without(None)
    }

    /// As [`Folder::list`], without a folder directly in it, which is not opened.
    fn list_without(&self, unopened: Option<&str>) -> Result<Vec<(String, Kind)>> {
        let unopened = unopened.map(|name| self.root.join(name));
        let (mut found, mut folders, mut entries) = (vec![], vec![(self.root.clone(), 1)], 0);
        while let Some((next, depth)) = folders.pop() {
            for entry in std::fs::read_dir(&next).in_file(&next)? {
                let entry = entry.in_file(&next)?;
                entries += 1;
                if entries > MAX_ENTRIES {
                    let problem = format!(
                        "more than {MAX_ENTRIES} files and folders are in it, and no release or run has so many: do \
                         not trust it"
                    );
                    return Err(Error::file(&self.root, problem));
                }
                let path = entry.path();
                if unopened.as_ref() == Some(&path) {
                    continue;
                }
                let kind = kind_of(entry.file_type().in_file(&path)?);
                if kind == Kind::Folder && depth < DEEPEST {
                    folders.push((path, depth + 1));
                } else {
                    let name = path.strip_prefix(&self.root).unwrap_or(&path).to_string_lossy();
                    found.push((name.replace(std::path::MAIN_SEPARATOR, "/"), kind));
                }
            }
        }
        found.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(found)
    }

    /// Refuses a folder with links or special files anywhere in it, but in a folder that is not to be opened.
    pub fn check_kinds(&self, unopened: Option<&str>) -> Result<()> {
        for (name, kind) in self.list_without(unopened)? {
            if let (Kind::Link | Kind::Special, Some(problem)) = (kind, kind.problem()) {
                return Err(Error::file(&self.path(&name.escape_debug().to_string()), problem));
            }
        }
        Ok(())
    }

    /// The components of a name, which are plain.
    fn parts<'n>(&self, name: &'n str) -> Result<Vec<&'n str>> {
        parts(name).ok_or_else(|| {
            let problem = format!(
                "it names the file {:?}, and only plain names of files inside of the folder are opened: do not trust \
                 it",
                shortened(name)
            );
            Error::file(&self.root, problem)
        })
    }
}

/// The components of a plain relative name; nothing where it is none.
pub fn parts(name: &str) -> Option<Vec<&str>> {
    let parts: Vec<&str> = name.split('/').collect();
    let plain =
        |part: &&str| !part.is_empty() && *part != "." && *part != ".." && !part.contains(['\\', '\0', ':']);
    (name.len() <= 200 && parts.len() <= DEEPEST && parts.iter().all(plain)).then_some(parts)
}

/// As much of a name as a message shows.
pub fn shortened(name: &str) -> String {
    let start: String = name.chars().take(80).collect();
    if start.len() < name.len() { format!("{start}...") } else { start }
}

fn kind_of(kind: std::fs::FileType) -> Kind {
    if kind.is_file() {
        Kind::File
    } else if kind.is_dir() {
        Kind::Folder
    } else if kind.is_symlink() {
        Kind::Link
    } else {
        Kind::Special
    }
}

/// The SHA-256 of at most this many bytes of a file, which is read in pieces.
pub fn checksum(mut file: &File, at_most: u64) -> std::io::Result<String> {
    let (mut hasher, mut piece, mut read) = (Sha256::new(), vec![0; 1 << 20], 0u64);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(files::hex(&hasher.finalize())),
            length => {
                hasher.update(&piece[..length]);
                read += length as u64;
            }
        }
        if read > at_most {
            return Err(std::io::Error::other("it grew while it was read"));
        }
    }
}

#[cfg(unix)]
mod unix {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
    use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat};
    use rustix::io::Errno;

    use super::Kind;

    pub(super) fn root(path: &Path) -> io::Result<OwnedFd> {
        Ok(openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
    }

    pub(super) fn kind(root: &OwnedFd, name: &str) -> io::Result<Option<Kind>> {
        let (folders, last) =
            name.rsplit_once('/').map_or((None, name), |(before, last)| (Some(before), last));
        let mut held: Option<OwnedFd> = None;
        for part in folders.into_iter().flat_map(|folders| folders.split('/')) {
            let at = held.as_ref().map_or(root.as_fd(), OwnedFd::as_fd);
            match kind_at(at, part)? {
                Some(Kind::Folder) => {}
                // A file where a folder is due: then there is nothing below it.
                Some(Kind::File) => return Ok(None),
                other => return Ok(other),
            }
            held = Some(openat(at, part, folder_flags(), Mode::empty())?);
        }
        kind_at(held.as_ref().map_or(root.as_fd(), OwnedFd::as_fd), last)
    }

    fn kind_at(at: BorrowedFd<'_>, part: &str) -> io::Result<Option<Kind>> {
        match statat(at, part, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
            Ok(stat) => Ok(Some(match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => Kind::File,
                FileType::Directory => Kind::Folder,
                FileType::Symlink => Kind::Link,
                _ => Kind::Special,
            })),
        }
    }

    fn folder_flags() -> OFlags {
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
    }

    /// Opens a file without following a link, and without waiting for the writer of a pipe.
    pub(super) fn open(root: &OwnedFd, name: &str) -> io::Result<File> {
        let mut held: Option<OwnedFd> = None;
        let mut parts = name.split('/').peekable();
        while let Some(part) = parts.next() {
            let at = held.as_ref().map_or(root.as_fd(), OwnedFd::as_fd);
            let flags = match parts.peek() {
                Some(_) => folder_flags(),
                None => {
                    OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC
                }
            };
            held = Some(openat(at, part, flags, Mode::empty())?);
        }
        held.map(File::from).ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }
}

#[cfg(not(unix))]
mod plain {
    use std::io;
    use std::path::Path;

    use super::{Kind, kind_of};

    pub(super) fn kind(root: &Path, name: &str) -> io::Result<Option<Kind>> {
        let mut path = root.to_path_buf();
        let mut parts = name.split('/').peekable();
        while let Some(part) = parts.next() {
            path.push(part);
            let kind = match path.symlink_metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                data => kind_of(data?.file_type()),
            };
            match (kind, parts.peek()) {
                (Kind::Folder, Some(_)) => {}
                (Kind::File, Some(_)) => return Ok(None),
                (kind, _) => return Ok(Some(kind)),
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_below_the_folder_are_names() {
        for good in ["a", "aggregates/1.npy", "private/rows.progap", "a/b/c", "..a", "a b"] {
            assert!(parts(good).is_some(), "{good}");
        }
        let long = "a".repeat(201);
        for bad in [
            "",
            "/",
            "/etc/hostname",
            "..",
            "a/..",
            "../a",
            "a//b",
            "./a",
            "a/",
            "a\\b",
            "a\0",
            "C:a",
            "a/b/c/d",
            &long,
        ] {
            assert!(parts(bad).is_none(), "{bad:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_pipes_folders_and_too_large_files_are_refused_without_being_read() {
        use std::os::unix::fs::symlink;
        let keep = tempfile::tempdir().expect("a folder");
        let at = |name: &str| keep.path().join(name);
        std::fs::create_dir(at("in")).expect("made");
        std::fs::create_dir(at("in/sub")).expect("made");
        std::fs::write(at("secret"), "secret").expect("written");
        std::fs::write(at("in/sub/file"), "content").expect("written");
        symlink(at("secret"), at("in/link")).expect("linked");
        symlink(at("in/sub"), at("in/way")).expect("linked");
        symlink("/", at("in/sub/top")).expect("linked");
        let made = std::process::Command::new("mkfifo").arg(at("in/pipe")).status().expect("mkfifo");
        assert!(made.success());
        let folder = Folder::open(&at("in"), "nothing").expect("a folder");
        assert_eq!(folder.read("sub/file", 7).expect("read"), b"content");
        for (name, said) in [
            ("link", "it is a link"),
            ("way/file", "it is a link"),
            ("sub/top", "it is a link"),
            ("sub/top/a/file", "plain names"),
            ("pipe", "not a file"),
            ("sub", "is a folder"),
            ("gone", "no such file"),
            ("sub/file/x", "no such file"),
            ("../secret", "plain names"),
        ] {
            let refusal = folder.read(name, 100).expect_err(name).to_string();
            assert!(refusal.contains(said) && !refusal.contains("secret: "), "{name}: {refusal}");
        }
        assert!(folder.read("sub/file", 6).expect_err("too large").to_string().contains("7 bytes"));
        let listed = folder.list().expect("listed");
        let kinds: Vec<(&str, Kind)> = listed.iter().map(|(name, kind)| (name.as_str(), *kind)).collect();
        assert_eq!(
            kinds,
            [
                ("link", Kind::Link),
                ("pipe", Kind::Special),
                ("sub/file", Kind::File),
                ("sub/top", Kind::Link),
                ("way", Kind::Link)
            ]
        );
        assert!(folder.check_kinds(None).is_err());
        // Links directly in the folder are found all the same.
        assert!(folder.check_kinds(Some("sub")).is_err());
    }
}
