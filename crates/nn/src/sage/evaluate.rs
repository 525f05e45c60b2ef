//! Evaluation: running statistics, no dropout. Aggregates need every row once; after that rows are on their own.

use rayon::prelude::*;

use super::pass::{PreparedNetwork, Scratch, Sources};
use super::{Propagate, Sage};
use crate::error::{Error, Result, check_length};
use crate::input::{Batch, Inputs, check_rows};
use crate::layer::linear::Operand;
use crate::layout::padded_width;
use crate::loss::{arg_max, softmax};
use crate::pass::BLOCK;

impl Sage {
    /// The inputs of the convolutions from the neighbours, in evaluation: for each convolution `rows * hidden` values.
    ///
    /// They are all that predictions need of the graph.
    pub fn aggregates(&self, inputs: &Inputs<'_>, propagate: &impl Propagate) -> Result<Vec<Vec<f32>>> {
        let mut aggregates = vec![];
        let width = padded_width(self.architecture.hidden);
        let last =
            self.each_aggregate(inputs, propagate, |aggregate| aggregates.push(self.unpadded(aggregate)))?;
        let mut aggregate = vec![0.0; inputs.rows() * width];
        propagate.forward(width, &last, &mut aggregate);
        aggregates.push(self.unpadded(&aggregate));
        Ok(aggregates)
    }

    /// As [`Sage::accuracy`] with [`Sage::aggregates`], but the last convolution is computed for the batch alone.
    pub fn accuracy_along(&self, batch: Batch<'_>, propagate: &impl Propagate) -> Result<f64> {
        let (hidden, width) = (self.architecture.hidden, padded_width(self.architecture.hidden));
        let mut aggregates = vec![];
        let last = self
            .each_aggregate(batch.inputs, propagate, |aggregate| aggregates.push(self.unpadded(aggregate)))?;
        let mut aggregate = vec![0.0; batch.len() * width];
        propagate.forward_rows(width, &last, batch.rows, &mut aggregate);
        let mut scattered = vec![0.0; batch.inputs.rows() * hidden];
        for (aggregate, &row) in aggregate.chunks_exact(width).zip(batch.rows) {
            scattered[row as usize * hidden..][..hidden].copy_from_slice(&aggregate[..hidden]);
        }
        aggregates.push(scattered);
        self.accuracy(batch, &aggregates)
    }

    fn unpadded(&self, rows: &[f32]) -> Vec<f32> {
        let (hidden, width) = (self.architecture.hidden, padded_width(self.architecture.hidden));
        if hidden == width {
            return rows.to_vec();
        }
        rows.chunks_exact(width).flat_map(|row| &row[..hidden]).copied().collect()
    }

    /// Shows the aggregate of each convolution but the last, and gives the rows of which the last one is made.
    fn each_aggregate(
        &self,
        inputs: &Inputs<'_>,
        propagate: &impl Propagate,
        mut show: impl FnMut(&[f32]),
    ) -> Result<Vec<f32>> {
        self.check_inputs(inputs)?;
        Self::check_nodes(inputs, propagate)?;
        let ready = PreparedNetwork::new(self, false);
        let (width, nodes) = (ready.padded_width, inputs.rows());
        let rows: Vec<u32> = (0..nodes as u32).collect();
        let input = inputs.as_slice()[0];
        let mut own = vec![0.0; nodes * width];
        let blocks = rows.par_chunks(BLOCK).zip(own.par_chunks_mut(BLOCK * width));
        blocks.with_min_len(16).for_each_init(
            || (Scratch::new(&ready), vec![0.0; BLOCK * width]),
            |(scratch, earlier), (rows, own)| {
                for block in 0..self.architecture.base_layers {
                    let from = Sources { input, rows, aggregate: &[] };
                    ready.run(block, from, |_| earlier, scratch, own);
                    earlier[..own.len()].copy_from_slice(own);
                }
            },
        );
        let blocks = self.architecture.convolution_blocks();
        let [mut aggregate, mut next] =
            [(); 2].map(|()| vec![0.0; if blocks.len() > 1 { own.len() } else { 0 }]);
        for block in blocks.start..blocks.end - 1 {
            propagate.forward(width, &own, &mut aggregate);
            show(&aggregate);
            let lists = own.par_chunks(BLOCK * width).zip(aggregate.par_chunks(BLOCK * width));
            let blocks = rows.par_chunks(BLOCK).zip(lists).zip(next.par_chunks_mut(BLOCK * width));
            blocks.with_min_len(16).for_each_init(
                || Scratch::new(&ready),
                |scratch, ((rows, (own, aggregate)), next)| {
                    ready.run(block, Sources { input, rows, aggregate }, |_| own, scratch, next);
                },
            );
            std::mem::swap(&mut own, &mut next);
        }
        Ok(own)
    }

    /// Logits of the given rows: a row of classes for each.
    pub fn logits<A: AsRef<[f32]> + Sync>(
        &self,
        inputs: &Inputs<'_>,
        aggregates: &[A],
        rows: &[u32],
    ) -> Result<Vec<f32>> {
        self.outputs(inputs, aggregates, rows, false)
    }

    /// Class probabilities of the given rows: a row of classes for each.
    pub fn probabilities<A: AsRef<[f32]> + Sync>(
        &self,
        inputs: &Inputs<'_>,
        aggregates: &[A],
        rows: &[u32],
    ) -> Result<Vec<f32>> {
        self.outputs(inputs, aggregates, rows, true)
    }

    /// The share of the batch's rows whose class gets the largest logit (the first of equals).
    pub fn accuracy<A: AsRef<[f32]> + Sync>(&self, batch: Batch<'_>, aggregates: &[A]) -> Result<f64> {
        if batch.is_empty() {
            return Err(Error::SmallBatch { rows: 0, why: "an accuracy needs at least one row" });
        }
        let logits = self.outputs(batch.inputs, aggregates, batch.rows, false)?;
        let correct = batch
            .rows
            .iter()
            .zip(logits.chunks_exact(self.architecture.classes))
            .filter(|(row, logits)| arg_max(logits) == batch.class(**row, self.architecture.classes))
            .count();
        Ok(correct as f64 / batch.len() as f64)
    }

    fn outputs<A: AsRef<[f32]> + Sync>(
        &self,
        inputs: &Inputs<'_>,
        aggregates: &[A],
        rows: &[u32],
        normalised: bool,
    ) -> Result<Vec<f32>> {
        self.check_inputs(inputs)?;
        check_rows(inputs, rows)?;
        let (arch, hidden) = (&self.architecture, self.architecture.hidden);
        check_length("list of aggregates", aggregates.len(), arch.convolutions)?;
        for (i, aggregate) in aggregates.iter().enumerate() {
            check_length(format!("aggregate {i}"), aggregate.as_ref().len(), inputs.rows() * hidden)?;
        }
        let ready = PreparedNetwork::new(self, false);
        let (width, input) = (ready.padded_width, inputs.as_slice()[0]);
        let head = ready.weights.last().expect("there is a head");
        let mut out = vec![0.0; rows.len() * arch.classes];
        let work = rows.par_chunks(BLOCK).zip(out.par_chunks_mut(BLOCK * arch.classes));
        work.with_min_len(16).for_each_init(
            || {
                (
                    Scratch::new(&ready),
                    vec![vec![0.0; BLOCK * width]; arch.blocks()],
                    vec![0.0; BLOCK * width],
                )
            },
            |(scratch, outs, aggregate), (rows, out)| {
                for block in 0..arch.blocks() {
                    if arch.convolution_blocks().contains(&block) {
                        let all = aggregates[block - arch.base_layers].as_ref();
                        for (own, &row) in aggregate.chunks_exact_mut(width).zip(rows) {
                            own[..hidden].copy_from_slice(&all[row as usize * hidden..][..hidden]);
                        }
                    }
                    let (before, this) = outs.split_at_mut(block);
                    let from = Sources { input, rows, aggregate };
                    ready.run(block, from, |b| &before[b], scratch, &mut this[0]);
                }
                let last = Operand::dense(outs.last().expect("there is a joint block"), width);
                let used = &mut scratch.logits[..rows.len() * head.outputs];
                head.forward(rows.len(), last, used);
                if normalised {
                    softmax(used, arch.classes, head.outputs);
                }
                for (out, logits) in out.chunks_exact_mut(arch.classes).zip(used.chunks_exact(head.outputs)) {
                    out.copy_from_slice(&logits[..arch.classes]);
                }
            },
        );
        Ok(out)
    }
}
