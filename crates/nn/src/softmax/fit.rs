//! Fitting a model to what is known of the rows' classes: a smooth loss, brought to its minimum.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;

use super::design::{Design, Sparse, Values};
use super::lbfgs::minimise;
use super::loss::Known;
use super::model::{Softmax, SoftmaxShape};
use crate::error::{Error, Result, check_length};
use crate::kernel::exp::tanh;
use crate::kernel::product::{Matrix, Start as From, add_outer, add_rows, affine};
use crate::kernel::{for_lanes, lanes, lanes_mut, padded, vectorised};
use crate::train::collective::{Collective, own_part, together, together_single};

/// Rows in the smallest chunk, and the most chunks: only the number of rows decides how they are cut.
const CHUNK: usize = 1024;
const CHUNKS: usize = 64;
/// Rows worked on at once.
const BLOCK: usize = 256;

/// The evidence about the class of each row.
#[derive(Debug, Clone, Copy)]
pub enum Evidence<'a> {
    /// The class itself.
    Labels(&'a [u32]),
    /// How likely what is known of the row would be in each class, up to a factor for each row: a row of classes for
    /// each.
    Likelihoods(&'a [f32]),
    /// How probable each class is, as someone else says: a row of classes for each, which adds up to one.
    Targets(&'a [f32]),
}

/// The task of a fit.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// The evidence about each row of the design.
    pub evidence: Evidence<'a>,
    /// The number of classes.
    pub classes: usize,
    /// How much each row counts; all the same where empty.
    pub row_weights: &'a [f32],
    /// The width of a hidden layer beside the linear one; 0 for none.
    pub hidden: usize,
    /// The strength of the penalty `decay / 2 |W - W0|²` on all weights but biases.
    pub decay: f64,
    /// `W0` of the linear layer, columns of the design x classes; zeros where empty.
    pub towards: &'a [f32],
    /// The most steps.
    pub iterations: usize,
    /// The search ends where no partial derivative is larger than this. Far from the optimum that is a regulariser of
    /// its own.
    pub tolerance: f64,
    /// Where the initial values of a hidden layer come from.
    pub seed: u64,
}

/// Parameters of a fit, as precise as they were found: where another one can start.
#[derive(Debug, Clone)]
pub struct Start(Vec<f64>);

impl Design {
    /// The model that minimises the mean over the rows of `-log Σ_c evidence_c p_c(x)`, plus the penalty. With labels
    /// that is the cross-entropy, and with targets it is the cross-entropy in their mean, `-Σ_c target_c log p_c(x)`;
    /// with likelihoods of a second view of each row it is the likelihood of that view given this one, whose minimum
    /// does not confuse classes that the second view confuses.
    ///
    /// The same on any number of threads.
    pub fn fit(&self, task: &Task<'_>, start: Option<&Start>) -> Result<(Softmax, Start)> {
        self.fit_together(task, start, None)
    }

    /// Where a fit can start that is not to start at the centre of its penalty: weights of the linear layer, columns x
    /// classes.
    ///
    /// # Errors
    /// Weights of another length; a task that does not fit the rows.
    pub fn start_at(&self, task: &Task<'_>, linear: &[f32]) -> Result<Start> {
        check_length("list of weights", linear.len(), self.columns() * task.classes)?;
        Ok(Start(Problem::new(self, task)?.initial(linear)))
    }

    /// As [`Design::fit`], by several processes that all have these rows and this task: each works on its part of the
    /// chunks, and all of them fold the sums of all chunks in one order, so that the model has the bits of one process.
    ///
    /// # Errors
    /// As [`Design::fit`]; a process that is gone.
    pub fn fit_together(
        &self,
        task: &Task<'_>,
        start: Option<&Start>,
        collective: Option<&dyn Collective>,
    ) -> Result<(Softmax, Start)> {
        let collective = collective.filter(|collective| collective.place().1 > 1);
        let problem = Problem { collective, ..Problem::new(self, task)? };
        let start = match start {
            Some(start) => {
                check_length("list of initial values", start.0.len(), problem.parameter_count())?;
                start.0.clone()
            }
            None => problem.initial(task.towards),
        };
        let mut lost = None;
        let value = |at: &[f64], gradient: &mut [f64]| match &lost {
            None => problem.value(at, gradient).unwrap_or_else(|error| {
                lost = Some(error);
                f64::NAN
            }),
            // Nobody is asked any more.
            Some(_) => f64::NAN,
        };
        let found = minimise(value, start, task.iterations, task.tolerance);
        lost.map_or_else(|| Ok((problem.model(&found), Start(found))), Err)
    }
}

struct Problem<'a> {
    design: &'a Design,
    task: &'a Task<'a>,
    columns: usize,
    /// Classes and the hidden width, padded. What is padding stays zero.
    padded: usize,
    hidden: usize,
    /// One over the sum of all row weights.
    share: f64,
    /// The way to other processes, where there are any.
    collective: Option<&'a dyn Collective>,
}

/// The parts of a list of parameters.
struct Parts<'p, T> {
    linear: &'p [T],
    inner: &'p [T],
    inner_bias: &'p [T],
    outer: &'p [T],
    bias: &'p [T],
}

impl<'a> Problem<'a> {
    fn new(design: &'a Design, task: &'a Task<'a>) -> Result<Self> {
        let classes = task.classes;
        match task.evidence {
            Evidence::Labels(labels) => {
                design.check_fits(labels.len())?;
                if let Some(row) = labels.iter().position(|&label| label as usize >= classes) {
                    return Err(Error::Label { row: row as u32, label: labels[row], classes });
                }
            }
            Evidence::Likelihoods(values) | Evidence::Targets(values) => {
                design.check_fits(values.len() / classes.max(1))?;
                check_length("list of what is known", values.len(), design.rows * classes)?;
            }
        }
        if !task.row_weights.is_empty() {
            check_length("list of row weights", task.row_weights.len(), design.rows)?;
        }
        if !task.towards.is_empty() {
            check_length("list of weights", task.towards.len(), design.columns() * classes)?;
        }
        if task.hidden > 0 && matches!(design.values, Values::Sparse { .. }) {
            return Err(Error::Setting {
                what: "the hidden width",
                value: task.hidden.to_string(),
                allowed: "0 on sparse rows",
            });
        }
        let total: f64 = match task.row_weights {
            [] => design.rows as f64,
            weights => weights.iter().map(|&weight| f64::from(weight)).sum(),
        };
        let hidden = if task.hidden == 0 { 0 } else { padded(task.hidden) };
        let columns = design.columns();
        let (padded, share) = (padded(classes), 1.0 / total);
        Ok(Problem { design, task, columns, padded, hidden, share, collective: None })
    }

    /// The number of parameters, with padding.
    fn parameter_count(&self) -> usize {
        let (columns, hidden, classes) = (self.columns, self.hidden, self.padded);
        columns * classes + columns * hidden + hidden + hidden * classes + classes
    }

    fn parts<'p, T>(&self, values: &'p [T]) -> Parts<'p, T> {
        let (columns, hidden, classes) = (self.columns, self.hidden, self.padded);
        let (linear, rest) = values.split_at(columns * classes);
        let (inner, rest) = rest.split_at(columns * hidden);
        let (inner_bias, rest) = rest.split_at(hidden);
        let (outer, bias) = rest.split_at(hidden * classes);
        Parts { linear, inner, inner_bias, outer, bias }
    }

    /// These weights for the linear layer; a hidden layer that says next to nothing.
    fn initial(&self, linear: &[f32]) -> Vec<f64> {
        let (columns, hidden, classes) = (self.columns, self.task.hidden, self.task.classes);
        let mut start = vec![0.0; self.parameter_count()];
        for (row, weights) in linear.chunks_exact(classes.max(1)).enumerate() {
            for (to, &from) in start[row * self.padded..].iter_mut().zip(weights) {
                *to = f64::from(from);
            }
        }
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.task.seed);
        let mut uniform = || (rng.next_u64() >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
        let inner = columns * self.padded;
        let outer = inner + (columns + 1) * self.hidden;
        // Uniform numbers with the given standard deviations.
        let wide = (3.0 / columns.max(1) as f64).sqrt();
        for row in start[inner..][..columns * self.hidden].chunks_exact_mut(self.hidden.max(1)) {
            row[..hidden].fill_with(|| wide * uniform());
        }
        let small = 0.1 * (3.0 / hidden.max(1) as f64).sqrt();
        for row in 0..hidden {
            start[outer + row * self.padded..][..classes].fill_with(|| small * uniform());
        }
        start
    }

    /// The loss, and its gradient. Products are in single precision, sums over more than a block of rows in double.
    fn value(&self, at: &[f64], gradient: &mut [f64]) -> Result<f64> {
        let single: Vec<f32> = at.iter().map(|&value| value as f32).collect();
        let parts = self.parts(&single);
        let data = match &self.design.values {
            Values::Sparse { by_row, by_column } => self.sparse(by_row, by_column, &parts, gradient)?,
            Values::Dense(values) => self.dense(values, &parts, gradient)?,
        };
        Ok(data + self.penalty(at, gradient))
    }

    /// The penalty; its gradient is added.
    fn penalty(&self, at: &[f64], gradient: &mut [f64]) -> f64 {
        let (classes, decay) = (self.task.classes, self.task.decay);
        let (linear, inner) = (self.columns * self.padded, self.columns * self.hidden);
        let outer = linear + inner + self.hidden;
        let mut square = 0.0;
        let mut pull = |value: f64, centre: f64, gradient: &mut f64| {
            square += (value - centre).powi(2);
            *gradient += decay * (value - centre);
        };
        let towards = |place: usize| match self.task.towards {
            towards if !towards.is_empty() && place % self.padded < classes => {
                f64::from(towards[place / self.padded * classes + place % self.padded])
            }
            _ => 0.0,
        };
        for place in 0..linear {
            pull(at[place], towards(place), &mut gradient[place]);
        }
        for place in (linear..linear + inner).chain(outer..outer + self.hidden * self.padded) {
            pull(at[place], 0.0, &mut gradient[place]);
        }
        0.5 * decay * square
    }

    fn chunk(&self) -> usize {
        self.design.rows.div_ceil(CHUNKS).max(CHUNK)
    }

    fn known(&self) -> Known<'a> {
        let Task { evidence, row_weights, classes, .. } = *self.task;
        Known { evidence, weights: row_weights, classes, share: self.share }
    }

    /// Rows that are sparse: one pass over rows for the logits, one over columns for the gradient.
    fn sparse(
        &self,
        by_row: &Sparse,
        by_column: &Sparse,
        parts: &Parts<'_, f32>,
        gradient: &mut [f64],
    ) -> Result<f64> {
        let (padded, size) = (self.padded, self.chunk());
        let own = own_part(self.collective, self.design.rows.div_ceil(size));
        let rows = own.start * size..(own.end * size).min(self.design.rows);
        let mut slopes = vec![0f32; rows.len() * padded];
        let losses: Vec<f64> = slopes
            .par_chunks_mut(size * padded)
            .enumerate()
            .map(|(at, slopes)| {
                let chunk = own.start + at;
                let blocks = slopes.chunks_mut(BLOCK * padded).enumerate().map(|(block, slopes)| {
                    let first = chunk * size + block * BLOCK;
                    slopes.chunks_exact_mut(padded).for_each(|row| row.copy_from_slice(parts.bias));
                    gather(by_row, first, parts.linear, padded, slopes);
                    self.known().of(first, slopes.len() / padded).loss(slopes, padded)
                });
                blocks.sum()
            })
            .collect();
        let losses = together(self.collective, losses)?;
        let slopes = together_single(self.collective, slopes)?;
        let (linear, rest) = gradient.split_at_mut(self.columns * padded);
        let columns = own_part(self.collective, self.columns);
        let mut sums = vec![0f32; columns.len() * padded];
        sums.par_chunks_mut(CHUNK * padded).enumerate().for_each(|(chunk, sums)| {
            gather(by_column, columns.start + chunk * CHUNK, &slopes, padded, sums);
        });
        let sums = together_single(self.collective, sums)?;
        linear.iter_mut().zip(sums).for_each(|(to, sum)| *to = f64::from(sum));
        rest.fill(0.0);
        for block in slopes.chunks(BLOCK * padded) {
            let mut sums = vec![0f32; padded];
            let rows = block.len() / padded;
            add_rows(rows, Matrix { values: block, stride: padded }, padded, &mut sums);
            rest.iter_mut().zip(sums).for_each(|(to, sum)| *to += f64::from(sum));
        }
        Ok(losses.iter().sum())
    }

    /// Rows that are dense: one pass, with sums of its own for each chunk.
    fn dense(&self, values: &[f32], parts: &Parts<'_, f32>, gradient: &mut [f64]) -> Result<f64> {
        let size = self.chunk();
        let own = own_part(self.collective, self.design.rows.div_ceil(size));
        let back = self.transposed_outer(parts);
        let sums: Vec<Vec<f64>> = own
            .into_par_iter()
            .map(|chunk| {
                let rows = chunk * size..((chunk + 1) * size).min(self.design.rows);
                // The gradient, and behind it the loss.
                let (mut sums, mut block) = (vec![0f64; self.parameter_count() + 1], Block::new(self));
                let (loss, gradient) = sums.split_last_mut().expect("there is a loss");
                for first in rows.clone().step_by(BLOCK) {
                    let end = (first + BLOCK).min(rows.end);
                    let x = &values[first * self.columns..end * self.columns];
                    *loss += self.dense_block(x, (first, end - first), parts, &back, &mut block);
                    gradient.iter_mut().zip(&mut block.gradient).for_each(|(to, from)| {
                        *to += f64::from(*from);
                        *from = 0.0;
                    });
                }
                sums
            })
            .collect();
        gradient.fill(0.0);
        let mut add = |sum: &[f64]| {
            gradient.iter_mut().zip(sum).for_each(|(to, from)| *to += from);
            sum[self.parameter_count()]
        };
        Ok(match self.collective {
            None => sums.iter().map(|sum| add(sum)).sum(),
            others => {
                together(others, sums.concat())?.chunks_exact(self.parameter_count() + 1).map(&mut add).sum()
            }
        })
    }

    fn transposed_outer(&self, parts: &Parts<'_, f32>) -> Vec<f32> {
        let (hidden, padded) = (self.hidden, self.padded);
        let mut back = vec![0f32; padded * hidden];
        for (row, weights) in parts.outer.chunks_exact(padded).enumerate() {
            weights.iter().enumerate().for_each(|(column, &weight)| back[column * hidden + row] = weight);
        }
        back
    }

    fn dense_block(
        &self,
        x: &[f32],
        (first, rows): (usize, usize),
        parts: &Parts<'_, f32>,
        back: &[f32],
        block: &mut Block,
    ) -> f64 {
        let (padded, columns, hidden) = (self.padded, self.columns, self.hidden);
        let x = Matrix { values: x, stride: columns };
        let (logits, active) = (&mut block.logits[..rows * padded], &mut block.active[..rows * hidden]);
        affine(rows, x, parts.linear, From::Row(parts.bias), padded, logits);
        if hidden > 0 {
            affine(rows, x, parts.inner, From::Row(parts.inner_bias), hidden, active);
            tanh_all(active);
            let active = Matrix { values: active, stride: hidden };
            affine(rows, active, parts.outer, From::Sum, padded, logits);
        }
        let loss = self.known().of(first, rows).loss(logits, padded);
        let (linear, rest) = block.gradient.split_at_mut(columns * padded);
        let (inner, rest) = rest.split_at_mut(columns * hidden);
        let (inner_bias, rest) = rest.split_at_mut(hidden);
        let (outer, bias) = rest.split_at_mut(hidden * padded);
        add_outer(rows, x, columns, logits, padded, linear);
        let slopes = Matrix { values: logits, stride: padded };
        add_rows(rows, slopes, padded, bias);
        if hidden > 0 {
            add_outer(rows, Matrix { values: active, stride: hidden }, hidden, logits, padded, outer);
            let inside = &mut block.inside[..rows * hidden];
            affine(rows, slopes, back, From::Zero, hidden, inside);
            through_tanh(active, inside);
            add_outer(rows, x, columns, inside, hidden, inner);
            add_rows(rows, Matrix { values: inside, stride: hidden }, hidden, inner_bias);
        }
        loss
    }

    /// The model with these parameters: padding dropped, scales of inputs taken into the weights.
    fn model(&self, found: &[f64]) -> Softmax {
        let (classes, padded, hidden) = (self.task.classes, self.padded, self.task.hidden);
        let parts: Parts<'_, f64> = self.parts(found);
        let scales = self.design.widths.iter().zip(&self.design.scales);
        let scales: Vec<f64> =
            scales.flat_map(|(&width, &scale)| std::iter::repeat_n(f64::from(scale), width)).collect();
        let scaled = |values: &[f64], stored: usize, wanted: usize| -> Vec<f32> {
            let rows = values.chunks_exact(stored.max(1)).zip(&scales);
            rows.flat_map(|(row, scale)| row[..wanted].iter().map(move |value| (value * scale) as f32))
                .collect()
        };
        let plain = |values: &[f64]| -> Vec<f32> {
            values
                .chunks_exact(padded)
                .flat_map(|row| row[..classes].iter().map(|&value| value as f32))
                .collect()
        };
        let mut parameters = scaled(parts.linear, padded, classes);
        if hidden > 0 {
            parameters.extend(scaled(parts.inner, self.hidden, hidden));
            parameters.extend(parts.inner_bias[..hidden].iter().map(|&value| value as f32));
            parameters.extend(plain(&parts.outer[..hidden * padded]));
        }
        parameters.extend(plain(parts.bias));
        let shape = SoftmaxShape {
            inputs: self.design.widths.clone(),
            hidden,
            classes,
            scaling: self.design.scaling,
        };
        Softmax::from_parts(shape, parameters, self.design.column_weights.clone())
    }
}

/// The working memory of a thread.
struct Block {
    logits: Vec<f32>,
    active: Vec<f32>,
    inside: Vec<f32>,
    gradient: Vec<f32>,
}

impl Block {
    fn new(problem: &Problem<'_>) -> Block {
        let room = |width: usize| vec![0f32; BLOCK * width];
        Block {
            logits: room(problem.padded),
            active: room(problem.hidden),
            inside: room(problem.hidden),
            gradient: vec![0f32; problem.parameter_count()],
        }
    }
}

vectorised! {
    pub(super) fn tanh_all<'a>(values: &'a mut [f32]) {
        for value in values {
            *value = tanh(*value);
        }
    }
}

vectorised! {
    /// Gradients after a tanh in, gradients before it out.
    fn through_tanh<'a>(active: &'a [f32], slopes: &'a mut [f32]) {
        for (slope, active) in slopes.iter_mut().zip(active) {
            *slope *= 1.0 - active * active;
        }
    }
}

vectorised! {
    /// Adds to each row of `out` the rows of `table` that its entries name, times their values.
    pub(super) fn gather<'a>(entries: &'a Sparse, first: usize, table: &'a [f32], width: usize, out: &'a mut [f32]) {
        for (row, out) in out.chunks_exact_mut(width).enumerate() {
            let (indices, values) = entries.entries(first + row);
            for_lanes!(width, L, at, {
                let mut sum: [f32; L] = *lanes(out, at);
                for (&index, &value) in indices.iter().zip(values) {
                    let row: &[f32; L] = lanes(table, index as usize * width + at);
                    for j in 0..L {
                        sum[j] = value.mul_add(row[j], sum[j]);
                    }
                }
                *lanes_mut(out, at) = sum;
            });
        }
    }
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
