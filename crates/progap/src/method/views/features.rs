//! The features model, `log p(y | x)`: never trusted on rows that it was fitted to.
//!
//! ```text
//! linear   softmax(a(x) W + b),  a(x) one of: x; x / |x|; rare columns in front, then of length one
//!          penalty |W|^2 mean|x|^2 / (strength * rows), the strength chosen on rows that were not seen
//! table    of few columns also a perceptron, and trees beside the better of both (candidates.rs)
//! ```
//!
//! What it says of a training node is said by fits without that node; a temperature is found on that, too.

use std::collections::HashMap;

use progap_nn::{
    Design, Evidence, Input, Inputs, RowScaling, Softmax, Task, cross_entropy, log_losses, shrunk_temperature,
};
use rayon::prelude::*;

use super::candidates::{Candidate, Known, Labelled, better, is_table};
use super::{FOLDS, Splits};
use crate::Result;
use crate::rows::Rows;
use crate::views::{TableModel, log_softmax};

/// Strengths that are tried, as the inverse of a penalty: in units of the rows' own size.
const STRENGTHS: [f64; 9] = [0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1e3, 1e4, 1e5];
/// A scaling is given up after this many strengths in a row without a gain.
const PATIENCE: usize = 2;
/// Rows that a choice is made on: more would choose the same and take longer.
const MOST_ROWS: usize = 4096;
/// Fits end early: from zeros, that is a regulariser of its own.
pub(super) const TOLERANCE: f64 = 1e-4;
pub(super) const ITERATIONS: usize = 100;

/// The fitted view of the features.
pub(super) struct Features {
    /// The model of all training nodes, with its temperature.
    pub model: TableModel,
    /// The logits of training nodes that are fitted to, each by a model that did not see it, and where each of them is.
    pub out_of_fold: Vec<f32>,
    pub places: HashMap<u32, usize>,
}

impl Features {
    /// The log loss of each node that chooses, with the best temperature, as that of stages.
    pub fn log_losses(&self, rows: &Rows, splits: &Splits) -> Result<Vec<f64>> {
        let (choosing, classes) = (splits.choosing(), rows.classes());
        let (known, labels) = (self.known(rows, &choosing)?, Splits::labels(rows, &choosing));
        let temperature = shrunk_temperature(&known, &labels, classes).0;
        Ok(log_losses(&known, &labels, classes, f64::from(temperature)))
    }

    /// The logarithms of the probabilities of some nodes' classes: of a training node by a model that did not see it.
    pub fn known(&self, rows: &Rows, nodes: &[u32]) -> Result<Vec<f32>> {
        let classes = rows.classes();
        let mut known = self.model.logits(&rows.own()?, nodes)?;
        for (node, logits) in nodes.iter().zip(known.chunks_exact_mut(classes)) {
            if let Some(&place) = self.places.get(node) {
                logits.copy_from_slice(&self.out_of_fold[place * classes..][..classes]);
            }
        }
        log_softmax(&mut known, classes);
        Ok(known)
    }

    /// The same, or a perceptron or trees where nodes that choose like these better.
    pub fn or_more_than_linear(self, rows: &Rows, splits: &Splits) -> Result<Features> {
        let (columns, classes) = (rows.own()?.as_slice()[0].columns(), rows.classes());
        if !is_table(columns, classes) || splits.train.len() < 2 {
            return Ok(self);
        }
        // Dense copies of the rows that are read.
        let own = rows.own()?;
        let (fitted, held_out) = (own.dense_rows(&splits.train)?, own.dense_rows(&splits.held_out)?);
        let dense = |values| Inputs::checked_before(vec![Input::Dense { columns, values }]);
        let (fitted, held_out) = (dense(&fitted)?, dense(&held_out)?);
        let places =
            [&splits.train, &splits.held_out].map(|nodes| (0..nodes.len() as u32).collect::<Vec<_>>());
        let labels = [&splits.train, &splits.held_out].map(|nodes| Splits::labels(rows, nodes));
        let data = Labelled {
            fitted: Known { inputs: &fitted, places: &places[0], labels: &labels[0] },
            held_out: Known { inputs: &held_out, places: &places[1], labels: &labels[1] },
            folds: splits.folds(),
            classes,
        };
        let linear = Candidate {
            held_out: self.model.logits(&rows.own()?, &splits.held_out)?,
            log_losses: self.log_losses(rows, splits)?,
            model: self.model,
            out_of_fold: self.out_of_fold,
        };
        let scale = unit_scale(&fitted, columns)?;
        let best = data.boosted(better(linear, data.perceptron(&[], &[scale])?))?;
        Ok(Features { model: best.model, out_of_fold: best.out_of_fold, places: self.places })
    }
}

/// The factor with which the columns of dense rows have a mean square of one.
pub(super) fn unit_scale(rows: &Inputs<'_>, columns: usize) -> Result<f32> {
    let everyone: Vec<u32> = (0..rows.rows() as u32).collect();
    let square = mean_square(rows, &everyone)? / columns.max(1) as f64;
    Ok(if square > 0.0 { (1.0 / square.sqrt()) as f32 } else { 1.0 })
}

/// A way to scale rows, with the factor that brings them back to their usual length.
pub(super) struct Scaling {
    pub scaling: RowScaling,
    pub weights: Vec<f32>,
    pub scale: f32,
}

/// Fits the linear model; what it says of training nodes is said out of fold.
pub(super) fn linear(rows: &Rows, splits: &Splits) -> Result<Features> {
    let (inputs, classes) = (&rows.own()?, rows.classes());
    let square = mean_square(inputs, &splits.sample)?.max(1e-12);
    let fitted = |nodes: &[u32], way: &Scaling, strength: f64| -> Result<Softmax> {
        let design = Design::scaled(inputs, nodes, &[way.scale], way.scaling, &way.weights)?;
        let task = Task {
            evidence: Evidence::Labels(&Splits::labels(rows, nodes)),
            classes,
            row_weights: &[],
            hidden: 0,
            decay: square / (strength * nodes.len() as f64),
            towards: &[],
            iterations: ITERATIONS,
            tolerance: TOLERANCE,
            seed: 0,
        };
        Ok(design.fit(&task, None)?.0)
    };
    let folds = FOLDS.min(splits.train.len());
    let fold = |out: usize, inside: bool| -> Vec<u32> {
        let places = (0..splits.train.len()).filter(|place| (place % folds == out) == inside);
        places.map(|place| splits.train[place]).collect()
    };
    let (mut seen, mut validate) = (fold(0, false), fold(0, true));
    if seen.is_empty() {
        seen.clone_from(&validate);
    }
    validate.extend(&splits.held_out);
    seen.truncate(MOST_ROWS);
    validate.truncate(MOST_ROWS);
    let truth = Splits::labels(rows, &validate);
    let mut best: Option<(f64, Scaling, f64)> = None;
    for way in scalings(inputs.as_slice()[0], rows.labels().len(), square) {
        let mut least: Option<(f64, f64)> = None;
        let mut patience = PATIENCE;
        for strength in STRENGTHS {
            let logits = fitted(&seen, &way, strength)?.logits(inputs, &validate)?;
            let loss = shrunk_temperature(&logits, &truth, classes).1;
            if least.is_none_or(|(least, _)| loss < least) {
                (least, patience) = (Some((loss, strength)), PATIENCE);
            } else {
                patience -= 1;
                if patience == 0 {
                    break;
                }
            }
        }
        if let Some((loss, strength)) = least.filter(|(loss, _)| best.as_ref().is_none_or(|b| *loss < b.0)) {
            best = Some((loss, way, strength));
        }
    }
    let (_, way, strength) = best.ok_or(crate::Error::internal("no scaling was tried"))?;
    let mut model = fitted(&splits.train, &way, strength)?;
    let by_others = |out: usize| -> Result<(Vec<u32>, Vec<f32>)> {
        let (seen, left_out) = (fold(out, false), fold(out, true));
        let logits = match seen.is_empty() {
            true => vec![0.0; left_out.len() * classes],
            false => fitted(&seen, &way, strength)?.logits(inputs, &left_out)?,
        };
        Ok((left_out, logits))
    };
    let places: HashMap<u32, usize> = splits.train.iter().enumerate().map(|(at, &node)| (node, at)).collect();
    let mut out_of_fold = vec![0f32; splits.train.len() * classes];
    for (left_out, logits) in (0..folds).into_par_iter().map(by_others).collect::<Result<Vec<_>>>()? {
        for (node, logits) in left_out.iter().zip(logits.chunks_exact(classes)) {
            out_of_fold[places[node] * classes..][..classes].copy_from_slice(logits);
        }
    }
    let labels = Splits::labels(rows, &splits.train);
    let (temperature, loss) = shrunk_temperature(&out_of_fold, &labels, classes);
    // Of very few rows no temperature can be told.
    if loss < cross_entropy(&out_of_fold, &labels, classes, 1.0) {
        model.scale_logits(temperature);
        out_of_fold.iter_mut().for_each(|logit| *logit *= temperature);
    }
    Ok(Features { model: TableModel::new(model), out_of_fold, places })
}

/// The mean of the squared norms of some rows, which are never all copied.
pub(super) fn mean_square(inputs: &Inputs<'_>, nodes: &[u32]) -> Result<f64> {
    const ROWS_AT_ONCE: usize = 1 << 16;
    let mut sum = 0.0;
    for block in nodes.chunks(ROWS_AT_ONCE) {
        progap_graph::store::release_pages_if_full();
        sum += Design::new(inputs, block)?.mean_square() * (block.len() as f64 / nodes.len() as f64);
    }
    Ok(sum)
}

/// Rows as they are; of one length; and, where they are sparse, of one length with rare columns in front.
pub(super) fn scalings(input: Input<'_>, rows: usize, square: f64) -> Vec<Scaling> {
    let (columns, scale) = (input.columns(), square.sqrt() as f32);
    let unit = |weights| Scaling { scaling: RowScaling::WeightedUnit, weights, scale };
    let mut all =
        vec![Scaling { scaling: RowScaling::None, weights: vec![], scale: 1.0 }, unit(vec![1.0; columns])];
    if let Input::Sparse { indices, values, .. } = input {
        let mut found = vec![1f64; columns];
        for (first, columns) in indices.chunks(1 << 18).enumerate().map(|(at, block)| (at << 18, block)) {
            progap_graph::store::note_read(2 * size_of_val(columns));
            for (at, &column) in columns.iter().enumerate() {
                let is_there = values.is_none_or(|values| values[first + at] != 0.0);
                found[column as usize] += f64::from(u8::from(is_there));
            }
        }
        let rare = |found: f64| (rows as f64 / found).ln().max(0.0) as f32;
        all.push(unit(found.into_iter().map(rare).collect()));
    }
    all
}
