//! The pages of the book that are written from declarations: commands, settings, formats, result tables, and the list
//! of what the libraries offer. Where one of them differs from what it is made of, `PROGAP_RENEW=1 cargo test -p
//! progap-cli --test reference` writes it again.

mod common;

use std::path::{Path, PathBuf};

use common::{folder, progap_in};
use progap::settings::{Declaration, Kind, Scope};
use progap::{MethodKind, Settings};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares a file with what it should be, or writes that.
fn is_current(file: &str, made: &str) {
    let path = root().join(file);
    if std::env::var_os("PROGAP_RENEW").is_some() {
        std::fs::write(&path, made).expect("written");
        return;
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    let mut lines = there.lines().zip(made.lines()).enumerate();
    let first = lines.find(|(_, (there, made))| there != made);
    assert!(
        there == made,
        "{file} is not what its declarations say ({first:?}): PROGAP_RENEW=1 cargo test -p progap-cli --test \
         reference"
    );
}

const NOTE: &str = "<!-- Written from declarations: see crates/cli/tests/reference.rs. -->\n";

/// The names of the subcommands in a help text.
fn subcommands(help: &str) -> Vec<String> {
    let list = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    let names =
        list.lines().take_while(|line| line.starts_with("  ")).filter(|line| !line.starts_with("   "));
    names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(String::from)
        .collect()
}

fn describe(words: &[String], page: &mut String) {
    let place = folder();
    let arguments: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
    let help = progap_in(place.path(), &arguments).ok();
    let title =
        std::iter::once("progap").chain(words.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
    let text: Vec<&str> = help.lines().map(str::trim_end).collect();
    *page += &format!("\n## `{title}`\n\n```text\n{}\n```\n", text.join("\n").trim_end());
    for name in subcommands(&help) {
        describe(&[words, &[name]].concat(), page);
    }
}

#[test]
fn the_reference_of_commands_is_what_they_say_of_themselves() {
    let mut page = format!("{NOTE}# Commands\n\nWhat `--help` prints; `-h` is shorter.\n");
    describe(&[], &mut page);
    assert!(page.matches("\n## ").count() > 15, "{page}");
    is_current("docs/reference/commands.md", &page);
}

fn values(setting: &Declaration) -> String {
    match setting.kind {
        Kind::Choice(all) => {
            let one = |(name, what): (&str, &str)| match what {
                "" => format!("`{name}`"),
                what => format!("`{name}`: {what}"),
            };
            all().into_iter().map(one).collect::<Vec<_>>().join("; ")
        }
        Kind::Switch | Kind::Whole | Kind::Number => setting.expected(),
    }
}

#[test]
fn the_reference_of_settings_is_their_declarations() {
    let mut page = format!(
        "{NOTE}# Settings\n\nEvery setting has the same name as a flag (`--learning-rate`), in `config.toml` and \
         `--set` \
         (`learning_rate`), in Rust and in Python.\n"
    );
    for setting in Settings::declarations().iter().filter(|setting| setting.about.offered) {
        let scope = match setting.scope {
            Scope::Everywhere => "every level",
            Scope::Private => "levels edge and node",
            Scope::Edge => "level edge",
            Scope::Node => "level node",
        };
        page += &format!("\n## `{}`\n\n{}.\n\n", setting.name, setting.help);
        page += &format!("| | |\n|---|---|\n| values | {} |\n", values(setting).replace('|', "\\|"));
        page += &format!("| default | {} |\n| counts at | {scope} |\n", setting.defaults());
    }
    page += "\n# Methods\n\n| method | levels | what | source |\n|---|---|---|---|\n";
    for &method in MethodKind::ALL {
        let entry = progap::method::catalogue::entry(method);
        let levels: Vec<&str> = entry.levels.iter().map(|level| level.name()).collect();
        page += &format!("| `{method}` | {} | {} | {} |\n", levels.join(", "), entry.what, entry.paper);
    }
    is_current("docs/reference/settings.md", &page);
}

/// The documentation of a module, up to its first example.
fn of_module(file: &str) -> String {
    let text =
        std::fs::read_to_string(root().join("crates").join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    pages_of_proofs(&without_links(&lines.join("\n")))
}

/// Links to modules of proofs in the API reference, as links to the pages of the book.
fn pages_of_proofs(text: &str) -> String {
    let mut parts = text.split("](progap_privacy::proofs::");
    let mut linked = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (module, rest) = part.split_once(')').expect("the end of a link");
        let (module, anchor) =
            module.split_once('#').map_or((module, String::new()), |(m, a)| (m, format!("#{a}")));
        linked += &format!("](../proofs/{}.md{anchor}){rest}", module.replace('_', "-"));
    }
    linked
}

/// The fields of a struct, or the variants of an enumeration, with what is said of them.
fn of_type(file: &str, head: &str) -> String {
    let text =
        std::fs::read_to_string(root().join("crates").join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
    let body = text.split_once(&format!("{head} {{\n")).unwrap_or_else(|| panic!("{file}: no {head}")).1;
    let body = body.split("\n}").next().unwrap_or_default();
    let (mut rows, mut said) = (String::from("| name | meaning |\n|---|---|\n"), vec![]);
    for line in body.lines().map(str::trim) {
        if let Some(doc) = line.strip_prefix("///") {
            said.push(doc.trim());
        } else if !line.starts_with("#[") && !said.is_empty() {
            let name = line.trim_start_matches("pub ").split([':', ',', ' ', '(']).next().unwrap_or_default();
            rows += &format!("| `{name}` | {} |\n", without_links(&said.join(" ")));
            said.clear();
        }
    }
    rows
}

/// Links of the API reference as plain code.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("[`") {
        let (before, after) = rest.split_at(at);
        plain += before;
        let Some((label, behind)) = after[1..].split_once(']') else { break };
        plain += label;
        rest = match behind.strip_prefix('(').and_then(|target| target.split_once(')')) {
            Some((_, behind)) => behind,
            None => behind,
        };
    }
    plain + rest
}

#[test]
fn the_reference_of_formats_is_what_the_code_says_of_them() {
    let mut page = format!(
        "{NOTE}# Formats\n\nPublic formats are version 1. What a field means does not change within a version; \
         fields may be added, and a \
         reader refuses those that it does not know.\n"
    );
    page += &format!("\n## A release\n\n{}\n", of_module("progap/src/release/mod.rs"));
    let statement = of_type("progap/src/release/statement.rs", "pub struct Statement");
    page += &format!("\n## The statement: `privacy.json`\n\n{statement}");
    let mechanism = of_type("progap/src/release/statement.rs", "pub struct Mechanism");
    page += &format!("\nEach of `mechanisms` has\n\n{mechanism}");
    let event = of_type("privacy/src/event/mod.rs", "pub enum Event");
    page += &format!("\n## Events\n\n{event}");
    page += &format!("\n## A data set: `.progap`\n\n{}\n", of_module("graph/src/store/mod.rs"));
    page += &format!("\n## A folder of parts\n\n{}\n", of_module("graph/src/store/parts.rs"));
    is_current("docs/reference/formats.md", &page);
}

/// A result table as Markdown: a head of `# name: value` lines, then CSV without quotes.
fn rendered(name: &str, text: &str) -> String {
    let fact = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(&format!("# {name}: "))).unwrap_or_default()
    };
    let rows: Vec<Vec<&str>> =
        text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(',').collect()).collect();
    assert!(rows.len() > 1 && rows.iter().all(|row| row.len() == rows[0].len()), "{name}: a table");
    let line = |row: &Vec<&str>| format!("| {} |\n", row.join(" | "));
    for key in ["title", "command", "date", "build"] {
        assert!(!fact(key).is_empty(), "{name}: no line \"# {key}: ...\"");
    }
    let mut table = line(&rows[0]) + &"|---".repeat(rows[0].len()) + "|\n";
    rows[1..].iter().for_each(|row| table += &line(row));
    let (title, command, date, build) = (fact("title"), fact("command"), fact("date"), fact("build"));
    format!(
        "## {title}\n\n```sh\n{command}\n```\n\n{table}\nMeasured on {date} with build {build} \
         (`docs/results/{name}`).\n\n"
    )
}

/// The pages with result tables hold those of `docs/results/`, each with its command, its date and its build.
#[test]
fn result_tables_are_the_files_they_come_from() {
    let entries = std::fs::read_dir(root().join("docs/results")).expect("a folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "csv"));
    files.sort();
    for (page, wanted) in [("docs/results.md", false), ("docs/performance.md", true)] {
        let text = std::fs::read_to_string(root().join(page)).expect("text");
        let (before, rest) = text.split_once("<!-- results -->\n").expect("a place for tables");
        let (_, after) = rest.split_once("<!-- /results -->").expect("its end");
        let mut tables = String::new();
        for path in &files {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            if name.starts_with("performance") == wanted {
                tables += &rendered(&name, &std::fs::read_to_string(path).expect("text"));
            }
        }
        is_current(page, &format!("{before}<!-- results -->\n{tables}<!-- /results -->{after}"));
    }
}

/// The public items of a file and of the public modules below it; `mod`s that are hidden from the documentation are
/// left out.
fn public_items(file: &Path, path: &str, items: &mut Vec<String>) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let code = text.split("\n#[cfg(test)]").next().unwrap_or_default();
    let mut hidden = false;
    let mut lines = code.lines().peekable();
    while let Some(line) = lines.next() {
        let line = line.trim();
        hidden |= line == "#[doc(hidden)]";
        let Some(item) = line.strip_prefix("pub ") else {
            hidden &= line.starts_with('#') || line.starts_with("//");
            continue;
        };
        if std::mem::take(&mut hidden) {
            continue;
        }
        let mut item = item.to_string();
        while !item.contains(['{', ';', '=']) && !item.ends_with(',') {
            let Some(next) = lines.next() else { break };
            item += " ";
            item += next.trim();
        }
        if let Some(name) = item.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
            let folder = match file.file_stem().and_then(|stem| stem.to_str()) {
                Some("lib" | "mod") => file.parent().expect("a folder").to_path_buf(),
                _ => file.with_extension(""),
            };
            let own = [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")];
            let below = own.iter().find(|file| file.is_file()).unwrap_or_else(|| panic!("{path}::{name}"));
            public_items(below, &format!("{path}::{name}"), items);
        } else if !item.ends_with(',') {
            let head = item.split(" {").next().unwrap_or_default().split(" = ").next().unwrap_or_default();
            items.push(format!("{path}: {}", head.trim_end_matches(';')));
        }
    }
}

/// What the two public libraries offer: a change of it is seen in review. Of `progap` that is its first page, the front
/// door.
#[test]
fn what_the_libraries_offer_is_listed() {
    let mut items = vec![];
    public_items(&root().join("crates/privacy/src/lib.rs"), "progap_privacy", &mut items);
    let front = std::fs::read_to_string(root().join("crates/progap/src/lib.rs")).expect("text");
    let statements =
        front.split("pub ").skip(1).filter_map(|rest| rest.split_once(';')).map(|(item, _)| item);
    for item in statements.filter(|item| item.starts_with("use ") || item.starts_with("mod ")) {
        items.push(format!("progap: {}", item.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    public_items(&root().join("crates/progap/src/front/mod.rs"), "progap::front", &mut items);
    items.sort();
    assert!(items.len() > 100, "{items:#?}");
    is_current("docs/reference/api.txt", &(items.join("\n") + "\n"));
}
