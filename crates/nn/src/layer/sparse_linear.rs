//! The linear layer on sparse input: `z = b + Σ x_k W_k` over the columns `k` that a row has.
//!
//! Forward, rows of the weights are gathered and added; backward, `dW_k += x_k d` is scattered. For one-hot input
//! both cost a few vector additions per row, and nothing is ever as wide as the input.

use pulp::{Simd, WithSimd};

use crate::input::Input;
use crate::kernel::product::{add_rows, vectors};

/// `out = bias + x w` for the given rows of a sparse input; `columns`, of `w` and `out`, is padded.
pub(crate) fn forward(
    input: Input<'_>,
    rows: &[u32],
    w: &[f32],
    bias: &[f32],
    columns: usize,
    out: &mut [f32],
) {
    pulp::Arch::new().dispatch(Gather { input, rows, w, bias, columns, out });
}

struct Gather<'a> {
    input: Input<'a>,
    rows: &'a [u32],
    w: &'a [f32],
    bias: &'a [f32],
    columns: usize,
    out: &'a mut [f32],
}

impl WithSimd for Gather<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let tile = if self.columns.is_multiple_of(16) { 16 } else { 8 };
        for at in (0..self.columns).step_by(tile) {
            match tile / S::F32_LANES {
                1 => self.tile::<S, 1>(simd, at),
                2 => self.tile::<S, 2>(simd, at),
                4 => self.tile::<S, 4>(simd, at),
                8 => self.tile::<S, 8>(simd, at),
                16 => self.tile::<S, 16>(simd, at),
                _ => unreachable!("hidden widths are stored in multiples of 16"),
            }
        }
    }
}

impl Gather<'_> {
    /// `V` vectors of columns from `at` on.
    #[inline(always)]
    fn tile<S: Simd, const V: usize>(&mut self, simd: S, at: usize) {
        let width = V * S::F32_LANES;
        let bias: [S::f32s; V] = vectors::<S, V>(&self.bias[at..at + width]);
        for (&row, out) in self.rows.iter().zip(self.out.chunks_exact_mut(self.columns)) {
            let (indices, values) = self.input.entries(row);
            let weights = |i: u32| vectors::<S, V>(&self.w[i as usize * self.columns + at..][..width]);
            let mut sum = bias;
            match values {
                None => {
                    for &i in indices {
                        let w = weights(i);
                        for v in 0..V {
                            sum[v] = simd.add_f32s(sum[v], w[v]);
                        }
                    }
                }
                Some(values) => {
                    for (&i, &value) in indices.iter().zip(values) {
                        let (w, value) = (weights(i), simd.splat_f32s(value));
                        for v in 0..V {
                            sum[v] = simd.mul_add_e_f32s(value, w[v], sum[v]);
                        }
                    }
                }
            }
            S::as_mut_simd_f32s(&mut out[at..at + width]).0.copy_from_slice(&sum);
        }
    }
}

/// Adds the gradients by weights and bias to `sums`: a row for each input, and one more for the bias.
pub(crate) fn add_gradient(input: Input<'_>, rows: &[u32], d: &[f32], columns: usize, sums: &mut [f32]) {
    let (weight, bias) = sums.split_at_mut(input.columns() * columns);
    pulp::Arch::new().dispatch(Scatter { input, rows, d, columns, sums: weight });
    add_rows(rows.len(), d, columns, bias);
}

struct Scatter<'a> {
    input: Input<'a>,
    rows: &'a [u32],
    d: &'a [f32],
    columns: usize,
    sums: &'a mut [f32],
}

impl WithSimd for Scatter<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // The gradient of a row stays in registers where its width is a common one.
        match self.columns / S::F32_LANES {
            1 => self.fixed::<S, 1>(simd),
            2 => self.fixed::<S, 2>(simd),
            3 => self.fixed::<S, 3>(simd),
            4 => self.fixed::<S, 4>(simd),
            6 => self.fixed::<S, 6>(simd),
            _ => self.any(simd),
        }
    }
}

impl Scatter<'_> {
    #[inline(always)]
    fn fixed<S: Simd, const V: usize>(self, simd: S) {
        for (&row, d) in self.rows.iter().zip(self.d.chunks_exact(self.columns)) {
            let d: [S::f32s; V] = vectors::<S, V>(d);
            let (indices, values) = self.input.entries(row);
            for (n, &i) in indices.iter().enumerate() {
                let sums = &mut self.sums[i as usize * self.columns..][..V * S::F32_LANES];
                let sums = S::as_mut_simd_f32s(sums).0;
                match values {
                    None => {
                        for v in 0..V {
                            sums[v] = simd.add_f32s(sums[v], d[v]);
                        }
                    }
                    Some(values) => {
                        let value = simd.splat_f32s(values[n]);
                        for v in 0..V {
                            sums[v] = simd.mul_add_e_f32s(value, d[v], sums[v]);
                        }
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn any<S: Simd>(self, simd: S) {
        for (&row, d) in self.rows.iter().zip(self.d.chunks_exact(self.columns)) {
            let (indices, values) = self.input.entries(row);
            for (n, &i) in indices.iter().enumerate() {
                let value = simd.splat_f32s(values.map_or(1.0, |values| values[n]));
                let sums = S::as_mut_simd_f32s(&mut self.sums[i as usize * self.columns..][..self.columns]).0;
                for (sum, &d) in sums.iter_mut().zip(S::as_simd_f32s(d).0) {
                    *sum = simd.mul_add_e_f32s(value, d, *sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::product::Matrix;
    use crate::layer::linear;

    #[test]
    fn it_agrees_with_the_dense_layer() {
        let dense = [0.0, 2.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.5, 3.0];
        let sparse = Input::Sparse {
            columns: 3,
            offsets: &[0, 1, 2, 4],
            indices: &[1, 0, 1, 2],
            values: Some(&[2.0, -1.0, 0.5, 3.0]),
        };
        let rows = [0, 1, 2];
        for columns in [16, 48, 64] {
            let w: Vec<f32> = (0..3 * columns).map(|i| i as f32 * 0.1 - 2.0).collect();
            let x = Matrix { values: &dense, stride: 3 };
            let weights = linear::Weights {
                b: w[..columns].to_vec(),
                w,
                inputs: 3,
                outputs: columns,
                ..Default::default()
            };
            let (mut a, mut b) = (vec![0.0; 3 * columns], vec![0.0; 3 * columns]);
            weights.forward(3, x, &mut a, columns);
            forward(sparse, &rows, &weights.w, &weights.b, columns, &mut b);
            assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5));
            let (mut ga, mut gb) = (vec![0.0; 4 * columns], vec![0.0; 4 * columns]);
            linear::add_gradient(3, x, 3, &a, columns, &mut ga);
            add_gradient(sparse, &rows, &b, columns, &mut gb);
            assert!(ga.iter().zip(&gb).all(|(a, b)| (a - b).abs() < 1e-4));
        }
    }
}
