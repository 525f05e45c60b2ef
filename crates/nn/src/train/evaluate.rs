//! Evaluation: running statistics, no dropout, any number of rows, in parallel.

use rayon::prelude::*;

use crate::block::{BLOCK, Prepared, Rows};
use crate::error::{Error, Result};
use crate::folded::{self, Folded, Folding};
use crate::input::{Batch, Input, Inputs, check_rows};
use crate::loss::{hits, softmax};
use crate::network::Network;
use crate::train::Lender;

/// Logits of the given rows: a row of classes for each.
pub fn logits(network: &Network, inputs: &Inputs<'_>, rows: &[u32]) -> Result<Vec<f32>> {
    outputs(network, inputs, rows, false)
}

/// Class probabilities of the given rows: a row of classes for each.
pub fn probabilities(network: &Network, inputs: &Inputs<'_>, rows: &[u32]) -> Result<Vec<f32>> {
    outputs(network, inputs, rows, true)
}

fn outputs(network: &Network, inputs: &Inputs<'_>, rows: &[u32], normalised: bool) -> Result<Vec<f32>> {
    network.check_inputs(inputs)?;
    check_rows(inputs, rows)?;
    let classes = network.architecture().classes;
    let mut out = vec![0.0; rows.len() * classes];
    let wide = network.values.layout.head().outputs_padded;
    each_block(network, inputs, rows, out.par_chunks_mut(BLOCK * classes), |_, logits, out| {
        if normalised {
            softmax(logits, classes, wide);
        }
        for (out, logits) in out.chunks_exact_mut(classes).zip(logits.chunks_exact(wide)) {
            out.copy_from_slice(&logits[..classes]);
        }
    });
    Ok(out)
}

/// The share of the batch's rows whose class gets the largest logit (the first of equals).
pub fn accuracy(network: &Network, batch: Batch<'_>) -> Result<f64> {
    network.check_inputs(batch.inputs)?;
    if batch.is_empty() {
        return Err(Error::SmallBatch { rows: 0, why: "an accuracy needs at least one row" });
    }
    let classes = network.architecture().classes;
    let wide = network.values.layout.head().outputs_padded;
    let mut correct = vec![0; batch.len().div_ceil(BLOCK)];
    each_block(network, batch.inputs, batch.rows, correct.par_iter_mut(), |rows, logits, correct| {
        *correct = hits(rows, batch.labels, logits, classes, wide);
    });
    Ok(correct.iter().sum::<usize>() as f64 / batch.len() as f64)
}

/// Hands the logits of each block of rows, padded, to `work`, with the place for what it makes of them.
fn each_block<T: Send>(
    network: &Network,
    inputs: &Inputs<'_>,
    rows: &[u32],
    out: impl IndexedParallelIterator<Item = T>,
    work: impl Fn(&[u32], &mut [f32], T) + Sync,
) {
    let blocks = rows.par_chunks(BLOCK).zip(out).with_min_len(16);
    let wide = network.values.layout.head().outputs_padded;
    if folded::suits(network, false) {
        let (folded, lender) = (Folded::new(network), Folding(network));
        blocks.for_each_init(
            || (lender.scratch(), lender.trace()),
            |(scratch, trace), (rows, out)| {
                scratch.forward(&folded, trace, Rows { inputs, rows });
                work(rows, &mut scratch.logits[..rows.len() * wide], out);
            },
        );
    } else {
        let prepared = Prepared::new(network, false);
        blocks.for_each_init(
            || (network.scratch(), network.trace()),
            |(scratch, trace), (rows, out)| {
                scratch.forward(&prepared, trace, Rows { inputs, rows });
                work(rows, &mut scratch.logits[..rows.len() * wide], out);
            },
        );
    }
}

/// What a branch gives for every row of its input: `rows * hidden` values.
pub fn embed(network: &Network, branch: usize, input: Input<'_>) -> Result<Vec<f32>> {
    network.check_branch(branch)?;
    let checked = Inputs::new(vec![input])?;
    crate::error::check_length("row of the input", input.columns(), network.architecture().inputs[branch])?;
    // The other branches are not looked at.
    let inputs = checked.repeated(branch + 1);
    let prepared = Prepared::new(network, false);
    let hidden = network.architecture().hidden;
    let mut out = vec![0.0; inputs.rows() * hidden];
    let rows: Vec<u32> = (0..inputs.rows() as u32).collect();
    let work = rows.par_chunks(BLOCK).zip(out.par_chunks_mut(BLOCK * hidden));
    work.with_min_len(16).for_each_init(
        || (network.scratch(), network.trace()),
        |(scratch, trace), (rows, out)| {
            scratch.branch(&prepared, trace, branch, Rows { inputs: &inputs, rows });
            for (r, out) in out.chunks_exact_mut(hidden).enumerate() {
                out.copy_from_slice(scratch.embedding(branch, r));
            }
        },
    );
    Ok(out)
}
