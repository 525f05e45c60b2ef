//! Loaded data sets, shared between runs.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use progap_graph::{Dataset, DatasetParts, Part};

use super::DataSpec;
use progap::{Error, Result};

/// How many data sets with a split are kept.
const KEPT: usize = 16;

/// A data set with its fingerprint, split included.
#[derive(Debug)]
pub struct Loaded {
    /// The data set.
    pub dataset: Dataset,
    /// Its fingerprint.
    pub fingerprint: String,
}

type Loader<'l> = dyn Fn(&DataSpec, u64) -> Result<Dataset> + Sync + 'l;

/// Loads data sets, and keeps those that were used last. The splits of one data set share graph and features.
pub struct Library<'l> {
    loader: Box<Loader<'l>>,
    kept: Mutex<VecDeque<(DataSpec, u64, Arc<Loaded>)>>,
}

impl<'l> Library<'l> {
    /// A library that loads by calling `loader` with a data set and the seed of its split.
    pub fn new(loader: impl Fn(&DataSpec, u64) -> Result<Dataset> + Sync + 'l) -> Self {
        Library { loader: Box::new(loader), kept: Mutex::default() }
    }

    /// A data set with a split. While one is being loaded others wait, so that nothing is loaded twice.
    pub fn get(&self, spec: &DataSpec, split: u64) -> Result<Arc<Loaded>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, _, loaded)) = kept.iter().find(|(s, number, _)| *number == split && s == spec) {
            return Ok(loaded.clone());
        }
        let mut dataset = (self.loader)(spec, split)?;
        if dataset.split().is_some_and(|split| split.count(Part::Test) == 0) {
            return Err(Error::unsuitable(format!(
                "{}: the split has no test nodes, and experiments compare test accuracies: give it some",
                dataset.name()
            )));
        }
        if let Some((_, _, other)) = kept.iter().find(|(other, _, _)| other == spec) {
            dataset = sharing(dataset, &other.dataset)?;
        }
        let fingerprint = dataset.fingerprint();
        let loaded = Arc::new(Loaded { dataset, fingerprint });
        kept.push_back((spec.clone(), split, loaded.clone()));
        if kept.len() > KEPT {
            kept.pop_front();
        }
        Ok(loaded)
    }
}

/// The same data set, holding what it has in common with another one only once.
fn sharing(dataset: Dataset, other: &Dataset) -> Result<Dataset> {
    let mut parts = dataset.into_parts();
    let theirs: DatasetParts = other.clone().into_parts();
    if parts.graph == theirs.graph {
        parts.graph = theirs.graph;
    }
    if parts.features == theirs.features {
        parts.features = theirs.features;
    }
    if parts.labels[..] == theirs.labels[..] {
        parts.labels = theirs.labels;
    }
    Ok(Dataset::new(parts)?)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use progap_graph::Ratios;
    use progap_graph::synth::SocialNetwork;
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_data_set_is_loaded_once_and_its_splits_share_the_graph() {
        let loads = AtomicUsize::new(0);
        let library = Library::new(|_, split| {
            loads.fetch_add(1, Ordering::SeqCst);
            let network = SocialNetwork::new(200).edges(1000).classes(2).seed(1).generate()?;
            Ok(network.with_random_split(Ratios::default(), split)?)
        });
        let spec = DataSpec { name: "a".into(), content: Value::Null, place: Value::Null };
        let (first, second) =
            (library.get(&spec, 1).expect("loaded"), library.get(&spec, 2).expect("loaded"));
        library.get(&spec, 1).expect("kept");
        assert_eq!(loads.load(Ordering::SeqCst), 2);
        assert_ne!(first.fingerprint, second.fingerprint, "the split is part of it");
        let senders = |loaded: &Loaded| loaded.dataset.graph().senders().as_ptr();
        assert_eq!(senders(&first), senders(&second));
    }
}
