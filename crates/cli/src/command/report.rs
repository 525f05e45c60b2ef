//! `progap report`: a page that people look at, from a release or an experiment.

use std::path::{Path, PathBuf};

use clap::Args;
use progap::{Level, Release};
use progap_graph::Dataset;

use super::{Outcome, experiment};
use crate::output::{Force, Inputs, refuse_releases};
use crate::report::{self, Report};
use crate::source::{DataFolder, DataSource};
use crate::ui;

/// Write a report: one HTML page that needs no network, each figure as SVG and PNG, each table as CSV, Markdown, LaTeX
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap report release/                      # writes release-report/report.html
  progap report release/ --out page/
  progap report release/ --public             # a page that anyone may see
  progap report experiments/table2            # the tables and figures of an experiment
  progap report release/ --data my-graph/     # at node level, where labels are private")]
pub struct WriteReport {
    /// The folder of a release or of an experiment
    folder: PathBuf,
    /// Folder for the report [default: beside the release]
    ///
    /// Its name is that of the release with -report or -public-report; of an experiment its own folder.
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    /// A page that anyone may see: nothing on it but what follows from public inputs and noisy answers
    #[arg(long, conflicts_with = "data")]
    public: bool,
    /// Data set of the release, for labels at node level; the page is then for the data owner
    #[arg(long, value_name = "DATASET")]
    data: Option<String>,
    #[command(flatten)]
    data_folder: DataFolder,
    #[command(flatten)]
    force: Force,
    /// Print nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

/// Writes the report of a release, or of an experiment, into a folder.
pub fn write(folder: &Path, out: &Path, public: bool) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let (folder, out) = (folder.to_path_buf(), Some(out.to_path_buf()));
    let (data, data_folder, force) = (None, DataSource::default().data_folder().clone(), Force::default());
    WriteReport { folder, out, public, data, data_folder, force, quiet: true }.made()
}

impl WriteReport {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let quiet = self.quiet;
        let page = self.made()?;
        if quiet { Ok(()) } else { ui::print(&page.display().to_string()) }
    }

    /// Makes the page, and says where it is.
    fn made(self) -> Result<PathBuf, Box<dyn std::error::Error>> {
        let content = self.content()?;
        let out = match &self.out {
            Some(out) => out.clone(),
            None if experiment::is_folder(&self.folder) => self.folder.clone(),
            None => beside(&self.folder, if self.public { "-public-report" } else { "-report" })?,
        };
        // An experiment shows itself in its own folder as often as it likes.
        if experiment::is_folder(&self.folder) && self.out.is_none() {
            refuse_releases(&out)?;
        } else {
            let inputs = self.data.as_deref().map(Path::new).into_iter().chain([self.folder.as_path()]);
            self.force.folder(&out, &report::FILES, &Inputs::of(inputs))?;
        }
        report::write(&content, &out)
    }

    /// The content of the report.
    fn content(&self) -> Result<Report, Box<dyn std::error::Error>> {
        let _spinner = ui::spinner(format!("reading {}", self.folder.display()));
        if let Some(content) = experiment::kept_report(&self.folder)? {
            return match self.data {
                Some(_) => {
                    Err("--data belongs to a release: an experiment knows its data; leave it out".into())
                }
                None if self.public => Err(format!(
                    "{}: an experiment measures the data without noise, and its page is for the data owner alone; \
                     --public \
                     belongs to a release",
                    self.folder.display()
                )
                .into()),
                None => Ok(content),
            };
        }
        let release = Release::open(&self.folder)?;
        if self.public {
            return report::public(&release);
        }
        let data =
            self.data.as_deref().map(|name| labelled(&release, name, &self.data_folder)).transpose()?;
        report::of_release(&release, data.as_ref())
    }
}

/// The default folder for the report of a folder.
fn beside(folder: &Path, ending: &str) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let folder = std::fs::canonicalize(folder).map(|whole| {
        // The path that the user wrote is kept where it has a name.
        if folder.file_name().is_some() { folder.to_path_buf() } else { whole }
    })?;
    let mut name = folder.file_name().ok_or("give a folder for the report with --out")?.to_os_string();
    name.push(ending);
    Ok(folder.with_file_name(name))
}

/// The data set that a release was trained on, with its labels.
fn labelled(
    release: &Release,
    name: &str,
    folder: &DataFolder,
) -> Result<Dataset, Box<dyn std::error::Error>> {
    if release.level() != Level::Node {
        return Err("--data is needed at node level only: this release holds the labels; leave it out".into());
    }
    let kept = DataSource::kept(&release.config()?.source)?;
    let dataset =
        DataSource::default().in_folder(folder).or_published(kept).with_dataset(name).load_split()?;
    match release.aligned(&dataset)? {
        Some(aligned) => Ok(aligned.into_owned()),
        None => Err(format!(
            "{name}: the release was trained on other data (node ids, classes or split differ); name the same data"
        )
        .into()),
    }
}
