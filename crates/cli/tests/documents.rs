//! Links between the project's documents lead somewhere.

use std::path::{Path, PathBuf};

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
