//! Tables as Parquet files: one, or several that are one table.

use std::fs::File;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};

use super::cell::{Cell, Checked};
use super::date;
use super::edges::{EdgeColumns, EdgeLists};
use super::index::NodeIndex;
use super::new_nodes::Sheet;
use super::nodes::{Column, NodeTable, Nodes, RowNumbers};
use super::pages::{self, CheckedPages};
use super::{Origin, in_cell};
use crate::read::LoadOptions;
use crate::read::columns::ColumnReport;
use crate::{Error, Graph, InFile, Place, Problem, Result, file, room};

/// How many values are decoded at a time.
const BATCH: usize = 8192;

/// How many rows a byte of a file can stand for.
const MAX_ROWS_PER_BYTE: u128 = 4096;

/// The names of the columns of a table.
pub(super) fn names(origin: &Origin) -> Result<Vec<String>> {
    column_names(&open(origin)?)
}

/// Reads a table of nodes.
pub(super) fn read_nodes(origin: &Origin, options: &LoadOptions) -> Result<Nodes> {
    let files = open(origin)?;
    let names = column_names(&files)?;
    let mut table = NodeTable::new(names, RowNumbers::from(1), options, false)?;
    count_rows(&files)?;
    for at in 0..table.columns_mut().len() {
        let name = table.name(at).to_string();
        let column = &mut table.columns_mut()[at];
        if let Column::Ignored(_) = column {
            continue;
        }
        match (&mut *column, files[0].kind(at)?) {
            (Column::Feature(feature), Kind::Text) => feature.expect_text(),
            (Column::Feature(feature), Kind::Days { .. }) => feature.expect_days(),
            _ => {}
        }
        read_cells(&files, at, &name, &mut |cell| column.push(cell))?;
    }
    table.finish(|_, _| Err(Problem::Corrupt("a column of numbers holds text".into()).into()))
}

/// The number of rows, which a graph can have as nodes.
fn count_rows(files: &[Table]) -> Result<u64> {
    let rows: i128 =
        files.iter().map(|file| i128::from(file.file.metadata().file_metadata().num_rows())).sum();
    if rows > Graph::MAX_NODES as i128 {
        let message = format!("{rows} nodes are more than the {} a graph can have", Graph::MAX_NODES);
        return Err(Problem::TooLarge(message).into());
    }
    Ok(rows.max(0) as u64)
}

/// Reads the rows of a table whose columns are known.
pub(super) fn read_new_nodes<'k>(
    origin: &Origin,
    begin: &dyn Fn(Vec<String>, bool) -> Result<Sheet<'k>>,
) -> Result<Sheet<'k>> {
    let files = open(origin)?;
    let names = column_names(&files)?;
    let mut sheet = begin(names.clone(), false)?;
    (1..=count_rows(&files)?).try_for_each(|row| sheet.begin_row(row))?;
    for (at, name) in names.iter().enumerate().filter(|(at, _)| sheet.reads(*at)).collect::<Vec<_>>() {
        sheet.expect_days(at, matches!(files[0].kind(at)?, Kind::Days { .. }))?;
        read_cells(&files, at, name, &mut |cell| sheet.push(at, Ok(cell)))?;
    }
    Ok(sheet)
}

/// Reads a table of edges.
pub(super) fn read_edges(
    origin: &Origin,
    options: &LoadOptions,
    index: &NodeIndex,
    nodes: usize,
) -> Result<(Graph, Option<ColumnReport>)> {
    let files = open(origin)?;
    let names = column_names(&files)?;
    let columns = EdgeColumns::of(&names, options)?;
    let read = |at: usize| {
        let mut nodes = Vec::new();
        read_cells(&files, at, &names[at], &mut |cell| room::push(&mut nodes, index.find(cell)?))?;
        Ok::<_, Error>(nodes)
    };
    let mut edges =
        EdgeLists { sources: read(columns.source)?, targets: read(columns.target)?, weights: vec![] };
    if let Some((at, weights)) = &columns.weight {
        read_cells(&files, *at, &names[*at], &mut |cell| edges.push_weight(cell, false, weights))?;
    }
    edges.graph(nodes, &columns, &names)
}

/// A Parquet file, and its plain bytes beside it.
struct Table {
    file: Arc<dyn FileReader>,
    bytes: PlainBytes,
    /// Where it is one of several.
    part: Option<PathBuf>,
}

enum PlainBytes {
    File(File),
    Memory(Bytes),
}

impl PlainBytes {
    fn read_at(&self, start: u64) -> io::Result<Box<dyn Read>> {
        let failed = |e: ParquetError| io::Error::other(e.to_string());
        Ok(match self {
            PlainBytes::File(file) => Box::new(file.get_read(start).map_err(failed)?),
            PlainBytes::Memory(bytes) => Box::new(bytes.get_read(start).map_err(failed)?),
        })
    }
}

impl Table {
    fn schema(&self) -> &SchemaDescriptor {
        self.file.metadata().file_metadata().schema_descr()
    }

    fn names(&self) -> Vec<String> {
        self.schema().columns().iter().map(|column| column.name().to_string()).collect()
    }

    fn kind(&self, at: usize) -> Result<Kind> {
        self.named(Kind::of(&self.schema().column(at)))
    }

    /// The outcome, its error with the file's name where the file is one of several.
    fn named<T>(&self, outcome: Result<T>) -> Result<T> {
        outcome.map_err(|error| match &self.part {
            Some(path) => error.in_file(path),
            None => error,
        })
    }
}

/// The files of a table, at least one.
fn open(origin: &Origin) -> Result<Vec<Table>> {
    match origin {
        Origin::File(path) => Ok(vec![open_file(path)?]),
        Origin::Parts(paths) => {
            let part =
                |path: &PathBuf| Ok(Table { part: Some(path.clone()), ..open_file(path).in_file(path)? });
            paths.iter().map(part).collect()
        }
        Origin::Bytes(bytes) => {
            let copy = Bytes::copy_from_slice(bytes);
            let file = guarded(|| SerializedFileReader::new(copy.clone()).map_err(broken))?;
            let table = Table { file: Arc::new(file), bytes: PlainBytes::Memory(copy), part: None };
            Ok(vec![of_plausible_length(table, bytes.len() as u64)?])
        }
    }
}

fn open_file(path: &Path) -> Result<Table> {
    let file = file::open(path)?;
    let length = file.metadata()?.len();
    let bytes = PlainBytes::File(file.try_clone()?);
    let file = guarded(|| SerializedFileReader::new(file).map_err(broken))?;
    of_plausible_length(Table { file: Arc::new(file), bytes, part: None }, length)
}

fn of_plausible_length(table: Table, length: u64) -> Result<Table> {
    // Run lengths let a few bytes stand for any number of rows, but no table of distinct ids is that regular.
    let groups = table.file.metadata().row_groups();
    let rows: u128 = groups.iter().map(|group| group.num_rows().max(0) as u128).sum();
    if rows > MAX_ROWS_PER_BYTE * u128::from(length) {
        let message = format!("a file of {length} bytes claims {rows} rows");
        return Err(Problem::TooLarge(message).into());
    }
    Ok(table)
}

thread_local! {
    static GUARDED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Whether a panic on this thread will be caught and become an error about the file.
pub(super) fn is_guarded() -> bool {
    GUARDED.get()
}

/// Runs code of the Parquet library. It asserts what a damaged file may violate, so a panic means a damaged
/// file and nothing that outlives the call is touched by it.
fn guarded<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    let outer = GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    GUARDED.set(outer);
    result.unwrap_or_else(|_| Err(Problem::Corrupt("its parts contradict each other".into()).into()))
}

fn broken(error: ParquetError) -> Error {
    match error {
        ParquetError::EOF(message) => Problem::Truncated(message).into(),
        ParquetError::NYI(message) => Problem::Unsupported(message).into(),
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(e) => (*e).into(),
            Err(other) => Problem::Corrupt(other.to_string()).into(),
        },
        ParquetError::General(message) => Problem::Corrupt(message).into(),
        other => Problem::Corrupt(other.to_string()).into(),
    }
}

/// The columns, which are the same in all files.
fn column_names(files: &[Table]) -> Result<Vec<String>> {
    let names = files[0].names();
    files.iter().try_for_each(|file| file.named(check_columns(file, &names)))?;
    Ok(names)
}

fn check_columns(file: &Table, names: &[String]) -> Result<()> {
    for column in file.schema().columns() {
        if column.path().parts().len() > 1 || column.max_rep_level() > 0 || column.max_def_level() > 1 {
            let message = "the column is nested, and only plain columns can be features".to_string();
            return Err(Problem::Unsupported(message).at(Place::Column(column.path().string())));
        }
    }
    let own = file.names();
    match own == names {
        true => Ok(()),
        false => {
            let [own, first] = [&own[..], names].map(|names| names.join(", "));
            let message = format!("this part has the columns {own}, and the first part has {first}");
            Err(Problem::Invalid(message).into())
        }
    }
}

/// Reads all cells of a column, file by file.
fn read_cells(
    files: &[Table],
    at: usize,
    name: &str,
    put: &mut dyn FnMut(Cell) -> Checked<()>,
) -> Result<()> {
    let first = files[0].kind(at)?;
    for file in files {
        let kind = file.kind(at)?;
        if !kind.is_like(first) {
            let message = "the column holds values of another type than in the first part".to_string();
            return file.named(Err(Problem::Unsupported(message).at(Place::Column(name.into()))));
        }
        let mut row = 0;
        let read = read_column(file, at, kind, &mut |cell| {
            row += 1;
            put(cell).map_err(|problem| in_cell(problem, row, name))
        });
        file.named(read)?;
    }
    Ok(())
}

/// The meaning of a column's values.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Signed,
    Unsigned,
    Number,
    Bool,
    Text,
    /// Dates and times, of which this many units make a day.
    Days {
        per_day: f64,
    },
}

impl Kind {
    /// Whether values of both can stand in one column.
    fn is_like(self, other: Kind) -> bool {
        let is_number = |kind| matches!(kind, Kind::Signed | Kind::Unsigned | Kind::Number);
        is_number(self) && is_number(other) || std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }

    fn of(column: &ColumnDescriptor) -> Result<Kind> {
        use ConvertedType as C;
        let unsupported = |what: String| {
            let message = format!("the column holds {what}, which is neither number, truth value nor text");
            Err(Problem::Unsupported(message).at(Place::Column(column.name().to_string())))
        };
        let logical = column.logical_type_ref();
        let converted = column.converted_type();
        if let Some(per_day) = units_per_day(logical, converted) {
            return match column.physical_type() {
                Physical::INT32 | Physical::INT64 => Ok(Kind::Days { per_day }),
                other => unsupported(format!("dates of the type {other}")),
            };
        }
        let signed = match logical {
            Some(LogicalType::Integer(integer)) => integer.is_signed,
            Some(LogicalType::Unknown | LogicalType::String | LogicalType::Enum) | None => {
                !matches!(converted, C::UINT_8 | C::UINT_16 | C::UINT_32 | C::UINT_64)
            }
            Some(LogicalType::Json) => true,
            Some(other) => return unsupported(format!("values of the type {other:?}")),
        };
        let plain = matches!(converted, C::NONE | C::UTF8 | C::ENUM | C::JSON | C::INT_8 | C::INT_16)
            || matches!(converted, C::INT_32 | C::INT_64 | C::UINT_8 | C::UINT_16 | C::UINT_32 | C::UINT_64);
        if !plain {
            return unsupported(format!("values of the type {converted}"));
        }
        match column.physical_type() {
            Physical::BOOLEAN => Ok(Kind::Bool),
            Physical::INT32 | Physical::INT64 if signed => Ok(Kind::Signed),
            Physical::INT32 | Physical::INT64 => Ok(Kind::Unsigned),
            Physical::FLOAT | Physical::DOUBLE => Ok(Kind::Number),
            Physical::BYTE_ARRAY => Ok(Kind::Text),
            other => unsupported(format!("values of the type {other}")),
        }
    }
}

/// How many units of a column of dates or times make a day.
fn units_per_day(logical: Option<&LogicalType>, converted: ConvertedType) -> Option<f64> {
    const SECONDS: f64 = 86_400.0;
    match (logical, converted) {
        (Some(LogicalType::Date), _) | (None, ConvertedType::DATE) => Some(1.0),
        (Some(LogicalType::Timestamp(time)), _) => Some(match time.unit {
            TimeUnit::MILLIS => SECONDS * 1e3,
            TimeUnit::MICROS => SECONDS * 1e6,
            TimeUnit::NANOS => SECONDS * 1e9,
        }),
        (None, ConvertedType::TIMESTAMP_MILLIS) => Some(SECONDS * 1e3),
        (None, ConvertedType::TIMESTAMP_MICROS) => Some(SECONDS * 1e6),
        _ => None,
    }
}

/// Reads all cells of a column of one file, in order.
fn read_column(table: &Table, at: usize, kind: Kind, put: &mut dyn FnMut(Cell) -> Result<()>) -> Result<()> {
    for group in 0..table.file.num_row_groups() {
        let expected = table.file.metadata().row_group(group).num_rows().max(0) as u64;
        let reader = guarded(|| {
            let group = table.file.get_row_group(group).map_err(broken)?;
            let (start, length) = group.metadata().column(at).byte_range();
            pages::check_headers(start, length, |place| table.bytes.read_at(place)).map_err(broken)?;
            let description = table.schema().column(at);
            let inner = group.get_column_page_reader(at).map_err(broken)?;
            let nullable = description.max_def_level() > 0;
            Ok(get_column_reader(description, Box::new(CheckedPages { inner, nullable })))
        })?;
        let signed = kind != Kind::Unsigned;
        let read = match reader {
            ColumnReader::Int32ColumnReader(r) if let Kind::Days { per_day } = kind => {
                batches(r, put, &mut |v, put| put(Cell::Number(f64::from(*v) / per_day - date::EPOCH)))
            }
            ColumnReader::Int64ColumnReader(r) if let Kind::Days { per_day } = kind => {
                batches(r, put, &mut |v, put| put(Cell::Number(*v as f64 / per_day - date::EPOCH)))
            }
            ColumnReader::BoolColumnReader(r) => batches(r, put, &mut |v, put| put(Cell::Bool(*v))),
            ColumnReader::Int32ColumnReader(r) if signed => {
                batches(r, put, &mut |v, put| put(Cell::Integer((*v).into())))
            }
            ColumnReader::Int32ColumnReader(r) => {
                batches(r, put, &mut |v, put| put(Cell::Integer((*v as u32).into())))
            }
            ColumnReader::Int64ColumnReader(r) if signed => {
                batches(r, put, &mut |v, put| put(Cell::Integer(*v)))
            }
            ColumnReader::Int64ColumnReader(r) => {
                batches(r, put, &mut |v, put| put(Cell::Unsigned(*v as u64)))
            }
            ColumnReader::FloatColumnReader(r) => {
                batches(r, put, &mut |v, put| put(Cell::Number((*v).into())))
            }
            ColumnReader::DoubleColumnReader(r) => batches(r, put, &mut |v, put| put(Cell::Number(*v))),
            ColumnReader::ByteArrayColumnReader(r) => {
                batches(r, put, &mut |v: &ByteArray, put| match v.as_utf8() {
                    Ok("") => put(Cell::Empty),
                    Ok(text) => put(Cell::Text(text)),
                    Err(_) => Err(Problem::Corrupt("the text is not UTF-8".into()).into()),
                })
            }
            _ => Err(Problem::Unsupported("the column is of no known type".into()).into()),
        };
        let name = || Place::Column(table.schema().column(at).name().into());
        let read = read.map_err(|e| e.at(name()))?;
        if read != expected {
            let message = format!("the column ends after {read} of {expected} rows of a group");
            return Err(Problem::Corrupt(message).at(name()));
        }
    }
    Ok(())
}

type Put<'a> = dyn FnMut(Cell) -> Result<()> + 'a;

/// Reads the cells of a column in one group of rows, and says how many there were.
fn batches<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    put: &mut Put,
    with: &mut dyn FnMut(&T::T, &mut Put) -> Result<()>,
) -> Result<u64> {
    let mut values: Vec<T::T> = Vec::with_capacity(BATCH);
    let mut levels: Vec<i16> = Vec::with_capacity(BATCH);
    let mut rows = 0;
    loop {
        values.clear();
        levels.clear();
        let (records, found, _) =
            guarded(|| reader.read_records(BATCH, Some(&mut levels), None, &mut values).map_err(broken))?;
        if records == 0 {
            return Ok(rows);
        }
        rows += records as u64;
        if levels.is_empty() {
            values.iter().take(found).try_for_each(|value| with(value, put))?;
            continue;
        }
        let mut values = values.iter().take(found);
        for &level in &levels {
            match values.len() {
                _ if level <= 0 => put(Cell::Empty)?,
                0 => return Err(Problem::Corrupt("a value is missing".into()).into()),
                _ => values.next().map_or(Ok(()), |value| with(value, put))?,
            }
        }
    }
}
