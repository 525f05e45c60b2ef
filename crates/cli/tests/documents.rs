//! Links between the project's documents lead somewhere, what they say of node level is true, and the outputs they
//! show are printed.

mod common;

use std::path::{Path, PathBuf};

use common::shared::shared;
use common::{command, folder, outcome, progap_in};

fn documents(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// The targets of `[text](target)` and `![text](target)`.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

#[test]
fn every_relative_link_leads_to_a_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut checked, mut broken) = (0, vec![]);
    for folder in ["", "docs", "docs/decisions", "docs/results"] {
        for document in documents(&root.join(folder)) {
            let text = std::fs::read_to_string(&document).expect("text");
            for target in targets(&text) {
                let file = target.split('#').next().unwrap_or_default();
                if file.is_empty() || file.contains("://") {
                    continue;
                }
                checked += 1;
                if !document.parent().expect("a folder").join(file).exists() {
                    broken.push(format!("{}: {target}", document.display()));
                }
            }
        }
    }
    assert!(checked > 50, "only {checked} links were found: is this the project's root?");
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A text without line ends, so that a sentence is found wherever it is broken.
fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The unit at node level is a node's record: no text says that nodes are protected whole, with the edges that others
/// have to them.
#[test]
fn no_text_says_that_whole_nodes_are_protected() {
    let mut files: Vec<PathBuf> =
        ["", "docs", "docs/decisions", "docs/results", "crates/python", "crates/progap"]
            .iter()
            .flat_map(|folder| documents(&root().join(folder)))
            .collect();
    let mut folders: Vec<PathBuf> = [
        "graph/src",
        "privacy/src",
        "progap/src",
        "cli/src",
        "python/src",
        "python/python",
        "python/examples",
    ]
    .iter()
    .map(|folder| root().join("crates").join(folder))
    .collect();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).expect("sources").map(|entry| entry.expect("an entry").path())
        {
            match path.extension().and_then(|ending| ending.to_str()) {
                _ if path.is_dir() => folders.push(path),
                Some("rs" | "py" | "pyi" | "ipynb" | "md") => files.push(path),
                _ => {}
            }
        }
    }
    assert!(files.len() > 300, "only {} files were found", files.len());
    for file in files {
        let text = in_one_line(&std::fs::read_to_string(&file).expect("text")).to_lowercase();
        for wrong in ["whole node", "whole-node", "entire node"] {
            assert!(!text.contains(wrong), "{}: {wrong}", file.display());
        }
    }
}

/// Wherever predictions are said to cost nothing further, node level says for whom they are; a reader is told what
/// others' records show; and beside figures of the authors' code stands that their unit is another one.
#[test]
fn what_documents_say_of_node_level_is_qualified() {
    let text = |file: &str| in_one_line(&std::fs::read_to_string(root().join(file)).expect("text"));
    for file in ["README.md", "crates/python/README.md", "docs/training.md"] {
        assert!(text(file).contains("uses its own raw features"), "{file}");
        assert!(text(file).contains("those who may see its features"), "{file}");
    }
    for file in ["README.md", "crates/python/README.md", "docs/results.md"] {
        assert!(text(file).contains("shows its class from what others sent"), "{file}");
    }
    for (file, says) in [("README.md", "for another unit"), ("docs/results.md", "of another unit")] {
        assert!(text(file).contains(says), "{file}");
    }
    for file in ["_release.py", "_estimator.py"] {
        let code = text(&format!("crates/python/python/progap/{file}"));
        let names: &[&str] = match file {
            "_release.py" => &["predict", "predict_proba", "to_frame", "predict_table"],
            _ => &["predict", "predict_proba", "to_frame", "score"],
        };
        for name in names {
            let method = code
                .split(&format!("def {name}( self"))
                .nth(1)
                .or(code.split(&format!("def {name}(self")).nth(1));
            let documentation = method.and_then(|rest| rest.split("\"\"\"").nth(1)).expect(name);
            assert!(
                documentation.contains("At level node a prediction about a node uses its own raw features"),
                "{file}: {name}"
            );
        }
        assert_eq!(code.matches("caution(self.").count(), 4, "{file}: and says so when it runs");
    }
}

/// A text whose numbers and hashes are all the same, and whose lines may be broken elsewhere.
fn shape(text: &str) -> String {
    let (mut shape, mut in_number) = (String::new(), false);
    let is_hash = |word: &&str| word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let words = text.split_whitespace().map(|word| if is_hash(&word) { "0" } else { word });
    for c in words.collect::<Vec<_>>().join(" ").replace(['─', '-'], " ").chars() {
        let part = c.is_ascii_digit() || (in_number && ".,e".contains(c));
        if part && !in_number {
            shape.push('0');
        } else if !part {
            shape.push(c);
        }
        in_number = part;
    }
    // How many aggregations are asked, and of what, follows from the run.
    in_one_line(&shape).replace(", then labels", "")
}

/// The sample that the first page shows of the first command.
#[test]
fn the_first_page_shows_what_the_first_command_prints() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("text");
    let (commands, rest) =
        readme.split_once("```sh\n").and_then(|(_, rest)| rest.split_once("```")).expect("commands");
    let commands: Vec<&str> =
        commands.lines().map(|line| line.split('#').next().unwrap_or_default().trim()).collect();
    assert_eq!(commands, ["./test", "cargo run --release -- train"], "two commands do all the set-up");
    let sample =
        rest.split_once("```text\n").and_then(|(_, rest)| rest.split_once("```")).expect("a sample").0;
    let place = folder();
    assert_eq!(shape(&progap_in(place.path(), &["train"]).ok()), shape(sample));
}

/// Commands of a document with what it says that they print.
fn samples(document: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(root().join(document)).expect("text");
    let blocks = text.split("\n```").skip(1).step_by(2);
    let all = blocks.flat_map(|block| {
        let samples =
            block.split("\n$ progap ").skip(1).map(|sample| sample.split_once('\n').unwrap_or((sample, "")));
        samples.map(|(command, printed)| (command.to_string(), printed.to_string())).collect::<Vec<_>>()
    });
    all.collect()
}

/// The samples of the tutorial, made again in its order in one folder. Runs that somebody interrupts are in `crash.rs`.
#[test]
fn the_tutorial_shows_what_its_commands_print() {
    let (place, samples) = (folder(), samples("docs/training.md"));
    assert!(samples.len() > 15, "only {} samples were found", samples.len());
    for (command, printed) in samples.iter().filter(|(command, _)| !command.contains("long")) {
        let run = progap_in(place.path(), &command.split_whitespace().collect::<Vec<_>>());
        assert_eq!(shape(&format!("{}\n{}", run.stdout, run.stderr)), shape(printed), "progap {command}");
    }
}

/// The samples of audits, on the graph that they are of where it is there.
#[test]
fn the_audits_shown_are_those_that_are_printed() {
    let Some(data) = shared("data/facebook100/Berkeley13.mat") else { return };
    let data = data.parent().and_then(Path::parent).expect("a folder");
    let (place, samples) = (folder(), samples("docs/audit.md"));
    assert!(samples.len() > 2, "only {} samples were found", samples.len());
    for (words, printed) in samples {
        let run = command(place.path()).args(words.split_whitespace()).env("PROGAP_DATA", data).output();
        assert_eq!(shape(&outcome(run.expect("started")).stdout), shape(&printed), "progap {words}");
    }
}
