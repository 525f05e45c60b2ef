//! Several experiments in one document.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use progap_graph::{AtomicFile, AtomicFolder};

use super::{Result, kept_report};
use crate::command::Outcome;
use crate::output::{Force, Inputs};
use crate::report::{Block, Report, markdown};
use crate::{plot, ui};

/// Several experiments in one document.
#[derive(Args)]
pub struct Collect {
    /// Markdown file to write; its figures go to a folder of the same name
    out: PathBuf,
    /// Folders of experiments, in reading order
    #[arg(required = true)]
    folders: Vec<PathBuf>,
    /// Title of the document
    #[arg(long, default_value = "Results")]
    title: String,
    #[command(flatten)]
    force: Force,
}

impl Collect {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let mut all = Report { title: self.title.clone(), subtitle: String::new(), sections: vec![] };
        for (at, folder) in self.folders.iter().enumerate() {
            let report = kept_report(folder)?
                .ok_or_else(|| format!("{}: there is no experiment here", folder.display()))?;
            all.sections.extend(apart(report, at + 1).sections);
        }
        let name = self.out.file_stem().and_then(|name| name.to_str()).ok_or("name a Markdown file")?;
        if self.out.extension().is_none_or(|ending| ending != "md") {
            return Err(format!("{}: name a Markdown file (.md)", self.out.display()).into());
        }
        let figures = self.out.with_extension("");
        let inputs = Inputs::of(self.folders.iter().map(PathBuf::as_path));
        self.force.file(&self.out, &inputs)?;
        self.force.folder(&figures, &[], &inputs)?;
        let staged = AtomicFolder::create(&figures)?;
        for figure in all.figures() {
            let picture = plot::draw(&figure.plot, "", plot::WIDE);
            picture.write(&staged.path().join(format!("{}.svg", figure.id)))?;
        }
        staged.commit_into(None)?;
        // Where the page is, its figures are.
        write_text(&self.out, &markdown(&all, name))?;
        ui::print(&self.out.display().to_string())
    }
}

/// The report with names of its own for sections, tables and figures.
fn apart(mut report: Report, number: usize) -> Report {
    let subtitle = Block::Paragraph(report.subtitle.clone());
    if let Some(first) = report.sections.first_mut() {
        first.blocks.insert(0, subtitle);
    }
    let rename = |id: &mut String| *id = format!("{number}-{id}");
    for section in &mut report.sections {
        rename(&mut section.id);
        section.heading = heading(&report.title, &report.subtitle, &section.heading);
        for block in &mut section.blocks {
            match block {
                Block::Table(table) => rename(&mut table.id),
                Block::Figure(figure) => rename(&mut figure.id),
                Block::Panels(figures) => figures.iter_mut().for_each(|figure| rename(&mut figure.id)),
                _ => {}
            }
        }
    }
    report
}

/// The name of a section: the experiment, its data sets (of several the first), and the section where an experiment has
/// more than one.
fn heading(title: &str, subtitle: &str, section: &str) -> String {
    if section == title {
        return title.into();
    }
    let sets: Vec<&str> = subtitle.split(';').next().unwrap_or_default().split(", ").collect();
    let on = match sets[..] {
        [one] => one.to_string(),
        [first, ref others @ ..] => format!("{first} and {} more", others.len()),
        [] => String::new(),
    };
    format!("{title} ({on}): {}", section.to_lowercase())
}

fn write_text(path: &Path, text: &str) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(text.as_bytes()).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(file.commit()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_tell_data_sets_apart() {
        assert_eq!(heading("Data sets", "demo, fb-100", "Data sets"), "Data sets");
        assert_eq!(heading("Convergence", "fb-100; 2 runs each", "Results"), "Convergence (fb-100): results");
        let several = heading("Convergence", "demo, fb-100, reddit; 2 runs each", "Settings");
        assert_eq!(several, "Convergence (demo and 2 more): settings");
    }
}
