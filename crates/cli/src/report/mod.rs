//! Reports: one self-contained HTML file, and every figure and table on its own.
//!
//! [`content`] says what a report holds; the renderers turn that into files.

mod alternative;
mod content;
mod html;
mod markdown;
mod release;
mod table;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use progap_graph::AtomicFile;

pub use content::*;
pub use markdown::render as markdown;
pub use release::of_release;

use crate::plot;

/// The page, in the folder of a report.
pub const PAGE: &str = "report.html";
const FIGURES: &str = "figures";
const TABLES: &str = "tables";

/// Writes `report.html`, `report.md`, `figures/ID.{svg,png}` and `tables/ID.{csv,md,tex}`, and says where the page is.
/// The numbers of a figure are a table of the same name.
pub fn write(report: &Report, folder: &Path) -> Result<PathBuf, Box<dyn std::error::Error>> {
    check_ids(report)?;
    for folder in [folder.join(FIGURES), folder.join(TABLES)] {
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    for figure in report.figures() {
        let picture = plot::draw(&figure.plot, "", plot::WIDE);
        for ending in ["svg", "png"] {
            picture.write(&folder.join(FIGURES).join(format!("{}.{ending}", figure.id)))?;
        }
        write_table(&figure.table(), folder)?;
    }
    for table in report.tables() {
        write_table(table, folder)?;
    }
    write_text(&folder.join("report.md"), &markdown(report, FIGURES))?;
    // The page comes last: where it is, everything is.
    let page = folder.join(PAGE);
    write_text(&page, &html::render(report))?;
    Ok(page)
}

impl Report {
    fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.sections.iter().flat_map(|section| &section.blocks)
    }

    /// Every figure.
    pub fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.blocks().flat_map(|block| match block {
            Block::Figure(figure) => std::slice::from_ref(figure),
            Block::Panels(figures) => figures,
            _ => &[],
        })
    }

    /// Every table that is not the alternative of a figure.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.blocks().filter_map(|block| match block {
            Block::Table(table) => Some(table),
            _ => None,
        })
    }
}

/// Ids become names of files and anchors: they are plain, and no two are the same.
fn check_ids(report: &Report) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    let files = report.figures().map(|figure| &figure.id).chain(report.tables().map(|table| &table.id));
    let sections = report.sections.iter().map(|section| format!("#{}", section.id));
    for id in files.cloned().chain(sections) {
        let plain = id.trim_start_matches('#').chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        if id.trim_start_matches('#').is_empty() || !plain || !seen.insert(id.clone()) {
            return Err(format!("{id:?} cannot name a part of a report: it is used twice, or not plain"));
        }
    }
    Ok(())
}

fn write_table(table: &Table, folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    for (ending, text) in [("csv", table.csv()), ("md", table.markdown()), ("tex", table.latex())] {
        write_text(&folder.join(TABLES).join(format!("{}.{ending}", table.id)), &text)?;
    }
    Ok(())
}

fn write_text(path: &Path, text: &str) -> Result<(), Box<dyn std::error::Error>> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(text.as_bytes()).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(file.commit()?)
}
