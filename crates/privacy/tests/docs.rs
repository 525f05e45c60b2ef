//! docs/privacy.md and the code point at each other, and neither points at nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn document() -> String {
    fs::read_to_string(root().join("../../docs/privacy.md")).expect("docs/privacy.md exists")
}

fn anchors(document: &str) -> BTreeSet<String> {
    document.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the entry can be read").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The anchor name at the start of a text.
fn anchor_name(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).unwrap_or(text.len());
    &text[..end]
}

#[test]
fn every_anchor_named_in_the_code_exists() {
    let anchors = anchors(&document());
    let mut files = Vec::new();
    rust_files(&root().join("src"), &mut files);
    rust_files(&root().join("tests"), &mut files);
    let mut links = 0;
    for file in files.iter().filter(|file| !file.ends_with("docs.rs")) {
        let text = fs::read_to_string(file).expect("sources can be read");
        for rest in text.split("privacy.md#").skip(1) {
            let anchor = anchor_name(rest);
            assert!(anchors.contains(anchor), "{}: no anchor #{anchor} in docs/privacy.md", file.display());
            links += 1;
        }
    }
    assert!(links > 10, "{links} links from the code");
}

#[test]
fn links_within_the_document_work() {
    let document = document();
    let anchors = anchors(&document);
    for rest in document.split("](#").skip(1) {
        assert!(anchors.contains(anchor_name(rest)), "no anchor #{}", anchor_name(rest));
    }
}

#[test]
fn every_file_and_test_named_in_the_document_exists() {
    let document = document();
    let mut named = 0;
    for quoted in document.split('`').skip(1).step_by(2) {
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
