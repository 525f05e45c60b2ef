//! The test nodes' predictions beside their labels: computed once, and shown in several sections of a report.

use progap::Release;
use progap::assessment::{Assessment, Baselines, Compared, Intervals, Metric, Scores};
use progap_graph::{Dataset, Part};

use super::content::{Block, Cell, Table, Tone};
use super::release::Result;
use crate::verdict::{OnlyMajority, headline, no_better_than, written};

/// What is known of the test nodes. Where labels are private, it is for the data owner alone.
pub(super) struct Tested {
    pub compared: Compared,
    pub found: Assessment,
    pub scores: Scores,
    /// `None` if there are too many nodes for it.
    pub intervals: Option<Intervals>,
    baselines: Option<Baselines>,
}

impl Tested {
    /// By the labels of a data set; `None` if it has no test nodes.
    pub fn of(release: &Release, labelled: &Dataset) -> Result<Option<Tested>> {
        let Some(compared) = release.compare(labelled, Part::Test)? else { return Ok(None) };
        let found = compared.assessment();
        let Some(scores) = found.scores() else { return Ok(None) };
        let (intervals, baselines) = (compared.intervals(), Baselines::of(labelled, release.settings()?)?);
        Ok(Some(Tested { compared, found, scores, intervals, baselines }))
    }

    /// That nearly every prediction is the most frequent class, where that is so.
    pub fn only_majority(&self, release: &Release) -> Result<Option<Block>> {
        let found = OnlyMajority::of(&self.found, release.nodes().class_names(), release.settings()?);
        Ok(found.map(|found| Block::Notice(Tone::Caution, format!("{}.", found.sentence()))))
    }

    /// The baselines that do as well, where there are any.
    pub fn no_better_than(&self, release: &Release) -> Result<Option<Block>> {
        let (metrics, settings) = (&release.metrics, release.settings()?);
        let Some(baselines) = &self.baselines else { return Ok(None) };
        let named = no_better_than((metrics, settings), &self.found, baselines);
        let text = (!named.is_empty()).then(|| format!("No better than {}.", named.join("; ")));
        Ok(text.map(|text| Block::Notice(Tone::Caution, text)))
    }

    /// The metric that was asked for, beside the baselines; `None` if it is the accuracy, which has a table of its own.
    pub fn headline(&self, release: &Release) -> Result<Option<(Metric, Table)>> {
        let metric = headline(release.settings()?);
        if metric == Metric::Accuracy || !self.scores.get(metric).is_finite() {
            return Ok(None);
        }
        let row = |name: &str, cell: Cell| vec![Cell::text(name), cell];
        let mut rows = vec![row("this release", self.cell(metric)).into_iter().map(Cell::bold).collect()];
        if let Some(baselines) = &self.baselines {
            let baseline = |scores: &Scores| number(metric, scores.get(metric), None);
            let logistic = baselines.logistic_regression.as_ref();
            rows.extend(
                logistic
                    .map(|scores| row("logistic regression on the features, not private", baseline(scores))),
            );
            rows.push(row("the most frequent class", baseline(&baselines.majority)));
        }
        let less = if metric.is_loss() { " Less is better." } else { "" };
        let table = Table {
            id: "headline".into(),
            caption: format!(
                "The metric that was asked for, {}, on the test nodes, with a 95 % interval (bootstrap).{less}",
                metric.words()
            ),
            columns: vec!["test nodes, predicted by".into(), metric.words().into()],
            rows,
        };
        Ok(Some((metric, table)))
    }

    /// A metric with its interval.
    pub fn cell(&self, metric: Metric) -> Cell {
        let interval = self.intervals.as_ref().and_then(|intervals| intervals.get(metric));
        number(metric, self.scores.get(metric), interval)
    }
}

/// A value of a metric; a dash where it cannot be said.
fn number(metric: Metric, value: f64, interval: Option<[f64; 2]>) -> Cell {
    match (metric, interval) {
        _ if !value.is_finite() => Cell::missing(),
        (Metric::LogLoss, interval) => {
            let written = |value| written(metric, value);
            let range = interval.map(|[low, high]| format!(" ({} to {})", written(low), written(high)));
            let cell = Cell::number(value, written(value) + &range.unwrap_or_default());
            Cell { interval: interval.map(|[low, high]| (low, high)), ..cell }
        }
        (_, interval) => share(Some(value), interval),
    }
}

/// A share with its interval, as far as they are known.
pub(super) fn share(value: Option<f64>, interval: Option<[f64; 2]>) -> Cell {
    match (value, interval) {
        (None, _) => Cell::missing(),
        (Some(value), None) => Cell::percent(value),
        (Some(value), Some([low, high])) => Cell::percent_within(value, (low, high)),
    }
}
