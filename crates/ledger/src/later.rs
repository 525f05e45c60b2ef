//! Records that arrived after a run: what they pay, and what those that the run was about pay no longer.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use progap_privacy::Event;
use serde::{Deserialize, Serialize};

use super::error::{Error, Result};

/// The records that a charge is about, where they arrived after a run: edges with an end among nodes that were not in
/// the run's data.
///
/// Whether two charges are about the same records is decided by their nodes, which are public, and not by their edges,
/// so that nothing in a row, a cost or a receipt depends on an edge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Later {
    /// The run whose data had none of these records.
    pub after: String,
    /// What was made of that run and is asked now, by its hash.
    pub release: String,
    /// The nodes, by keyed digests ([`Ledger::node_tags`](super::Ledger::node_tags)); two that are equal count as one
    /// node.
    pub nodes: Vec<u64>,
    /// The keyed digest of everything that is asked ([`Ledger::digest`](super::Ledger::digest)): under one run id
    /// nothing else is ever asked.
    pub asked: String,
}

/// More nodes than one charge has room for.
pub(super) const MOST_NODES: usize = 500_000;

impl Later {
    /// Refuses what no row holds.
    pub(super) fn check(&self) -> Result<()> {
        match self.nodes.len() {
            1..=MOST_NODES => Ok(()),
            count => Err(Error::invalid("the number of new nodes", count, format!("1 to {MOST_NODES}"))),
        }
    }
}

/// A run together with the charges for records that arrived after it, as one event.
///
/// # Proof definition
/// Each record either was in the data of the run, or is in charges that came after it, or is in none of them: it has an
/// end that those data did not have. So the cost is that of the worse part ([`Event::Parallel`],
/// [proof](progap_privacy::proofs::ledger#records-that-arrive-later)). Among charges about one release, one record can
/// be in several only if these have a node in common: a record's ends that the release does not have are the same
/// whenever it is asked, and each charge about it names them. Charges about different releases are added up, as an old
/// node of one may be a new node of another.
pub(super) fn with_later<'e>(run: &'e Event, later: &[(&'e Event, &'e Later)]) -> Result<Cow<'e, Event>> {
    if later.is_empty() {
        return Ok(Cow::Borrowed(run));
    }
    let mut by_release: BTreeMap<&str, Vec<(&Event, &Later)>> = BTreeMap::new();
    for (event, about) in later {
        by_release.entry(&about.release).or_default().push((event, about));
    }
    let parts = by_release.values().map(|charges| worst_node(charges)).collect::<Result<Vec<_>>>()?;
    Ok(Cow::Owned(Event::parallel(vec![run.clone(), all_of(parts)?])?))
}

/// Charges about one release: what the records of one node pay, the worst of them.
fn worst_node(charges: &[(&Event, &Later)]) -> Result<Event> {
    let mut of_node: HashMap<u64, BTreeSet<usize>> = HashMap::new();
    for (at, (_, about)) in charges.iter().enumerate() {
        for &node in &about.nodes {
            of_node.entry(node).or_default().insert(at);
        }
    }
    let sets: BTreeSet<BTreeSet<usize>> = of_node.into_values().collect();
    let mut parts: Vec<Event> = vec![];
    for set in sets {
        let part = all_of(set.into_iter().map(|at| charges[at].0.clone()).collect())?;
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    Ok(if parts.len() == 1 { parts.remove(0) } else { Event::parallel(parts)? })
}

fn all_of(mut events: Vec<Event>) -> Result<Event> {
    Ok(if events.len() == 1 { events.remove(0) } else { Event::composed(events)? })
}
