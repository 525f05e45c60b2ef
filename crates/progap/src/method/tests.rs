//! The example of a method through the whole product, and fits that leave their program.

use progap_graph::synth::SocialNetwork;
use progap_graph::{Dataset, Ratios};
use progap_privacy::noise::Randomness;

use super::checkpoint::State;
use super::objective::RowObjective;
use super::trainer::{RunSpec, Trainer};
use super::{MethodKind, program};
use crate::Result;
use crate::plan::Plan;
use crate::run::{self, InMemoryRun};
use crate::settings::{Level, Settings};
use crate::vault::{Aggregate, Aggregates, Message, Vault};

fn data() -> Dataset {
    let network = SocialNetwork::new(600).edges(12_000).classes(3).seed(4).generate().expect("a network");
    network.or_random_split(Ratios::default(), 1).expect("a split")
}

fn settings(level: Level) -> Settings {
    Settings { seed: Some(3), ..Settings::of(MethodKind::NeighbourLabels, level) }
}

#[test]
fn the_example_is_trained_released_and_verified_as_any_method() {
    let folder = tempfile::tempdir().expect("a folder");
    let accuracy = |settings: &Settings, name: &str| {
        let release =
            crate::train(&data(), settings).into_folder(folder.path().join(name)).expect("a release");
        let findings = release.verify().expect("findings");
        assert!(findings.iter().all(|finding| finding.ok), "{findings:?}");
        assert_eq!(release.predict().expect("predictions").classes.len(), 600);
        release.metrics.test_accuracy
    };
    let open = accuracy(&settings(Level::None), "open");
    let alone = accuracy(&Settings { seed: Some(3), ..Settings::of(MethodKind::Mlp, Level::None) }, "alone");
    assert!(open > alone + 0.05, "labels of neighbours tell: {open}, features alone {alone}");
    let noise = |epsilon: f64| Settings { epsilon: Some(epsilon), ..settings(Level::Edge) };
    assert!(accuracy(&noise(100.0), "quiet") > alone + 0.05);
    let drowned = accuracy(&noise(0.01), "loud");
    assert!(drowned < open - 0.05, "all noise, no gain: {drowned}");
}

/// What a fit does with a trainer, and how many queries left the vault before it was refused.
fn refused(fit: impl FnOnce(&mut Trainer<'_>) -> Result<()>) -> u64 {
    let (dataset, settings) = (data(), settings(Level::Edge));
    let plan: Plan = run::prepare(&dataset, &settings.checked().expect("settings")).expect("a plan");
    let vault = Vault::open(dataset, &settings, plan.clone(), Randomness::from_seed(3)).expect("a vault");
    let spec = RunSpec { settings: &settings, plan: &plan, seed: 3 };
    let (mut store, mut watch) = (InMemoryRun::alone(), ());
    let mut trainer = Trainer::new(vault, spec, State::default(), &mut store, &mut watch).expect("a trainer");
    let error = fit(&mut trainer).expect_err("refused").to_string();
    assert!(error.contains("something else than its program says"), "{error}");
    trainer.vault.asked().iter().map(|(_, count)| count).sum()
}

fn ask(trainer: &mut Trainer<'_>, width: usize) -> Result<()> {
    let before: Aggregates =
        vec![Aggregate { values: vec![0.5; trainer.vault.nodes() * width].into(), width }];
    trainer.aggregate(&mut before.clone(), Message::Input(1), |_, _| ())
}

/// The program of the example says: one sum of a number for each of three classes, then one model.
#[test]
fn a_fit_that_leaves_its_program_is_refused_before_noise_is_drawn() {
    assert_eq!(refused(|trainer| ask(trainer, 4)), 0, "a wider message");
    assert_eq!(refused(|trainer| trainer.votes(&mut vec![], &vec![0; 600])), 0, "another mechanism");
    assert_eq!(refused(|trainer| trainer.noisy_graph(None).map(|_| ())), 0, "a graph");
    let twice = |trainer: &mut Trainer<'_>| ask(trainer, 3).and_then(|()| ask(trainer, 3));
    assert_eq!(refused(twice), 1, "one sum more than it says");
    let early = |trainer: &mut Trainer<'_>| {
        let none = vec![];
        let mut objective = RowObjective::new(&trainer.vault, &none);
        trainer.train_new(0, &mut objective)
    };
    assert_eq!(refused(early), 0, "a model before what it reads");
}

/// What is still to be chosen decides neither the queries nor how much noise they get.
#[test]
fn whatever_is_chosen_the_same_queries_are_asked() {
    use super::Choice;
    use crate::settings::Messages;
    for method in [MethodKind::ProgapLabels, MethodKind::ProgapViews] {
        let settings = Settings { depth: 3, ..Settings::of(method, Level::Edge) };
        let queries = |choice: Option<&Choice>| {
            let program = program(&settings, (40, 4), choice);
            program
                .queries()
                .map(|(stage, query)| (stage, query.kind, query.sensitivity, query.width))
                .collect::<Vec<_>>()
        };
        let open = queries(None);
        for later in [Messages::Labels, Messages::Embeddings] {
            let messages = vec![Messages::Labels, later, later];
            let chosen = queries(Some(&Choice { messages, stage: 1 }));
            assert_eq!(open.len(), chosen.len());
            for (open, chosen) in open.iter().zip(&chosen) {
                assert_eq!((open.0, open.1, open.2), (chosen.0, chosen.1, chosen.2), "{method}");
                assert!(open.3 >= chosen.3, "{method}: wider than what is paid for");
            }
        }
    }
}
