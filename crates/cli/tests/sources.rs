//! Rules for the sources themselves: where unsafe code may be, and where dependencies come from.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The Rust files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (vec![], vec![folder.to_path_buf()]);
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path);
            }
        }
    }
    found
}

/// A source without comments and texts.
fn code(text: &str) -> String {
    let mut code = String::new();
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default();
        // Every second piece between quotes is a text; close enough for a keyword that stands in no text with a quote
        // in it.
        code.extend(line.split('"').step_by(2));
        code.push('\n');
    }
    code
}

fn has_word(code: &str, word: &str) -> bool {
    // A hyphen is no part of a word of Rust, but of one in a text of several lines.
    code.split(|c: char| !(c.is_alphanumeric() || "_-".contains(c))).any(|found| found == word)
}

#[test]
fn unsafe_code_is_in_two_files() {
    let files = sources(&root().join("crates"));
    assert!(files.len() > 200, "only {} files: is this the project's root?", files.len());
    let name =
        |path: &PathBuf| path.strip_prefix(root()).expect("below").to_string_lossy().replace('\\', "/");
    let with = |word: &str| -> Vec<String> {
        let has = |path: &&PathBuf| has_word(&code(&std::fs::read_to_string(path).expect("text")), word);
        files.iter().filter(has).map(name).collect()
    };
    let allowed = ["crates/graph/src/store/map.rs", "crates/python/src/lent.rs"];
    let keyword = ["un", "safe"].concat();
    let mut found = with(&keyword);
    found.sort();
    assert_eq!(found, allowed);
    // The lint is forbidden or denied in each crate, and allowed once in each of these files.
    let lint = format!("{keyword}_code");
    for file in with(&lint) {
        let text = std::fs::read_to_string(root().join(&file)).expect("text");
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(&lint)).map(str::trim).collect();
        let own = format!("#[allow({lint})]");
        let expected = match file.as_str() {
            "crates/graph/src/store/mod.rs" | "crates/python/src/lent.rs" => vec![own],
            "crates/graph/src/lib.rs" => vec![format!("#![deny({lint})]")],
            _ => vec![format!("#![forbid({lint})]")],
        };
        assert_eq!(lines, expected, "{file}");
    }
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("text");
    assert!(manifest.contains(&format!("{lint} = \"deny\"")));
}

#[test]
fn every_dependency_comes_from_the_registry_with_a_checksum() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).expect("text");
    let packages: Vec<&str> = lock.split("[[package]]").skip(1).collect();
    assert!(packages.len() > 100);
    for package in packages {
        let ours = package.contains("name = \"progap");
        let registry = package.contains("source = \"registry+https://github.com/rust-lang/crates.io-index\"");
        assert!(ours || (registry && package.contains("\nchecksum = \"")), "{package}");
    }
}
