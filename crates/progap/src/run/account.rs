//! Which budget a run is charged to.

use std::path::{Path, PathBuf};

use progap_graph::Dataset;
use progap_privacy::Unit;
use serde::{Deserialize, Serialize};

use crate::ledger::{Ledger, Warning};
use crate::settings::{Level, Settings};
use crate::{Error, Remedy, Result};

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
        return Err(Error::contradiction(
            "a run with a seed has noise that anybody can compute, so it is not private and cannot be charged",
        )
        .remedy(Remedy::Drop("seed"))
        .remedy(Remedy::Drop("ledger")));
    }
    match settings.level {
        Level::None => Err(Error::contradiction(
            "a run without privacy shows everything, so no budget covers it and it cannot be charged",
        )
        .remedy(Remedy::Drop("ledger"))
        .remedy(Remedy::set("level", "edge"))
        .remedy(Remedy::set("level", "node"))),
        Level::Edge if settings.undirected => Ok(Unit::EdgeUndirected),
        Level::Edge => Ok(Unit::Edge),
        Level::Node => Ok(Unit::Node),
    }
}
