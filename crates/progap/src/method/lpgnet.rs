//! LPGNet (Kolluri et al. 2022), as the authors of ProGAP ran it: a perceptron on the features; then, stage by stage, every node votes
//! for the class that the stage before predicts of it, the votes of its neighbours are counted with Laplace noise, and a new
//! perceptron is trained on the logits and counts of all stages before. Features are read by the first stage alone.

use progap_graph::store;
use progap_nn::logits;
use progap_privacy::noise::Scale;
use progap_privacy::{Event, Unit};

use super::catalogue::Entry;
use super::objective::RowObjective;
use super::trainer::Trainer;
use super::{AuditTarget, Choice, Fitted, Method, Recipe, architecture};
use crate::audit::evidence::Trial;
use crate::audit::votes as attack;
use crate::model::Shape;
use crate::plan::{Calibrator, NO_EPSILON, Plan, PublicSizes};
use crate::predictor::{Reads, side_by_side};
use crate::query::{Queries, Query};
use crate::release::Release;
use crate::rows::{Rows, blocks};
use crate::settings::{Level, Settings, within};
use crate::vault::{Aggregate, Aggregates, vote_count, vote_sensitivity};
use crate::{Error, Result};

/// The method.
pub(super) struct LpgNet;

pub(crate) const ENTRY: Entry = Entry {
    method: Method::Lpgnet,
    levels: &[Level::None, Level::Edge],
    what: "perceptrons on noisy counts of the classes that neighbours are predicted to have",
    protects: "training and predictions: edges from everyone, with a delta of zero",
    paper: "Kolluri et al. 2022, LPGNet",
};

impl Recipe for LpgNet {
    fn summed(&self, _: &Settings) -> &'static str {
        "counts of neighbours' predicted classes"
    }

    fn defaults(&self, level: Level) -> Settings {
        Settings { method: Method::Lpgnet, ..Settings::plain(level) }
    }

    fn check(&self, settings: &Settings) -> Result<()> {
        within("depth", settings.depth as f64, 1.0, 50.0)
    }

    fn stages(&self, settings: &Settings) -> usize {
        settings.depth + 1
    }

    fn aggregations(&self, settings: &Settings) -> usize {
        settings.depth
    }

    fn is_pure(&self) -> bool {
        true
    }

    fn queries(&self, settings: &Settings, _: PublicSizes) -> Result<Queries> {
        counts(settings, vote_sensitivity(settings))
    }

    /// The smallest scale on the grid of [`Scale`] with which all counts together cost at most epsilon.
    fn plan(&self, _: &Calibrator<'_>, settings: &Settings, _: PublicSizes) -> Result<Plan> {
        let (epsilon, sensitivity) = (settings.epsilon.ok_or(NO_EPSILON)?, vote_sensitivity(settings));
        let mut scale = Scale::at_least(settings.depth as f64 * sensitivity / epsilon)?;
        let costs = |scale: Scale| Ok::<_, Error>(counts(settings, scale.value())?.event()?.pure_epsilon());
        // Costs are rounded up.
        while costs(scale)?.is_none_or(|cost| cost > epsilon) {
            scale = scale.next_up()?;
        }
        let plan = Plan::pure(counts(settings, scale.value())?, settings)?;
        Ok(Plan { sensitivity, multiplier: scale.value() / sensitivity, ..plan })
    }

    /// # Proof definition
    /// A directed edge moves one count by one, a friendship one count in each of two rows, whatever the noise was chosen for.
    fn in_unit(&self, query: &Query, unit: Unit) -> Option<Event> {
        let Event::Laplace { scale, .. } = query.event else { return None };
        Some(Event::Laplace { scale, sensitivity: if unit == Unit::EdgeUndirected { 2.0 } else { 1.0 } })
    }

    /// The shape: one hidden layer and a plain last one, on the features, or on logits and counts of all stages before.
    fn shape(
        &self,
        settings: &Settings,
        (columns, classes): (usize, usize),
        stage: usize,
        _: Option<&Choice>,
    ) -> Shape {
        let width = if stage == 0 { columns } else { 2 * stage * classes };
        Shape::Network(architecture(settings, vec![width], classes))
    }

    fn aggregate_widths(
        &self,
        settings: &Settings,
        (_, classes): (usize, usize),
        _: Option<&Choice>,
    ) -> Vec<usize> {
        vec![classes; settings.depth]
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
            let shape = self.shape(trainer.settings, trainer.shape, stage, None);
            trainer.train_new(stage, shape, &mut RowObjective::new(&trainer.vault, &none))?;
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

    fn audit(&self, target: &AuditTarget<'_>) -> Result<Vec<Trial>> {
        attack::audit(target)
    }
}

/// A count of votes for each stage but the first, with noise of a scale.
fn counts(settings: &Settings, scale: f64) -> Result<Queries> {
    let count = vote_count(Event::laplace(scale, vote_sensitivity(settings))?);
    Ok(Queries::from_iter([(count, settings.depth as u64)]))
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
