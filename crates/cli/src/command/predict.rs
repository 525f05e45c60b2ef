//! `progap predict`: classes and probabilities from a release, without the graph.

pub mod rows;
mod written;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use progap::Release;
use progap::release::{Date, NewNodes, NewPredictions, RowPredictions, new_statement_of};
use progap_export::SecretKey;
use progap_export::{Made, sign_predictions, signature_of};
use progap_formats::read::encoding::Encoding;
use progap_formats::read::table::LaterOptions;
use progap_graph::AtomicFile;

use self::rows::Listing;
use self::written::{Format, Subject, naming, write_csv, write_json, write_parquet};
use super::Outcome;
use crate::output::{self, Force, Inputs};
use crate::source::parse_encoding;
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
  progap predict release/ --rows later.csv --lenient --out predictions.csv
  progap predict for-others --rows later.csv  # an export does that, too
  progap predict release/ --out predictions.csv --sign me.key
  progap predict release/ --new later.csv --edges edges.csv --ledger budget.db --out p.csv

Predictions ask nothing more of the graph, so they cost no privacy beyond the release. At node level \
a prediction about a node uses its own features: it is for that node, or for those who may see them. With the \
method dp-gnn the guarantee is about the model alone: predictions read the rows of a node's senders as \
they are. `progap inspect release/` says what is covered.

Every prediction says what it is made of (features, sums or features+sums), by which release (the start of the \
SHA-256 of its manifest), and when. `progap verify predictions.csv --signer me.pub` checks a signed file.

A table of `--rows` has the columns of the node table that was trained on, without label and split. No edge of these \
nodes is known, so they are predicted by their features; their edges would have to be paid for. It is read as \
training read its own: the same categories, order of dates, scale and gaps. A row that does not fit is not predicted \
but listed in rejects.csv (row, id, column, reason), beside the output or in the working directory; the others are \
predicted, and the exit code is 3. With `--lenient` a value that does not fit is taken as missing, where the column \
had missing values, or names, in training.

With `--new` these nodes have edges to nodes of the release. At edge level the release's own sums are asked of the new edges, \
with its own noise: each new edge pays the release's epsilon once, and edges that were trained on pay nothing. The ledger of \
training is charged first; asked again with the same edges the answer is the same and free, and with other edges it takes \
`--again NAME` and is charged once more. What it costs lies beside the predictions (FILE.privacy.json), for `progap verify FILE`.")]
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
    #[arg(long, value_name = "TABLE", conflicts_with_all = ["nodes", "unlabelled"], group = "table")]
    rows: Option<PathBuf>,
    /// A table of new nodes whose edges are known, too
    #[arg(long, value_name = "TABLE", conflicts_with_all = ["nodes", "unlabelled"], group = "table")]
    #[arg(requires_all = ["edges", "ledger", "out"])]
    new: Option<PathBuf>,
    /// A table of the edges between new nodes and nodes of the release
    #[arg(long, value_name = "TABLE", requires = "new")]
    edges: Option<PathBuf>,
    /// The ledger that training was charged to
    #[arg(long, value_name = "FILE", requires = "new")]
    ledger: Option<PathBuf>,
    /// The data set's name in the ledger, where several could be meant
    #[arg(long, value_name = "NAME", requires = "new")]
    ledger_name: Option<String>,
    /// A name for asking about the same nodes with other edges: charged again, with other noise
    #[arg(long, value_name = "NAME", requires = "new")]
    again: Option<String>,
    /// The id column of that table [default: id]
    #[arg(long, value_name = "COLUMN", requires = "table")]
    id: Option<String>,
    /// Take values of that table that do not fit as missing, where values can be missing
    #[arg(long, requires = "table")]
    lenient: bool,
    /// Encoding of that table: utf-8, latin-1 or utf-16 [default: utf-8]
    #[arg(long, value_name = "NAME", requires = "table", value_parser = parse_encoding)]
    encoding: Option<String>,
    /// File for rejected rows [default: rejects.csv beside the output]
    ///
    /// Where predictions go to standard output it is rejects.csv in the working directory.
    #[arg(long, value_name = "FILE", requires = "table")]
    rejects: Option<PathBuf>,
    /// File that ends in .csv, .json or .parquet [default: CSV on standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Sign that file with a secret key of `progap key new`; the signature is put beside it, as FILE.sig
    #[arg(long, value_name = "KEY", requires = "out")]
    sign: Option<PathBuf>,
    /// The day that the predictions bear, as 2026-01-31 [default: today at Greenwich]
    #[arg(long, value_name = "DAY")]
    date: Option<Date>,
    /// Print one JSON object: the predictions or, with --out, what was written
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    pub memory: crate::machine::Memory,
}

impl Predict {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let format = self.out.as_deref().map(Format::of).transpose()?;
        let table = self.rows.as_deref().or(self.new.as_deref());
        let given = self.nodes.as_deref().map(Path::new).or(table);
        let inputs = Inputs::of(given.into_iter().chain(self.edges.as_deref()).chain(self.ledger.as_deref()));
        if let Some(out) = &self.out {
            output::expect_folder_of(out)?;
            self.force.file(out, &inputs)?;
            if self.sign.is_some() {
                self.force.file(&signature_of(out), &inputs)?;
            }
            if self.new.is_some() {
                self.force.file(&new_statement_of(out), &inputs)?;
            }
        }
        // A key that cannot be used is found before anything is written.
        let key = self.sign.as_deref().map(SecretKey::read).transpose()?;
        let rejects = rows::file(self.rejects, self.out.as_deref())?;
        if table.is_some() && self.out.as_ref().is_some_and(|out| *out == rejects) {
            return Err(format!(
                "{}: the list of rejected rows goes there, too: name another file",
                rejects.display()
            )
            .into());
        }
        let release = Release::open(&self.release)?;
        let nodes = match &self.nodes {
            None if table.is_some() => vec![],
            None => (0..release.nodes().nodes() as u32).collect(),
            Some(nodes) => positions(&release, nodes)?,
        };
        let nodes = if self.unlabelled { unlabelled(&release, nodes)? } else { nodes };
        let encoding = self.encoding.as_deref().and_then(Encoding::from_name);
        let options = LaterOptions { id_column: self.id.as_deref(), lenient: self.lenient, encoding };
        let (later, mut statement) = match (&self.new, &self.edges, &self.ledger, &self.rows) {
            (Some(nodes), Some(edges), Some(ledger), _) => {
                let (ledger_name, again) = (self.ledger_name.as_deref(), self.again.as_deref());
                let found =
                    release.predict_new(&NewNodes { nodes, edges, options, ledger, ledger_name, again })?;
                if found.left_out > 0 {
                    eprintln!(
                        "for you alone: {} edges join two of the new nodes; they were left out",
                        ui::count(found.left_out)
                    );
                }
                let NewPredictions { read, predictions, used, statement, .. } = found;
                (Some(RowPredictions { read, predictions, used }), Some(statement))
            }
            (_, _, _, Some(table)) => (Some(release.predict_rows(table.as_path(), &options)?), None),
            _ => (None, None),
        };
        let listing =
            later.as_ref().map(|later| Listing::of(&later.read, rejects, self.force, &inputs)).transpose()?;
        let (subject, nodes) = match &later {
            None => (Subject::Own(&release), nodes),
            Some(later) => {
                let rows = later.read.rows.as_ref().unwrap_or(release.nodes());
                (Subject::Later(rows, &later.predictions), later.predictions.nodes.clone())
            }
        };
        let used = later.as_ref().map_or(release.used(), |later| later.used);
        let made =
            Made { release: release.sha256().into(), used, date: self.date.unwrap_or_else(Date::today) };
        // Predictions that cannot be made at all are refused before anything is written.
        subject.predict(&[])?;
        if let Some(caution) = release.caution() {
            eprintln!("caution: {caution}");
        }
        let about = listing.as_ref().map(|listing| serde_json::to_value(&listing.rows)).transpose()?;
        let about = about.unwrap_or_else(|| serde_json::json!({ "nodes": nodes.len() }));
        match (self.out, format) {
            (Some(path), Some(format)) => {
                if let Format::Parquet = format {
                    write_parquet(subject.dataset(), &made, &subject.predict(&nodes)?, &path)?;
                } else {
                    let mut file = AtomicFile::create(&path)?;
                    let written = match format {
                        Format::Json => {
                            write_json(&subject, &made, &nodes, &mut file).and_then(|()| Ok(writeln!(file)?))
                        }
                        _ => write_csv(&subject, &made, &nodes, &mut file),
                    };
                    written.map_err(|error| naming(&path, error))?;
                    file.commit()?;
                }
                if let Some(statement) = &mut statement {
                    statement.write(&path)?;
                }
                if let Some(key) = &key {
                    sign_predictions(&path, made, key)?;
                }
                if self.json {
                    let mut about = about;
                    about["out"] = serde_json::to_value(&path)?;
                    ui::print(&serde_json::to_string_pretty(&about)?)?;
                } else {
                    ui::print(&format!("{}: {} nodes", path.display(), ui::count(nodes.len())))?;
                }
            }
            _ => {
                let mut out = std::io::BufWriter::new(std::io::stdout().lock());
                if self.json {
                    let about = about.to_string();
                    write!(out, "{},\"predictions\":", about.trim_end_matches('}'))?;
                    write_json(&subject, &made, &nodes, &mut out)?;
                    writeln!(out, "}}")?;
                } else {
                    write_csv(&subject, &made, &nodes, &mut out)?;
                }
                out.flush()?;
            }
        }
        listing.map_or(Ok(()), Listing::commit)
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
