//! LPGNet (Kolluri et al. 2022), as the authors of ProGAP ran it: a perceptron on the features; then, stage by stage,
//! every node votes for the class that the stage before predicts of it, the votes of its neighbours are counted with
//! Laplace noise, and a new perceptron is trained on the logits and counts of all stages before. Features are read by
//! the first stage alone.

use progap_graph::store;
use progap_nn::logits;

use super::objective::RowObjective;
use super::trainer::Trainer;
use super::{
    Capabilities, Choice, Defaults, Fitted, Method, MethodKind, MethodSpec, Program, QuerySpec, Stage,
    architecture,
};
use crate::Result;
use crate::model::Shape;
use crate::plan::PublicFacts;
use crate::predictor::{Reads, side_by_side};
use crate::release::Release;
use crate::rows::{Rows, blocks};
use crate::settings::{Level, Settings, within};
use crate::vault::{Aggregate, Aggregates};

/// The method.
pub(super) struct LpgNet;

const SPEC: MethodSpec = MethodSpec {
    levels: &[Level::None, Level::Edge],
    what: "perceptrons on noisy counts of the classes that neighbours are predicted to have",
    protects: "training and predictions: edges from everyone, with a delta of zero",
    paper: "Kolluri et al. 2022, LPGNet",
    can: Capabilities { is_pure: true, ..Capabilities::PLAIN },
    ..MethodSpec::plain(MethodKind::Lpgnet)
};

impl Method for LpgNet {
    fn spec(&self) -> &'static MethodSpec {
        &SPEC
    }

    fn defaults(&self, level: Level) -> Defaults {
        Defaults::published(Settings { method: MethodKind::Lpgnet, ..Settings::plain(level) })
    }

    fn check(&self, settings: &Settings) -> Result<()> {
        within("depth", settings.depth as f64, 1.0, 50.0)
    }

    /// Perceptrons with one hidden layer and a plain last one: on the features, then on logits and counts of all stages
    /// before.
    fn program(&self, settings: &Settings, sizes: PublicFacts, _: Option<&Choice>) -> Program {
        let stage = |at: usize| {
            let width = if at == 0 { sizes.columns } else { 2 * at * sizes.classes };
            let network = Shape::Network(architecture(settings, vec![width], sizes.classes));
            let votes = (at > 0).then(|| QuerySpec::votes(settings, sizes.classes));
            Stage::by_epochs(settings, network).after(votes)
        };
        Program::new(settings, (0..=settings.depth).map(stage))
    }

    fn fit(&self, mut trainer: Trainer<'_>) -> Result<Fitted> {
        let (depth, classes) = (trainer.settings.depth, trainer.shape.1);
        let (none, mut counts) = (Aggregates::new(), Aggregates::new());
        let mut known: Vec<Aggregate> = vec![];
        for stage in 0..=depth {
            if let Some(before) = known.last() {
                trainer.votes(&mut counts, &most_likely(&before.values, classes))?;
                let parts: Vec<&Aggregate> = known.iter().zip(&counts).flat_map(<[_; 2]>::from).collect();
                let width = 2 * stage * classes;
                let mut joined = trainer.scratch(width)?;
                for nodes in blocks(trainer.vault.nodes()) {
                    store::release_pages_if_full();
                    joined.add(&side_by_side(&parts, nodes).0)?;
                }
                trainer.vault.replace_public_rows(width, joined.finish()?)?;
            }
            trainer.train_new(stage, &mut RowObjective::new(&trainer.vault, &none))?;
            let inputs = trainer.vault.need_public_rows()?.own()?;
            let mut said = trainer.scratch(classes)?;
            for nodes in blocks(trainer.vault.nodes()) {
                store::release_pages_if_full();
                let nodes: Vec<u32> = nodes.map(|node| node as u32).collect();
                said.add(&logits(trainer.model(stage)?.network()?, &inputs, &nodes)?)?;
            }
            known.push(Aggregate { values: said.finish()?, width: classes });
        }
        let accuracies = trainer.evaluate(&RowObjective::new(&trainer.vault, &none))?;
        let before =
            |stage: usize| (0..stage).flat_map(|s| [Reads::Logits(s), Reads::Aggregate(s)]).collect();
        let reads = |stage: usize| vec![if stage == 0 { vec![Reads::Rows] } else { before(stage) }];
        Fitted::new(trainer, (0..=depth).map(|stage| (stage, reads(stage))).collect(), counts, accuracies)
    }

    fn sent(&self, release: &Release, rows: &Rows, index: usize) -> Result<Option<Vec<f32>>> {
        let classes = release.nodes().classes();
        let votes = most_likely(&release.predictor().logits(index, rows)?, classes);
        let mut ballots = vec![0.0; votes.len() * classes];
        votes.iter().enumerate().for_each(|(node, &class)| ballots[node * classes + class as usize] = 1.0);
        Ok(Some(ballots))
    }
}

/// The class with the largest logit in each row, the first of equals.
fn most_likely(logits: &[f32], classes: usize) -> Vec<u32> {
    let largest = |row: &[f32]| {
        let better = |best: usize, class: usize| if row[class] > row[best] { class } else { best };
        (1..row.len()).fold(0, better) as u32
    };
    let mut all = Vec::with_capacity(logits.len() / classes);
    for rows in logits.chunks((1 << 16) * classes) {
        store::note_read(size_of_val(rows));
        all.extend(rows.chunks_exact(classes).map(largest));
    }
    all
}
