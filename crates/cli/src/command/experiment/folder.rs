//! The folder of an experiment: results, and the report made of them.

use std::path::{Path, PathBuf};

use super::Result;
use crate::output::{Force, Inputs, refuse_releases};
use crate::report;

/// The file of the results.
pub const RESULTS: &str = "results.sqlite";
/// The report of the experiment, for `progap report`.
const REPORT: &str = "report.json";

/// Writes what an experiment says: for people, and for `progap report`.
pub fn write_report(report: &report::Report, out: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(out).map_err(|e| format!("{}: {e}", out.display()))?;
    let file = out.join(REPORT);
    report::write_text(&file, &serde_json::to_string_pretty(report)?)?;
    report::write(report, out)
}

/// Refuses a folder that holds something other than an experiment. In its own folder an experiment continues, and
/// rewrites its report.
pub fn claim(out: &Path, force: Force) -> Result<()> {
    // One that was killed before its first result has left a lock.
    let begun = [RESULTS, "results.sqlite.lock"].iter().any(|name| out.join(name).is_file());
    match is_folder(out) || begun {
        true => refuse_releases(out)?,
        false => force.folder(out, &[], &Inputs::default())?,
    }
    Ok(())
}

/// Whether a folder is that of an experiment that was shown.
pub fn is_folder(folder: &Path) -> bool {
    folder.join(REPORT).is_file()
}

/// The report of the experiment in a folder, if there is one.
pub fn kept_report(folder: &Path) -> Result<Option<report::Report>> {
    let file = folder.join(REPORT);
    if !is_folder(folder) {
        if folder.join(RESULTS).is_file() {
            let problem = "the experiment is not finished; run the same command to continue";
            return Err(format!("{}: {problem}", folder.display()).into());
        }
        return Ok(None);
    }
    let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let report = serde_json::from_str(&text).map_err(|e| {
        format!("{}: {e}; run the experiment again to rewrite it; no run is repeated", file.display())
    })?;
    Ok(Some(report))
}
