//! The table of edges: which of its columns are read, and what comes of them.

use super::cell::{Cell, Checked, canonical_integer};
use super::nodes::{check_names, find, find_as, find_required, missing, no_column, no_columns};
use crate::read::LoadOptions;
use crate::read::columns::ColumnReport;
use crate::{EdgeWeights, Graph, Place, Problem, Remedy, Result, room};

/// Names under which the ends of edges are known, sender first.
pub(in crate::read) const ENDS: [(&str, &str); 13] = [
    ("source", "target"),
    ("src", "dst"),
    ("from", "to"),
    ("fromnodeid", "tonodeid"),
    ("from_id", "to_id"),
    ("sender", "receiver"),
    ("node_1", "node_2"),
    ("node1", "node2"),
    ("id_1", "id_2"),
    ("id1", "id2"),
    ("txid1", "txid2"),
    ("u", "v"),
    ("source_id", "target_id"),
];
/// Names under which weights of edges are known.
pub(in crate::read) const WEIGHTS: [&str; 4] = ["weight", "weights", "edge_weight", "w"];

/// The columns that are read.
pub(super) struct EdgeColumns {
    pub source: usize,
    pub target: usize,
    /// The weights, where they are asked for.
    pub weight: Option<(usize, EdgeWeights)>,
    /// The name of a column that looks like weights and is not asked for.
    unread: Option<String>,
}

impl EdgeColumns {
    pub fn of(names: &[String], options: &LoadOptions) -> Result<EdgeColumns> {
        let (source, target) = ends(names, options)?;
        let known = WEIGHTS.iter().find_map(|name| find(names, name));
        let weight =
            match options.weights.as_ref().map(EdgeWeights::name) {
                None => None,
                // The usual name stands for any name that weights are known under.
                Some(name) if name == WEIGHTS[0] => Some(known.ok_or_else(|| {
                    missing("weights column", name, names).remedy(Remedy::Column("weights"))
                })?),
                Some(name) => Some(find_required(names, "weights", Some(name), name)?),
            };
        if let Some(weight) = weight.filter(|weight: &usize| [source, target].contains(weight)) {
            let message = "weights must stand in a column of their own".to_string();
            return Err(Problem::Invalid(message).at(Place::Column(names[weight].clone())));
        }
        let unread = known.filter(|_| weight.is_none()).map(|column| names[column].clone());
        Ok(EdgeColumns { source, target, weight: weight.zip(options.weights.clone()), unread })
    }
}

/// Which columns of an edge table name the sender and the receiver: those of known names; the only two.
pub(super) fn ends(names: &[String], options: &LoadOptions) -> Result<(usize, usize)> {
    // The other columns may be called as they like, or not at all.
    check_names(&names.iter().filter(|name| !name.is_empty()).cloned().collect::<Vec<_>>())?;
    let given = [("source", &options.source_column), ("target", &options.target_column)];
    let found = match given {
        [(_, None), (_, None)] => {
            let known = ENDS.iter().find_map(|(s, t)| Some((find(names, s)?, find(names, t)?)));
            let only = (names.len() == 2).then_some((0, 1));
            if let Some(columns) = known.or(only) {
                return Ok(columns);
            }
            given.map(|(usual, _)| find(names, usual))
        }
        _ => given.map(|(usual, given)| find_as(names, given.as_deref(), &[usual])),
    };
    match found {
        [Some(source), Some(target)] if source == target => {
            let message = "source and target must be two different columns".to_string();
            Err(Problem::Invalid(message).at(Place::Column(names[source].clone())))
        }
        [Some(source), Some(target)] => Ok((source, target)),
        _ => {
            let wanted = given.iter().zip(found).filter(|(_, found)| found.is_none());
            let missing = wanted.map(|((role, given), _)| no_column(role, given.as_deref(), role)).collect();
            Err(no_columns(names, missing))
        }
    }
}

/// Whether a first row is an edge and not a header: its cells are whole numbers, as ids are and names of columns are
/// not.
pub(super) fn is_edge(first: &[String], options: &LoadOptions) -> bool {
    let named = options.source_column.is_some() || options.target_column.is_some();
    let whole = |name: &String| canonical_integer(name.as_bytes()).is_some();
    match options.header {
        Some(header) => !header,
        None => !named && first.len() > 1 && first[..2].iter().all(whole),
    }
}

/// The names of the columns of an edge table that has no header.
pub(super) fn usual_names(columns: usize) -> Vec<String> {
    let usual = ["source", "target", "weight"].into_iter().chain(std::iter::repeat(""));
    usual.take(columns).map(String::from).collect()
}

/// The columns that were read, edge by edge.
#[derive(Default)]
pub(super) struct EdgeLists {
    pub sources: Vec<u32>,
    pub targets: Vec<u32>,
    pub weights: Vec<f32>,
}

impl EdgeLists {
    pub fn push_weight(&mut self, cell: Cell<'_>, decimal_comma: bool, weights: &EdgeWeights) -> Checked<()> {
        room::push(&mut self.weights, weights.of(number(cell, decimal_comma)?))
    }

    /// The graph, and what is to be said of a column of weights.
    pub fn graph(
        self,
        nodes: usize,
        columns: &EdgeColumns,
        names: &[String],
    ) -> Result<(Graph, Option<ColumnReport>)> {
        let Some((weight, asked)) = &columns.weight else {
            let report = columns.unread.as_ref().map(|name| ColumnReport {
                note: Some("of the edge table; weights are not read unless they are asked for".into()),
                ..ColumnReport::new(name, "not used")
            });
            return Ok((Graph::from_edges(nodes, &self.sources, &self.targets)?, report));
        };
        let least = self.weights.iter().copied().fold(1f32, f32::min);
        let largest = self.weights.iter().copied().fold(0f32, f32::max);
        let report = ColumnReport {
            range: (!self.weights.is_empty()).then_some([least.into(), largest.into()]),
            note: Some(
                "of the edge table, divided by its public maximum: messages are multiplied with it".into(),
            ),
            ..ColumnReport::new(&names[*weight], "weight")
        };
        Ok((asked.graph(nodes, &self.sources, &self.targets, &self.weights)?, Some(report)))
    }
}

/// The number that a cell holds.
fn number(cell: Cell<'_>, decimal_comma: bool) -> Checked<f64> {
    Ok(match cell {
        Cell::Empty => return Err(Problem::EmptyCell),
        Cell::Untyped(text) | Cell::Text(text) => {
            let text = text.trim();
            let number = if decimal_comma { text.replace(',', ".") } else { text.to_string() };
            number.parse().map_err(|_| Problem::TextAsWeight(text.into()))?
        }
        Cell::Integer(value) => value as f64,
        Cell::Unsigned(value) => value as f64,
        Cell::Number(value) => value,
        Cell::Bool(value) => f64::from(u8::from(value)),
    })
}
