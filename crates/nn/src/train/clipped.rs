//! The sum of clipped per-sample gradients, the one thing private training asks of the data.
//!
//! No sample's gradient is ever formed (ghost clipping). A sample's gradient by the weights of a linear layer is `xᵀ
//! d`, as no layer is used twice, so that its squared norm is `|x|² |d|²`; a bias adds one to `|x|²`. Norms come first,
//! then one weighted accumulation.

use crate::error::{Error, Result, check_setting};
use crate::input::{Batch, Input};
use crate::kernel::product::Matrix;
use crate::kernel::vectorised;
use crate::layer::linear::Operand;
use crate::layout::{Layout, Linear};
use crate::network::Network;
use crate::pass::PreparedNetwork;
use crate::train::Passes;
use crate::train::collective::{Part, read_f64, take_u64, write_f64};
use crate::train::sink::Sink;

/// 2^-30: see the proof at `clipped_sum`.
const SLACK: f64 = 1.0 / 1_073_741_824.0;

/// The sum over the batch of each sample's gradient by all trained parameters together, clipped to norm `clip`.
///
/// In the order of [`Network::trained`]. The caller adds noise and divides by the expected size of the batch. The same
/// bits on any number of threads. Dropout is not applied.
///
/// ```
/// use progap_nn::{Architecture, Batch, Input, Inputs, Network, Norm, clipped_sum};
///
/// let inputs = Inputs::new(vec![Input::Dense { columns: 2, values: &[1.0, -2.0, 30.0, 40.0] }])?;
/// let network = Network::new(Architecture { norm: Norm::Group, ..Architecture::new(vec![2], 3) }, 1)?;
/// let batch = Batch::new(&inputs, &[0, 2], &[0, 1], 3)?;
/// let sum = clipped_sum(&network, batch, 0.5)?;
/// let norm = sum.iter().map(|g| g * g).sum::<f64>().sqrt();
/// assert!(norm <= 2.0 * 0.5);
/// # Ok::<(), progap_nn::Error>(())
/// ```
///
/// # Proof definition
///
/// For any network without batch normalisation, any inputs (NaN and infinities too), and a clip `C`, the sum is over
/// the samples of the batch of `t_i`, rounded only by the additions of one `t_i` after another in double precision,
/// where `t_i` depends on sample `i` and the parameters alone and `|t_i| <= C`.
///
/// - *A sample's `x` and `d` depend on no other sample.* They are computed in single precision, row by row, by the same
///   sequence of operations wherever the row stands in a block. The gradient that is clipped is the one *defined* by
///   these rounded numbers, so rounding in the network needs no bound.
/// - *The norm is rounded up.* Products of two single-precision numbers are exact in double precision. The squared norm
///   is a sum of fewer than 2^22 terms that are not negative, each of at most three roundings: the relative error is
///   below 2^22 * 2^-53 * 2 = 2^-30. The norm used is `sqrt(s) (1 + 2^-29)`, and covers the rounding of the square
///   root, of `C / norm`, of the factor 1 + 2^-29 and of the two products in `x (factor d)`.
/// - *A sample is one term of the sum*, as no layer is used twice: an entry of its gradient is one product.
///   Double precision neither overflows (squares of squares of single precision stay below 1e160) nor loses a
///   term to underflow that matters (they stay above 1e-180, where the product with the clip factor is not more
///   than it would be exactly, up to 1e-300).
/// - *A sample whose norm is not finite contributes zero*, which is a function of the sample alone.
/// - *An empty batch gives zeros.*
///
/// The remaining rounding is that of the sum itself: at most `n 2^-53` of the sum of the absolute values of its terms,
/// per parameter, as for one term after another (blocks of samples are added up first, then their sums, which rounds no
/// term more often). The mechanism that adds noise charges for it.
pub fn clipped_sum(network: &Network, batch: Batch<'_>, clip: f64) -> Result<Vec<f64>> {
    check_setting(clip.is_finite() && clip > 0.0, "the clip", clip, "a finite number above 0")?;
    let mut parts = per_sample(network, batch, |part: &mut Vec<f64>, kept| {
        part.resize(network.parameter_count(), 0.0);
        let norms = norms(kept, &network.values.layout);
        for r in (0..kept.rows).filter(|&r| !norms[r].is_finite()) {
            kept.leave_out(r);
        }
        let factor = |norm: &f64| if norm.is_finite() { f64::min(1.0, clip / norm) } else { 0.0 };
        let factors: Vec<f64> = norms.iter().map(factor).collect();
        let linears = kept.linears.iter().zip(&network.values.layout.linears);
        for (kept, slot) in linears.filter(|(kept, _)| kept.is_used()) {
            add_linear(kept, slot, &factors, part);
        }
        for (gradients, slot) in kept.vectors.iter().zip(&network.values.layout.vectors) {
            for (own, &factor) in gradients.chunks_exact(slot.padded).zip(&factors) {
                add(factor, own, &mut part[slot.range.clone()]);
            }
        }
    })?
    .into_iter();
    let mut total = parts.next().unwrap_or_default();
    total.resize(network.parameter_count(), 0.0);
    for part in parts {
        for (total, sum) in total.iter_mut().zip(part) {
            *total += sum;
        }
    }
    Ok(network.select_trained(total))
}

/// The norm of each sample's gradient by all trained parameters together, rounded up as for clipping; not finite
/// where the sample would contribute zero.
pub fn sample_norms(network: &Network, batch: Batch<'_>) -> Result<Vec<f64>> {
    let parts = per_sample(network, batch, |part: &mut Vec<f64>, kept| {
        part.extend(norms(kept, &network.values.layout));
    })?;
    Ok(parts.concat())
}

/// Runs `work` on what is kept of each block; one result per chunk of rows.
fn per_sample<T: Default + Send + Part>(
    network: &Network,
    batch: Batch<'_>,
    work: impl Fn(&mut T, &mut Kept<'_>) + Sync,
) -> Result<Vec<T>> {
    network.check_inputs(batch.inputs)?;
    if network.architecture().norm.mixes_rows() {
        return Err(Error::BatchNormPerSample);
    }
    let ready = PreparedNetwork::per_sample(network);
    let mut passes = Passes::single_of_samples(network, batch);
    let mut parts = passes.parts(|| (T::default(), Kept::new(&network.values.layout)));
    passes.run(&ready, &mut parts, |block, (part, kept)| {
        kept.rows = block.rows.len();
        block.forward();
        block.head_backward(batch, 1.0, kept);
        (0..ready.layers).rev().for_each(|layer| block.layer_backward(layer, kept));
        work(part, kept);
    });
    let mut parts: Vec<T> = parts.into_iter().map(|(part, _)| part).collect();
    passes.gather(&mut parts)?;
    Ok(parts)
}

/// Of a chunk; one that is not a process's own comes as long as it is.
impl Part for Vec<f64> {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend((self.len() as u64).to_le_bytes());
        write_f64(self, out);
    }

    fn read(&mut self, from: &mut &[u8]) -> Option<()> {
        let values = usize::try_from(take_u64(from)?).ok().filter(|&values| values <= from.len() / 8)?;
        self.resize(values, 0.0);
        read_f64(self, from)
    }
}

/// The input of a linear layer in a block, and the gradient with respect to its output.
#[derive(Default)]
struct KeptLinear<'a> {
    sparse: Option<(Input<'a>, &'a [u32])>,
    x: Vec<f32>,
    delta: Vec<f32>,
}

impl KeptLinear<'_> {
    /// Whether it has a gradient: frozen layers do not.
    #[inline(always)]
    fn is_used(&self) -> bool {
        !self.delta.is_empty()
    }
}

/// All that gradients of a block's samples are made of.
struct Kept<'a> {
    rows: usize,
    columns: Vec<(usize, usize)>,
    vector_columns: Vec<usize>,
    linears: Vec<KeptLinear<'a>>,
    vectors: Vec<Vec<f32>>,
}

impl<'a> Sink<'a> for Kept<'a> {
    fn linear(&mut self, slot: usize, rows: usize, x: Operand<'_, 'a>, delta: &[f32]) {
        let (inputs, outputs) = self.columns[slot];
        let kept = &mut self.linears[slot];
        kept.delta.clear();
        kept.delta.extend_from_slice(&delta[..rows * outputs]);
        match x {
            Operand::Sparse(input, rows) => kept.sparse = Some((input, rows)),
            Operand::Dense(x) => {
                kept.x.clear();
                for r in 0..rows {
                    kept.x.extend_from_slice(&x.row(r)[..inputs]);
                }
            }
            Operand::Parts(x) => {
                kept.x.clear();
                for r in 0..rows {
                    for part in 0..inputs / x.columns {
                        kept.x.extend_from_slice(&x.part(part).row(r)[..x.columns]);
                    }
                }
            }
        }
    }

    fn vector(&mut self, slot: usize, rows: usize, gradients: Matrix<'_>) {
        let kept = &mut self.vectors[slot];
        kept.clear();
        for r in 0..rows {
            kept.extend_from_slice(&gradients.row(r)[..self.vector_columns[slot]]);
        }
    }
}

#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f64 {
    // Several sums at once, for speed; their order is fixed.
    let mut sums = [0.0; 8];
    let (a_lanes, a_rest) = a.as_chunks::<8>();
    let (b_lanes, b_rest) = b.as_chunks::<8>();
    for (a, b) in a_lanes.iter().zip(b_lanes) {
        for j in 0..8 {
            sums[j] += f64::from(a[j]) * f64::from(b[j]);
        }
    }
    let mut rest = 0.0;
    for (a, b) in a_rest.iter().zip(b_rest) {
        rest += f64::from(*a) * f64::from(*b);
    }
    ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7])) + rest
}

impl Kept<'_> {
    fn new(layout: &Layout) -> Self {
        Kept {
            rows: 0,
            columns: layout.linears.iter().map(|l| (l.inputs_padded, l.outputs_padded)).collect(),
            vector_columns: layout.vectors.iter().map(|v| v.padded).collect(),
            linears: layout.linears.iter().map(|_| KeptLinear::default()).collect(),
            vectors: vec![vec![]; layout.vectors.len()],
        }
    }

    /// The norm of row `r`'s gradient, rounded up.
    #[inline(always)]
    fn norm(&self, layout: &Layout, r: usize) -> f64 {
        let mut squares = 0.0;
        let linears = self.linears.iter().zip(&self.columns);
        for (kept, &(inputs, outputs)) in linears.filter(|(kept, _)| kept.is_used()) {
            let delta = &kept.delta[r * outputs..][..outputs];
            let x_square = match kept.sparse {
                Some((input, rows)) => sparse_square(input, rows[r]),
                None => {
                    let x = &kept.x[r * inputs..][..inputs];
                    dot(x, x)
                }
            };
            squares += (x_square + 1.0) * dot(delta, delta);
        }
        for (gradients, slot) in self.vectors.iter().zip(&layout.vectors) {
            if !gradients.is_empty() {
                let own = &gradients[r * slot.padded..][..slot.range.len()];
                squares += dot(own, own);
            }
        }
        squares.sqrt() * (1.0 + 2.0 * SLACK)
    }

    /// Makes row `r`'s gradient zero. What it was made of may not be finite, and is not even multiplied.
    fn leave_out(&mut self, r: usize) {
        for (kept, &(inputs, outputs)) in self.linears.iter_mut().zip(&self.columns) {
            for (values, columns) in [(&mut kept.x, inputs), (&mut kept.delta, outputs)] {
                if let Some(own) = values.chunks_exact_mut(columns).nth(r) {
                    own.fill(0.0);
                }
            }
        }
        for (gradients, &columns) in self.vectors.iter_mut().zip(&self.vector_columns) {
            if let Some(own) = gradients.chunks_exact_mut(columns).nth(r) {
                own.fill(0.0);
            }
        }
    }
}

/// `sums += factor values`.
#[inline(always)]
fn add(factor: f64, values: &[impl Copy + Into<f64>], sums: &mut [f64]) {
    for (sum, &value) in sums.iter_mut().zip(values) {
        *sum += factor * value.into();
    }
}

vectorised! {
    /// The norm of each row's gradient.
    fn norms<'a>(kept: &'a Kept<'a>, layout: &'a Layout) -> Vec<f64> {
        let mut norms = vec![0.0; kept.rows];
        // A loop, not a closure, which may be left out of line and compiled for the baseline only.
        for (r, norm) in norms.iter_mut().enumerate() {
            *norm = kept.norm(layout, r);
        }
        norms
    }
}

vectorised! {
    /// Adds the gradients by a linear layer, times the factors: one term `x (factor d)` for each sample.
    fn add_linear<'a>(kept: &'a KeptLinear<'a>, slot: &'a Linear, factors: &'a [f64], sums: &'a mut [f64]) {
        let (outputs, padded) = (slot.outputs, slot.outputs_padded);
        let mut scaled = Vec::with_capacity(kept.delta.len());
        for (delta, factor) in kept.delta.chunks_exact(padded).zip(factors) {
            scaled.extend(delta.iter().map(|&d| factor * f64::from(d)));
        }
        for d in scaled.chunks_exact(padded) {
            add(1.0, d, &mut sums[slot.bias.clone()]);
        }
        let weights = &mut sums[slot.weight.clone()];
        if let Some((input, rows)) = kept.sparse {
            let rows = rows.iter().zip(scaled.chunks_exact(padded)).zip(factors);
            for ((&row, d), _) in rows.filter(|(_, factor)| **factor > 0.0) {
                match (d.first_chunk::<16>(), ones(input, row)) {
                    // The usual widths and rows, without a question for each column.
                    (Some(d), Some(columns)) if outputs == 16 => {
                        let weights = weights.as_chunks_mut::<16>().0;
                        for &i in columns {
                            let sums = &mut weights[i as usize];
                            for j in 0..16 {
                                sums[j] += d[j];
                            }
                        }
                    }
                    _ => each_column(input, row, |i, value| {
                        add(value, &d[..outputs], &mut weights[i as usize * outputs..]);
                    }),
                }
            }
            return;
        }
        let x: Vec<f64> = kept.x.iter().map(|&x| x.into()).collect();
        let products = Products { x: &x, inputs: slot.inputs_padded, d: &scaled, outputs: padded };
        let tiles = slot.inputs_padded / 4 * 4;
        for at in (0..outputs).step_by(8) {
            let mut keep = |column: usize, tile: &[f64; 8]| {
                if let Some(row) = slot.input_row(column) {
                    let end = outputs.min(at + 8);
                    add(1.0, tile, &mut weights[row * outputs + at..row * outputs + end]);
                }
            };
            for column in (0..tiles).step_by(4) {
                let sums = products.tile::<4>(column, at);
                sums.iter().enumerate().for_each(|(m, sums)| keep(column + m, sums));
            }
            for column in tiles..slot.inputs_padded {
                keep(column, &products.tile::<1>(column, at)[0]);
            }
        }
    }
}

/// Rows of `x` and of `d`, one of each a sample.
struct Products<'a> {
    x: &'a [f64],
    inputs: usize,
    d: &'a [f64],
    outputs: usize,
}

impl Products<'_> {
    /// `Σ x d` over all rows, for the `M` columns of `x` from `column` on and 8 of `d` from `at` on.
    #[inline(always)]
    fn tile<const M: usize>(&self, column: usize, at: usize) -> [[f64; 8]; M] {
        let mut sums = [[0.0; 8]; M];
        for (x, d) in self.x.chunks_exact(self.inputs).zip(self.d.chunks_exact(self.outputs)) {
            let x: &[f64; M] = x[column..].first_chunk().expect("within the inputs");
            let d: &[f64; 8] = d[at..].first_chunk().expect("padded to whole vectors");
            for m in 0..M {
                for j in 0..8 {
                    sums[m][j] += x[m] * d[j];
                }
            }
        }
        sums
    }
}

/// The columns of a sparse row whose values are all 1, where each is listed once.
#[inline(always)]
fn ones<'a>(input: Input<'a>, row: u32) -> Option<&'a [u32]> {
    let (indices, values) = input.entries(row);
    (values.is_none() && indices.is_sorted_by(|a, b| a < b)).then_some(indices)
}

/// Every column of a sparse row once, with its value: of a column that is listed twice the sum of its values.
fn each_column(input: Input<'_>, row: u32, mut take: impl FnMut(u32, f64)) {
    let (indices, values) = input.entries(row);
    let value = |n: usize| values.map_or(1.0, |values| f64::from(values[n]));
    if indices.is_sorted_by(|a, b| a < b) {
        return indices.iter().enumerate().for_each(|(n, &i)| take(i, value(n)));
    }
    let mut totals = std::collections::BTreeMap::<u32, f64>::new();
    for (n, &i) in indices.iter().enumerate() {
        *totals.entry(i).or_default() += value(n);
    }
    totals.into_iter().for_each(|(i, total)| take(i, total));
}

/// The squared length of a sparse row.
fn sparse_square(input: Input<'_>, row: u32) -> f64 {
    if let Some(columns) = ones(input, row) {
        return columns.len() as f64;
    }
    let mut square = 0.0;
    each_column(input, row, |_, value| square += value * value);
    square
}
