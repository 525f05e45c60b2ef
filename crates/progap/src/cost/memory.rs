//! How much memory there is, so that what cannot fit is refused in words instead of being killed.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use progap_graph::{Dataset, Features, Part, store};
use progap_privacy::noise::{MessageType, choose_scale};

use crate::method::{self, Training};
use crate::model::Shape;
use crate::plan::Plan;
use crate::settings::{Bounding, Direction, Level, Settings};
use crate::{Error, Remedy, Result};

/// Bytes that this process may hold; 0 for all there is.
static BOUND: AtomicU64 = AtomicU64::new(0);
/// Of a bound, the part that is left to pages of mapped files until it is known what a run holds besides.
const PAGES: u64 = 4;

/// From now on this process keeps to about this many bytes of memory: graphs, rows and aggregates are mapped and pass
/// through it in blocks, and are never held whole. Results have the same bits. A run that cannot do with so little says
/// how much it needs.
///
/// It is a property of the process, as its pool of threads is, and set at its start.
pub fn set_memory_limit(bytes: u64) {
    BOUND.store(bytes, Relaxed);
    store::keep_mapped_below(bytes / PAGES);
    progap_nn::set_read_listener(store::note_read);
}

/// Bytes that a run holds at once whatever the data: blocks of rows and sums, tables of noise, the program itself.
const ALWAYS: f64 = 96e6;
/// The least that is left to pages of mapped files.
const MIN_PAGES: f64 = 64e6;

/// Entries of a sparse row where how many there are is private.
const USUAL_ENTRIES: usize = 64;

/// Bytes for each labelled node beside its row: lists of nodes, keys they are sorted by, labels and offsets of copies.
const LABELLED: f64 = 40.0;
/// Bytes for each node: the split, marks, a list of all.
const NODE: f64 = 8.0;

/// Refuses a run that cannot keep to the memory that this process may hold, or needs more of it, and leaves the rest to
/// pages of mapped files.
///
/// In memory are what every node sends (a byte or two for each value), some bytes a node for the split, and the rows of
/// labelled nodes where epochs read all of them again and again. Edges, features, sums and what stages make for each
/// other pass through.
///
/// Whether there is a release is public, so that only settings and public sizes refuse a run: at private levels neither
/// the edges of a graph that is held in memory nor, at node level, the entries of sparse rows.
pub(crate) fn check_run(dataset: &Dataset, settings: &Settings, plan: &Plan) -> Result<()> {
    let Some(bound) = bound() else { return Ok(()) };
    check_settings(settings)?;
    let (exact, public) = (Held::exact(dataset), Held::public(dataset, settings.level));
    let (messages, needed) = needed(dataset, settings, plan, public);
    if needed > bound as f64 {
        let error = Error::unsuitable(format!(
            "this run needs about {} of memory, {} of it for what {} nodes send, and may hold {}",
            size(needed),
            size(messages),
            dataset.nodes(),
            size(bound as f64),
        ))
        .remedy(Remedy::Raise("memory", size(needed)));
        return Err(match public.features + public.graph > 1e6 {
            true => {
                error.remedy(Remedy::words("convert the data to a .progap file, which is not held in memory"))
            }
            false => error,
        });
    }
    let pages = (bound as f64 - self::needed(dataset, settings, plan, exact).1).max(0.0) + MIN_PAGES;
    store::keep_mapped_below(pages as u64);
    Ok(())
}

/// Refuses what holds edges in memory, however many there are: how many is private, so that no number could be checked.
fn check_settings(settings: &Settings) -> Result<()> {
    if settings.method.can().mixes_rows {
        return Err(Error::unsuitable(format!(
            "the method {} holds the graph and a row for each node and layer in memory, and cannot keep a memory limit",
            settings.method
        ))
        .remedy(Remedy::Drop("memory"))
        .remedy(Remedy::set("method", "progap-labels")));
    }
    if !settings.touches_edges() {
        return Ok(());
    }
    if settings.direction != Direction::In {
        return Err(Error::contradiction(
            "another direction than in reverses all edges in memory, and cannot keep a memory limit",
        )
        .remedy(Remedy::words("turn them round in the file (sources become targets)"))
        .remedy(Remedy::Drop("memory")));
    }
    if settings.level == Level::Node && settings.bounding == Bounding::Sample {
        return Err(Error::contradiction(
            "bounding by a sample chooses among all edges in memory, and cannot keep a memory limit",
        )
        .remedy(Remedy::set("bounding", "weight"))
        .remedy(Remedy::Drop("memory")));
    }
    Ok(())
}

/// Bytes for what nodes send, and all bytes that a run needs.
fn needed(dataset: &Dataset, settings: &Settings, plan: &Plan, held: Held) -> (f64, f64) {
    let (nodes, sizes) = (dataset.nodes() as f64, (dataset.features().columns(), dataset.classes()));
    let program = method::program(settings, sizes, None);
    let widths = program.aggregate_widths();
    let widest = widths.iter().copied().max().unwrap_or(0) as f64;
    let value = match (settings.level, choose_scale(plan.aggregate_multiplier * plan.sensitivity, 1.0)) {
        (Level::None, _) => 4.0,
        // What a node says to receivers of either weight.
        _ if settings.weighs_pairs() => 4.0,
        (Level::Edge, Ok((MessageType::I8, _))) => 1.0,
        _ => 2.0,
    };
    let messages = nodes * widest * value;
    let count = |part: Part| dataset.split().map_or(0, |split| split.count(part)) as f64;
    let [train, val] = [Part::Train, Part::Val].map(count);
    let classes = 4.0 * dataset.classes() as f64;
    let sums = 4.0 * widths.iter().sum::<usize>() as f64;
    let at_once = program.stages.iter().find_map(|stage| match stage.training {
        Training::AtOnce { max_rows, reads_all_rows } => Some((max_rows as f64, reads_all_rows)),
        Training::Epochs(_) => None,
    });
    let rows = match (settings.level, at_once) {
        // Batches are read where they lie.
        (Level::Node, _) => 2.0 * (held.row + sums) * (settings.batch_size as f64).min(nodes),
        // Every epoch reads all labelled rows; validation nodes calibrate.
        (_, None) => {
            let shapes = program.stages.iter().map(|stage| &stage.model);
            let row = shapes.map(|shape| held.of_shape(shape, sizes.0)).fold(0.0, f64::max);
            (row + LABELLED) * (train + val) + 3.0 * classes * val
        }
        // Models are fitted to some rows of each role, and evaluated on all.
        (_, Some((most, reads_all_rows))) => {
            let read = if reads_all_rows(dataset) { nodes } else { (train + val).min(2.0 * most) };
            let fitted = nodes.min(most) * (2.0 * sums + 6.0 * classes);
            2.0 * (held.row + sums) * read + fitted + (2.0 * classes + LABELLED) * (train + val)
        }
    };
    (messages, ALWAYS + MIN_PAGES + messages + NODE * nodes + rows + held.features + held.graph)
}

/// Bytes of a data set in memory.
#[derive(Clone, Copy)]
struct Held {
    /// Of a row that training reads.
    row: f64,
    features: f64,
    graph: f64,
}

impl Held {
    fn exact(dataset: &Dataset) -> Held {
        let features = dataset.features();
        let row = match features {
            Features::Sparse { indices, .. } => {
                8.0 * indices.len() as f64 / (dataset.nodes() as f64).max(1.0)
            }
            _ => 4.0 * features.columns() as f64,
        };
        Held { row, features: features.held_bytes() as f64, graph: dataset.graph().held_bytes() as f64 }
    }

    /// Of a row of all inputs of a model, the first of which may be the features.
    fn of_shape(self, shape: &Shape, columns: usize) -> f64 {
        let Shape::Network(architecture) = shape else { return self.row };
        let bytes = |(at, &width): (usize, &usize)| match at == 0 && width == columns {
            true => self.row,
            false => 4.0 * width as f64,
        };
        architecture.inputs.iter().enumerate().map(bytes).sum()
    }

    /// As far as that is no secret at a level.
    fn public(dataset: &Dataset, level: Level) -> Held {
        let exact = Held::exact(dataset);
        match (level, dataset.features()) {
            (Level::None, _) => exact,
            (Level::Node, Features::Sparse { columns, .. }) => {
                Held { row: 8.0 * (*columns).min(USUAL_ENTRIES) as f64, features: 0.0, graph: 0.0 }
            }
            (Level::Edge | Level::Node, _) => Held { graph: 0.0, ..exact },
        }
    }
}

/// Bytes that this process may hold, where that was said.
pub(crate) fn bound() -> Option<u64> {
    Some(BOUND.load(Relaxed)).filter(|&bytes| bytes > 0)
}

/// About the bytes of a graph in training: each edge is held twice, there and back.
pub(crate) fn graph(edges: f64) -> f64 {
    8.0 * edges
}

/// Refuses what needs more memory than there is, with its size.
pub(crate) fn check(what: &str, bytes: f64, available: Option<u64>) -> Result<()> {
    match available {
        Some(available) if bytes > available as f64 => Err(Error::unsuitable(format!(
            "{what} would take about {}, and {} of memory are free: use a machine with more, or a smaller graph",
            size(bytes),
            size(available as f64)
        ))),
        _ => Ok(()),
    }
}

fn size(bytes: f64) -> String {
    let gigabytes = bytes / 1e9;
    if gigabytes >= 1.0 { format!("{gigabytes:.1} GB") } else { format!("{:.1} MB", bytes / 1e6) }
}

#[cfg(test)]
mod tests {
    use progap_graph::{DatasetParts, Graph};

    use super::*;

    /// A data set of 40 nodes with this many edges, and rows of this many entries.
    fn dataset(edges: usize, entries: usize) -> Dataset {
        let nodes = 40;
        let pairs = (0..nodes as u32).flat_map(|a| (0..nodes as u32).map(move |b| (a, b)));
        let (sources, targets): (Vec<u32>, Vec<u32>) = pairs.filter(|(a, b)| a != b).take(edges).unzip();
        let offsets: Vec<u64> = (0..=nodes).map(|row| (row * entries) as u64).collect();
        let indices: Vec<u32> = (0..nodes).flat_map(|_| 0..entries as u32).collect();
        let labels = vec![0; nodes];
        let bare = Dataset::builder().labels(&labels).class_names(["a", "b"]).build().expect("labels");
        Dataset::new(DatasetParts {
            graph: Graph::from_edges(nodes, &sources, &targets).expect("edges"),
            features: Features::sparse(nodes, 90, offsets, indices, None).expect("rows"),
            ..bare.into_parts()
        })
        .expect("a data set")
    }

    #[test]
    fn what_is_private_refuses_no_run() {
        let (few, many) = (dataset(3, 2), dataset(1000, 70));
        let public = |data: &Dataset, level| {
            let Held { row, features, graph } = Held::public(data, level);
            [row, features, graph]
        };
        assert_ne!(public(&few, Level::None), public(&many, Level::None));
        assert_eq!(public(&dataset(3, 70), Level::Edge), public(&many, Level::Edge), "the number of edges");
        assert_ne!(public(&few, Level::Edge), public(&many, Level::Edge), "rows are public");
        assert_eq!(public(&few, Level::Node), public(&many, Level::Node), "neither edges nor rows");
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_size() {
        assert!(check("the graph", 1e9, Some(2_000_000_000)).is_ok());
        assert!(check("the graph", 1e30, None).is_ok(), "nothing is known");
        let message = check("the graph", 64e9, Some(500_000_000)).unwrap_err().to_string();
        assert!(message.contains("64.0 GB") && message.contains("500.0 MB"), "{message}");
    }
}
