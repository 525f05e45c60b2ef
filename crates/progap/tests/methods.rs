//! Every method on the same training loop: trained, stopped, resumed, verified, asked.

mod common;

use common::*;
use progap::method::catalogue::methods;
use progap::plan::{Plan, PublicFacts};
use progap::settings::{Accounting, MethodKind, Size};
use progap::{Level, Settings};
use progap_graph::Ratios;
use progap_graph::synth::SocialNetwork;
use progap_privacy::Event;
use progap_privacy::accountant::{Accountant, RdpAccountant};

fn settings(method: MethodKind, level: Level) -> Settings {
    let usual = Settings::of(method, level);
    let epochs = if level == Level::Node { 3 } else { 20 };
    Settings { epochs, batch_size: 100, seed: Some(7), ..usual }
}

#[test]
fn sage_learns_from_the_graph_and_predicts_without_it() {
    let (_keep, folder) = folder();
    let release = train(&settings(MethodKind::Sage, Level::None), &folder).expect("trained");
    assert!(!release.statement.private);
    assert_verified(&folder);
    assert_predicts_as_measured(&release);
    assert_eq!(release.nodes().graph().edges(), 0);
    let mlp = train(&settings(MethodKind::Mlp, Level::None), &folder.with_extension("mlp")).expect("trained");
    let (with, without) = (release.metrics.test_accuracy, mlp.metrics.test_accuracy);
    assert!(with > without + 0.05, "the graph helps: {with} {without}");
}

/// A setting that decides nothing is no claim about training, and a fit is no epoch.
#[test]
fn settings_without_effect_are_listed_apart() {
    let (_keep, folder) = folder();
    let settings = Settings { seed: Some(7), ..Settings::of(MethodKind::ProgapViews, Level::Edge) };
    let findings = train(&settings, &folder).expect("trained").verify().expect("findings");
    let named = |what: &str| findings.iter().find(|finding| finding.what == what).expect(what).detail.clone();
    let (training, without_effect) = (named("training"), named("settings without effect"));
    for name in
        ["dropout", "activation", "jk", "layerwise", "encoder_layers", "batch_size", "clip", "bounding"]
    {
        let lists = |text: &str| text.split(", ").any(|listed| listed == name);
        assert!(!lists(&training) && lists(&without_effect), "{name}: {training}; {without_effect}");
    }
    assert!(training.contains("direction"), "{training}");
    let history = named("history");
    assert!(history.starts_with(&format!("{} fits, one in each stage", settings.depth + 1)), "{history}");
}

#[test]
fn every_depth_of_sage_is_kept_and_resumed() {
    for depth in [1, 3] {
        let settings = Settings { depth, epochs: 4, ..settings(MethodKind::Sage, Level::None) };
        stopped_and_resumed_ends_the_same(&settings, &[1, 3]);
    }
}

#[test]
fn what_a_method_does_not_have_is_refused_by_name() {
    let refused = |settings: Settings| {
        let (_keep, folder) = folder();
        let error = train(&settings, &folder).expect_err("refused");
        assert!(!folder.exists(), "{error}: something was written");
        error.to_string()
    };
    let sage = settings(MethodKind::Sage, Level::None);
    let message = refused(settings(MethodKind::Sage, Level::Edge));
    assert!(
        message.contains("sage has no level edge")
            && message.contains("progap, progap-labels, progap-views, gap, mlp"),
        "{message}"
    );
    assert!(refused(Settings { depth: 6, ..sage.clone() }).contains("1 to 5"));
    assert!(refused(Settings { depth: 0, ..sage }).contains("1 to 5"));
    let message = refused(settings(MethodKind::EdgeRand, Level::Node));
    assert!(message.contains("progap, progap-labels, progap-views, gap, mlp, dp-gnn"), "{message}");
    refused(Settings { delta: Some(1e-5), ..settings(MethodKind::EdgeRand, Level::Edge) });
    let node = settings(MethodKind::DpGnn, Level::Node);
    refused(Settings { depth: 2, ..node.clone() });
    assert!(
        refused(Settings { bounding: progap::settings::Bounding::Weight, ..node.clone() })
            .contains("`bounding`")
    );
    refused(Settings { batch_size: 100_000, ..node });
}

fn accuracy(settings: &Settings) -> f64 {
    let (_keep, folder) = folder();
    train(settings, &folder).expect("trained").metrics.test_accuracy
}

/// Without noise a private method is about as good as its twin without privacy, and with nothing but noise no better
/// than a model that knows the features alone.
#[test]
fn private_methods_lie_between_features_only_and_their_twins() {
    // Trained to the end, so that it is the best that features can give.
    let features_only = accuracy(&Settings { epochs: 100, ..settings(MethodKind::Mlp, Level::None) });
    for entry in methods() {
        let twin = match entry.method {
            MethodKind::EdgeRand | MethodKind::DpGnn => MethodKind::Sage,
            method => method,
        };
        let depth = settings(entry.method, entry.levels[0]).depth;
        let open = accuracy(&Settings { depth, ..settings(twin, Level::None) });
        for &level in entry.levels.iter().filter(|level| **level != Level::None) {
            let usual = Settings { accounting: Accounting::Rdp, ..settings(entry.method, level) };
            let quiet = Settings { epsilon: Some(1000.0), ..usual.clone() };
            let loud = Settings { epsilon: Some(if level == Level::Node { 0.05 } else { 0.01 }), ..usual };
            let quiet = accuracy(&match (entry.method, level) {
                // A record touches many terms, so that noise remains even now: larger batches drown it.
                (MethodKind::DpGnn, _) => Settings { epochs: 15, batch_size: 500, ..quiet },
                (_, Level::Node) => Settings { epochs: 10, ..quiet },
                _ => quiet,
            });
            let loud = accuracy(&loud);
            let what = format!(
                "{} at {level}: {loud:.3} to {quiet:.3}, without privacy {open:.3}, features alone {features_only:.3}",
                entry.method
            );
            println!("{what}");
            // A table of class sums is a simpler model of the features than a fit, noise or none.
            let by_a_table = settings(entry.method, level).weighs_receivers();
            let worse = if by_a_table { 0.12 } else { 0.08 };
            assert!(quiet > open - worse, "no noise, no loss: {what}");
            assert!(loud < features_only + 0.06, "all noise, no gain: {what}");
            // Where rows are public, noise on the graph leaves the features as they are; but lpgnet reads them through
            // logits alone, beside counts that are all noise here.
            let drowned = level == Level::Node || entry.method == MethodKind::Lpgnet;
            assert!(drowned || loud > features_only - 0.12, "features remain: {what}");
        }
    }
}

/// Whatever is asked more often or of more records needs at least as much noise for the same epsilon, and the same
/// noise twice costs at least as much as once.
#[test]
fn asking_more_never_costs_less() {
    let sizes = PublicFacts::stated([(Size::Edges, 100_000), (Size::TrainNodes, 2_000)]);
    for entry in methods() {
        for &level in entry.levels.iter().filter(|level| **level != Level::None) {
            let usual = Settings { accounting: Accounting::Rdp, ..settings(entry.method, level) };
            let noise = |settings: &Settings| {
                let plan = Plan::new(&settings.checked().expect("settings"), sizes).expect("a plan");
                assert!(plan.epsilon <= settings.epsilon.expect("private") * (1.0 + 1e-12));
                let response = plan.response.map_or(0.0, |response| 1.0 / response.epsilon);
                (plan.event, plan.multiplier + plan.gradient_multiplier + response)
            };
            let (event, base) = noise(&usual);
            let deeper = Settings { depth: usual.depth + 1, ..usual.clone() };
            let deeper = if deeper.checked().is_ok() { deeper } else { usual.clone() };
            let longer = Settings { epochs: usual.epochs + 5, ..usual.clone() };
            let broader = Settings { batch_size: 2 * usual.batch_size, ..usual.clone() };
            let wider = Settings { max_degree: 2 * usual.max_degree, ..usual.clone() };
            for more in [deeper, longer, broader, wider] {
                let (_, noise) = noise(&more);
                assert!(noise >= base * (1.0 - 1e-5), "{more:?}: {noise} after {base}");
            }
            if !matches!(&event, Event::Composed { events } if events.is_empty()) {
                let rdp = RdpAccountant::new();
                let once = rdp.epsilon(&event, 1e-6).expect("a cost").value;
                let twice = Event::composed(vec![event.clone(), event]).expect("an event");
                assert!(rdp.epsilon(&twice, 1e-6).expect("a cost").value > once, "{}", entry.method);
            }
        }
    }
}

#[test]
fn edge_rand_protects_edges_and_undirected_edges_with_a_delta_of_zero() {
    for undirected in [false, true] {
        let (_keep, folder) = folder();
        let settings = Settings { undirected, seed: None, ..settings(MethodKind::EdgeRand, Level::Edge) };
        let release = train(&settings, &folder).expect("trained");
        let statement = &release.statement;
        assert!(statement.private && statement.delta == Some(0.0));
        assert!(statement.epsilon.is_some_and(|epsilon| epsilon <= 1.0 && epsilon > 0.999), "{statement:?}");
        assert_eq!(statement.mechanisms.len(), 2);
        assert_verified(&folder);
        assert_predicts_as_measured(&release);
    }
    stopped_and_resumed_ends_the_same(
        &Settings { epochs: 4, ..settings(MethodKind::EdgeRand, Level::Edge) },
        &[1, 3],
    );
}

#[test]
fn lpgnet_protects_edges_and_undirected_edges_with_a_delta_of_zero() {
    for undirected in [false, true] {
        let (_keep, folder) = folder();
        let settings = Settings { undirected, seed: None, ..settings(MethodKind::Lpgnet, Level::Edge) };
        let release = train(&settings, &folder).expect("trained");
        let statement = &release.statement;
        assert!(statement.private && statement.delta == Some(0.0) && statement.accountant == "pure");
        assert!(statement.epsilon.is_some_and(|epsilon| epsilon <= 1.0 && epsilon > 0.9999), "{statement:?}");
        let [votes] = &statement.mechanisms[..] else { panic!("{statement:?}") };
        assert_eq!((&votes.name[..], votes.count), ("votes", 2));
        assert_eq!(votes.sensitivity, if undirected { 2.0 } else { 1.0 });
        let (undirected, directed) = (statement.epsilon_undirected, statement.epsilon_directed);
        let ratio = undirected.zip(directed).map(|(both, one)| both / one);
        assert!(ratio.is_some_and(|ratio| (ratio - 2.0).abs() < 1e-9), "{undirected:?} {directed:?}");
        assert!(statement.in_words.contains("delta 0)"), "{}", statement.in_words);
        assert_verified(&folder);
        assert_predicts_as_measured(&release);
        assert!(survives(&folder, &|_| ()), "nothing changed");
        assert!(!survives(&folder, &|s| s["epsilon"] = 0.5.into()), "a smaller epsilon");
        let quieter =
            |s: &mut serde_json::Value| s["event"]["events"][0]["event"]["sensitivity"] = 0.5.into();
        assert!(!survives(&folder, &quieter), "a smaller sensitivity");
        assert!(!survives(&folder, &|s| s["mechanisms"][0]["name"] = "aggregation".into()), "another name");
        assert!(!survives(&folder, &|s| s["mechanisms"][0]["what"] = "nothing".into()), "another purpose");
    }
    stopped_and_resumed_ends_the_same(
        &Settings { epochs: 4, ..settings(MethodKind::Lpgnet, Level::Edge) },
        &[1, 5, 9],
    );
}

/// The share of edges that stay and of others that appear, within 6.2 standard deviations of what the response
/// promises: each fails by chance less than once in 10^9.
#[test]
fn the_noisy_graph_has_the_rates_of_its_response() {
    use progap::vault::{NoisyGraph, Vault};
    use progap_privacy::noise::{Randomness, SparseResponse};

    for (undirected, epsilon) in [(false, 1.0), (true, 1.0), (false, 8.0), (true, 0.2)] {
        let settings =
            Settings { undirected, epsilon: Some(epsilon), ..settings(MethodKind::EdgeRand, Level::Edge) };
        let plan = Plan::new(
            &settings.checked().expect("settings"),
            PublicFacts::stated([(Size::Edges, 1), (Size::TrainNodes, 1)]),
        )
        .expect("a plan");
        let data = network();
        let graph = progap_graph::transform::deduplicate(progap_graph::transform::remove_self_loops(
            data.graph().clone(),
        ));
        assert!(graph.is_undirected());
        let mut vault = Vault::open(data, &settings, plan, Randomness::from_seed(3)).expect("a vault");
        let noisy = vault.ask(NoisyGraph { available: None }).expect("a noisy graph");
        assert_eq!(noisy.nodes(), graph.nodes());
        assert_eq!((noisy.self_loops(), noisy.repeated_edges()), (0, 0));
        assert_eq!(noisy.is_undirected(), undirected);
        let directions = if undirected { 2 } else { 1 };
        let stayed = noisy
            .iter_edges()
            .filter(|&(from, to)| graph.in_neighbours(to as usize).binary_search(&from).is_ok());
        let (stayed, ones) = (stayed.count() / directions, graph.edges() / directions);
        let appeared = noisy.edges() / directions - stayed;
        let bits = graph.nodes() * (graph.nodes() - 1) / directions;
        // The noise on the count moves the density by a share of 10 / (epsilon * ones) or so.
        let response = SparseResponse::new(0.9 * epsilon, ones as f64 / bits as f64).expect("a response");
        for (found, trials, rate) in [
            (stayed, ones, response.keep_probability()),
            (appeared, bits - ones, response.flip_probability()),
        ] {
            let mean = trials as f64 * rate;
            let noise_of_count = 25.0 * (10.0 / epsilon) / ones as f64 * mean;
            let allowed = 6.2 * (mean * (1.0 - rate)).sqrt().max(1.0) + noise_of_count;
            assert!((found as f64 - mean).abs() < allowed, "{epsilon}: {found}, not {mean} +- {allowed}");
        }
    }
}

/// 10^10 possible edges, of which a few hundred thousand are looked at; and a refusal that says how many they would be.
#[test]
fn a_large_sparse_graph_is_answered_in_proportion_to_its_edges() {
    use progap::vault::{NoisyGraph, Vault};
    use progap_privacy::noise::Randomness;

    let large = SocialNetwork::new(100_000).edges(300_000).classes(2).seed(2).generate().expect("a network");
    let large = large.or_random_split(Ratios::default(), 1).expect("a split");
    let settings = settings(MethodKind::EdgeRand, Level::Edge);
    let plan = Plan::new(
        &settings.checked().expect("settings"),
        PublicFacts::stated([(Size::Edges, 1), (Size::TrainNodes, 1)]),
    )
    .expect("a plan");
    let edges = large.graph().edges() as f64;
    let ask = |available: u64| {
        let vault = Vault::open(large.clone(), &settings, plan.clone(), Randomness::from_seed(4));
        vault.expect("a vault").ask(NoisyGraph { available: Some(available) })
    };
    let noisy = ask(100 << 20).expect("it fits");
    assert!((noisy.edges() as f64 / edges - 1.0).abs() < 0.02, "{} {edges}", noisy.edges());
    let refused = ask(1 << 20).expect_err("too large").to_string();
    assert!(refused.contains("MB") && refused.contains("noisy graph"), "{refused}");
}

#[test]
fn dp_gnn_says_that_predictions_are_not_private() {
    let (_keep, folder) = folder();
    let settings = Settings { seed: None, max_degree: 3, ..settings(MethodKind::DpGnn, Level::Node) };
    let release = train(&settings, &folder).expect("trained");
    let statement = &release.statement;
    assert!(
        statement.private && statement.in_words.contains("predictions are not"),
        "{}",
        statement.in_words
    );
    assert!(statement.not_covered[0].contains("predictions"), "{:?}", statement.not_covered);
    assert!(statement.epsilon.is_some_and(|epsilon| epsilon <= 8.0 && epsilon > 7.0));
    assert_verified(&folder);
    assert_predicts_as_measured(&release);
    // The aggregates, which read neighbours, lie among the private files, and can be kept back.
    assert!(!folder.join("aggregates/1.npy").exists());
    std::fs::remove_file(folder.join("private/aggregates-1.npy")).expect("removed");
    assert_verified(&folder);
    let error =
        progap::Release::open(&folder).expect("opened").predict_nodes(&[0]).expect_err("no neighbours");
    assert!(error.to_string().contains("private/aggregates-1.npy"), "{error}");
    stopped_and_resumed_ends_the_same(&Settings { seed: Some(7), ..settings }, &[1, 2]);
}

/// Checksums repaired, and the list of queries changed along with the event: what was asked must still follow from the
/// settings.
#[test]
fn forged_statements_of_the_baselines_are_found() {
    let (_keep, responded) = folder();
    train(&Settings { epochs: 2, ..settings(MethodKind::EdgeRand, Level::Edge) }, &responded)
        .expect("trained");
    assert!(survives(&responded, &|_| ()), "nothing changed");
    let quieter =
        |s: &mut serde_json::Value| s["event"]["events"][1]["event"]["false_positive"] = 0.45.into();
    assert!(!survives(&responded, &quieter), "another response");
    assert!(!survives(&responded, &|s| s["epsilon"] = 0.5.into()), "a smaller epsilon");
    assert!(!survives(&responded, &|s| s["delta"] = 1e-5.into()), "another delta");
    let fewer = |s: &mut serde_json::Value| {
        for list in ["/event/events", "/mechanisms"] {
            s.pointer_mut(list).and_then(|list| list.as_array_mut()).expect("a list").remove(0);
        }
    };
    assert!(!survives(&responded, &fewer), "no count");

    let (_keep, subgraphs) = folder();
    train(&Settings { epochs: 1, ..settings(MethodKind::DpGnn, Level::Node) }, &subgraphs).expect("trained");
    assert!(survives(&subgraphs, &|_| ()), "nothing changed");
    let terms = |s: &mut serde_json::Value| {
        s["event"]["events"][0]["event"]["max_terms"] = 1.into();
        let what = s["mechanisms"][0]["what"].as_str().expect("a text").replace("up to 11", "up to 1");
        s["mechanisms"][0]["what"] = what.into();
    };
    assert!(!survives(&subgraphs, &terms), "fewer touched terms");
    let halved = |s: &mut serde_json::Value| {
        let count = s["event"]["events"][0]["count"].as_u64().expect("a number") / 2;
        s["event"]["events"][0]["count"] = count.into();
        s["mechanisms"][0]["count"] = count.into();
    };
    assert!(!survives(&subgraphs, &halved), "fewer steps");
    assert!(!survives(&subgraphs, &|s| s["epsilon"] = 4.0.into()), "a smaller epsilon");
}
