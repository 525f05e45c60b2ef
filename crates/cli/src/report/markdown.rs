//! A whole report as Markdown, for repositories and notes.

use super::content::{Block, Figure, Report, Tone};
use super::table::markdown_text;

/// The report, with figures linked as files below `folder`.
pub fn render(report: &Report, folder: &str) -> String {
    let mut out = format!("# {}\n", markdown_text(&report.title));
    if !report.subtitle.is_empty() {
        out += &format!("\n{}\n", markdown_text(&report.subtitle));
    }
    for section in &report.sections {
        out += &format!("\n## {}\n", markdown_text(&section.heading));
        for block in &section.blocks {
            out += &format!("\n{}", render_block(block, folder));
        }
    }
    out
}

fn render_block(block: &Block, folder: &str) -> String {
    match block {
        Block::Paragraph(text) => format!("{}\n", markdown_text(text)),
        Block::Notice(Tone::Good, text) => format!("> {}\n", markdown_text(text)),
        Block::Notice(Tone::Caution, text) => format!("> **Take care.** {}\n", markdown_text(text)),
        Block::List(items) => items.iter().map(|item| format!("- {}\n", markdown_text(item))).collect(),
        Block::Facts(facts) => {
            let row = |(name, value): &(String, String)| {
                format!("- {}: {}\n", markdown_text(name), markdown_text(value))
            };
            facts.iter().map(row).collect()
        }
        Block::Code { name, text } => {
            // A fence that is longer than any in the text.
            let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
            let fence = "`".repeat(longest.max(2) + 1);
            format!("{}:\n\n{fence}\n{}\n{fence}\n", markdown_text(name), text.trim_end())
        }
        Block::Table(table) => format!("{}\n\n{}", markdown_text(&table.caption), table.markdown()),
        Block::Figure(figure) => render_figure(figure, folder),
        Block::Panels(figures) => {
            figures.iter().map(|figure| render_figure(figure, folder)).collect::<Vec<_>>().join("\n")
        }
    }
}

fn render_figure(figure: &Figure, folder: &str) -> String {
    format!(
        "![{}]({folder}/{}.svg)\n\n{}\n",
        markdown_text(&figure.alt),
        figure.id,
        markdown_text(&figure.caption)
    )
}
