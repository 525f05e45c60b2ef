//! A report as one page that needs nothing else: no network, no other file.

use super::content::{Block, Cell, Figure, Report, Table, Tone};
use crate::plot::{self, Role, SERIES, SvgTarget, escape, variable};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// With more rows than this, the table of a figure scrolls in a box of its own.
const TALL: usize = 20;

/// A table with more columns than this is set close, and on a phone each of its rows becomes a list.
const MANY_COLUMNS: usize = 5;

/// The whole page.
pub fn render(report: &Report) -> String {
    let title = escape(&report.title);
    let links = report.sections.iter().map(|section| {
        format!("<li><a href=\"#{}\">{}</a></li>", escape(&section.id), escape(&section.heading))
    });
    let sections = report.sections.iter().map(|section| {
        let id = escape(&section.id);
        let blocks: String = section.blocks.iter().map(render_block).collect();
        format!(
            "<section id=\"{id}\" aria-labelledby=\"{id}-heading\">\n<h2 \
             id=\"{id}-heading\">{}</h2>\n{blocks}</section>\n",
            escape(&section.heading)
        )
    });
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'; img-src data:\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>\n{}{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#content\">To the content</a>\n<div \
         class=\"page\">\n<header>\n<div>\n<h1>{title}</h1>\n\
         <p class=\"subtitle\">{}</p>\n</div>\n<button id=\"theme\" type=\"button\" \
         hidden>Colours</button>\n</header>\n\
         <nav aria-label=\"Sections\"><ul>{}</ul></nav>\n<main id=\"content\">\n{}</main>\n\
         <footer>Written by progap {}. To read exact values of a figure, point at it, or press the tab key and then \
         the \
         arrow keys. Figures and tables lie beside this page as files of their own.</footer>\n\
         </div>\n<div id=\"tip\" role=\"status\" hidden></div>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        colours(),
        escape(&report.subtitle),
        links.collect::<String>(),
        sections.collect::<String>(),
        env!("CARGO_PKG_VERSION"),
    )
}

/// The colours of a light and of a dark page; paper is always light.
fn colours() -> String {
    let hex = |plot::Colour(r, g, b): plot::Colour| format!("#{r:02x}{g:02x}{b:02x}");
    let roles = [Role::Text, Role::Muted, Role::Grid, Role::Ground, Role::Heat];
    let roles = roles.into_iter().chain((0..SERIES.len()).map(Role::Series));
    let light: String = roles.map(|role| format!("{}:{};", variable(role), hex(role.colour()))).collect();
    let light = format!("{light}--link:#00598c;--tint:#f2f4f7;--caution:#fdf1e7;color-scheme:light;");
    // The hues of the light page, bright enough for a dark ground.
    const DARK: &str = "--text:#e7e9ec;--muted:#a6adb6;--grid:#363c44;--ground:#14171b;--heat:#005f96;\
                        --c0:#4da3df;--c1:#f07f3c;--c2:#2fc096;--c3:#e29cc5;--c4:#f2b63f;--c5:#9ad5f6;--c6:#e7e9ec;\
                        --c7:#f0e442;--link:#7cc0f0;--tint:#1e2329;--caution:#33251a;color-scheme:dark;";
    format!(
        ":root {{ {light} }}\n@media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) \
         {{ {DARK} }} }}\n\
         @media screen {{ :root[data-theme=dark] {{ {DARK} }} }}\n"
    )
}

fn render_block(block: &Block) -> String {
    match block {
        Block::Paragraph(text) => format!("<p>{}</p>\n", escape(text)),
        Block::Notice(tone, text) => {
            let (class, role) = match tone {
                Tone::Good => ("notice", ""),
                Tone::Caution => ("notice caution", " role=\"note\""),
            };
            format!("<p class=\"{class}\"{role}>{}</p>\n", escape(text))
        }
        Block::List(items) => {
            let items: String = items.iter().map(|item| format!("<li>{}</li>", escape(item))).collect();
            format!("<ul class=\"list\">{items}</ul>\n")
        }
        Block::Facts(facts) => {
            let row = |(name, value): &(String, String)| {
                format!("<dt>{}</dt><dd>{}</dd>", escape(name), escape(value))
            };
            format!("<dl class=\"facts\">{}</dl>\n", facts.iter().map(row).collect::<String>())
        }
        Block::Code { name, text } => format!(
            "<p class=\"code-name\">{0}</p>\n<pre tabindex=\"0\" role=\"region\" \
             aria-label=\"{0}\"><code>{1}</code></pre>\n",
            escape(name),
            escape(text.trim_end())
        ),
        Block::Table(table) => render_table(table, true),
        Block::Figure(figure) => render_figure(figure, false),
        Block::Panels(figures) => {
            let figures: String = figures.iter().map(|figure| render_figure(figure, true)).collect();
            format!("<div class=\"panels\">\n{figures}</div>\n")
        }
    }
}

/// A table in a box that scrolls by itself where the page is too narrow.
fn render_table(table: &Table, captioned: bool) -> String {
    let numeric: Vec<bool> = (0..table.columns.len()).map(|column| table.is_numeric(column)).collect();
    let class = |column: usize| if numeric.get(column) == Some(&true) { " class=\"number\"" } else { "" };
    let head = table.columns.iter().enumerate();
    let many = captioned && table.columns.len() > MANY_COLUMNS;
    // A list is no table to a browser: the roles say what it is all the same.
    let role = |name: &str| if many { format!(" role=\"{name}\"") } else { String::new() };
    let head: String = head
        .map(|(column, name)| {
            format!("<th scope=\"col\"{}{}>{}</th>", role("columnheader"), class(column), escape(name))
        })
        .collect();
    let cell = |(column, cell): (usize, &Cell)| {
        let text = render_text(cell);
        let text = if cell.bold { format!("<strong>{text}</strong>") } else { text };
        let label = |name: &String| format!(" data-label=\"{}\"", escape(name));
        let label = table.columns.get(column).filter(|_| many).map(label).unwrap_or_default();
        match column {
            0 => format!("<th scope=\"row\"{}{}{label}>{text}</th>", role("rowheader"), class(column)),
            _ => format!("<td{}{}{label}>{text}</td>", role("cell"), class(column)),
        }
    };
    let row = |row: &Vec<Cell>| {
        let cells = row.iter().enumerate().map(cell).collect::<String>();
        format!("<tr{}>{cells}</tr>\n", role("row"))
    };
    let rows: String = table.rows.iter().map(row).collect();
    let tall = if !captioned && table.rows.len() > TALL { " tall" } else { "" };
    let caption = escape(&table.caption);
    let above = if captioned { format!("<p class=\"caption\">{caption}</p>\n") } else { String::new() };
    let kind = if many { " class=\"many\"" } else { "" };
    let (whole, group, line) = (role("table"), role("rowgroup"), role("row"));
    format!(
        "<div class=\"table\">\n{above}<div class=\"scroll{tall}\" tabindex=\"0\" role=\"region\" \
         aria-label=\"{caption}\">\n\
         <table{kind}{whole} aria-label=\"{caption}\">\n<thead{group}><tr{line}>{head}</tr></thead>\n<tbody{group}>\n\
         {rows}</tbody></table></div></div>\n"
    )
}

/// The text of a cell, which breaks between a value and its interval only.
fn render_text(cell: &Cell) -> String {
    match cell.text.split_once(" (").filter(|_| cell.value.is_some()) {
        Some((value, interval)) => {
            let value = escape(value).replace(' ', "&nbsp;");
            format!("{value} <span class=\"within\">({}</span>", escape(interval))
        }
        None if cell.value.is_some() => escape(&cell.text).replace(' ', "&nbsp;").replace("&nbsp;±", " ±"),
        None => escape(&cell.text),
    }
}

/// A figure in the widths it is needed in, its caption, and its numbers as a table.
fn render_figure(figure: &Figure, panel: bool) -> String {
    let picture = |class: &str, width: f32| {
        let svg = plot::svg(&plot::draw(&figure.plot, "", width), SvgTarget::Page { label: &figure.alt });
        format!("<div class=\"{class}\">{svg}</div>\n")
    };
    let wide = if panel { String::new() } else { picture("wide", plot::WIDE) };
    format!(
        "<figure id=\"figure-{}\">\n{wide}{}<figcaption>{}</figcaption>\n<details><summary>The numbers as a \
         table</summary>\n{}\
         </details>\n</figure>\n",
        escape(&figure.id),
        picture("narrow", plot::NARROW),
        escape(&figure.caption),
        render_table(&figure.table(), false)
    )
}
