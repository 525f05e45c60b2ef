//! `progap key`: keys that sign exports.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use progap_export::{KeyFiles, PublicKey, SecretKey};

use super::Outcome;
use crate::output::{Force, Inputs};
use crate::ui;

/// Make and show the keys that sign exports
#[derive(Subcommand)]
pub enum KeyCommand {
    New(New),
    Show(Show),
}

impl KeyCommand {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        match self {
            KeyCommand::New(new) => new.run(),
            KeyCommand::Show(show) => show.run(),
        }
    }
}

/// Make a key: NAME.key, which is secret, and NAME.pub for those who check your signatures
///
/// Ed25519, from the random source of the operating system; PEM files as other programs write and read them. The secret
/// key has no passphrase: the permissions of its file protect it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap key new me                               # me.key and me.pub
  progap export releases/demo-edge-1 out --sign me.key
  progap verify out --signer me.pub

A signature can be checked without progap, in the folder of an export:
  openssl pkeyutl -verify -pubin -inkey me.pub -rawin -in manifest.json -sigfile manifest.sig")]
pub struct New {
    /// The name of the two files, without an ending
    name: PathBuf,
    #[command(flatten)]
    force: Force,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl New {
    fn run(self) -> Outcome {
        let Made { key, files, is_new } = make(&self.name, self.force)?;
        let fingerprint = key.public().fingerprint();
        if self.json {
            return ui::print(&serde_json::to_string_pretty(&serde_json::json!({
                "secret": files.secret,
                "public": files.public,
                "fingerprint": fingerprint,
                "new": is_new,
            }))?);
        }
        let secret =
            format!("{}: for you alone; anyone who has it can sign in your name", files.secret.display());
        let public = format!(
            "{}: give it to those who check your signatures, through a channel they trust",
            files.public.display()
        );
        let mut rows = vec![("secret key", secret), ("public key", public), ("fingerprint", fingerprint)];
        if !is_new {
            let text = "the secret key was there without its public half, which is written now";
            rows.push(("note", format!("{text}; --force makes a new one")));
        }
        ui::print(&ui::facts(&format!("key {}", self.name.display()), &rows))
    }
}

/// A key whose two files are there.
pub struct Made {
    pub key: SecretKey,
    pub files: KeyFiles,
    /// Whether the secret key was made now, and not only its public half written.
    pub is_new: bool,
}

/// Makes a key and writes its two files; ends what was killed between them.
pub fn make(name: &Path, force: Force) -> progap::Result<Made> {
    if name.file_name().is_none() {
        return Err(progap::Error::file(name, "it is no name for a file: give another one"));
    }
    let files = KeyFiles::of(name);
    if !force.force
        && files.public.symlink_metadata().is_err()
        && let Ok(key) = SecretKey::read(&files.secret)
    {
        force.file(&files.public, &Inputs::default())?;
        key.write_public(&files)?;
        return Ok(Made { key, files, is_new: false });
    }
    // Both are looked at before either is written.
    for file in [&files.secret, &files.public] {
        force.file(file, &Inputs::default())?;
    }
    let key = SecretKey::new()?;
    key.write(&files, force.force)?;
    Ok(Made { key, files, is_new: true })
}

/// Show the public half of a key, and its fingerprint
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap key show me.pub
  progap key show me.key > me.pub.txt             # the public half of a secret key

The fingerprint is the SHA-256 of the public key as SPKI in DER:
  openssl pkey -pubin -in me.pub -outform DER | sha256sum")]
pub struct Show {
    /// A public or a secret key
    key: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Show {
    fn run(self) -> Outcome {
        let secret = SecretKey::is_secret(&self.key)?;
        let key = if secret { SecretKey::read(&self.key)?.public() } else { PublicKey::read(&self.key)? };
        let (fingerprint, pem) = (key.fingerprint(), key.pem());
        if self.json {
            return ui::print(&serde_json::to_string_pretty(&serde_json::json!({
                "fingerprint": fingerprint,
                "public": pem,
            }))?);
        }
        ui::print(&format!("{pem}fingerprint {fingerprint}"))
    }
}
