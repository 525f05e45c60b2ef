//! Evaluation: running statistics, no dropout, any number of rows, in parallel.

use std::ops::Range;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::input::{Batch, Input, Inputs, check_rows};
use crate::loss::{hits, softmax};
use crate::network::Network;
use crate::pass::{BLOCK, Block, PreparedNetwork};
use crate::train::collective;

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
    let columns = network.values.layout.head().outputs_padded;
    each_block(network, inputs, rows, out.par_chunks_mut(BLOCK * classes), |_, logits, out| {
        if normalised {
            softmax(logits, classes, columns);
        }
        for (out, logits) in out.chunks_exact_mut(classes).zip(logits.chunks_exact(columns)) {
            out.copy_from_slice(&logits[..classes]);
        }
    });
    Ok(out)
}

/// The share of the batch's rows whose class gets the largest logit (the first of equals).
pub fn accuracy(network: &Network, batch: Batch<'_>) -> Result<f64> {
    network.check_inputs(batch.inputs)?;
    if batch.whole() == 0 {
        return Err(Error::SmallBatch { rows: 0, why: "an accuracy needs at least one row" });
    }
    let classes = network.architecture().classes;
    let columns = network.values.layout.head().outputs_padded;
    let mut correct = vec![0; batch.len().div_ceil(BLOCK)];
    each_block(network, batch.inputs, batch.rows, correct.par_iter_mut(), |rows, logits, correct| {
        *correct = hits(batch, rows, logits, classes, columns);
    });
    let correct = correct.iter().sum::<usize>();
    let correct = match &batch.shared {
        Some(shared) => collective::add_up(shared, correct as u64)? as usize,
        None => correct,
    };
    Ok(correct as f64 / batch.whole() as f64)
}

/// Hands the logits of each block of rows, padded, to `work`, with its item of `out`.
fn each_block<T: Send>(
    network: &Network,
    inputs: &Inputs<'_>,
    rows: &[u32],
    out: impl IndexedParallelIterator<Item = T>,
    work: impl Fn(&[u32], &mut [f32], T) + Sync,
) {
    let (blocks, ready) =
        (rows.par_chunks(BLOCK).zip(out).with_min_len(16), PreparedNetwork::evaluation(network));
    let columns = network.values.layout.head().outputs_padded;
    blocks.for_each_init(
        || (network.scratch(), network.trace()),
        |(scratch, trace), (rows, out)| {
            let mut block = Block { ready: &ready, scratch, trace, inputs, rows, resumed: false };
            block.forward();
            block.classify();
            work(rows, &mut scratch.logits[..rows.len() * columns], out);
        },
    );
}

/// The output of a branch for every row of its input: `rows * hidden` values.
pub fn embed(network: &Network, branch: usize, input: Input<'_>) -> Result<Vec<f32>> {
    embedded(network, branch, &Inputs::new(vec![input])?, 0..input.rows())
}

/// As [`embed`], for some rows of an input that was checked before, as in [`Inputs::checked_before`].
///
/// # Errors
/// A branch or rows that are not there, or an input of other columns.
pub fn embed_rows(
    network: &Network,
    branch: usize,
    input: Input<'_>,
    rows: Range<usize>,
) -> Result<Vec<f32>> {
    embedded(network, branch, &Inputs::checked_before(vec![input])?, rows)
}

fn embedded(network: &Network, branch: usize, checked: &Inputs<'_>, rows: Range<usize>) -> Result<Vec<f32>> {
    network.check_branch(branch)?;
    let columns = checked.as_slice()[0].columns();
    crate::error::check_length("row of the input", columns, network.architecture().inputs[branch])?;
    // The other branches are not looked at.
    let inputs = checked.repeated(branch + 1);
    let (ready, hidden) = (PreparedNetwork::written_out(network), network.architecture().hidden);
    let mut out = vec![0.0; rows.len() * hidden];
    let rows: Vec<u32> = (rows.start as u32..rows.end as u32).collect();
    check_rows(&inputs, &rows)?;
    let work = rows.par_chunks(BLOCK).zip(out.par_chunks_mut(BLOCK * hidden));
    work.with_min_len(16).for_each_init(
        || (network.scratch(), network.trace()),
        |(scratch, trace), (rows, out)| {
            let inputs = &inputs;
            let mut block = Block { ready: &ready, scratch, trace, inputs, rows, resumed: false };
            block.branch_forward(branch);
            let last = ready.layers - 1;
            let outputs = match ready.is_plain(last) {
                true => block.activations(ready.last(branch)),
                false => block.write_out(branch, last),
            };
            let outputs = outputs.chunks_exact(ready.padded_width);
            for (out, outputs) in out.chunks_exact_mut(hidden).zip(outputs) {
                out.copy_from_slice(&outputs[..hidden]);
            }
        },
    );
    Ok(out)
}
