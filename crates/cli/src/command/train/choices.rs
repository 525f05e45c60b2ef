//! Data and settings: shared by all commands that train.

use std::path::{Path, PathBuf};

use clap::Args;
use progap::settings::Draft;
use progap::{Error, ErrorKind, Level};
use progap_formats::named;

use super::settings_file::SettingsFile;
use crate::flags::{Given, Preset};
use crate::source::DataSource;

/// Data and settings.
#[derive(Args)]
pub struct Choices {
    #[command(flatten)]
    pub source: DataSource,
    #[command(flatten)]
    given: Given,
    /// Settings to start from
    #[arg(long, value_enum, value_name = "NAME", conflicts_with = "config", help_heading = "Model")]
    preset: Option<Preset>,
    /// Settings from a file, such as the config.toml of a release; flags win
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub config: Option<PathBuf>,
    /// Protect one direction of an edge, also on symmetric graphs
    ///
    /// Where every edge has a reverse edge the default is an undirected edge: both directions together.
    #[arg(long, help_heading = "Privacy")]
    directed: bool,
}

/// Whether these are data that anyone can download by name.
fn is_published(name: &str) -> bool {
    !Path::new(name).exists() && named::find(name).is_ok_and(|entry| !entry.files.is_empty())
}

impl Choices {
    /// The settings by preset or file, changed by flags; and the data set.
    pub fn settings(&self) -> Result<(Draft, DataSource), Box<dyn std::error::Error>> {
        let mut source = self.source.clone();
        let mut request = match &self.config {
            Some(file) => {
                let read = SettingsFile::read(file)?;
                source = source.or_published(read.source);
                self.given.over(read.request)
            }
            None => self.given.request(self.preset),
        };
        // Where an edge of the data is two in the graph, undirected edges are protected, not one direction of them.
        let undirected = self.source.undirected();
        let unit_flag = if self.directed { Some("directed") } else { undirected };
        if self.directed || undirected.is_some() && request.level()? == Level::Edge {
            request = request.with("undirected", !self.directed);
        }
        // The order of data that anyone can download is known to anyone.
        let decided = request.names().iter().any(|name| ["order", "shuffle"].contains(name));
        if is_published(source.name()) && !decided && request.level()? != Level::None {
            request = request.with("order", "public");
        }
        if let Some(seed) = self.source.given_seed() {
            request = request.with("seed", seed);
        }
        let settings = request.settings().map_err(|error| match (error.kind(), unit_flag) {
            (ErrorKind::NoEffect { name: "undirected", why }, Some(flag)) => {
                Error::no_effect(flag, why.as_str())
            }
            _ => error,
        })?;
        if let Some((name, why)) = undirected.zip(settings.edges_without_effect()) {
            return Err(Error::no_effect(name, why).into());
        }
        if let Some(seed) = self.source.given_seed().or(source.given_seed()).or(settings.seed) {
            source = source.with_seed(seed);
        }
        Ok((settings, source))
    }

    /// The first flag that was given and says something of settings.
    pub fn first_flag(&self) -> Option<String> {
        let switches = [
            ("preset", self.preset.is_some()),
            ("config", self.config.is_some()),
            ("directed", self.directed),
        ];
        let given = self.given.names().into_iter();
        given
            .chain(switches.into_iter().filter_map(|(name, given)| given.then_some(name)))
            .map(|name| name.replace('_', "-"))
            .next()
    }

    /// The settings that were asked for by a flag, by their names in config.toml.
    pub fn given(&self) -> Vec<&'static str> {
        self.given.names()
    }
}
