//! Predictions as CSV, JSON and Parquet.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use progap::Release;
use progap::release::Predictions;
use progap_export::Made;
use progap_formats::write::table::{ColumnValues, write_columns};
use progap_graph::{Dataset, Problem};

use crate::command::Outcome;

/// The nodes that predictions are about.
pub enum Subject<'a> {
    /// Those of the release.
    Own(&'a Release),
    /// Others, with what the model says about all of them.
    Later(&'a Dataset, &'a Predictions),
}

impl Subject<'_> {
    /// Their ids and classes.
    pub fn dataset(&self) -> &Dataset {
        match self {
            Subject::Own(release) => release.nodes(),
            Subject::Later(rows, _) => rows,
        }
    }

    /// What the model says about some of them.
    pub fn predict(&self, nodes: &[u32]) -> Result<Predictions, progap::Error> {
        match self {
            Subject::Own(release) => release.predict_nodes(nodes),
            Subject::Later(_, found) => Ok((*found).clone()),
        }
    }

    fn predict_in_blocks(&self, nodes: &[u32], mut take: impl FnMut(Predictions) -> Outcome) -> Outcome {
        match self {
            Subject::Own(release) => release.predict_in_blocks(nodes, take),
            Subject::Later(_, found) => take((*found).clone()),
        }
    }
}

/// The form of a file.
#[derive(Clone, Copy)]
pub enum Format {
    /// `.csv`.
    Csv,
    /// `.json`.
    Json,
    /// `.parquet`.
    Parquet,
}

impl Format {
    /// By the ending of its name.
    pub fn of(path: &Path) -> Result<Format, String> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("csv") => Ok(Format::Csv),
            Some("json") => Ok(Format::Json),
            Some("parquet") => Ok(Format::Parquet),
            _ => Err(format!("{}: give a file that ends in .csv, .json or .parquet", path.display())),
        }
    }
}

/// An error of writing, with the file that could not be written.
pub fn naming(path: &Path, error: Box<dyn std::error::Error>) -> Box<dyn std::error::Error> {
    let error = match error.downcast::<csv::Error>() {
        Ok(error) => Ok(Box::new(std::io::Error::from(*error))),
        Err(error) => error.downcast::<std::io::Error>(),
    };
    match error {
        Ok(error) => Problem::Io(*error).in_file(path).into(),
        Err(error) => error,
    }
}

/// What every prediction says of itself: what it is made of, by which release, and when.
const MADE: [&str; 3] = ["used", "release", "date"];

fn facts(made: &Made) -> [String; 3] {
    [made.used.to_string(), made.version().into(), made.date.to_string()]
}

/// As CSV.
pub fn write_csv(subject: &Subject<'_>, made: &Made, nodes: &[u32], out: impl Write) -> Outcome {
    let dataset = subject.dataset();
    let (names, ids) = (dataset.class_names(), dataset.node_ids());
    let mut writer = csv::Writer::from_writer(out);
    let probabilities = names.iter().map(|name| format!("p({name})"));
    let columns = ["id", "class", "labelled"].map(String::from).into_iter().chain(probabilities);
    writer.write_record(columns.chain(MADE.map(String::from)))?;
    let facts = facts(made);
    let mut number = String::new();
    subject.predict_in_blocks(nodes, |predictions| -> Outcome {
        for (node, class, row) in rows(&predictions, names.len()) {
            let labelled = dataset.label(node as usize).is_some();
            writer.write_field(&*ids.name(node as usize))?;
            writer.write_field(&names[class as usize])?;
            writer.write_field(if labelled { "true" } else { "false" })?;
            for p in row {
                number.clear();
                write!(number, "{p}")?;
                writer.write_field(&number)?;
            }
            facts.iter().try_for_each(|fact| writer.write_field(fact))?;
            writer.write_record(None::<&[u8]>)?;
        }
        Ok(())
    })?;
    Ok(writer.flush()?)
}

/// As a JSON list.
pub fn write_json(subject: &Subject<'_>, made: &Made, nodes: &[u32], out: &mut impl Write) -> Outcome {
    let dataset = subject.dataset();
    let (names, ids) = (dataset.class_names(), dataset.node_ids());
    let names: Vec<String> = names.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
    let facts: String =
        MADE.iter().zip(facts(made)).map(|(name, fact)| format!(",\"{name}\":\"{fact}\"")).collect();
    let mut separator = "[\n";
    subject.predict_in_blocks(nodes, |predictions| -> Outcome {
        for (node, class, row) in rows(&predictions, names.len()) {
            let id = serde_json::to_string(&ids.name(node as usize))?;
            let (class, labelled) = (&names[class as usize], dataset.label(node as usize).is_some());
            write!(
                out,
                "{separator}{{\"id\":{id},\"class\":{class},\"labelled\":{labelled},\"probabilities\":"
            )?;
            for (k, (name, p)) in names.iter().zip(row).enumerate() {
                write!(out, "{}{name}:{p}", if k == 0 { '{' } else { ',' })?;
            }
            write!(out, "}}{facts}}}")?;
            separator = ",\n";
        }
        Ok(())
    })?;
    if nodes.is_empty() {
        write!(out, "[")?;
    }
    Ok(write!(out, "\n]")?)
}

/// As Parquet.
pub fn write_parquet(dataset: &Dataset, made: &Made, predictions: &Predictions, path: &Path) -> Outcome {
    let (names, ids) = (dataset.class_names(), dataset.node_ids());
    let ids = predictions.nodes.iter().map(|&node| ids.name(node as usize)).collect();
    let classes = predictions.classes.iter().map(|&class| names[class as usize].clone()).collect();
    let labelled = |&node: &u32| dataset.label(node as usize).is_some().to_string();
    let labelled = predictions.nodes.iter().map(labelled).collect();
    let mut columns = vec![
        ("id".to_string(), ColumnValues::Text(ids)),
        ("class".into(), ColumnValues::Text(classes)),
        ("labelled".into(), ColumnValues::Text(labelled)),
    ];
    for (k, name) in names.iter().enumerate() {
        let values = predictions.probabilities.iter().skip(k).step_by(names.len()).copied().collect();
        columns.push((format!("p({name})"), ColumnValues::Numbers(values)));
    }
    for (name, fact) in MADE.iter().zip(facts(made)) {
        columns.push((name.to_string(), ColumnValues::Text(vec![fact; predictions.nodes.len()])));
    }
    Ok(write_columns(&columns, path)?)
}

fn rows(predictions: &Predictions, classes: usize) -> impl Iterator<Item = (u32, u32, &[f32])> {
    let rows = predictions.probabilities.chunks_exact(classes);
    predictions
        .nodes
        .iter()
        .zip(&predictions.classes)
        .zip(rows)
        .map(|((&node, &class), row)| (node, class, row))
}
