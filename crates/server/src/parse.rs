//! Bodies of requests: what they ask, read without looking at any release.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use progap_formats::read::table;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::error::Refusal;

type Checked<T> = std::result::Result<T, Refusal>;

/// A value of a tensor or of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell<'a> {
    Missing,
    Bool(bool),
    Integer(i64),
    Unsigned(u64),
    Number(f64),
    Text(Cow<'a, str>),
}

impl Cell<'_> {
    /// As tables have it: a text may stand for a number, as in CSV.
    fn of_table(&self) -> table::Cell<'_> {
        match self {
            Cell::Missing => table::Cell::Empty,
            Cell::Bool(value) => table::Cell::Bool(*value),
            Cell::Integer(value) => table::Cell::Integer(*value),
            Cell::Unsigned(value) => table::Cell::Unsigned(*value),
            Cell::Number(value) => table::Cell::Number(*value),
            Cell::Text(text) => table::Cell::Untyped(text),
        }
    }

    /// As the text of an id.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Cell::Missing => Cow::Borrowed(""),
            Cell::Bool(value) => Cow::Borrowed(if *value { "true" } else { "false" }),
            Cell::Integer(value) => Cow::Owned(value.to_string()),
            Cell::Unsigned(value) => Cow::Owned(value.to_string()),
            Cell::Number(value) => Cow::Owned(value.to_string()),
            Cell::Text(text) => Cow::Borrowed(text),
        }
    }
}

/// What is asked of the Open Inference Protocol.
#[derive(Debug, Deserialize)]
pub(crate) struct InferRequest<'a> {
    #[serde(default)]
    pub id: Option<String>,
    #[serde(borrow)]
    pub inputs: Vec<Tensor<'a>>,
    #[serde(default)]
    pub outputs: Option<Vec<OutputName>>,
}

/// An input of the Open Inference Protocol.
#[derive(Debug, Deserialize)]
pub(crate) struct Tensor<'a> {
    pub name: String,
    pub shape: Vec<u64>,
    pub datatype: Datatype,
    #[serde(borrow)]
    pub data: Cells<'a>,
}

/// An output that is asked for.
#[derive(Debug, Deserialize)]
pub(crate) struct OutputName {
    pub name: String,
}

/// The types of the Open Inference Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Datatype {
    Bool,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Int8,
    Int16,
    Int32,
    Int64,
    Fp16,
    Fp32,
    Fp64,
    Bytes,
}

impl Datatype {
    fn holds(self, cell: &Cell<'_>) -> bool {
        match cell {
            // Where a value is missing a list has none, whatever its type.
            Cell::Missing => true,
            Cell::Text(_) => self == Datatype::Bytes,
            Cell::Bool(_) => self == Datatype::Bool,
            Cell::Integer(_) | Cell::Unsigned(_) => !matches!(self, Datatype::Bytes | Datatype::Bool),
            Cell::Number(_) => matches!(self, Datatype::Fp16 | Datatype::Fp32 | Datatype::Fp64),
        }
    }
}

impl InferRequest<'_> {
    /// Reads a request and checks what can be checked without a release.
    pub fn parse(body: &[u8]) -> Checked<InferRequest<'_>> {
        let request: InferRequest<'_> = json(body)?;
        if request.inputs.is_empty() {
            return Err(Refusal::bad("there are no inputs: give one, called id or by the name of a column"));
        }
        let rows = request.rows();
        for tensor in &request.inputs {
            let name = &tensor.name;
            let count = tensor.shape.iter().try_fold(1u64, |product, &size| product.checked_mul(size));
            if tensor.shape.is_empty()
                || tensor.shape.len() > 2
                || tensor.shape.get(1).is_some_and(|&width| width != 1)
            {
                return Err(Refusal::bad(format!(
                    "input {name:?}: its shape is {:?}; give [rows] or [rows, 1]",
                    tensor.shape
                )));
            }
            if count != Some(tensor.data.0.len() as u64) {
                return Err(Refusal::bad(format!(
                    "input {name:?}: its shape is {:?}, and there are {} values",
                    tensor.shape,
                    tensor.data.0.len()
                )));
            }
            if tensor.data.0.len() != rows {
                return Err(Refusal::bad(format!(
                    "input {name:?}: it has {} rows, and the first input {rows}",
                    tensor.data.0.len()
                )));
            }
            if let Some(at) = tensor.data.0.iter().position(|cell| !tensor.datatype.holds(cell)) {
                return Err(Refusal::bad(format!("input {name:?}: value {at} is not of its datatype")));
            }
        }
        let mut names: Vec<&str> = request.inputs.iter().map(|tensor| tensor.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Refusal::bad(format!("two inputs are called {:?}", twice[0])));
        }
        match rows {
            0 => Err(Refusal::bad("there are no rows")),
            _ => Ok(request),
        }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.inputs.first().map_or(0, |tensor| tensor.data.0.len())
    }

    /// The columns of a table; its rows are numbered where they have no ids.
    pub fn columns(&self) -> Columns<'_> {
        let mut columns = vec![];
        for Tensor { name, data, .. } in &self.inputs {
            columns.push((name.as_str(), data.0.iter().map(Cell::of_table).collect()));
        }
        numbered(columns, self.rows())
    }
}

/// The values of a tensor, flat or as nested lists.
#[derive(Debug)]
pub(crate) struct Cells<'a>(pub Vec<Cell<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Cells<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut cells = vec![];
        deserializer.deserialize_seq(Flat { cells: &mut cells, list: true })?;
        Ok(Cells(cells))
    }
}

/// Adds a value, or all of a list, to the values so far.
struct Flat<'c, 'a> {
    cells: &'c mut Vec<Cell<'a>>,
    list: bool,
}

impl<'de: 'a, 'a> DeserializeSeed<'de> for Flat<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Flat<'_, 'a> {
    fn add<E: serde::de::Error>(self, cell: Cell<'a>) -> Result<(), E> {
        if self.list {
            return Err(E::custom("data must be a list"));
        }
        self.cells.push(cell);
        Ok(())
    }
}

impl<'de: 'a, 'a> Visitor<'de> for Flat<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers, texts and truth values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Flat { cells: &mut *self.cells, list: false })?.is_some() {}
        Ok(())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.add(Cell::Missing)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.add(Cell::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.add(Cell::Integer(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.add(i64::try_from(value).map_or(Cell::Unsigned(value), Cell::Integer))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.add(Cell::Number(value))
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, text: &'de str) -> Result<(), E> {
        self.add(Cell::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.add(Cell::Text(Cow::Owned(text.to_string())))
    }
}

/// Nodes of a release that are asked about.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodesRequest {
    pub ids: Vec<String>,
    #[serde(default)]
    pub model: Option<String>,
}

impl NodesRequest {
    pub fn parse(body: &[u8]) -> Checked<NodesRequest> {
        let request: NodesRequest = json(body)?;
        match request.ids.is_empty() {
            true => Err(Refusal::bad("there are no ids")),
            false => Ok(request),
        }
    }
}

/// New rows that are asked about.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RowsRequest<'a> {
    #[serde(borrow)]
    pub rows: Vec<Row<'a>>,
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub lenient: bool,
}

/// The values of a row, by the names of columns.
#[derive(Debug)]
pub(crate) struct Row<'a>(Vec<(Cow<'a, str>, Cell<'a>)>);

impl<'a> RowsRequest<'a> {
    pub fn parse(body: &'a [u8]) -> Checked<RowsRequest<'a>> {
        let request: RowsRequest<'a> = json(body)?;
        match request.rows.is_empty() {
            true => Err(Refusal::bad("there are no rows")),
            false => Ok(request),
        }
    }

    /// The columns of a table, all that any of the rows has; the rows are numbered where they have no ids.
    pub fn columns(&self) -> Checked<Columns<'_>> {
        const MAX_COLUMNS: usize = 1 << 12;
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut names: Vec<&str> = vec![];
        for (name, _) in self.rows.iter().flat_map(|row| &row.0) {
            places.entry(name).or_insert_with(|| {
                names.push(name);
                names.len() - 1
            });
            if names.len() > MAX_COLUMNS {
                return Err(Refusal::bad(format!("the rows have more than {MAX_COLUMNS} columns together")));
            }
        }
        // A short body must not become a large table of what is missing.
        let given: usize = self.rows.iter().map(|row| row.0.len()).sum();
        if names.len().saturating_mul(self.rows.len()) > 4 * given + 1024 {
            return Err(Refusal::bad(
                "most rows lack most columns: give each row a value for each column, or null",
            ));
        }
        let mut columns: Columns<'_> = names.iter().map(|&name| (name, vec![])).collect();
        for (at, row) in self.rows.iter().enumerate() {
            for (name, cell) in &row.0 {
                let cells = &mut columns[places[&**name]].1;
                if cells.len() > at {
                    return Err(Refusal::bad(format!("row {at}: the column {name:?} stands there twice")));
                }
                cells.push(cell.of_table());
            }
            // Where a row has no value it is missing.
            columns.iter_mut().for_each(|(_, cells)| cells.resize(at + 1, table::Cell::Empty));
        }
        Ok(numbered(columns, self.rows.len()))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Row<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Cells<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Cells<'a> {
            type Value = Row<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with a value for each column")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row<'a>, A::Error> {
                let (mut row, mut cell) = (vec![], vec![]);
                while let Some(Name(name)) = map.next_key::<Name<'a>>()? {
                    map.next_value_seed(Flat { cells: &mut cell, list: false })?;
                    let value = cell.pop().filter(|_| cell.is_empty());
                    row.push((
                        name,
                        value.ok_or_else(|| A::Error::custom("a column has one value, and not a list"))?,
                    ));
                }
                Ok(Row(row))
            }
        }
        deserializer.deserialize_map(Cells(std::marker::PhantomData))
    }
}

/// A text that is borrowed where it can be.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Columns of a table, each with its name.
pub(crate) type Columns<'a> = Vec<(&'a str, Vec<table::Cell<'a>>)>;

/// The same with a column `id`, where there is none.
fn numbered(mut columns: Columns<'_>, rows: usize) -> Columns<'_> {
    if columns.iter().all(|(name, _)| *name != "id") {
        columns.push(("id", (0..rows as i64).map(table::Cell::Integer).collect()));
    }
    columns
}

fn json<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Checked<T> {
    serde_json::from_slice(body)
        .map_err(|error| Refusal::bad(format!("the body is not what is expected (JSON): {error}")))
}

/// Reads bytes as the body of every kind of request; for fuzzing.
pub fn parse_anything(body: &[u8]) {
    if let Ok(request) = InferRequest::parse(body) {
        let _ = request.columns();
    }
    let _ = NodesRequest::parse(body);
    if let Ok(request) = RowsRequest::parse(body) {
        let _ = request.columns();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> String {
        InferRequest::parse(body.as_bytes()).expect_err(body).error
    }

    #[test]
    fn tensors_are_read_flat_or_nested_and_become_a_table() {
        let body = r#"{"id":"7","inputs":[
            {"name":"pay; net","shape":[2],"datatype":"FP64","data":[1.5,null]},
            {"name":"town","shape":[2,1],"datatype":"BYTES","data":[["Oslo"],["a,\"b\"\nc"]]},
            {"name":"smokes","shape":[2],"datatype":"BOOL","data":[true,false]}]}"#;
        let request = InferRequest::parse(body.as_bytes()).expect("a request");
        let expected: Columns<'_> = vec![
            ("pay; net", vec![table::Cell::Number(1.5), table::Cell::Empty]),
            ("town", vec![table::Cell::Untyped("Oslo"), table::Cell::Untyped("a,\"b\"\nc")]),
            ("smokes", vec![table::Cell::Bool(true), table::Cell::Bool(false)]),
            ("id", vec![table::Cell::Integer(0), table::Cell::Integer(1)]),
        ];
        assert_eq!(request.columns(), expected);
    }

    #[test]
    fn tensors_that_do_not_fit_together_are_refused_in_words() {
        let one = |shape: &str, datatype: &str, data: &str| {
            refused(&format!(
                r#"{{"inputs":[{{"name":"a","shape":{shape},"datatype":"{datatype}","data":{data}}}]}}"#
            ))
        };
        assert!(one("[2]", "FP32", "[1]").contains("there are 1 values"));
        assert!(one("[1,2]", "FP32", "[1,2]").contains("[rows, 1]"));
        assert!(one("[]", "FP32", "[1]").contains("[rows, 1]"));
        assert!(one("[18446744073709551615,18446744073709551615]", "FP32", "[1]").contains("shape"));
        assert!(one("[1]", "INT8", "[1.5]").contains("datatype"));
        assert!(one("[1]", "BYTES", "[1]").contains("datatype"));
        assert!(one("[0]", "BYTES", "[]").contains("no rows"));
        assert!(one("[1]", "TEXT", "[1]").contains("unknown variant"));
        assert!(one("[1]", "FP32", "1").contains("list"));
        assert!(refused(r#"{"inputs":[]}"#).contains("no inputs"));
        assert!(refused("{").contains("JSON"));
        let twice = r#"{"name":"a","shape":[1],"datatype":"INT8","data":[1]}"#;
        assert!(refused(&format!(r#"{{"inputs":[{twice},{twice}]}}"#)).contains("two inputs"));
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(one("[1]", "FP32", &deep).contains("recursion"));
    }

    #[test]
    fn rows_have_all_columns_that_any_of_them_has() {
        let body = r#"{"rows":[{"id":"x","a":1},{"b":null,"id":2}]}"#;
        let request = RowsRequest::parse(body.as_bytes()).expect("rows");
        let expected: Columns<'_> = vec![
            ("id", vec![table::Cell::Untyped("x"), table::Cell::Integer(2)]),
            ("a", vec![table::Cell::Integer(1), table::Cell::Empty]),
            ("b", vec![table::Cell::Empty, table::Cell::Empty]),
        ];
        assert_eq!(request.columns().expect("columns"), expected);
        let rows = |body: &str| {
            RowsRequest::parse(body.as_bytes()).and_then(|request| request.columns().map(|_| ()))
        };
        assert!(rows(r#"{"rows":[{"a":1,"a":2}]}"#).expect_err("twice").error.contains("twice"));
        assert!(rows(r#"{"rows":[{"a":[1]}]}"#).is_ok());
        let wide = (0..200).map(|at| format!("\"c{at}\":1")).collect::<Vec<_>>().join(",");
        let thin = vec!["{}"; 2000].join(",");
        assert!(rows(&format!("{{\"rows\":[{{{wide}}},{thin}]}}")).expect_err("thin").error.contains("lack"));
        assert!(rows(r#"{"rows":[{"a":[1,2]}]}"#).expect_err("a list").error.contains("one value"));
        assert!(rows(r#"{"rows":[]}"#).expect_err("none").error.contains("no rows"));
    }
}
