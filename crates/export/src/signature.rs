//! Who made it: Ed25519 keys, and signatures over files.
//!
//! A secret key is a PKCS#8 file and a public key an SPKI file, both PEM (RFC 8410); a signature is the 64 bytes of RFC
//! 8032. So any program that knows Ed25519 can check what is signed here, and keys made elsewhere can be used here:
//!
//! ```sh
//! openssl pkeyutl -verify -pubin -inkey me.pub -rawin -in manifest.json -sigfile manifest.sig
//! ```

use std::fmt;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{
    DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey, KeypairBytes,
};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use progap_graph::AtomicFile;
use zeroize::{Zeroize, Zeroizing};

use progap::error::InFile;
use progap::{Error, Remedy, Result, files};

/// More than any file of a key has.
const MOST: u64 = 4096;
/// The length of a signature.
const LENGTH: usize = 64;

/// A key that signs. It is zeroed when it is dropped.
pub struct SecretKey(SigningKey);

/// A key that checks signatures.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

/// The two files of a new key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFiles {
    /// The secret key, for its owner alone.
    pub secret: PathBuf,
    /// The public key, for whoever is to check signatures.
    pub public: PathBuf,
}

impl KeyFiles {
    /// The files of a name: the name with `.key` and with `.pub` added.
    pub fn of(name: &Path) -> KeyFiles {
        let with = |ending: &str| {
            let mut whole = name.as_os_str().to_owned();
            whole.push(ending);
            PathBuf::from(whole)
        };
        KeyFiles { secret: with(".key"), public: with(".pub") }
    }
}

impl SecretKey {
    /// A new key, from the random source of the operating system.
    ///
    /// # Errors
    /// A system that has no randomness to give.
    pub fn new() -> Result<SecretKey> {
        let mut seed = Zeroizing::new([0u8; 32]);
        getrandom::fill(&mut seed[..])
            .map_err(|e| Error::unsuitable(format!("the operating system gives no random bytes ({e})")))?;
        Ok(SecretKey(SigningKey::from_bytes(&seed)))
    }

    /// Reads a key that nobody but its owner can read.
    ///
    /// # Errors
    /// A file that others can read, that is no secret Ed25519 key, or cannot be read.
    pub fn read(file: &Path) -> Result<SecretKey> {
        let content = read_small(file, true)?;
        let text = std::str::from_utf8(&content).unwrap_or_default();
        SecretKey::parse(text).map_err(|problem| {
            let remedy = if is_public(text) { Remedy::SecretKey } else { Remedy::NewKey };
            Error::file(file, problem).remedy(remedy)
        })
    }

    /// Whether a file says that it holds a secret key.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn is_secret(file: &Path) -> Result<bool> {
        let content = read_small(file, false)?;
        Ok(std::str::from_utf8(&content).is_ok_and(|text| text.contains("PRIVATE KEY")))
    }

    /// The key in the text of a file.
    ///
    /// # Errors
    /// The problem with it, in one sentence.
    pub fn parse(text: &str) -> std::result::Result<SecretKey, &'static str> {
        if text.contains("BEGIN ENCRYPTED PRIVATE KEY") {
            return Err("the key is encrypted: decrypt it first, as with `openssl pkey -in FILE -out NEW`");
        }
        if is_public(text) {
            return Err("it is a public key, and a signature needs the secret one");
        }
        let key = SigningKey::from_pkcs8_pem(text);
        key.map(SecretKey).map_err(|_| "it is no secret Ed25519 key (PKCS#8, PEM), or it is damaged")
    }

    /// Writes the key and its public half; each file is there whole or not at all. Only with `replace` is one replaced.
    /// Killed at any moment it never leaves a public half of another key: at most a secret one without any, whose
    /// [`SecretKey::write_public`] ends it.
    ///
    /// # Errors
    /// Files that are there, or cannot be written.
    pub fn write(&self, files: &KeyFiles, replace: bool) -> Result<()> {
        if !replace && let Some(there) = [&files.secret, &files.public].into_iter().find(|file| file.exists())
        {
            return Err(exists(there));
        }
        // Without the public half, which OpenSSL does not read in this place.
        let mut pair = KeypairBytes { secret_key: self.0.to_bytes(), public_key: None };
        let pem = pair.to_pkcs8_pem(LineEnding::LF);
        pair.secret_key.zeroize();
        let path = &files.secret;
        let mut secret = AtomicFile::create_secret(path)?;
        secret.write_all(pem.in_file(path)?.as_bytes()).in_file(path)?;
        let public = self.public_file(&files.public)?;
        if !replace {
            secret.commit_new()?;
            return Ok(public.commit_new()?);
        }
        match std::fs::remove_file(&files.public) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e).in_file(&files.public),
            _ => {}
        }
        secret.commit()?;
        Ok(public.commit()?)
    }

    /// Writes the public half, which is not there yet.
    ///
    /// # Errors
    /// A file that is there, or cannot be written.
    pub fn write_public(&self, files: &KeyFiles) -> Result<()> {
        Ok(self.public_file(&files.public)?.commit_new()?)
    }

    fn public_file(&self, path: &Path) -> Result<AtomicFile> {
        let mut file = AtomicFile::create(path)?;
        file.write_all(self.public().pem().as_bytes()).in_file(path)?;
        Ok(file)
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// The signature of some bytes.
    pub fn sign(&self, bytes: &[u8]) -> [u8; LENGTH] {
        self.0.sign(bytes).to_bytes()
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({})", self.public().fingerprint())
    }
}

impl PublicKey {
    /// Reads a public key.
    ///
    /// # Errors
    /// A file that is no public Ed25519 key, or cannot be read.
    pub fn read(file: &Path) -> Result<PublicKey> {
        let content = read_small(file, false)?;
        let text = std::str::from_utf8(&content).unwrap_or_default();
        PublicKey::parse(text).map_err(|problem| Error::file(file, problem))
    }

    /// The key in the text of a file.
    ///
    /// # Errors
    /// The problem with it, in one sentence.
    pub fn parse(text: &str) -> std::result::Result<PublicKey, &'static str> {
        if text.contains("PRIVATE KEY") {
            return Err("it is a secret key: keep it to yourself, and give the public one (the file `.pub`)");
        }
        match VerifyingKey::from_public_key_pem(text) {
            // Such a key has signatures that fit to anything.
            Ok(key) if key.is_weak() => {
                Err("it is a weak key, which shows nothing: ask its owner for another")
            }
            Ok(key) => Ok(PublicKey(key)),
            Err(_) => Err("it is no public Ed25519 key (SPKI, PEM), or it is damaged"),
        }
    }

    /// The text of a file with this key.
    pub fn pem(&self) -> String {
        self.0.to_public_key_pem(LineEnding::LF).expect("32 bytes have an encoding")
    }

    /// The SHA-256 of the key's SPKI encoding (DER), in hexadecimal: by it people compare keys.
    pub fn fingerprint(&self) -> String {
        let der = self.0.to_public_key_der().expect("32 bytes have an encoding");
        files::checksum_of(der.as_bytes())
    }

    /// Whether this is a signature of exactly these bytes by the owner of this key, by the strict rules: one encoding,
    /// no weak points.
    pub fn signed(&self, bytes: &[u8], signature: &[u8]) -> bool {
        Signature::from_slice(signature)
            .is_ok_and(|signature| self.0.verify_strict(bytes, &signature).is_ok())
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.fingerprint())
    }
}

/// Reads the file of a key: an ordinary one, and small.
fn read_small(file: &Path, secret: bool) -> Result<Zeroizing<Vec<u8>>> {
    // Looked at before it is opened: opening a pipe waits for somebody to write.
    if !std::fs::metadata(file).in_file(file)?.is_file() {
        return Err(Error::file(file, "it is no ordinary file: name the file of a key"));
    }
    let open = std::fs::File::open(file).in_file(file)?;
    if secret {
        refuse_shared(file, &open)?;
    }
    // All of the room is there from the start, so that no copy is left behind where it grew.
    let mut content = Zeroizing::new(Vec::with_capacity(MOST as usize + 2));
    open.take(MOST + 1).read_to_end(&mut content).in_file(file)?;
    match content.len() as u64 <= MOST {
        true => Ok(content),
        false => Err(Error::file(file, "it is too large for a key: name the file of one")),
    }
}

fn is_public(text: &str) -> bool {
    text.contains("BEGIN PUBLIC KEY")
}

/// A secret that others can read is none.
#[cfg(unix)]
fn refuse_shared(file: &Path, open: &std::fs::File) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = open.metadata().in_file(file)?.permissions().mode() & 0o777;
    match mode & 0o077 {
        0 => Ok(()),
        _ => Err(Error::file(
            file,
            format!(
                "others than its owner can use this secret key (mode {mode:04o}): run `chmod 600` on it, and make a \
                 new \
                 one if somebody may have read it"
            ),
        )),
    }
}

#[cfg(not(unix))]
fn refuse_shared(_: &Path, _: &std::fs::File) -> Result<()> {
    Ok(())
}

fn exists(file: &Path) -> Error {
    Error::file(file, "it already exists (what was signed with it stays signed)")
        .remedy(Remedy::words("choose another name"))
        .remedy(Remedy::Replace)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first key and signature of RFC 8032, section 7.1, and the key of RFC 8410, section 10.3.
    #[test]
    fn keys_and_signatures_are_those_of_the_standards() {
        let hex = |text: &str| -> Vec<u8> {
            let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
            (0..text.len()).step_by(2).map(digit).collect()
        };
        let seed = hex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
        let key = SecretKey(SigningKey::from_bytes(&seed.try_into().unwrap()));
        let signature = hex(
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        );
        assert_eq!(key.sign(b"")[..], signature[..]);
        assert!(key.public().signed(b"", &signature) && !key.public().signed(b" ", &signature));
        let secret = "-----BEGIN PRIVATE \
            KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
        let public = "-----BEGIN PUBLIC \
            KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";
        let read = SecretKey::parse(secret).unwrap();
        assert_eq!(read.public().pem(), public);
        assert_eq!(PublicKey::parse(public).unwrap(), read.public());
    }

    #[test]
    fn a_key_with_which_anything_is_signed_is_refused() {
        // The neutral element, in the SPKI encoding.
        let weak = "-----BEGIN PUBLIC \
            KEY-----\nMCowBQYDK2VwAyEAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n-----END PUBLIC KEY-----\n";
        assert!(PublicKey::parse(weak).unwrap_err().contains("weak"));
    }
}
