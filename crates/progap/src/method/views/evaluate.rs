//! How good a stage is, on nodes held out.

use progap_nn::Inputs;

use super::Roles;
use super::features::Features;
use crate::Result;
use crate::assessment::{Assessment, Metric};
use crate::rows::Rows;
use crate::views::Views;

/// The metric that was asked for, where it is not the log loss.
pub(super) fn score(
    metric: Metric,
    model: &Views,
    inputs: &Inputs<'_>,
    (rows, roles): (&Rows, &Roles),
) -> Result<Option<f64>> {
    if metric == Metric::LogLoss {
        return Ok(None);
    }
    let probabilities = model.probabilities(inputs, &roles.held_out)?;
    let truth = Roles::labels(rows, &roles.held_out);
    let scores = Assessment::of_probabilities(&truth, &probabilities, rows.classes()).scores();
    Ok(scores.map(|scores| scores.get(metric)).filter(|score| score.is_finite()))
}

/// One standard error of the mean difference between the log losses of a model and of the features: a smaller gain than that may be
/// chance, as it often is where few nodes validate.
pub(super) fn doubt(
    model: &Views,
    inputs: &Inputs<'_>,
    (rows, roles): (&Rows, &Roles),
    features: &Features,
) -> Result<f64> {
    let classes = rows.classes();
    let seen = model.probabilities(inputs, &roles.held_out)?;
    let known = features.known(rows, &roles.held_out)?;
    let truth = Roles::labels(rows, &roles.held_out);
    let differences: Vec<f64> = truth
        .iter()
        .zip(seen.chunks_exact(classes).zip(known.chunks_exact(classes)))
        .map(|(&label, (seen, known))| {
            f64::from(seen[label as usize].max(f32::EPSILON).ln()) - f64::from(known[label as usize])
        })
        .collect();
    let count = differences.len().max(1) as f64;
    let mean = differences.iter().sum::<f64>() / count;
    let square = differences.iter().map(|difference| (difference - mean).powi(2)).sum::<f64>() / count;
    Ok((square / count).sqrt())
}
