//! Problems of people's files, each with its remedy.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::encoding::Encoding;
use crate::file::Expands;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// One sentence for the user: which file, where in it, what is wrong, what to do.
#[derive(Debug)]
pub struct Error(Box<Details>);

#[derive(Debug)]
struct Details {
    file: Option<PathBuf>,
    place: Option<Place>,
    problem: Problem,
    remedies: Vec<Remedy>,
}

/// What a caller can do about an error, beyond [`Problem::advice`]: one option of reading, or one other way to the
/// data.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// Name these columns.
    Columns(Vec<NoColumn>),
    /// Name the column of this role, such as `label`, `split` or `weights`.
    Column(&'static str),
    /// Take this column for the ids.
    Ids(String),
    /// Say that the text has this encoding.
    Encoding(Encoding),
    /// Say whether the first line is a header.
    Header,
    /// Leave a column out.
    Drop(String),
    /// Hash the words of a column.
    Text(String),
    /// Take a column for categories.
    Categorical(String),
    /// Say whether days or months come first in a column.
    DateOrder(String),
    /// Correct what was declared of columns.
    Declared,
    /// Say which labels are not known.
    Unknown,
    /// Read no weights of edges.
    NoWeights,
    /// Declare the public maximum of weights.
    WeightBound,
    /// Name the array of this role, such as `labels`.
    Array(&'static str),
    /// Choose another of several splits.
    Split,
    /// Give the table of edges.
    EdgeFile,
    /// Give the file of labels.
    LabelFile,
    /// Download the data set of this name, or name the folder that has it.
    Fetch(String),
    /// Look at the list of known data sets.
    Names,
}

/// Where in a file the problem lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A row of a table, counted as a text editor counts lines (the header is row 1).
    Row(u64),
    /// A cell of a table; the row is counted as in [`Place::Row`].
    Cell {
        /// The row.
        row: u64,
        /// The column's name.
        column: String,
    },
    /// A value of a node, where there are no rows to look up.
    Value {
        /// The node's id.
        node: String,
        /// The column's name.
        column: String,
    },
    /// A column of a table.
    Column(String),
    /// An array of an archive, a variable of a `.mat` file, a section of our own format.
    Key(String),
    /// One element of such an array.
    Element {
        /// The array's name.
        key: String,
        /// The element's position, from 0.
        index: u64,
    },
    /// A node, by its position.
    Node(u64),
}

/// A problem. [`Problem::advice`] says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The operating system refused.
    #[error("{0}")]
    Io(io::Error),
    /// Nothing lies at the path.
    #[error("no such {0}")]
    NotThere(&'static str),
    /// Neither a path nor the name of a data set.
    #[error("there is no file, folder or data set called {name:?} (nearest names are {nearest})")]
    UnknownName {
        /// What was named.
        name: String,
        /// Names of data sets that it is nearest to.
        nearest: String,
    },
    /// A text in another encoding than is expected, with the one it seems to have.
    #[error("the text is not UTF-8 and looks like {0}")]
    Encoding(Encoding),
    /// A first line that may be a header or data.
    #[error("the first line, {0:?}, may be a header or data, and nothing tells which")]
    Header(String),
    /// Columns that must be there and are not, of each table.
    #[error("{}", no_columns(.0))]
    NoColumns(Vec<NoColumns>),
    /// An edge that names no node by the column of ids, where another column names all of them.
    #[error(
        "the node {id:?} is not in the column {ids:?} of the node table, but the column {column:?} has all nodes of \
         the edges"
    )]
    OtherIds {
        /// The id.
        id: String,
        /// The column that was taken for the ids.
        ids: String,
        /// The column that has all of them.
        column: String,
    },
    /// The path holds nothing that a reader knows.
    #[error("no known graph format ({0})")]
    NotRecognised(String),
    /// A node table alone.
    #[error("a node table needs its edge table")]
    NoEdgeTable,
    /// An edge list alone.
    #[error("an edge list needs the labels of its nodes")]
    NoLabelFile,
    /// The file ends before its content does.
    #[error("the file is truncated: {0}")]
    Truncated(String),
    /// The bytes do not form a file of the format.
    #[error("the file is corrupt: {0}")]
    Corrupt(String),
    /// The content's checksum differs from the one that was written down.
    #[error("the checksum is {found}, not {expected}: the file is damaged or was changed")]
    Checksum {
        /// The checksum that was written down.
        expected: String,
        /// The checksum of the content.
        found: String,
    },
    /// A format, or a version of one, that we do not read.
    #[error("{0}")]
    Unsupported(String),
    /// Something other than a regular file.
    #[error("it is {0} and not a regular file")]
    NotAFile(&'static str),
    /// A link in a folder of data.
    #[error("it is a link that leads out of the folder")]
    LeadsOut,
    /// A small file that unpacks to a very large one.
    #[error("it unpacks to more than 200 times its size")]
    Expands,
    /// A quote in a table of text.
    #[error("the quote that is opened here is never closed")]
    OpenQuote,
    /// A NumPy array that holds pickled Python objects.
    #[error("the array holds pickled Python objects, which are never loaded because they can run code")]
    PickledObjects,
    /// A column or array that must be there is not.
    #[error("there is no {what} (found: {found})")]
    Missing {
        /// The missing part, for example "label column".
        what: String,
        /// The parts that are there instead.
        found: String,
    },
    /// A cell that must not be empty is.
    #[error("the value is missing")]
    EmptyCell,
    /// A value that should be a number is not.
    #[error("{0:?} is not a number")]
    NotANumber(String),
    /// A value that should be a date is not.
    #[error("{0:?} is not a date")]
    NotADate(String),
    /// A date in a column that does not say whether days or months come first.
    #[error("{0:?} may be read with the day or with the month first, and no value of the column tells which")]
    AmbiguousDate(String),
    /// A number with signs, in a column of such numbers.
    #[error("{0:?} is a number with signs, as most values of the column are")]
    DressedNumber(String),
    /// A weight of an edge that is no number.
    #[error("{0:?} is not a number, and no weight")]
    TextAsWeight(String),
    /// A text column with nearly one value for each node.
    #[error(
        "the text column has {values} different values for {nodes} nodes, nearly one each, as names have (such as \
         {example:?})"
    )]
    NearlyUnique {
        /// How many different values.
        values: u64,
        /// How many nodes have one.
        nodes: u64,
        /// The first of them.
        example: String,
    },
    /// A value that is none of the declared categories.
    #[error("{0:?} is none of the declared categories")]
    UnlistedCategory(String),
    /// A feature or weight that is NaN or infinite.
    #[error("the value {0} is not finite")]
    NotFinite(f64),
    /// A number that is no weight of an edge.
    #[error("{0} is no weight between 0 and 1")]
    NotAWeight(f64),
    /// A label outside the classes.
    #[error("the label {label} is outside 0..{classes}")]
    LabelOutOfRange {
        /// The label.
        label: String,
        /// The number of classes.
        classes: u64,
    },
    /// Labels that are -1 and one other number.
    #[error("the labels are -1 and {0}: -1 may be a class, or stand for labels that are not known")]
    AmbiguousLabel(String),
    /// A label that is nearly of its own for each node.
    #[error(
        "the labels have {values} different values for {nodes} labelled nodes: they look like measurements or names, \
         not like classes"
    )]
    NoClasses {
        /// How many different values.
        values: u64,
        /// How many nodes have a label.
        nodes: u64,
    },
    /// An index outside its range: negative, too large, or overflowing.
    #[error("the index {index} is outside 0..{limit}")]
    IndexOutOfRange {
        /// The index as it stands in the file.
        index: String,
        /// The first index that is too large.
        limit: u64,
    },
    /// An edge that names a node that is not in the node table.
    #[error("the node {0:?} is not in the node table")]
    UnknownNode(String),
    /// The same node id twice.
    #[error("the node id {id:?} stands already in row {first_row}")]
    DuplicateNode {
        /// The id.
        id: String,
        /// Where it stands first.
        first_row: u64,
    },
    /// Two arrays that must agree in shape do not.
    #[error("the {what} has length {found}, expected {expected}")]
    Length {
        /// The name of what has a length.
        what: String,
        /// The length it has.
        found: u64,
        /// The length it should have.
        expected: u64,
    },
    /// No nodes, no classes: nothing to learn from.
    #[error("the graph has no {0}")]
    Empty(&'static str),
    /// A graph that is said to be undirected but holds a one-way edge.
    #[error("the graph is said to be undirected, but the edge {from} -> {to} has no edge back")]
    OneWayEdge {
        /// Sender.
        from: u64,
        /// Receiver.
        to: u64,
    },
    /// A value that contradicts the rest.
    #[error("{0}")]
    Invalid(String),
    /// A file that could not be downloaded.
    #[error(
        "could not download {url} ({reason}); to do it by hand, download it where there is a network and save it \
         as {target}", target = target.display()
    )]
    Download {
        /// Where from.
        url: String,
        /// The reason.
        reason: String,
        /// Where the file belongs.
        target: PathBuf,
    },
    /// More than this build or machine can hold.
    #[error("{0}")]
    TooLarge(String),
}

/// The columns of one table that must be there and are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoColumns {
    /// The table's file, where it has one.
    pub file: Option<PathBuf>,
    /// The missing ones.
    pub missing: Vec<NoColumn>,
    /// The columns that are there.
    pub found: String,
}

/// A column that must be there and is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoColumn {
    /// What it holds: `id`, `label`, `split`, `source`, `target`.
    pub role: &'static str,
    /// The name that was looked for.
    pub name: String,
    /// Columns that may be meant, the likeliest first.
    pub likely: Vec<String>,
}

fn no_columns(tables: &[NoColumns]) -> String {
    let table = |table: &NoColumns| {
        let one = |column: &NoColumn| format!("no {} column {:?}", column.role, column.name);
        let roles: Vec<String> = table.missing.iter().map(one).collect();
        let file = table.file.as_ref().map(|file| format!(" in {}", file.display())).unwrap_or_default();
        format!("there is {}{file} (found: {})", roles.join(" and "), table.found)
    };
    tables.iter().map(table).collect::<Vec<_>>().join("; ")
}

impl Problem {
    /// The remedy, as the end of a sentence.
    pub fn advice(&self) -> &'static str {
        match self {
            Problem::Io(e) if e.kind() == io::ErrorKind::StorageFull => "free some space and try again",
            Problem::Io(e)
                if matches!(e.kind(), io::ErrorKind::FileTooLarge | io::ErrorKind::QuotaExceeded) =>
            {
                "raise your limit (quota, or ulimit -f) and try again"
            }
            Problem::Io(_) => "check the path and its permissions",
            Problem::NotThere(_) | Problem::UnknownName { .. } => {
                "check the spelling, or give the name of a known data set"
            }
            Problem::Encoding(_) => "say which encoding it has, or save it as UTF-8",
            Problem::Header(_) => "say which it is",
            Problem::NoColumns(_) => "add it, or name the right one",
            Problem::OtherIds { .. } => "name that column",
            Problem::NotRecognised(_) => {
                "give a folder or pair of node and edge tables (.csv, .csv.gz, .csv.zst, .parquet), an .npz, a \
                 .graphml, a \
                 node-link .json, an edge list with labels, a Facebook100 .mat, a .progap file, or the name of a \
                 known data set"
            }
            Problem::NoLabelFile => "give a file with an id and a label in each line",
            Problem::NoEdgeTable => "give both, or the folder that holds both",
            Problem::Truncated(_) | Problem::Corrupt(_) | Problem::Checksum { .. } => {
                "copy or download it again"
            }
            Problem::Unsupported(_) => "convert it to a supported format first",
            Problem::NotAFile(_) => "give the file itself",
            Problem::LeadsOut => "put the file itself there, or do not trust the folder",
            Problem::Expands => "store it unpacked if you trust it",
            Problem::OpenQuote => "close it, or remove it",
            Problem::PickledObjects => {
                "save it again with plain arrays, or where you trust the file let Python do it: import numpy as np, \
                 scipy.sparse as sp; np.savez(\"new.npz\", **{k: v if v.dtype != object else v.astype(str) if v.ndim \
                 else sp.csr_matrix(v.item()) for k, v in np.load(\"old.npz\", allow_pickle=True).items()})"
            }
            Problem::Missing { .. } => "add it, or name the right one",
            Problem::EmptyCell => "fill it in, or drop the row",
            Problem::NotANumber(_) => "correct it, or declare the column categorical",
            Problem::NotADate(_) => {
                "correct it or leave it empty, or take the column as something else than dates"
            }
            Problem::AmbiguousDate(_) => "say which comes first, or write dates as 2024-02-29",
            Problem::DressedNumber(_) => {
                "write plain numbers such as 1234.5, or declare the column categorical"
            }
            Problem::TextAsWeight(_) => "correct it, or leave weights out",
            Problem::NearlyUnique { .. } => {
                "leave the column out, hash its words as a text, or declare it categorical if that is what it is"
            }
            Problem::UnlistedCategory(_) => "correct it, or add it, or a category \"other\", to the list",
            Problem::NotFinite(_) => "replace it by a finite number or drop the row",
            Problem::NotAWeight(_) => "divide weights by a public maximum, and not by the largest of them",
            Problem::LabelOutOfRange { .. } => "correct the label, or drop the node",
            Problem::AmbiguousLabel(_) => "say which labels are not known",
            Problem::NoClasses { .. } => "put the values into a few groups, or name another label",
            Problem::IndexOutOfRange { .. } => "indices count nodes or columns from 0: correct or drop it",
            Problem::UnknownNode(_) => "add the node, or drop the edge",
            Problem::DuplicateNode { .. } => "keep one row per node",
            Problem::Length { .. } => "save arrays that belong to the same nodes",
            Problem::Empty(_) => "give at least one labelled node",
            Problem::OneWayEdge { .. } => "add the missing direction, or drop the claim",
            Problem::Invalid(_) => "correct it and try again",
            Problem::Download { .. } => {
                "then, or when the network is back, run the command again: it goes on where it stopped"
            }
            Problem::TooLarge(_) => "use a smaller graph or a larger machine",
        }
    }

    /// This problem, somewhere in a file that the caller will name.
    pub fn at(self, place: Place) -> Error {
        Error(Box::new(Details { file: None, place: Some(place), problem: self, remedies: vec![] }))
    }

    /// What a caller can do about it, in the column where it lies.
    fn remedies(&self, column: Option<&str>) -> Vec<Remedy> {
        let named = |remedy: fn(String) -> Remedy| column.map(|name| remedy(name.to_string()));
        let of_column =
            |remedies: &[fn(String) -> Remedy]| remedies.iter().copied().filter_map(named).collect();
        match self {
            Problem::NoColumns(tables) => {
                vec![Remedy::Columns(tables.iter().flat_map(|table| table.missing.clone()).collect())]
            }
            Problem::OtherIds { column, .. } => vec![Remedy::Ids(column.clone())],
            Problem::Encoding(encoding) => vec![Remedy::Encoding(*encoding)],
            Problem::Header(_) => vec![Remedy::Header],
            Problem::NearlyUnique { .. } => of_column(&[Remedy::Drop, Remedy::Text, Remedy::Categorical]),
            Problem::NotANumber(_) | Problem::NotADate(_) | Problem::DressedNumber(_) => {
                of_column(&[Remedy::Categorical, Remedy::Drop])
            }
            Problem::AmbiguousDate(_) => of_column(&[Remedy::DateOrder]),
            Problem::Unsupported(_) => of_column(&[Remedy::Drop]),
            Problem::AmbiguousLabel(_) => vec![Remedy::Unknown],
            Problem::NoClasses { .. } if column.is_some() => vec![Remedy::Column("label")],
            Problem::NoClasses { .. } => vec![Remedy::Array("labels")],
            Problem::TextAsWeight(_) => vec![Remedy::NoWeights],
            Problem::NotAWeight(_) => vec![Remedy::WeightBound],
            Problem::UnlistedCategory(_) => vec![Remedy::Declared],
            Problem::NoEdgeTable => vec![Remedy::EdgeFile],
            Problem::NoLabelFile => vec![Remedy::LabelFile],
            Problem::UnknownName { .. } => vec![Remedy::Names],
            _ => Vec::new(),
        }
    }

    /// This problem in a file as a whole.
    pub fn in_file(self, file: &Path) -> Error {
        Error::from(self).in_file(file)
    }
}

impl Error {
    /// The file, where there is one.
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// The place in the file, where it is known.
    pub fn place(&self) -> Option<&Place> {
        self.0.place.as_ref()
    }

    /// The problem.
    pub fn problem(&self) -> &Problem {
        &self.0.problem
    }

    /// What a caller can do about it.
    pub fn remedies(&self) -> Vec<Remedy> {
        let column = match self.place() {
            Some(Place::Cell { column, .. } | Place::Value { column, .. } | Place::Column(column)) => {
                Some(column.as_str())
            }
            _ => None,
        };
        self.0.remedies.iter().cloned().chain(self.problem().remedies(column)).collect()
    }

    /// This error, with what can be done about it.
    #[must_use]
    pub fn remedy(mut self, remedy: Remedy) -> Error {
        self.0.remedies.push(remedy);
        self
    }

    /// Names the file, unless a deeper caller already did.
    #[must_use]
    pub fn in_file(mut self, file: &Path) -> Error {
        self.0.file.get_or_insert_with(|| file.to_path_buf());
        self
    }

    /// The same problem in a file that will have this name.
    #[must_use]
    pub fn moved(mut self, file: &Path) -> Error {
        self.0.file = Some(file.to_path_buf());
        self
    }

    /// The same problem at another place.
    #[must_use]
    pub fn map_place(mut self, map: impl FnOnce(Place) -> Place) -> Error {
        self.0.place = self.0.place.map(map);
        self
    }

    /// Names the place, unless a deeper caller already did.
    #[must_use]
    pub fn at(mut self, place: Place) -> Error {
        self.0.place.get_or_insert(place);
        self
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Error(Box::new(Details { file: None, place: None, problem, remedies: vec![] }))
    }
}

impl From<io::Error> for Error {
    /// An unexpected end is a truncated file, bad data a corrupt one; the rest is the system's.
    fn from(e: io::Error) -> Self {
        match e.kind() {
            _ if e.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<Expands>) => {
                Problem::Expands.into()
            }
            io::ErrorKind::NotFound => Problem::NotThere("file or folder").into(),
            io::ErrorKind::UnexpectedEof => Problem::Truncated(e.to_string()).into(),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                Problem::Corrupt(e.to_string()).into()
            }
            _ => Problem::Io(e).into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Details { file, place, problem, .. } = &*self.0;
        if let Some(file) = file {
            write!(f, "{}: ", file.display())?;
        }
        if let Some(place) = place {
            write!(f, "{place}: ")?;
        }
        write!(f, "{problem}; {}", problem.advice())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.problem() {
            Problem::Io(e) => Some(e),
            _ => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Row(row) => write!(f, "row {row}"),
            Place::Cell { row, column } => write!(f, "row {row}, column {column:?}"),
            Place::Value { node, column } => write!(f, "node {node:?}, value {column:?}"),
            Place::Column(column) => write!(f, "column {column:?}"),
            Place::Key(key) => write!(f, "{key:?}"),
            Place::Element { key, index } => write!(f, "{key:?}[{index}]"),
            Place::Node(node) => write!(f, "node {node}"),
        }
    }
}

/// Names the file in whatever error comes out.
pub trait InFile<T> {
    /// Names the file, unless a deeper caller already did.
    fn in_file(self, file: &Path) -> Result<T>;
}

impl<T, E: Into<Error>> InFile<T> for std::result::Result<T, E> {
    fn in_file(self, file: &Path) -> Result<T> {
        self.map_err(|e| e.into().in_file(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sentence_names_file_place_problem_and_remedy() {
        let place = Place::Cell { row: 17, column: "age".into() };
        let error = Problem::NotFinite(f64::NAN).at(place).in_file(Path::new("nodes.csv"));
        assert_eq!(
            error.to_string(),
            "nodes.csv: row 17, column \"age\": the value NaN is not finite; replace it by a finite number or \
             drop the row"
        );
    }

    #[test]
    fn the_deepest_place_wins() {
        let error = Problem::EmptyCell.at(Place::Row(3)).at(Place::Row(9));
        assert_eq!(error.place(), Some(&Place::Row(3)));
    }
}
