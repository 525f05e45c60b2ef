//! Tables as text for other programs: CSV, Markdown, LaTeX.

use super::content::{Cell, Table};
use crate::plot::escaped;

impl Table {
    /// Whether a column holds numbers, which are aligned on the right.
    pub fn is_numeric(&self, column: usize) -> bool {
        let mut cells =
            self.rows.iter().filter_map(|row| row.get(column)).filter(|cell| **cell != Cell::missing());
        cells.clone().next().is_some() && cells.all(|cell| cell.value.is_some())
    }

    /// As CSV (RFC 4180). Numbers keep all their digits; intervals have columns of their own.
    pub fn csv(&self) -> Result<String, Box<dyn std::error::Error>> {
        let has_interval = |column: usize| {
            self.rows.iter().any(|row| row.get(column).is_some_and(|cell| cell.interval.is_some()))
        };
        let mut header = Vec::new();
        for (column, name) in self.columns.iter().enumerate() {
            header.push(name.clone());
            if has_interval(column) {
                header.extend(["low", "high"].map(|end| format!("{name} ({end})")));
            }
        }
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&header)?;
        for row in &self.rows {
            let mut fields = Vec::new();
            for (column, cell) in row.iter().enumerate() {
                fields.push(cell.value.map_or_else(|| cell.text.clone(), |value| value.to_string()));
                if has_interval(column) {
                    let ends = cell.interval.map(|(low, high)| [low.to_string(), high.to_string()]);
                    fields.extend(ends.unwrap_or_default());
                }
            }
            writer.write_record(&fields)?;
        }
        Ok(String::from_utf8(writer.into_inner()?)?)
    }

    /// As a Markdown table, without its caption.
    pub fn markdown(&self) -> String {
        let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut out = row(self.columns.iter().map(|name| markdown_text(name)).collect());
        let rule = |column| if self.is_numeric(column) { "--:" } else { "---" };
        out += &format!("|{}|\n", (0..self.columns.len()).map(rule).collect::<Vec<_>>().join("|"));
        for cells in &self.rows {
            let text = |cell: &Cell| match (cell.bold, markdown_text(&cell.text)) {
                (true, text) if !text.is_empty() => format!("**{text}**"),
                (_, text) => text,
            };
            out += &row(cells.iter().map(text).collect());
        }
        out
    }

    /// As a LaTeX table, for the package booktabs.
    pub fn latex(&self) -> String {
        let align = |column| if self.is_numeric(column) { 'r' } else { 'l' };
        let columns: String = (0..self.columns.len()).map(align).collect();
        let row = |cells: Vec<String>| format!("  {} \\\\\n", cells.join(" & "));
        let mut out = format!(
            "% \\usepackage{{booktabs}}\n\\begin{{table}}\n  \\centering\n  \\caption{{{}}}\n  \\label{{tab:{}}}\n  \
             \\begin{{tabular}}{{{columns}}}\n  \\toprule\n",
            latex_text(&self.caption),
            self.id
        );
        out += &row(self.columns.iter().map(|name| latex_text(name)).collect());
        out += "  \\midrule\n";
        for cells in &self.rows {
            let text = |cell: &Cell| match (cell.bold, latex_text(&cell.text)) {
                (true, text) => format!("\\textbf{{{text}}}"),
                (false, text) => text,
            };
            out += &row(cells.iter().map(text).collect());
        }
        out + "  \\bottomrule\n  \\end{tabular}\n\\end{table}\n"
    }
}

/// A text in which Markdown sees nothing but text, on one line.
pub fn markdown_text(text: &str) -> String {
    escaped(text, |c| match c {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '\\' => Some(r"\\"),
        '|' => Some(r"\|"),
        '`' => Some(r"\`"),
        '*' => Some(r"\*"),
        '_' => Some(r"\_"),
        '[' => Some(r"\["),
        ']' => Some(r"\]"),
        '#' => Some(r"\#"),
        '~' => Some(r"\~"),
        '!' => Some(r"\!"),
        c if c.is_control() => Some(" "),
        _ => None,
    })
}

/// A text in which LaTeX sees nothing but text.
fn latex_text(text: &str) -> String {
    escaped(text, |c| match c {
        '\\' => Some(r"\textbackslash{}"),
        '~' => Some(r"\textasciitilde{}"),
        '^' => Some(r"\textasciicircum{}"),
        '<' => Some(r"\textless{}"),
        '>' => Some(r"\textgreater{}"),
        '|' => Some(r"\textbar{}"),
        '"' => Some(r"\textquotedbl{}"),
        '{' => Some(r"\{"),
        '}' => Some(r"\}"),
        '$' => Some(r"\$"),
        '&' => Some(r"\&"),
        '#' => Some(r"\#"),
        '%' => Some(r"\%"),
        '_' => Some(r"\_"),
        '±' => Some(r"$\pm$"),
        '×' => Some(r"$\times$"),
        '∞' => Some(r"$\infty$"),
        'ε' => Some(r"$\varepsilon$"),
        'δ' => Some(r"$\delta$"),
        '−' => Some("$-$"),
        '≤' => Some(r"$\le$"),
        '≥' => Some(r"$\ge$"),
        '–' => Some("--"),
        '…' => Some(r"\dots{}"),
        c if c.is_control() => Some(" "),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        Table {
            id: "t".into(),
            caption: "5 % of_it & more".into(),
            columns: vec!["class, \"name\"".into(), "a|b".into(), "accuracy".into()],
            rows: vec![
                vec![Cell::text("<x>\n*y*"), Cell::count(12_345), Cell::percent_within(0.5, (0.25, 0.75))],
                vec![Cell::text("a\\b_$^"), Cell::missing(), Cell::percent(1.0 / 3.0).bold()],
            ],
        }
    }

    #[test]
    fn csv_has_all_digits_and_quotes_what_it_must() {
        let expected = "\"class, \"\"name\"\"\",a|b,accuracy,accuracy (low),accuracy (high)\n\
                        \"<x>\n*y*\",12345,0.5,0.25,0.75\n\
                        a\\b_$^,–,0.3333333333333333,,\n";
        assert_eq!(sample().csv().unwrap(), expected);
    }

    #[test]
    fn markdown_keeps_one_line_per_row() {
        let expected = "| class, \"name\" | a\\|b | accuracy |\n|---|--:|--:|\n\
                        | &lt;x&gt; \\*y\\* | 12,345 | 50.0 % (25.0 to 75.0) |\n\
                        | a\\\\b\\_$^ | – | **33.3 %** |\n";
        assert_eq!(sample().markdown(), expected);
    }

    #[test]
    fn latex_sees_only_text() {
        let text = sample().latex();
        assert!(
            text.contains("\\caption{5 \\% of\\_it \\& more}") && text.contains("\\begin{tabular}{lrr}"),
            "{text}"
        );
        assert!(
            text.contains("a\\textbackslash{}b\\_\\$\\textasciicircum{} & -- & \\textbf{33.3 \\%} \\\\"),
            "{text}"
        );
        assert_eq!(text.matches("\\\\\n").count(), 3);
    }
}
