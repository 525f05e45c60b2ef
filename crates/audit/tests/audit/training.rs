//! Audits of whole training runs, and attacks on releases.

use super::*;

/// A small network in which training is quick.
pub(super) fn quick(level: Level) -> Settings {
    Settings {
        epochs: 3,
        batch_size: 100,
        seed: Some(11),
        ..Settings::of(progap::MethodKind::ProgapLabels, level)
    }
}

pub(super) fn audit_training(settings: &Settings, canaries: usize) -> Vec<Trial> {
    let dataset = network();
    let auditor = Auditor { dataset: &dataset, settings, canaries: Some(canaries) };
    auditor.training(&mut ()).expect("audited")
}

/// A whole training run at each level and with each method. An accusation has probability at most 0.001 each.
#[test]
fn honest_training_passes() {
    for entry in methods() {
        for &level in entry.levels.iter().filter(|&&level| level != Level::None) {
            if entry.method == MethodKind::DpGnn {
                let (dataset, settings) = (network(), Settings::of(entry.method, level));
                let auditor = Auditor { dataset: &dataset, settings: &settings, canaries: Some(1000) };
                assert!(auditor.training(&mut ()).is_err_and(|e| e.to_string().contains("not protected")));
                continue;
            }
            let settings = Settings { method: entry.method, ..Settings::of(entry.method, level) };
            let settings = Settings { epochs: 3, batch_size: 100, seed: Some(11), ..settings };
            let findings = evaluate(&audit_training(&settings, 1000), CONFIDENCE).expect("findings");
            assert!(!refuted(&findings), "{settings:?} {findings:#?}");
        }
    }
}

/// Little noise, much claimed: a training run that says epsilon 1 and spends 60 is found out, undirected edges and
/// records too. Without noise nothing is claimed and everything is seen.
#[test]
fn false_claims_about_training_are_found() {
    let node = Settings { max_degree: 9, ..quick(Level::Node) };
    for settings in [
        quick(Level::Edge),
        Settings { undirected: true, ..quick(Level::Edge) },
        node.clone(),
        Settings { bounding: Bounding::Sample, ..node },
    ] {
        let spent = Settings { epsilon: Some(60.0), delta: Some(1e-6), ..settings };
        let mut trial = audit_training(&spent, 1000).swap_remove(0);
        trial.claim = Claim { epsilon: Some(1.0), mu: None, ..trial.claim };
        let findings = evaluate(&[trial], CONFIDENCE).expect("findings");
        assert!(refuted(&findings), "{spent:?} {findings:#?}");
    }
    let findings = evaluate(&audit_training(&quick(Level::None), 1000), CONFIDENCE).expect("findings");
    assert!(findings.iter().all(|finding| finding.measured > 2.0 && !finding.refuted), "{findings:#?}");
}

/// Where neighbours tell nothing, two views release the features alone; the aggregates of later stages lie in the
/// release all the same, and are looked at. Without noise every canary is seen in them.
#[test]
fn aggregates_after_the_released_stage_are_attacked_too() {
    let network = network();
    // Receivers that have nothing to do with their senders.
    let random = |at: u32| (at.wrapping_mul(2_654_435_761) >> 16) % 1000;
    let edges = (0..20_000).map(|at| (at % 1000, random(at))).filter(|(a, b)| a != b);
    let (sources, targets): (Vec<u32>, Vec<u32>) = edges.unzip();
    let graph = Graph::from_edges(network.nodes(), &sources, &targets).expect("a graph");
    let parts = progap_graph::DatasetParts { graph, ..network.into_parts() };
    let dataset = Dataset::new(parts).expect("a data set");
    let settings =
        Settings { depth: 2, seed: Some(11), ..Settings::of(MethodKind::ProgapViews, Level::None) };
    let auditor = Auditor { dataset: &dataset, settings: &settings, canaries: Some(1000) };
    let release = auditor.train(&mut ()).expect("trained");
    assert_eq!(release.statement.choice.as_ref().map(|choice| choice.stage), Some(0));
    let findings = evaluate(&auditor.training(&mut ()).expect("audited"), CONFIDENCE).expect("findings");
    assert!(findings.iter().all(|finding| finding.measured > 2.0), "{findings:#?}");
    let (links, _) = auditor.attacks(&release).expect("attacked");
    assert!(links.iter().any(|attack| attack.name == "aggregates"));
}

/// The joint-privacy lemma (crates/privacy/proofs/joint-dp.md) on a real release: whether a record is there, with its
/// features, label and receivers, is not seen by all others within epsilon, though they see the model, the aggregates
/// and every prediction but its own. Predictions that read the rows of a node's senders break it, and are found out. An
/// accusation of the honest release has probability at most 0.001.
#[test]
fn what_all_others_see_of_a_record_stays_within_epsilon() {
    let settings = Settings { epsilon: Some(1.0), max_degree: 9, ..quick(Level::Node) };
    let dataset = network();
    let auditor = Auditor { dataset: &dataset, settings: &settings, canaries: Some(2000) };
    let view = |trials: Vec<Trial>| {
        let others: Vec<Trial> =
            trials.into_iter().filter(|trial| trial.what.contains("others see")).collect();
        assert_eq!(others.len(), 1);
        evaluate(&others, CONFIDENCE).expect("findings")
    };
    let honest = view(auditor.training(&mut ()).expect("audited"));
    assert!(!refuted(&honest), "{honest:#?}");
    // Canaries are numbered in twos, the record before its receiver: these predictions are the mean of both.
    let smoothed = |release: &Release, nodes: &[u32]| {
        let senders: Vec<u32> = nodes.iter().map(|node| node - 1).collect();
        let (own, sent) = (release.predict_nodes(nodes)?, release.predict_nodes(&senders)?);
        Ok(own.probabilities.iter().zip(&sent.probabilities).map(|(a, b)| 0.5 * (a + b)).collect())
    };
    let broken = view(auditor.training_by(&smoothed, &mut ()).expect("audited"));
    assert!(refuted(&broken), "{broken:#?}");
}

/// Attacks find what is there to be found: with hardly any noise and few senders in a row an edge is seen, with much
/// noise it is not. The areas are means over thousands of pairs; 0.03 is more than five standard errors.
#[test]
fn attacks_see_edges_without_noise_and_none_in_noise() {
    let sparse = SocialNetwork::new(3000).edges(9000).classes(3).seed(2).generate().expect("a network");
    let dataset = sparse.or_random_split(Ratios::default(), 1).expect("a split");
    let areas = |settings: &Settings| {
        let auditor = Auditor { dataset: &dataset, settings, canaries: None };
        let release = auditor.train(&mut ()).expect("trained");
        let (links, members) = auditor.attacks(&release).expect("attacked");
        let names: Vec<_> = links.iter().map(|attack| attack.name).collect();
        assert_eq!(names, ["features", "posteriors", "aggregates", "influence"]);
        assert!((0.3..0.8).contains(&members.roc.auc()));
        let influence = links[3].outcome().expect("figures");
        assert!(influence.auc_interval[0] < influence.auc && influence.auc < influence.auc_interval[1]);
        (influence.auc, influence.found_at_one_percent)
    };
    let messages = Messages::Embeddings;
    let open = areas(&Settings { epochs: 30, layerwise: true, messages, ..quick(Level::None) });
    let noisy = areas(&Settings { epsilon: Some(0.05), epochs: 30, messages, ..quick(Level::Edge) });
    assert!(open.0 > 0.7 && open.1 > noisy.1, "{open:?} {noisy:?}");
    assert!((noisy.0 - 0.5).abs() < 0.03 && noisy.1 < 0.03, "{noisy:?}");
}

/// A release of other data is refused.
#[test]
fn releases_of_other_data_are_refused() {
    let (mine, settings) = (network(), quick(Level::Edge));
    let release =
        Auditor { dataset: &mine, settings: &settings, canaries: None }.train(&mut ()).expect("trained");
    let other = mine.clone().with_random_split(Ratios::default(), 2).expect("a split");
    let auditor = Auditor { dataset: &other, settings: &settings, canaries: None };
    assert!(auditor.attacks(&release).is_err_and(|e| e.to_string().contains("other data")));
}
