//! People's own data through the command: from a table with gaps to predictions for the nodes without a label.

mod common;

use common::{folder, progap_in, put};

/// Two groups that mostly know each other; half of the labels are empty, an income is in raw units, dates and towns
/// have gaps.
fn put_people(at: &std::path::Path, separator: &str) {
    let (mut nodes, mut edges) = (String::new(), String::from("from,to\n"));
    let mut row = |cells: &[String]| nodes += &(cells.join(separator) + "\n");
    row(&["", "id", "label", "income", "joined", "town", "name"].map(String::from));
    for node in 0..200usize {
        let group = node % 2;
        let cells = [
            node.to_string(),
            format!("p{node}"),
            if node % 4 < 2 { ["blue", "red"][group].into() } else { String::new() },
            if node % 7 == 0 {
                String::new()
            } else {
                format!("{}", 20_000 + 9_000 * group + node * 31 % 5_000)
            },
            if node % 5 == 0 {
                String::new()
            } else {
                format!("20{:02}-0{}-1{}", 10 + node % 10, 1 + node % 9, node % 9)
            },
            ["Ayr", "Bath", ""][node % 3].into(),
            format!("Name {node}"),
        ];
        row(&cells);
        for step in [2, 4, 6] {
            edges += &format!("p{node},p{}\n", (node + step) % 200);
        }
    }
    put(at, &[("g/nodes.csv", nodes.as_bytes()), ("g/edges.csv", edges.as_bytes())]);
}

#[test]
fn a_table_with_gaps_goes_all_the_way() {
    for separator in [",", ";"] {
        let place = folder();
        let at = place.path();
        put_people(at, separator);
        progap_in(at, &["train", "g"]).refused(&["\"name\"", "200 different values", "--drop name"]);
        let shown = progap_in(at, &["inspect", "g", "--drop", "name"]).ok();
        for part in
            ["100 nodes have one (50.0 %)", "income", "1 feature and 1 for missing", "2011-01-10", "not used"]
        {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let json = progap_in(at, &["inspect", "g", "--drop", "name", "--json"]).json();
        assert_eq!(
            (json["labelled"].as_u64(), json["columns"][3]["missing"].as_u64()),
            (Some(100), Some(29))
        );
        assert_eq!(json["train"], 75, "the split is drawn over labelled nodes: {json}");

        for level in ["none", "edge", "node"] {
            let out = format!("r-{level}");
            let train = ["train", "g", "--drop", "name", "--level", level, "--epochs", "3", "--out", &out];
            let node = ["--batch-size", "20", "--epsilon", "8", "--bounds", "income=0:100000"];
            let more: &[&str] = if level == "node" { &node } else { &[] };
            let summary = progap_in(at, &[&train, more].concat()).ok();
            assert!(summary.contains("100 of 200 nodes have one (50.0 %), 37.5 % train"), "{summary}");
            progap_in(at, &["verify", &out]).ok();
            let file = format!("p-{level}.csv");
            let told = progap_in(at, &["predict", &out, "--unlabelled", "--out", &file]);
            assert!(told.success && told.stdout.contains("100 nodes"), "{}", told.stderr);
            let all = std::fs::read_to_string(at.join(&file)).expect("predictions");
            assert!(all.starts_with("id,class,labelled,p(blue),p(red),used,release,date\np"), "{all}");
            assert_eq!(all.matches(",false,").count(), 100, "{all}");
            let statement = progap_in(at, &["inspect", &out]).ok();
            assert!(statement.contains("which have a label (100 of 200)"), "{statement}");
            progap_in(at, &["report", &out, "--out", &format!("{out}.html")]).ok();
        }
    }
}

#[test]
fn what_a_file_says_of_columns_is_kept_with_the_run() {
    let place = folder();
    let at = place.path();
    put_people(at, ",");
    let columns = "drop = [\"name\"]\nmax-categories = 1\n[columns.income]\nbounds = [0, 30000]\n[columns.joined]\n\
                   as = \"date\"\nbounds = [\"2010-01-01\", \"2020-12-31\"]\n";
    put(at, &[("c.toml", columns.as_bytes())]);
    let columns = progap_in(at, &["inspect", "g", "--columns", "c.toml", "--json"]).json()["columns"].clone();
    let note = |column: usize| columns[column]["note"].as_str().unwrap_or_default().to_string();
    assert_eq!(note(3), "58 values lie beyond the declared bounds and are brought to them", "{columns}");
    assert_eq!(note(5), "the 1 most frequent values, the others are one category");
    progap_in(at, &["train", "g", "--columns", "c.toml", "--epochs", "2", "--out", "r"]).ok();
    std::fs::remove_file(at.join("c.toml")).expect("removed");
    progap_in(at, &["train", "--config", "r/config.toml", "--out", "again"]).ok();
    for (bad, what) in
        [("drop = 3\n", "line 1"), ("[columns.age]\nas = \"colour\"\n", "line 2"), ("dorp = []\n", "dorp")]
    {
        put(at, &[("bad.toml", bad.as_bytes())]);
        let refused = progap_in(at, &["inspect", "g", "--columns", "bad.toml"]);
        assert!(!refused.success && refused.stderr.contains(what), "{}", refused.stderr);
    }
    for (flags, what) in [
        (["--drop", "nmae"], "no column \"nmae\""),
        (["--bounds", "income=5"], "such as age=0:120"),
        (["--bounds", "income=9:1"], "not below"),
        (["--bounds", "income=1:9:lag"], "such as age=0:120"),
        (["--bounds", "income=0:9:log"], "above 0"),
        (["--bounds", "incme=0:9"], "--bounds"),
        (["--text", "name:many"], "such as bio:64"),
        (["--mask", "1"], ".npz"),
        (["--labels", "c.toml"], "edge list"),
    ] {
        progap_in(at, &[&["inspect", "g"][..], &flags].concat()).refused(&[what]);
    }
}

#[test]
fn splits_may_be_fixed_while_noise_varies() {
    let place = folder();
    let at = place.path();
    put_people(at, ",");
    let train = ["train", "g", "--drop", "name,joined", "--epochs", "2", "--repeats", "2", "--json"];
    let json = progap_in(at, &[&train[..], &["--out", "a"]].concat()).json();
    assert_eq!(json["varied"], "split, noise and initial values");
    let json = progap_in(at, &[&train[..], &["--out", "b", "--split-seed", "4"]].concat()).json();
    assert_eq!(json["varied"], "noise and initial values; the split is the same in all runs");
    assert_eq!((json["nodes"].as_u64(), json["labelled_nodes"].as_u64()), (Some(200), Some(100)));
    // No test nodes: nothing is claimed.
    let json = progap_in(
        at,
        &["train", "g", "--drop", "name", "--ratios", "0,0", "--epochs", "2", "--out", "c", "--json"],
    );
    assert!(json.json()["test_accuracy"].is_null());
    let shown =
        progap_in(at, &["train", "g", "--drop", "name", "--ratios", "0,0", "--epochs", "2", "--out", "d"])
            .ok();
    assert!(shown.contains("not measured, as there are no test nodes"), "{shown}");
    progap_in(at, &["verify", "d"]).ok();
    progap_in(at, &["report", "d", "--out", "d.html"]).ok();
}

/// Where edges mean something the other way round, one flag turns them: who received nothing then receives.
#[test]
fn nodes_receive_along_the_edges_that_are_asked_for() {
    let place = folder();
    // Every later node points to an earlier one of its class, and its own feature says nothing: only what it points to
    // does.
    let class = |node: usize| ["a", "b"][node % 2];
    let part =
        |node: usize| if node < 40 { "train" } else { ["train", "train", "val", "test"][node / 2 % 4] };
    let nodes: String =
        (0..400).map(|node| format!("{node},{},{},{}\n", class(node), node % 7, part(node))).collect();
    let edges: String = (40..400)
        .flat_map(|node| [2, 4, 8, 10, 16, 26].map(|back| format!("{node},{}\n", (node - back) % 40)))
        .collect();
    let (nodes, edges) = (format!("id,label,x,split\n{nodes}"), format!("source,target\n{edges}"));
    put(place.path(), &[("g/nodes.csv", nodes.as_bytes()), ("g/edges.csv", edges.as_bytes())]);
    let accuracy = |direction: &[&str]| {
        let out = format!("release{}", direction.len());
        let words = ["train", "g", "--level", "none", "--seed", "1", "--json", "--out", &out];
        let run = progap_in(place.path(), &[&words, direction].concat());
        assert!(run.success, "{}", run.stderr);
        let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
        report["test_accuracy"].as_f64().expect("a number")
    };
    let (along, against) = (accuracy(&[]), accuracy(&["--direction", "out"]));
    assert!(against > 0.95 && against > along + 0.2, "{along} {against}");
    let both = accuracy(&["--direction", "both", "--depth", "2"]);
    assert!(both > 0.95, "{both}");
    // Both ways are two queries a stage, verified and predicted from; the hint names them.
    let at = place.path();
    let train =
        ["train", "g", "--epsilon", "2", "--depth", "2", "--direction", "both", "--out", "both", "--json"];
    progap_in(at, &train).ok();
    assert_eq!(statement(at, "both")["mechanisms"][0]["count"], 4);
    progap_in(at, &["verify", "both"]).ok();
    assert_eq!(progap_in(at, &["predict", "both"]).ok().lines().count(), 401);
    let hint = progap_in(at, &["check", "g"]).stdout;
    assert!(hint.contains("--direction both") && hint.contains("--symmetrise"), "{hint}");
    progap_in(at, &["train", "g", "--level", "node", "--direction", "both"])
        .refused(&["along the edges only", "--direction in"]);
    // A refusal would tell that every edge has an edge back: the data owner is told instead.
    let check = progap_in(at, &["check", "g", "--symmetrise", "--direction", "both"]).ok();
    assert!(check.contains("both directions say the same") && check.contains("--direction in"), "{check}");
}

/// The privacy statement of a release.
fn statement(at: &std::path::Path, release: &str) -> serde_json::Value {
    let text = std::fs::read(at.join(release).join("privacy.json")).expect("a statement");
    serde_json::from_slice(&text).expect("JSON")
}

/// Edges of weight 0 carry nothing: here they are the misleading ones.
#[test]
fn weights_say_which_edges_count() {
    let place = folder();
    let at = place.path();
    let part = |node: usize| ["train", "train", "val", "test"][node / 2 % 4];
    // Numbers that tell no edge.
    let id = |node: usize| node % 400 * 7 % 400;
    let nodes: String = (0..400)
        .map(|node| format!("{},{},{},{}\n", id(node), ["a", "b"][node % 2], node % 7, part(node)))
        .collect();
    let edges: String = (0..400)
        .flat_map(|node| {
            [2, 4, 6, 8, 1, 3, 5, 7]
                .map(|step| format!("{},{},{}\n", id(node), id(node + step), 1 - step % 2))
        })
        .collect();
    let (nodes, edges) = (format!("id,label,x,split\n{nodes}"), format!("source,target,weight\n{edges}"));
    put(at, &[("g/nodes.csv", nodes.as_bytes()), ("g/edges.csv", edges.as_bytes())]);
    let accuracy = |level: &str, weights: &[&str]| {
        let out = format!("r-{level}-{}", weights.len());
        let words = ["train", "g", "--level", level, "--seed", "1", "--json", "--out", &out];
        let said = progap_in(at, &[&words, weights].concat()).json();
        progap_in(at, &["verify", &out]).ok();
        said["test_accuracy"].as_f64().or(said["owner"]["test_accuracy"].as_f64())
    };
    let (without, with) = (accuracy("none", &[]), accuracy("none", &["--weights", "--weight-bound", "1"]));
    assert!(with > Some(0.95) && without < Some(0.8), "{without:?} {with:?}");
    accuracy("edge", &["--weights", "--weight-bound", "1"]);
    accuracy("node", &["--weights=weight", "--weight-bound", "1"]);
    // Weights that are not asked for are ignored, and said to be; those that are asked for are kept.
    assert!(progap_in(at, &["inspect", "g"]).ok().contains("of the edge table; weights are not read"));
    progap_in(at, &["data", "convert", "g", "g.progap", "--weights", "--weight-bound", "1"]).ok();
    let kept =
        progap_in(at, &["train", "g.progap", "--level", "none", "--seed", "1", "--json", "--out", "k"])
            .json();
    assert_eq!(kept["test_accuracy"].as_f64(), with);
    let sage = ["train", "g", "--weights", "--weight-bound", "1", "--level", "none", "--method", "sage"];
    progap_in(at, &sage).refused(&["sage", "leave the weights out", "--method progap-labels"]);
    progap_in(at, &["train", "g", "--weights=strength", "--weight-bound", "1"])
        .refused(&["weights column", "--weights=COLUMN"]);
    // A maximum is declared, not computed: the largest weight is one edge's. What lies above it counts as much as it.
    progap_in(at, &["train", "g", "--weights"])
        .refused(&["--weights needs a public maximum", "--weight-bound MAX"]);
    progap_in(at, &["train", "g", "--weights", "--weight-bound", "0"]).refused(&["a number above 0"]);
    let bounded = ["train", "g", "--weights", "--weight-bound", "1000", "--out", "b"];
    for largest in ["7", "1e39"] {
        let edges = edges.replacen(",1\n", &format!(",{largest}\n"), 1);
        put(at, &[("g/edges.csv", edges.as_bytes())]);
        let _ = std::fs::remove_dir_all(at.join("b"));
        progap_in(at, &bounded).ok();
        progap_in(at, &["verify", "b"]).ok();
        let statement = std::fs::read_to_string(at.join("b/privacy.json")).expect("a statement");
        assert!(statement.contains("the maximum 1000 of edge weights"), "{statement}");
    }
}

/// At node level a rare class is found by a noisy count of the labels, which is part of the guarantee.
#[test]
fn rare_classes_count_at_node_level_by_noisy_counts() {
    let place = folder();
    let at = place.path();
    let part = |node: usize| ["train", "train", "train", "test"][node / 20 % 4];
    let label = |node: usize| if node.is_multiple_of(20) { "rare" } else { "usual" };
    let row = |node: usize| {
        let noise = (node * 7919 % 101) as f64 / 50.0 + (node * 104_729 % 97) as f64 / 48.0 - 2.0;
        let x = if node.is_multiple_of(20) { 1.0 } else { -1.0 } + noise;
        format!("{node},{},{x},{}\n", label(node), part(node))
    };
    let nodes: String = (0..3000).map(row).collect();
    let edges: String = (0..3000).map(|node| format!("{node},{}\n", (node + 1) % 3000)).collect();
    let (nodes, edges) = (format!("id,label,x,split\n{nodes}"), format!("source,target\n{edges}"));
    put(at, &[("g/nodes.csv", nodes.as_bytes()), ("g/edges.csv", edges.as_bytes())]);
    let recall = |weights: &[&str]| {
        let out = format!("r{}", weights.len());
        let words = [
            "train", "g", "--level", "node", "--depth", "0", "--bounds", "x=-3:3", "--seed", "1", "--order",
            "public",
        ];
        let said = progap_in(at, &[&words[..], &["--json", "--out", &out], weights].concat()).json();
        progap_in(at, &["verify", &out]).ok();
        let counted = statement(at, &out)["mechanisms"].to_string().contains("training nodes of each class");
        assert_eq!(counted, !weights.is_empty(), "{said}");
        said["owner"]["test_scores"]["balanced_accuracy"].as_f64().expect("a score")
    };
    let (plain, balanced) = (recall(&[]), recall(&["--class-weights", "balanced"]));
    assert!(balanced > plain + 0.05 && balanced > 0.8, "{plain} {balanced}");
    progap_in(at, &["train", "g", "--level", "node", "--method", "dp-gnn", "--class-weights", "balanced"])
        .refused(&["balanced class weights", "--method progap-labels"]);
}

/// A rare class of which neither features nor edges tell anything: accuracy is high, and worth nothing.
#[test]
fn a_model_that_does_no_better_than_without_one_says_so() {
    let place = folder();
    let at = place.path();
    let (mut nodes, mut edges) = (String::from("id,label,a,b\n"), String::from("source,target\n"));
    for node in 0..300usize {
        let label = if node % 20 == 3 { "fraud" } else { "fine" };
        nodes += &format!("{node},{label},{},{}\n", node * 37 % 11, node * 53 % 7);
        edges += &format!("{node},{}\n", (node * 7 + 1) % 300);
    }
    put(at, &[("g/nodes.csv", nodes.as_bytes()), ("g/edges.csv", edges.as_bytes())]);
    for method in ["progap-views", "progap-labels"] {
        let train = ["train", "g", "--method", method, "--seed", "1", "--epochs", "20"];
        let train = if method == "progap-views" { &train[..6] } else { &train[..] };
        let shown = progap_in(at, &[train, &["--out", method]].concat()).ok();
        for part in
            ["no better than", "the most frequent class (balanced accuracy 50.0 %)", "the features alone"]
        {
            assert!(shown.contains(part), "{method}: {part}: {shown}");
        }
        let json = progap_in(at, &[train, &["--json", "--out", &format!("{method}-json")]].concat()).json();
        let named = json["no_better_than"].to_string();
        assert!(!named.contains("brought nothing"), "{json}");
        let tried = "class probabilities";
        assert!(named.contains("did not raise the accuracy on the test nodes under this noise"), "{json}");
        assert!(named.contains(tried) && named.contains("other methods use the graph differently"), "{json}");
        assert!(named.contains("--method gap") && !named.contains("--method mlp"), "{json}");
        progap_in(at, &["report", method, "--out", "page"]).ok();
        for file in ["report.md", "report.html"] {
            let page = std::fs::read_to_string(at.join("page").join(file)).expect("a page");
            assert!(page.contains("No better than the most frequent class"), "{method}: {file}");
        }
        std::fs::remove_dir_all(at.join("page")).expect("removed");
    }
    // At node level it is made of private labels, and for the owner.
    let node = progap_in(at, &["train", "g", "--level", "node", "--json", "--out", "node"]).json();
    assert!(node["no_better_than"].is_null() && node["owner"]["no_better_than"].is_array(), "{node}");
}
