//! The releases that are served, and their new versions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use axum::http::StatusCode;
use progap::{Error, Result};
use progap_export::PublicKey;

use crate::Shared;
use crate::access::Owners;
use crate::error::Refusal;
use crate::model::Model;

/// The releases, by name.
pub(crate) struct Models {
    slots: BTreeMap<String, Slot>,
    signer: Option<PublicKey>,
    opens_private: bool,
}

struct Slot {
    folder: PathBuf,
    current: RwLock<Arc<Model>>,
    /// The version that was refused last, so that it is not opened again at every look.
    refused: Mutex<Option<Vec<u8>>>,
    manifest: Mutex<Vec<u8>>,
}

impl Models {
    pub fn open(
        releases: &[(String, PathBuf)],
        signer: Option<PublicKey>,
        owners: &Owners,
    ) -> Result<Models> {
        let opens_private = !matches!(owners, Owners::Unknown);
        let mut slots = BTreeMap::new();
        for (name, folder) in releases {
            check_name(name)?;
            let (manifest, model) = open(name, folder, opens_private, signer.as_ref())?;
            let slot = Slot {
                folder: folder.clone(),
                current: RwLock::new(Arc::new(model)),
                refused: Mutex::default(),
                manifest: Mutex::new(manifest),
            };
            if slots.insert(name.clone(), slot).is_some() {
                return Err(Error::unsuitable(format!(
                    "two releases are called {name:?}: give one another name, as `NAME=FOLDER`"
                )));
            }
        }
        match slots.is_empty() {
            true => Err(Error::unsuitable("there is no release to serve: name the folder of one")),
            false => Ok(Models { slots, signer, opens_private }),
        }
    }

    /// Their names.
    pub fn names(&self) -> Vec<String> {
        self.slots.keys().cloned().collect()
    }

    /// All of them as they are now.
    pub fn all(&self) -> Vec<Arc<Model>> {
        self.slots.values().map(Slot::model).collect()
    }

    /// The release of that name; the only one where none is named.
    pub fn get(&self, name: Option<&str>) -> std::result::Result<Arc<Model>, Refusal> {
        let found = match name {
            Some(name) => self.slots.get(name),
            None if self.slots.len() == 1 => self.slots.values().next(),
            None => {
                let names = self.names().join(", ");
                return Err(Refusal::bad(format!(
                    "several releases are served: name one as model ({names})"
                )));
            }
        };
        let unknown = || {
            Refusal::new(
                StatusCode::NOT_FOUND,
                format!("there is no such model; there are: {}", self.names().join(", ")),
            )
        };
        found.map(Slot::model).ok_or_else(unknown)
    }

    /// Looks for new versions, and gives those that are served from now on or were refused, the latter with the reason.
    fn look(&self) -> Vec<(String, Result<String>)> {
        let mut news = vec![];
        for (name, slot) in &self.slots {
            let lock = |kept: &Mutex<Vec<u8>>| kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
            // Between two versions there may be no folder for a moment.
            let Ok(there) = manifest(&slot.folder) else { continue };
            let mut refused = slot.refused.lock().unwrap_or_else(PoisonError::into_inner);
            if there == lock(&slot.manifest) || refused.as_ref() == Some(&there) {
                continue;
            }
            match open(name, &slot.folder, self.opens_private, self.signer.as_ref()) {
                Ok((manifest, model)) => {
                    let version = model.release.sha256().to_string();
                    *slot.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(model);
                    *slot.manifest.lock().unwrap_or_else(PoisonError::into_inner) = manifest;
                    *refused = None;
                    news.push((name.clone(), Ok(version)));
                }
                Err(error) => {
                    *refused = Some(there);
                    news.push((name.clone(), Err(error)));
                }
            }
        }
        news
    }
}

impl Slot {
    fn model(&self) -> Arc<Model> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Opens what a path leads to now: a link may lead elsewhere before all of it is read.
fn open(
    name: &str,
    folder: &Path,
    opens_private: bool,
    signer: Option<&PublicKey>,
) -> Result<(Vec<u8>, Model)> {
    let place = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let model = Model::open(name, &place, opens_private, signer)?;
    Ok((manifest(&place)?, model))
}

/// The list of a release's files, which is another one for every version.
fn manifest(folder: &Path) -> Result<Vec<u8>> {
    let file = folder.join("manifest.json");
    std::fs::read(&file).map_err(|error| Error::unsuitable(format!("{}: {error}", file.display())))
}

/// A name is part of addresses.
fn check_name(name: &str) -> Result<()> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    match !name.is_empty()
        && name.len() <= 100
        && name.chars().all(plain)
        && name.chars().any(char::is_alphanumeric)
    {
        true => Ok(()),
        false => Err(Error::unsuitable(format!(
            "{name:?} is no name for a model: use letters, digits, '-', '_' and '.', as in `NAME=FOLDER`"
        ))),
    }
}

/// Looks for new versions every now and then, and at once on SIGHUP.
pub(crate) async fn keep_up(shared: Arc<Shared>, every: Duration) {
    let mut asked = hang_up();
    loop {
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            () = asked.next() => {}
        }
        let looking = shared.clone();
        let Ok(news) = tokio::task::spawn_blocking(move || looking.models.look()).await else { continue };
        for (model, outcome) in news {
            shared.metrics.reloaded(outcome.is_ok());
            match outcome {
                Ok(version) => shared.log.event("new version", &[("model", model), ("release", version)]),
                Err(error) => {
                    let facts = [("model", model), ("problem", error.to_string())];
                    shared.log.event("new version refused, the old one stays", &facts);
                }
            }
        }
    }
}

/// Requests of the system to look again.
#[cfg(unix)]
struct HangUp(Option<tokio::signal::unix::Signal>);

#[cfg(unix)]
fn hang_up() -> HangUp {
    HangUp(tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok())
}

#[cfg(unix)]
impl HangUp {
    async fn next(&mut self) {
        let came = match &mut self.0 {
            Some(signal) => signal.recv().await.is_some(),
            None => false,
        };
        if !came {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(not(unix))]
struct HangUp;

#[cfg(not(unix))]
fn hang_up() -> HangUp {
    HangUp
}

#[cfg(not(unix))]
impl HangUp {
    async fn next(&mut self) {
        std::future::pending().await
    }
}
