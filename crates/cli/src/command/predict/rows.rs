//! Rows of a table that are rejected: a file that lists them, and what is said of them.

use std::fmt;
use std::path::{Path, PathBuf};

use progap_formats::read::table::{LaterRows, Reject};
use progap_graph::AtomicFile;
use serde::Serialize;

use super::written::naming;
use crate::command::Outcome;
use crate::flags::Flags;
use crate::output::{Force, Inputs, expect_folder_of};
use crate::ui::count;

/// The exit code where predictions were made, and some rows were rejected.
pub const EXIT_CODE: u8 = 3;

/// Where rejected rows are listed unless the user says otherwise.
const FILE: &str = "rejects.csv";

/// The list of rejected rows: beside the predictions, or in the working directory.
pub fn file(asked: Option<PathBuf>, out: Option<&Path>) -> Result<PathBuf, String> {
    match asked {
        None => Ok(out.map_or_else(|| FILE.into(), |out| out.with_file_name(FILE))),
        Some(file) if file.extension().is_some_and(|ending| ending == "csv") => Ok(file),
        Some(file) => {
            Err(format!("{}: rejected rows are listed as CSV: give a file that ends in .csv", file.display()))
        }
    }
}

/// What became of the rows of a table.
#[derive(Debug, Default, Serialize)]
pub struct Rows {
    /// How many were predicted, and how many rejected.
    nodes: usize,
    rejected: usize,
    /// How many values were taken as missing.
    taken_as_missing: usize,
    /// The list of rejected rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    rejects: Option<PathBuf>,
}

/// Rejected rows that are about to be listed; nothing is there before [`Listing::commit`].
pub struct Listing {
    pub rows: Rows,
    file: Option<AtomicFile>,
    replace: bool,
}

impl Listing {
    /// Writes the list, where there is something to list, but does not give it its name yet.
    pub fn of(
        read: &LaterRows,
        path: PathBuf,
        force: Force,
        inputs: &Inputs,
    ) -> Result<Listing, Box<dyn std::error::Error>> {
        let nodes = read.rows.as_ref().map_or(0, progap_graph::Dataset::nodes);
        let (rejected, taken_as_missing) = (read.rejects.len(), read.taken_as_missing);
        let rows = Rows { nodes, rejected, taken_as_missing, rejects: None };
        if rejected == 0 {
            return Ok(Listing { rows, file: None, replace: false });
        }
        expect_folder_of(&path)?;
        force.file(&path, inputs).map_err(|problem| match path.exists() {
            true => format!(
                "{} of {} rows are rejected, and cannot be listed: {} (or --rejects FILE)",
                count(rejected),
                count(nodes + rejected),
                problem.said(&Flags)
            ),
            false => problem.said(&Flags),
        })?;
        let mut file = AtomicFile::create(&path)?;
        write(&read.rejects, &mut file).map_err(|error| naming(&path, error))?;
        let rows = Rows { rejects: Some(path), ..rows };
        Ok(Listing { rows, file: Some(file), replace: force.force })
    }

    /// Puts the list in its place, and says what was rejected.
    pub fn commit(self) -> Outcome {
        let Listing { rows, file, replace } = self;
        if rows.taken_as_missing > 0 {
            let values = if rows.taken_as_missing == 1 {
                "value that does not fit was"
            } else {
                "values that do not fit were"
            };
            eprintln!("caution: {} {values} taken as missing", count(rows.taken_as_missing));
        }
        let Some(file) = file else { return Ok(()) };
        if replace { file.commit() } else { file.commit_new() }?;
        Err(Rejected(rows).into())
    }
}

fn write(rejects: &[Reject], file: &mut AtomicFile) -> Outcome {
    let mut writer = csv::Writer::from_writer(file);
    rejects.iter().try_for_each(|reject| writer.serialize(reject))?;
    Ok(writer.flush()?)
}

/// Some rows were rejected; the others are predicted.
#[derive(Debug)]
pub struct Rejected(Rows);

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rows { nodes, rejected, rejects, .. } = &self.0;
        let (rejected, all) = (count(*rejected), count(nodes + rejected));
        let file = rejects.as_deref().unwrap_or(Path::new(FILE)).display();
        write!(f, "{rejected} of {all} rows were rejected: {file} has the reasons")
    }
}

impl std::error::Error for Rejected {}
