//! Training, predicting and verifying as people do: by the command.

mod common;

use common::runs::{aggregates, contents, make_ledger, statement, workplace};
use common::{progap_in, text};

#[test]
fn train_predict_verify_and_inspect() {
    let place = workplace();
    let run = ["train", "g.progap", "--epochs", "10", "--out", "r", "--json"];
    let report = progap_in(place.path(), &run).json();
    for key in ["test_accuracy", "val_accuracy", "epsilon", "delta"] {
        assert!(report[key].is_number(), "{key} in {report}");
    }
    // The time depends on the edges, and is for the data owner alone.
    for key in ["seconds", "cpu_seconds", "peak_rss_bytes"] {
        assert!(report["owner"][key].is_number() && report.get(key).is_none(), "{key} in {report}");
    }
    let stages = report["owner"]["stages"].as_array().expect("a list");
    for name in
        ["loading", "checking", "preparation", "training", "aggregation", "writing", "planning", "comparison"]
    {
        let found = stages.iter().find(|stage| stage["name"] == name);
        assert!(found.is_some_and(|stage| stage["seconds"].is_number()), "{name} in {report}");
    }
    assert!(report["epsilon"].as_f64().is_some_and(|epsilon| epsilon <= 1.0 && epsilon > 0.99), "{report}");
    assert_eq!(report["release"], "r");
    progap_in(place.path(), &["verify", "r"]).ok();
    let inspected = progap_in(place.path(), &["inspect", "r"]).ok();
    let words: Vec<&str> = inspected.split_whitespace().collect();
    assert!(words.join(" ").contains("any one undirected edge was in the data"), "{inspected}");
    for file in ["p.csv", "p.json", "p.parquet"] {
        progap_in(place.path(), &["predict", "r", "--out", file]).ok();
        assert!(place.path().join(file).exists());
    }
    let two = progap_in(place.path(), &["predict", "r", "--nodes", "3,7"]).ok();
    assert_eq!(two.lines().count(), 3);
    let json = std::fs::read(place.path().join("p.json")).expect("predictions");
    let all: Vec<serde_json::Value> = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(all.len(), 1500);
    let (header, row) = (two.lines().next().expect("a header"), two.lines().nth(1).expect("a row"));
    for (name, cell) in header.split(',').zip(row.split(',')) {
        match name {
            "id" | "class" | "used" | "release" | "date" => assert_eq!(all[3][name], cell),
            "labelled" => assert_eq!((&all[3][name], cell), (&serde_json::Value::Bool(true), "true")),
            _ => {
                let class = name.trim_start_matches("p(").trim_end_matches(')');
                assert_eq!(all[3]["probabilities"][class].to_string().parse(), cell.parse::<f64>());
            }
        }
    }
    progap_in(place.path(), &["predict", "r", "--nodes", "nobody"]).refused(&["nobody"]);
    progap_in(place.path(), &["predict", "r", "--unlabelled"]).refused(&["--unlabelled"]);
    std::fs::write(place.path().join("r/metrics.json"), "{}").expect("tampered");
    progap_in(place.path(), &["verify", "r"]).refused(&["metrics.json", "checksum"]);
}

#[test]
fn a_release_without_the_rows_of_its_nodes() {
    let place = workplace();
    let at = place.path();
    let run = ["train", "g.progap", "--level", "node", "--epochs", "1", "--batch-size", "100", "--out", "r"];
    progap_in(at, &[&run[..], &["--quiet"]].concat()).ok();
    let predicted = progap_in(at, &["predict", "r", "--nodes", "3"]);
    assert!(predicted.success && predicted.stdout.lines().count() == 2);
    assert_eq!(predicted.stderr.lines().count(), 1, "one sentence says whose view it is");
    assert!(predicted.stderr.contains("give it to that node, or to those who may see its features"));
    assert!(
        progap_in(at, &["inspect", "r"]).ok().contains("for the data owner alone: made of private labels")
    );
    std::fs::remove_dir_all(at.join("r/private")).expect("kept back");
    assert!(progap_in(at, &["verify", "r"]).ok().contains("kept back"));
    progap_in(at, &["predict", "r"]).refused(&["private/rows.progap", "taken out"]);
}

/// Whether a summary has a row of this name.
fn has_row(summary: &str, name: &str) -> bool {
    summary.lines().any(|line| line.starts_with(name))
}

/// At node level accuracies come from private labels without noise: they stand apart, and say for whom they are.
#[test]
fn what_is_for_the_data_owner_alone_says_so() {
    let place = workplace();
    let at = place.path();
    let run = ["train", "g.progap", "--level", "node", "--epochs", "1", "--batch-size", "100"];
    let report = progap_in(at, &[&run[..], &["--out", "r", "--json"]].concat()).json();
    let owner = report["owner"].as_object().expect("an object");
    for key in ["test_accuracy", "val_accuracy", "train_accuracy", "majority_accuracy", "seconds"] {
        assert!(owner[key].is_number() && report.get(key).is_none(), "{key} in {report}");
    }
    assert_eq!(report["private"], true);
    let shown = progap_in(at, &[&run[..], &["--out", "s"]].concat()).ok();
    let (public, owner) = shown.split_once("\nPrivate: for the data owner\n").expect("a heading");
    for name in ["test accuracy", "features only", "majority class", "time"] {
        assert!(has_row(owner, name) && !has_row(public, name), "{name}: {shown}");
    }
    assert!(public.lines().count() < 17, "{shown}");
    let shown = progap_in(at, &["train", "g.progap", "--epochs", "1", "--out", "e"]).ok();
    assert!(shown.contains("features and labels of all nodes in the clear"), "{shown}");
    let (public, owner) = shown.split_once("\nPrivate: for the data owner\n").expect("a heading");
    assert!(
        has_row(owner, "time") && !has_row(public, "time") && has_row(public, "test accuracy"),
        "{shown}"
    );
    let more = progap_in(at, &["train", "g.progap", "--epochs", "1", "--out", "f", "--verbose"]).ok();
    assert!(has_row(&more, "probabilities") && !has_row(&shown, "probabilities"), "{more}");
}

#[test]
fn the_settings_of_a_release_run_again() {
    let place = workplace();
    let at = place.path();
    progap_in(at, &["train", "g.progap", "--epochs", "4", "--depth", "1", "--out", "first", "--quiet"]).ok();
    let config = ["train", "--config", "first/config.toml", "--json", "--out"];
    let again = progap_in(at, &[&config[..], &["again"]].concat()).json();
    assert_eq!(again["private"], true, "the seed of the split must not become one of the noise");
    assert_eq!(contents(&at.join("first"))["config.toml"], contents(&at.join("again"))["config.toml"]);
    assert_ne!(aggregates(&at.join("first")), aggregates(&at.join("again")), "noise is drawn anew");

    let seeded = progap_in(at, &[&config[..], &["seeded", "--seed", "3"]].concat()).json();
    assert_eq!(seeded["private"], false);
    progap_in(at, &["train", "--config", "seeded/config.toml", "--out", "same", "--quiet"]).ok();
    assert!(contents(&at.join("seeded")) == contents(&at.join("same")));
}

#[test]
fn repeats_give_a_mean_and_an_interval() {
    let place = workplace();
    let run = ["train", "g.progap", "--epochs", "5", "--repeats", "3", "--seed", "1", "--out", "r", "--json"];
    let report = progap_in(place.path(), &run).json();
    let runs = report["runs"].as_array().expect("runs");
    let mean = runs.iter().filter_map(|run| run["test_accuracy"].as_f64()).sum::<f64>() / runs.len() as f64;
    assert_eq!(runs.len(), 3);
    assert!((report["test_accuracy"].as_f64().expect("a mean") - mean).abs() < 1e-12);
    assert_eq!(report["private"], false, "a seed makes noise removable");
    assert!(report["epsilon_all_runs"].is_null() && report["delta_all_runs"].is_null(), "{report}");
    let run = ["train", "g.progap", "--epochs", "5", "--repeats", "3", "--out", "s", "--json"];
    let report = progap_in(place.path(), &run).json();
    let runs = report["runs"].as_array().expect("runs");
    // Noise is added up, not epsilon: three runs of epsilon 1 at delta 1e-5 cost 1.83, not 3.
    let all = report["epsilon_all_runs"].as_f64().expect("an epsilon");
    assert!((1.8..1.9).contains(&all) && report["delta_all_runs"] == report["delta"], "{report}");
    assert!(runs.iter().all(|run| run.get("epsilon_all_runs").is_none()), "{report}");
}

/// Resamples of two or three runs say little about how much runs vary.
#[test]
fn fewer_than_five_repeats_have_no_interval() {
    let place = workplace();
    let run = |repeats: &str, out: &str, more: &[&str]| {
        let run = ["train", "g.progap", "--method", "mlp", "--level", "none", "--epochs", "1", "--repeats"];
        progap_in(place.path(), &[&run[..], &[repeats, "--out", out], more].concat())
    };
    assert!(run("4", "four", &["--json"]).json().get("test_accuracy_interval").is_none());
    assert!(run("4", "words", &[]).ok().contains("mean of 4 runs; fewer than 5 are too few for an interval"));
    let five = run("5", "five", &["--json"]).json();
    assert_eq!(five["test_accuracy_interval"].as_array().map(Vec::len), Some(2), "{five}");
}

/// A network with a rare class that features tell only in part, and edges not at all.
fn rare(place: &std::path::Path) {
    let (mut nodes, mut edges) = (String::from("id,label,a,b\n"), String::from("source,target\n"));
    for node in 0..1200usize {
        let fraud = node % 25 == 3;
        let mixed = |times: usize| (node * times + 12_345) % 100_003 / 7;
        let told = mixed(48_271) % 11 + usize::from(fraud);
        nodes += &format!("{node},{},{told},{}\n", if fraud { "fraud" } else { "fine" }, mixed(69_621) % 7);
        edges += &format!("{node},{}\n", (node * 7 + 1) % 1200);
    }
    common::put(place, &[("g/nodes.csv", nodes.as_bytes()), ("g/edges.csv", edges.as_bytes())]);
}

/// Where nearly everything is predicted to be the most frequent class, the summary says so, and what works here.
#[test]
fn a_result_that_is_the_majority_class_says_so_and_what_to_try() {
    let place = common::folder();
    let at = place.path();
    rare(at);
    let edge = progap_in(at, &["train", "g", "--seed", "1", "--out", "edge", "--json"]).json();
    let (found, both) = (&edge["only_majority"], ["--class-weights balanced", "--metric average-precision"]);
    assert_eq!((&found["class"], &found["remedy"]), (&"fine".into(), &both.as_slice().into()), "{edge}");
    let shown = progap_in(at, &["train", "g", "--seed", "1", "--out", "shown"]).ok();
    let said = "the most frequent class";
    assert!(shown.lines().any(|line| line.starts_with("one class only") && line.contains(said)), "{shown}");
    assert!(shown.contains("--class-weights balanced --metric average-precision"), "{shown}");
    // What is advised works, and the metric that was asked for comes first, with its interval.
    let advised =
        ["train", "g", "--seed", "1", "--class-weights", "balanced", "--metric", "average-precision"];
    let shown = progap_in(at, &[&advised[..], &["--out", "advised"]].concat()).ok();
    let first = shown.lines().nth(2).expect("a first line");
    assert!(first.starts_with("test metric") && first.contains("average precision"), "{shown}");
    assert!(first.contains("95 % interval") && !shown.contains("one class only"), "{shown}");
    let json = progap_in(at, &[&advised[..], &["--out", "json", "--json"]].concat()).json();
    assert_eq!(
        (&json["metric"], &json["only_majority"]),
        (&"average-precision".into(), &().into()),
        "{json}"
    );
    let (value, intervals) = (&json["test_metric"], &json["test_intervals"]);
    assert_eq!(*value, json["test_scores"]["average_precision"]);
    for name in ["auroc", "average_precision"] {
        let ends = intervals[name].as_array().unwrap_or_else(|| panic!("{name} in {json}"));
        let value = json["test_scores"][name].as_f64().expect("a score");
        assert!(ends[0].as_f64() <= Some(value) && Some(value) <= ends[1].as_f64(), "{name}: {json}");
    }
    assert!(intervals["recalls"][1].is_array(), "{json}");
    let page = |release: &str, more: &[&str]| {
        let out = format!("{release}-page");
        progap_in(at, &[&["report", release, "--out", &out], more].concat()).ok();
        std::fs::read_to_string(at.join(out).join("report.md")).expect("a page")
    };
    let text = page("advised", &[]);
    assert!(text.contains("## Average precision\n") && !text.contains("## Accuracy\n"), "{text}");
    let headline = std::fs::read_to_string(at.join("advised-page/tables/headline.csv")).expect("a table");
    assert!(headline.starts_with("\"test nodes, predicted by\",average precision,"), "{headline}");
    let text = page("edge", &[]);
    assert!(text.contains("the most frequent class") && text.contains("--class-weights balanced"), "{text}");
}

/// At node level all of it is made of private labels: the owner's alone.
#[test]
fn curves_and_thresholds_of_private_labels_are_the_owners() {
    let place = common::folder();
    let at = place.path();
    rare(at);
    let run = ["train", "g", "--level", "node", "--epochs", "1", "--out", "r", "--json"];
    let json = progap_in(at, &run).json();
    for key in ["metric", "test_metric", "test_metric_interval", "test_intervals", "only_majority"] {
        assert!(json.get(key).is_none() && json["owner"].get(key).is_some(), "{key} in {json}");
    }
    progap_in(at, &["report", "r", "--public", "--out", "public"]).ok();
    progap_in(at, &["report", "r", "--data", "g", "--out", "own"]).ok();
    for file in ["figures/precision-recall.svg", "figures/gains.svg", "tables/thresholds.csv"] {
        assert!(at.join("own").join(file).exists() && !at.join("public").join(file).exists(), "{file}");
    }
    let text = |folder: &str| std::fs::read_to_string(at.join(folder).join("report.html")).expect("a page");
    for word in ["Thresholds", "verage precision", "AUROC", "predicted to be"] {
        assert!(!text("public").contains(word), "{word}");
    }
    let own = text("own");
    let at_thresholds = own.find("id=\"thresholds\"").expect("a section");
    assert!(own[at_thresholds..].contains("Computed from private labels, without noise"));
}

/// With a delta of zero costs add up; without a guarantee there is none.
#[test]
fn what_repeats_cost_together() {
    let place = workplace();
    let twice = |method: &str, more: &[&str]| {
        let run =
            ["train", "g.progap", "--method", method, "--epochs", "1", "--repeats", "2", "--out", method];
        progap_in(place.path(), &[&run[..], more].concat())
    };
    let report = twice("edge-rand", &["--json"]).json();
    let (one, all) = (report["epsilon"].as_f64(), report["epsilon_all_runs"].as_f64());
    assert!(one.zip(all).is_some_and(|(one, all)| (all / one - 2.0).abs() < 1e-9), "{report}");
    assert_eq!(report["delta_all_runs"], 0.0);
    assert!(twice("sage", &["--json"]).json()["epsilon_all_runs"].is_null());
    let shown = twice("gap", &[]).ok();
    assert!(shown.contains("for each run alone") && shown.contains("all releases together"), "{shown}");
}

/// The defaults are those of the method; flags win.
#[test]
fn a_method_starts_from_its_own_defaults() {
    let place = workplace();
    let at = place.path();
    let settings = |name: &str, flags: &[&str]| -> progap::Settings {
        let run = ["train", "g.progap", "--epochs", "1", "--out", name, "--quiet"];
        progap_in(at, &[&run[..], flags].concat()).ok();
        progap::Release::open(&at.join(name)).expect("a release").settings().expect("settings").clone()
    };
    let embeddings = ["--method", "progap"];
    for (level, name) in [(progap::Level::Edge, "edge"), (progap::Level::Node, "node")] {
        // The network is symmetric.
        let usual = progap::Settings::of(progap::MethodKind::Progap, level).unit_by_graph();
        let usual = progap::Settings { epochs: 1, undirected: level == progap::Level::Edge, ..usual };
        let found = settings(name, &[&embeddings[..], &["--level", name]].concat());
        // Batches of a small training set are a share of it.
        assert!(found.batch_size <= usual.batch_size, "{found:?}");
        assert_eq!(found, progap::Settings { batch_size: found.batch_size, ..usual });
    }
    let flags = ["--weight-decay", "0.5", "--depth", "3"];
    let chosen = settings("flags", &[&embeddings[..], &flags].concat());
    assert_eq!((chosen.weight_decay, chosen.depth), (0.5, 3));
    let labels = settings("labels", &["--method", "progap-labels", "--messages", "labels"]);
    let (messages, usual) = (
        progap::settings::Messages::Labels,
        progap::Settings::of(progap::MethodKind::ProgapLabels, progap::Level::Edge),
    );
    let usual = progap::Settings { undirected: true, ..usual.unit_by_graph() };
    assert_eq!(labels, progap::Settings { epochs: 1, messages, ..usual });
}

#[test]
fn predictions_that_no_guarantee_covers_come_with_a_caution() {
    let place = workplace();
    let at = place.path();
    let run = [
        "train",
        "g.progap",
        "--method",
        "dp-gnn",
        "--level",
        "node",
        "--epochs",
        "1",
        "--batch-size",
        "100",
    ];
    progap_in(at, &[&run[..], &["--out", "r", "--quiet"]].concat()).ok();
    let predicted = progap_in(at, &["predict", "r", "--nodes", "3"]);
    assert!(predicted.success && predicted.stdout.lines().count() == 2);
    assert_eq!(predicted.stderr.lines().count(), 1);
    assert!(
        predicted.stderr.starts_with("caution: The guarantee of this release does not cover predictions")
    );
}

/// A release names its data as the user did, and no folder of the data owner: not the one it was trained in, and of an
/// absolute path the last name alone. The owner runs it again all the same.
#[test]
fn a_release_does_not_tell_where_the_data_lies() {
    let place = workplace();
    let at = place.path();
    let secret = at.join("secret");
    std::fs::create_dir_all(secret.join("data")).expect("a folder");
    progap_in(at, &["data", "convert", "g.progap", "secret/school", "--format", "csv"]).ok();
    let (tables, folder) = (secret.join("school"), secret.join("data"));
    let (tables, folder) = (text(&tables), text(&folder));
    let train = |data: &[&str], out: &str| {
        let run = ["train", "--epochs", "1", "--seed", "5", "--quiet", "--data-dir", folder, "--out", out];
        progap_in(at, &[&run[..], data].concat()).ok();
        for (name, bytes) in contents(&at.join(out)) {
            let told = String::from_utf8_lossy(&bytes).contains(text(at));
            assert!(!told, "{name} of {out} tells where the data lies");
        }
        std::fs::read_to_string(at.join(out).join("config.toml")).expect("settings")
    };
    let relative = train(&["secret/school"], "relative");
    assert!(relative.contains("dataset = \"school\"\n") && !relative.contains("secret"), "{relative}");
    // However the path is spelled, the public bytes are the same.
    for (spelled, out) in [("./secret/../secret/school/", "spelled"), (tables, "whole")] {
        train(&[spelled], out);
        assert!(contents(&at.join("relative")) == contents(&at.join(out)), "{spelled}");
    }
    let config = train(&[tables, "--id", "id", "--undirected"], "absolute");
    assert!(config.contains("dataset = \"school\"\n") && !config.contains("secret"), "{config}");
    let (nodes, edges) = (format!("{tables}/nodes.csv"), format!("{tables}/edges.csv"));
    assert!(!train(&[&nodes, "--edges", &edges], "files").contains("secret"));

    // The same settings again; the owner says where the data is.
    let again = ["train", "--quiet", "--config"];
    progap_in(at, &[&again[..], &["relative/config.toml", "--out", "relative-2", "secret/school"]].concat())
        .ok();
    assert!(contents(&at.join("relative")) == contents(&at.join("relative-2")));
    let config = ["absolute/config.toml", "--out", "absolute-2"];
    progap_in(at, &[&again[..], &config].concat()).refused(&["\"school\" is not here", "say where it lies"]);
    progap_in(at, &[&again[..], &config, &[tables]].concat()).ok();
    assert!(contents(&at.join("absolute")) == contents(&at.join("absolute-2")));
    let audit = ["audit", "absolute", "--parts", "attacks", "--json"];
    progap_in(at, &audit).refused(&["\"school\" is not here", "--data"]);
    progap_in(at, &[&audit[..], &["--data", tables]].concat()).json();
}

/// Noise that a seed makes known guarantees nothing: no figure anywhere says that it does.
#[test]
fn a_seeded_run_states_no_guarantee() {
    let place = workplace();
    let at = place.path();
    for level in ["edge", "node"] {
        let run =
            ["train", "g.progap", "--seed", "3", "--level", level, "--epochs", "2", "--batch-size", "100"];
        let run: Vec<&str> = run
            .into_iter()
            .filter(|word| level == "node" || !["--batch-size", "100"].contains(word))
            .collect();
        let (shown, said) = (format!("shown-{level}"), format!("json-{level}"));
        let summary = progap_in(at, &[&run[..], &["--out", &shown]].concat()).ok();
        let guarantee = summary.lines().find(|line| line.starts_with("guarantee")).expect("a row");
        assert!(
            guarantee.contains("none: seeded run, not private") && !guarantee.contains("epsilon"),
            "{summary}"
        );
        assert!(!summary.contains("for epsilon"), "{summary}");
        assert!(!summary.contains("not counted"), "{summary}");
        let report = progap_in(at, &[&run[..], &["--out", &said, "--json"]].concat()).json();
        for key in [
            "epsilon",
            "delta",
            "epsilon_undirected",
            "epsilon_directed",
            "epsilon_all_runs",
            "delta_all_runs",
        ] {
            assert!(report[key].is_null(), "{key} in {report}");
        }
        assert!(report["planned"]["epsilon"].is_number() && report["private"] == false, "{report}");
        let statement = statement(&at.join(&said));
        assert!(statement["epsilon"].is_null() && statement["delta"].is_null(), "{statement}");
        let verified = progap_in(at, &["verify", &said]).ok();
        assert!(verified.contains("no epsilon is claimed") && !verified.contains("claimed 1."), "{verified}");
        let inspected = progap_in(at, &["inspect", &said]).ok();
        assert!(inspected.contains("planned noise") && !inspected.contains("budget "), "{inspected}");
        for (form, out) in [("hf", "card"), ("mlflow", "flow")] {
            let out = format!("{out}-{level}");
            progap_in(at, &["export", &said, &out, "--to", form]).ok();
            let card = std::fs::read_to_string(at.join(&out).join("README.md")).expect("a card");
            assert!(card.contains("none: seeded run") && card.contains("| epsilon | none |"), "{card}");
        }
        let page = format!("page-{level}");
        progap_in(at, &["report", &said, "--public", "--out", &page]).ok();
        let page = std::fs::read_to_string(at.join(&page).join("report.html")).expect("a page");
        assert!(page.contains("Not private") && !page.contains("In numbers"), "a factor without a guarantee");
        assert!(
            progap_in(at, &["check", "g.progap", "--seed", "3", "--level", level])
                .ok()
                .contains("none: seeded run")
        );
    }
}

/// Several releases cost more than one: training again says so, and so does a release.
#[test]
fn that_releases_add_up_is_said_without_a_ledger() {
    let place = workplace();
    let at = place.path();
    make_ledger(at, "b.db", "edge-undirected", "5");
    let run = ["train", "g.progap", "--epochs", "1", "--method", "progap-labels"];
    let alone = progap_in(at, &[&run[..], &["--out", "r"]].concat()).ok();
    assert!(alone.contains("not counted     releases about the same records add up"), "{alone}");
    let charged = progap_in(at, &[&run[..], &["--out", "s", "--ledger", "b.db"]].concat()).ok();
    assert!(!charged.contains("not counted"), "{charged}");
    for release in ["r", "s"] {
        let statement = statement(&at.join(release)).to_string();
        for said in ["releases about the same records add up", "progap ledger", "k records", "group privacy"]
        {
            assert!(statement.contains(said), "{said}: {statement}");
        }
    }
    progap_in(at, &["export", "r", "e"]).ok();
    let page = std::fs::read_to_string(at.join("e/report.html")).expect("a page");
    assert!(page.contains("releases about the same records add up") && page.contains("group privacy"));
    progap_in(at, &["export", "r", "card", "--to", "hf"]).ok();
    let card = std::fs::read_to_string(at.join("card/README.md")).expect("a card");
    assert!(card.contains("releases about the same records add up"), "{card}");
}

/// Wherever predictions are said to cost nothing further, node level says for whom they are, in one and the same
/// sentence.
#[test]
fn at_node_level_it_is_said_for_whom_predictions_are() {
    let place = workplace();
    let at = place.path();
    let run = ["train", "g.progap", "--level", "node", "--epochs", "1", "--batch-size", "100", "--out", "r"];
    let shown = progap_in(at, &run).ok().split_whitespace().collect::<Vec<_>>().join(" ");
    let whose = progap::release::words::WHOSE_PREDICTION;
    progap_in(at, &["export", "r", "card", "--to", "hf"]).ok();
    let card = std::fs::read_to_string(at.join("card/README.md")).expect("a card");
    let predicted = progap_in(at, &["predict", "r", "--nodes", "3"]).stderr;
    let statement = statement(&at.join("r"))["in_words"].to_string();
    for (where_, text) in
        [("summary", &shown), ("card", &card), ("predict", &predicted), ("statement", &statement)]
    {
        assert!(text.contains(whose), "{where_}: {text}");
    }
    assert_eq!(
        card.matches(whose).count(),
        2,
        "in the guarantee, and where predictions are said to be free: {card}"
    );
    let end = " `privacy.json` is the statement, which can be recomputed from the release itself.\n";
    assert!(card.ends_with(&(whose.to_string() + end)), "{card}");
    assert!(statement.contains("shows its class by what others sent"), "{statement}");
    let help = progap_in(at, &["predict", "--help"]).ok().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("At node level a prediction about a node uses its own features"), "{help}");
}
