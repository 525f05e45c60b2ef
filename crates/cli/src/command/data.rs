//! `progap data`: data sets by name, conversions, parts, synthetic graphs.

mod partition;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use progap_formats::named::fetch::{self, FetchOptions};
use progap_formats::named::{self, Entry, Origin, Presence};
use progap_formats::write::{self, table::TableFormat};
use progap_graph::synth::SocialNetwork;
use progap_graph::{Dataset, store, transform};
use serde::Serialize;

use self::partition::Partition;
use super::Outcome;
use crate::output::{Force, Inputs};
use crate::source::{DataFolder, DataSource};
use crate::ui::{self, Download, bytes, count};

/// List, download, convert, partition and generate data sets
#[derive(Subcommand)]
pub enum Data {
    List(List),
    Fetch(Fetch),
    Convert(Box<Convert>),
    Partition(Box<Partition>),
    Synth(Synth),
}

impl Data {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        match self {
            Data::List(list) => list.run(),
            Data::Fetch(fetch) => fetch.run(),
            Data::Convert(convert) => convert.run(),
            Data::Partition(partition) => partition.run(),
            Data::Synth(synth) => synth.run(),
        }
    }
}

/// List data sets by name: where they come from, and whether they are here
#[derive(Args)]
pub struct List {
    #[command(flatten)]
    folder: DataFolder,
    /// Show every school of Facebook100 as well
    #[arg(long)]
    all: bool,
    /// Print a JSON list instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Listed<'a> {
    name: &'a str,
    summary: &'a str,
    source: &'a str,
    licence: &'a str,
    nodes: Option<usize>,
    edges: Option<usize>,
    features: Option<usize>,
    classes: Option<usize>,
    download_bytes: Option<u64>,
    verified_by: Option<&'static str>,
    present: bool,
    files_present: usize,
    files: usize,
}

impl List {
    fn run(self) -> Outcome {
        let entries = named::list(&self.folder.data_dir);
        if self.json {
            let listed: Vec<_> = entries.iter().map(|(entry, presence)| listed(entry, presence)).collect();
            return ui::print(&serde_json::to_string_pretty(&listed)?);
        }
        let is_school = |entry: &Entry| entry.name.starts_with("fb:");
        let here = |presence: &Presence| matches!(presence, Presence::Present(_));
        let shown =
            entries.iter().filter(|(entry, presence)| self.all || !is_school(entry) || here(presence));
        let rows = shown.map(|(entry, presence)| {
            let size = match entry.expected {
                Some(expected) => format!("{} nodes, {} edges", count(expected.nodes), count(expected.edges)),
                None => String::new(),
            };
            let listed = listed(entry, presence);
            let download = listed.download_bytes.map(|size| bytes(size as usize)).unwrap_or_default();
            [entry.name.clone(), state(presence), size, download, entry.summary.clone()]
        });
        let table = ui::table(["name", "here", "size", "download", "what it is"], rows);
        let mut notes = String::new();
        let mut told = Vec::new();
        for (entry, _) in entries.iter().filter(|(entry, _)| !told_before(&mut told, entry)) {
            notes += &format!("\n  {}: {}\n    licence: {}", short(&entry.name), entry.origin, entry.licence);
            if let Some(file) = entry.files.first() {
                notes += &format!("\n    download: {}; {}", file.url, verification(entry, &entries));
            }
        }
        let schools = "fb:<School> is any school of Facebook100 (--all lists them)";
        let folder = self.folder.data_dir.display();
        ui::print(&format!(
            "{table}\nlooked for in {folder} (--data-dir, PROGAP_DATA); {schools}\nsources{notes}"
        ))
    }
}

/// Whether the source of an entry stands in the notes already.
fn told_before(told: &mut Vec<&'static str>, entry: &Entry) -> bool {
    let before = told.contains(&entry.origin);
    if !before {
        told.push(entry.origin);
    }
    before
}

/// How downloads of a source are verified: all of its files count, not those of one entry.
fn verification(entry: &Entry, entries: &[(Entry, Presence)]) -> String {
    let same = entries.iter().map(|(other, _)| other).filter(|other| other.origin == entry.origin);
    let files = same.map(|other| &other.files).max_by_key(|files| files.len()).unwrap_or(&entry.files);
    match files.iter().filter(|file| file.sha256.is_some()).count() {
        0 => entry.files.first().map(named::RemoteFile::verification).unwrap_or_default().into(),
        known => format!(
            "SHA-256 known for {known} of {} files, the others verified by the format's own checksums",
            files.len()
        ),
    }
}

fn short(name: &str) -> &str {
    if name == "facebook" { "facebook, fb:<School>, fb-100, fb-100-clean" } else { name }
}

fn state(presence: &Presence) -> String {
    match presence {
        Presence::Generated => "built in".into(),
        Presence::Present(_) => "yes".into(),
        Presence::Partly { present, of } => format!("{} of {of} files", present.len()),
        Presence::Absent => "no".into(),
    }
}

fn listed<'a>(entry: &'a Entry, presence: &Presence) -> Listed<'a> {
    let expected = entry.expected;
    let size = |file: &named::RemoteFile| file.size.or(file.about);
    let files_present = match presence {
        Presence::Present(files) | Presence::Partly { present: files, .. } => files.len(),
        Presence::Generated | Presence::Absent => 0,
    };
    let present = match presence {
        Presence::Generated | Presence::Present(_) => true,
        // `fb-100` takes the schools that are there.
        Presence::Partly { .. } => matches!(entry.source, Origin::AllSchools { .. }),
        Presence::Absent => false,
    };
    Listed {
        name: &entry.name,
        summary: &entry.summary,
        source: entry.origin,
        licence: entry.licence,
        nodes: expected.map(|e| e.nodes),
        edges: expected.map(|e| e.edges),
        features: expected.map(|e| e.features),
        classes: expected.map(|e| e.classes),
        download_bytes: entry.files.iter().map(size).sum::<Option<u64>>().filter(|&size| size > 0),
        verified_by: entry.files.first().map(named::RemoteFile::verification),
        present,
        files_present,
        files: entry.files.len(),
    }
}

/// Download a data set; resumes where it stopped, and verifies every file
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap data fetch facebook
  progap data fetch fb:Cornell5 --data-dir ~/data
  progap data fetch fb-100 --mirror https://mirror.example/facebook100")]
pub struct Fetch {
    /// A name from `progap data list`
    name: String,
    #[command(flatten)]
    folder: DataFolder,
    /// Another server that has the same files under the same names
    #[arg(long, value_name = "URL")]
    mirror: Option<String>,
    /// Attempts without progress before giving up
    #[arg(long, value_name = "N", default_value_t = FetchOptions::default().attempts)]
    attempts: u32,
}

impl Fetch {
    fn run(self) -> Outcome {
        let options =
            FetchOptions { mirror: self.mirror, attempts: self.attempts, ..FetchOptions::default() };
        let mut bar: Option<(PathBuf, Download)> = None;
        let fetched = fetch::fetch(&self.name, &self.folder.data_dir, &options, &mut |progress| {
            if bar.as_ref().is_none_or(|(file, _)| file != progress.file) {
                let name = progress.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                bar = Some((progress.file.to_path_buf(), Download::new(&name)));
            }
            if let Some((_, bar)) = &bar {
                bar.set(progress.done, progress.total);
            }
        })?;
        drop(bar);
        if fetched.is_empty() {
            return ui::print(&format!("{} is built in: there is nothing to download", self.name));
        }
        let new = fetched.iter().filter(|file| file.downloaded).count();
        let lines = fetched.iter().map(|file| {
            let how = if file.downloaded { "downloaded and verified" } else { "already here, verified" };
            format!("{}: {how}", file.path.display())
        });
        let lines: Vec<_> = if fetched.len() > 10 {
            vec![format!("{} files: {new} downloaded, all verified", fetched.len())]
        } else {
            lines.collect()
        };
        ui::print(&lines.join("\n"))
    }
}

/// Write a data set in another format
#[derive(Args)]
// Two names are needed, so that the first cannot be left out.
#[command(mut_arg("dataset", |dataset| dataset.index(1).required(true).default_value(None)))]
#[command(mut_arg("output", |output| output.index(2)))]
#[command(after_help = "\
Examples:
  progap data convert my-graph/ my-graph.progap       # loads in an instant
  progap data convert fb:Cornell5 cornell.npz         # for NumPy
  progap data convert demo tables/ --format parquet   # tables of nodes and edges")]
pub struct Convert {
    #[command(flatten)]
    source: DataSource,
    #[command(flatten)]
    output: Output,
    /// Features in half precision: three digits, two bytes each, for a file that ends in .progap
    #[arg(long)]
    half: bool,
}

/// Where a data set is written.
#[derive(Args)]
struct Output {
    /// A file that ends in .progap or .npz, or a folder for tables
    output: PathBuf,
    /// How tables are written [default: csv]
    #[arg(long, value_enum)]
    format: Option<Tables>,
    #[command(flatten)]
    force: Force,
}

#[derive(Clone, Copy, ValueEnum)]
enum Tables {
    Csv,
    #[value(name = "csv.gz")]
    CsvGz,
    #[value(name = "csv.zst")]
    CsvZst,
    Parquet,
}

impl Tables {
    fn format(self) -> TableFormat {
        match self {
            Tables::Csv => TableFormat::Csv,
            Tables::CsvGz => TableFormat::CsvGz,
            Tables::CsvZst => TableFormat::CsvZst,
            Tables::Parquet => TableFormat::Parquet,
        }
    }
}

impl Convert {
    fn run(self) -> Outcome {
        let writer = self.output.writer(&self.source.inputs())?;
        let dataset = {
            let _spinner = ui::spinner(format!("loading {}", self.source.name()));
            transform::in_order_of_ids(self.source.load()?)?
        };
        let dataset = match (self.half, &writer) {
            (false, _) => dataset,
            (true, Writer::Store) => dataset.in_half_precision()?,
            (true, _) => {
                return Err(
                    "--half is for files that end in .progap: other formats hold other numbers".into()
                );
            }
        };
        self.output.save(&dataset, writer)
    }
}

/// How an [`Output`] is written.
enum Writer {
    Store,
    Npz,
    Tables(TableFormat),
}

impl Output {
    /// The writer for the output's ending; known, and allowed to write there, before any work is done.
    fn writer(&self, inputs: &Inputs) -> Result<Writer, Box<dyn std::error::Error>> {
        let name = self.output.display();
        let is_folder = self.output.is_dir() || name.to_string().ends_with('/');
        let ending = self.output.extension().filter(|_| !is_folder).map(|ending| ending.to_string_lossy());
        let writer = match (ending.as_deref(), self.format) {
            (None, format) => Writer::Tables(format.unwrap_or(Tables::Csv).format()),
            (Some(_), Some(_)) => {
                return Err(format!("{name}: --format is for tables; give a folder, or drop --format").into());
            }
            (Some(store::EXTENSION), _) => Writer::Store,
            (Some("npz"), _) => Writer::Npz,
            (Some(other), _) => {
                let advice = "give a file that ends in .progap or .npz, or a folder for tables";
                return Err(format!("{name}: there is no writer for .{other}; {advice}").into());
            }
        };
        let folder = self.output.parent().filter(|folder| !folder.as_os_str().is_empty());
        match (&writer, folder) {
            (Writer::Store | Writer::Npz, Some(folder)) if !folder.is_dir() => {
                Err(format!("{name}: there is no folder {}; make it first", folder.display()).into())
            }
            (Writer::Store | Writer::Npz, _) => {
                self.force.file(&self.output, inputs)?;
                Ok(writer)
            }
            (Writer::Tables(format), _) => {
                let tables = ["nodes", "edges"].map(|stem| format!("{stem}.{}", format.ending()));
                self.force.folder(&self.output, &tables.each_ref().map(String::as_str), inputs)?;
                Ok(writer)
            }
        }
    }

    fn save(&self, dataset: &Dataset, writer: Writer) -> Outcome {
        {
            let _spinner = ui::spinner(format!("writing {}", self.output.display()));
            match writer {
                Writer::Store => store::write(dataset, &self.output)?,
                Writer::Npz => write::npz::write(dataset, &self.output)?,
                Writer::Tables(format) => write::table::write_folder(dataset, &self.output, format)?,
            }
        }
        self.report(dataset)
    }

    fn report(&self, dataset: &Dataset) -> Outcome {
        let (nodes, edges) = (count(dataset.nodes()), count(dataset.graph().edges()));
        ui::print(&format!("{}: {nodes} nodes, {edges} directed edges", self.output.display()))
    }
}

/// Generate a synthetic social network of up to 200 million nodes and 2 billion edges
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap data synth small.progap --nodes 5000 --edges 200000
  progap data synth large.progap --nodes 1100000 --edges 85000000 --communities 100
  progap data synth big.progap --nodes 27750000 --edges 400000000 --dense 128 --labelled 0.014

It takes about five bytes of memory for an edge and forty for a node; dense columns are written as they are made.")]
pub struct Synth {
    #[command(flatten)]
    output: Output,
    /// Number of nodes
    #[arg(long, default_value_t = 20_000)]
    nodes: usize,
    /// Approximate number of directed edges; an undirected edge counts twice
    #[arg(long, default_value_t = 1_300_000)]
    edges: usize,
    /// Number of classes
    #[arg(long, default_value_t = 6)]
    classes: usize,
    /// Share of edges between nodes of one class
    #[arg(long)]
    homophily: Option<f64>,
    /// Number of communities (such as schools) that most edges stay in
    #[arg(long, default_value_t = 1)]
    communities: usize,
    /// Approximate number of one-hot feature columns
    #[arg(long)]
    features: Option<usize>,
    /// Dense feature columns in half precision, instead of one-hot ones
    #[arg(long, default_value_t = 0, conflicts_with = "features")]
    dense: usize,
    /// Share of nodes whose label is known
    #[arg(long, default_value_t = 1.0)]
    labelled: f64,
    /// Seed; the same seed gives the same graph
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

impl Synth {
    fn run(self) -> Outcome {
        let writer = self.output.writer(&Inputs::default())?;
        let mut network = SocialNetwork::new(self.nodes)
            .name("synthetic")
            .edges(self.edges)
            .classes(self.classes)
            .communities(self.communities)
            .dense(self.dense)
            .labelled(self.labelled)
            .seed(self.seed);
        if let Some(share) = self.homophily {
            network = network.homophily(share);
        }
        if let Some(features) = self.features {
            network = network.feature_count(features);
        }
        let spinner = ui::spinner(format!("generating {} edges", count(self.edges)));
        if let Writer::Store = writer {
            let dataset = network.generate_into(&self.output.output)?;
            drop(spinner);
            return self.output.report(&dataset);
        }
        let dataset = network.generate()?;
        drop(spinner);
        self.output.save(&dataset, writer)
    }
}
