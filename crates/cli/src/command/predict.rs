//! `progap predict`: classes and probabilities from a release, without the graph.

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use progap::Release;
use progap::release::Predictions;
use progap_graph::write::table::{ColumnValues, write_columns};
use progap_graph::{AtomicFile, Dataset, Problem};

use super::Outcome;
use crate::output::{self, Force, Inputs};
use crate::ui;

/// Predict classes and their probabilities from a release, without the graph
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap predict release/                     # all nodes, as CSV
  progap predict release/ --nodes ann,bob
  progap predict release/ --nodes ids.txt --out predictions.parquet
  progap predict release/ --unlabelled        # only nodes whose label is not known
  progap predict release/ --rows later.csv    # nodes that were not there in training

Predictions ask nothing more of the graph, so they cost no privacy beyond the release. At node level \
a prediction about a node uses its own features: it is for that node, or for those who may see them. With the \
method dp-gnn the guarantee is about the model alone: predictions read the rows of a node's senders as \
they are. `progap inspect release/` says what is covered.

A table of `--rows` has the columns of the node table that was trained on, without label and split. No edge of these \
nodes is known, so they are predicted by their features; their edges would have to be paid for.")]
pub struct Predict {
    /// The folder of a release
    release: PathBuf,
    /// Ids separated by commas, or a file with one id per line [default: all nodes]
    #[arg(long, value_name = "IDS")]
    nodes: Option<String>,
    /// Only nodes whose label was not known in training
    #[arg(long)]
    unlabelled: bool,
    /// A table of nodes that were not there in training (CSV or Parquet), instead of the release's own
    #[arg(long, value_name = "TABLE", conflicts_with_all = ["nodes", "unlabelled"])]
    rows: Option<PathBuf>,
    /// The id column of that table [default: id]
    #[arg(long, value_name = "NAME", requires = "rows")]
    id_column: Option<String>,
    /// File that ends in .csv, .json or .parquet [default: CSV on standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    pub memory: crate::machine::Memory,
}

impl Predict {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let format = self.out.as_deref().map(Format::of).transpose()?;
        if let Some(out) = &self.out {
            output::expect_folder_of(out)?;
            let given = self.nodes.as_deref().map(Path::new).or(self.rows.as_deref());
            self.force.file(out, &Inputs::of(given))?;
        }
        let release = Release::open(&self.release)?;
        let nodes = match &self.nodes {
            None if self.rows.is_some() => vec![],
            None => (0..release.nodes().nodes() as u32).collect(),
            Some(nodes) => positions(&release, nodes)?,
        };
        let nodes = if self.unlabelled { unlabelled(&release, nodes)? } else { nodes };
        let later = match &self.rows {
            None => None,
            Some(table) => {
                let rows = release.read_rows(table, self.id_column.as_deref())?;
                let found = release.predict_rows(&rows)?;
                Some((rows, found))
            }
        };
        let (subject, nodes) = match &later {
            None => (Subject::Own(&release), nodes),
            Some((rows, found)) => (Subject::Later(rows, found), found.nodes.clone()),
        };
        // Predictions that cannot be made at all are refused before anything is written.
        subject.predict(&[])?;
        if let Some(caution) = release.caution() {
            eprintln!("caution: {caution}");
        }
        match (self.out, format) {
            (Some(path), Some(format)) => {
                if let Format::Parquet = format {
                    write_parquet(subject.dataset(), &subject.predict(&nodes)?, &path)?;
                } else {
                    let mut file = AtomicFile::create(&path)?;
                    let written = match format {
                        Format::Json => write_json(&subject, &nodes, &mut file),
                        _ => write_csv(&subject, &nodes, &mut file),
                    };
                    written.map_err(|error| naming(&path, error))?;
                    file.commit()?;
                }
                ui::print(&format!("{}: {} nodes", path.display(), ui::count(nodes.len())))
            }
            _ => {
                let mut out = std::io::BufWriter::new(std::io::stdout().lock());
                write_csv(&subject, &nodes, &mut out)?;
                Ok(out.flush()?)
            }
        }
    }
}

/// The nodes that predictions are about.
enum Subject<'a> {
    /// Those of the release.
    Own(&'a Release),
    /// Others, with what the model says about all of them.
    Later(&'a Dataset, &'a Predictions),
}

impl Subject<'_> {
    fn dataset(&self) -> &Dataset {
        match self {
            Subject::Own(release) => release.nodes(),
            Subject::Later(rows, _) => rows,
        }
    }

    fn predict(&self, nodes: &[u32]) -> Result<Predictions, progap::Error> {
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

#[derive(Clone, Copy)]
enum Format {
    Csv,
    Json,
    Parquet,
}

impl Format {
    fn of(path: &Path) -> Result<Format, String> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("csv") => Ok(Format::Csv),
            Some("json") => Ok(Format::Json),
            Some("parquet") => Ok(Format::Parquet),
            _ => Err(format!("{}: give a file that ends in .csv, .json or .parquet", path.display())),
        }
    }
}

/// An error of writing, with the file that could not be written.
fn naming(path: &Path, error: Box<dyn std::error::Error>) -> Box<dyn std::error::Error> {
    let error = match error.downcast::<csv::Error>() {
        Ok(error) => Ok(Box::new(std::io::Error::from(*error))),
        Err(error) => error.downcast::<std::io::Error>(),
    };
    match error {
        Ok(error) => Problem::Io(*error).in_file(path).into(),
        Err(error) => error,
    }
}

/// Those of the nodes whose label was not known.
fn unlabelled(release: &Release, nodes: Vec<u32>) -> Result<Vec<u32>, String> {
    let unknown = |node: &u32| release.nodes().label(*node as usize).is_none();
    let unlabelled: Vec<u32> = nodes.into_iter().filter(unknown).collect();
    match unlabelled.is_empty() {
        true => Err("the label of each of these nodes was known: leave out --unlabelled".into()),
        false => Ok(unlabelled),
    }
}

/// The positions of the nodes that the user named.
fn positions(release: &Release, nodes: &str) -> Result<Vec<u32>, Box<dyn std::error::Error>> {
    let dataset = release.nodes();
    let known = dataset.node_ids().positions(dataset.nodes());
    let file = Path::new(nodes);
    let list = if file.is_file() {
        std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?
    } else {
        nodes.replace(',', "\n")
    };
    let find = |id: &str| {
        let missing =
            || format!("the release has no node {id:?}; give ids of its nodes, or a file with one per line");
        known.get(id).copied().ok_or_else(missing)
    };
    Ok(list.lines().map(str::trim).filter(|id| !id.is_empty()).map(find).collect::<Result<_, _>>()?)
}

fn write_csv(subject: &Subject<'_>, nodes: &[u32], out: impl Write) -> Outcome {
    let dataset = subject.dataset();
    let (names, ids) = (dataset.class_names(), dataset.node_ids());
    let mut writer = csv::Writer::from_writer(out);
    let probabilities = names.iter().map(|name| format!("p({name})"));
    writer.write_record(["id", "class", "labelled"].map(String::from).into_iter().chain(probabilities))?;
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
            writer.write_record(None::<&[u8]>)?;
        }
        Ok(())
    })?;
    Ok(writer.flush()?)
}

fn write_json(subject: &Subject<'_>, nodes: &[u32], out: &mut impl Write) -> Outcome {
    let dataset = subject.dataset();
    let (names, ids) = (dataset.class_names(), dataset.node_ids());
    let names: Vec<String> = names.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
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
            write!(out, "}}}}")?;
            separator = ",\n";
        }
        Ok(())
    })?;
    if nodes.is_empty() {
        write!(out, "[")?;
    }
    writeln!(out, "\n]")?;
    Ok(())
}

fn write_parquet(dataset: &Dataset, predictions: &Predictions, path: &Path) -> Outcome {
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
