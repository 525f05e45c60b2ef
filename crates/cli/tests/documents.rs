//! Links between the project's documents lead somewhere, the book has all its pages and no more words than are read,
//! what documents say of node level is true, and the tutorials run.

mod common;

use std::path::{Path, PathBuf};

use common::{folder, progap_in};

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
    for folder in ["", "docs", "docs/decisions", "docs/proofs", "docs/reference"] {
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

/// The pages of the book, by their paths below `docs/`.
fn pages() -> Vec<String> {
    let mut pages = vec![];
    for folder in ["", "decisions/", "proofs/", "reference/"] {
        for path in documents(&root().join("docs").join(folder)) {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            pages.push(format!("{folder}{name}"));
        }
    }
    pages.retain(|page| page != "SUMMARY.md");
    pages
}

#[test]
fn the_book_lists_every_page_once() {
    let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md")).expect("text");
    let pages = pages();
    assert!(pages.len() > 40, "only {} pages", pages.len());
    for page in &pages {
        assert_eq!(summary.matches(&format!("({page})")).count(), 1, "{page} in docs/SUMMARY.md");
    }
    assert_eq!(targets(&summary).count(), pages.len(), "a page that is not there");
    let glossary = std::fs::read_to_string(root().join("docs/glossary.md")).expect("text");
    assert_eq!(glossary.lines().filter(|line| line.starts_with("| ")).count(), 1 + 20, "twenty terms");
}

/// What people are asked to read, without what is written from declarations and result tables.
#[test]
fn documents_have_no_more_words_than_are_read() {
    let words = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let prose = match (text.split_once("<!-- results -->"), text.split_once("<!-- /results -->")) {
            (Some((before, _)), Some((_, after))) => format!("{before}{after}"),
            _ => text,
        };
        prose.split_whitespace().count()
    };
    let book: usize = pages()
        .iter()
        .filter(|page| !page.starts_with("proofs/") && !page.starts_with("reference/"))
        .map(|page| words(root().join("docs").join(page)))
        .sum();
    let proofs: usize = documents(&root().join("crates/privacy/proofs")).into_iter().map(words).sum();
    let beside = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|file| words(root().join(file)));
    let all = book + proofs + beside.iter().sum::<usize>();
    assert!(all <= 28_000, "{all} words: {book} in the book, {proofs} in proofs, {beside:?} beside them");
}

/// A line of prose can be broken, a row of a table cannot.
#[test]
fn no_line_of_prose_is_longer_than_120_characters() {
    let folders = ["", "docs", "docs/decisions", "docs/proofs", "crates/privacy/proofs", ".github"];
    let crates = std::fs::read_dir(root().join("crates")).expect("crates");
    let folders = folders.map(|folder| root().join(folder));
    let folders = folders.into_iter().chain(crates.map(|entry| entry.expect("an entry").path()));
    let mut long = vec![];
    let all = folders.filter(|folder| folder.is_dir()).flat_map(|folder| documents(&folder));
    let is_open =
        |path: &PathBuf| ["ARCHITECTURE.md", "CONTRIBUTING.md"].iter().any(|name| path.ends_with(name));
    for document in all.filter(|path| !is_open(path)) {
        let text = std::fs::read_to_string(&document).expect("text");
        for (number, line) in text.lines().enumerate() {
            let breaks = !line.starts_with('|') && !line.starts_with("![") && line.trim().contains(' ');
            if breaks && line.chars().count() > 120 {
                long.push(format!("{}:{}", document.display(), number + 1));
            }
        }
    }
    assert!(long.is_empty(), "longer than 120 characters:\n{}", long.join("\n"));
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
        ["", "docs", "docs/decisions", "crates/privacy/proofs", "crates/python", "crates/progap"]
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
    for file in ["README.md", "crates/python/README.md", "docs/predict.md"] {
        assert!(text(file).contains("uses its own raw features"), "{file}");
        assert!(text(file).contains("those who may see its features"), "{file}");
    }
    for file in ["README.md", "crates/python/README.md", "docs/results.md"] {
        assert!(text(file).contains("shows its class from what others sent"), "{file}");
    }
    for (file, says) in [("README.md", "for another unit"), ("docs/results.md", "for another unit")] {
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
    assert!(readme.lines().count() <= 120, "{} lines", readme.lines().count());
    let (commands, rest) =
        readme.split_once("```sh\n").and_then(|(_, rest)| rest.split_once("```")).expect("commands");
    let commands: Vec<&str> =
        commands.lines().map(|line| line.split('#').next().unwrap_or_default().trim()).collect();
    assert_eq!(commands, ["cargo run --release -- train", "./test"], "two commands do all the set-up");
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

/// The commands of the tutorials, run again in their order, each page in a folder of its own. What a page shows is
/// printed, and what it says fails does. Runs that somebody interrupts are in `crash.rs`.
#[test]
fn the_tutorials_run() {
    for (page, at_least) in [("training", 2), ("release", 3), ("predict", 3), ("ledger", 5)] {
        let (place, samples) = (folder(), samples(&format!("docs/{page}.md")));
        assert!(samples.len() >= at_least, "{page}: only {} samples were found", samples.len());
        for (command, printed) in samples.iter().filter(|(command, _)| !command.contains("long")) {
            let run = progap_in(place.path(), &command.split_whitespace().collect::<Vec<_>>());
            let expected = printed.trim();
            let why = expected.strip_prefix("error: ");
            assert_eq!(run.success, why.is_none(), "progap {command}: {}", run.stderr);
            assert!(run.stderr.contains(why.unwrap_or_default()), "progap {command}: {}", run.stderr);
            if !expected.is_empty() && why.is_none() {
                assert_eq!(
                    shape(&format!("{}\n{}", run.stdout, run.stderr)),
                    shape(printed),
                    "progap {command}"
                );
            }
        }
    }
}

/// The script of the page about the ledger, for two nights, with folders of its own. The budget is enough for one.
#[cfg(unix)]
#[test]
fn the_nightly_job_runs_until_the_budget_is_spent() {
    let text = std::fs::read_to_string(root().join("docs/ledger.md")).expect("text");
    let job = text.split("## A nightly job").nth(1).and_then(|rest| rest.split("```sh\n").nth(1));
    let job = job.and_then(|rest| rest.split("```").next()).expect("a script").replace("$(date +%F)", "$1");
    let job = job.replace("/srv/progap", "own").replace("/srv/", "").replace("/backup", "backup");
    let place = folder();
    let at = place.path();
    for folder in ["own/releases", "public", "backup"] {
        std::fs::create_dir_all(at.join(folder)).expect("a folder");
    }
    std::fs::write(at.join("job.sh"), job).expect("written");
    progap_in(at, &["data", "convert", "demo", "tables", "--format", "csv"]).ok();
    let budget = ["--data", "tables", "--name", "customers", "--epsilon", "0.25", "--delta", "1e-7"];
    progap_in(at, &[&["ledger", "init", "own/budget.db"][..], &budget].concat()).ok();
    progap_in(at, &["key", "new", "own/me"]).ok();

    let bin = Path::new(env!("CARGO_BIN_EXE_progap")).parent().expect("a folder");
    let path = std::env::join_paths(
        std::iter::once(bin.to_path_buf())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    )
    .expect("a path");
    let night = |day: &str| {
        let mut shell = std::process::Command::new("sh");
        common::outcome(
            shell.args(["job.sh", day]).current_dir(at).env("PATH", &path).output().expect("a shell"),
        )
    };
    let first = night("2026-01-01");
    assert!(first.success, "{}", first.stderr);
    for made in ["own/releases/2026-01-01.verified.json", "public/2026-01-01/manifest.sig"] {
        assert!(at.join(made).is_file(), "{made}");
    }
    let second = night("2026-01-02");
    assert!(!second.success && second.stderr.contains("this run is refused"), "{}", second.stderr);
    assert!(!at.join("public/2026-01-02").exists(), "nothing is released");
}
