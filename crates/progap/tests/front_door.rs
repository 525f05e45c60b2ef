//! The front door: what is asked for by types and names becomes the same settings, and a model in memory is that of a
//! release.

mod common;

use common::{folder, network};
use progap::ledger::Ledger;
use progap::settings::{Declaration, Kind, Request};
use progap::{
    Bounding, Edge, ErrorKind, Level, Messages, MethodKind, Node, Remedy, Settings, Unit, Unprotected,
};
use serde_json::json;
use std::collections::BTreeSet;

/// Given the same seed, a model in memory predicts what a release does, and is measured and stated alike.
#[test]
fn a_model_in_memory_is_that_of_a_release() {
    let data = network();
    let asked = [
        Request::from(Edge::epsilon(1.0).epochs(4).seed(3)),
        Request::from(Node::epsilon(8.0).epochs(2).seed(3)),
        Request::from(Unprotected::new().epochs(4).seed(3)),
        Request::from(Edge::epsilon(1.0).method(MethodKind::EdgeRand).epochs(4).seed(3)),
        Request::from(Node::epsilon(8.0).method(MethodKind::DpGnn).batch_size(300).epochs(2).seed(3)),
    ];
    for request in asked {
        let (_keep, folder) = folder();
        let release = progap::train(&data, request.clone()).into_folder(&folder).expect("trained");
        let model = progap::train(&data, request).in_memory().expect("trained");
        assert_eq!(model.metrics, release.metrics);
        assert_eq!(model.statement, release.statement);
        assert_eq!(*model.settings, *release.settings().expect("settings"));
        assert_eq!(model.predict().expect("predicted"), release.predict().expect("predicted"));
        assert_eq!((model.guarantee(), model.nodes().graph().edges()), (release.guarantee(), 0));
    }
}

/// In memory, too, the ledger is charged before anything is asked, once for each run.
#[test]
fn a_model_in_memory_is_charged() {
    let (keep, _) = folder();
    let (data, path) = (network(), keep.path().join("ledger.db"));
    let mut ledger = Ledger::create(&path).expect("a ledger");
    let people = ledger.identity(&data).expect("an identity");
    ledger.register("people", Unit::EdgeUndirected, 1.2, 1e-6, Some(&people)).expect("registered");
    let asked = || progap::train(&data, Edge::epsilon(1.0).delta(1e-6).epochs(2)).ledger(&path);
    let model = asked().in_memory().expect("it fits the budget");
    assert_eq!(model.guarantee().to_string(), "epsilon 1.0000, delta 1e-6, unit edge-undirected");
    assert_eq!(ledger.status("people", Unit::EdgeUndirected).expect("status").runs, 1);
    assert!(
        matches!(asked().in_memory(), Err(e) if matches!(e.kind(), ErrorKind::Ledger(_))),
        "nothing is left of the budget"
    );
    let seeded = progap::train(&data, Edge::epsilon(1.0).seed(1)).ledger(&path).in_memory();
    assert!(seeded.expect_err("a seed").to_string().contains("cannot be charged"));
}

#[test]
fn what_is_asked_for_by_type_and_by_name_is_the_same() {
    let typed = Node::epsilon(4.0).clip(0.5).bounding(Bounding::Cap).settings().expect("settings");
    let named = Request::default().with("bounding", "cap").with("clip", 0.5).with("level", "node");
    assert_eq!(named.with("epsilon", 4.0).settings().expect("settings"), typed);
    // A method has defaults of its own, whenever it is named.
    let first = Edge::epsilon(1.0).method(MethodKind::Gap).hidden(32).settings().expect("settings");
    let last = Edge::epsilon(1.0).hidden(32).method(MethodKind::Gap).settings().expect("settings");
    assert_eq!((first.weight_decay, &first), (0.0, &last));
    // The default method has no embeddings to send: `progap` and `gap` do.
    let refused = Edge::epsilon(1.0).messages(Messages::Embeddings).settings();
    assert!(matches!(refused, Err(e) if matches!(e.kind(), ErrorKind::Contradiction(_))));
    assert!(Edge::epsilon(1.0).settings().expect("settings").unit_from_data);
    assert!(!Edge::epsilon(1.0).directed().settings().expect("settings").unit_from_data);
    assert!(Edge::epsilon(1.0).undirected().settings().expect("settings").undirected);
}

#[test]
fn what_cannot_work_or_decides_nothing_is_refused_in_one_sentence() {
    let said = |request: Request| request.settings().expect_err("refused").to_string();
    assert_eq!(
        said(Edge::epsilon(1.0).encoder_layers(2).into()),
        "`encoder_layers` has no effect: it belongs to the method gap; leave it out"
    );
    assert!(said(Edge::epsilon(-1.0).into()).contains("the epsilon -1 is out of range; give 0.001 to 1000"));
    assert!(said(Edge::epsilon(f64::NAN).into()).contains("epsilon"));
    assert!(said(Node::epsilon(1.0).method(MethodKind::Sage).into()).contains("has no level node"));
    assert!(said(Request::default().with("depht", 1)).contains("no setting \"depht\""));
    assert!(said(Request::default().with("depth", "deep")).contains("give a whole number from 0 to 50"));
    assert!(said(Request::default().with("messages", "words")).contains("embeddings, labels, auto"));
}

/// Settings from a file keep what makes sense where flags change the level, and nothing that would decide nothing.
#[test]
fn another_level_leaves_nothing_in_vain() {
    let node = Settings {
        clip: 0.5,
        delta: Some(1e-6),
        ..Settings::of(progap::MethodKind::ProgapLabels, Level::Node)
    };
    for level in ["edge", "none"] {
        let settings = Request::from(&node).with("level", level).settings().expect("settings");
        assert_eq!((settings.clip, settings.chosen_in_vain().map(|(setting, _)| setting.name)), (1.0, None));
    }
    let edited = Settings { clip: 0.5, ..Settings::of(progap::MethodKind::ProgapLabels, Level::Edge) };
    let (setting, why) = edited.chosen_in_vain().expect("clip at edge level");
    assert_eq!((setting.name, why.as_str()), ("clip", "it belongs to level node"));
    for &method in MethodKind::ALL {
        for &level in Level::ALL {
            assert!(Settings::of(method, level).chosen_in_vain().is_none(), "{method} {level}");
            assert!(Settings::paper(method, level).chosen_in_vain().is_none(), "{method} {level}");
        }
    }
}

/// The needs of a binding to another language: every setting can be read, written and parsed by its declaration.
#[test]
fn declarations_cover_the_settings() {
    let settings = Settings::of(progap::MethodKind::ProgapLabels, Level::Node);
    let written = json!(settings);
    let fields = written.as_object().expect("an object");
    for declaration in Settings::declarations() {
        let value = declaration.get(&settings);
        if let Some(field) = fields.get(declaration.name) {
            assert_eq!(*field, value, "{}", declaration.name);
        }
        let mut copy = settings.clone();
        declaration.set(&mut copy, value.clone()).expect("its own value");
        assert_eq!(copy, settings);
        assert!(!declaration.help.is_empty() && !declaration.help.ends_with('.'), "{}", declaration.name);
        if let Kind::Choice(all) = declaration.kind {
            for (name, _) in all() {
                let parsed = declaration.parse(name).expect("a choice");
                declaration.set(&mut copy, parsed).expect("a choice");
            }
        }
        assert!(declaration.set(&mut copy, json!({"no": "value"})).is_err());
    }
    assert!(fields.keys().all(|name| Declaration::find(name).is_ok()));
}

/// Without data, the delta must be given or follow from sizes that are.
#[test]
fn the_accountant_says_what_training_uses() {
    let data = network();
    let asked = || Edge::epsilon(1.0).epochs(2);
    let plan = progap::account(asked()).on(&data).plan().expect("a plan");
    let model = progap::train(&data, asked().seed(1)).in_memory().expect("trained");
    assert_eq!(model.statement.budget().map(|budget| budget.epsilon), Some(plan.epsilon));
    assert_eq!(model.statement.event, plan.event);
    let without = progap::account(asked()).plan().expect_err("no delta");
    assert_eq!(without.remedies(), [Remedy::Give("delta"), Remedy::GiveAll(vec!["nodes", "edges"])]);
    assert!(without.to_string().ends_with("give `delta`, or `nodes` and `edges`"), "{without}");
    assert!(progap::account(asked()).nodes(3_000).edges(60_000).plan().is_ok());
}

/// At node level the depth follows from sizes: with all of them the plan is that of the data, and without one there is
/// none.
#[test]
fn sizes_that_the_plan_follows_from_are_asked_for() {
    let data = network();
    let asked = || Node::epsilon(8.0).delta(1e-5);
    let train = data.split().expect("a split").count(progap_graph::Part::Train);
    let sized = progap::account(asked()).nodes(data.nodes()).train_nodes(train);
    let sized = sized.columns(data.features().columns());
    let missing = sized.plan().expect_err("no classes");
    assert_eq!(missing.remedies(), [Remedy::Give("depth"), Remedy::GiveAll(vec!["classes"])]);
    let sized = sized.classes(data.classes());
    assert_eq!(
        sized.plan().expect("a plan").queries,
        progap::account(asked()).on(&data).plan().expect("a plan").queries
    );
    let vain = sized.clone().edges(3).plan().expect_err("edges decide nothing").to_string();
    assert!(vain.starts_with("`edges` has no effect"), "{vain}");
    let vain = sized.on(&data).plan().expect_err("the data has sizes").to_string();
    assert!(vain.contains("those of the data set"), "{vain}");
    // The published rule for delta counts training nodes.
    let published = || Request::published().with("level", "node").with("batch_size", 30);
    assert!(progap::account(published()).train_nodes(train).plan().is_ok());
}

/// A model that stayed in memory is saved as the release that the same run leaves in a folder, byte for byte.
#[test]
fn a_saved_model_is_the_release_of_the_same_run() {
    fn files(folder: &std::path::Path) -> std::collections::BTreeMap<String, Vec<u8>> {
        let mut found = std::collections::BTreeMap::new();
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            if path.is_dir() {
                found.extend(
                    files(&path).into_iter().map(|(below, bytes)| (format!("{name}/{below}"), bytes)),
                );
            } else {
                found.insert(name, std::fs::read(path).expect("bytes"));
            }
        }
        found
    }
    let data = network();
    for &method in MethodKind::ALL {
        for &level in Level::ALL {
            let mut settings = Settings { epochs: 2, seed: Some(4), ..Settings::of(method, level) };
            settings.batch_size = settings.batch_size.min(100);
            if settings.checked().is_err() {
                continue;
            }
            let place = tempfile::tempdir().expect("a folder");
            let (direct, saved) = (place.path().join("direct"), place.path().join("saved"));
            progap::train(&data, &settings).into_folder(&direct).expect("trained");
            let trained = progap::train(&data, &settings).in_memory().expect("trained");
            let release = trained.save(&saved).expect("saved");
            assert_eq!(release.predict().expect("predictions"), trained.predict().expect("predictions"));
            let mut expected = files(&direct);
            expected.remove("private/cost.json").expect("the time that training took");
            assert_eq!(files(&saved), expected, "{method} {level}");
            let findings = release.verify().expect("verified");
            assert!(findings.iter().all(|finding| finding.ok), "{method} {level}");
            let fields: Vec<&String> = findings.iter().flat_map(|finding| &finding.fields).collect();
            let distinct: BTreeSet<&String> = fields.iter().copied().collect();
            assert_eq!(fields.len(), distinct.len(), "{method} {level}: {fields:?}");
            let again = trained.save(&saved).expect_err("not empty").to_string();
            assert!(again.contains("not empty"), "{again}");
            assert_eq!(
                std::fs::read_dir(place.path()).expect("a folder").count(),
                2,
                "nothing is left beside it"
            );
        }
    }
}
