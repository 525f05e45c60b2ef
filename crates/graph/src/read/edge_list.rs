//! Edge lists: a line for each edge with two ids, as SNAP and many others publish graphs, beside a list of labels.
//!
//! Lines that begin with `#`, `%` or `//` are comments; ids are separated by blanks, tabs, commas or semicolons. What
//! follows the second one is the weight of the edge where weights are asked for, and else not read. The list of labels has an id and a label in each line. Nodes are those of either
//! list: one without a label is [`UNLABELLED`](crate::UNLABELLED). Those of the list of labels come first, as it has them, then the others in the order
//! of their ids. There are no features.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::{Described, LoadOptions, has_ending, table};
use crate::error::InFile;
use crate::file::{self, Unpacked};
use crate::{Place, Problem, Result, room};

/// No line is longer.
const MAX_LINE: u64 = 1 << 20;

/// Whether a file is called as an edge list is.
pub(super) fn is_edge_list(path: &Path) -> bool {
    ["txt", "edges", "edgelist", "el"].iter().any(|ending| has_ending(&unpacked_name(path), ending))
}

/// The name without the ending of a packed file.
fn unpacked_name(path: &Path) -> PathBuf {
    if has_ending(path, "gz") { path.with_extension("") } else { path.to_path_buf() }
}

/// The edge list and the list of labels of a folder: of its lists one whose name says `label`, and one other.
pub(super) fn find(folder: &Path) -> Result<Option<(PathBuf, PathBuf)>> {
    let (mut edges, mut labels) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder).in_file(folder)? {
        let path = entry.in_file(folder)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        if name.contains("readme") || name.contains("license") {
            continue;
        }
        if name.contains("label") && (is_edge_list(&path) || has_ending(&path, "labels")) {
            labels.push(path);
        } else if is_edge_list(&path) {
            edges.push(path);
        }
    }
    Ok(match (edges.pop(), labels.pop()) {
        (Some(one), Some(other)) if edges.is_empty() && labels.is_empty() => {
            Some((file::within(folder, one)?, file::within(folder, other)?))
        }
        _ => None,
    })
}

/// Reads an edge list with its list of labels.
pub fn read(edges: &Path, labels: &Path, options: &LoadOptions) -> Result<Described> {
    options.expect_no_columns(false).in_file(edges)?;
    let pairs = |path: &Path| open(path).and_then(read_pairs).in_file(path);
    let (listed, pairs) = (pairs(labels)?, pairs(edges)?);
    let by_id = by_id(&listed).in_file(labels)?;
    assemble(&listed, &by_id, &pairs, options).map_err(|e| match e.place() {
        Some(Place::Column(_) | Place::Value { .. }) => e.in_file(labels),
        _ => e.in_file(edges),
    })
}

/// Reads lists that lie in memory, for tests and fuzzing.
pub fn read_bytes(edges: &[u8], labels: &[u8], options: &LoadOptions) -> Result<Described> {
    let listed = read_pairs(labels)?;
    assemble(&listed, &by_id(&listed)?, &read_pairs(edges)?, options)
}

fn open(path: &Path) -> Result<Box<dyn Read>> {
    let file = file::open(path)?;
    Ok(match has_ending(path, "gz") {
        true => Box::new(Unpacked::by(file, |packed| Ok(flate2::bufread::MultiGzDecoder::new(packed)))?),
        false => Box::new(file),
    })
}

/// Two fields of a line, what follows them, and the number of the line.
struct Pair {
    first: String,
    second: String,
    third: Option<String>,
    row: u64,
}

/// The first fields of every line that is no comment.
fn read_pairs(reader: impl Read) -> Result<Vec<Pair>> {
    let mut reader = BufReader::with_capacity(1 << 16, reader);
    let (mut pairs, mut line, mut row) = (Vec::new(), Vec::new(), 0u64);
    loop {
        line.clear();
        row += 1;
        if reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.len() as u64 == MAX_LINE {
            let message = format!("the line has {MAX_LINE} bytes or more: this is no list");
            return Err(Problem::Corrupt(message).at(Place::Row(row)));
        }
        let text = std::str::from_utf8(&line)
            .map_err(|_| Problem::Invalid("the text is not UTF-8".into()).at(Place::Row(row)))?;
        let text = text.trim();
        if text.is_empty() || ["#", "%", "//"].iter().any(|mark| text.starts_with(mark)) {
            continue;
        }
        let mut fields = text
            .split(|sign: char| sign.is_whitespace() || sign == ',' || sign == ';')
            .filter(|f| !f.is_empty());
        let (Some(first), Some(second)) = (fields.next(), fields.next()) else {
            let problem = Problem::Invalid(format!(
                "{text:?} is one value, and two are expected: two ids, or an id and a label"
            ));
            return Err(problem.at(Place::Row(row)));
        };
        // A first line of names is no pair.
        if pairs.is_empty() && is_header(first, second) {
            continue;
        }
        let [first, second] = [first, second].map(String::from);
        room::push(&mut pairs, Pair { first, second, third: fields.next().map(String::from), row })?;
    }
    Ok(pairs)
}

fn is_header(first: &str, second: &str) -> bool {
    let names = [
        ("source", "target"),
        ("src", "dst"),
        ("from", "to"),
        ("id", "label"),
        ("node", "label"),
        ("id", "class"),
    ];
    names.iter().any(|(a, b)| first.eq_ignore_ascii_case(a) && second.eq_ignore_ascii_case(b))
}

/// The label of each id, with its row.
fn by_id(labels: &[Pair]) -> Result<HashMap<&str, (&str, u64)>> {
    let mut label_of = HashMap::with_capacity(labels.len());
    for Pair { first: id, second: label, row, .. } in labels {
        if let Some((_, first_row)) = label_of.insert(id.as_str(), (label.as_str(), *row)) {
            return Err(Problem::DuplicateNode { id: id.clone(), first_row }.at(Place::Row(*row)));
        }
    }
    Ok(label_of)
}

fn assemble(
    labels: &[Pair],
    label_of: &HashMap<&str, (&str, u64)>,
    edges: &[Pair],
    options: &LoadOptions,
) -> Result<Described> {
    let mut order: Vec<&str> = labels.iter().map(|pair| pair.first.as_str()).collect();
    let mut seen: std::collections::HashSet<&str> = order.iter().copied().collect();
    for id in edges.iter().flat_map(|pair| [pair.first.as_str(), pair.second.as_str()]) {
        if seen.insert(id) {
            order.push(id);
        }
    }
    let rows = order.into_iter().map(|id| vec![id, label_of.get(id).map_or("", |(label, _)| label)]);
    let nodes = table::text(&["id", "label"], rows)?;
    if options.weights.is_some() {
        edges.iter().try_for_each(check_weight)?;
    }
    // Weights that not every line has are no weights.
    let weighted = edges.iter().all(|pair| pair.third.is_some());
    let names = ["source", "target", "weight"];
    let pairs = edges.iter().map(|pair| {
        let ends = [pair.first.as_str(), pair.second.as_str()].into_iter();
        ends.chain(pair.third.as_deref().filter(|_| weighted)).collect()
    });
    let edges = table::text(&names[..if weighted { 3 } else { 2 }], pairs)?;
    table::describe_text(&nodes, &edges, options)
}

/// Whether the third field is a weight; the table that is made of the list knows no lines.
fn check_weight(pair: &Pair) -> Result<()> {
    let problem = match pair.third.as_deref().map(|text| (text, text.parse::<f64>())) {
        None => Problem::EmptyCell,
        Some((text, Err(_))) => Problem::TextAsWeight(text.into()),
        Some((_, Ok(_))) => return Ok(()),
    };
    Err(problem.at(Place::Cell { row: pair.row, column: "weight".into() }))
}
