//! The examples run as they are, each in a folder of its own, and leave what they say.

use std::path::Path;
use std::process::Command;

/// Every example, what it prints among other things, and a file that it leaves.
const EXAMPLES: [(&str, &str, Option<&str>); 8] = [
    ("quickstart", "epsilon 1.0000, delta 1e-7, unit edge-undirected", Some("release/manifest.json")),
    ("own_data", "unit node", None),
    ("account", "nodes, epsilon 8", None),
    ("verify", "ok        epsilon", Some("checked-release/manifest.json")),
    ("predict", "20000 nodes in all", Some("release/manifest.json")),
    ("audit", "claimed at most 1.00, measured at least", None),
    ("by_name", "`clip` has no effect: it belongs to level node", None),
    ("observer", "the run in observed-release can be resumed", Some("observed-release/manifest.json")),
];

/// Builds an example with the features of the whole workspace, so that what the tests were built with serves it, too,
/// and runs it.
fn run(name: &str, place: &Path) -> String {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--quiet", "--offline", "--workspace", "--example", name, "--manifest-path"])
        .arg(manifest);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    let built = cargo.output().expect("cargo runs");
    assert!(built.status.success(), "{name}: {}", String::from_utf8_lossy(&built.stderr));
    let tests = std::env::current_exe().expect("this program");
    let profile = tests.parent().and_then(Path::parent).expect("the folder of the profile");
    let mut example = Command::new(profile.join("examples").join(name));
    let output = example.current_dir(place).env_remove("PROGAP_DATA").output().expect("the example runs");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn every_example_runs() {
    for (name, said, left) in EXAMPLES {
        let place = tempfile::tempdir().expect("a folder");
        let output = run(name, place.path());
        assert!(output.contains(said), "{name}: {output}");
        match left {
            Some(file) => assert!(place.path().join(file).is_file(), "{name} leaves {file}"),
            None => assert_eq!(std::fs::read_dir(place.path()).expect("a folder").count(), 0, "{name}"),
        }
    }
}

/// A new example is run, too.
#[test]
fn every_example_is_listed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for entry in std::fs::read_dir(folder).expect("examples") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        assert!(EXAMPLES.iter().any(|(known, _, _)| *known == name), "{name}");
    }
}
