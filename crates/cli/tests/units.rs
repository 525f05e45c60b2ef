//! The unit that is one record, the delta that it gets, and that every command says the same about it.

mod common;

use common::runs::{statement, workplace};
use common::{folder, progap_in, put};
use serde_json::Value;

const QUICK: [&str; 5] = ["train", "g.progap", "--epochs", "1", "--json"];

fn train(at: &std::path::Path, out: &str, more: &[&str]) -> Value {
    progap_in(at, &[&QUICK[..], &["--out", out], more].concat()).json()
}

fn codes(report: &Value) -> Vec<&str> {
    let findings = report["owner"]["findings"].as_array().expect("findings").iter();
    findings.filter_map(|finding| finding["code"].as_str()).collect()
}

/// Whether the statement takes it as public that the graph is, or is not, symmetric.
fn tells_of_symmetry(statement: &Value) -> bool {
    statement["public"].to_string().contains("whether the graph is symmetric")
}

#[test]
fn on_a_symmetric_graph_the_default_unit_is_the_undirected_edge_and_flags_choose_another() {
    let place = workplace();
    let at = place.path();
    for (out, flags, unit, by_data) in [
        ("default", &[][..], "edge-undirected", true),
        ("gap", &["--method", "gap"], "edge-undirected", true),
        ("edge-rand", &["--method", "edge-rand"], "edge-undirected", true),
        ("directed", &["--directed"], "edge", false),
        ("paper", &["--preset", "paper"], "edge", false),
        ("undirected", &["--undirected"], "edge-undirected", false),
        ("both", &["--undirected", "--directed"], "edge", false),
        // Nothing is asked of the edges, so nothing of them decides anything.
        ("mlp", &["--method", "mlp"], "edge", false),
        ("shallow", &["--depth", "0"], "edge", false),
    ] {
        let report = train(at, out, flags);
        let stated = statement(&at.join(out));
        assert_eq!((&report["unit"], &stated["unit"]), (&unit.into(), &unit.into()), "{out}");
        assert_eq!(tells_of_symmetry(&stated), by_data, "{out}: {}", stated["public"]);
        for key in ["epsilon_undirected", "epsilon_directed"] {
            assert!(report[key].is_number() && report[key] == stated[key], "{out} {key}: {report}");
        }
        let own = if unit == "edge" { "epsilon_directed" } else { "epsilon_undirected" };
        assert_eq!(stated[own], stated["epsilon"], "{out}");
        let touched = !["mlp", "shallow"].contains(&out);
        assert_eq!(codes(&report).contains(&"directed-unit"), touched && unit == "edge", "{out}");
        let verified = progap_in(at, &["verify", out]).ok();
        assert!(verified.contains("epsilon in both units"), "{verified}");
        let words = stated["in_words"].as_str().expect("words");
        assert_eq!(words.contains("at the same delta"), touched, "{words}");
    }
    // The unit that was decided is the one that is kept: a release runs again as it was.
    let config = std::fs::read_to_string(at.join("default/config.toml")).expect("settings");
    assert!(config.contains("undirected = true") && config.contains("unit_from_data = true"), "{config}");
    let again =
        progap_in(at, &["train", "--config", "default/config.toml", "--out", "again", "--json"]).json();
    assert_eq!(again["unit"], "edge-undirected");
    assert_eq!(std::fs::read_to_string(at.join("again/config.toml")).expect("settings"), config);
    progap_in(at, &["report", "default"]).ok();
    let page = std::fs::read_to_string(at.join("default-report/report.html")).expect("a page");
    assert!(page.contains("epsilon, undirected edge") && page.contains("epsilon, one direction"));
}

/// The owner's name for an edge stands in the statement, on the page, and in exports; it goes with a `.progap` file and
/// a resumed run.
#[test]
fn an_edge_is_called_as_its_owner_calls_it() {
    let place = workplace();
    let at = place.path();
    train(at, "edge", &["--relation", "money transfer"]);
    let shown = |folder: &str| statement(&at.join(folder))["in_words"].as_str().expect("words").to_string();
    assert!(
        shown("edge").contains("any one undirected edge (\u{201c}money transfer\u{201d}) was"),
        "{}",
        shown("edge")
    );
    assert!(progap_in(at, &["verify", "edge"]).ok().contains("statement"), "the words are checked");
    progap_in(at, &["report", "edge"]).ok();
    let page = std::fs::read_to_string(at.join("edge-report/report.html")).expect("a page");
    assert!(page.contains("what an edge stands for") && page.contains("money transfer"), "{page}");
    progap_in(at, &["export", "edge", "for-others"]).ok();
    assert_eq!(shown("for-others"), shown("edge"));
    progap_in(at, &["data", "convert", "g.progap", "named.progap", "--relation", "contact"]).ok();
    let node = ["--level", "node", "--epochs", "1", "--out", "node", "--quiet"];
    progap_in(at, &[&["train", "named.progap"], &node[..]].concat()).ok();
    assert!(shown("node").contains("list of receivers (\u{201c}contact\u{201d})"), "{}", shown("node"));
    for name in ["", " payment", "a<b>", "1st", &"p".repeat(41)] {
        progap_in(at, &["train", "g.progap", "--relation", name, "--out", "x"])
            .refused(&["relation is named by"]);
    }
}

/// A file of settings from before there was a choice means what it meant: one direction, and the published delta.
#[test]
fn settings_of_an_older_release_keep_their_unit_and_their_delta() {
    let place = workplace();
    let at = place.path();
    train(at, "new", &[]);
    let config = std::fs::read_to_string(at.join("new/config.toml")).expect("settings");
    let kept = |line: &&str| !line.starts_with("unit_from_data") && !line.starts_with("delta_rule");
    let old = config.lines().filter(kept).collect::<Vec<_>>().join("\n");
    put(at, &[("old.toml", old.replace("undirected = true", "undirected = false").as_bytes())]);
    let report = progap_in(at, &["train", "--config", "old.toml", "--out", "r", "--json"]).json();
    // 40,000 edges have five digits.
    assert_eq!((&report["unit"], report["delta"].as_f64()), (&"edge".into(), Some(1e-5)), "{report}");
    progap_in(at, &["verify", "r"]).ok();
    put(at, &[("old.toml", old.as_bytes())]);
    let report = progap_in(at, &["train", "--config", "old.toml", "--out", "s", "--json"]).json();
    assert_eq!(report["unit"], "edge-undirected", "{report}");
}

#[test]
fn account_prints_the_noise_of_a_release_to_the_last_digit() {
    let place = workplace();
    let at = place.path();
    let summary = progap_in(at, &["inspect", "g.progap", "--json"]).json();
    let nodes = summary["train"].to_string();
    let node = ["--level", "node", "--batch-size", "100", "--epochs", "1"];
    let gap = [&["--method", "gap"], &node[..]].concat();
    for (out, flags, same) in [
        ("edge", &["--directed", "--depth", "2"][..], &["--level", "edge", "--depth", "2"][..]),
        ("undirected edge", &["--depth", "2"], &["--level", "edge", "--depth", "2", "--undirected"]),
        (
            "gap",
            &["--method", "gap"],
            &["--level", "edge", "--depth", "2", "--undirected", "--method", "gap"],
        ),
        ("node", &node[..], &[&node[..], &["--depth", "2", "--train-nodes", &nodes]].concat()),
        ("gap-node", &gap[..], &[&gap[..], &["--depth", "2", "--train-nodes", &nodes]].concat()),
    ] {
        let run = ["train", "g.progap", "--quiet", "--out", out];
        // The default method has no epochs: that it is given would ask for another one.
        let epochs: &[&str] = if out == "gap" { &["--epochs", "1"] } else { &[] };
        progap_in(at, &[&run[..], epochs, flags].concat()).ok();
        let stated = statement(&at.join(out));
        let (epsilon, delta) = (if out.contains("node") { "8" } else { "1" }, stated["delta"].to_string());
        let target = ["account", "--json", "--epsilon", epsilon, "--delta", &delta];
        let account = progap_in(at, &[&target[..], same].concat()).json();
        let aggregation = &stated["mechanisms"].as_array().expect("queries").iter();
        let aggregation = aggregation.clone().find(|m| m["sampling_rate"] == 1.0).expect("an aggregation");
        let noise = if out.contains("node") { "noise_multiplier" } else { "sigma" };
        let (found, used) = (account["sigma"].as_f64(), aggregation[noise].as_f64());
        if noise == "sigma" {
            assert_eq!(found, used, "{out}: {account}");
        } else {
            // The release has the noise, of which the multiplier is a quotient: it may be off by a rounding.
            let noise = found.zip(account["sensitivity"].as_f64()).map(|(m, s)| m * s);
            assert_eq!(noise, aggregation["sigma"].as_f64(), "{out}: {account}");
            let gradient = stated["mechanisms"].as_array().expect("queries").iter();
            let mut gradient = gradient.clone().filter(|m| m["sampling_rate"] != 1.0);
            let used = gradient.next().and_then(|m| m["noise_multiplier"].as_f64()).expect("gradients");
            let found = account["gradient_multiplier"].as_f64().expect("a multiplier");
            assert!((found / used - 1.0).abs() < 1e-14, "{out}: {found} {used}");
        }
        for key in ["epsilon", "delta", "unit", "epsilon_undirected", "epsilon_directed", "accountant"] {
            assert_eq!(account[key], stated[key], "{out} {key}");
        }
        // And back: the noise of the release gives its epsilon.
        let sigma = account["sigma"].to_string();
        let back = ["account", "--json", "--sigma", &sigma, "--delta", &delta];
        let back = progap_in(at, &[&back[..], same].concat()).json();
        let (found, stated) = (back["epsilon"].as_f64(), stated["epsilon"].as_f64());
        assert!(found.zip(stated).is_some_and(|(a, b)| (a / b - 1.0).abs() < 1e-9), "{out}: {back}");
    }
}

#[test]
fn delta_counts_every_record_and_the_paper_keeps_its_own_rule() {
    let place = workplace();
    let at = place.path();
    let node = ["--level", "node", "--batch-size", "100"];
    let dp_gnn = [&["--method", "dp-gnn"], &node[..]].concat();
    let paper = [&["--preset", "paper"], &node[..]].concat();
    // 1,500 nodes of which about 1,125 train; about 20,000 undirected edges.
    for (out, flags, delta) in [
        ("edge", &[][..], 1e-6),
        ("directed", &["--directed"], 1e-6),
        ("node", &node, 6e-5),
        ("dp-gnn", &dp_gnn, 6e-5),
        ("paper", &["--preset", "paper"], 1e-5),
        ("paper-node", &paper, 1e-4),
    ] {
        let report = train(at, out, flags);
        assert_eq!(report["delta"].as_f64(), Some(delta), "{out}: {report}");
        let published = codes(&report).contains(&"published-delta");
        assert_eq!(published, out.starts_with("paper"), "{out}");
        let stated = statement(&at.join(out));
        assert_eq!(stated["public"].to_string().contains("published rule"), published, "{out}");
        progap_in(at, &["verify", out]).ok();
    }
    // Near one over the records is said, above it is refused.
    let near = train(at, "near", &["--delta", "1e-5"]);
    assert!(codes(&near).contains(&"delta"), "{near}");
    let magnitude = statement(&at.join("near"))["public"].to_string();
    assert!(magnitude.contains("order of magnitude of the number of undirected edges"), "{magnitude}");
    let above = |flags: &[&str], parts: &[&str]| {
        progap_in(at, &[&QUICK[..], &["--out", "above"], flags].concat()).refused(parts);
        assert!(!at.join("above").exists());
    };
    above(&["--delta", "2e-5"], &["the delta 2e-5", "at most 1e-5", "undirected edges"]);
    above(&[&node[..], &["--delta", "1e-3"]].concat(), &["at most 1e-4", "nodes"]);
}

/// A ring of 450 people, one direction listed twice, with a loop: 900 edges once they are merged.
fn put_ring(at: &std::path::Path) {
    let mut nodes = String::from("id,label,age\n");
    let mut edges = String::from("source,target\n");
    for node in 0..450 {
        nodes += &format!("{node},{},{}\n", ["x", "y"][node % 2], node % 7);
        // Consecutive numbers are no neighbours.
        let next = (node + 7) % 450;
        edges += &format!("{node},{next}\n{node},{next}\n{next},{node}\n");
    }
    edges += "3,3\n";
    put(at, &[("g/nodes.csv", nodes.as_bytes()), ("g/edges.csv", edges.as_bytes())]);
}

#[test]
fn repeated_edges_are_merged_and_counted_aloud() {
    let place = folder();
    let at = place.path();
    put_ring(at);
    let run = ["train", "g", "--epochs", "1", "--out", "r", "--directed", "--json"];
    let report = progap_in(at, &run).json();
    assert_eq!(report["delta"].as_f64(), Some(1e-4), "900 edges, not 1,351: {report}");
    for (code, text) in [("repeated-edges", "450 edges repeat"), ("self-loops", "1 edges lead")] {
        let findings = report["owner"]["findings"].as_array().expect("findings");
        let found = findings.iter().find(|finding| finding["code"] == code).expect(code);
        assert!(found["text"].as_str().is_some_and(|found| found.starts_with(text)), "{found}");
    }
    // Merged, the graph is symmetric.
    let report = progap_in(at, &["train", "g", "--epochs", "1", "--out", "s", "--json"]).json();
    assert_eq!(report["unit"], "edge-undirected");
    for command in [&["inspect", "g"][..], &["check", "g"], &["train", "g", "--epochs", "1", "--out", "t"]] {
        let shown = progap_in(at, command).ok();
        assert!(shown.contains("450") && shown.contains("merge"), "{shown}");
    }
}

#[test]
fn at_node_level_the_summary_says_whose_record_the_other_side_is() {
    let place = workplace();
    let at = place.path();
    let node = ["train", "g.progap", "--level", "node", "--epochs", "1", "--batch-size", "100", "--out", "r"];
    let shown = progap_in(at, &node).ok();
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("note every edge has an edge back"), "{shown}");
    assert!(words.contains("the other side of each undirected edge is in the neighbour's record"), "{shown}");
}

#[test]
fn a_flag_that_does_nothing_is_refused_by_name() {
    let place = workplace();
    let at = place.path();
    for (flags, parts) in [
        (&["--clip", "1"][..], ["--clip has no effect", "level node"]),
        (&["--batch-size", "64"], ["--batch-size has no effect", "level node"]),
        (&["--max-degree", "10"], ["--max-degree has no effect", "level node"]),
        (&["--bounding", "cap"], ["--bounding has no effect", "level node"]),
        (&["--gradient-noise-ratio", "1"], ["--gradient-noise-ratio has no effect", "level node"]),
        (&["--encoder-layers", "1"], ["--encoder-layers has no effect", "the method gap"]),
        (
            &["--method", "gap", "--messages", "labels"],
            ["--messages has no effect", "the method progap-labels and the method progap-views"],
        ),
        (&["--method", "gap", "--layerwise"], ["--layerwise has no effect", "the method progap-labels"]),
        (&["--method", "edge-rand", "--accounting", "rdp"], ["--accounting has no effect", "delta of zero"]),
        (&["--level", "node", "--directed"], ["--directed has no effect", "level edge"]),
        (&["--method", "mlp", "--directed"], ["--directed has no effect", "no edge"]),
        (&["--method", "mlp", "--undirected"], ["--undirected has no effect", "no edge"]),
        (&["--level", "node", "--method", "mlp", "--undirected"], ["--undirected has no effect", "no edge"]),
        (&["--level", "none", "--method", "mlp", "--symmetrise"], ["--symmetrise has no effect", "no edge"]),
        (&["--level", "node", "--method", "mlp", "--max-degree", "9"], ["--max-degree", "no edge"]),
        // A budget that nothing is asked for.
        (&["--method", "mlp", "--epsilon", "2"], ["--epsilon has no effect", "costs nothing"]),
        (&["--method", "mlp", "--delta", "1e-6"], ["--delta has no effect", "costs nothing"]),
        (&["--depth", "0", "--epsilon", "2"], ["--epsilon has no effect", "costs nothing"]),
        (&["--level", "none", "--epsilon", "2"], ["--epsilon has no effect", "level none"]),
    ] {
        for command in [&["train", "g.progap", "--out", "r"][..], &["check", "g.progap"]] {
            progap_in(at, &[command, flags].concat()).refused(&parts);
        }
    }
    // A file lists all settings, whether they matter or not.
    train(at, "first", &[]);
    progap_in(at, &["train", "--config", "first/config.toml", "--out", "again", "--quiet"]).ok();
}
