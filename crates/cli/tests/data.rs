//! `progap data`, as people run it.

mod common;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::{counts, folder, progap_in, put_tables};

#[test]
fn the_list_names_every_data_set() {
    let folder = folder();
    let table = progap_in(folder.path(), &["data", "list"]).ok();
    for part in ["demo", "built in", "facebook", "fb-100-clean", "reddit", "amazon", "1,120,280", "licence:"]
    {
        assert!(table.contains(part), "{part:?} is not in\n{table}");
    }
    let list = progap_in(folder.path(), &["data", "list", "--json"]).json();
    let list = list.as_array().expect("a list");
    assert_eq!(list.len(), 113);
    for (name, present) in [("demo", true), ("facebook", false), ("reddit", false)] {
        let entry = list.iter().find(|entry| entry["name"] == name).expect(name);
        assert_eq!(entry["present"], present, "{entry}");
        for key in ["source", "licence", "summary"] {
            assert!(entry[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {entry}");
        }
    }
}

/// The same data set, through every format in turn and back.
#[test]
fn what_is_converted_stays_the_same() {
    let folder = folder();
    put_tables(folder.path());
    let convert = |arguments: &[&str]| {
        progap_in(folder.path(), &[&["data", "convert"], arguments].concat()).ok();
    };
    let summary = |path: &str| {
        let mut summary = progap_in(folder.path(), &["inspect", path, "--json"]).json();
        summary["name"].take();
        // How features are kept in memory is the reader's choice.
        summary["feature_storage"].take();
        summary["memory"].take();
        // Only tables have columns, and those of a written table are the features.
        summary.as_object_mut().expect("an object").remove("columns");
        summary
    };
    let steps: [(&str, &[&str]); 8] = [
        ("a.progap", &[]),
        ("b.npz", &[]),
        ("c", &["--format", "parquet"]),
        ("d.progap", &[]),
        ("e", &["--format", "csv.gz"]),
        ("f.npz", &[]),
        ("g/", &["--format", "csv.zst"]),
        ("h", &[]),
    ];
    let original = summary(".");
    let mut before = ".";
    for (output, options) in steps {
        convert(&[&[before, output], options].concat());
        assert_eq!(summary(output), original, "{before} to {output}");
        before = output;
    }
    let nodes = std::fs::read_to_string(folder.path().join("h/nodes.csv")).expect("a table");
    assert!(nodes.starts_with("id,label,split,age,town=Ayr,town=Bath\nann,x,train,30,1,0\n"), "{nodes}");
    // With --force an output that exists is replaced.
    convert(&["b.npz", "d.progap", "--force"]);
    convert(&["b.npz", "h", "--force"]);
    for path in ["d.progap", "h"] {
        assert_eq!(summary(path), original, "{path} replaced");
    }
}

#[test]
fn outputs_that_cannot_be_written_are_refused_first() {
    let folder = folder();
    put_tables(folder.path());
    let refused = |arguments: &[&str], parts: &[&str]| {
        progap_in(folder.path(), &[&["data", "convert"], arguments].concat()).refused(parts);
    };
    refused(&["demo", "graph.xlsx"], &["graph.xlsx", ".progap or .npz"]);
    refused(&["demo", "missing/graph.npz"], &["missing", "make it first"]);
    refused(&["demo", "graph.npz", "--format", "parquet"], &["graph.npz", "--format"]);
    refused(&["demo", "graph.npz", "--ratios", "0.1,0.1"], &["--ratios", "--resplit"]);
    refused(&["demo", ".", "--format", "parquet", "--force"], &["nodes.csv", "ambiguous"]);
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 2);
}

#[test]
fn networks_of_any_size_are_made() {
    let folder = folder();
    let arguments = ["data", "synth", "small.progap", "--nodes", "500", "--edges", "10000", "--classes", "3"];
    let more = ["--communities", "2", "--homophily", "0.8", "--seed", "7"];
    progap_in(folder.path(), &[&arguments[..], &more].concat()).ok();
    let summary = progap_in(folder.path(), &["inspect", "small.progap", "--json"]).json();
    let [nodes, edges, _, classes] = counts(&summary);
    assert_eq!((nodes, classes, &summary["undirected"]), (500, 3, &true.into()));
    assert!((9_000..11_000).contains(&edges), "{edges}");
    let first = std::fs::read(folder.path().join("small.progap")).expect("a file");
    progap_in(folder.path(), &[&arguments[..], &more, &["--force"]].concat()).ok();
    assert_eq!(std::fs::read(folder.path().join("small.progap")).expect("a file"), first);
    let impossible = ["data", "synth", "small.npz", "--nodes", "10", "--edges", "100000"];
    progap_in(folder.path(), &impossible).refused(&["10"]);
    assert!(!folder.path().join("small.npz").exists());
}

#[test]
fn without_a_network_fetching_says_what_to_do_by_hand() {
    let folder = folder();
    // A port on which nobody listens any more.
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
    let mirror = format!("http://127.0.0.1:{port}/files");
    let fetch = |name: &str| {
        let arguments = ["data", "fetch", name, "--data-dir", "here", "--mirror", &mirror, "--attempts", "2"];
        progap_in(folder.path(), &arguments)
    };
    let start = Instant::now();
    for (name, file) in [("fb:Reed98", "Reed98.mat"), ("reddit", "reddit.zip"), ("amazon", "products.zip")] {
        fetch(name).refused(&["could not download", &mirror, file, "by hand", "here/"]);
    }
    assert!(start.elapsed() < Duration::from_secs(20));
    fetch("fb:Redd98").refused(&["fb:Reed98"]);
    assert!(fetch("demo").ok().contains("nothing to download"));
}

#[test]
fn files_that_are_here_are_verified_and_not_downloaded() {
    let Some(data) = common::shared::shared("data/facebook100/Reed98.mat") else { return };
    let folder = folder();
    std::fs::copy(data, folder.path().join("Reed98.mat")).expect("copied");
    let fetch = [
        "data",
        "fetch",
        "fb:Reed98",
        "--data-dir",
        ".",
        "--mirror",
        "http://127.0.0.1:1",
        "--attempts",
        "1",
    ];
    let message = progap_in(folder.path(), &fetch).ok();
    assert!(message.contains("already here, verified"), "{message}");
    let list = progap_in(folder.path(), &["data", "list", "--json", "--data-dir", "."]).json();
    let present: Vec<_> = list.as_array().expect("a list").iter().filter(|e| e["present"] == true).collect();
    let names: Vec<_> = present.iter().map(|entry| entry["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["demo", "fb-100", "fb-100-clean", "fb:Reed98"]);
    // A damaged file is refused by its checksum.
    let path = folder.path().join("Reed98.mat");
    let mut content = std::fs::read(&path).expect("a file");
    content[5000] ^= 1;
    std::fs::write(&path, content).expect("written");
    progap_in(folder.path(), &["inspect", "fb:Reed98", "--data-dir", "."])
        .refused(&["Reed98.mat", "checksum"]);
}

#[test]
fn help_fits_and_names_every_command() {
    let folder = folder();
    let help = |arguments: &[&str]| progap_in(folder.path(), arguments).ok();
    for part in ["inspect", "data", "progap inspect demo"] {
        assert!(help(&["--help"]).contains(part));
    }
    for part in ["list", "fetch", "convert", "synth"] {
        assert!(help(&["data", "--help"]).contains(part));
    }
    assert!(help(&["inspect", "--help"]).contains("--undirected"));
    assert!(help(&["--version"]).starts_with("progap "));
}

/// All files below a folder but what a run cost, with their content.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(content(&path).into_iter().map(|(name, bytes)| (path.join(name), bytes)));
        } else if !path.ends_with("cost.json") {
            found.insert(path.clone(), std::fs::read(&path).expect("a file"));
        }
    }
    found.into_iter().map(|(path, bytes)| (path.strip_prefix(folder).expect("below").into(), bytes)).collect()
}

#[test]
fn parts_give_the_release_of_the_whole() {
    let folder = folder();
    let at = folder.path();
    let run = |arguments: &[&str]| progap_in(at, arguments);
    // Called the same, because a release says what its data is called.
    std::fs::create_dir(at.join("one")).expect("a folder");
    std::fs::create_dir(at.join("many")).expect("a folder");
    run(&["data", "synth", "one/graph.progap", "--nodes", "2000", "--edges", "9000"]).ok();
    let said = run(&["data", "partition", "one/graph.progap", "many/graph.progap", "--parts", "3"]).ok();
    assert!(said.contains("in 3 parts"), "{said}");
    let parts = at.join("many/graph.progap");
    let names: Vec<_> = content(&parts).into_keys().map(|path| path.display().to_string()).collect();
    assert_eq!(names, ["part-00000.bin", "part-00001.bin", "part-00002.bin", "parts.json"]);
    for stem in ["one", "many"] {
        let data = at.join(stem).join("graph.progap").display().to_string();
        let out = format!("{stem}/release");
        run(&["train", &data, "--level", "none", "--seed", "1", "--quiet", "--out", &out]).ok();
    }
    assert!(content(&at.join("one/release")) == content(&at.join("many/release")), "another release");
    run(&["data", "partition", "one/graph.progap", "many/graph.progap", "--parts", "2"])
        .refused(&["already exists"]);
    run(&["data", "partition", "one/graph.progap", "one/release/parts", "--parts", "2"])
        .refused(&["inside a release"]);
    run(&["data", "partition", "one/graph.progap", "more", "--parts", "0"])
        .refused(&["there can be 1 to 4096"]);
    run(&["inspect", "many/graph.progap", "--label", "x"]).refused(&["only tables have such columns"]);
    std::fs::write(parts.join("part-00001.bin"), b"cut").expect("written");
    run(&["inspect", "many/graph.progap"]).refused(&["part-00001.bin", "truncated"]);
}
