//! From the columns of a node table to ids, labels, split and features.

use std::collections::HashSet;
use std::path::Path;

use super::category::Categories;
use super::cell::{Cell, Checked};
use super::choose::{Feature, choose};
use super::feature::{FeatureColumn, Finished};
use super::index::IdColumn;
use super::label::{LabelColumn, Labels};
use super::matrix::{Matrix, assemble};
use super::sparse;
use crate::read::columns::{ColumnChoice, ColumnKind, ColumnReport};
use crate::read::labels::Classes;
use crate::read::{LoadOptions, missing as words_for_missing};
use crate::{
    Error, Graph, NoColumn, NoColumns, Part, Place, Problem, Remedy, Result, Split, UNLABELLED, room,
};

/// More columns than any table has; it keeps a forged header from allocating at will.
const MAX_COLUMNS: usize = 1 << 20;

/// A node table while it is read.
#[derive(Debug)]
pub(super) struct NodeTable {
    names: Vec<String>,
    columns: Vec<Column>,
    pub(super) rows: RowNumbers,
}

/// A column of a node table while it is read.
#[derive(Debug)]
pub(super) enum Column {
    Id(IdColumn),
    Label(LabelColumn),
    /// Whether the label is known.
    Labelled(Vec<bool>),
    Split(Vec<Part>),
    Feature(Box<Feature>),
    /// A column that its file marks as no data, or that the user leaves out; or why it is no property of a node.
    Ignored(Option<&'static str>),
}

/// The content of a node table, without the edges.
#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) ids: IdColumn,
    pub(super) labels: Vec<u32>,
    pub(super) class_names: Vec<String>,
    pub(super) split: Option<Split>,
    pub(super) matrix: Matrix,
    pub(super) rows: RowNumbers,
    pub(super) columns: Vec<ColumnReport>,
}

impl Nodes {
    /// The same nodes with the features that a file beside the table lists.
    pub(super) fn with_features(self, file: &Path, options: &LoadOptions) -> Result<Nodes> {
        let nodes = self.ids.len();
        // Ids that stand twice are refused where edges are read.
        let Ok(index) = self.ids.index() else { return Ok(self) };
        let (matrix, report) = sparse::add(self.matrix, file, &index, nodes, options)?;
        drop(index);
        let columns = self.columns.into_iter().chain([report]).collect();
        Ok(Nodes { matrix, columns, ..self })
    }
}

impl Column {
    /// Adds a row.
    pub(super) fn push(&mut self, cell: Cell) -> Checked<()> {
        match self {
            Column::Id(ids) => ids.push(cell)?,
            Column::Label(labels) => labels.push(cell)?,
            Column::Labelled(known) => room::push(known, cell.named(truth)?)?,
            Column::Split(parts) => room::push(
                parts,
                cell.named(|name| {
                    let name = name.unwrap_or_default();
                    Part::from_name(name).ok_or_else(|| {
                        Problem::Invalid(format!("the part {name:?} is none of train, val, test and none"))
                    })
                })?,
            )?,
            Column::Feature(feature) => feature.column.push(cell)?,
            Column::Ignored(_) => {}
        }
        Ok(())
    }
}

fn truth(name: Option<&str>) -> Checked<bool> {
    match name.map(str::to_ascii_lowercase).as_deref() {
        Some("true" | "1" | "yes") => Ok(true),
        None | Some("false" | "0" | "no") => Ok(false),
        Some(_) => {
            let name = name.unwrap_or_default();
            Err(Problem::Invalid(format!("{name:?} is neither true nor false, as the column says of labels")))
        }
    }
}

/// Which columns are what.
struct Roles {
    id: usize,
    label: Option<usize>,
    labelled: Option<usize>,
    split: Option<usize>,
}

impl Roles {
    fn of(names: &[String], options: &LoadOptions) -> Result<Roles> {
        let id = find_id(names, options.id_column.as_deref());
        let label = match options.without_labels {
            true => None,
            false => find_as(names, options.label_column.as_deref(), &LABEL_NAMES),
        };
        let mut missing = Vec::new();
        if id.is_none() {
            missing.push(no_column("id", options.id_column.as_deref(), "id"));
        }
        if label.is_none() && !options.without_labels {
            missing.push(no_column("label", options.label_column.as_deref(), "label"));
        }
        let (Some(id), true) = (id, missing.is_empty()) else { return Err(no_columns(names, missing)) };
        let Some(label) = label else { return Ok(Roles { id, label: None, labelled: None, split: None }) };
        let split = match options.split_column.as_deref() {
            Some(_) => Some(find_required(names, "split", options.split_column.as_deref(), "split")?),
            None => find(names, "split"),
        };
        if id == label || Some(id) == split || Some(label) == split {
            let message = "id, label and split must be three different columns".to_string();
            return Err(Problem::Invalid(message).into());
        }
        let spoken_of = |at: &usize| options.columns.names().any(|name| name == names[*at]);
        let labelled = ["labelled", "labeled"].iter().find_map(|name| find(names, name));
        let labelled =
            labelled.filter(|at| ![id, label].contains(at) && Some(*at) != split && !spoken_of(at));
        Ok(Roles { id, label: Some(label), labelled, split })
    }
}

/// The column of ids: the one that the user named, or the one of a usual name.
pub(super) fn find_id(names: &[String], given: Option<&str>) -> Option<usize> {
    match (given, names.iter().position(|name| is_bookkeeping(name))) {
        // Where no column is called an id, the rows' own labels are.
        (None, Some(index)) if !ID_NAMES.iter().any(|name| find(names, name).is_some()) => Some(index),
        (given, _) => find_as(names, given, &ID_NAMES),
    }
}

/// Whether the columns that a node table needs are there, and how its columns are called: the position of the ids, and
/// all names.
pub(super) fn check_roles(mut names: Vec<String>, options: &LoadOptions) -> Result<(usize, Vec<String>)> {
    name_index(&mut names);
    let roles = Roles::of(&names, options)?;
    Ok((roles.id, names))
}

/// Usual names of the column of ids, and of that of labels.
///
/// Where people numbered nodes anew, the column `new_id` is that of their edges.
pub(in crate::read) const ID_NAMES: [&str; 5] = ["new_id", "id", "node_id", "nodeid", "node"];
pub(in crate::read) const LABEL_NAMES: [&str; 4] = ["label", "class", "y", "target"];
/// Names of columns that are ids of some kind, and no property of a node, where the nodes have other ids.
const OTHER_IDS: [&str; 6] = ["id", "new_id", "node_id", "nodeid", "uuid", "guid"];

impl NodeTable {
    /// A table with these columns, whose first row has this number. `decimal_comma` says that numbers may be written
    /// with a comma.
    pub(super) fn new(
        mut names: Vec<String>,
        rows: RowNumbers,
        options: &LoadOptions,
        decimal_comma: bool,
    ) -> Result<NodeTable> {
        name_index(&mut names);
        check_names(&names)?;
        let Roles { id, label, labelled, split } = Roles::of(&names, options)?;
        for name in options.categorical.iter().map(String::as_str).chain(options.columns.names()) {
            let Some(at) = names.iter().position(|other| other == name) else {
                return Err(missing("column", name, &names).remedy(Remedy::Declared));
            };
            if at == id || Some(at) == label || Some(at) == split {
                let message = "the column is the id, the label or the split, and no feature".to_string();
                return Err(Problem::Invalid(message).at(Place::Column(name.into())));
            }
        }
        options.columns.check().map_err(|(column, message)| match column {
            Some(column) => Problem::Invalid(message).at(Place::Column(column)),
            None => Problem::Invalid(message).into(),
        })?;
        let two_kinds = |name: &&String| {
            let kind = options.columns.columns.get(*name).and_then(|choice| choice.kind);
            options.columns.drop.contains(name) || kind.is_some_and(|kind| kind != ColumnKind::Category)
        };
        if let Some(name) = options.categorical.iter().find(two_kinds) {
            let message = "the column is declared categorical, and something else".to_string();
            return Err(Problem::Invalid(message).at(Place::Column(name.clone())));
        }
        let categorical: HashSet<&str> = options.categorical.iter().map(String::as_str).collect();
        let column = |(at, name): (usize, &String)| match at {
            at if at == id => Column::Id(IdColumn::new()),
            at if Some(at) == label => Column::Label(LabelColumn::new(options.columns.unknown.clone())),
            at if Some(at) == labelled => Column::Labelled(Vec::new()),
            at if Some(at) == split => Column::Split(Vec::new()),
            _ => {
                let mut choice = options.columns.of(name);
                if categorical.contains(name.as_str()) {
                    choice.kind.get_or_insert(ColumnKind::Category);
                }
                let said =
                    choice != ColumnChoice { max_categories: choice.max_categories, ..Default::default() };
                let wanted = options.columns.keep.contains(name);
                let is_id = OTHER_IDS.iter().any(|id| name.eq_ignore_ascii_case(id));
                match choice.kind {
                    Some(ColumnKind::Drop) => Column::Ignored(None),
                    _ if is_bookkeeping(name) && !said => Column::Ignored(None),
                    _ if is_id && !said && !wanted => Column::Ignored(Some("an id by its name")),
                    _ => Column::Feature(Box::new(Feature { wanted, ..Feature::new(choice, decimal_comma) })),
                }
            }
        };
        let columns = names.iter().enumerate().map(column).collect();
        Ok(NodeTable { names, columns, rows })
    }

    /// The columns, for adding cells.
    pub(super) fn columns_mut(&mut self) -> &mut [Column] {
        &mut self.columns
    }

    /// The name of a column.
    pub(super) fn name(&self, column: usize) -> &str {
        &self.names[column]
    }

    /// Ends reading. `read_again` reads one column once more, as names.
    pub(super) fn finish(
        self,
        mut read_again: impl FnMut(usize, &mut Column) -> Result<()>,
    ) -> Result<Nodes> {
        let NodeTable { names, columns, rows } = self;
        let (mut ids, mut labels, mut split) = (IdColumn::new(), None, None);
        let mut known = None;
        let (mut features, mut reports) = (Vec::new(), Vec::new());
        for (at, (name, column)) in names.into_iter().zip(columns).enumerate() {
            let report = |kind| ColumnReport::new(&name, kind);
            reports.push(match column {
                Column::Id(column) => {
                    ids = column;
                    report("id")
                }
                Column::Label(column) => {
                    labels = Some(column);
                    report("label")
                }
                Column::Labelled(column) => {
                    known = Some(column);
                    report("labelled")
                }
                Column::Split(parts) => {
                    split = Some(Split::from_parts(parts));
                    report("split")
                }
                Column::Ignored(why) => ColumnReport { note: why.map(String::from), ..report("not used") },
                Column::Feature(feature) => {
                    let again = || read_names(|column| read_again(at, column));
                    let (values, report) = choose(&name, *feature, &|row| rows.row(row), again)?;
                    features.extend(values.map(|values| (name, values)));
                    report
                }
            });
        }
        let nodes = ids.len();
        if nodes == 0 {
            return Err(Problem::Empty("nodes").into());
        }
        let matrix = assemble(nodes, features)?;
        let labelled = reports.iter_mut().find(|report| report.kind == "label");
        let Labels { classes: Classes { labels, names: class_names }, words } = match labels {
            None => Labels::none(nodes)?,
            Some(labels) => labels.finish(known).map_err(|problem| match &labelled {
                Some(report) if !matches!(problem, Problem::Empty(_)) => {
                    problem.at(Place::Column(report.name.clone()))
                }
                _ => problem.into(),
            })?,
        };
        if let Some(report) = labelled {
            report.missing = labels.iter().filter(|&&label| label == UNLABELLED).count();
            (report.categories, report.note) = (Some(class_names.len()), words_for_missing::note(&words));
        }
        Ok(Nodes { ids, labels, class_names, split, matrix, rows, columns: reports })
    }
}

/// Reads a column once more, as names.
fn read_names(read: impl FnOnce(&mut Column) -> Result<()>) -> Result<Categories> {
    let feature = Feature { column: FeatureColumn::names(), ..Feature::new(ColumnChoice::default(), false) };
    let mut column = Column::Feature(Box::new(feature));
    read(&mut column)?;
    match column {
        Column::Feature(feature) => match feature.column.finish() {
            Ok(Finished::Names(names)) => Ok(names),
            _ => Err(changed()),
        },
        _ => Err(changed()),
    }
}

fn changed() -> Error {
    Problem::Invalid("the file changed while it was read".into()).into()
}

/// Gives the first column a name where it has none: pandas writes the labels of its rows so.
pub(super) fn name_index(names: &mut [String]) {
    if names.len() > 1 && names[0].is_empty() && !names.iter().any(|name| name == INDEX) {
        names[0] = INDEX.into();
    }
}

/// The name that pandas gives a column without one when it reads it back.
const INDEX: &str = "Unnamed: 0";

/// pandas keeps the labels of its rows in columns of such names; they are no property of a node.
fn is_bookkeeping(name: &str) -> bool {
    name == INDEX || name.strip_prefix("__index_level_").and_then(|rest| rest.strip_suffix("__")).is_some()
}

/// Which row of the file each row of the table is: consecutive but for texts with line breaks.
#[derive(Debug)]
pub(super) struct RowNumbers {
    /// Where the numbers jump: from this position on they count up from this row.
    jumps: Vec<(usize, u64)>,
    length: usize,
}

impl RowNumbers {
    /// Rows that count up from `first`.
    pub(super) fn from(first: u64) -> Self {
        RowNumbers { jumps: vec![(0, first)], length: 0 }
    }

    /// Says which row the next one is.
    pub(super) fn push(&mut self, row: u64) -> Result<()> {
        if self.length >= Graph::MAX_NODES {
            let message = format!("the table has more than {} rows", Graph::MAX_NODES);
            return Err(Problem::TooLarge(message).into());
        }
        if self.row(self.length) != row {
            room::push(&mut self.jumps, (self.length, row))?;
        }
        self.length += 1;
        Ok(())
    }

    /// The row of the file at a position of the table.
    pub(super) fn row(&self, position: usize) -> u64 {
        // The last jump is the usual answer while a table is read.
        let last = self.jumps[self.jumps.len() - 1];
        let (from, row) = if position >= last.0 {
            last
        } else {
            self.jumps[self.jumps.partition_point(|jump| jump.0 <= position).saturating_sub(1)]
        };
        row + (position - from.min(position)) as u64
    }
}

/// Whether every column has a name of its own.
pub(super) fn check_names(names: &[String]) -> Result<()> {
    if names.len() > MAX_COLUMNS {
        let message = format!("the table has {} columns, more than {MAX_COLUMNS}", names.len());
        return Err(Problem::TooLarge(message).into());
    }
    let mut seen = HashSet::with_capacity(names.len());
    for (at, name) in names.iter().enumerate() {
        if name.is_empty() {
            let message = format!("column {} has no name in the header", at + 1);
            return Err(Problem::Invalid(message).into());
        }
        if !seen.insert(name.as_str()) {
            let message = "two columns have this name".to_string();
            return Err(Problem::Invalid(message).at(Place::Column(name.clone())));
        }
    }
    Ok(())
}

/// The column of that name, in any case if only one column has it.
pub(super) fn find(names: &[String], name: &str) -> Option<usize> {
    names.iter().position(|n| n == name).or_else(|| {
        let mut alike = names.iter().enumerate().filter(|(_, n)| n.eq_ignore_ascii_case(name));
        alike.next().filter(|_| alike.next().is_none()).map(|(at, _)| at)
    })
}

/// The column that the user named, exactly as spelt, or the one of the usual name.
pub(super) fn find_required(
    names: &[String],
    role: &'static str,
    given: Option<&str>,
    usual: &str,
) -> Result<usize> {
    let found = match given {
        Some(given) => names.iter().position(|name| name == given),
        None => find(names, usual),
    };
    found.ok_or_else(|| {
        missing(&format!("{role} column"), given.unwrap_or(usual), names).remedy(Remedy::Column(role))
    })
}

/// The column that the user named, exactly as spelt, or the first one of the usual names.
pub(super) fn find_as(names: &[String], given: Option<&str>, usual: &[&str]) -> Option<usize> {
    match given {
        Some(given) => names.iter().position(|name| name == given),
        None => usual.iter().find_map(|name| find(names, name)),
    }
}

/// A column of a table that is not there.
pub(super) fn no_column(role: &'static str, given: Option<&str>, usual: &str) -> NoColumn {
    NoColumn { role, name: given.unwrap_or(usual).to_string(), likely: vec![] }
}

/// Columns that are not there, beside those that are.
pub(super) fn no_columns(names: &[String], missing: Vec<NoColumn>) -> Error {
    Problem::NoColumns(vec![NoColumns { file: None, missing, found: listed(names) }]).into()
}

/// A column that is not there, beside those that are.
pub(super) fn missing(what: &str, name: &str, names: &[String]) -> Error {
    Problem::Missing { what: format!("{what} {name:?}"), found: listed(names) }.into()
}

/// The first names of many.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let mut found = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        found += &format!(" and {} more", names.len() - SHOWN);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_numbers_jump_where_the_file_does() {
        let mut rows = RowNumbers::from(2);
        for row in [2, 3, 7, 8, 12] {
            rows.push(row).unwrap();
        }
        assert_eq!(rows.jumps.len(), 3);
        assert_eq!((0..5).map(|position| rows.row(position)).collect::<Vec<_>>(), [2, 3, 7, 8, 12]);
    }

    #[test]
    fn columns_are_found_by_exact_name_first() {
        let names = ["ID", "Label", "id"].map(String::from);
        assert_eq!((find(&names, "id"), find(&names, "label"), find(&names, "Id")), (Some(2), Some(1), None));
    }
}
