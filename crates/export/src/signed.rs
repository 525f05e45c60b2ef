//! The signature of an export: who made it, if the reader knows whose key it is.
//!
//! | file | what it is |
//! |---|---|
//! | `manifest.sig` | the Ed25519 signature of the exact bytes of `manifest.json`, 64 bytes |
//! | `signer.pub` | the public key, to say whose signature it would be; it proves nothing by itself |
//!
//! The manifest holds the checksums of all other files, the date and what was left out, and `export.json` follows from
//! it: so the signature covers all that a reader relies on. Neither file is in the manifest, which is the same whether
//! it is signed or not.

use std::path::Path;

use serde::Serialize;

use progap::files::folder::{Folder, SMALL};
use progap::release::{self, Export, Exported, Finding, MANIFEST, PageMaker, SIGNATURE, SIGNER};
use progap::{Error, Result, files};

use crate::signature::{PublicKey, SecretKey};

/// Exports a release as [`progap::release::export()`] does, signed with a key where one is given.
///
/// # Errors
/// As there.
pub fn export(
    folder: &Path,
    out: &Path,
    exported: Exported,
    page: &mut PageMaker<'_>,
    key: Option<&SecretKey>,
) -> Result<Export> {
    let Some(key) = key else { return release::export(folder, out, exported, page, None) };
    let mut sign = |folder: &Path| {
        sign(folder, key)?;
        Ok([SIGNATURE, SIGNER].map(String::from).into())
    };
    release::export(folder, out, exported, page, Some(&mut sign))
}

/// Whose signature there is, and whether it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Signed {
    /// The fingerprint of the key with which the signature holds.
    pub fingerprint: Option<String>,
    /// Whether that is the key that the reader asked for.
    pub asked_for: bool,
}

/// Signs the manifest of an export.
fn sign(folder: &Path, key: &SecretKey) -> Result<()> {
    let manifest = Folder::open(folder, "there is no export here")?.read(MANIFEST, SMALL)?;
    files::write(&folder.join(SIGNER), key.public().pem().as_bytes())?;
    files::write(&folder.join(SIGNATURE), &key.sign(&manifest))
}

/// Looks for a signature over the manifest, and for that of `signer` where one is given. Nothing else in the folder is
/// read, so that with a signer the rest need not be opened before it is known whose it is.
///
/// # Errors
/// Files that cannot be read; a signature that is missing or wrong is a finding.
pub fn signed(folder: &Path, signer: Option<&PublicKey>) -> Result<(Finding, Signed)> {
    let none = Signed { fingerprint: None, asked_for: false };
    let finding = |ok: bool, detail: String| Finding::checked("signature", detail, ok);
    let at = Folder::open(folder, "there is no release here")?;
    let signature = read(&at, SIGNATURE)?;
    let beside = read(&at, SIGNER)?;
    let Some(signature) = signature else {
        return Ok(match (signer, beside) {
            (Some(signer), _) => {
                (finding(false, format!("none; one by key {} was asked for", signer.fingerprint())), none)
            }
            (None, Some(_)) => (finding(false, format!("none, though {SIGNER} names a signer")), none),
            (None, None) => (Finding::claimed("signature", UNSIGNED, []), none),
        });
    };
    let manifest = read(&at, MANIFEST)?.ok_or_else(|| Error::file(folder, "there is no release here"))?;
    // To the last byte, so that nothing in a signed folder can be other than it was.
    let named = beside.and_then(|text| {
        let key = PublicKey::parse(std::str::from_utf8(&text).unwrap_or_default()).ok()?;
        (key.pem().as_bytes() == text).then_some(key)
    });
    let named = named.as_ref();
    let by = |key: &PublicKey| Some(key.fingerprint());
    let fits = |key: &PublicKey| key.signed(&manifest, &signature);
    Ok(match (signer, named) {
        (Some(signer), Some(key)) if key == signer && fits(signer) => (
            finding(true, format!("by key {}, as asked for; {WORD}", signer.fingerprint())),
            Signed { fingerprint: by(signer), asked_for: true },
        ),
        (Some(signer), Some(key)) if key != signer && fits(key) => (
            finding(false, format!("by key {}, not by key {}", key.fingerprint(), signer.fingerprint())),
            Signed { fingerprint: by(key), asked_for: false },
        ),
        (None, Some(key)) if fits(key) => (
            finding(
                true,
                format!(
                    "by key {}, which was not asked for: anyone can sign with a key of their own. Ask for the public \
                     key that you know is its maker's (signer)",
                    key.fingerprint()
                ),
            ),
            Signed { fingerprint: by(key), asked_for: false },
        ),
        (_, None) => (finding(false, format!("{SIGNER} is missing or damaged: nobody's")), none),
        (_, Some(key)) => {
            let claimed = key.fingerprint();
            let detail = format!(
                "{SIGNATURE} is no signature of {MANIFEST} by key {claimed} ({SIGNER}): one of them was changed"
            );
            (finding(false, detail), none)
        }
    })
}

/// The limits of checksums.
const UNSIGNED: &str = "none. Checksums show that nothing was damaged; they do not show who made this, nor that \
    training was \
                        really run as described: its maker could have written anything";

/// The limits of a signature.
const WORD: &str = "that training was run as described is not verifiable: it is asserted by the signer";

/// A small file of the folder, if it is there.
fn read(folder: &Folder, name: &str) -> Result<Option<Vec<u8>>> {
    folder.has(name)?.then(|| folder.read(name, SMALL)).transpose()
}
