//! Tables as separated text.

use std::cell::Cell as Counter;
use std::io::{self, Read};
use std::rc::Rc;
use std::str;

use csv::{ByteRecord, ErrorKind, Reader, ReaderBuilder};

use super::cell::{Cell, Checked};
use super::edges::{EdgeColumns, EdgeLists, is_edge, usual_names};
use super::in_cell;
use super::index::NodeIndex;
use super::new_nodes::Sheet;
use super::nodes::{Column, NodeTable, Nodes, RowNumbers};
use crate::read::LoadOptions;
use crate::read::columns::ColumnReport;
use crate::read::encoding::Encoding;
use crate::{Error, Graph, Place, Problem, Result, room};

/// No row is longer; a quote that is never closed would otherwise gather the whole file into one cell.
const MAX_ROW: u64 = 64 << 20;

/// A header longer than this decides nothing about separators.
const MAX_HEADER: usize = 1 << 20;

/// Reads a table of nodes; `open` begins it anew.
pub(super) fn read_nodes<'a>(
    open: &dyn Fn() -> Result<Box<dyn Read + 'a>>,
    separator: u8,
    options: &LoadOptions,
) -> Result<Nodes> {
    let mut rows = CsvRows::new(open()?, separator)?;
    let names = rows.header()?;
    let decimal_comma = rows.separator == b';';
    let mut table = NodeTable::new(names, RowNumbers::from(2), options, decimal_comma)?;
    while rows.advance()? {
        let row = rows.number();
        table.rows.push(row)?;
        for (at, bytes) in rows.record.iter().enumerate() {
            if let Err(problem) = cell(bytes).and_then(|cell| table.columns_mut()[at].push(cell)) {
                return Err(in_cell(problem, row, table.name(at)));
            }
        }
    }
    table.finish(|column, again| read_column(CsvRows::new(open()?, separator)?, column, again))
}

/// The names of the columns of a table; of one of edges, those that it gets where it has none.
pub(super) fn names(
    bytes: Box<dyn Read + '_>,
    separator: u8,
    edges: Option<&LoadOptions>,
) -> Result<Vec<String>> {
    let mut rows = CsvRows::new(bytes, separator)?;
    match edges {
        Some(options) => rows.edge_header(options),
        None => rows.header(),
    }
}

/// Reads the rows of a table whose columns are known; a row of another length than the header is one that does not fit.
pub(super) fn read_new_nodes<'k>(
    bytes: Box<dyn Read + '_>,
    separator: u8,
    begin: &dyn Fn(Vec<String>, bool) -> Result<Sheet<'k>>,
) -> Result<Sheet<'k>> {
    let mut rows = CsvRows::new(bytes, separator)?;
    let names = rows.header()?;
    let columns = names.len();
    let mut sheet = begin(names, rows.separator == b';')?;
    loop {
        match rows.advance() {
            Ok(false) => return Ok(sheet),
            Ok(true) => {
                sheet.begin_row(rows.number())?;
                for (at, bytes) in rows.record.iter().enumerate() {
                    sheet.push(at, cell(bytes))?;
                }
            }
            Err(error) => match error.problem() {
                Problem::Invalid(reason) if rows.record.len() != columns => {
                    sheet.begin_row(rows.number())?;
                    sheet.push_broken_row(reason)?;
                }
                _ => return Err(error),
            },
        }
    }
}

/// Reads one column of a table that was read before.
fn read_column(mut rows: CsvRows, column: usize, into: &mut Column) -> Result<()> {
    let names = rows.header()?;
    while rows.advance()? {
        let bytes = rows.record.get(column).unwrap_or_default();
        if let Err(problem) = cell(bytes).and_then(|cell| into.push(cell)) {
            let name = names.get(column).map(String::as_str).unwrap_or_default();
            return Err(in_cell(problem, rows.number(), name));
        }
    }
    Ok(())
}

fn cell(bytes: &[u8]) -> Checked<Cell<'_>> {
    match str::from_utf8(bytes) {
        Ok("") => Ok(Cell::Empty),
        Ok(text) => Ok(Cell::Untyped(text)),
        Err(_) => Err(Encoding::not_utf8()),
    }
}

/// Reads a table of edges.
pub(super) fn read_edges(
    bytes: Box<dyn Read + '_>,
    separator: u8,
    options: &LoadOptions,
    index: &NodeIndex,
    nodes: usize,
) -> Result<(Graph, Option<ColumnReport>)> {
    let mut rows = CsvRows::new(bytes, separator)?;
    let names = rows.edge_header(options)?;
    let columns = EdgeColumns::of(&names, options)?;
    let mut edges = EdgeLists::default();
    while rows.advance()? {
        let node = |column: usize| {
            // Every row is as long as the header, so the column is there.
            let id = &rows.record[column];
            index.find_text(id).ok_or_else(|| {
                let problem = match str::from_utf8(id) {
                    Ok("") => Problem::EmptyCell,
                    Ok(id) => Problem::UnknownNode(id.to_string()),
                    Err(_) => Encoding::not_utf8(),
                };
                in_cell(problem, rows.number(), &names[column])
            })
        };
        room::push(&mut edges.sources, node(columns.source)?)?;
        room::push(&mut edges.targets, node(columns.target)?)?;
        if let Some((at, weights)) = &columns.weight {
            let read = cell(&rows.record[*at]);
            let read = read.and_then(|cell| edges.push_weight(cell, rows.separator == b';', weights));
            read.map_err(|problem| in_cell(problem, rows.number(), &names[*at]))?;
        }
    }
    edges.graph(nodes, &columns, &names)
}

/// The rows of a text table, one after the other.
pub(super) struct CsvRows<'a> {
    reader: Reader<Bounded<'a>>,
    record: ByteRecord,
    /// How many cells the header has.
    cells: Option<usize>,
    separator: u8,
    since_row: Rc<Counter<u64>>,
    /// Whether the row that was read last is the next one as well.
    again: bool,
    /// The line on which the row before this one ended.
    started: u64,
    /// The reader counts a line feed with the row it ends, but one after a carriage return with the next row.
    ends_in_line_feed: bool,
}

impl<'a> CsvRows<'a> {
    pub(super) fn new(mut bytes: Box<dyn Read + 'a>, usual: u8) -> Result<Self> {
        let since_row = Rc::new(Counter::new(0));
        let start = first_line(&mut bytes)?;
        let separator = separator(&start, usual);
        let whole: Box<dyn Read + 'a> = Box::new(io::Cursor::new(start).chain(bytes));
        let bounded = Bounded { inner: whole, since_row: since_row.clone(), end: END };
        let mut builder = ReaderBuilder::new();
        // Lengths are compared here, as the row behind the last one has one of its own.
        builder.has_headers(false).flexible(true).delimiter(separator).buffer_capacity(1 << 18);
        Ok(CsvRows {
            reader: builder.from_reader(bounded),
            record: ByteRecord::new(),
            cells: None,
            separator,
            since_row,
            again: false,
            started: 1,
            ends_in_line_feed: true,
        })
    }

    /// The names of the columns.
    pub(super) fn header(&mut self) -> Result<Vec<String>> {
        if !self.advance()? {
            let (what, found) = ("header row".into(), "an empty table".into());
            return Err(Problem::Missing { what, found }.into());
        }
        let broken_lines = line_feeds(self.record.as_slice());
        self.ends_in_line_feed = self.reader.position().line() > 1 + broken_lines;
        let name = |bytes| str::from_utf8(bytes).map(str::to_string);
        self.record
            .iter()
            .map(|bytes| name(bytes).map_err(|_| Encoding::not_utf8().at(Place::Row(1))))
            .collect()
    }

    /// The names of the columns of a table of edges, whose first row may be an edge already.
    fn edge_header(&mut self, options: &LoadOptions) -> Result<Vec<String>> {
        let names = self.header()?;
        self.again = is_edge(&names, options);
        Ok(if self.again { usual_names(names.len()) } else { names })
    }

    /// Reads the next row; `false` after the last.
    pub(super) fn advance(&mut self) -> Result<bool> {
        if std::mem::take(&mut self.again) {
            return Ok(true);
        }
        self.since_row.set(0);
        self.started = self.reader.position().line();
        self.reader.read_byte_record(&mut self.record).map_err(|e| self.error(e))?;
        // Without an open quote the row behind the last one is found as it was put there.
        match self.record.iter().next_back().unwrap_or(ROW_AT_END) {
            ROW_AT_END if self.record.len() <= 1 => return Ok(false),
            cell if cell.ends_with(END) => {
                let before: u64 = self.record.iter().rev().skip(1).map(line_feeds).sum();
                return Err(Problem::OpenQuote.at(Place::Row(self.number() + before)));
            }
            _ => {}
        }
        let (expected, found) = (*self.cells.get_or_insert(self.record.len()), self.record.len());
        if expected != found {
            let message = format!("the row has {found} cells, the header {expected}");
            return Err(Problem::Invalid(message).at(Place::Row(self.number())));
        }
        Ok(true)
    }

    /// The line on which the row begins.
    pub(super) fn number(&self) -> u64 {
        let ended = self.reader.position().line() - u64::from(self.ends_in_line_feed);
        ended.saturating_sub(line_feeds(self.record.as_slice())).max(self.started)
    }

    /// The text in a column of the row.
    pub(super) fn text(&self, column: usize) -> Checked<&str> {
        str::from_utf8(self.record.get(column).unwrap_or_default()).map_err(|_| Encoding::not_utf8())
    }

    fn error(&self, error: csv::Error) -> Error {
        match error.into_kind() {
            ErrorKind::Io(e)
                if e.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<TooLong>) =>
            {
                Error::from(e).at(Place::Row(self.started))
            }
            ErrorKind::Io(e) => e.into(),
            other => Problem::Corrupt(format!("{other:?}")).at(Place::Row(self.number())),
        }
    }
}

fn line_feeds(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

/// The start of a text, as far as its first line and perhaps a little further.
fn first_line(bytes: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    let mut chunk = vec![0; 1 << 12];
    while start.len() < MAX_HEADER && !start.contains(&b'\n') {
        match bytes.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => start.extend_from_slice(&chunk[..read]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(start)
}

/// The separator of the names of the first line: the usual sign unless another one stands there more often, quoted
/// names left out.
fn separator(start: &[u8], usual: u8) -> u8 {
    let mut quoted = false;
    let mut counts = [(usual, 0usize), (b',', 0), (b';', 0), (b'\t', 0), (b'|', 0), (b' ', 0)];
    for &byte in start.iter().take_while(|&&byte| byte != b'\n') {
        quoted ^= byte == b'"';
        if let Some((_, count)) = counts.iter_mut().find(|(sign, _)| *sign == byte && !quoted) {
            *count += 1;
        }
    }
    // Names may have blanks: these separate them only where nothing else does.
    let others = counts[..5].iter().any(|(_, count)| *count > 0);
    counts[5].1 = if others { 0 } else { counts[5].1 };
    // Of equally frequent signs the first.
    counts.iter().rev().max_by_key(|(_, count)| *count).map_or(usual, |(sign, _)| *sign)
}

/// A row behind the last one, which no text holds, as it is not UTF-8: a quote that is open swallows it.
const END: &[u8] = b"\r\n\xff\xfeend of the table\xff\n";
const ROW_AT_END: &[u8] = b"\xff\xfeend of the table\xff";

#[derive(Debug, thiserror::Error)]
#[error("the row is longer than {MAX_ROW} bytes; is a quote left open?")]
struct TooLong;

/// Bytes with a row behind the last one, which end with an error when they form a row beyond all measure.
struct Bounded<'a> {
    inner: Box<dyn Read + 'a>,
    since_row: Rc<Counter<u64>>,
    /// As much of [`END`] as is still to come.
    end: &'static [u8],
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match self.inner.read(buffer)? {
            0 => self.end.read(buffer)?,
            read => read,
        };
        self.since_row.set(self.since_row.get() + read as u64);
        match self.since_row.get() > MAX_ROW {
            true => Err(io::Error::new(io::ErrorKind::InvalidData, TooLong)),
            false => Ok(read),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::separator;

    #[test]
    fn the_header_tells_the_separator() {
        for (header, usual, expected) in [
            ("id,label,age", b',', b','),
            ("id;label;age\n1,2,3,4,5", b',', b';'),
            ("id\tlabel", b',', b'\t'),
            ("id\tlabel", b'\t', b'\t'),
            ("id|label|age", b',', b'|'),
            ("id label age", b',', b' '),
            ("id,first name,the last name", b',', b','),
            ("id,label", b'\t', b','),
            ("\"a;b;c\",label", b',', b','),
            ("id", b',', b','),
            ("", b'\t', b'\t'),
        ] {
            assert_eq!(separator(header.as_bytes(), usual), expected, "{header}");
        }
    }
}
