//! How good a stage is, on nodes held out.

use progap_nn::Inputs;

use super::Roles;
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

/// Nodes that can tell one model from another; fewer would tell anything.
const LEAST_JUDGES: usize = 5;

/// One standard error of the mean difference between the log losses of a model and of the features: a smaller gain than that may be
/// chance, as it often is where few nodes judge. Of next to none of them it is all that there is to gain.
pub(super) fn doubt(log_losses: &[f64], of_features: &[f64]) -> f64 {
    if log_losses.len() < LEAST_JUDGES {
        return mean(of_features);
    }
    let differences: Vec<f64> = of_features.iter().zip(log_losses).map(|(a, b)| a - b).collect();
    let (count, centre) = (differences.len() as f64, mean(&differences));
    let square = differences.iter().map(|difference| (difference - centre).powi(2)).sum::<f64>();
    (square / (count - 1.0) / count).sqrt()
}

/// The mean; of nothing it is zero.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_on_a_handful_of_nodes_is_doubted_as_a_whole() {
        for judges in 0..LEAST_JUDGES {
            let (gone, before) = (vec![0.0; judges], vec![0.7; judges]);
            assert!(mean(&before) - mean(&gone) <= doubt(&gone, &before), "{judges}");
        }
        let differences = [0.1, 0.3, 0.2, 0.6, 0.3];
        let doubt = doubt(&[0.0; 5], &differences);
        // The standard deviation of a sample, over the root of five.
        assert!((doubt - 0.083_666_002_653_407_55).abs() < 1e-12, "{doubt}");
    }
}
