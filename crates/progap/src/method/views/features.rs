//! The first view: multinomial logistic regression on the features, never trusted on rows that it was fitted to.

use std::collections::HashMap;

use progap_nn::{
    Design, Evidence, Input, Inputs, RowScaling, Softmax, Task, cross_entropy, log_losses, shrunk_temperature,
};
use rayon::prelude::*;

use super::{FOLDS, Roles};
use crate::Result;
use crate::rows::Rows;
use crate::views::log_softmax;

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
    /// The model of all training nodes.
    pub model: Softmax,
    /// The same before its temperature, which comes to its logits as it does to those out of fold.
    pub plain: Softmax,
    pub temperature: f32,
    /// The logits of training nodes that teach, each by a model that did not see it, and where each of them is.
    pub out_of_fold: Vec<f32>,
    pub places: HashMap<u32, usize>,
}

impl Features {
    /// The log loss of each node that judges, with the best temperature, as stages are judged.
    pub fn log_losses(&self, rows: &Rows, roles: &Roles) -> Result<Vec<f64>> {
        let (judges, classes) = (roles.judges(), rows.classes());
        let (known, labels) = (self.known(rows, &judges)?, Roles::labels(rows, &judges));
        let temperature = shrunk_temperature(&known, &labels, classes).0;
        Ok(log_losses(&known, &labels, classes, f64::from(temperature)))
    }

    /// The logarithms of the probabilities of some nodes' classes: of a training node by a model that did not see it.
    pub fn known(&self, rows: &Rows, nodes: &[u32]) -> Result<Vec<f32>> {
        let classes = rows.classes();
        let mut known = self.plain.logits(&rows.own()?, nodes)?;
        for (node, logits) in nodes.iter().zip(known.chunks_exact_mut(classes)) {
            if let Some(&place) = self.places.get(node) {
                logits.copy_from_slice(&self.out_of_fold[place * classes..][..classes]);
            }
        }
        if self.temperature != 1.0 {
            known.iter_mut().for_each(|value| *value *= self.temperature);
        }
        log_softmax(&mut known, classes);
        Ok(known)
    }
}

/// A way to scale rows, with the factor that brings them back to their usual length.
pub(super) struct Scaling {
    pub scaling: RowScaling,
    pub weights: Vec<f32>,
    pub scale: f32,
}

/// Fits the features model; what it says of training nodes is said out of fold.
pub(super) fn fit(rows: &Rows, roles: &Roles) -> Result<Features> {
    let (inputs, classes) = (&rows.own()?, rows.classes());
    let square = mean_square(inputs, &roles.sample)?.max(1e-12);
    let fitted = |nodes: &[u32], way: &Scaling, strength: f64| -> Result<Softmax> {
        let design = Design::scaled(inputs, nodes, &[way.scale], way.scaling, &way.weights)?;
        let task = Task {
            evidence: Evidence::Labels(&Roles::labels(rows, nodes)),
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
    let folds = FOLDS.min(roles.train.len());
    let fold = |out: usize, inside: bool| -> Vec<u32> {
        let places = (0..roles.train.len()).filter(|place| (place % folds == out) == inside);
        places.map(|place| roles.train[place]).collect()
    };
    let (mut teach, mut validate) = (fold(0, false), fold(0, true));
    if teach.is_empty() {
        teach.clone_from(&validate);
    }
    validate.extend(&roles.held_out);
    teach.truncate(MOST_ROWS);
    validate.truncate(MOST_ROWS);
    let truth = Roles::labels(rows, &validate);
    let mut best: Option<(f64, Scaling, f64)> = None;
    for way in scalings(inputs.as_slice()[0], rows.labels().len(), square) {
        let mut least: Option<(f64, f64)> = None;
        let mut patience = PATIENCE;
        for strength in STRENGTHS {
            let logits = fitted(&teach, &way, strength)?.logits(inputs, &validate)?;
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
    let (_, way, strength) = best.ok_or(crate::Error::Internal("no scaling was tried"))?;
    let mut model = fitted(&roles.train, &way, strength)?;
    let plain = model.clone();
    let told_out_of_fold = |out: usize| -> Result<(Vec<u32>, Vec<f32>)> {
        let (teach, told) = (fold(out, false), fold(out, true));
        let logits = match teach.is_empty() {
            true => vec![0.0; told.len() * classes],
            false => fitted(&teach, &way, strength)?.logits(inputs, &told)?,
        };
        Ok((told, logits))
    };
    let places: HashMap<u32, usize> = roles.train.iter().enumerate().map(|(at, &node)| (node, at)).collect();
    let mut out_of_fold = vec![0f32; roles.train.len() * classes];
    for (told, logits) in (0..folds).into_par_iter().map(told_out_of_fold).collect::<Result<Vec<_>>>()? {
        for (node, logits) in told.iter().zip(logits.chunks_exact(classes)) {
            out_of_fold[places[node] * classes..][..classes].copy_from_slice(logits);
        }
    }
    let labels = Roles::labels(rows, &roles.train);
    let (mut temperature, loss) = shrunk_temperature(&out_of_fold, &labels, classes);
    // Of very few rows no temperature can be told.
    match loss < cross_entropy(&out_of_fold, &labels, classes, 1.0) {
        true => model.scale_logits(temperature),
        false => temperature = 1.0,
    }
    Ok(Features { model, plain, temperature, out_of_fold, places })
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
