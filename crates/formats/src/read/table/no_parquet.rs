//! Stands where Parquet files are read, in a build without the feature `parquet`.

use super::Origin;
use super::index::NodeIndex;
use super::new_nodes::Sheet;
use super::nodes::Nodes;
use crate::read::LoadOptions;
use crate::read::columns::ColumnReport;
use crate::{Graph, Problem, Result};

pub(super) fn names(_: &Origin) -> Result<Vec<String>> {
    absent()
}

pub(super) fn read_nodes(_: &Origin, _: &LoadOptions) -> Result<Nodes> {
    absent()
}

pub(super) fn read_new_nodes<'k>(
    _: &Origin,
    _: &dyn Fn(Vec<String>, bool) -> Result<Sheet<'k>>,
) -> Result<Sheet<'k>> {
    absent()
}

pub(super) fn read_edges(
    _: &Origin,
    _: &LoadOptions,
    _: &NodeIndex,
    _: usize,
) -> Result<(Graph, Option<ColumnReport>)> {
    absent()
}

pub(super) fn is_guarded() -> bool {
    false
}

fn absent<T>() -> Result<T> {
    Err(Problem::Unsupported("this build reads no Parquet files (feature parquet)".into()).into())
}
