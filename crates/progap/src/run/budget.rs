//! Budgets that make sense for some data.

use progap_graph::{Dataset, Part};
use progap_privacy::Unit;
use progap_privacy::noise::tables;

use crate::ledger::{self, Ledger};
use crate::plan::automatic_delta;
use crate::{Error, Remedy, Result, delta};

/// Refuses a budget that no run on this data could ever be charged to.
pub fn check_budget(dataset: &Dataset, name: &str, unit: Unit, epsilon: f64, delta: f64) -> Result<()> {
    Ledger::check_entry(name, epsilon, delta)?;
    let graph = dataset.graph();
    // The fewest values of noise that a run can draw: one aggregate of the narrowest messages, or one gradient.
    let (records, what, values) = match unit {
        Unit::Edge => (graph.distinct_edges(), "directed edges", dataset.nodes()),
        Unit::EdgeUndirected if !graph.is_symmetric() => {
            return Err(Error::unsuitable(format!(
                "{} has edges without an edge back, so no run on it protects undirected edges",
                dataset.name()
            ))
            .remedy(Remedy::words("add them, here and in training"))
            .remedy(Remedy::Give("undirected"))
            .remedy(Remedy::Give("symmetrise"))
            .remedy(Remedy::set("unit", "edge")));
        }
        Unit::EdgeUndirected => (graph.distinct_edges().div_ceil(2), "undirected edges", dataset.nodes()),
        Unit::Node => (dataset.nodes(), "nodes", dataset.features().columns().max(1)),
    };
    // The published rule counts training nodes, and its runs are charged like any others.
    let published = dataset.split().filter(|_| unit == Unit::Node).map(|split| split.count(Part::Train));
    let most = published.map_or(0.0, automatic_delta).max(delta::largest(records));
    if delta > most {
        return Err(Error::out_of_range(
            "delta",
            format!("{delta:e}"),
            format!("at most {most:e}, as for a run: it is about {records} {what}"),
        ));
    }
    if !tables::fit(values as u64, epsilon, delta) {
        return Err(ledger::Error::Tables { dataset: name.to_owned(), epsilon, delta }.into());
    }
    Ok(())
}
