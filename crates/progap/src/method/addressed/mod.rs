//! Two views at node level (docs/addressed-sums.md): features and labels are private, so both models come from noisy
//! tables, and the budget of the sums goes to the nodes that need them.
//!
//! | file | what it does |
//! |---|---|
//! | `budget.rs` | what each query costs |
//! | `features.rs` | the features' model from one noisy table of class sums |
//! | `need.rs` | weights of receivers |
//! | `posterior.rs` | noisy rows as the mean of what they may be |
//! | `labels.rs` | the model of the sums from one noisy table of labels |

mod budget;
mod features;
mod labels;
mod need;
mod posterior;

use progap_graph::Part;
use progap_nn::{Architecture, Input};

pub(crate) use self::budget::NoiseRatios;
use self::labels::{CONSTANT, Learnt, ReleasedTable};
use super::objective::RowObjective;
use super::trainer::Trainer;
use super::{
    CLASS_PROBABILITIES, Fitted, MethodKind, Program, QueryKind, QuerySpec, Stage, Training, architecture,
    rows_and_aggregates,
};
use crate::addressed::{self, Addressed, AddressedShape, FeatureModel, Posterior, SumsModel};
use crate::model::{Model, Shape};
use crate::plan::PublicFacts;
use crate::release::Release;
use crate::rows::Rows;
use crate::settings::{Bounding, Direction, FeatureLearning, Level, Messages, Settings};
use crate::vault::{Aggregates, ClassSums, LabelTable, Message, ReceiverWeights};
use crate::{Error, Remedy, Result};

/// Of so many weights one may be a step off.
const MOST_OFF: usize = 200;
/// Training nodes whose rows the model of the sums is fitted to, as many as that; their labels are all in the table.
const MOST_FITTED: usize = 1 << 17;

pub(super) fn defaults() -> Settings {
    Settings {
        method: MethodKind::ProgapViews,
        messages: Messages::Labels,
        depth: 2,
        batch_size: 512,
        gradient_noise_ratio: 2.0,
        learning_rate: 0.02,
        ..Settings::plain(Level::Node)
    }
}

pub(super) fn check(settings: &Settings) -> Result<()> {
    if settings.messages != Messages::Labels {
        return Err(Error::contradiction(
            "labels are private at node level, so nothing can be chosen by them, and the method progap-views sends labels there",
        )
        .remedy(Remedy::set("messages", "labels"))
        .remedy(Remedy::set("method", "progap")));
    }
    if settings.direction == Direction::Both {
        return Err(Error::contradiction("at node level messages go along the edges only")
            .remedy(Remedy::set("direction", "in"))
            .remedy(Remedy::set("direction", "out")));
    }
    match settings.bounding == Bounding::Weight || !settings.weighs_receivers() {
        true => Ok(()),
        false => Err(Error::contradiction("weights of receivers divide a sender's whole influence")
            .remedy(Remedy::set("bounding", "weight"))
            .remedy(Remedy::set("method", "progap-labels"))),
    }
}

fn learns_by_gradients(settings: &Settings) -> bool {
    settings.feature_learning == FeatureLearning::Gradients
}

/// The features from their table, or by gradients; then in each stage a sum more, and a table of labels.
pub(super) fn program(settings: &Settings, sizes: PublicFacts) -> Program {
    let PublicFacts { columns, classes, .. } = sizes;
    let network = learns_by_gradients(settings)
        .then(|| Architecture { normalise: true, ..architecture(settings, vec![columns], classes) });
    let at_once = Training::AtOnce { max_rows: MOST_FITTED, reads_all_rows: |_| false };
    let stage = |at: usize| match (&network, at) {
        (Some(network), 0) => Stage::by_epochs(settings, Shape::Network(network.clone())),
        (network, sums) => {
            let table = match sums {
                0 => QuerySpec::table(QueryKind::ClassSums, columns + 1),
                _ => QuerySpec::table(QueryKind::LabelTable, sums * classes + 1),
            };
            let sum = QuerySpec::aggregation(settings, CLASS_PROBABILITIES, classes + 1);
            let model = AddressedShape { columns, classes, network: network.clone(), sums };
            Stage {
                queries: (sums > 0).then_some(sum).into_iter().chain([table]).collect(),
                model: Shape::Addressed(model),
                training: at_once,
            }
        }
    };
    Program::new(settings, (0..=settings.depth).map(stage))
}

pub(super) fn sent(release: &Release, rows: &Rows, index: usize) -> Result<Option<Vec<f32>>> {
    let predictor = release.predictor();
    let so_far: Aggregates = predictor.aggregates.iter().take(index).cloned().collect();
    match predictor.links.get(index).map(|link| &link.model) {
        Some(Model::Addressed(model)) => rows.messages(Message::Product { model }, &so_far).map(Some),
        Some(Model::Network(network)) => rows.messages(Message::Class { network }, &so_far).map(Some),
        _ => Ok(None),
    }
}

/// Whether the weights beside the sums are those that follow from the split and from the sums before. Another machine
/// may round a few of them to the next step.
pub(super) fn weights_follow(release: &Release) -> Result<bool> {
    let (predictor, settings) = (release.predictor(), release.settings()?);
    let nodes = release.nodes();
    let split = nodes.split();
    let is_train: Vec<bool> =
        (0..nodes.nodes()).map(|node| split.is_some_and(|split| split.part(node) == Part::Train)).collect();
    let mut off = 0;
    for (index, aggregate) in predictor.aggregates.iter().enumerate() {
        let so_far: Aggregates = predictor.aggregates[..index].to_vec();
        let expected = match predictor.links.get(index).map(|link| &link.model) {
            Some(Model::Addressed(model)) => weights(settings, model, &so_far, &is_train)?,
            Some(_) => need::at_first(settings.known_weight, &is_train),
            None => return Ok(false),
        };
        for (node, row) in aggregate.values.chunks_exact(aggregate.width).enumerate() {
            let steps =
                (row[aggregate.width - 1] - expected.of(node)).abs() * f32::from(ReceiverWeights::STEPS);
            if steps > 1.0 || (steps > 0.0 && index == 0) {
                return Ok(false);
            }
            off += usize::from(steps > 0.0);
        }
    }
    Ok(off * MOST_OFF <= nodes.nodes())
}

pub(super) fn fit(mut trainer: Trainer<'_>) -> Result<Fitted> {
    let settings = trainer.settings;
    let (columns, classes) = trainer.shape;
    let none = Aggregates::new();
    if learns_by_gradients(settings) {
        let mut objective = RowObjective::new(&trainer.vault, &none);
        trainer.train_new(0, &mut objective)?;
    } else {
        trainer.fit_to_table(0, (QueryKind::ClassSums, columns + 1), &none, |trainer| {
            let sums = trainer.vault.ask(ClassSums)?;
            let features = features::model(&sums, columns, classes)?;
            Ok(Model::Addressed(Addressed::new((columns, classes), features, None)))
        })?;
    }
    let is_train = trainer.vault.is_train();
    let mut aggregates = Aggregates::new();
    let mut posteriors: Vec<Posterior> = vec![];
    for stage in 1..=settings.depth {
        let before = trainer.model(stage - 1)?.clone();
        let weights = match &before {
            Model::Addressed(model) => weights(settings, model, &aggregates, &is_train)?,
            _ => need::at_first(settings.known_weight, &is_train),
        };
        let message = match &before {
            Model::Addressed(model) => Message::Product { model },
            other => Message::Class { network: other.network()? },
        };
        trainer.aggregate_to(&mut aggregates, message, &weights)?;
        let noise = trainer.plan.aggregate_multiplier * trainer.plan.sensitivity;
        let last = aggregates.last().ok_or(Error::internal("a sum was asked for"))?;
        let others: Vec<u32> = (0..is_train.len() as u32).filter(|&node| !is_train[node as usize]).collect();
        posteriors.push(posterior::of(last, &others, noise));
        let features = match &before {
            Model::Addressed(model) => model.parts().0.clone(),
            other => FeatureModel::Network(Box::new(other.network()?.clone())),
        };
        let table = (QueryKind::LabelTable, stage * classes + 1);
        trainer.fit_to_table(stage, table, &aggregates, |trainer| {
            let Learnt { softmax, log_prior } = learn(trainer, stage, &posteriors, &aggregates)?;
            let sums = SumsModel { posteriors: posteriors.clone(), softmax, log_prior };
            Ok(Model::Addressed(Addressed::new((columns, classes), features, Some(sums))))
        })?;
    }
    let objective = RowObjective::new(&trainer.vault, &aggregates);
    trainer.balance(settings.depth, &objective)?;
    let accuracies =
        trainer.accuracies(&|model, part| trainer.vault.unprotected_accuracy_of(model, &aggregates, part))?;
    let depth = settings.depth;
    // All stages: the weights of the next come from what they say of the sums, and `verify` recomputes them.
    let models = (0..=depth).map(|stage| (stage, rows_and_aggregates(stage))).collect();
    Fitted::new(trainer, models, aggregates, accuracies)
}

/// The weights of the next sum: who is in doubt by the sums before.
fn weights(
    settings: &Settings,
    model: &Addressed,
    aggregates: &Aggregates,
    is_train: &[bool],
) -> Result<ReceiverWeights> {
    let Some(sums) = model.parts().1 else { return Ok(need::at_first(settings.known_weight, is_train)) };
    if settings.known_weight >= 1.0 {
        return Ok(need::at_first(1.0, is_train));
    }
    let inputs = inputs(aggregates);
    let mut open = Vec::with_capacity(is_train.len());
    for block in crate::rows::blocks(is_train.len()) {
        let nodes: Vec<u32> = (block.start as u32..block.end as u32).collect();
        open.extend(sums.entropies(&sums.read(&inputs, &nodes)?, nodes.len())?);
    }
    Ok(need::by_need(settings.known_weight, is_train, Some(&open)))
}

fn inputs(aggregates: &Aggregates) -> Vec<Input<'_>> {
    aggregates.iter().map(|a| Input::Dense { columns: a.width, values: &a.values }).collect()
}

/// Asks for the table of labels of a stage, and learns from it.
fn learn(
    trainer: &mut Trainer<'_>,
    stage: usize,
    posteriors: &[Posterior],
    aggregates: &Aggregates,
) -> Result<Learnt> {
    let classes = trainer.shape.1;
    let width = stage * classes;
    let inputs = inputs(aggregates);
    let most = (width as f64).sqrt();
    // Rows brought to a length that few exceed, for what is fitted; for the vault, beside a constant, to norm one.
    let read = |nodes: &[u32]| -> Result<Vec<f32>> {
        let mut rows = addressed::read(posteriors, &inputs, nodes)?;
        for row in rows.chunks_exact_mut(width) {
            let length = row.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt();
            let factor = (most / length.max(most)) as f32;
            row.iter_mut().for_each(|value| *value *= factor);
        }
        Ok(rows)
    };
    let unit = most * (1.0 + CONSTANT * CONSTANT).sqrt();
    let make = |nodes: &[u32]| -> Result<Vec<f32>> {
        let mut rows = Vec::with_capacity(nodes.len() * (width + 1));
        for row in read(nodes)?.chunks_exact(width) {
            rows.extend(row.iter().map(|value| value / unit as f32));
            rows.push((CONSTANT * most / unit) as f32);
        }
        Ok(rows)
    };
    let label = format!("label table {stage}");
    let (table, noise) = trainer.vault.ask(LabelTable { label, width: width + 1, make: &make })?;
    let mut sums = vec![];
    let mut counts = vec![];
    for row in table.chunks_exact(width + 1) {
        sums.extend(row[..width].iter().map(|&value| f64::from(value) * unit));
        counts.push(f64::from(row[width]) * unit / (CONSTANT * most));
    }
    let train = trainer.vault.nodes_of(Part::Train);
    let step = train.len().div_ceil(MOST_FITTED).max(1);
    let fitted: Vec<u32> = train.iter().copied().step_by(step).collect();
    labels::learn(&ReleasedTable {
        table: &sums,
        counts: &counts,
        rows: &read(&fitted)?,
        noise: noise * unit,
        nodes: train.len(),
        classes,
    })
}
