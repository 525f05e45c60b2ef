//! Figures of others, to be shown beside ours.

use progap::settings::{Draft, Level};

/// A published figure: test accuracy in percent, and half of its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// The mean; in Table 2 of the paper over 10 runs.
    pub mean: f64,
    /// Half the interval, where one was published.
    pub half: Option<f64>,
}

/// The data sets of Table 2, by the names they have here.
const DATA: [&str; 5] = ["facebook", "reddit", "amazon", "fb-100", "wenet"];

type Row = (Level, &'static str, Option<f64>, [(f64, f64); 5]);

/// Table 2 of Sajadmanesh and Gatica-Perez (2024).
const TABLE_2: [Row; 11] = [
    (Level::None, "sage", None, [(84.7, 0.09), (99.4, 0.01), (93.2, 0.07), (74.0, 0.80), (71.6, 0.54)]),
    (Level::None, "gap", None, [(80.5, 0.42), (99.5, 0.01), (92.0, 0.10), (66.4, 0.35), (69.7, 0.14)]),
    (Level::None, "progap", None, [(84.5, 0.24), (99.3, 0.03), (93.3, 0.04), (74.4, 0.14), (73.9, 0.25)]),
    (Level::Edge, "mlp", Some(0.0), [(50.8, 0.20), (82.5, 0.08), (71.1, 0.18), (34.9, 0.02), (51.5, 0.22)]),
    (
        Level::Edge,
        "edge-rand",
        Some(1.0),
        [(50.2, 0.50), (82.8, 0.05), (72.7, 0.1), (34.9, 0.05), (52.1, 0.48)],
    ),
    (Level::Edge, "gap", Some(1.0), [(69.4, 0.39), (97.5, 0.06), (78.8, 0.26), (46.5, 0.58), (62.4, 0.28)]),
    (
        Level::Edge,
        "progap",
        Some(1.0),
        [(77.2, 0.33), (97.8, 0.05), (84.2, 0.07), (56.9, 0.30), (68.8, 0.23)],
    ),
    (Level::Node, "mlp", Some(8.0), [(50.2, 0.25), (81.5, 0.12), (73.6, 0.05), (34.5, 0.13), (50.8, 0.37)]),
    (
        Level::Node,
        "dp-gnn",
        Some(8.0),
        [(62.6, 0.86), (95.6, 0.31), (78.5, 0.86), (46.5, 0.57), (54.2, 0.73)],
    ),
    (Level::Node, "gap", Some(8.0), [(63.9, 0.49), (93.9, 0.09), (77.6, 0.07), (43.0, 0.20), (58.2, 0.39)]),
    (
        Level::Node,
        "progap",
        Some(8.0),
        [(69.3, 0.33), (94.0, 0.04), (79.1, 0.10), (48.5, 0.36), (61.0, 0.34)],
    ),
];

/// The one figure of LPGNet on these data sets, as the paper's authors ran it; Table 2 does not have it.
const LPGNET: ((&str, Level, &str, Option<f64>), f64) =
    (("facebook", Level::Edge, "lpgnet", Some(1.0)), 72.9);

/// The published figure of a data set, by the name it has here.
pub fn published(data: &str, method: &str, level: Level, epsilon: Option<f64>) -> Option<Published> {
    if (data, level, method, epsilon) == LPGNET.0 {
        return Some(Published { mean: LPGNET.1, half: None });
    }
    let column = DATA.iter().position(|name| *name == data)?;
    let row = TABLE_2.iter().find(|row| (row.0, row.1, row.2) == (level, method, epsilon))?;
    let (mean, half) = row.3[column];
    Some(Published { mean, half: Some(half) })
}

/// A figure that the authors' code gave on Berkeley13.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Test accuracy in percent.
    pub mean: f64,
    /// The depth that was used; the better one of 2 and 5 where both were.
    pub depth: u64,
    /// The number of seeds.
    pub seeds: u64,
}

const BERKELEY: [(&str, Level, Option<f64>, Measured); 11] = [
    ("progap", Level::None, None, Measured { mean: 81.40, depth: 5, seeds: 3 }),
    ("progap", Level::Edge, Some(1.0), Measured { mean: 72.28, depth: 5, seeds: 3 }),
    ("progap", Level::Node, Some(8.0), Measured { mean: 63.71, depth: 5, seeds: 3 }),
    ("gap", Level::None, None, Measured { mean: 77.67, depth: 2, seeds: 2 }),
    ("gap", Level::Edge, Some(1.0), Measured { mean: 64.16, depth: 2, seeds: 3 }),
    ("gap", Level::Node, Some(8.0), Measured { mean: 58.95, depth: 2, seeds: 3 }),
    ("mlp", Level::Edge, Some(0.0), Measured { mean: 50.17, depth: 0, seeds: 3 }),
    ("mlp", Level::Node, Some(8.0), Measured { mean: 49.34, depth: 0, seeds: 3 }),
    ("sage", Level::None, None, Measured { mean: 78.81, depth: 2, seeds: 3 }),
    ("edge-rand", Level::Edge, Some(1.0), Measured { mean: 48.33, depth: 2, seeds: 1 }),
    ("dp-gnn", Level::Node, Some(8.0), Measured { mean: 52.89, depth: 1, seeds: 1 }),
];

/// The figure of the authors' code on a data set: one split, layers 1, learning rate 0.01.
pub fn measured(data: &str, method: &str, level: Level, epsilon: Option<f64>) -> Option<Measured> {
    let rows = BERKELEY.iter().filter(|_| data.eq_ignore_ascii_case("fb:Berkeley13"));
    rows.into_iter().find(|row| (row.0, row.1, row.2) == (method, level, epsilon)).map(|row| row.3)
}

/// The bounds on degrees and the batch sizes of the paper at node level, for its data sets.
pub(super) fn with_published_sizes(mut settings: Draft, data: &str) -> Draft {
    let (max_degree, batch_size) = match data {
        "facebook" => (100, 256),
        "reddit" => (400, 2048),
        "amazon" => (50, 4096),
        "fb-100" | "fb-100-clean" => (100, 4096),
        "wenet" => (400, 1024),
        _ => return settings,
    };
    (settings.batch_size, settings.max_degree) = (batch_size, max_degree);
    settings.close("batch_size");
    settings
}

/// Table 1 of the paper: nodes, edges, features, classes, median degree of a data set, by the name it has here.
pub fn sizes(data: &str) -> Option<[usize; 5]> {
    match data {
        "facebook" => Some([26_406, 2_117_924, 501, 6, 62]),
        "reddit" => Some([116_713, 46_233_380, 602, 8, 209]),
        "amazon" => Some([1_790_731, 80_966_832, 100, 10, 22]),
        "fb-100" => Some([1_120_280, 86_304_478, 537, 6, 57]),
        "wenet" => Some([37_576, 22_684_206, 44, 4, 286]),
        _ => None,
    }
}
