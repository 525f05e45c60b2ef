//! Tables as comma-separated text.

use std::io::{self, Write};
use std::path::Path;

use csv::Writer;
use flate2::write::GzEncoder;

use super::TableFormat;
use crate::AtomicFile;
use crate::{Dataset, NodeIds, Part, Result};

/// Writes the table of nodes.
pub(super) fn write_nodes(
    dataset: &Dataset,
    names: &[String],
    path: &Path,
    format: TableFormat,
) -> Result<()> {
    let mut table = Table::create(path, format)?;
    table.writer.write_record(names).map_err(io_error)?;
    let mut values = vec![0f32; dataset.features().columns()];
    let mut text = Vec::new();
    for node in 0..dataset.nodes() {
        table.id(dataset.node_ids(), node, &mut text)?;
        let class = dataset.label(node).map_or("", |class| &dataset.class_names()[class as usize]);
        table.field(class.as_bytes())?;
        if let Some(split) = dataset.split() {
            table.field(Part::name(split.part(node)).as_bytes())?;
        }
        values.fill(0.0);
        dataset.features().row(node).for_each(|(column, value)| values[column] = value);
        for &value in &values {
            write_number(value, &mut text)?;
            table.field(&text)?;
        }
        table.end_row()?;
    }
    table.finish()
}

/// Writes the table of edges.
pub(super) fn write_edges(dataset: &Dataset, path: &Path, format: TableFormat) -> Result<()> {
    let mut table = Table::create(path, format)?;
    let weighted = dataset.graph().weights().is_some();
    let names = ["source", "target", "weight"];
    table.writer.write_record(&names[..if weighted { 3 } else { 2 }]).map_err(io_error)?;
    let mut text = Vec::new();
    for (source, target, weight) in dataset.graph().iter_weighted_edges() {
        table.id(dataset.node_ids(), source as usize, &mut text)?;
        table.id(dataset.node_ids(), target as usize, &mut text)?;
        if weighted {
            write_number(weight, &mut text)?;
            table.field(&text)?;
        }
        table.end_row()?;
    }
    table.finish()
}

/// The shortest text that reads back as the same bits.
fn write_number(value: f32, text: &mut Vec<u8>) -> io::Result<()> {
    text.clear();
    match value.abs() {
        0.0 | 1e-4..1e9 => write!(text, "{value}"),
        _ => write!(text, "{value:e}"),
    }
}

/// A text table while it is written.
struct Table {
    writer: Writer<Packed>,
}

impl Table {
    fn create(path: &Path, format: TableFormat) -> Result<Table> {
        let file = AtomicFile::create(path)?;
        let packed = match format {
            TableFormat::CsvGz => Packed::Gzip(GzEncoder::new(file, flate2::Compression::default())),
            TableFormat::CsvZst => {
                let mut encoder = zstd::stream::write::Encoder::new(file, 3)?;
                encoder.include_checksum(true)?;
                Packed::Zstd(encoder)
            }
            TableFormat::Csv | TableFormat::Parquet => Packed::Not(file),
        };
        Ok(Table { writer: csv::WriterBuilder::new().buffer_capacity(1 << 16).from_writer(packed) })
    }

    fn field(&mut self, text: &[u8]) -> Result<()> {
        Ok(self.writer.write_field(text).map_err(io_error)?)
    }

    fn id(&mut self, ids: &NodeIds, node: usize, text: &mut Vec<u8>) -> Result<()> {
        text.clear();
        match ids {
            NodeIds::Position => write!(text, "{node}")?,
            NodeIds::Integers(ids) => write!(text, "{}", ids[node])?,
            NodeIds::Text { bytes, offsets } => {
                return self.field(&bytes[offsets[node] as usize..offsets[node + 1] as usize]);
            }
        }
        self.field(text)
    }

    fn end_row(&mut self) -> Result<()> {
        Ok(self.writer.write_record(None::<&[u8]>).map_err(io_error)?)
    }

    fn finish(self) -> Result<()> {
        let packed = self.writer.into_inner().map_err(|e| io::Error::other(e.to_string()))?;
        let file = match packed {
            Packed::Not(file) => file,
            Packed::Gzip(encoder) => encoder.finish()?,
            Packed::Zstd(encoder) => encoder.finish()?,
        };
        file.commit()
    }
}

fn io_error(error: csv::Error) -> io::Error {
    error.into()
}

enum Packed {
    Not(AtomicFile),
    Gzip(GzEncoder<AtomicFile>),
    Zstd(zstd::stream::write::Encoder<'static, AtomicFile>),
}

impl Write for Packed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Packed::Not(file) => file.write(bytes),
            Packed::Gzip(encoder) => encoder.write(bytes),
            Packed::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Packed::Not(file) => file.flush(),
            // A flush in the middle would only make the packed stream longer.
            Packed::Gzip(_) | Packed::Zstd(_) => Ok(()),
        }
    }
}
