//! `config.toml`: a record of how a release was trained. Nothing that opens a release or predicts with it needs it;
//! code that recomputes the guarantee or shows the settings does.

use serde::{Deserialize, Serialize};

use super::manifest::{Contents, Listed};
use super::{CONFIG, Release, STATEMENT, Statement};
use crate::error::InFile;
use crate::folder::SMALL;
use crate::settings::Settings;
use crate::{Error, Result, files, method};

/// The settings and the data they were for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The version of the format.
    pub version: u64,
    /// The data set's name.
    pub dataset: String,
    /// The settings.
    pub settings: Settings,
    /// How the data was asked for, where the caller said so.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub source: serde_json::Value,
}

impl Config {
    /// The settings as they are published: where the data owner keeps the data is nobody else's business.
    pub(crate) fn published(dataset: &str, settings: &Settings, mut source: serde_json::Value) -> Config {
        source.as_object_mut().and_then(|source| source.remove("private"));
        Config { version: files::FORMAT, dataset: dataset.into(), settings: settings.clone(), source }
    }

    /// The settings of a release, where it lists them: those that its statement and its files are of.
    pub(super) fn read(listed: &Listed, statement: &Statement) -> Result<Option<Config>> {
        if !listed.public.files.contains_key(CONFIG) {
            return Ok(None);
        }
        let file = listed.folder.path(CONFIG);
        let text = String::from_utf8(listed.read(CONFIG, SMALL)?).in_file(&file)?;
        // Without the excerpt that the parser shows: it is a stranger's text, and may be one line without end.
        let wrong = |e: toml::de::Error| Error::file(&file, e.message());
        toml::from_str::<files::Version>(&text).map_err(wrong)?.check("the record of settings", &file)?;
        let config: Config = toml::from_str(&text).map_err(wrong)?;
        let settings = config.settings.checked()?;
        if settings.level != statement.level() {
            let problem = format!("its level is not that of {STATEMENT}: they are not of one release");
            return Err(Error::file(&file, problem));
        }
        if !method::is_choice(&settings, statement.choice.as_ref()) {
            return Err(Error::file(
                &listed.folder.path(STATEMENT),
                "what the run chose is nothing that its settings leave to it: do not trust it",
            ));
        }
        listed.check(&Contents::of(&settings))?;
        Ok(Some(config))
    }
}

impl Release {
    /// The settings it was trained with, and the name of the data.
    ///
    /// # Errors
    /// A release without `config.toml`: it predicts, but nobody can recompute its guarantee.
    pub fn config(&self) -> Result<&Config> {
        self.config.as_ref().ok_or_else(|| {
            let problem = format!(
                "{CONFIG} is not in this release: it predicts, but without its settings nobody can recompute the \
                 guarantee or train it \
                 again; ask for the release with that file"
            );
            Error::file(&self.folder, problem)
        })
    }

    /// The settings it was trained with.
    ///
    /// # Errors
    /// As [`Release::config`].
    pub fn settings(&self) -> Result<&Settings> {
        Ok(&self.config()?.settings)
    }
}
