//! The pages of proofs and the code point at each other, and neither points at nothing; rustdoc checks the links of the
//! code.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The name and the text of every page.
fn pages() -> Vec<(String, String)> {
    let entries = fs::read_dir(root().join("proofs")).expect("the folder can be read");
    let paths = entries.map(|entry| entry.expect("the entry can be read").path());
    let page = |path: PathBuf| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, fs::read_to_string(&path).expect("text"))
    };
    paths.map(page).filter(|(name, _)| name != "links").collect()
}

/// Where links of pages lead: the definitions of the API reference, and those of the book.
fn definitions() -> [String; 2] {
    ["proofs/links.md", "../../docs/proofs/links.txt"]
        .map(|file| fs::read_to_string(root().join(file)).expect("text"))
}

fn anchors(document: &str) -> BTreeSet<String> {
    document.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}

/// The anchor name at the start of a text.
fn anchor_name(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).unwrap_or(text.len());
    &text[..end]
}

#[test]
fn every_page_is_in_the_reference_and_in_the_book() {
    let reference = fs::read_to_string(root().join("src/proofs.rs")).expect("text");
    let summary = fs::read_to_string(root().join("../../docs/SUMMARY.md")).expect("text");
    let pages = pages();
    assert!(pages.len() > 20, "{} pages", pages.len());
    for (name, text) in pages {
        assert!(text.starts_with("# "), "{name}: a title first");
        assert!(reference.contains(&format!("\"{name}\",")), "{name}: src/proofs.rs");
        assert!(summary.contains(&format!("(proofs/{name}.md)")), "{name}: docs/SUMMARY.md");
        let book = fs::read_to_string(root().join(format!("../../docs/proofs/{name}.md")))
            .expect("a page of the book");
        assert!(
            book.contains(&format!("{{{{#include ../../crates/privacy/proofs/{name}.md}}}}")),
            "{name}: {book}"
        );
    }
}

#[test]
fn links_between_pages_work_in_the_reference_and_in_the_book() {
    let pages = pages();
    let [reference, book] = definitions();
    let anchors = |name: &str| {
        pages.iter().find(|(page, _)| page == name).map(|(_, text)| anchors(text)).unwrap_or_default()
    };
    let mut links = 0;
    for (name, text) in &pages {
        for rest in text.split("](#").skip(1) {
            assert!(anchors(name).contains(anchor_name(rest)), "{name}: no anchor #{}", anchor_name(rest));
        }
        for rest in text.split("][").skip(1) {
            let label = anchor_name(rest);
            for definitions in [&reference, &book] {
                assert!(definitions.contains(&format!("[{label}]: ")), "{name}: no link [{label}]");
            }
            links += 1;
        }
    }
    assert!(links > 20, "{links} links between pages");
    for line in book.lines() {
        let (label, target) = line[1..].split_once("]: ").expect("a definition");
        assert!(anchors(target.split(".md").next().expect("a page")).contains(label), "{line}");
        let page = target.split(".md").next().expect("a page").replace('-', "_");
        assert!(reference.contains(&format!("[{label}]: crate::proofs::{page}")), "{line}");
    }
}

#[test]
fn every_file_and_test_named_in_a_page_exists() {
    let mut named = 0;
    let pages = pages();
    let quoted = pages.iter().flat_map(|(_, text)| text.split('`').skip(1).step_by(2));
    for quoted in quoted {
        let (path, test) = match quoted.split_once("::") {
            Some((path, test)) => (path, Some(test)),
            None => (quoted, None),
        };
        if !path.ends_with(".rs") {
            continue;
        }
        let text = fs::read_to_string(root().join(path)).unwrap_or_else(|_| panic!("{path} does not exist"));
        if let Some(test) = test {
            assert!(text.contains(&format!("fn {test}(")), "{path} has no test {test}");
            named += 1;
        }
    }
    assert!(named > 30, "{named} tests are named");
}
