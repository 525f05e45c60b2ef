//! A table of nodes that come later, whose columns become the features of a data set that was read before.

mod schema;
mod sheet;

use std::collections::HashMap;
use std::path::Path;

pub use self::schema::{Column, Schema};
pub(super) use self::sheet::Sheet;
use self::sheet::Unfit;
use super::{Cell, TableInput, in_memory};
use crate::read::encoding::Encoding;
use crate::{Dataset, DatasetParts, Features, Graph, InFile, NodeIds, Problem, Result, UNLABELLED, room};

/// A table of nodes that come later.
#[derive(Debug, Clone, Copy)]
pub enum LaterTable<'a> {
    /// A file, or a folder of Parquet files.
    File(&'a Path),
    /// CSV in memory.
    Csv(&'a [u8]),
    /// Columns in memory, each with its name and a cell for each row.
    Columns(&'a [(&'a str, Vec<Cell<'a>>)]),
}

impl<'a> From<&'a Path> for LaterTable<'a> {
    fn from(file: &'a Path) -> Self {
        LaterTable::File(file)
    }
}

/// How such a table is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct LaterOptions<'a> {
    /// The column of ids; `id` if not given.
    pub id_column: Option<&'a str>,
    /// Whether a value that does not fit is taken as missing, where values can be missing.
    pub lenient: bool,
    /// The encoding of a table of text.
    pub encoding: Option<Encoding>,
}

/// The rows of a table of nodes that come later: those that fit, and those that do not.
#[derive(Debug)]
pub struct LaterRows {
    /// The rows that fit, without edges and labels; none where no row does.
    pub rows: Option<Dataset>,
    /// The rows that do not, in their order.
    pub rejects: Vec<Reject>,
    /// How many values that do not fit were taken as missing.
    pub taken_as_missing: usize,
}

/// A row that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Reject {
    /// Its position among the rows of the table, from 0.
    #[serde(skip)]
    pub position: usize,
    /// Its number, as a text editor counts lines (the header is row 1); rows of Parquet count from 1.
    pub row: u64,
    /// Its id, as far as there is one.
    pub id: String,
    /// The first column that does not fit; empty where it is the row.
    pub column: String,
    /// The reason.
    pub reason: String,
}

/// Reads a table of nodes, without edges and labels, as the one of `schema` was read: the same features in the same
/// order, categories that were known, dates in the order in which they were written, numbers mapped as its numbers
/// were. Each row is read by itself: one that does not fit is no error, but one of [`LaterRows::rejects`]. Other
/// columns are not used.
///
/// ```
/// use progap_formats::read::{LoadOptions, table};
/// use progap_graph::scale::Preparation;
///
/// let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("nodes.csv"), "id,label,town,age\nann,x,Rome,30\nbob,y,Oslo,40\n")?;
/// std::fs::write(folder.path().join("edges.csv"), "source,target\nann,bob\n")?;
/// let known = table::read_folder(folder.path(), &LoadOptions::default())?.prepared(Preparation::Standardise)?;
///
/// let later = table::LaterTable::Csv(b"id,age,town\ncat,35,Oslo\ndan,50,Paris\n");
/// let schema = table::Schema::of(&known)?;
/// let found = table::read_new_nodes(later, &schema, &table::LaterOptions::default())?;
/// let rows = found.rows.expect("one fits");
/// assert_eq!(rows.feature_names(), known.feature_names());
/// assert_eq!(rows.features().to_dense(1), [1.0, 0.0, 0.0]); // Oslo, not Rome, the mean age
/// assert_eq!((found.rejects[0].row, &*found.rejects[0].column), (3, "town"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A table that cannot be read, has no rows, or lacks a column; a schema whose features have no names.
pub fn read_new_nodes<'a>(
    table: impl Into<LaterTable<'a>>,
    schema: &Schema,
    options: &LaterOptions<'_>,
) -> Result<LaterRows> {
    match table.into() {
        LaterTable::File(path) => {
            let rows = TableInput::at(path).and_then(|input| read(&input, schema, options)).in_file(path)?;
            let named = rows.rows.map(|rows| rows.named(crate::read::name_of(path)));
            Ok(LaterRows { rows: named, ..rows })
        }
        LaterTable::Columns(columns) => {
            read_columns(columns, schema, options).in_file(Path::new("the table"))
        }
        LaterTable::Csv(bytes) => read(&in_memory(bytes), schema, options).in_file(Path::new("the table")),
    }
}

fn read(input: &TableInput<'_>, schema: &Schema, options: &LaterOptions<'_>) -> Result<LaterRows> {
    check_names(schema)?;
    let begin = |names, decimal_comma| Sheet::new(schema, names, decimal_comma, options);
    finish(schema, input.read_new_nodes(options.encoding, &begin)?)
}

fn read_columns(
    columns: &[(&str, Vec<Cell<'_>>)],
    schema: &Schema,
    options: &LaterOptions<'_>,
) -> Result<LaterRows> {
    check_names(schema)?;
    let names = columns.iter().map(|(name, _)| name.to_string()).collect();
    let mut sheet = Sheet::new(schema, names, false, options)?;
    let rows = columns.first().map_or(0, |(_, cells)| cells.len());
    if columns.iter().any(|(_, cells)| cells.len() != rows) {
        return Err(Problem::Invalid("its columns have different numbers of rows".into()).into());
    }
    (1..=rows as u64).try_for_each(|row| sheet.begin_row(row))?;
    for (at, (_, cells)) in columns.iter().enumerate().filter(|(at, _)| sheet.reads(*at)).collect::<Vec<_>>()
    {
        cells.iter().try_for_each(|&cell| sheet.push(at, Ok(cell)))?;
    }
    finish(schema, sheet)
}

fn check_names(schema: &Schema) -> Result<()> {
    if schema.columns().is_empty() {
        let message = "the features that were trained on have no names: columns cannot be matched with them";
        return Err(Problem::Invalid(message.into()).into());
    }
    Ok(())
}

fn finish(schema: &Schema, mut sheet: Sheet<'_>) -> Result<LaterRows> {
    let all = sheet.ids.len();
    if all == 0 {
        return Err(Problem::Invalid("the table has no rows".into()).into());
    }
    let rejects = rejects(&mut sheet)?;
    let mut is_reject = vec![false; all];
    rejects.iter().for_each(|reject| is_reject[reject.position] = true);
    let kept: Vec<usize> = (0..all).filter(|&position| !is_reject[position]).collect();
    let rows = match kept.is_empty() {
        true => None,
        false => {
            let ids = kept.iter().map(|&position| sheet.ids[position].as_str());
            Some(dataset(schema, sheet.features(&kept)?, NodeIds::from_texts(ids))?)
        }
    };
    Ok(LaterRows { rows, rejects, taken_as_missing: sheet.taken_as_missing })
}

/// Rows that fit, as a data set.
fn dataset(schema: &Schema, features: Features, node_ids: NodeIds) -> Result<Dataset> {
    let nodes = match &node_ids {
        NodeIds::Position => 0,
        NodeIds::Integers(ids) => ids.len(),
        NodeIds::Text { offsets, .. } => offsets.len() - 1,
    };
    Dataset::new(DatasetParts {
        name: "table".into(),
        graph: Graph::from_rows(room::filled(0u64, nodes + 1)?, Vec::<u32>::new())?,
        features,
        labels: room::filled(UNLABELLED, nodes)?.into(),
        class_names: schema.class_names().to_vec(),
        feature_names: schema.feature_names().to_vec(),
        numbers: schema.numbers().to_vec(),
        undeclared: vec![],
        relation: None,
        split: None,
        node_ids,
    })
}

/// The rows that do not fit, each with its first reason; of rows with the same id the first that fits stays.
fn rejects(sheet: &mut Sheet<'_>) -> Result<Vec<Reject>> {
    let mut unfit = std::mem::take(&mut sheet.unfit);
    unfit.sort_by_key(|unfit| (unfit.position, unfit.column));
    unfit.dedup_by_key(|unfit| unfit.position);
    let mut seen: HashMap<&str, usize> = HashMap::with_capacity(sheet.ids.len());
    let (mut next, mut twice) = (unfit.iter().peekable(), vec![]);
    for (position, id) in sheet.ids.iter().enumerate() {
        if next.next_if(|unfit| unfit.position == position).is_some() {
            continue;
        }
        if let Some(first) = seen.get(id.as_str()) {
            let reason = format!("the id stands already in row {}", sheet.rows.row(*first));
            room::push(&mut twice, Unfit { position, column: None, reason })?;
        } else {
            seen.insert(id, position);
        }
    }
    unfit.extend(twice);
    unfit.sort_by_key(|unfit| unfit.position);
    let reject = |Unfit { position, column, reason }: Unfit| Reject {
        position,
        row: sheet.rows.row(position),
        id: sheet.ids[position].clone(),
        column: column.map(|at| sheet.name(at).to_string()).unwrap_or_default(),
        reason,
    };
    Ok(unfit.into_iter().map(reject).collect())
}
