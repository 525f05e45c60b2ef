//! Stands where Parquet files are written, in a build without the feature `parquet`.

use std::path::Path;

use super::ColumnValues;
use crate::{Dataset, Problem, Result};

pub(super) fn write_nodes(_: &Dataset, _: &[String], _: &Path) -> Result<()> {
    absent()
}

pub(super) fn write_edges(_: &Dataset, _: &Path) -> Result<()> {
    absent()
}

pub(super) fn write_columns(_: &[(String, ColumnValues)], _: &Path) -> Result<()> {
    absent()
}

fn absent() -> Result<()> {
    Err(Problem::Unsupported("this build writes no Parquet files (feature parquet)".into()).into())
}
