//! The second view, and the combination of both.

use progap_nn::{Design, Evidence, Input, Inputs, Softmax, Task, best_temperature};

use super::features::Features;
use super::{MANY_LABELS, Roles};
use crate::rows::Rows;
use crate::vault::Aggregate;
use crate::views::{Block, GraphView, Joined, ViewsShape, log_softmax, read};
use crate::{Error, Result};

/// Penalties of the view of the sums where there is no noise: nodes held out choose.
const PENALTIES: [f64; 2] = [0.01, 0.001];
/// The penalty where [`MANY_LABELS`] teach the combination what the view could tell it.
const PENALTY_OF_MANY: f64 = 0.003;
/// The penalty under noise where one node in twenty has a label; it falls with the root of that share.
const PENALTY: f64 = 0.01;
/// The most steps of a combination, which goes on from the one before: more of them change no accuracy (docs/views.md).
const COMBINATION_STEPS: usize = 30;
/// How strongly a combination is held to a simple one: both views to their product, which is right where they are independent.
const TOWARDS_CENTRE: [f64; 5] = [1.0, 0.1, 0.03, 0.01, 0.001];

/// A stage with the mean log loss on nodes held out.
pub(super) fn fit(
    shape: &ViewsShape,
    rows: &Rows,
    roles: &Roles,
    features: &Features,
    aggregates: &[Aggregate],
    seed: u64,
) -> Result<(GraphView, f64)> {
    let classes = shape.classes;
    let blocks: Vec<Block> = aggregates.iter().map(|a| Block::of(&a.values, classes)).collect();
    let values: Vec<&[f32]> = aggregates.iter().map(|a| &a.values[..]).collect();
    let design = {
        let sums = read(&blocks, &values, &roles.sample, shape);
        let inputs = Inputs::checked_before(vec![Input::Dense { columns: shape.width(), values: &sums }])?;
        Design::new(&inputs, &(0..roles.sample.len() as u32).collect::<Vec<_>>())?
    };
    let likelihoods = likelihoods(rows, roles, features)?;
    let share = roles.train_nodes as f64 / rows.labels().len().max(1) as f64;
    let (penalties, iterations) = match shape.directions {
        true if roles.train_nodes < MANY_LABELS => (PENALTIES.to_vec(), 100),
        true => (vec![PENALTY_OF_MANY], 40),
        false => (vec![PENALTY * (0.05 / share).sqrt().clamp(0.1, 2.0)], 60),
    };
    let mut best: Option<(f64, GraphView)> = None;
    for decay in penalties {
        let task = Task {
            evidence: Evidence::Likelihoods(&likelihoods),
            classes,
            row_weights: &[],
            hidden: shape.hidden,
            decay,
            towards: &[],
            iterations,
            tolerance: 1e-6,
            seed,
        };
        let (view, _) = design.fit(&task, None)?;
        let told = |nodes: &[u32]| -> Result<Told> {
            let sums = read(&blocks, &values, nodes, shape);
            let inputs =
                Inputs::checked_before(vec![Input::Dense { columns: shape.width(), values: &sums }])?;
            let mut seen = view.logits(&inputs, &(0..nodes.len() as u32).collect::<Vec<_>>())?;
            log_softmax(&mut seen, classes);
            Ok(Told { known: features.known(rows, nodes)?, seen, sums })
        };
        let parts = [told(&roles.train)?, told(&roles.held_out)?];
        let (combination, log_loss) = combine(shape, rows, roles, &parts)?;
        if best.as_ref().is_none_or(|(least, _)| log_loss < *least) {
            best = Some((log_loss, GraphView { blocks: blocks.clone(), view, combination }));
        }
    }
    let (log_loss, view) = best.ok_or(Error::Internal("no penalty was tried"))?;
    Ok((view, log_loss))
}

/// What is told of some nodes: by the features, by the sums, and the sums themselves.
struct Told {
    known: Vec<f32>,
    seen: Vec<f32>,
    sums: Vec<f32>,
}

/// How likely what is known of each node of the sample besides the sums would be in each class, up to a factor for each node.
fn likelihoods(rows: &Rows, roles: &Roles, features: &Features) -> Result<Vec<f32>> {
    let (classes, priors) = (rows.classes(), roles.priors(rows));
    let mut values = features.known(rows, &roles.sample)?;
    for (&node, row) in roles.sample.iter().zip(values.chunks_exact_mut(classes)) {
        if roles.is_train[node as usize] {
            let label = rows.labels()[node as usize] as usize;
            row.fill(0.0);
            row[label] = (1.0 / priors[label]) as f32;
            continue;
        }
        row.iter_mut().zip(&priors).for_each(|(value, prior)| {
            *value = (f64::from(value.exp()) / prior) as f32;
        });
    }
    Ok(values)
}

/// The combination that nodes held out like best, its temperature included, and its log loss on them.
fn combine(
    shape: &ViewsShape,
    rows: &Rows,
    roles: &Roles,
    [taught, validation]: &[Told; 2],
) -> Result<(Softmax, f64)> {
    let (classes, width) = (shape.classes, shape.width());
    let labels = [&roles.train, &roles.held_out].map(|nodes| Roles::labels(rows, nodes));
    let joined = Joined::new(&taught.known, &taught.seen, &taught.sums, shape);
    let validation = Joined::new(&validation.known, &validation.seen, &validation.sums, shape);
    let [taught, held_out] =
        [&roles.train, &roles.held_out].map(|nodes| (0..nodes.len() as u32).collect::<Vec<_>>());
    let mut product = vec![0f32; (2 * classes + width) * classes];
    (0..2 * classes).for_each(|row| product[row * classes + row % classes] = 1.0);
    let taught = Known { inputs: &joined.inputs()?, places: &taught, labels: &labels[0] };
    let validation = Known { inputs: &validation.inputs()?, places: &held_out, labels: &labels[1] };
    pulled_towards(&product, classes, taught, validation)
}

/// Rows of some inputs whose classes are known.
pub(super) struct Known<'a> {
    pub inputs: &'a Inputs<'a>,
    pub places: &'a [u32],
    pub labels: &'a [u32],
}

/// Linear weights that are learnt, and pulled towards given ones as strongly as rows held out like best, with their temperature; and
/// the log loss on these rows.
pub(super) fn pulled_towards(
    centre: &[f32],
    classes: usize,
    taught: Known<'_>,
    validation: Known<'_>,
) -> Result<(Softmax, f64)> {
    let design = Design::new(taught.inputs, taught.places)?;
    let (mut best, mut start): (Option<(f64, Softmax)>, _) = (None, None);
    for decay in TOWARDS_CENTRE {
        let task = Task {
            evidence: Evidence::Labels(taught.labels),
            classes,
            row_weights: &[],
            hidden: 0,
            decay,
            towards: centre,
            iterations: COMBINATION_STEPS,
            tolerance: 1e-6,
            seed: 0,
        };
        let (mut model, found) = design.fit(&task, start.as_ref())?;
        start = Some(found);
        let logits = model.logits(validation.inputs, validation.places)?;
        let (temperature, log_loss) = best_temperature(&logits, validation.labels, classes);
        if best.as_ref().is_none_or(|(least, _)| log_loss < *least) {
            model.scale_logits(temperature);
            best = Some((log_loss, model));
        }
    }
    let (log_loss, model) = best.ok_or(Error::Internal("no combination was tried"))?;
    Ok((model, log_loss))
}
