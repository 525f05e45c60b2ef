//! The progress of a run in one file: its key, and which of its other files count.
//!
//! Every other file is written under a name of its own first; this file is then replaced in one step. So there is one
//! moment at which an answer is kept, and a crash leaves the run before it or after it, never between. The noise key in
//! it is the successor of the one that the kept answers were made with: whoever finds it cannot repeat their noise.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use progap_graph::AtomicFile;
use progap_privacy::noise::RunKey;
use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

use crate::error::InFile;
use crate::files::{self, hex};
use crate::folder::{Folder, SMALL};
use crate::{Error, Result};

/// The name of the file.
pub(super) const KEY: &str = "secret.key";
const VERSION: u32 = 1;

/// The content of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    run_id: String,
    /// In hexadecimal; absent where noise is reproducible.
    key: Option<String>,
    /// The files that count, with their digests.
    kept: BTreeMap<String, String>,
    /// Which of the kept files is the state of training.
    checkpoint: Option<String>,
    /// Made with the key, over all of the above.
    seal: String,
}

/// Which files of a run count.
pub(super) struct ProgressFile {
    run_id: String,
    /// Vouches for the files; with a seed it vouches against mistakes alone.
    sealer: RunKey,
    seeded: bool,
    kept: BTreeMap<String, String>,
    checkpoint: Option<String>,
}

impl ProgressFile {
    /// The progress of a run that begins.
    pub(super) fn new(run_id: &str, key: Option<&RunKey>) -> ProgressFile {
        ProgressFile {
            run_id: run_id.into(),
            sealer: key.map_or_else(|| sealer_without_key(run_id), |key| RunKey::from_bytes(&key.to_bytes())),
            seeded: key.is_none(),
            kept: BTreeMap::new(),
            checkpoint: None,
        }
    }

    /// Reads the progress of a run, and the key that it goes on with. `commitment` is what the run holds of its key.
    pub(super) fn open(
        folder: &Path,
        run_id: &str,
        commitment: Option<&str>,
    ) -> Result<(ProgressFile, Option<RunKey>)> {
        let file = folder.join(KEY);
        let damaged = |what: &str| Error::file(&file, format!("{what}: the run cannot be resumed"));
        let place = Folder::open(folder, "there is no run here; name the folder of one")?;
        if !place.has(KEY)? {
            return Err(damaged("the key is gone"));
        }
        let content: Content =
            serde_json::from_slice(&place.read(KEY, SMALL)?).map_err(|_| damaged("the key is damaged"))?;
        if content.version != VERSION {
            return Err(damaged("it is of another version of the program"));
        }
        let key = match (&content.key, commitment) {
            (None, None) => None,
            (Some(text), Some(commitment)) => {
                let bytes = unhex(text).ok_or_else(|| damaged("the key is damaged"))?;
                let key = RunKey::from_bytes(&bytes);
                if hex(&key.commitment()) != commitment {
                    return Err(damaged("the key is not the one that the run began with"));
                }
                Some(key)
            }
            _ => return Err(damaged("the key is not the one that the run began with")),
        };
        let progress = ProgressFile {
            kept: content.kept.clone(),
            checkpoint: content.checkpoint.clone(),
            ..ProgressFile::new(run_id, key.as_ref())
        };
        if content.run_id != run_id || content.seal != progress.content(key.as_ref()).seal {
            return Err(damaged("it was changed since it was written"));
        }
        Ok((progress, key))
    }

    /// Whether a folder holds the progress of a run that kept nothing.
    pub(super) fn is_unused(folder: &Path) -> bool {
        let content = Folder::open(folder, "").and_then(|folder| folder.json::<Content>(KEY, SMALL));
        content.is_ok_and(|content| content.kept.is_empty() && content.checkpoint.is_none())
    }

    /// Writes the progress, with the key that the run goes on with; it is on disk when this returns.
    pub(super) fn save(&self, folder: &Path, key: Option<&RunKey>) -> Result<()> {
        let path = folder.join(KEY);
        if key.is_none() != self.seeded {
            return Err(Error::internal("a run has a key from its beginning to its end, or none"));
        }
        let mut text = serde_json::to_vec_pretty(&self.content(key)).in_file(&path)?;
        let mut file = AtomicFile::create_secret(&path)?;
        file.write_all(&text).in_file(&path)?;
        text.zeroize();
        Ok(file.commit()?)
    }

    /// From the next time it is saved a file counts, with this digest.
    pub(super) fn keep(&mut self, name: &str, digest: String) {
        self.kept.insert(name.into(), digest);
    }

    /// From the next time it is saved this file is the state of training; the one before no longer counts. Gives its
    /// name.
    pub(super) fn keep_checkpoint(&mut self, name: &str, digest: String) -> Option<String> {
        let before = self.checkpoint.replace(name.into());
        if let Some(before) = &before {
            self.kept.remove(before);
        }
        self.keep(name, digest);
        before
    }

    /// The state of training, if one was kept.
    pub(super) fn checkpoint(&self) -> Option<&str> {
        self.checkpoint.as_deref()
    }

    /// Whether a file counts.
    pub(super) fn has(&self, name: &str) -> bool {
        self.kept.contains_key(name)
    }

    /// Whether anything was kept.
    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Refuses a kept file with other content than was kept.
    pub(super) fn check(&self, folder: &Path, name: &str, content: &[u8]) -> Result<()> {
        match self.kept.get(name) {
            Some(digest) if *digest == files::digest([content]) => Ok(()),
            _ => {
                let problem = "it was changed since the run kept it: restore it, or start a new run";
                Err(Error::file(&folder.join(name), problem))
            }
        }
    }

    fn content(&self, key: Option<&RunKey>) -> Content {
        let mut content = Content {
            version: VERSION,
            run_id: self.run_id.clone(),
            key: key.map(|key| hex(&key.to_bytes())),
            kept: self.kept.clone(),
            checkpoint: self.checkpoint.clone(),
            seal: String::new(),
        };
        let text = serde_json::to_vec(&content).unwrap_or_default();
        content.seal = hex(&self.sealer.seal(&text));
        content
    }
}

/// Without a key there is nothing to hide: the seal shows damage and mistakes.
fn sealer_without_key(run_id: &str) -> RunKey {
    let mut bytes = [0; RunKey::BYTES];
    bytes.iter_mut().zip(run_id.bytes()).for_each(|(place, byte)| *place = byte);
    RunKey::from_bytes(&bytes)
}

fn unhex(text: &str) -> Option<[u8; RunKey::BYTES]> {
    let digit = |place: usize| u8::from_str_radix(text.get(place..place + 2)?, 16).ok();
    let bytes: Vec<u8> = (0..text.len()).step_by(2).map(digit).collect::<Option<_>>()?;
    bytes.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A changed key, list or seal is refused; so is a key of the right length that another run has.
    #[test]
    fn only_the_run_s_own_key_and_list_are_accepted() {
        let folder = tempfile::tempdir().expect("a folder");
        let key = RunKey::from_os().expect("entropy");
        let commitment = hex(&key.commitment());
        let mut progress = ProgressFile::new("run", Some(&key));
        progress.keep("aggregates/1.npy", "00".into());
        progress.save(folder.path(), Some(&key)).expect("saved");
        let open =
            || ProgressFile::open(folder.path(), "run", Some(&commitment)).map(|(progress, _)| progress);
        assert!(open().expect("the same").has("aggregates/1.npy"));

        let file = folder.path().join(KEY);
        let good = std::fs::read_to_string(&file).expect("read");
        let other = RunKey::from_os().expect("entropy");
        let mut moved = RunKey::from_bytes(&key.to_bytes());
        moved.advance();
        for (what, changed) in [
            ("another key", good.replace(&hex(&key.to_bytes()), &hex(&other.to_bytes()))),
            ("another noise key", good.replace(&hex(&key.to_bytes()), &hex(&moved.to_bytes()))),
            ("another digest", good.replace("\"00\"", "\"01\"")),
            ("another run", good.replace("\"run\"", "\"ran\"")),
            ("no JSON", good.replace('{', "")),
            ("half a key", good.replace(&hex(&key.to_bytes()), "0011")),
        ] {
            assert_ne!(changed, good, "{what}");
            std::fs::write(&file, changed).expect("written");
            assert!(open().is_err(), "{what}");
        }
        // A whole file of another run, with a right seal of its own.
        ProgressFile::new("run", Some(&other)).save(folder.path(), Some(&other)).expect("saved");
        let refusal = open().err().expect("refused").to_string();
        assert!(refusal.contains("not the one that the run began with"), "{refusal}");
        std::fs::remove_file(&file).expect("removed");
        assert!(open().is_err_and(|error| error.to_string().contains("gone")));
    }
}
