//! How things look in a terminal.

mod number;
mod progress;

pub use number::{noise_in_words, up};
pub use progap::cost::{cpu_seconds, peak_memory};
pub use progress::{Download, Runs, Training, duration, spinner};

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use terminal_size::{Width, terminal_size_of};

use crate::command::Outcome;

/// Whether nothing but errors is printed.
static SILENT: AtomicBool = AtomicBool::new(false);

/// From now on nothing but errors is printed.
pub fn silence() {
    SILENT.store(true, Ordering::Relaxed);
}

/// Prints a text and a line end, unless silent; a closed pipe is an error that `main` takes for a quiet end.
pub fn print(text: &str) -> Outcome {
    if SILENT.load(Ordering::Relaxed) {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{}", harmless(text.trim_end())).and_then(|()| out.flush())?;
    Ok(())
}

/// A text that does nothing to a terminal: names come from files, and may hold sequences that move the cursor, change
/// the title or hide a line. Control characters are shown as what they are; line ends and tabs stay.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| (c.is_control() && c != '\n' && c != '\t') || is_direction(c);
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let show = |c: char| if harmful(c) { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(show).collect())
}

/// Whether a character turns the direction of what follows, so that a line reads as another one.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Says what the owner of the data must know, also where nothing else is printed.
pub fn warn(text: &str) {
    let _ = writeln!(io::stderr(), "warning, for the data owner: {}", harmless(text));
}

/// Whether the reader of our output went away, as `head` does.
pub fn is_closed_pipe(error: &(dyn std::error::Error + 'static)) -> bool {
    let broken = |e: &(dyn std::error::Error + 'static)| {
        // The csv crate names no source.
        let of_csv = e.downcast_ref::<csv::Error>().and_then(|e| match e.kind() {
            csv::ErrorKind::Io(e) => Some(e),
            _ => None,
        });
        of_csv.or(e.downcast_ref::<io::Error>()).is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    };
    std::iter::successors(Some(error), |e| e.source()).any(broken)
}

/// A titled list of names and values.
pub fn facts(title: &str, rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = format!("{title}\n{}", "─".repeat(title.chars().count()));
    for (name, value) in rows {
        text += &format!("\n{name:<width$}  {value}");
    }
    text
}

/// A table whose columns after the first are right-aligned where they look like numbers.
pub fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    wide_table(&header, rows.into_iter().map(Vec::from))
}

/// A [`table`] of any number of columns.
pub fn wide_table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    let line = LineStyle::none().fill('─').junction('─');
    table
        .load_style(TableStyle::new().header_separator(line))
        .set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header);
    for row in rows {
        table.add_row(row.into_iter().map(|text| {
            let number = text.starts_with(|c: char| c.is_ascii_digit())
                && text.chars().all(|c| c.is_ascii_digit() || " ,.%±*".contains(c));
            Cell::new(text).set_alignment(if number { CellAlignment::Right } else { CellAlignment::Left })
        }));
    }
    // Where nobody says how wide the terminal is, lines stay readable; no column can do with a letter or two.
    let width = terminal_size_of(std::io::stdout()).map(|(Width(width), _)| width);
    table.set_width(width.filter(|&width| width >= NARROWEST).unwrap_or(USUAL_WIDTH));
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

const USUAL_WIDTH: u16 = 100;
const NARROWEST: u16 = 60;

/// A number with thousands separated: 1,354,934.
pub fn count(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share as a percentage, with enough digits for small ones.
pub fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.01 {
        format!("{:.2} %", share * 100.0)
    } else {
        format!("{:.1} %", share * 100.0)
    }
}

/// Words with a capital letter at the beginning.
pub fn capitalised(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A size in bytes, in the unit people would use.
pub fn bytes(size: usize) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (size as f64, 0);
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{size} bytes") } else { format!("{value:.1} {}", units[unit]) }
}

/// A horizontal bar for a share between 0 and 1.
pub fn bar(share: f64, width: usize) -> String {
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    format!("{}{part}", "█".repeat(eighths / 8))
}

/// A text broken into lines of at most `width` characters, each after the first indented.
pub fn wrap(text: &str, width: usize, indent: usize) -> String {
    let mut wrapped = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            wrapped += &format!("\n{:indent$}", "");
            column = 0;
        } else if column > 0 {
            wrapped.push(' ');
            column += 1;
        }
        wrapped += word;
        column += length;
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_steer_a_terminal() {
        assert_eq!(harmless("a\nb\tc é"), "a\nb\tc é");
        assert_eq!(harmless("\u{1b}[2Jx\u{9b}1m\r\u{7}"), "\\u{1b}[2Jx\\u{9b}1m\\r\\u{7}");
        assert_eq!(harmless("a\u{202e}b"), "a\\u{202e}b");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!([count(0), count(999), count(1_354_934)], ["0", "999", "1,354,934"]);
        assert_eq!([bytes(12), bytes(1536), bytes(5 << 30)], ["12 bytes", "1.5 KiB", "5.0 GiB"]);
        assert_eq!([percent(0.2016), percent(0.00123)], ["20.2 %", "0.12 %"]);
        assert_eq!(bar(0.5, 4), "██");
    }
}
