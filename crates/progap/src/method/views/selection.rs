//! What is sent next, and which stage is released: by nodes that were not fitted to, and by sums that left the vault
//! before.
//!
//! ```text
//! released stage = argmin of log loss over the stages whose gain over the features is more than one standard error
//! sum 1          labels
//! later sums     labels where these tell (similarity >= 0.15); of a table from the third on features where labels no
//!                longer help, and features again as long as they do
//!                else of a table features twice, and again where they helped, else structure
//! ```

use progap_nn::Inputs;

use super::Splits;
use super::candidates::mean;
use crate::Result;
use crate::assessment::{Assessment, Metric};
use crate::method::Choice;
use crate::method::history::{EpochRecord, StageScore};
use crate::rows::Rows;
use crate::settings::{Level, Messages, Settings};
use crate::views::Views;

/// Below this the classes of neighbours are hardly more similar than chance would have it.
const MIN_SIMILARITY: f64 = 0.15;

/// A stage has to be better than the features by this many standard errors. With two, few nodes held out would keep
/// good stages back.
const MIN_ERRORS: f64 = 1.0;

/// Nodes that can tell one model from another; fewer would tell anything.
const MIN_CHOOSING: usize = 5;

/// The metric that was asked for, where it is not the log loss.
pub(super) fn score(
    metric: Metric,
    model: &Views,
    inputs: &Inputs<'_>,
    (rows, splits): (&Rows, &Splits),
) -> Result<Option<f64>> {
    if metric == Metric::LogLoss {
        return Ok(None);
    }
    let probabilities = model.probabilities(inputs, &splits.held_out)?;
    let truth = Splits::labels(rows, &splits.held_out);
    let scores = Assessment::of_probabilities(&truth, &probabilities, rows.classes()).scores();
    Ok(scores.map(|scores| scores.get(metric)).filter(|score| score.is_finite()))
}

/// One standard error of the mean difference between the log losses of a model and of the features: a smaller gain than
/// that may be chance, as it often is where few nodes choose. Of next to none of them it is all that there is to gain.
pub(super) fn standard_error(log_losses: &[f64], of_features: &[f64]) -> f64 {
    if log_losses.len() < MIN_CHOOSING {
        return mean(of_features);
    }
    let differences: Vec<f64> = of_features.iter().zip(log_losses).map(|(a, b)| a - b).collect();
    let (count, centre) = (differences.len() as f64, mean(&differences));
    let square = differences.iter().map(|difference| (difference - centre).powi(2)).sum::<f64>();
    (square / (count - 1.0) / count).sqrt()
}

/// The choice that follows from what happened so far.
///
/// # Proof definition
/// A function of noisy sums that left the vault before, and of features, labels and the split, which are public at the
/// levels that have it: post-processing. Whatever is chosen, the next query is one aggregation of messages of length
/// one at most with the noise of the plan, and their number is fixed before the first.
pub(super) fn choose(settings: &Settings, history: &[EpochRecord]) -> Choice {
    let score_of = |stage: usize| {
        history.iter().find(|record| record.stage == stage).and_then(|record| record.stage_score)
    };
    let messages = (0..settings.depth).map(|index| message(settings, &score_of, index));
    let loss = |stage: usize| score_of(stage).map_or(f64::INFINITY, |found| found.log_loss);
    let by_metric =
        (0..=settings.depth).all(|stage| score_of(stage).is_some_and(|found| found.score.is_some()));
    let merit = |stage: usize| match score_of(stage).and_then(|found| found.score).filter(|_| by_metric) {
        Some(score) => settings.metric.oriented(score),
        None => -loss(stage),
    };
    let better = |best: usize, stage: usize| {
        let is_chance = score_of(stage).is_some_and(|found| !found.beats(loss(0)));
        if merit(stage) >= merit(best) && !is_chance { stage } else { best }
    };
    Choice { messages: messages.collect(), stage: (0..=settings.depth).fold(0, better) }
}

impl StageScore {
    /// Whether the stage is better than the features by more than chance makes it.
    fn beats(&self, features: f64) -> bool {
        self.standard_error.is_none_or(|error| features - self.log_loss > MIN_ERRORS * error)
    }
}

/// The kind of messages sent for the sum of that index.
fn message(settings: &Settings, score_of: &dyn Fn(usize) -> Option<StageScore>, index: usize) -> Messages {
    let features = score_of(0).map_or(0, |found| found.sent_columns);
    // Without noise features ride along with everything else.
    let table = features > 0 && settings.level != Level::None;
    let labels_tell =
        score_of(1).and_then(|found| found.similarity).is_none_or(|similarity| similarity >= MIN_SIMILARITY);
    let log_loss = |stage: usize| score_of(stage).map(|found| found.log_loss);
    let helped = |stage: usize| match (stage.checked_sub(1).and_then(log_loss), log_loss(stage)) {
        (Some(before), Some(found)) => found < before,
        _ => false,
    };
    // One sum under much noise may show nothing of what two show together.
    let features_tell = || index <= 2 || [0, 1].iter().all(|&stage| log_loss(index) < log_loss(stage));
    let before = index.checked_sub(1).map(|before| message(settings, score_of, before));
    let were_features = before == Some(Messages::Features);
    // Labels by more than chance: then one more of the same is worth more than something new.
    let still_help = || match (index.checked_sub(1).and_then(log_loss), score_of(index)) {
        _ if were_features => helped(index),
        (Some(before), Some(found)) => found.beats(before),
        _ => true,
    };
    match settings.messages {
        _ if index == 0 => Messages::Labels,
        Messages::Auto if labels_tell && table && index >= 2 && were_features == still_help() => {
            Messages::Features
        }
        Messages::Auto if labels_tell => Messages::Labels,
        Messages::Auto if table && features_tell() => Messages::Features,
        Messages::Auto | Messages::Structure => Messages::Structure,
        Messages::Features if table => Messages::Features,
        _ => Messages::Labels,
    }
}

/// The stage whose probabilities are sent next.
#[derive(Clone, Copy)]
pub(super) struct SourceStage {
    pub stage: usize,
    /// The lowest log loss so far.
    least: f64,
}

impl SourceStage {
    pub fn new(stage: usize, found: StageScore) -> SourceStage {
        SourceStage { stage, least: found.log_loss }
    }

    /// The later stage, unless it is worse than the best so far by more than chance makes it: it knows of labels
    /// farther away, and a stage that is never sent tells the next ones nothing.
    pub fn or(self, stage: usize, found: StageScore) -> SourceStage {
        let worse = found.log_loss - self.least;
        let stage = if worse > found.standard_error.unwrap_or(0.0) { self.stage } else { stage };
        SourceStage { stage, least: self.least.min(found.log_loss) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(log_loss: f64, standard_error: f64) -> StageScore {
        StageScore { standard_error: Some(standard_error), ..StageScore::of(log_loss) }
    }

    #[test]
    fn the_latest_stage_is_sent_unless_it_is_worse_than_chance_makes_it() {
        let first = SourceStage::new(0, found(1.0, 0.0));
        let second = first.or(1, found(1.05, 0.1));
        assert_eq!(second.stage, 1, "as good as the features, as far as can be told");
        assert_eq!(second.or(2, found(1.2, 0.1)).stage, 1, "worse");
        // The best so far counts, not the last that was sent.
        assert_eq!(second.or(2, found(1.09, 0.1)).or(3, found(1.15, 0.1)).stage, 2);
        assert_eq!(second.or(2, found(0.5, 0.1)).or(3, found(0.5, 0.0)).stage, 3);
    }

    #[test]
    fn a_gain_on_a_handful_of_nodes_may_be_chance_as_a_whole() {
        for nodes in 0..MIN_CHOOSING {
            let (gone, before) = (vec![0.0; nodes], vec![0.7; nodes]);
            assert!(mean(&before) - mean(&gone) <= standard_error(&gone, &before), "{nodes}");
        }
        let differences = [0.1, 0.3, 0.2, 0.6, 0.3];
        let error = standard_error(&[0.0; 5], &differences);
        // The standard deviation of a sample, over the root of five.
        assert!((error - 0.083_666_002_653_407_55).abs() < 1e-12, "{error}");
    }

    /// Stages with these log losses; the first sums tell of that similarity.
    fn sent<const SUMS: usize>(
        level: Level,
        similarity: f64,
        losses: [f64; SUMS],
        columns: usize,
    ) -> Vec<Messages> {
        let settings = Settings { depth: SUMS, ..Settings::of(crate::MethodKind::ProgapViews, level) };
        let record = |(stage, &loss): (usize, &f64)| EpochRecord {
            stage,
            epoch: 1,
            loss: None,
            train_accuracy: None,
            val_accuracy: 0.5,
            val_score: None,
            stage_score: Some(StageScore {
                standard_error: (stage > 0).then_some(0.01),
                similarity: (stage == 1).then_some(similarity),
                sent_columns: if stage == 0 { columns } else { 0 },
                ..found(loss, 0.01)
            }),
        };
        let history: Vec<EpochRecord> = losses.iter().enumerate().map(record).collect();
        choose(&settings, &history).messages
    }

    #[test]
    fn what_is_sent_next_is_what_helped() {
        use Messages::{Features, Labels, Structure};
        let falling = [0.7, 0.5, 0.4];
        assert_eq!(sent(Level::Edge, 0.5, falling, 0), [Labels; 3]);
        assert_eq!(sent(Level::Edge, 0.5, falling, 4), [Labels; 3], "labels still help");
        assert_eq!(sent(Level::Edge, 0.5, [0.7, 0.5, 0.495], 4), [Labels, Labels, Features]);
        assert_eq!(sent(Level::Edge, 0.05, falling, 0), [Labels, Structure, Structure]);
        assert_eq!(sent(Level::Edge, 0.05, falling, 4), [Labels, Features, Features]);
        let twice = sent(Level::Edge, 0.05, [0.7, 0.7, 0.705, 0.71], 4);
        assert_eq!(twice, [Labels, Features, Features, Structure], "features did not help");
        let told = sent(Level::Edge, 0.05, [0.7, 0.7, 0.705, 0.69], 4);
        assert_eq!(told, [Labels, Features, Features, Features], "two of them did");
        let both = sent(Level::Edge, 0.5, [0.7, 0.5, 0.495, 0.49, 0.5], 4);
        assert_eq!(both, [Labels, Labels, Features, Features, Labels], "as long as they help");
        // Without noise nothing has to be chosen: features ride along.
        assert_eq!(sent(Level::None, 0.5, falling, 4), [Labels; 3]);
        assert_eq!(sent(Level::None, 0.05, falling, 4), [Labels, Structure, Structure]);
    }
}
