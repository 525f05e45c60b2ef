//! The features model, taught on nodes without a label by what the nodes near them in their features are.

use progap_nn::{Design, Evidence, Input, Inputs, Softmax, Task, shrunk_temperature};

use super::Roles;
use super::combination::{Known, pulled_towards};
use super::evaluate::mean;
use super::features::{self, Features, ITERATIONS, TOLERANCE, mean_square, scalings};
use super::near::Near;
use crate::rows::Rows;
use crate::views::log_softmax;
use crate::{Error, Result};

/// Strengths that are tried, in the units of [`features::fit`].
const STRENGTHS: [f64; 2] = [3.0, 30.0];
/// The least share that a class is taken to have among the near.
const LEAST_SHARE: f32 = 1e-3;

/// The features model; where nodes that judge say that it is better for it, one that was also taught by the near.
pub(super) fn fit(rows: &Rows, roles: &Roles) -> Result<Features> {
    let alone = features::fit(rows, roles)?;
    let log_loss = |features: &Features| Ok::<_, Error>(mean(&features.log_losses(rows, roles)?));
    Ok(match taught(rows, roles, &alone)? {
        Some(taught) if log_loss(&taught)? < log_loss(&alone)? => taught,
        _ => alone,
    })
}

/// A model of the features that learns labels where there are some, and elsewhere what the features say together with what is known
/// of the near.
///
/// It reads nothing but the features: those near are needed to teach, and not to predict.
fn taught(rows: &Rows, roles: &Roles, alone: &Features) -> Result<Option<Features>> {
    let (inputs, classes, nodes) = (&rows.own()?, rows.classes(), rows.labels().len());
    let square = mean_square(inputs, &roles.sample)?.max(1e-12);
    let Some(way) = scalings(inputs.as_slice()[0], nodes, square).pop() else { return Ok(None) };
    let Some(near) = Near::of(inputs.as_slice()[0], &way.weights) else { return Ok(None) };
    let everyone: Vec<u32> = (0..nodes as u32).collect();
    let held_out = Roles::labels(rows, &roles.held_out);

    let said = said_of_all(rows, roles, alone, &near)?;
    let mut targets = said.clone();
    log_softmax(&mut targets, classes);
    targets.iter_mut().for_each(|value| *value = value.exp());
    know_labels(rows, roles, &mut targets);

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
        let logits = model.logits(inputs, &roles.held_out)?;
        let (temperature, log_loss) = shrunk_temperature(&logits, &held_out, classes);
        if best.as_ref().is_none_or(|(least, ..)| log_loss < *least) {
            best = Some((log_loss, temperature, model));
        }
    }
    let (_, temperature, plain) = best.ok_or(Error::Internal("no strength was tried"))?;
    let mut model = plain.clone();
    model.scale_logits(temperature);
    // Of a training node the teacher speaks, who hardly knows its label (docs/views.md); the temperature is not his. Where training nodes judge he
    // knows it too well, and who never saw it speaks.
    let out_of_fold = match roles.folds().judging {
        0 => {
            let of_node = |&node: &u32| &said[node as usize * classes..][..classes];
            roles.train.iter().flat_map(of_node).map(|value| value / temperature).collect()
        }
        _ => alone.out_of_fold.iter().map(|value| value * alone.temperature / temperature).collect(),
    };
    let places = alone.places.clone();
    Ok(Some(Features { model, plain, temperature, out_of_fold, places }))
}

/// The teacher: logits of what the features say of each node, weighed with the mean of what is known of those near it, which is never its own label.
fn said_of_all(rows: &Rows, roles: &Roles, alone: &Features, near: &Near) -> Result<Vec<f32>> {
    let classes = rows.classes();
    let everyone: Vec<u32> = (0..rows.labels().len() as u32).collect();
    let mut own = alone.known(rows, &everyone)?;
    let mut told: Vec<f32> = own.iter().map(|value| value.exp()).collect();
    know_labels(rows, roles, &mut told);
    let mut around = near.means(&told, classes);
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
    let labels = [&roles.train, &roles.held_out].map(|nodes| Roles::labels(rows, nodes));
    let taught = Known { inputs, places: &roles.train, labels: &labels[0] };
    let judged = Known { inputs, places: &roles.held_out, labels: &labels[1] };
    let teacher = pulled_towards(&features_alone, classes, (taught, judged), roles.folds())?;
    Ok(teacher.model.logits(inputs, &everyone)?)
}

/// Probabilities of all nodes, those of training nodes by their labels.
fn know_labels(rows: &Rows, roles: &Roles, probabilities: &mut [f32]) {
    let classes = rows.classes();
    for &node in &roles.train {
        let row = &mut probabilities[node as usize * classes..][..classes];
        row.fill(0.0);
        row[rows.labels()[node as usize] as usize] = 1.0;
    }
}
