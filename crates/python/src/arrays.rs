//! Arrays of NumPy as parts of a data set: checked, and copied or lent.

use std::sync::Arc;

use numpy::ndarray::Dimension;
use numpy::{PyReadonlyArray, PyReadonlyArray1, PyReadonlyArray2};
use progap_formats::read::npz::Dense;
use progap_graph::{Buffer, Features, NodeIds, Part, Place, Problem, Result, Split, single};
use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::lent::{Lenders, Lent};

/// Whole numbers in either width.
#[derive(FromPyObject)]
pub enum Whole<'py> {
    Long(PyReadonlyArray1<'py, i64>),
    Short(PyReadonlyArray1<'py, i32>),
}

/// A matrix in either precision.
#[derive(FromPyObject)]
pub enum Matrix<'py> {
    Single(PyReadonlyArray2<'py, f32>),
    Double(PyReadonlyArray2<'py, f64>),
}

/// Sparse rows: where each begins, columns, values, and the number of columns.
type Rows<'py> = (Whole<'py>, Whole<'py>, PyReadonlyArray1<'py, f32>, usize);

/// Features as they come.
#[derive(FromPyObject)]
pub enum Given<'py> {
    Dense(Matrix<'py>),
    Sparse(Rows<'py>),
}

/// Node ids as the caller has them.
#[derive(FromPyObject)]
pub enum Ids<'py> {
    Numbers(PyReadonlyArray1<'py, i64>),
    Texts(Vec<String>),
}

impl Whole<'_> {
    /// The numbers, each of which must be below a limit.
    pub fn below(&self, limit: u64, key: &str) -> Result<Vec<u32>> {
        match self {
            Whole::Long(array) => below(array.as_array().iter().copied(), limit, key),
            Whole::Short(array) => below(array.as_array().iter().map(|&number| number.into()), limit, key),
        }
    }
}

fn below(numbers: impl ExactSizeIterator<Item = i64>, limit: u64, key: &str) -> Result<Vec<u32>> {
    let mut kept = Vec::with_capacity(numbers.len());
    for (index, number) in numbers.enumerate() {
        kept.push(checked(number, index, limit, key)?);
    }
    Ok(kept)
}

fn checked(number: i64, index: usize, limit: u64, key: &str) -> Result<u32> {
    match u32::try_from(number) {
        Ok(small) if u64::from(small) < limit => Ok(small),
        _ => {
            let place = Place::Element { key: key.into(), index: index as u64 };
            Err(Problem::IndexOutOfRange { index: number.to_string(), limit }.at(place))
        }
    }
}

/// Features as a data set holds them, NaN as a value that is missing; what nobody can write to, and has none, is lent.
pub fn features(
    py: Python<'_>,
    given: Option<Given<'_>>,
    nodes: usize,
    lenders: &mut Lenders,
) -> PyResult<Dense> {
    let features = match given {
        None => return Ok(Features::none().into()),
        Some(Given::Dense(matrix)) => {
            let (rows, columns) = match &matrix {
                Matrix::Single(array) => array.as_array().dim(),
                Matrix::Double(array) => array.as_array().dim(),
            };
            check_rows(rows, nodes).or_raise(py)?;
            if columns == 0 {
                return Ok(Features::none().into());
            }
            let values = match &matrix {
                Matrix::Single(array) if array.as_array().iter().any(|value| value.is_nan()) => {
                    array.as_array().iter().copied().collect::<Vec<f32>>().into()
                }
                Matrix::Single(array) => singles(array, lenders)?,
                Matrix::Double(array) => {
                    let kept = |value: f64| if value.is_nan() { f32::NAN } else { single(value) };
                    array.as_array().iter().map(|&value| kept(value)).collect::<Vec<f32>>().into()
                }
            };
            Dense::of(values, nodes, columns)
        }
        Some(Given::Sparse((offsets, indices, values, columns))) => {
            let ends = offsets.below(u64::from(u32::MAX) + 1, "x.indptr").or_raise(py)?;
            check_rows(ends.len().saturating_sub(1), nodes).or_raise(py)?;
            let offsets: Vec<u64> = ends.into_iter().map(u64::from).collect();
            let indices = match &indices {
                Whole::Short(array) => positions(py, array, columns as u64, lenders)?,
                Whole::Long(_) => indices.below(columns as u64, "x.indices").or_raise(py)?.into(),
            };
            let values = singles(&values, lenders)?;
            Features::sparse(nodes, columns, offsets, indices, Some(values)).map(Dense::from)
        }
    };
    features.map_err(|error| error.at(Place::Key("x".into()))).or_raise(py)
}

/// Values as they are: lent, or copied in their order.
fn singles<D: Dimension>(
    array: &PyReadonlyArray<'_, f32, D>,
    lenders: &mut Lenders,
) -> PyResult<Buffer<f32>> {
    Ok(match lenders.lend(array)? {
        Some(lent) => Buffer::lent(Arc::new(lent)),
        None => array.as_array().iter().copied().collect::<Vec<f32>>().into(),
    })
}

/// Columns of sparse rows, each below a limit: lent, or copied.
fn positions(
    py: Python<'_>,
    array: &PyReadonlyArray1<'_, i32>,
    limit: u64,
    lenders: &mut Lenders,
) -> PyResult<Buffer<u32>> {
    let Some(lent) = lenders.lend(array)? else {
        let numbers = array.as_array();
        return below(numbers.iter().map(|&n| n.into()), limit, "x.indices").or_raise(py).map(Into::into);
    };
    for (index, &number) in lent.values().iter().enumerate() {
        checked(number.into(), index, limit, "x.indices").or_raise(py)?;
    }
    Ok(Buffer::lent(Arc::new(Positions(lent))))
}

/// Whole numbers of which none is negative.
struct Positions(Lent<i32>);

impl AsRef<[u32]> for Positions {
    fn as_ref(&self) -> &[u32] {
        bytemuck::cast_slice(self.0.values())
    }
}

fn check_rows(rows: usize, nodes: usize) -> Result<()> {
    if rows == nodes {
        return Ok(());
    }
    let problem =
        Problem::Length { what: "feature matrix".into(), found: rows as u64, expected: nodes as u64 };
    Err(problem.at(Place::Key("x".into())))
}

pub fn node_ids(ids: Option<Ids<'_>>, nodes: usize) -> Result<NodeIds> {
    let ids = match ids {
        None => return Ok(NodeIds::Position),
        Some(Ids::Numbers(array)) => NodeIds::from_integers(array.as_array().iter().copied().collect()),
        Some(Ids::Texts(texts)) => NodeIds::from_texts(texts),
    };
    let known = match &ids {
        NodeIds::Position => nodes,
        NodeIds::Integers(ids) => ids.len(),
        NodeIds::Text { offsets, .. } => offsets.len() - 1,
    };
    let mut seen = std::collections::HashMap::with_capacity(known);
    for node in 0..known {
        if let Some(first) = seen.insert(ids.name(node), node) {
            let problem =
                Problem::Invalid(format!("the id {:?} is that of node {first}, too", ids.name(node)));
            return Err(problem.at(Place::Node(node as u64)));
        }
    }
    Ok(ids)
}

pub fn split(parts: Option<PyReadonlyArray1<'_, u8>>) -> Option<Split> {
    let part = |&code: &u8| match code {
        1 => Part::Train,
        2 => Part::Val,
        3 => Part::Test,
        _ => Part::Unused,
    };
    Some(Split::from_parts(parts?.as_array().iter().map(part)))
}
