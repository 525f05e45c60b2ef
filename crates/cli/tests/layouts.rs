//! Files as other people publish them: each loads at the first try, or at a second one with what the first
//! message said.

mod common;

use std::path::{Path, PathBuf};

use common::npz::{archive, array, floats, integers};
use common::shared::shared;
use common::{counts, fixture, progap_in};
use serde_json::Value;

/// The flags at the end of a message, as one would type them: up to where others are proposed.
fn suggested(message: &str) -> Vec<String> {
    let start = message.rfind("(--").unwrap_or_else(|| panic!("no flags in: {message}"));
    let flags = message[start + 1..].split(')').next().expect("flags");
    let flags = flags.split(", or").next().and_then(|flags| flags.split(" or ").next()).expect("flags");
    flags.split_whitespace().map(|word| word.trim_matches('\'').to_string()).collect()
}

/// What `inspect` says of a data set that loads in two tries at most; `file` is what the user has to name.
#[track_caller]
fn inspected(folder: &Path, arguments: &[&str], file: &str) -> Value {
    let with = |more: &[String]| {
        let more = more.iter().map(|word| if word == "FILE" { file } else { word.as_str() });
        let all: Vec<&str> = ["inspect"].into_iter().chain(arguments.iter().copied()).chain(more).collect();
        progap_in(folder, &[&all[..], &["--json"]].concat())
    };
    let first = with(&[]);
    if first.success {
        return first.json();
    }
    with(&suggested(&first.refused(&[]))).json()
}

fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes) in files {
        let path: PathBuf = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, bytes).expect("written");
    }
    folder
}

/// Each edge of a ring with chords once, from the smaller to the larger node.
fn ring(nodes: usize, line: &dyn Fn(usize, usize) -> String) -> String {
    let steps = [1, 2, 5].into_iter();
    let ends = steps.flat_map(|step| (0..nodes).map(move |node| (node, (node + step) % nodes)));
    ends.map(|(a, b)| line(a.min(b), a.max(b))).collect()
}

#[test]
fn a_snap_edge_list_with_a_header() {
    let edges =
        "# Undirected graph\nFromNodeId\tToNodeId\n".to_string() + &ring(40, &|a, b| format!("{a}\t{b}\n"));
    let labels = (0..40).fold("id,target\n".to_string(), |all, node| all + &format!("{node},{}\n", node % 2));
    let folder = folder(&[("com-ring.txt", edges.as_bytes()), ("departments.csv", labels.as_bytes())]);
    let found = inspected(folder.path(), &["com-ring.txt"], "departments.csv");
    assert_eq!(counts(&found), [40, 120, 0, 2]);
    assert_eq!((&found["listed_once"], &found["edges_back"]), (&true.into(), &0.into()));
    let both = progap_in(folder.path(), &["inspect", "com-ring.txt", "--labels", "departments.csv"]).ok();
    assert!(both.contains("120 directed (none has an edge back)"), "{both}");
    assert!(
        both.contains("if edges mean the same both ways, --undirected adds the other direction"),
        "{both}"
    );
    let arguments = ["com-ring.txt", "--labels", "departments.csv", "--level", "none", "--epochs", "1"];
    let check = progap_in(folder.path(), &[&["check"], &arguments[..5]].concat()).ok();
    let train = progap_in(folder.path(), &[&["train"], &arguments[..]].concat()).ok();
    for said in [&check, &train] {
        let words: Vec<&str> = said.split_whitespace().collect();
        let said = words.join(" ");
        assert!(said.contains("no edge has an edge back") && said.contains("give --undirected"), "{said}");
    }
    let turned = ["inspect", "com-ring.txt", "--labels", "departments.csv", "--undirected", "--json"];
    let turned = progap_in(folder.path(), &turned).json();
    assert_eq!((counts(&turned), &turned["listed_once"]), ([40, 240, 0, 2], &false.into()));
}

#[test]
fn a_musae_folder() {
    let Some(layouts) = shared("data/layouts") else { return };
    let found = inspected(&layouts, &["musae_DE"], "");
    assert_eq!((found["nodes"].as_u64(), found["edges"].as_u64()), (Some(9_498), Some(153_138)));
    assert_eq!(found["listed_once"], true);
    let id = found["columns"].as_array().expect("columns").iter().find(|column| column["name"] == "id");
    assert_eq!(id.expect("a column")["kind"], "not used");
}

#[test]
fn a_karateclub_folder() {
    let Some(layouts) = shared("data/layouts") else { return };
    for (name, features) in [("karateclub_twitch", true), ("karateclub_lastfm", false)] {
        let found = inspected(&layouts, &[name], "");
        assert_eq!((&found["listed_once"], found["features"].as_u64() > Some(0)), (&true.into(), features));
        assert_eq!(found["name"], name);
    }
}

#[test]
fn graphdata_with_pickled_matrices() {
    let found = inspected(Path::new("."), &[fixture("npz/graphdata.npz").to_str().expect("text")], "");
    assert_eq!(counts(&found), [5, 4, 3, 2]);
    let Some(layouts) = shared("data/layouts") else { return };
    assert_eq!(counts(&inspected(&layouts, &["graphdata_cora.npz"], "")), [2_708, 5_429, 1_433, 7]);
}

#[test]
fn a_heterophilous_archive() {
    let x = floats("(3, 2)", &[0.5, 1.0, 2.5, 0.0, -1.5, 0.0]);
    let pairs = array("<i8", "(2, 2)", &[0i64, 1, 1, 2].map(i64::to_le_bytes).concat());
    let mask = array("|b1", "(1, 3)", &[1, 1, 1]);
    let none = array("|b1", "(1, 3)", &[0, 0, 0]);
    let bytes = archive(&[
        ("node_features", &x),
        ("node_labels", &integers(&[1, 0, 1])),
        ("edges", &pairs),
        ("train_masks", &mask),
        ("val_masks", &none),
        ("test_masks", &none),
    ]);
    let folder = folder(&[("roman.npz", &bytes)]);
    assert_eq!(counts(&inspected(folder.path(), &["roman.npz"], "")), [3, 4, 2, 2]);
    let Some(other) = shared("data/other") else { return };
    assert_eq!(counts(&inspected(&other, &["chameleon.npz"], "")), [2_277, 62_742, 2_325, 5]);
}

/// The rest of this one is a test of the Python package.
#[test]
fn a_pytorch_file_names_the_python_that_reads_it() {
    let folder = folder(&[("data.pt", b"PK\x03\x04")]);
    let message = progap_in(folder.path(), &["inspect", "data.pt"]).refused(&["can run code"]);
    assert!(message.contains("progap.from_pyg(torch.load(\"data.pt\", weights_only=False))"), "{message}");
}

#[test]
fn a_latin_1_table_with_semicolons() {
    let latin = |text: &str| text.chars().map(|sign| sign as u8).collect::<Vec<u8>>();
    let nodes = latin("id;label;Größe;Stadt\n1;x;1,5;Köln\n2;y;2,5;Bonn\n3;x;3,5;Köln\n4;y;1;Bonn\n");
    let folder = folder(&[("nodes.csv", &nodes), ("edges.csv", b"source;target\n1;2\n3;4\n")]);
    assert_eq!(counts(&inspected(folder.path(), &["."], "")), [4, 2, 3, 2]);
    let wide: Vec<u8> = "\u{feff}id;label\n1;x\n2;y\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let edges: Vec<u8> = "\u{feff}source;target\n1;2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(folder.path().join("nodes.csv"), wide).expect("written");
    std::fs::write(folder.path().join("edges.csv"), edges).expect("written");
    assert_eq!(counts(&inspected(folder.path(), &["."], "")), [2, 1, 0, 2]);
}

#[test]
fn a_folder_of_parquet_files() {
    let found = inspected(Path::new("."), &[fixture("tables/codec-none").to_str().expect("text")], "");
    assert!(found["nodes"].as_u64() > Some(0) && found["edges"].as_u64() > Some(0));
}

#[test]
fn a_folder_of_the_open_graph_benchmark() {
    let folder = folder(&[
        ("raw/num-node-list.csv", b"4\n"),
        ("raw/num-edge-list.csv", b"2\n"),
        ("raw/edge.csv", b"0,1\n3,2\n"),
        ("raw/node-label.csv", b"0\n1\n\n1\n"),
        ("raw/node-feat.csv", b"0.5,1\n1,2\n2,3\n0,1\n"),
        ("split/time/train.csv", b"0\n"),
        ("split/time/valid.csv", b"1\n"),
        ("split/time/test.csv", b"3\n"),
    ]);
    assert_eq!(counts(&inspected(folder.path(), &["."], "")), [4, 2, 2, 2]);
}

#[test]
fn graphml_with_a_label_of_another_name() {
    let node = |node: usize| {
        format!(
            "<node id=\"n{node}\"><data key=\"d0\">{}</data><data key=\"d1\">{node}.5</data></node>",
            ["x", "y"][node % 2]
        )
    };
    let text = format!(
        "<graphml><key id=\"d0\" for=\"node\" attr.name=\"faction\"/><key id=\"d1\" for=\"node\" attr.name=\"age\"/>\
         <graph edgedefault=\"undirected\">{}<edge source=\"n0\" target=\"n1\"/></graph></graphml>",
        (0..10).map(node).collect::<String>()
    );
    let folder = folder(&[("club.graphml", text.as_bytes())]);
    let found = inspected(folder.path(), &["club.graphml"], "");
    assert_eq!((counts(&found), &found["class_counts"][0]["name"]), ([10, 2, 1, 2], &"x".into()));
}

/// Ids and classes under names of one's own, ids that edges do not use, a first line that may be either.
#[test]
fn other_first_tries_end_with_the_command_that_works() {
    let nodes = (0..12)
        .fold("who,number,group\n".to_string(), |all, node| all + &format!("p{node},{node},{}\n", node % 3));
    let edges = ring(12, &|a, b| format!("{a},{b},7\n"));
    let files: [(&str, &[u8]); 2] = [
        ("nodes.csv", nodes.as_bytes()),
        ("edges.csv", &[b"payer,payee,amount\n", edges.as_bytes()].concat()),
    ];
    let own = folder(&files);
    let message = progap_in(own.path(), &["inspect", "."]).refused(&["no id column", "no target column"]);
    assert_eq!(suggested(&message).join(" "), "--id number --label group --source payer --target payee");
    assert_eq!(inspected(own.path(), &["."], "")["nodes"], 12);

    let nodes = nodes.replace("who,number,group", "id,number,label");
    let known = [b"source,target,amount\n", edges.as_bytes()].concat();
    let wrong = folder(&[("nodes.csv", nodes.as_bytes()), ("edges.csv", &known)]);
    let message =
        progap_in(wrong.path(), &["check", "."]).refused(&["but the column \"number\" has all nodes"]);
    assert_eq!(suggested(&message), ["--id", "number"]);
    assert_eq!(inspected(wrong.path(), &["."], "")["nodes"], 12);

    let lists = folder(&[("g.txt", b"left right\nann bob\nbob cat\n"), ("l.csv", b"ann,x\nbob,y\ncat,x\n")]);
    let found = inspected(lists.path(), &["g.txt", "--labels", "l.csv"], "");
    assert_eq!(counts(&found), [3, 2, 0, 2]);
}

#[test]
fn what_is_not_there_is_no_such_folder() {
    progap_in(Path::new("."), &["inspect", "no-such-place/"]).refused(&["no-such-place/: no such folder"]);
    progap_in(Path::new("."), &["train", "no/such/place"])
        .refused(&["no/such/place: no such file or folder"]);
}

#[test]
fn releases_are_named_after_the_folder_of_a_file_of_any_graph() {
    let rows = |node: usize| format!("{node},{},{}\n", ["x", "y"][node % 2], node % 5);
    let nodes = (0..60).fold("id,label,age\n".to_string(), |all, node| all + &rows(node));
    let edges = "source,target\n".to_string() + &ring(60, &|a, b| format!("{a},{b}\n{b},{a}\n"));
    let folder = folder(&[("clinic/target.csv", nodes.as_bytes()), ("clinic/edges.csv", edges.as_bytes())]);
    let arguments =
        ["train", "clinic/target.csv", "--edges", "clinic/edges.csv", "--level", "none", "--epochs", "1"];
    let said = progap_in(folder.path(), &arguments).ok();
    assert!(said.contains("on clinic") && said.contains("releases/clinic-none-1"), "{said}");
}

/// A column of ids is left out with a word where rows are public; where they are not, the owner has to say it.
#[test]
fn a_column_of_ids_is_left_out_or_asked_about() {
    let rows = |node: u64| format!("{node},{},{},{}\n", node % 2, 5_000_000_000 + node * 977, node % 5);
    let nodes = (0..60).fold("id,label,account,age\n".to_string(), |all, node| all + &rows(node));
    let edges = "source,target\n".to_string() + &ring(60, &|a, b| format!("{a},{b}\n{b},{a}\n"));
    let folder = folder(&[("nodes.csv", nodes.as_bytes()), ("edges.csv", edges.as_bytes())]);
    let said = |command: &str| {
        let said = progap_in(folder.path(), &[command, "."]).ok();
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let inspect = said("inspect");
    assert!(
        inspect.contains("all values are different, as ids are; --drop account settles it, --number"),
        "{inspect}"
    );
    let name = folder.path().file_name().expect("a name").to_string_lossy().into_owned();
    assert!(inspect.starts_with(&name), "{name}: {inspect}");
    let check = said("check");
    assert!(check.contains("look like ids: \"account\""), "{check}");
    let node = ["check", ".", "--level", "node", "--json"];
    let asked = progap_in(folder.path(), &node);
    assert!(!asked.success && asked.stderr.contains("--drop account, --number account"), "{}", asked.stderr);
    for flag in ["--drop", "--number"] {
        assert!(progap_in(folder.path(), &[&node[..], &[flag, "account"]].concat()).success, "{flag}");
    }
}
