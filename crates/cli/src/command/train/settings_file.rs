//! A file of settings: the config.toml of a release, or one of the user's own.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;
use std::path::Path;

use progap::release::Config;
use progap::settings::{Change, Request};
use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;

use crate::source::DataSource;

/// The settings and the data source that a file asks for.
pub struct SettingsFile {
    pub request: Request,
    pub source: DataSource,
}

/// A file of one's own: what it leaves out is as if nobody had asked for it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    #[serde(default, rename = "version")]
    _version: Option<u64>,
    #[serde(default, rename = "dataset")]
    _dataset: String,
    #[serde(default)]
    settings: BTreeMap<String, Spanned<toml::Value>>,
    source: Option<Spanned<toml::Value>>,
}

impl SettingsFile {
    /// Reads a file. What a release wrote is taken as it is. In a file of one's own what is left out has its default,
    /// and what was chosen though it decides nothing is refused, as a flag is.
    pub fn read(file: &Path) -> Result<SettingsFile, Box<dyn std::error::Error>> {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        // The version is looked at first: a newer file may have keys that are unknown here.
        let version = text.parse::<toml::Table>().ok().and_then(|table| table.get("version")?.as_integer());
        if let Some(found) = version.filter(|&version| version != 1) {
            return Err(progap::Error::newer("the file of settings", found.unsigned_abs()).at(file).into());
        }
        let wrong = |span: Option<Range<usize>>, problem: &dyn Display| {
            let before = span.and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = 1 + before.matches('\n').count();
            format!("{}: line {line}: {problem}; correct it and try again", file.display())
        };
        if file.parent().is_some_and(|folder| folder.join("manifest.json").is_file()) {
            let config: Config =
                toml::from_str(&text).map_err(|error| wrong(error.span(), &error.message()))?;
            let source = DataSource::kept(&config.source)
                .map_err(|error| format!("{}: source: {error}", file.display()))?;
            return Ok(SettingsFile { request: Request::from(config.settings), source });
        }
        let own: Own = toml::from_str(&text).map_err(|error| wrong(error.span(), &error.message()))?;
        let mut listed: Vec<Change> = Vec::new();
        for (name, value) in own.settings {
            let (span, value) = (value.span(), in_json(value.into_inner()));
            Request::default()
                .with(&name, value.clone())
                .level()
                .map_err(|error| wrong(Some(span), &error))?;
            listed.push((name, value));
        }
        let request = Request::listed(listed).map_err(|error| error.at(file))?;
        let source = match own.source {
            None => DataSource::default(),
            Some(source) => {
                let span = source.span();
                DataSource::listed(&in_json(source.into_inner()))
                    .map_err(|error| wrong(Some(span), &error))?
            }
        };
        Ok(SettingsFile { request, source })
    }
}

/// A value as settings take it: JSON has no numbers that are not finite, which settings refuse by name.
fn in_json(value: toml::Value) -> Value {
    match value {
        toml::Value::Float(number) if !number.is_finite() => number.to_string().into(),
        other => serde_json::to_value(other).unwrap_or_default(),
    }
}
