//! `progap account` as a user meets it.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use progap::plan::{Plan, PublicFacts};
use progap::release::Mechanism;
use progap::settings::{Declaration, Draft, Request, Size};
use progap::{Dataset, Level, MethodKind, Settings};
use progap_graph::Ratios;
use progap_graph::synth::SocialNetwork;
use serde_json::Value;

fn account(arguments: &str) -> Output {
    with_input(arguments, "")
}

fn with_input(arguments: &str, input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_progap"))
        .arg("account")
        .args(arguments.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    // The command may refuse its arguments before it reads.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("the command ends")
}

fn json(arguments: &str, input: &str) -> Value {
    let output = with_input(&format!("{arguments} --json"), input);
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Fails with one sentence that holds all the words.
fn refused(arguments: &str, input: &str, words: &[&str]) {
    let output = with_input(arguments, input);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{arguments} was accepted");
    assert!(output.stdout.is_empty() && !text.contains("panicked"), "{arguments}: {text}");
    for word in words {
        assert!(text.contains(word), "{arguments}: no `{word}` in {text}");
    }
}

const NODE: &str = "--level node --delta 1e-5 --train-nodes 19804 --batch-size 256 --epochs 10";

#[test]
fn edge_noise_is_that_of_the_specification() {
    for (epsilon, sigma, paper) in
        [(0.25, 17.34, 22.80), (0.5, 9.00, 11.44), (1.0, 4.68, 5.76), (2.0, 2.45, 2.92), (4.0, 1.30, 1.50)]
    {
        let answer = json(&format!("--level edge --depth 1 --epsilon {epsilon} --delta 1e-7"), "");
        assert!((number(&answer["sigma"]) - sigma).abs() < 0.0051, "{answer}");
        assert!((number(&answer["accountants"]["theorem"]) - paper).abs() < 0.0051, "{answer}");
        assert!(number(&answer["epsilon"]) <= epsilon, "{answer}");
        assert_eq!((&answer["accountant"], number(&answer["delta"])), (&Value::from("gdp"), 1e-7));
        let deeper = json(&format!("--level edge --depth 4 --epsilon {epsilon} --delta 1e-7"), "");
        assert!((number(&deeper["sigma"]) / number(&answer["sigma"]) - 2.0).abs() < 1e-5);
    }
}

#[test]
fn node_noise_is_that_of_the_specification() {
    for (depth, sigma) in [(1, 0.791), (2, 0.988), (5, 1.470)] {
        let answer = json(&format!("{NODE} --ratio 1 --depth {depth} --epsilon 8"), "");
        assert!((number(&answer["sigma"]) - sigma).abs() < 0.00051, "{answer}");
        assert_eq!(answer["accountant"], "pld");
        let accountants = &answer["accountants"];
        assert!(number(&accountants["pld"]) < number(&accountants["rdp"]));
        assert!(number(&accountants["rdp"]) < number(&accountants["theorem"]));
        assert!(accountants.get("gdp").is_none());
        assert!(answer["notes"]["gdp"].as_str().is_some_and(|note| note.contains("poisson-sampled")));
    }
}

/// Settings that are not given are as in training: the noise of a run with the defaults of its level is what is shown
/// here.
#[test]
fn defaults_are_those_of_training() {
    let usual = Settings {
        batch_size: 256,
        epochs: 10,
        delta: Some(1e-5),
        ..Settings::of(progap::MethodKind::ProgapLabels, Level::Node)
    };
    let sizes = PublicFacts::stated([(Size::TrainNodes, 19804)]);
    let plan = Plan::new(&usual.checked().expect("settings"), sizes).expect("a plan");
    let epsilon = usual.epsilon.expect("a budget");
    let answer = json(&format!("{NODE} --depth {} --epsilon {epsilon}", usual.depth), "");
    let close = |key: &str, value: f64| number(&answer[key]) == value;
    assert!(close("sigma", plan.aggregate_multiplier), "{answer} {plan:?}");
    assert!(close("gradient_multiplier", plan.gradient_multiplier), "{answer} {plan:?}");
    assert!(close("sensitivity", plan.sensitivity), "{answer} {plan:?}");
}

#[test]
fn sigma_and_epsilon_lead_to_each_other() {
    for flags in [
        "--level edge --delta 1e-6",
        "--level edge --undirected --delta 1e-6",
        &format!("{NODE} --max-degree 9 --clip 0.5 --ratio 1.5"),
    ] {
        let found = json(&format!("{flags} --depth 2 --epsilon 3"), "");
        let back = json(&format!("{flags} --depth 2 --sigma {}", found["sigma"]), "");
        let (epsilon, target) = (number(&back["epsilon"]), number(&found["epsilon"]));
        assert!((epsilon / target - 1.0).abs() < 1e-9, "{flags}: {epsilon} {target}");
        // The event in the answer is a question.
        let tree = found["event"].to_string();
        let delta = found["accounted_delta"].to_string();
        let again = json(&format!("--events - --delta {delta}"), &tree);
        assert_eq!(again["epsilon"], found["epsilon"], "{flags}");
        assert_eq!(again["unit"], found["unit"]);
    }
}

#[test]
fn undirected_edges_cost_more_than_edges() {
    let edge = json("--level edge --depth 3 --sigma 8 --delta 1e-7", "");
    let undirected = json("--level edge --undirected --known-weight 1 --depth 3 --sigma 8 --delta 1e-7", "");
    assert!(number(&undirected["epsilon"]) > 1.3 * number(&edge["epsilon"]));
    assert_eq!(edge["epsilon_undirected"], undirected["epsilon"]);
    assert_eq!(undirected["epsilon_undirected"], undirected["epsilon"]);
    assert_eq!(undirected["epsilon_directed"], edge["epsilon"]);
    assert_eq!(number(&undirected["sensitivity"]), 2f64.sqrt().next_up(), "rounded up");
    // Messages that share an edge's influence move sums as much as one message does.
    let shared = json("--level edge --undirected --depth 3 --sigma 8 --delta 1e-7", "");
    assert_eq!((number(&shared["sensitivity"]), &shared["epsilon"]), (1.0, &edge["epsilon"]));
    // Of a tree nothing is known but its sensitivities.
    let tree = r#"{"unit": "edge", "event": {"type": "gaussian", "sigma": 8, "sensitivity": 1}}"#;
    let group = json("--events - --delta 1e-7", tree);
    let double = json("--events - --delta 1e-7", &tree.replace("\"sensitivity\": 1", "\"sensitivity\": 2"));
    assert_eq!(group["epsilon_undirected"], double["epsilon"]);
    let shown = String::from_utf8(account("--level edge --depth 3 --sigma 8 --delta 1e-7").stdout).unwrap();
    assert!(shown.contains("undirected edge") && shown.contains("1.4678"), "{shown}");
}

#[test]
fn trees_with_and_without_a_unit() {
    let bare = r#"{"type": "composed", "events": [{"type": "laplace", "scale": 2, "sensitivity": 1},
        {"type": "poisson-sampled", "rate": 0.01, "event": {"type": "gaussian", "sigma": 1, "sensitivity": 1}}]}"#;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tree.json");
    std::fs::write(&file, bare).unwrap();
    let from_file = json(&format!("--events {} --delta 1e-6", file.display()), "");
    let wrapped = json("--events - --delta 1e-6", &format!(r#"{{"unit": "node", "event": {bare}}}"#));
    assert_eq!(from_file["epsilon"], wrapped["epsilon"]);
    assert_eq!((from_file.get("unit"), &wrapped["unit"]), (None, &Value::from("node")));
    // Private selection is for one accountant only, and a named one is taken at its word.
    let selection = format!(
        r#"{{"type": "private-selection", "eta": 1, "gamma": 0.1, "event": {}}}"#,
        r#"{"type": "gaussian", "sigma": 2, "sensitivity": 1}"#
    );
    assert_eq!(json("--events - --delta 1e-6", &selection)["accountant"], "rdp");
    refused(
        "--events - --delta 1e-6 --accountant pld",
        &selection,
        &["pld", "private-selection", "`event`", "use rdp"],
    );
    // No guarantee at all is an answer, not an error.
    let clear = json("--events - --delta 1e-6", r#"{"type": "non-private"}"#);
    assert!(
        clear["epsilon"].is_null() && clear["notes"]["pld"].as_str().unwrap().contains("no finite epsilon")
    );
}

#[test]
fn plots_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.svg");
    let output =
        account(&format!("--level edge --depth 2 --epsilon 1 --delta 1e-6 --plot {}", file.display()));
    assert!(output.status.success());
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.starts_with("<svg"));
    for word in ["delta", "epsilon", "gdp", "pld", "rdp", "theorem"] {
        assert!(text.contains(&format!(">{word}<")), "{word}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    refused("--level edge --depth 2 --epsilon 1 --delta 1e-6 --plot a.pdf", "", &["a.pdf", ".svg"]);
    refused(
        "--level edge --depth 2 --epsilon 1 --delta 1e-6 --plot /nowhere/at/all/a.svg",
        "",
        &["cannot be written"],
    );
}

#[test]
fn bad_flags_are_refused() {
    for epsilon in ["0", "-1", "nan", "inf"] {
        refused(
            &format!("--level edge --depth 1 --delta 1e-6 --epsilon {epsilon}"),
            "",
            &["epsilon", "0.001 to 1000"],
        );
    }
    let tree = r#"{"type": "gaussian", "sigma": 1, "sensitivity": 1}"#;
    refused("--events - --delta 1e-6 --depth 2", tree, &["--depth", "--events"]);
    for delta in ["0", "1", "-0.1", "nan", "2"] {
        refused(
            &format!("--level edge --depth 1 --epsilon 1 --delta {delta}"),
            "",
            &["delta", "1e-30 to 0.1"],
        );
        refused(&format!("--events - --delta {delta}"), tree, &["delta", "between 0 and 1"]);
    }
    for sigma in ["0", "-3", "nan", "inf"] {
        refused(&format!("--level edge --depth 1 --delta 1e-6 --sigma {sigma}"), "", &["sigma", "above 0"]);
        refused(&format!("{NODE} --depth 1 --sigma {sigma}"), "", &["sigma", "above 0"]);
    }
    refused("--level edge --depth 9999 --epsilon 1 --delta 1e-6", "", &["depth", "9999", "0 to 50"]);
    refused("--level edge --depth 2 --epsilon 1 --delta 1e-6 --clip 1", "", &["--clip", "level node"]);
    for (flag, value) in [("hidden", "8"), ("epochs", "20"), ("learning-rate", "0.1"), ("jk", "sum")] {
        let asked = format!(
            "--level edge --method progap-labels --depth 2 --epsilon 1 --delta 1e-6 --{flag} {value}"
        );
        refused(&asked, "", &[&format!("--{flag} has no effect"), "neither queries nor their noise"]);
    }
    refused(
        "--level edge --method mlp --epsilon 1 --undirected",
        "",
        &["--undirected has no effect", "no edge"],
    );
    refused("--level node --depth 2 --epsilon 1 --delta 1e-6", "", &["--train-nodes"]);
    refused(&format!("{NODE} --depth 1 --epsilon 1 --undirected"), "", &["--undirected"]);
    let sizes = "--level node --method progap-labels --epsilon 2 --delta 1e-6 --train-nodes 2000";
    refused(sizes, "", &["--nodes", "--columns", "--classes"]);
    let queries = |nodes: usize| {
        let answer = json(&format!("{sizes} --columns 9 --classes 3 --nodes {nodes}"), "");
        answer["queries"].as_array().map(Vec::len)
    };
    assert!(queries(2708) > queries(40_000), "few labels: the graph is left out");
    refused(&format!("{NODE} --depth 1 --epsilon 1 --columns 9"), "", &["--columns", "nothing"]);
    refused(&format!("{sizes} --depth 1"), "", &["--batch-size", "--columns"]);
    refused(&format!("{sizes} --depth 0 --columns 9"), "", &["--columns", "nothing"]);
    let node = "--level node --depth 1 --epsilon 1 --delta 1e-6";
    refused(
        &format!("{node} --train-nodes 10 --batch-size 11 --epochs 1"),
        "",
        &["batch size", "11", "10 training nodes"],
    );
    refused(&format!("{node} --train-nodes 10 --batch-size 0 --epochs 1"), "", &["batch size", "0"]);
    refused(&format!("{node} --train-nodes 10 --batch-size 5 --epochs 0"), "", &["epochs", "0"]);
    refused(&format!("{NODE} --depth 1 --epsilon 1 --ratio 0"), "", &["ratio", "0"]);
    refused(&format!("{NODE} --depth 1 --epsilon 1 --clip -1"), "", &["clip", "-1"]);
    refused(&format!("{NODE} --depth 1 --epsilon 1 --max-degree 0"), "", &["max degree", "0"]);
    refused(
        &format!("{NODE} --depth 1 --epsilon 1 --accountant gdp"),
        "",
        &["gdp", "poisson-sampled", "use pld"],
    );
    refused("--delta 1e-6", "", &["--level"]);
    refused("--level edge --depth 1 --delta 1e-6", "", &["--epsilon"]);
    refused("--level edge --depth 1 --delta 1e-6 --epsilon 1 --sigma 2", "", &["cannot be used with"]);
}

/// Every method of the registry at every level that protects something: what is shown is what training would plan, to
/// the last digit, and the noise leads back to the same cost.
#[test]
fn the_noise_is_that_of_training_for_every_method() {
    for entry in progap::method::catalogue::methods() {
        for &level in entry.levels.iter().filter(|&&level| level != Level::None) {
            for undirected in [false, true] {
                let uses_edges = Settings::of(entry.method, level).edges_without_effect().is_none();
                if undirected && (level == Level::Node || !uses_edges) {
                    continue;
                }
                let delta = entry.method.has_delta().then_some(1e-6);
                let usual = Settings { delta, undirected, ..Settings::of(entry.method, level) };
                let node = level == Level::Node;
                let batches = node && usual.without_effect("epochs").is_none();
                let usual = if batches { Settings { batch_size: 300, epochs: 4, ..usual } } else { usual };
                let sizes = PublicFacts::stated([(Size::TrainNodes, if node { 9000 } else { 0 })]);
                let plan = Plan::new(&usual.checked().expect("settings"), sizes).expect("a plan");
                let mut flags = format!("--method {} --level {level}", entry.method);
                flags += if undirected { " --undirected" } else { "" };
                // Where it is not given it follows from sizes.
                if Draft::following(usual.clone()).is_open("depth") {
                    flags += &format!(" --depth {}", usual.depth);
                }
                flags += &delta.map_or(String::new(), |delta| format!(" --delta {delta}"));
                flags += if node { " --train-nodes 9000" } else { "" };
                flags += if batches { " --batch-size 300 --epochs 4" } else { "" };
                if usual.weighs_receivers() {
                    flags += &format!(" --feature-learning {}", usual.feature_learning);
                }
                if undirected && Draft::following(usual.clone()).is_open("known_weight") {
                    flags += &format!(" --known-weight {}", usual.known_weight);
                }
                let answer = json(&format!("{flags} --epsilon {}", usual.epsilon.expect("a budget")), "");
                let what = format!("{flags}: {answer}");
                assert_eq!(number(&answer["epsilon"]), plan.epsilon, "{what}");
                let shown = answer["queries"].as_array().cloned().unwrap_or_default();
                assert_eq!(shown.len(), plan.queries.iter().count(), "{what}");
                for (shown, (query, count)) in shown.iter().zip(plan.queries.iter()) {
                    let noise = query.noise().expect("noise");
                    assert_eq!(number(&shown["sigma"]), noise.sigma, "{what}");
                    assert_eq!(number(&shown["sensitivity"]), noise.sensitivity, "{what}");
                    assert_eq!(shown["count"].as_u64(), Some(count), "{what}");
                    assert_eq!(shown["purpose"], query.purpose, "{what}");
                }
                match answer["sigma"].as_f64() {
                    Some(sigma) => {
                        let back = json(&format!("{flags} --sigma {sigma}"), "");
                        assert!(
                            (number(&back["epsilon"]) / plan.epsilon - 1.0).abs() < 1e-9,
                            "{what} {back}"
                        );
                    }
                    None => refused(&format!("{flags} --sigma 3"), "", &["--epsilon"]),
                }
            }
        }
    }
    // Nothing is asked of the edges.
    assert_eq!(number(&json("--level edge --depth 0 --epsilon 1 --delta 1e-6", "")["epsilon"]), 0.0);
    refused("--method edge-rand --level edge --epsilon 1 --delta 1e-6", "", &["--delta"]);
    refused("--level edge --depth 2 --epsilon 1", "", &["--delta"]);
}

/// A run in memory on a small network, and what the command says of the same settings with the sizes that it asks for.
fn trained_and_accounted(data: &Dataset, flags: &[(&str, &str)], paper: bool) {
    let start = if paper { Request::published() } else { Request::default() };
    let parsed = |name: &str, value: &str| Declaration::find(name).expect(name).parse(value).expect(value);
    // The budget of the question, also for runs that cost nothing.
    let start = start.at_any_cost();
    let request = flags.iter().fold(start, |request, (name, value)| request.with(name, parsed(name, value)));
    let what = format!("{flags:?}, paper: {paper}");
    let mut arguments: String =
        flags.iter().map(|(name, value)| format!("--{} {value} ", name.replace('_', "-"))).collect();
    arguments += if paper { "--preset paper " } else { "" };
    let draft = request.settings().expect("settings");
    let sizes = PublicFacts::of(data, &draft);
    if draft.resolve(&sizes).expect("settings").undirected {
        arguments += "--undirected ";
    }
    let needed: Vec<Size> = draft.sizes_needed().iter().flat_map(|part| part.sizes).copied().collect();
    for (size, count) in [
        (Size::Nodes, sizes.nodes),
        (Size::TrainNodes, sizes.train_nodes),
        (Size::Columns, sizes.columns),
        (Size::Classes, sizes.classes),
    ] {
        if needed.contains(&size) {
            arguments += &format!("--{} {count} ", size.name().replace('_', "-"));
        }
    }
    let trained = match progap::train(data, request.with("seed", 1)).in_memory() {
        Ok(trained) => trained.statement,
        // A bound that an accountant cannot show is shown by neither.
        Err(error) => {
            assert!(matches!(error.kind(), progap::ErrorKind::Privacy(_)), "{what}: {error}");
            return refused(&arguments, "", &[]);
        }
    };
    let answer = json(&arguments, "");
    let what = format!("{what}: {answer}");
    let budget = trained.budget();
    assert_eq!(answer["epsilon"].as_f64(), budget.map(|budget| budget.epsilon), "{what}");
    assert_eq!(answer["delta"].as_f64(), budget.map(|budget| budget.delta), "{what}");
    let shown = answer["queries"].as_array().cloned().unwrap_or_default();
    assert_eq!(shown.is_empty(), trained.mechanisms.is_empty(), "{what}");
    assert!(shown.is_empty() || answer["accountant"] == trained.accountant, "{what}");
    for shown in &shown {
        let same_name = |asked: &&Mechanism| shown["name"] == asked.name;
        let times: u64 = trained.mechanisms.iter().filter(same_name).map(|asked| asked.count).sum();
        assert_eq!(shown["count"].as_u64(), Some(times), "{what}");
    }
    // Queries of different stages stand in turns.
    for asked in &trained.mechanisms {
        let shown = shown.iter().find(|shown| shown["name"] == asked.name).expect("a query of that name");
        // The grid on which gradients are rounded is known with the model; it raises noise and sensitivity by the same
        // factor.
        let close = |shown: f64, asked: f64| (shown / asked - 1.0).abs() < 1e-12;
        assert!(close(number(&shown["noise_multiplier"]), asked.noise_multiplier), "{what} {asked:?}");
        assert!(close(number(&shown["sampling_rate"]), asked.sampling_rate), "{what} {asked:?}");
        if asked.sampling_rate == 1.0 {
            assert_eq!(number(&shown["sigma"]), asked.sigma, "{what} {asked:?}");
            assert_eq!(number(&shown["sensitivity"]), asked.sensitivity, "{what} {asked:?}");
        }
    }
}

/// Every method, level and accounting: the noise of a run that was trained is what the command said before, to the last
/// digit.
#[test]
fn a_trained_run_has_the_noise_that_was_accounted_for() {
    let network = SocialNetwork::new(300).edges(3000).classes(2).seed(1).generate().expect("a network");
    let data = network.or_random_split(Ratios::default(), 1).expect("a split");
    for entry in progap::method::catalogue::methods() {
        let (method, has_delta) = (entry.method.name(), entry.method.has_delta());
        for &level in entry.levels.iter().filter(|&&level| level != Level::None) {
            let mut flags = vec![("method", method), ("level", level.name()), ("epsilon", "4")];
            flags.extend(has_delta.then_some(("delta", "1e-5")));
            let by_a_table = Settings::of(entry.method, level).weighs_receivers();
            if level == Level::Node && !by_a_table {
                flags.extend([("epochs", "2"), ("batch_size", "30")]);
            }
            // Published rules bound a sender in another way than by weights of its receivers.
            if !by_a_table {
                trained_and_accounted(&data, &flags, true);
            }
            flags.extend(by_a_table.then_some(("feature_learning", "table")));
            trained_and_accounted(&data, &flags, false);
            if Settings::of(entry.method, level).without_effect("accounting").is_some() {
                continue;
            }
            for accounting in ["rdp", "theorem"] {
                trained_and_accounted(&data, &[&flags[..], &[("accounting", accounting)]].concat(), false);
            }
        }
    }
    // A depth that follows from columns, classes and training nodes.
    let node = [("level", "node"), ("epsilon", "8"), ("delta", "1e-5")];
    trained_and_accounted(&data, &node, false);
    assert_eq!(Settings::new(Level::Node).method, MethodKind::ProgapViews);
}

#[test]
fn one_flag_says_whose_answer_counts() {
    let flags = "--level edge --method progap-labels --depth 2 --epsilon 1 --delta 1e-6";
    let [best, rdp] = ["", "--accounting rdp"].map(|more| json(&format!("{flags} {more}"), ""));
    assert_eq!((&best["accountant"], &rdp["accountant"]), (&"gdp".into(), &"rdp".into()));
    assert_eq!(rdp["sigma"], rdp["accountants"]["rdp"]);
    assert!(number(&rdp["sigma"]) > number(&best["sigma"]));
    assert_eq!(json(&format!("{flags} --preset paper"), "")["accountant"], "rdp");
    assert_eq!(json(&format!("{flags} --preset paper --accountant best"), "")["accountant"], "gdp");
    refused(&format!("{flags} --accounting rdp --accountant pld"), "", &["--accounting", "--accountant"]);
    refused("--level edge --depth 2 --epsilon 1 --delta auto", "", &["--delta", "`auto`"]);
}

/// Batches of few training nodes are larger where features are rich, so a node is in them more often.
#[test]
fn batches_follow_from_columns_and_classes_where_the_depth_is_given() {
    let rate = |columns: usize| {
        let flags =
            "--level node --method progap-labels --epsilon 8 --delta 1e-5 --train-nodes 2000 --depth 1";
        let answer = json(&format!("{flags} --columns {columns}"), "");
        let queries = answer["queries"].as_array().cloned().unwrap_or_default();
        queries.iter().find_map(|query| query["sampling_rate"].as_f64().filter(|rate| *rate < 1.0))
    };
    assert_eq!((rate(600), rate(601)), (Some(0.0625), Some(0.25)));
    // Where the budget is small they follow from the classes too.
    let small = "--level node --method progap-labels --epsilon 2 --delta 1e-5 --train-nodes 2000 --depth 1 --columns 6";
    refused(small, "", &["--batch-size", "--classes"]);
    assert_ne!(
        json(&format!("{small} --classes 2"), "")["sigma"],
        json(&format!("{small} --classes 3"), "")["sigma"]
    );
}

/// Queries that training asks of number columns without bounds are accounted for where the number of these is told.
#[test]
fn counts_of_number_columns_follow_from_sizes() {
    let flags = "--level node --method progap-labels --epsilon 8 --delta 1e-5 --train-nodes 9000 --depth 1";
    let counts = |more: &str| {
        let answer = json(&format!("{flags} {more}"), "");
        let queries = answer["queries"].as_array().cloned().unwrap_or_default();
        let of_columns =
            |query: &Value| query["purpose"].as_str().is_some_and(|text| text.contains("number columns"));
        queries.iter().find(|query| of_columns(query)).and_then(|query| query["count"].as_u64())
    };
    assert_eq!(counts(""), None);
    assert_eq!(counts("--nodes 12000 --number-columns 6"), Some(2));
    assert_eq!(counts("--nodes 500 --number-columns 6"), None, "noise would drown them");
    assert_eq!(counts("--scaling noisy"), Some(2));
    let assumed = |more: &str| {
        let output = account(&format!("{flags} {more}"));
        String::from_utf8(output.stdout).expect("text").contains("no number columns")
    };
    assert!(assumed("") && !assumed("--number-columns 0") && !assumed("--scaling single"));
    refused(&format!("{flags} --number-columns 6"), "", &["--nodes"]);
    refused(&format!("{flags} --nodes 12000 --number-columns 6 --scaling single"), "", &["--number-columns"]);
}

#[test]
fn bad_trees_are_refused() {
    let tree = |text: &str, words: &[&str]| refused("--events - --delta 1e-6", text, words);
    tree("", &["standard input", "not an event tree"]);
    tree("{\"type\": \"gaussian\"", &["not an event tree"]);
    tree("\u{0}\u{1}", &["not an event tree"]);
    tree(r#"{"type": "wish"}"#, &["wish"]);
    tree(r#"{"type": "gaussian", "sigma": 0, "sensitivity": 1}"#, &["sigma is 0", "`event`"]);
    tree(r#"{"type": "gaussian", "sigma": 1e999, "sensitivity": 1}"#, &["out of range"]);
    tree(r#"{"type": "gaussian", "sigma": 1, "sensitivity": 1, "free": true}"#, &["free"]);
    let gaussian = r#"{"type": "gaussian", "sigma": 1, "sensitivity": 1}"#;
    tree(
        &format!(r#"{{"type": "poisson-sampled", "rate": 1.5, "event": {gaussian}}}"#),
        &["rate is 1.5", "between 0 and 1"],
    );
    tree(
        &format!(r#"{{"type": "self-composed", "count": 0, "event": {gaussian}}}"#),
        &["count is 0", "at least 1"],
    );
    tree(&format!(r#"{{"unit": "planet", "event": {gaussian}}}"#), &["planet"]);
    tree(
        &format!(r#"{{"unit": "edge", "event": {}}}"#, gaussian.replace("\"sigma\": 1", "\"sigma\": -1")),
        &["sigma is -1"],
    );
    tree(&"[".repeat(100_000), &["nested"]);
    tree(&" ".repeat((4 << 20) + 10), &["bytes"]);
    let unanswerable = r#"{"type": "private-selection", "eta": 1, "gamma": 0.5, "event": {"type": "poisson-sampled",
        "rate": 0.1, "event": {"type": "laplace", "scale": 1, "sensitivity": 1}}}"#;
    tree(unanswerable, &["event.event", "no accountant handles this tree"]);
    refused("--events /nowhere/tree.json --delta 1e-6", "", &["/nowhere/tree.json", "cannot be read"]);
    refused("--events - --delta 2", gaussian, &["delta is 2"]);
    refused("--events - --delta 1e-6 --epsilon 1", gaussian, &["cannot be used with"]);
}
