//! Signed predictions: who made a file of them, with which release, when, and of what.
//!
//! Beside a file `FILE` lies `FILE.sig`, a JSON object with the SHA-256 of the file, the facts about its predictions,
//! the signer's public key and the Ed25519 signature over all of these. A signature of predictions is none of a
//! manifest, nor the other way round: what is signed begins with what it is.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use progap::error::InFile;
use progap::files::folder::{SMALL, checksum};
use progap::release::{Date, Finding, Used};
use progap::{Error, Result, files};

use crate::signature::{PublicKey, SecretKey};
use crate::signed::Signed;

/// What stands before the bytes that are signed.
const CONTEXT: &[u8] = b"progap predictions\n";

/// The facts about predictions that a signature covers, besides the file itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Made {
    /// The SHA-256 of the release's manifest.
    pub release: String,
    /// What the predictions are made of.
    pub used: Used,
    /// The day on which they were made.
    pub date: Date,
}

impl Made {
    /// The start of the release's hash, by which each prediction names it.
    pub fn version(&self) -> &str {
        self.release.get(..16).unwrap_or(&self.release)
    }
}

/// The content of the file beside the predictions.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Receipt {
    version: u64,
    /// The SHA-256 of the predictions.
    sha256: String,
    made: Made,
    /// The public key, to say whose signature it would be.
    signer: String,
    /// In hexadecimal.
    signature: String,
}

impl Receipt {
    fn message(sha256: &str, made: &Made, file: &Path) -> Result<Vec<u8>> {
        let facts = serde_json::to_vec(&(files::FORMAT, sha256, made)).in_file(file)?;
        Ok([CONTEXT, &facts].concat())
    }
}

/// The file beside predictions that says who signed them.
pub fn signature_of(predictions: &Path) -> PathBuf {
    let mut name = OsString::from(predictions);
    name.push(".sig");
    name.into()
}

/// Signs a file of predictions; the signature is put beside it.
///
/// # Errors
/// Files that cannot be read or written.
pub fn sign_predictions(predictions: &Path, made: Made, key: &SecretKey) -> Result<()> {
    let beside = signature_of(predictions);
    let sha256 = sum(predictions)?;
    let signature = files::hex(&key.sign(&Receipt::message(&sha256, &made, &beside)?));
    files::write_json(
        &beside,
        &Receipt { version: files::FORMAT, sha256, made, signer: key.public().pem(), signature },
    )
}

/// Checks a file of predictions against the signature beside it, and that this is of `signer`, where one is given.
///
/// # Errors
/// Files that cannot be read, or that are none of predictions; a signature that is wrong is a finding.
pub fn verify_predictions(predictions: &Path, signer: Option<&PublicKey>) -> Result<(Vec<Finding>, Signed)> {
    let beside = signature_of(predictions);
    if !beside.is_file() {
        let problem = format!(
            "there is no signature of it ({}): sign predictions where they are made, with `sign`",
            beside.display()
        );
        return Err(Error::file(predictions, problem));
    }
    let open = std::fs::File::open(&beside).in_file(&beside)?;
    let mut bytes = vec![];
    std::io::Read::read_to_end(&mut std::io::Read::take(open, SMALL), &mut bytes).in_file(&beside)?;
    let receipt: Receipt = files::versioned(&bytes, "the signature", &beside)?;
    let found = sum(predictions)?;
    let whole = found == receipt.sha256 && files::json(&beside, &receipt)? == bytes;
    let detail = match whole {
        true => format!("SHA-256 {found}"),
        false => "they are not those that were signed: the file, or its signature, was changed".into(),
    };
    let mut findings = vec![Finding::checked("predictions", detail, whole)];
    let named = PublicKey::parse(&receipt.signer).ok().filter(|key| key.pem() == receipt.signer);
    let message = Receipt::message(&receipt.sha256, &receipt.made, &beside)?;
    let fits = |key: &PublicKey| key.signed(&message, &unhex(&receipt.signature).unwrap_or_default());
    let none = Signed { fingerprint: None, asked_for: false };
    let (ok, detail, signed) = match (named.filter(fits), signer) {
        (None, _) => {
            (false, "it is no signature of these predictions by the key beside it".to_string(), none)
        }
        (Some(key), Some(signer)) if key != *signer => {
            let by = key.fingerprint();
            let detail = format!("by key {by}, not by key {}", signer.fingerprint());
            (false, detail, Signed { fingerprint: Some(by), asked_for: false })
        }
        (Some(key), asked) => {
            let by = key.fingerprint();
            let detail = match asked {
                Some(_) => format!("by key {by}, as asked for"),
                None => format!(
                    "by key {by}, which was not asked for: anyone can sign with a key of their own. Pass `signer`"
                ),
            };
            (true, detail, Signed { fingerprint: Some(by), asked_for: asked.is_some() })
        }
    };
    findings.push(Finding::checked("signature", detail, ok));
    if ok && whole {
        let Made { release, used, date } = &receipt.made;
        let detail = format!("of {date}, made of {used}, by the release with the manifest {release}");
        findings.push(Finding::claimed("what the signer says", detail, []));
    }
    Ok((findings, signed))
}

fn sum(predictions: &Path) -> Result<String> {
    let file = std::fs::File::open(predictions).in_file(predictions)?;
    if !file.metadata().in_file(predictions)?.is_file() {
        return Err(Error::file(predictions, "it is no file of predictions"));
    }
    checksum(&file, u64::MAX).in_file(predictions)
}

/// Bytes of hexadecimal, in small letters as they are written.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    rest.is_empty()
        .then(|| pairs.iter().map(|&[high, low]| Some((digit(high)? << 4) | digit(low)?)).collect())?
}
