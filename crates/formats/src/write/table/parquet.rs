//! Tables as Parquet files.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, FloatType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use super::ColumnValues;
use crate::AtomicFile;
use crate::{Dataset, Error, NodeIds, Problem, Result};

/// How many rows are written, and later read, as one group.
const GROUP: usize = 1 << 17;
const EDGE_GROUP: usize = 1 << 20;

/// Writes the table of nodes.
pub(super) fn write_nodes(dataset: &Dataset, names: &[String], path: &Path) -> Result<()> {
    let mut kinds = vec![id_kind(dataset.node_ids()), Kind::Text];
    kinds.extend(dataset.split().map(|_| Kind::Text));
    let described = kinds.len();
    kinds.resize(names.len(), Kind::Number);
    let mut file = create(path, names, &kinds)?;
    for first in (0..dataset.nodes()).step_by(GROUP) {
        let rows = first..(first + GROUP).min(dataset.nodes());
        let mut group = file.next_row_group().map_err(failed)?;
        put_ids(&mut group, dataset.node_ids(), rows.clone())?;
        let classes: Vec<ByteArray> = dataset.class_names().iter().map(|name| name.as_str().into()).collect();
        // A text of no letters is read as no label.
        let class =
            |node| dataset.label(node).map_or_else(|| "".into(), |class| classes[class as usize].clone());
        put::<ByteArrayType>(&mut group, &rows.clone().map(class).collect::<Vec<ByteArray>>())?;
        if let Some(split) = dataset.split() {
            let parts: Vec<ByteArray> = rows.clone().map(|node| split.part(node).name().into()).collect();
            put::<ByteArrayType>(&mut group, &parts)?;
        }
        // The values are stored by row, the file wants them by column.
        let mut columns: Vec<Vec<(u32, f32)>> = vec![Vec::new(); names.len() - described];
        for row in rows.clone() {
            for (column, value) in dataset.features().row(row) {
                columns[column].push(((row - first) as u32, value));
            }
        }
        let mut values = vec![0f32; rows.len()];
        for column in columns {
            values.fill(0.0);
            column.into_iter().for_each(|(row, value)| values[row as usize] = value);
            put::<FloatType>(&mut group, &values)?;
        }
        group.close().map_err(failed)?;
    }
    file.into_inner().map_err(failed)?.commit()
}

/// Writes the table of edges.
pub(super) fn write_edges(dataset: &Dataset, path: &Path) -> Result<()> {
    let ids = dataset.node_ids();
    let columns = if dataset.graph().weights().is_some() { 3 } else { 2 };
    let names = ["source", "target", "weight"].map(String::from);
    let kinds = [id_kind(ids), id_kind(ids), Kind::Number];
    let mut file = create(path, &names[..columns], &kinds[..columns])?;
    let mut edges = dataset.graph().iter_weighted_edges();
    loop {
        let (mut sources, mut targets, mut weights) = (vec![], vec![], vec![]);
        for (source, target, weight) in edges.by_ref().take(EDGE_GROUP) {
            sources.push(source);
            targets.push(target);
            weights.push(weight);
        }
        if sources.is_empty() {
            break;
        }
        let mut group = file.next_row_group().map_err(failed)?;
        for nodes in [sources, targets] {
            put_ids(&mut group, ids, nodes.into_iter().map(|node: u32| node as usize))?;
        }
        if columns == 3 {
            put::<FloatType>(&mut group, &weights)?;
        }
        group.close().map_err(failed)?;
    }
    file.into_inner().map_err(failed)?.commit()
}

/// Writes columns of equal length, such as predictions, as one table.
pub(super) fn write_columns(columns: &[(String, ColumnValues)], path: &Path) -> Result<()> {
    let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
    let kind = |(_, values): &(String, ColumnValues)| match values {
        ColumnValues::Text(_) => Kind::Text,
        ColumnValues::Numbers(_) => Kind::Number,
    };
    let mut file = create(path, &names, &columns.iter().map(kind).collect::<Vec<_>>())?;
    let mut group = file.next_row_group().map_err(failed)?;
    for (_, values) in columns {
        match values {
            ColumnValues::Text(texts) => {
                let texts: Vec<ByteArray> = texts.iter().map(|text| text.as_str().into()).collect();
                put::<ByteArrayType>(&mut group, &texts)?;
            }
            ColumnValues::Numbers(numbers) => put::<FloatType>(&mut group, numbers)?,
        }
    }
    group.close().map_err(failed)?;
    file.into_inner().map_err(failed)?.commit()
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Integer,
    Number,
    Text,
}

fn id_kind(ids: &NodeIds) -> Kind {
    match ids {
        NodeIds::Position | NodeIds::Integers(_) => Kind::Integer,
        NodeIds::Text { .. } => Kind::Text,
    }
}

fn create(path: &Path, names: &[String], kinds: &[Kind]) -> Result<SerializedFileWriter<AtomicFile>> {
    let column = |(name, kind): (&String, &Kind)| {
        let (physical, logical) = match kind {
            Kind::Integer => (Physical::INT64, None),
            Kind::Number => (Physical::FLOAT, None),
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let builder = Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED);
        builder.with_logical_type(logical).build().map(Arc::new).map_err(failed)
    };
    let fields: Result<Vec<_>> = names.iter().zip(kinds).map(column).collect();
    let schema = Type::group_type_builder("schema").with_fields(fields?).build().map_err(failed)?;
    let level = ZstdLevel::try_new(1).map_err(failed)?;
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
    let file = AtomicFile::create(path)?;
    SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)).map_err(failed)
}

fn put_ids(
    group: &mut SerializedRowGroupWriter<'_, AtomicFile>,
    ids: &NodeIds,
    nodes: impl Iterator<Item = usize>,
) -> Result<()> {
    match ids {
        NodeIds::Position => put::<Int64Type>(group, &nodes.map(|node| node as i64).collect::<Vec<_>>()),
        NodeIds::Integers(ids) => put::<Int64Type>(group, &nodes.map(|node| ids[node]).collect::<Vec<_>>()),
        NodeIds::Text { bytes, offsets } => {
            let range = |node: usize| -> Range<usize> { offsets[node] as usize..offsets[node + 1] as usize };
            let texts: Vec<ByteArray> = nodes.map(|node| bytes[range(node)].to_vec().into()).collect();
            put::<ByteArrayType>(group, &texts)
        }
    }
}

/// Writes the next column of a group of rows.
fn put<T: DataType>(group: &mut SerializedRowGroupWriter<'_, AtomicFile>, values: &[T::T]) -> Result<()> {
    let column = group.next_column().map_err(failed)?;
    let Some(mut column) = column else {
        return Err(Problem::Invalid("the table has more columns than its schema".into()).into());
    };
    column.typed::<T>().write_batch(values, None, None).map_err(failed)?;
    column.close().map_err(failed)
}

fn failed(error: ParquetError) -> Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(e) => (*e).into(),
            Err(other) => Problem::Invalid(other.to_string()).into(),
        },
        other => Problem::Invalid(other.to_string()).into(),
    }
}
