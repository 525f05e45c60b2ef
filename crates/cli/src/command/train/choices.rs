//! Data and settings: shared by all commands that train.

use std::path::{Path, PathBuf};

use clap::Args;
use progap::release::Config;
use progap::settings::{Checked, Request};
use progap::{Error, Level};

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
    #[arg(long, value_enum, conflicts_with = "config")]
    preset: Option<Preset>,
    /// Settings from a file, such as the config.toml of a release; flags win
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// At level edge: protect one direction of an edge also where every edge has an edge back [default there: a friendship,
    /// both directions together]
    #[arg(long)]
    directed: bool,
}

impl Choices {
    /// The settings by preset or file, changed by flags; and the data set.
    pub fn settings(&self) -> Result<(Checked, DataSource), Box<dyn std::error::Error>> {
        let mut source = self.source.clone();
        let mut request = match &self.config {
            Some(file) => {
                let config = read(file)?;
                source = source.or_published(DataSource::kept(&config.source)?);
                self.given.over(Request::from(config.settings))
            }
            None => self.given.request(self.preset),
        };
        // Where an edge of the data is two in the graph, friendships are protected, not one direction of them.
        let friendships = self.source.friendships();
        let unit_flag = if self.directed { Some("directed") } else { friendships };
        if self.directed || friendships.is_some() && request.level()? == Level::Edge {
            request = request.with("undirected", !self.directed);
        }
        if let Some(seed) = self.source.given_seed() {
            request = request.with("seed", seed);
        }
        let settings = request.settings().map_err(|error| match (error, unit_flag) {
            (Error::NoEffect { name: "undirected", why }, Some(flag)) => Error::NoEffect { name: flag, why },
            (error, _) => error,
        })?;
        if let Some((name, why)) = friendships.zip(settings.edges_without_effect()) {
            return Err(Error::NoEffect { name, why: why.into() }.into());
        }
        if let Some(seed) = self.source.given_seed().or(source.given_seed()).or(settings.seed) {
            source = source.with_seed(seed);
        }
        Ok((settings, source))
    }

    /// The settings that were asked for by a flag, by their names in config.toml.
    pub fn given(&self) -> Vec<&'static str> {
        self.given.names()
    }
}

/// Reads a file of settings. What a release wrote is taken as it is; in a file of one's own, a setting that was chosen though it
/// decides nothing is refused, as a flag is.
fn read(file: &Path) -> Result<Config, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let config: Config = toml::from_str(&text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = 1 + before.matches('\n').count();
        format!("{}: line {line}: {}; correct it and try again", file.display(), error.message())
    })?;
    let of_a_release = file.parent().is_some_and(|folder| folder.join("manifest.json").is_file());
    match config.settings.chosen_in_vain().filter(|_| !of_a_release) {
        None => Ok(config),
        Some((setting, why)) => {
            let value = setting.get(&config.settings);
            let place = file.display();
            Err(format!("{place}: {} = {value} has no effect: {why}; leave it as it was", setting.name))
        }
    }
}
