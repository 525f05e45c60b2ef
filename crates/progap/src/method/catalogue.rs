//! Which methods there are, what each protects, and where it comes from.

use serde::Serialize;

use crate::settings::{Level, Method};

/// A method as a reader wants to know it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Entry {
    /// The method.
    pub method: Method,
    /// The levels it has.
    pub levels: &'static [Level],
    /// What it does, in one line.
    pub what: &'static str,
    /// What its guarantee covers, and what not.
    pub protects: &'static str,
    /// The paper it is from.
    pub paper: &'static str,
}

/// Every method.
pub const METHODS: &[Entry] = &[
    Entry {
        method: Method::Progap,
        levels: &[Level::None, Level::Edge, Level::Node],
        what: "stages that aggregate what the stage before has learnt, once each",
        protects: "training and predictions: edges from everyone, or each node's record from all others",
        paper: "Sajadmanesh and Gatica-Perez 2024, ProGAP",
    },
    Entry {
        method: Method::Gap,
        levels: &[Level::None, Level::Edge, Level::Node],
        what: "an encoder, its aggregates over several hops, a classifier",
        protects: "training and predictions: edges from everyone, or each node's record from all others",
        paper: "Sajadmanesh et al. 2023, GAP",
    },
    Entry {
        method: Method::Mlp,
        levels: &[Level::None, Level::Edge, Level::Node],
        what: "a perceptron on the features; no edge is touched",
        protects: "edges at epsilon 0; each node's record from all others by noisy gradients",
        paper: "Abadi et al. 2016, Deep learning with differential privacy",
    },
    Entry {
        method: Method::Sage,
        levels: &[Level::None],
        what: "GraphSAGE: rows mixed with the mean of their neighbours', layer by layer",
        protects: "nothing: it shows what is lost to noise",
        paper: "Hamilton et al. 2017, Inductive representation learning on large graphs",
    },
    Entry {
        method: Method::EdgeRand,
        levels: &[Level::Edge],
        what: "randomised response on every possible edge, then GraphSAGE on the answer",
        protects: "training and predictions: edges from everyone, with a delta of zero",
        paper: "Wu et al. 2022, LinkTeller",
    },
    Entry {
        method: Method::DpGnn,
        levels: &[Level::Node],
        what: "GraphSAGE with one convolution, by noisy gradients over nodes with their senders",
        protects: "training alone, each node's record from all others; predictions read the senders as they are",
        paper: "Daigavane et al. 2021, Node-level differentially private graph neural networks",
    },
];

/// What is known about a method.
pub fn entry(method: Method) -> &'static Entry {
    METHODS.iter().find(|entry| entry.method == method).expect("every method is listed")
}

/// The level that a method has where none is asked for: edges, if it can protect them.
pub fn default_level(method: Method) -> Level {
    let levels = entry(method).levels;
    if levels.contains(&Level::Edge) { Level::Edge } else { levels[0] }
}

/// The methods that have a level, by name.
pub(crate) fn with_level(level: Level) -> String {
    let names = METHODS.iter().filter(|entry| entry.levels.contains(&level));
    names.map(|entry| entry.method.to_string()).collect::<Vec<_>>().join(", ")
}
