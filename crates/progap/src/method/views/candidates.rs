//! Models of a table, each known by what it says of rows that it was not fitted to, of which the best is kept.
//!
//! ```text
//! linear      log p = z W + b                   |W - W0|^2 held down as strongly as held-out rows like best
//! perceptron  log p = z W + tanh(z U + c) V + b     the same, with W0 where it begins
//! boosted     log p = base(z) + trees(z)        trees on what the base says out of fold
//! ```
//!
//! The loss of all of them is the cross-entropy of the labels; the rows that choose are those held out and, where they
//! are few, folds of the rows that are fitted to, each met by a fit without it. Every candidate has a temperature of
//! its own, by the same rows.

use progap_nn::{
    Boosting, Design, Evidence, Inputs, Softmax, Start, Table, Task, cross_fitted, log_losses,
    shrunk_temperature,
};
use rayon::prelude::*;

use super::splits::Folds;
use super::stage::MANY_CLASSES;
use crate::Result;
use crate::views::TableModel;

/// The most steps of a linear fit, which goes on from the one before: more of them change no accuracy
/// (docs/method.md#views).
const STEPS: usize = 30;
/// How strongly a combination is held to a simple one: both views to their product, which is right where they are
/// independent.
const TOWARDS_CENTRE: [f64; 5] = [1.0, 0.1, 0.03, 0.01, 0.001];
/// The same where there are [`MANY_CLASSES`].
const TOWARDS_CENTRE_OF_MANY: [f64; 2] = [0.1, 0.01];

/// The most columns of a table for which perceptrons and trees are tried: thousands of words would not pay for them.
pub(super) const MAX_TABLE_COLUMNS: usize = 128;
/// The width of a perceptron, its steps, its penalties, and the most products of one step.
const HIDDEN: usize = 24;
const PERCEPTRON_STEPS: usize = 80;
const PERCEPTRON_PENALTIES: [f64; 3] = [0.01, 0.003, 0.0007];
const MAX_PRODUCTS: usize = 1 << 24;
/// Trees with few and with many leaves; of large tables those with many alone.
const BOOSTING: Boosting = Boosting::DEFAULT;
const SMALL_TREES: Boosting = Boosting { leaves: 6, min_rows: 10, ..BOOSTING };
const LARGE_TABLE: usize = 1 << 18;
/// The most entries of a table times the outputs of a tree.
const MAX_ENTRIES: usize = 1 << 20;

/// Whether tables of so many feature columns and classes are tried as more than linear.
pub(crate) fn is_table(columns: usize, classes: usize) -> bool {
    columns <= MAX_TABLE_COLUMNS && classes < MANY_CLASSES
}

/// Rows of some inputs whose classes are known.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub inputs: &'a Inputs<'a>,
    pub places: &'a [u32],
    pub labels: &'a [u32],
}

/// Rows that are fitted to, rows that are held out, and how the first are divided.
#[derive(Clone, Copy)]
pub(super) struct Labelled<'a> {
    pub fitted: Known<'a>,
    pub held_out: Known<'a>,
    pub folds: Folds,
    pub classes: usize,
}

/// A model, and what it says of rows that it was not fitted to.
pub(super) struct Candidate {
    pub model: TableModel,
    /// Its logits of the rows that are fitted to, each by a fit without it; empty where nobody asked for them.
    pub out_of_fold: Vec<f32>,
    /// Its logits of the rows held out.
    pub held_out: Vec<f32>,
    /// The log loss of each row that chooses, in the order of [`super::Splits::choosing`].
    pub log_losses: Vec<f64>,
}

impl Labelled<'_> {
    fn columns(&self) -> usize {
        self.fitted.inputs.as_slice().iter().map(progap_nn::Input::columns).sum()
    }

    /// The labels of the rows that choose.
    fn choosing_labels(&self) -> Vec<u32> {
        let own = self.folds.choosing_places(self.fitted.labels.len());
        self.held_out
            .labels
            .iter()
            .copied()
            .chain(own.into_iter().map(|place| self.fitted.labels[place]))
            .collect()
    }

    /// Logits of the rows that choose.
    fn choosing(&self, held_out: &[f32], out_of_fold: &[f32]) -> Vec<f32> {
        let row = |place: usize| &out_of_fold[place * self.classes..][..self.classes];
        let own = self.folds.choosing_places(self.fitted.labels.len());
        held_out.iter().copied().chain(own.into_iter().flat_map(|place| row(place).to_vec())).collect()
    }

    /// The model with its temperature.
    fn candidate(
        &self,
        mut model: TableModel,
        mut held_out: Vec<f32>,
        mut out_of_fold: Vec<f32>,
    ) -> Candidate {
        let (logits, labels) = (self.choosing(&held_out, &out_of_fold), self.choosing_labels());
        let temperature = shrunk_temperature(&logits, &labels, self.classes).0;
        model.scale_logits(temperature);
        held_out.iter_mut().chain(&mut out_of_fold).for_each(|logit| *logit *= temperature);
        let log_losses = log_losses(&logits, &labels, self.classes, f64::from(temperature));
        Candidate { model, out_of_fold, held_out, log_losses }
    }

    /// Linear weights that are learnt, and pulled towards given ones as strongly as rows that choose like best.
    pub fn linear(&self, centre: &[f32], out_of_fold: bool) -> Result<Candidate> {
        let pulls = if self.classes < MANY_CLASSES { &TOWARDS_CENTRE[..] } else { &TOWARDS_CENTRE_OF_MANY };
        let fit = Fit { centre, hidden: 0, steps: STEPS, scales: &[], rows: usize::MAX };
        self.searched(&fit, pulls, out_of_fold)
    }

    /// The same with a hidden layer; `scales` bring each of the inputs to one size.
    pub fn perceptron(&self, centre: &[f32], scales: &[f32]) -> Result<Candidate> {
        let rows = (MAX_PRODUCTS / (self.columns() + self.classes).max(1) / HIDDEN).max(1);
        let fit = Fit { centre, hidden: HIDDEN, steps: PERCEPTRON_STEPS, scales, rows };
        self.searched(&fit, &PERCEPTRON_PENALTIES, true)
    }

    /// The fit with the penalty that rows that choose like best.
    fn searched(&self, fit: &Fit<'_>, penalties: &[f64], out_of_fold: bool) -> Result<Candidate> {
        let mut whole = Rows::new(self, fit, |_| true)?;
        let mut without = (0..self.folds.choosing)
            .map(|out| Rows::new(self, fit, |place| !self.folds.holds(out, place)))
            .collect::<Result<Vec<Rows>>>()?;
        let labels = self.choosing_labels();
        let mut best: Option<Searched> = None;
        for &penalty in penalties {
            let model = whole.fitted(fit, self.classes, penalty)?;
            let held_out = model.logits(self.held_out.inputs, self.held_out.places)?;
            let left_out = |(out, rows): (usize, &mut Rows)| {
                let left_out = self.folds.of(out, self.fitted.places);
                Ok(rows.fitted(fit, self.classes, penalty)?.logits(self.fitted.inputs, &left_out)?)
            };
            let parts =
                without.par_iter_mut().enumerate().map(left_out).collect::<Result<Vec<Vec<f32>>>>()?;
            let logits: Vec<f32> = held_out.iter().chain(parts.iter().flatten()).copied().collect();
            let log_loss = shrunk_temperature(&logits, &labels, self.classes).1;
            if best.as_ref().is_none_or(|best| log_loss < best.log_loss) {
                best = Some(Searched { log_loss, penalty, model, held_out, parts });
            }
        }
        let best = best.ok_or(crate::Error::internal("no penalty was tried"))?;
        let Searched { penalty, model, held_out, mut parts, .. } = best;
        let folds = if out_of_fold { self.folds.count } else { self.folds.choosing };
        let mut own = vec![0f32; if folds > 0 { self.fitted.labels.len() * self.classes } else { 0 }];
        let left_out = |out: usize| -> Result<Vec<f32>> {
            let left_out = self.folds.of(out, self.fitted.places);
            let rows = Rows::new(self, fit, |place| !self.folds.holds(out, place));
            match rows {
                // Nobody is left to fit to.
                Ok(rows) if rows.labels.is_empty() => Ok(vec![0.0; left_out.len() * self.classes]),
                rows => {
                    Ok(rows?.fitted(fit, self.classes, penalty)?.logits(self.fitted.inputs, &left_out)?)
                }
            }
        };
        parts.extend((parts.len()..folds).into_par_iter().map(left_out).collect::<Result<Vec<_>>>()?);
        for (out, logits) in parts.iter().enumerate() {
            let places = (out..self.fitted.labels.len()).step_by(self.folds.count);
            for (place, logits) in places.zip(logits.chunks_exact(self.classes)) {
                own[place * self.classes..][..self.classes].copy_from_slice(logits);
            }
        }
        Ok(self.candidate(TableModel::new(model), held_out, own))
    }

    /// The better of a candidate and the same with trees, which read all inputs.
    pub fn boosted(&self, base: Candidate) -> Result<Candidate> {
        let (columns, classes) = (self.columns(), self.classes);
        let outputs = if classes == 2 { 1 } else { classes };
        let rows = (MAX_ENTRIES / columns.max(1) / outputs).min(self.fitted.labels.len());
        let dense = self.fitted.inputs.dense_rows(&self.fitted.places[..rows])?;
        let table = Table::new(&dense, columns, classes);
        drop(dense);
        let mut best = base;
        let configs = if rows * columns < LARGE_TABLE { &[BOOSTING, SMALL_TREES][..] } else { &[BOOSTING] };
        let (start, base_model) = (best.out_of_fold.clone(), best.model.clone());
        let (base_held_out, mut least) = (best.held_out.clone(), mean(&best.log_losses));
        for config in configs {
            let labels = (&self.fitted.labels[..rows], classes);
            let found = cross_fitted(&table, labels, &start[..rows * classes], self.folds.count, config)?;
            let Some(found) = found else { continue };
            let mut held_out = base_held_out.clone();
            found.trees.add_logits(self.held_out.inputs, self.held_out.places, &mut held_out)?;
            let mut out_of_fold = found.out_of_fold;
            out_of_fold.extend_from_slice(&start[rows * classes..]);
            let unseen = &mut out_of_fold[rows * classes..];
            found.trees.add_logits(self.fitted.inputs, &self.fitted.places[rows..], unseen)?;
            let model = TableModel { trees: Some(found.trees), ..base_model.clone() };
            let candidate = self.candidate(model, held_out, out_of_fold);
            let log_loss = mean(&candidate.log_losses);
            if log_loss < least {
                (best, least) = (candidate, log_loss);
            }
        }
        Ok(best)
    }
}

/// A fit with one of the penalties, and the log loss of the rows that choose.
struct Searched {
    log_loss: f64,
    penalty: f64,
    model: Softmax,
    /// Its logits of the rows held out, and for each fold that chooses those of a fit without it.
    held_out: Vec<f32>,
    parts: Vec<Vec<f32>>,
}

/// A kind of fit.
struct Fit<'a> {
    /// What linear weights are pulled towards; zeros where empty.
    centre: &'a [f32],
    hidden: usize,
    steps: usize,
    scales: &'a [f32],
    /// The most rows.
    rows: usize,
}

/// Rows that are fitted to, and where their last fit ended: the next goes on from there.
struct Rows {
    design: Design,
    labels: Vec<u32>,
    start: Option<Start>,
}

impl Rows {
    /// The rows whose places in the list are among these.
    fn new(data: &Labelled<'_>, fit: &Fit<'_>, takes: impl Fn(usize) -> bool) -> Result<Rows> {
        let chosen = |list: &[u32]| -> Vec<u32> {
            let first = list.iter().enumerate().take(fit.rows);
            first.filter(|(place, _)| takes(*place)).map(|(_, &value)| value).collect()
        };
        let inputs = data.fitted.inputs;
        let scales =
            if fit.scales.is_empty() { vec![1.0; inputs.as_slice().len()] } else { fit.scales.to_vec() };
        let places = chosen(data.fitted.places);
        let scaling = progap_nn::RowScaling::None;
        let design = Design::scaled(inputs, &places, &scales, scaling, &[])?;
        Ok(Rows { design, labels: chosen(data.fitted.labels), start: None })
    }

    fn fitted(&mut self, fit: &Fit<'_>, classes: usize, decay: f64) -> Result<Softmax> {
        let task = Task {
            evidence: Evidence::Labels(&self.labels),
            classes,
            row_weights: &[],
            hidden: fit.hidden,
            decay,
            towards: fit.centre,
            iterations: fit.steps,
            tolerance: 1e-6,
            seed: 0,
        };
        let (model, found) = self.design.fit(&task, self.start.as_ref())?;
        self.start = Some(found);
        Ok(model)
    }
}

/// The better of two, the first of equals.
pub(super) fn better(first: Candidate, second: Candidate) -> Candidate {
    if mean(&second.log_losses) < mean(&first.log_losses) { second } else { first }
}

/// The mean; of nothing it is zero.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
