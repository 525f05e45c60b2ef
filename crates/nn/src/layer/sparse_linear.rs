//! The linear layer on sparse input: `z = b + Σ x_k W_k` over the columns `k` that a row has.
//!
//! Forward, rows of the weights are gathered and added; backward, `dW_k += x_k d` is scattered. For one-hot input
//! both cost a few vector additions per row, and nothing is ever as wide as the input.

use crate::input::Input;
use crate::kernel::product::{Matrix, add_rows};
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

/// Adds the gradients by weights and bias to `sums`: a row for each input, and one more for the bias.
pub(crate) fn add_gradient(input: Input<'_>, rows: &[u32], d: &[f32], columns: usize, sums: &mut [f32]) {
    let (weight, bias) = sums.split_at_mut(input.columns() * columns);
    scatter(input, rows, d, columns, weight);
    add_rows(rows.len(), Matrix { values: d, stride: columns }, columns, bias);
}

vectorised! {
    fn scatter<'a>(input: Input<'a>, rows: &'a [u32], d: &'a [f32], columns: usize, sums: &'a mut [f32]) {
        match columns {
            16 => scatter_fixed::<16>(input, rows, d, sums),
            48 => scatter_fixed::<48>(input, rows, d, sums),
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
        for columns in [8, 16, 48] {
            let w: Vec<f32> = (0..3 * columns).map(|i| i as f32 * 0.1 - 2.0).collect();
            let x = Matrix { values: &dense, stride: 3 };
            let weights = linear::Weights {
                b: w[..columns].to_vec(),
                w: w[..].into(),
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
