//! The rule "nothing else leaves" where edges are asked for: two data sets with quite different edges are given the
//! same answers of the mechanisms, and must leave the same public bytes
//! ([proof](progap_privacy::proofs::nothing_else_leaves)).

use std::collections::BTreeMap;
use std::path::Path;

use progap_graph::synth::SocialNetwork;
use progap_graph::{Buffer, Dataset, DatasetParts, Graph, Ratios};
use progap_privacy::noise::{Randomness, Reproducible, RunKey};
use serde_json::Value;

use super::folder::{RunFile, RunFolder};
use super::pipeline::{World, fit, write_release};
use super::prepare;
use crate::cost::Stopwatch;
use crate::method;
use crate::method::checkpoint::{CheckpointStore, State};
use crate::method::trainer::RunSpec;
use crate::plan::Plan;
use crate::release::{self, Release};
use crate::settings::{Level, Messages, MethodKind, Settings};
use crate::vault::{NoisyGraph, Vault};
use crate::{Error, Result, files};

/// The answers of the mechanisms.
enum Answers {
    /// Noisy aggregates, as they were kept.
    Aggregates(Vec<Vec<f32>>),
    /// The noisy graph of edge-rand.
    Graph(Graph),
}

/// The folder of a run in which the answers lie before anything is asked.
struct Injected<'f> {
    folder: &'f mut RunFolder,
    answers: &'f Answers,
}

impl CheckpointStore for Injected<'_> {
    fn keep_aggregate(
        &mut self,
        number: usize,
        values: Vec<f32>,
        width: usize,
        key: Option<&RunKey>,
    ) -> Result<Buffer<f32>> {
        self.folder.keep_aggregate(number, values, width, key)
    }

    fn kept_aggregate(&mut self, number: usize, width: usize) -> Result<Option<Buffer<f32>>> {
        match self.answers {
            Answers::Aggregates(answers) if number <= answers.len() => {
                self.keep_aggregate(number, answers[number - 1].clone(), width, None).map(Some)
            }
            _ => self.folder.kept_aggregate(number, width),
        }
    }

    fn keep_graph(&mut self, graph: &Graph, key: Option<&RunKey>) -> Result<()> {
        self.folder.keep_graph(graph, key)
    }

    fn kept_graph(&mut self) -> Result<Option<Graph>> {
        match self.answers {
            Answers::Graph(graph) => Ok(Some(graph.clone())),
            Answers::Aggregates(_) => self.folder.kept_graph(),
        }
    }

    fn save(&mut self, state: &State, key: Option<&RunKey>) -> Result<()> {
        self.folder.save(state, key)
    }

    fn save_if_due(&mut self, state: &State, key: Option<&RunKey>, now: bool) -> Result<()> {
        self.folder.save_if_due(state, key, now)
    }

    fn interrupted(&self) -> Error {
        self.folder.interrupted()
    }
}

/// A run from beginning to end, as [`super::train`], but with these answers; and `meddle` before the release is
/// written.
fn train_given(
    dataset: &Dataset,
    settings: &Settings,
    path: &Path,
    answers: &Answers,
    meddle: impl FnOnce(&mut Vault),
) -> Result<Release> {
    let plan = prepare(dataset, &settings.checked()?)?;
    let mut folder = RunFolder::create(
        path,
        RunFile::new(&dataset.clone().into(), settings, None, Value::Null, None)?,
        None,
        None,
    )?;
    let stopwatch = Stopwatch::start(false);
    let spec = RunSpec { settings, plan: &plan, seed: folder.run.model_seed };
    let mut store = Injected { folder: &mut folder, answers };
    let at = (State::default(), &mut store as _);
    let (mut fitted, laps) = fit(World::Whole(dataset), spec, None, at, &mut ())?;
    meddle(&mut fitted.vault);
    write_release(&folder, &dataset.clone().into(), &plan, &fitted, (stopwatch, laps))?;
    Release::open(&folder.path)
}

fn randomness(settings: &Settings) -> Randomness<Reproducible> {
    Randomness::from_seed(settings.seed.expect("a seed"))
}

/// The answers of the mechanisms in a run that is over.
fn answers(dataset: &Dataset, settings: &Settings, release: &Release) -> Answers {
    if settings.method == MethodKind::EdgeRand {
        let plan: Plan = prepare(dataset, &settings.checked().expect("settings")).expect("a plan");
        let mut vault = Vault::open(dataset.clone(), settings, plan, randomness(settings)).expect("a vault");
        return Answers::Graph(vault.ask(NoisyGraph { available: None }).expect("a noisy graph"));
    }
    let sizes = (dataset.features().columns(), dataset.classes());
    let widths = method::program(settings, sizes, release.statement.choice.as_ref()).aggregate_widths();
    let read = |(index, width): (usize, usize)| {
        let file = release.folder.join(crate::predictor::aggregate_name(settings, index + 1));
        let bytes = std::fs::read(&file).expect("read").into();
        files::parse_matrix(&file, &bytes, dataset.nodes(), width).expect("an aggregate").into_vec()
    };
    Answers::Aggregates(widths.into_iter().enumerate().map(read).collect())
}

fn public(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for part in ["", "aggregates"] {
        for entry in std::fs::read_dir(folder.join(part)).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(folder).expect("inside").to_string_lossy().into_owned();
            match path.is_dir() {
                true => assert!(["private", "aggregates"].contains(&name.as_str()), "{name}"),
                false => drop(found.insert(name, std::fs::read(&path).expect("read"))),
            }
        }
    }
    found
}

fn twins() -> [Dataset; 2] {
    let network = SocialNetwork::new(500).edges(7_000).classes(3).seed(4).generate().expect("a network");
    let one = network.or_random_split(Ratios::default(), 1).expect("a split");
    let nodes = one.nodes() as u32;
    let (sources, targets): (Vec<u32>, Vec<u32>) =
        (0..40).map(|n| (n * 11 % nodes, (n * 7 + 3) % nodes)).unzip();
    let graph = Graph::from_edges(one.nodes(), &sources, &targets).expect("a graph");
    let other = Dataset::new(DatasetParts { graph, ..one.clone().into_parts() }).expect("a data set");
    [one, other]
}

fn edge(method: MethodKind) -> Settings {
    let delta = method.has_delta().then_some(1e-5);
    Settings { epochs: 4, seed: Some(7), delta, ..Settings::of(method, Level::Edge) }
}

#[test]
fn given_the_same_answers_no_public_byte_tells_the_edges() {
    let twins = twins();
    let messages = |messages| Settings { messages, ..edge(MethodKind::ProgapLabels) };
    let all = [
        ("progap-labels", edge(MethodKind::ProgapLabels)),
        ("progap with labels", messages(Messages::Labels)),
        ("progap", edge(MethodKind::Progap)),
        ("progap, undirected edges", Settings { undirected: true, ..edge(MethodKind::ProgapLabels) }),
        ("progap-views", edge(MethodKind::ProgapViews)),
        ("views, undirected edges", Settings { undirected: true, ..edge(MethodKind::ProgapViews) }),
        ("views with structure", Settings { messages: Messages::Structure, ..edge(MethodKind::ProgapViews) }),
        ("views with features", Settings { messages: Messages::Features, ..edge(MethodKind::ProgapViews) }),
        ("gap", edge(MethodKind::Gap)),
        ("edge-rand", edge(MethodKind::EdgeRand)),
        ("lpgnet", edge(MethodKind::Lpgnet)),
        ("lpgnet, undirected edges", Settings { undirected: true, ..edge(MethodKind::Lpgnet) }),
        ("edge-rand, undirected edges", Settings { undirected: true, ..edge(MethodKind::EdgeRand) }),
    ];
    for (what, settings) in all {
        let keep = tempfile::tempdir().expect("a folder");
        let at = |name: &str| keep.path().join(name);
        let train = |data: &Dataset, name: &str| {
            crate::train(data, &settings).into_folder(at(name)).expect("trained")
        };
        let one = train(&twins[0], "one");
        let given = answers(&twins[0], &settings, &one);
        for (data, name) in [(&twins[0], "same"), (&twins[1], "other")] {
            train_given(data, &settings, &at(name), &given, |_| ()).unwrap_or_else(|e| panic!("{what}: {e}"));
            let (expected, found) = (public(&at("one")), public(&at(name)));
            let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(&expected), names(&found), "{what}: names of files tell the edges");
            for (file, bytes) in &expected {
                assert!(*bytes == found[file], "{what}: {file} tells the edges");
            }
            assert_eq!(
                release::verify(&at(name)).expect("verified"),
                release::verify(&at("one")).expect("verified")
            );
        }
        // Left to themselves the mechanisms do see the edges.
        train(&twins[1], "asked");
        assert_ne!(
            public(&at("asked"))["aggregates/1.npy"],
            public(&at("one"))["aggregates/1.npy"],
            "{what}"
        );
    }
}

/// The queries that were asked are compared with what would be claimed, before there is a release.
#[test]
fn a_query_more_than_was_planned_leaves_no_release() {
    let [data, _] = twins();
    for (method, level) in [
        (MethodKind::ProgapLabels, Level::Edge),
        (MethodKind::ProgapViews, Level::Edge),
        (MethodKind::EdgeRand, Level::Edge),
        (MethodKind::Lpgnet, Level::Edge),
        (MethodKind::Mlp, Level::Node),
    ] {
        let settings = Settings { epochs: 1, batch_size: 60, ..Settings { level, ..edge(method) } };
        let usual = Settings::of(method, level);
        let settings = Settings {
            epsilon: usual.epsilon,
            selection: usual.selection,
            calibration: usual.calibration,
            ..settings
        };
        let keep = tempfile::tempdir().expect("a folder");
        let nothing = Answers::Aggregates(vec![]);
        train_given(&data, &settings, &keep.path().join("right"), &nothing, |_| ()).expect("a release");
        let folder = keep.path().join("wrong");
        let error = train_given(&data, &settings, &folder, &nothing, Vault::overstate)
            .expect_err("refused")
            .to_string();
        assert!(error.contains("costs more than the statement would claim"), "{method}: {error}");
        assert!(!folder.join("manifest.json").exists() && Release::open(&folder).is_err());
    }
}
