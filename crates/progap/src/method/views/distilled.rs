//! A linear features model fitted on all nodes where rows are sparse: to labels where there are some, and elsewhere to
//! what the features say together with what is known of nodes whose rows are alike.
//!
//! ```text
//! target of a node without a label = softmax(W [log p(y | x), log mean over the nearest of what is known of them])
//! loss = - sum over all nodes of target log q(y | x)
//! ```
//!
//! It reads nothing but the features: the nearest are needed to fit it, and not to predict (Hinton et al. 2015,
//! Distilling the knowledge in a neural network).

use progap_nn::{Design, Evidence, Input, Inputs, Softmax, Task, shrunk_temperature};

use super::Splits;
use super::candidates::{Known, Labelled, mean};
use super::features::{self, Features, ITERATIONS, TOLERANCE, mean_square, scalings};
use super::knn::KnnGraph;
use crate::rows::Rows;
use crate::views::{TableModel, log_softmax};
use crate::{Error, Result};

/// Strengths that are tried, in the units of [`features::linear`].
const STRENGTHS: [f64; 2] = [3.0, 30.0];
/// The least share that a class is taken to have among the nearest.
const LEAST_SHARE: f32 = 1e-3;

/// The linear features model; where nodes that choose say that it is better for it, the one that was distilled.
pub(super) fn fit(rows: &Rows, splits: &Splits) -> Result<Features> {
    let alone = features::linear(rows, splits)?;
    let log_loss = |features: &Features| Ok::<_, Error>(mean(&features.log_losses(rows, splits)?));
    Ok(match distilled(rows, splits, &alone)? {
        Some(distilled) if log_loss(&distilled)? < log_loss(&alone)? => distilled,
        _ => alone,
    })
}

fn distilled(rows: &Rows, splits: &Splits, alone: &Features) -> Result<Option<Features>> {
    let (inputs, classes, nodes) = (&rows.own()?, rows.classes(), rows.labels().len());
    let square = mean_square(inputs, &splits.sample)?.max(1e-12);
    let Some(way) = scalings(inputs.as_slice()[0], nodes, square).pop() else { return Ok(None) };
    let Some(nearest) = KnnGraph::of(inputs.as_slice()[0], &way.weights) else { return Ok(None) };
    let everyone: Vec<u32> = (0..nodes as u32).collect();
    let held_out = Splits::labels(rows, &splits.held_out);

    let said = with_nearest(rows, splits, alone, &nearest)?;
    let mut targets = said.clone();
    log_softmax(&mut targets, classes);
    targets.iter_mut().for_each(|value| *value = value.exp());
    set_labels(rows, splits, &mut targets);

    let design = Design::scaled(inputs, &everyone, &[way.scale], way.scaling, &way.weights)?;
    let mut best: Option<(f64, f32, Softmax)> = None;
    for strength in STRENGTHS {
        let task = Task {
            evidence: Evidence::Targets(&targets),
            classes,
            row_weights: &[],
            hidden: 0,
            decay: square / (strength * nodes as f64),
            towards: &[],
            iterations: ITERATIONS,
            tolerance: TOLERANCE,
            seed: 0,
        };
        let model = design.fit(&task, None)?.0;
        let logits = model.logits(inputs, &splits.held_out)?;
        let (temperature, log_loss) = shrunk_temperature(&logits, &held_out, classes);
        if best.as_ref().is_none_or(|(least, ..)| log_loss < *least) {
            best = Some((log_loss, temperature, model));
        }
    }
    let (_, temperature, mut model) = best.ok_or(Error::internal("no strength was tried"))?;
    model.scale_logits(temperature);
    // For training nodes the targets' out-of-fold logits, without the temperature of the fit (docs/method.md#views).
    // Where training nodes select, these logits are overfitted to their labels: use the model that never saw them.
    let out_of_fold = match splits.folds().choosing {
        0 => {
            let of_node = |&node: &u32| &said[node as usize * classes..][..classes];
            splits.train.iter().flat_map(of_node).copied().collect()
        }
        _ => alone.out_of_fold.clone(),
    };
    Ok(Some(Features { model: TableModel::new(model), out_of_fold, places: alone.places.clone() }))
}

/// Logits of what the features say of each node, weighed with the mean of what is known of the nearest, which is never
/// its own label.
fn with_nearest(rows: &Rows, splits: &Splits, alone: &Features, nearest: &KnnGraph) -> Result<Vec<f32>> {
    let classes = rows.classes();
    let everyone: Vec<u32> = (0..rows.labels().len() as u32).collect();
    let mut own = alone.known(rows, &everyone)?;
    let mut known: Vec<f32> = own.iter().map(|value| value.exp()).collect();
    set_labels(rows, splits, &mut known);
    let mut around = nearest.means(&known, classes);
    around.iter_mut().for_each(|share| *share = share.max(LEAST_SHARE).ln());
    for values in [&mut own, &mut around] {
        values.chunks_exact_mut(classes).for_each(|row| {
            let mean = row.iter().sum::<f32>() / classes as f32;
            row.iter_mut().for_each(|value| *value -= mean);
        });
    }
    let dense = |values| Input::Dense { columns: classes, values };
    let inputs = &Inputs::checked_before(vec![dense(&own[..]), dense(&around[..])])?;
    let mut features_alone = vec![0f32; 2 * classes * classes];
    (0..classes).for_each(|class| features_alone[class * classes + class] = 1.0);
    let labels = [&splits.train, &splits.held_out].map(|nodes| Splits::labels(rows, nodes));
    let fitted = Known { inputs, places: &splits.train, labels: &labels[0] };
    let held_out = Known { inputs, places: &splits.held_out, labels: &labels[1] };
    let data = Labelled { fitted, held_out, folds: splits.folds(), classes };
    data.linear(&features_alone, false)?.model.logits(inputs, &everyone)
}

/// Probabilities of all nodes, those of training nodes by their labels.
fn set_labels(rows: &Rows, splits: &Splits, probabilities: &mut [f32]) {
    let classes = rows.classes();
    for &node in &splits.train {
        let row = &mut probabilities[node as usize * classes..][..classes];
        row.fill(0.0);
        row[rows.labels()[node as usize] as usize] = 1.0;
    }
}
