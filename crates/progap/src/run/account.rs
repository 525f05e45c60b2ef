//! Which budget a run is charged to, and which budgets a run could be charged to.

use std::path::{Path, PathBuf};

use progap_graph::{Dataset, Part};
use progap_privacy::Unit;
use progap_privacy::noise::tables;
use serde::{Deserialize, Serialize};

use crate::ledger::{Ledger, Warning};
use crate::plan::automatic_delta;
use crate::settings::{Level, Settings};
use crate::{Error, Result, delta, ledger};

/// The budget that a run is charged to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// The ledger.
    pub path: PathBuf,
    /// The data set's name in it.
    pub name: String,
}

impl Account {
    /// The account of a run on a data set: of the name if one is given, else found by the people whom the data are
    /// about, else by the data set's own name. The warning is for the owner, before anything is charged.
    pub fn find(
        dataset: &Dataset,
        settings: &Settings,
        ledger: &Path,
        name: Option<&str>,
    ) -> Result<(Account, Option<Warning>)> {
        let unit = chargeable(settings)?;
        let file = Ledger::open(ledger)?;
        let found = file.find(name, dataset.name(), &file.identity(dataset)?, unit)?;
        Ok((Account { path: ledger.to_path_buf(), name: found.name }, found.warning))
    }

    /// The same account, found from any folder.
    pub(super) fn absolute(&self) -> Account {
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        Account { path, name: self.name.clone() }
    }
}

/// The unit in which a run is charged; what guarantees nothing cannot be.
pub fn chargeable(settings: &Settings) -> Result<Unit> {
    if settings.seed.is_some() {
        return Err(Error::Contradiction(
            "a run with a seed has noise that anybody can compute, so it is not private and cannot be charged: leave out \
             `seed`, or `ledger`",
        ));
    }
    match settings.level {
        Level::None => Err(Error::Contradiction(
            "a run without privacy shows everything, so no budget covers it and it cannot be charged: leave out \
             `ledger`, or give `level edge` or `level node`",
        )),
        Level::Edge if settings.undirected => Ok(Unit::EdgeUndirected),
        Level::Edge => Ok(Unit::Edge),
        Level::Node => Ok(Unit::Node),
    }
}

/// Refuses a budget that no run on this data could ever be charged to.
pub fn check_budget(dataset: &Dataset, name: &str, unit: Unit, epsilon: f64, delta: f64) -> Result<()> {
    Ledger::check_entry(name, epsilon, delta)?;
    let graph = dataset.graph();
    // The fewest values of noise that a run can draw: one aggregate of the narrowest messages, or one gradient.
    let (records, what, values) = match unit {
        Unit::Edge => (graph.distinct_edges(), "directed edges", dataset.nodes()),
        Unit::EdgeUndirected if !graph.is_symmetric() => {
            return Err(Error::Unsuitable(format!(
                "{} has edges without an edge back, so no run on it protects friendships: give `undirected` or \
                 `symmetrise`, here and in training, or `unit edge`",
                dataset.name()
            )));
        }
        Unit::EdgeUndirected => (graph.distinct_edges().div_ceil(2), "friendships", dataset.nodes()),
        Unit::Node => (dataset.nodes(), "nodes", dataset.features().columns().max(1)),
    };
    // The published rule counts training nodes, and its runs are charged like any others.
    let published = dataset.split().filter(|_| unit == Unit::Node).map(|split| split.count(Part::Train));
    let most = published.map_or(0.0, automatic_delta).max(delta::largest(records));
    if delta > most {
        return Err(Error::Setting {
            name: "delta",
            value: format!("{delta:e}"),
            expected: format!("at most {most:e}, as for a run: it is about {records} {what}"),
        });
    }
    if !tables::fit(values as u64, epsilon, delta) {
        return Err(ledger::Error::Tables { dataset: name.to_owned(), epsilon, delta }.into());
    }
    Ok(())
}
