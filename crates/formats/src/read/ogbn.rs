//! The CSV layout of the OGB benchmark: tables without headers, `.csv.gz` or `.csv`. `amazon` is ogbn-products in it.
//!
//! | file | content |
//! |---|---|
//! | `num-node-list` | the number of nodes |
//! | `num-edge-list` | the number of lines in `edge` |
//! | `edge` | source and target of each edge |
//! | `node-label` | the label of each node |
//! | `node-feat` | the features of each node |
//!
//! The edges stand in one direction; as in the benchmark's own loader, each gets its edge back (a self-loop stands
//! twice, too).

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use super::labels::{self, Classes, classes_that_occur};
use super::npy::whole;
use crate::GraphBuilder;
use crate::file::{self, Unpacked};
use crate::{Dataset, DatasetParts, Features, Graph, InFile, Place, Problem, Result, Split, room, single};

/// The published experiments keep the classes with at least this many nodes.
pub const MIN_CLASS_COUNT: usize = 100_000;

/// Compressed numbers rarely take less than an eighth of their text; lists grow by themselves where they do.
const USUAL_RATIO: u64 = 8;
/// A line of features has a few thousand letters; one of more than this is no table.
const MAX_LINE: usize = 1 << 24;

/// The folder that holds the tables: this one, or its `raw`.
pub(super) fn find(folder: &Path) -> Option<PathBuf> {
    [folder.to_path_buf(), folder.join("raw")].into_iter().find(|folder| {
        ["node-label", "node-feat"]
            .iter()
            .any(|name| table(folder, name).is_some() && table(folder, "edge").is_some())
    })
}

/// Reads any data set in this layout: labels that may be missing, features where there are some, and the benchmark's
/// own split where it lies beside (`split/time/train.csv.gz` and so on).
///
/// As the benchmark's own loader does, each edge gets its edge back, unless the split is by `time`: the graphs split so
/// (arxiv, papers100M) are directed.
pub fn read_with_split(folder: &Path) -> Result<Dataset> {
    let raw = find(folder).unwrap_or_else(|| folder.to_path_buf());
    let split = find_split(&raw);
    let directed = split.as_ref().is_some_and(|split| split.file_name().is_some_and(|name| name == "time"));
    let dataset = read_raw(folder, !directed, false)?;
    let Some(split) = split else { return Ok(dataset) };
    let nodes = dataset.nodes();
    let mut masks = Vec::new();
    for name in ["train", "valid", "test"] {
        let missing =
            || Problem::Missing { what: format!("table {name:?}"), found: "the other parts".into() };
        let path = table(&split, name).ok_or_else(|| missing().in_file(&split))?;
        file::within(raw.parent().unwrap_or(&raw), &path)?;
        let mut mask = room::filled(false, nodes)?;
        open(&path)
            .and_then(|table| {
                each_line(table.reader, |line, row| {
                    let mut fields = Fields { rest: Some(line), row, column: 0 };
                    mask[fields.integer(nodes as u64)? as usize] = true;
                    fields.end(1)
                })
            })
            .in_file(&path)?;
        masks.push(mask);
    }
    let parts = Split::from_masks(&masks[0], &masks[1], &masks[2]).in_file(&split)?;
    Dataset::new(DatasetParts { split: Some(parts), ..dataset.into_parts() })
}

/// The folder of the only split beside the tables.
fn find_split(raw: &Path) -> Option<PathBuf> {
    let beside = [raw.join("split"), raw.parent()?.join("split")];
    let folder = beside.into_iter().find(|folder| folder.is_dir())?;
    let mut found = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let first = found.find(|path| table(path, "train").is_some())?;
    found.all(|path| table(&path, "train").is_none()).then_some(first)
}

/// Reads the raw data: all nodes, all edges in both directions, no split.
/// [`crate::prepare::prepare_as_published`] with [`MIN_CLASS_COUNT`] makes of it what the published
/// experiments used.
pub fn read(folder: &Path) -> Result<Dataset> {
    read_raw(folder, true, true)
}

fn read_raw(folder: &Path, both_directions: bool, needs_features: bool) -> Result<Dataset> {
    let raw = find(folder).unwrap_or_else(|| folder.to_path_buf());
    let path = |name: &str| -> Result<PathBuf> {
        let found = || format!("neither {name}.csv.gz nor {name}.csv");
        let missing = || Problem::Missing { what: format!("table {name:?}"), found: found() };
        file::within(folder, table(&raw, name).ok_or_else(|| missing().in_file(&raw))?)
    };
    let sizes = |name: &str| -> Result<u64> {
        let path = path(name)?;
        open(&path).and_then(|table| read_size(table.reader)).in_file(&path)
    };
    let (nodes, edges) = (sizes("num-node-list")?, sizes("num-edge-list")?);
    check_nodes(nodes).in_file(&path("num-node-list")?)?;
    // Labels come first: as many lines as nodes prove that the announced number is not forged.
    let label_path = path("node-label")?;
    let classes = open(&label_path).and_then(|table| read_labels(table, nodes)).in_file(&label_path)?;
    let edge_path = path("edge")?;
    let graph = open(&edge_path)
        .and_then(|table| read_edges(table, nodes, edges, both_directions))
        .in_file(&edge_path)?;
    let features = match table(&raw, "node-feat") {
        None if !needs_features => Features::none(),
        _ => {
            let path = path("node-feat")?;
            open(&path).and_then(|table| read_features(table, nodes)).in_file(&path)?
        }
    };
    assemble(super::name_of(folder), graph, features, classes).in_file(folder)
}

/// The tables of a folder in memory, for tests and fuzzing.
#[derive(Debug, Clone, Copy)]
pub struct Tables<'a> {
    /// The number of nodes, `num-node-list`.
    pub num_nodes: &'a [u8],
    /// The number of edges, `num-edge-list`.
    pub num_edges: &'a [u8],
    /// Source and target of each edge, `edge`.
    pub edges: &'a [u8],
    /// The label of each node, `node-label`.
    pub labels: &'a [u8],
    /// The features of each node, `node-feat`.
    pub features: &'a [u8],
}

/// Reads the raw data from plain (not compressed) tables in memory.
pub fn read_tables(tables: Tables) -> Result<Dataset> {
    let plain = |text| Table { reader: text, room: <[u8]>::len(text) as u64 };
    let (nodes, edges) = (read_size(tables.num_nodes)?, read_size(tables.num_edges)?);
    check_nodes(nodes)?;
    let classes = read_labels(plain(tables.labels), nodes)?;
    let graph = read_edges(plain(tables.edges), nodes, edges, true)?;
    let features = read_features(plain(tables.features), nodes)?;
    assemble(String::new(), graph, features, classes)
}

fn check_nodes(nodes: u64) -> Result<()> {
    match nodes {
        0 => Err(Problem::Empty("nodes").into()),
        nodes if nodes > Graph::MAX_NODES as u64 => {
            Err(Problem::TooLarge(format!("{nodes} nodes are more than a graph can have")).into())
        }
        _ => Ok(()),
    }
}

fn assemble(name: String, graph: Graph, features: Features, classes: Classes) -> Result<Dataset> {
    Dataset::new(DatasetParts::of(name, graph, features, classes.labels, classes.names))
}

fn table(folder: &Path, name: &str) -> Option<PathBuf> {
    ["csv.gz", "csv"].iter().map(|ending| folder.join(format!("{name}.{ending}"))).find(|path| path.is_file())
}

/// A table to read, and how many bytes of text it plausibly has.
struct Table<R> {
    reader: R,
    room: u64,
}

fn open(path: &Path) -> Result<Table<Box<dyn Read>>> {
    let file = file::open(path)?;
    let bytes = file.metadata()?.len();
    Ok(if path.extension().is_some_and(|ending| ending == "gz") {
        let reader = Box::new(Unpacked::by(file, |packed| Ok(MultiGzDecoder::new(packed)))?);
        Table { reader, room: bytes.saturating_mul(USUAL_RATIO) }
    } else {
        Table { reader: Box::new(file), room: bytes }
    })
}

/// One number that is all of a table.
fn read_size(reader: impl Read) -> Result<u64> {
    let mut size = None;
    each_line(reader, |line, row| {
        if size.is_some() {
            return Err(Problem::Invalid("expected one line with one number".into()).at(Place::Row(row)));
        }
        let mut fields = Fields { rest: Some(line), row, column: 0 };
        size = Some(fields.integer(u64::MAX)?);
        fields.end(1)
    })?;
    size.ok_or_else(|| Problem::Truncated("the table is empty".into()).into())
}

fn read_labels(table: Table<impl Read>, nodes: u64) -> Result<Classes> {
    let mut numbers = room::with_room(nodes.min(table.room / 2) as usize)?;
    each_line(table.reader, |line, row| {
        let mut fields = Fields { rest: Some(line), row, column: 0 };
        // A label may be written as 3.0; a missing one as nothing, nan or -1.
        if line.trim_ascii().is_empty() {
            room::push(&mut numbers, labels::MISSING)?;
            return Ok(());
        }
        let value = fields.number()?;
        let number = if value.is_nan() { Ok(labels::MISSING) } else { whole(value) };
        room::push(&mut numbers, number.map_err(|problem| fields.error(problem))?)?;
        fields.end(1)
    })?;
    check_count("list of labels", numbers.len(), nodes)?;
    classes_that_occur(&mut numbers, None, |at| Place::Row(at + 1))
}

fn read_edges(table: Table<impl Read>, nodes: u64, edges: u64, both_directions: bool) -> Result<Graph> {
    // "0,1\n" is the shortest edge. The list is given back before features are read, so that the most memory
    // ever needed is about the data set's own size.
    let mut ends: Vec<[u32; 2]> = room::with_room(edges.min(table.room / 4) as usize)?;
    each_line(table.reader, |line, row| {
        let mut fields = Fields { rest: Some(line), row, column: 0 };
        let edge = [fields.integer(nodes)? as u32, fields.integer(nodes)? as u32];
        room::push(&mut ends, edge)?;
        fields.end(2)
    })?;
    check_count("list of edges", ends.len(), edges)?;
    let mut builder = GraphBuilder::new(nodes as usize)?;
    for &[a, b] in &ends {
        builder.count(a, b)?;
        if both_directions {
            builder.count(b, a)?;
        }
    }
    let mut filler = builder.fill()?;
    for [a, b] in ends {
        filler.place(a, b);
        if both_directions {
            filler.place(b, a);
        }
    }
    filler.finish()
}

fn read_features(table: Table<impl Read>, nodes: u64) -> Result<Features> {
    let mut values: Vec<f32> = Vec::new();
    let mut columns = 0;
    let mut rows = 0u64;
    let plausible = table.room;
    each_line(table.reader, |line, row| {
        let mut fields = Fields { rest: Some(line), row, column: 0 };
        if rows == 0 {
            columns = line.iter().filter(|&&byte| byte == b',').count() + 1;
            values = room::with_room((columns as u64).saturating_mul(nodes).min(plausible / 2) as usize)?;
        }
        for _ in 0..columns {
            let value = fields.number()?;
            room::push(&mut values, single(value))?;
        }
        rows += 1;
        fields.end(columns)
    })?;
    check_count("feature matrix", rows as usize, nodes)?;
    values.shrink_to_fit();
    Features::dense(nodes as usize, columns, values)
}

fn check_count(what: &str, found: usize, expected: u64) -> Result<()> {
    if found as u64 == expected {
        return Ok(());
    }
    Err(Problem::Length { what: what.into(), found: found as u64, expected }.into())
}

/// Calls `take` with each line and its number, from 1. An empty last line is none.
fn each_line(mut reader: impl Read, mut take: impl FnMut(&[u8], u64) -> Result<()>) -> Result<()> {
    let mut buffer = vec![0; 1 << 18];
    let (mut filled, mut row) = (0, 0);
    let mut one = |line: &[u8]| {
        row += 1;
        take(line.strip_suffix(b"\r").unwrap_or(line), row)
    };
    loop {
        if filled == buffer.len() {
            if buffer.len() >= MAX_LINE {
                return Err(Problem::Corrupt("a line is longer than any table's".into()).into());
            }
            buffer.resize(buffer.len() * 2, 0);
        }
        let more = match reader.read(&mut buffer[filled..]) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        if more == 0 {
            return if filled == 0 { Ok(()) } else { one(&buffer[..filled]) };
        }
        let searched = filled;
        filled += more;
        let Some(last) = buffer[searched..filled].iter().rposition(|&byte| byte == b'\n') else { continue };
        let end = searched + last;
        for line in buffer[..end].split(|&byte| byte == b'\n') {
            one(line)?;
        }
        buffer.copy_within(end + 1..filled, 0);
        filled -= end + 1;
    }
}

/// The fields of a line, taken one after the other.
struct Fields<'a> {
    /// The rest of the line after the fields taken so far; `None` after the last.
    rest: Option<&'a [u8]>,
    row: u64,
    column: usize,
}

impl<'a> Fields<'a> {
    fn error(&self, problem: Problem) -> crate::Error {
        problem.at(Place::Cell { row: self.row, column: self.column.to_string() })
    }

    /// Errors name columns from 1, as there are no headers.
    fn next(&mut self) -> Result<&'a [u8]> {
        self.column += 1;
        let rest = self.rest.ok_or_else(|| self.error(Problem::EmptyCell))?;
        let end = rest.iter().position(|&byte| byte == b',');
        self.rest = end.map(|end| &rest[end + 1..]);
        let field = rest[..end.unwrap_or(rest.len())].trim_ascii();
        if field.is_empty() { Err(self.error(Problem::EmptyCell)) } else { Ok(field) }
    }

    /// A whole number below `limit`.
    fn integer(&mut self, limit: u64) -> Result<u64> {
        let field = self.next()?;
        match parse_integer(field) {
            Some(value) if value < limit => Ok(value),
            _ => {
                let text = String::from_utf8_lossy(field).into_owned();
                let number = text.strip_prefix('-').unwrap_or(&text);
                let is_number = number.bytes().all(|byte| byte.is_ascii_digit()) && !number.is_empty();
                Err(self.error(match is_number {
                    true => Problem::IndexOutOfRange { index: text, limit },
                    false => Problem::NotANumber(text),
                }))
            }
        }
    }

    fn number(&mut self) -> Result<f64> {
        let field = self.next()?;
        parse_number(field)
            .ok_or_else(|| self.error(Problem::NotANumber(String::from_utf8_lossy(field).into_owned())))
    }

    /// Checks that no field is left.
    fn end(&self, expected: usize) -> Result<()> {
        match self.rest {
            None => Ok(()),
            Some(rest) => {
                let more = rest.iter().filter(|&&byte| byte == b',').count() + 1;
                let (what, found) = ("line".into(), (expected + more) as u64);
                Err(Problem::Length { what, found, expected: expected as u64 }.at(Place::Row(self.row)))
            }
        }
    }
}

fn parse_integer(field: &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for &byte in field {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(digit.into())?;
    }
    (!field.is_empty()).then_some(value)
}

/// A decimal number, rounded to the nearest as `str::parse` rounds it.
fn parse_number(field: &[u8]) -> Option<f64> {
    /// Powers of ten that have no rounding error.
    const POWERS: [f64; 19] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
        1e18,
    ];
    let slow = || std::str::from_utf8(field).ok()?.parse().ok();
    let (negative, digits) = match field {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    // This many digits cannot overflow 64 bits.
    if digits.is_empty() || digits.len() > 18 {
        return slow();
    }
    let (mut mantissa, mut decimals, mut point) = (0u64, 0, false);
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            mantissa = mantissa * 10 + u64::from(digit);
            decimals += usize::from(point);
        } else if byte == b'.' && !point && digits.len() > 1 {
            point = true;
        } else {
            return slow();
        }
    }
    if mantissa >= 1 << 53 {
        return slow();
    }
    // A mantissa below 2^53 and an exact power of ten give one rounding, that is the nearest number.
    let value = mantissa as f64 / POWERS[decimals];
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn standard(text: &str) -> Option<f64> {
        text.parse().ok()
    }

    #[test]
    fn numbers_are_the_nearest() {
        for text in [
            "0",
            "-0",
            "-0.0",
            "1",
            "1.",
            ".5",
            "0.1",
            "-0.019337",
            "123456789.123456789",
            "1e5",
            "1E-5",
            "1e+22",
            "1e23",
            "9007199254740993",
            "1e400",
            "-1e-400",
            "nan",
            "inf",
            "-inf",
            "+1",
            "3.4028236e38",
            "1e-7",
            "2.5e-324",
        ] {
            let (ours, theirs) = (parse_number(text.as_bytes()).unwrap(), standard(text).unwrap());
            assert!(
                ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan(),
                "{text}: {ours} {theirs}"
            );
        }
        for text in
            ["", "-", ".", "-.", "e5", "1e", "1e-", "1.2.3", "1-2", "0x10", "1 2", "--1", "1e1e1", "é", ".e5"]
        {
            assert_eq!(parse_number(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_letters_parse_as_the_standard_library_parses_them(text in "[-+0-9.eE]{0,12}|[0-9]{1,20}[.][0-9]{0,12}") {
            prop_assert_eq!(parse_number(text.as_bytes()).map(f64::to_bits), standard(&text).map(f64::to_bits));
        }

        #[test]
        fn lines_are_those_of_the_text_whatever_the_reads(
            text in "[a\r\n]{0,40}", sizes in proptest::collection::vec(1usize..9, 1..9),
        ) {
            struct Slow<'a>(&'a [u8], std::iter::Cycle<std::vec::IntoIter<usize>>);
            impl Read for Slow<'_> {
                fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                    let size = self.1.next().unwrap_or(1).min(buffer.len());
                    self.0.read(&mut buffer[..size])
                }
            }
            let mut lines = Vec::new();
            each_line(Slow(text.as_bytes(), sizes.into_iter().cycle()), |line, row| {
                lines.push(String::from_utf8(line.to_vec()).unwrap());
                assert_eq!(row, lines.len() as u64);
                Ok(())
            }).unwrap();
            let split = text.split_terminator('\n');
            let expected: Vec<&str> = split.map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
            prop_assert_eq!(lines, expected);
        }
    }
}
