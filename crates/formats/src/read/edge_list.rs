//! Edge lists: a line for each edge with two ids, as SNAP and many others publish graphs, beside a list of labels.
//!
//! Lines that begin with `#`, `%` or `//` are comments, and a first line of names is a header; ids are separated by
//! blanks, tabs, commas or semicolons. What follows the second one is the weight of the edge where weights are asked
//! for, and else not read. The list of labels has an id and a label in each line. Nodes are those of either list: one
//! without a label is [`UNLABELLED`](crate::UNLABELLED). Those of the list of labels come first, as it has them, then
//! the others in the order of their ids. There are no features.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::encoding::{Encoding, decoded};
use super::{Described, LoadOptions, has_ending, table};
use crate::file::{self, Unpacked};
use crate::{InFile, Place, Problem, Result, room};

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
    let list =
        |path: &Path, what: What| open(path).and_then(|bytes| List::read(bytes, what, options)).in_file(path);
    let (mut listed, mut pairs) = (list(labels, What::Labels)?, list(edges, What::Edges)?);
    let headers = (listed.has_header(&pairs).in_file(labels)?, pairs.has_header(&listed).in_file(edges)?);
    listed.settle(headers.0);
    pairs.settle(headers.1);
    let by_id = by_id(&listed.pairs).in_file(labels)?;
    assemble(&listed.pairs, &by_id, &pairs.pairs, options).map_err(|e| match e.place() {
        Some(Place::Column(_) | Place::Value { .. }) => e.in_file(labels),
        _ => e.in_file(edges),
    })
}

/// Reads lists that lie in memory, for tests and fuzzing.
pub fn read_bytes(edges: &[u8], labels: &[u8], options: &LoadOptions) -> Result<Described> {
    let mut listed = List::read(Box::new(labels), What::Labels, options)?;
    let mut pairs = List::read(Box::new(edges), What::Edges, options)?;
    let headers = (listed.has_header(&pairs)?, pairs.has_header(&listed)?);
    listed.settle(headers.0);
    pairs.settle(headers.1);
    assemble(&listed.pairs, &by_id(&listed.pairs)?, &pairs.pairs, options)
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

/// The content of a list: pairs of ids, or ids with their labels.
#[derive(Debug, Clone, Copy, PartialEq)]
enum What {
    Edges,
    Labels,
}

impl What {
    /// The columns that names in a header give to both fields, where they are known names.
    fn places(self, names: &[&str]) -> Option<(usize, usize)> {
        let find = |wanted: &&str| names.iter().position(|name| name.eq_ignore_ascii_case(wanted));
        match self {
            What::Edges => table::ENDS.iter().find_map(|(from, to)| Some((find(from)?, find(to)?))),
            What::Labels => {
                let id = table::ID_NAMES.iter().find_map(find)?;
                Some((id, table::LABEL_NAMES.iter().find_map(find)?))
            }
        }
    }

    /// The ids among the two fields of a line.
    fn ids(self, pair: &Pair) -> impl Iterator<Item = &str> {
        [pair.first.as_str()].into_iter().chain((self == What::Edges).then_some(pair.second.as_str()))
    }
}

/// A list that is read; its first line may be a header.
struct List {
    what: What,
    /// The first line, as the pairs have it, and whether its names are those that headers have.
    first: Option<(Pair, bool)>,
    pairs: Vec<Pair>,
    said: Option<bool>,
}

impl List {
    /// Reads every line that is no comment.
    fn read(bytes: Box<dyn Read + '_>, what: What, options: &LoadOptions) -> Result<List> {
        let bytes = decoded(bytes, options.encoding)?;
        let mut reader = BufReader::with_capacity(1 << 16, bytes);
        let mut list = List { what, first: None, pairs: Vec::new(), said: options.header };
        let (mut places, mut weight, mut line, mut row) = ((0, 1), 2, Vec::new(), 0u64);
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
            let text = std::str::from_utf8(&line).map_err(|_| Encoding::not_utf8().at(Place::Row(row)))?;
            let text = text.trim();
            if text.is_empty() || ["#", "%", "//"].iter().any(|mark| text.starts_with(mark)) {
                continue;
            }
            let fields = fields(text);
            let known = match list.first {
                None if options.header != Some(false) => what.places(&fields),
                _ => None,
            };
            if let Some(known) = known {
                let is_weight =
                    |name: &&str| table::WEIGHTS.iter().any(|known| name.eq_ignore_ascii_case(known));
                (places, weight) = (known, fields.iter().position(is_weight).unwrap_or(fields.len()));
            } else if list.first.is_none() && what == What::Labels && fields.len() > 2 {
                // Which of several columns is the label is nothing to guess.
                let message = format!(
                    "a line of the list of labels has {} values, and two are expected: an id and a label",
                    fields.len()
                );
                return Err(Problem::Invalid(message).at(Place::Row(row)));
            }
            let field = |at: usize| fields.get(at).filter(|field| !field.is_empty());
            let (Some(first), Some(second)) = (field(places.0), field(places.1)) else {
                let values =
                    if fields.len() == 1 { "one value".into() } else { format!("{} values", fields.len()) };
                let problem = Problem::Invalid(match places {
                    (0, 1) => {
                        format!("{text:?} is {values}, and two are expected: two ids, or an id and a label")
                    }
                    (a, b) => {
                        format!("{text:?} is {values}, and {} are expected, as in the header", a.max(b) + 1)
                    }
                });
                return Err(problem.at(Place::Row(row)));
            };
            let [first, second] = [first, second].map(ToString::to_string);
            let pair = Pair { first, second, third: field(weight).map(ToString::to_string), row };
            match list.first {
                None => list.first = Some((pair, known.is_some())),
                Some(_) => room::push(&mut list.pairs, pair)?,
            }
        }
        Ok(list)
    }

    /// Whether the first line is a header: one of names where all ids are numbers, or of names that headers have.
    ///
    /// # Errors
    /// A line of which nothing tells, such as one with ids that no other line of either list has.
    fn has_header(&self, other: &List) -> Result<bool> {
        let Some((first, known)) = &self.first else { return Ok(false) };
        let ids = || self.pairs.iter().flat_map(|pair| self.what.ids(pair));
        let own = || self.what.ids(first);
        match self.said {
            Some(said) => return Ok(said),
            None if own().any(is_number) => return Ok(false),
            None if !self.pairs.is_empty() && ids().all(is_number) => return Ok(true),
            None => {}
        }
        let unclear =
            || Err(Problem::Header(format!("{} {}", first.first, first.second)).at(Place::Row(first.row)));
        let seen: HashSet<&str> = ids().collect();
        if *known {
            return if own().any(|id| seen.contains(id)) { unclear() } else { Ok(true) };
        }
        let others: HashSet<&str> = other
            .first
            .iter()
            .map(|(pair, _)| pair)
            .chain(&other.pairs)
            .flat_map(|pair| other.what.ids(pair))
            .collect();
        let is_new = match self.what {
            What::Edges => !own().any(|id| seen.contains(id) || others.contains(id)),
            What::Labels => {
                let label_again = self.pairs.iter().any(|pair| pair.second == first.second);
                let rest_known = !seen.is_empty() && seen.iter().all(|id| others.contains(id));
                rest_known && !label_again && !others.contains(first.first.as_str())
            }
        };
        if is_new { unclear() } else { Ok(false) }
    }

    /// Takes the first line for what it is.
    fn settle(&mut self, header: bool) {
        self.pairs.splice(0..0, self.first.take().map(|(pair, _)| pair).filter(|_| !header));
    }
}

/// The values of a line, by the sign that separates them in it.
fn fields(text: &str) -> Vec<&str> {
    fn plain(field: &str) -> &str {
        field.trim().trim_matches('"')
    }
    match ['\t', ',', ';'].into_iter().find(|sign| text.contains(*sign)) {
        Some('\t') => text.split('\t').map(plain).filter(|field| !field.is_empty()).collect(),
        Some(sign) => text.trim_end_matches(sign).split(sign).map(plain).collect(),
        None => text.split_whitespace().map(plain).collect(),
    }
}

fn is_number(text: &str) -> bool {
    text.starts_with(|sign: char| sign.is_ascii_digit() || sign == '-') && text.parse::<f64>().is_ok()
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
    let mut seen: HashSet<&str> = order.iter().copied().collect();
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
