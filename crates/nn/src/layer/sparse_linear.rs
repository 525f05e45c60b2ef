//! The linear layer on sparse input: `z = b + Σ x_k W_k` over the columns `k` that a row has.
//!
//! Forward, rows of the weights are gathered and added; backward, `dW_k += x_k d` is scattered. For one-hot input
//! both cost a few vector additions per row, and nothing is ever as wide as the input.

use crate::input::Input;
use crate::kernel::{for_lanes, lanes, lanes_mut, vectorised};

vectorised! {
    /// `out = bias + x w` for the given rows of a sparse input.
    pub(crate) fn forward<'a>(
        input: Input<'a>,
        rows: &'a [u32],
        w: &'a [f32],
        bias: &'a [f32],
        columns: usize,
        out: &'a mut [f32],
    ) {
        for_lanes!(columns, L, at, {
            for (r, &row) in rows.iter().enumerate() {
                let mut sum: [f32; L] = *lanes(bias, at);
                let (indices, values) = input.entries(row);
                match values {
                    None => {
                        for &i in indices {
                            let w: &[f32; L] = lanes(w, i as usize * columns + at);
                            for j in 0..L {
                                sum[j] += w[j];
                            }
                        }
                    }
                    Some(values) => {
                        for (&i, &value) in indices.iter().zip(values) {
                            let w: &[f32; L] = lanes(w, i as usize * columns + at);
                            for j in 0..L {
                                sum[j] = value.mul_add(w[j], sum[j]);
                            }
                        }
                    }
                }
                *lanes_mut(out, r * columns + at) = sum;
            }
        });
    }
}

vectorised! {
    /// Adds the gradient with respect to the weights: `x_k d` to row `k` of the sums, for every entry `k` of every row.
    pub(crate) fn scatter<'a>(
        input: Input<'a>,
        rows: &'a [u32],
        d: &'a [f32],
        columns: usize,
        sums: &'a mut [f32],
    ) {
        match columns {
            16 => scatter_fixed::<16>(input, rows, d, sums),
            _ => {
                for (&row, d) in rows.iter().zip(d.chunks_exact(columns)) {
                    let (indices, values) = input.entries(row);
                    for (n, &i) in indices.iter().enumerate() {
                        let value = values.map_or(1.0, |values| values[n]);
                        for (sum, d) in sums[i as usize * columns..].iter_mut().zip(d) {
                            *sum = value.mul_add(*d, *sum);
                        }
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn scatter_fixed<const N: usize>(input: Input<'_>, rows: &[u32], d: &[f32], sums: &mut [f32]) {
    let sums = sums.as_chunks_mut::<N>().0;
    for (&row, d) in rows.iter().zip(d.as_chunks::<N>().0) {
        let d = *d;
        let (indices, values) = input.entries(row);
        match values {
            None => {
                for &i in indices {
                    let mut sum = sums[i as usize];
                    for j in 0..N {
                        sum[j] += d[j];
                    }
                    sums[i as usize] = sum;
                }
            }
            Some(values) => {
                for (&i, &value) in indices.iter().zip(values) {
                    let mut sum = sums[i as usize];
                    for j in 0..N {
                        sum[j] = value.mul_add(d[j], sum[j]);
                    }
                    sums[i as usize] = sum;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::product::Matrix;
    use crate::layer::linear::{self, Operand};

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
        for columns in [8, 16, 48] {
            let w: Vec<f32> = (0..3 * columns).map(|i| i as f32 * 0.1 - 2.0).collect();
            let (x, sparse) = (Operand::dense(&dense, 3), Operand::Sparse(sparse, &rows));
            let weights = linear::Weights {
                b: w[..columns].to_vec(),
                w: w[..].into(),
                inputs: 3,
                outputs: columns,
                ..Default::default()
            };
            let (mut a, mut b) = (vec![0.0; 3 * columns], vec![0.0; 3 * columns]);
            weights.forward(3, x, &mut a);
            weights.forward(3, sparse, &mut b);
            assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5));
            let (mut ga, mut gb) = (vec![0.0; 4 * columns], vec![0.0; 4 * columns]);
            linear::add_gradient(3, x, 3, Matrix { values: &a, stride: columns }, &mut ga);
            linear::add_gradient(3, sparse, 3, Matrix { values: &b, stride: columns }, &mut gb);
            assert!(ga.iter().zip(&gb).all(|(a, b)| (a - b).abs() < 1e-4));
        }
    }
}
