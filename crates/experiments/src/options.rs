//! Options of an experiment.

use serde::{Deserialize, Serialize};

use super::DataSpec;
use super::grid::Change;
use super::tuning::Tuning;
use progap::settings::{Level, MethodKind, Metric};

/// The experiments that consist of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Name {
    /// Methods by levels by data sets.
    Table2,
    /// Accuracy against epsilon.
    Tradeoff,
    /// Accuracy epoch by epoch.
    Convergence,
    /// Accuracy against depth.
    Depth,
    /// Progressive against layerwise training.
    Layerwise,
    /// Additions to the paper on and off.
    Ablation,
    /// Accuracy against the share of labelled nodes.
    Labels,
    /// A comparison of the user's own.
    Custom,
}

/// The settings that runs start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Preset {
    /// Our defaults.
    #[default]
    Default,
    /// The published accounting, sampling and settings.
    Paper,
    /// One beside the other.
    Both,
}

/// Options of an experiment; those that are not given are as in the paper.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The data sets.
    pub data: Vec<DataSpec>,
    /// Runs of each settings, each with a split and a seed of its own.
    pub runs: u64,
    /// The methods.
    pub methods: Option<Vec<MethodKind>>,
    /// The levels.
    pub levels: Option<Vec<Level>>,
    /// The budgets, at every private level.
    pub epsilons: Option<Vec<f64>>,
    /// The depths.
    pub depths: Option<Vec<usize>>,
    /// How settings are chosen.
    pub tuning: Tuning,
    /// The settings to start from.
    pub preset: Preset,
    /// Settings for all runs.
    pub changes: Vec<Change>,
    /// The metric that is shown; where validation nodes choose epochs, also the one by which they do.
    pub metric: Metric,
    /// In [`Name::Labels`]: the share of training nodes in each of the data sets, by position.
    pub shares: Vec<f64>,
}

impl Options {
    /// This many runs on some data sets of what an experiment usually compares, with fixed settings.
    pub fn new(data: Vec<DataSpec>, runs: u64) -> Options {
        Options {
            data,
            runs,
            methods: None,
            levels: None,
            epsilons: None,
            depths: None,
            tuning: Tuning::None,
            preset: Preset::Default,
            changes: vec![],
            metric: Metric::Accuracy,
            shares: vec![],
        }
    }
}
