//! What a prediction is made of.

use serde::{Deserialize, Serialize};

use crate::predictor::{Predictor, Reads};

/// What a prediction is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Used {
    /// The node's own features alone.
    #[serde(rename = "features")]
    Features,
    /// The noisy sums alone.
    #[serde(rename = "sums")]
    Sums,
    /// Both.
    #[serde(rename = "features+sums")]
    FeaturesAndSums,
}

impl Used {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Used::Features => "features",
            Used::Sums => "sums",
            Used::FeaturesAndSums => "features+sums",
        }
    }
}

impl std::fmt::Display for Used {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Predictor {
    /// What the models read.
    pub(super) fn used(&self) -> Used {
        let reads = || self.links.iter().flat_map(|link| link.reads.iter().flatten());
        let rows = reads().any(|reads| matches!(reads, Reads::Rows));
        let sums = reads().any(|reads| matches!(reads, Reads::Aggregate(_)));
        match (rows, sums) {
            (true, true) => Used::FeaturesAndSums,
            (false, true) => Used::Sums,
            (_, false) => Used::Features,
        }
    }
}
