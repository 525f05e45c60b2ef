//! Reports: one self-contained HTML file, and every figure and table on its own.
//!
//! [`content`] says what a report holds; the renderers turn that into files.

mod alternative;
mod classes;
mod content;
mod html;
mod markdown;
mod public;
mod release;
mod table;
mod tested;
mod thresholds;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use progap_graph::{AtomicFile, AtomicFolder};

pub use content::*;
pub use html::render as html;
pub use markdown::render as markdown;
pub use public::of_release as public;
pub use release::of_release;

use crate::plot;

/// The page, in the folder of a report.
pub const PAGE: &str = "report.html";
/// The files in the folder of a report beside figures and tables.
pub const FILES: [&str; 3] = [PAGE, "report.md", LIST];
const FIGURES: &str = "figures";
const TABLES: &str = "tables";

/// The names of all figures and tables that were written.
const LIST: &str = "files.txt";

/// Writes `report.html`, `report.md`, `figures/ID.svg` and `tables/ID.{csv,md,tex}`, and says where the page is.
/// The numbers of a figure are a table of the same name.
///
/// The folder is there whole or not at all. In one that is there an older report goes first, with all its figures and
/// tables: they may have been made of private labels, and the new report of none.
pub fn write(report: &Report, folder: &Path) -> Result<PathBuf, Box<dyn std::error::Error>> {
    check_ids(report)?;
    let staged = AtomicFolder::create(folder)?;
    // The name of the folder beside tells the user nothing.
    let seen =
        |text: String| text.replace(&staged.path().display().to_string(), &folder.display().to_string());
    write_into(report, staged.path()).map_err(|error| seen(error.to_string()))?;
    remove_older(folder)?;
    staged.commit_into(Some(PAGE))?;
    Ok(folder.join(PAGE))
}

fn write_into(report: &Report, folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    for folder in [folder.join(FIGURES), folder.join(TABLES)] {
        std::fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let figures = report.figures().map(|figure| (FIGURES, &figure.id, "svg"));
    let ids = report.figures().map(|figure| &figure.id).chain(report.tables().map(|table| &table.id));
    let tables = ids.flat_map(|id| TABLE_ENDINGS.map(|end| (TABLES, id, end)));
    let names = figures.chain(tables).map(|(kind, id, end)| format!("{kind}/{id}.{end}\n"));
    write_text(&folder.join(LIST), &names.collect::<String>())?;
    for figure in report.figures() {
        let picture = plot::draw(&figure.plot, "", plot::WIDE);
        picture.write(&folder.join(FIGURES).join(format!("{}.svg", figure.id)))?;
        write_table(&figure.table(), folder)?;
    }
    for table in report.tables() {
        write_table(table, folder)?;
    }
    write_text(&folder.join("report.md"), &markdown(report, FIGURES))?;
    write_text(&folder.join(PAGE), &html::render(report))
}

const TABLE_ENDINGS: [&str; 3] = ["csv", "md", "tex"];

/// Removes the page of an older report, and the figures and tables that it lists; nothing else.
fn remove_older(folder: &Path) -> Result<(), String> {
    let Ok(list) = std::fs::read_to_string(folder.join(LIST)) else { return Ok(()) };
    let ours = |name: &&str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
        let (kind, file) = name.split_once('/').unwrap_or_default();
        [FIGURES, TABLES].contains(&kind) && file.chars().all(plain)
    };
    for name in [PAGE, "report.md"].into_iter().chain(list.lines().filter(ours)) {
        let path = folder.join(name);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(format!("{}: an older report cannot be removed: {e}", path.display()));
            }
            _ => {}
        }
    }
    Ok(())
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
    let texts = [table.csv()?, table.markdown(), table.latex()];
    for (ending, text) in TABLE_ENDINGS.into_iter().zip(texts) {
        write_text(&folder.join(TABLES).join(format!("{}.{ending}", table.id)), &text)?;
    }
    Ok(())
}

/// Writes a file, whole or not at all.
pub fn write_text(path: &Path, text: &str) -> Result<(), Box<dyn std::error::Error>> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(text.as_bytes()).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(file.commit()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "</script><script>x</script>\"'&\u{1}";

    /// A report with every kind of block, in which every text is hostile.
    fn sample() -> Report {
        let text = |name: &str| format!("{name} {HOSTILE}");
        let series = |number: usize| Series {
            name: format!("method {number} {HOSTILE}"),
            points: [0.25, 0.5, 1.0, 2.0, 4.0]
                .into_iter()
                .map(|epsilon: f64| {
                    let share = 0.5 + 0.06 * epsilon.log2() + 0.04 * number as f64;
                    Point::within(epsilon, share, (share - 0.02, share + 0.02))
                })
                .collect(),
        };
        let lines = Lines {
            x: Axis::log(text("epsilon"), vec![0.25, 0.5, 1.0, 2.0, 4.0]),
            y: Axis::percent(text("accuracy")),
            series: (0..6).map(series).collect(),
            references: vec![Reference { name: text("without privacy"), value: 0.88, series: Some(0) }],
            borders: vec![],
        };
        let bar = |value: f64| Some(Bar { value, interval: Some((value - 0.03, value + 0.03)) });
        let bars = Bars {
            label: text("data set"),
            y: Axis::percent("accuracy"),
            groups: vec![text("one"), "two".into(), "three".into()],
            series: (0..3)
                .map(|k| BarSeries {
                    name: format!("variant {k}"),
                    values: vec![bar(0.5 + 0.1 * f64::from(k)), None, bar(0.7)],
                })
                .collect(),
            references: vec![],
        };
        let figure =
            |id: &str, plot: Plot| Figure { id: id.into(), caption: text("caption"), alt: text("alt"), plot };
        let table = Table {
            id: "table".into(),
            caption: text("caption"),
            columns: vec![text("name"), "value".into()],
            rows: vec![vec![Cell::text(text("row")), Cell::percent_within(0.5, (0.4, 0.6)).bold()]],
        };
        let blocks = vec![
            Block::Paragraph(text("paragraph")),
            Block::Notice(Tone::Good, text("good")),
            Block::Notice(Tone::Caution, text("caution")),
            Block::List(vec![text("item")]),
            Block::Facts(vec![(text("name"), text("value"))]),
            Block::Code { name: text("code"), text: text("```") },
            Block::Table(table),
            Block::Figure(figure("lines", Plot::Lines(lines.clone()))),
            Block::Panels(vec![figure("panel-1", Plot::Lines(lines)), figure("panel-2", Plot::Bars(bars))]),
        ];
        let section = Section { id: "all".into(), heading: text("heading"), blocks };
        Report { title: text("title"), subtitle: text("subtitle"), sections: vec![section] }
    }

    #[test]
    fn hostile_text_stays_text_everywhere() {
        let folder = tempfile::tempdir().expect("a folder");
        let page = write(&sample(), folder.path()).expect("written");
        let page = std::fs::read_to_string(page).expect("text");
        assert_eq!(page.matches("<script>").count(), 1, "our own");
        assert_eq!(page.matches("</script>").count(), 1);
        assert!(!page.contains('\u{1}'));
        let names =
            ["title", "subtitle", "heading", "paragraph", "good", "caution", "item", "code", "row", "alt"];
        for name in names {
            let escaped = format!("{name} &lt;/script&gt;&lt;script&gt;x&lt;/script&gt;&quot;&#39;&amp; ");
            assert!(page.contains(&escaped), "{name}");
        }
        let file = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect(name);
        for svg in ["lines", "panel-1", "panel-2"] {
            assert!(!file(&format!("figures/{svg}.svg")).contains("<script"), "{svg}");
        }
        let markdown = file("report.md");
        let prose = markdown.lines().filter(|line| !line.starts_with("```") && !line.contains(": ```"));
        assert!(
            prose.filter(|line| !line.contains("```")).all(|line| !line.contains("<script")),
            "{markdown}"
        );
        assert!(markdown.contains("](figures/panel-2.svg)"));
        assert!(file("tables/table.csv").contains(",0.5,0.4,0.6"));
    }

    #[test]
    fn an_older_report_goes_and_other_files_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        write(&sample(), folder.path()).expect("written");
        std::fs::write(folder.path().join("tables/mine.csv"), "").expect("written");
        std::fs::write(folder.path().join("mine.txt"), "").expect("written");
        let list = folder.path().join(LIST);
        let listed = std::fs::read_to_string(&list).expect("a list");
        assert_eq!(listed.lines().filter(|name| folder.path().join(name).is_file()).count(), 3 * 4 + 3);
        std::fs::write(&list, listed.clone() + "../mine.txt\nmine.txt\ntables/../mine.txt\n")
            .expect("written");
        let mut report = sample();
        report.sections[0].blocks.truncate(7);
        write(&report, folder.path()).expect("written");
        let there = |name: &str| folder.path().join(name).exists();
        assert!(
            there("report.html")
                && there("tables/table.csv")
                && there("tables/mine.csv")
                && there("mine.txt")
        );
        assert!(!there("figures/lines.svg") && !there("tables/lines.csv"));
    }

    #[test]
    fn ids_are_plain_and_used_once() {
        let folder = tempfile::tempdir().expect("a folder");
        for id in ["", "../up", "a b", "table"] {
            let mut report = sample();
            if let Block::Figure(figure) = &mut report.sections[0].blocks[7] {
                figure.id = id.into();
            }
            assert!(write(&report, folder.path()).is_err(), "{id:?}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing is written");
    }

    #[test]
    fn a_report_survives_json() {
        let report = sample();
        let text = serde_json::to_string(&report).expect("JSON");
        assert_eq!(serde_json::from_str::<Report>(&text).expect("a report"), report);
    }
}
