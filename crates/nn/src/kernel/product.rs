//! Products of small matrices: a block of rows times weights, and the sums of outer products that are the
//! gradients of weights.

use super::{for_lanes, lanes, lanes_mut, vectorised};

/// A matrix seen row after row: row `r` starts at `r * stride`.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a> {
    pub values: &'a [f32],
    pub stride: usize,
}

impl<'a> Matrix<'a> {
    #[inline(always)]
    pub fn row(self, row: usize) -> &'a [f32] {
        &self.values[row * self.stride..]
    }
}

vectorised! {
    /// `out = bias + x w` for `rows` rows: `x` has `inner` columns, `w` is `inner` x `columns`, and `columns` is
    /// padded.
    pub(crate) fn affine<'a>(
        rows: usize,
        x: Matrix<'a>,
        w: &'a [f32],
        bias: Option<&'a [f32]>,
        columns: usize,
        out: &'a mut [f32],
        out_stride: usize,
    ) {
        for_lanes!(columns, L, at, {
            let bias: [f32; L] = bias.map_or([0.0; L], |bias| *lanes(bias, at));
            affine_lanes::<L, { 64 / L }>(rows, x, w, &bias, columns, at, out, out_stride);
        });
    }
}

/// One vector of columns, `M` rows at a time, so that `M` sums are under way at once.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn affine_lanes<const L: usize, const M: usize>(
    rows: usize,
    x: Matrix<'_>,
    w: &[f32],
    bias: &[f32; L],
    columns: usize,
    at: usize,
    out: &mut [f32],
    out_stride: usize,
) {
    let inner = w.len() / columns;
    let full = rows - rows % M;
    for r in (0..full).step_by(M) {
        let x: [&[f32]; M] = std::array::from_fn(|m| &x.row(r + m)[..inner]);
        let mut sums = [*bias; M];
        for k in 0..inner {
            let w = lanes::<L>(w, k * columns + at);
            for m in 0..M {
                let value = x[m][k];
                for j in 0..L {
                    sums[m][j] = value.mul_add(w[j], sums[m][j]);
                }
            }
        }
        for m in 0..M {
            *lanes_mut(out, (r + m) * out_stride + at) = sums[m];
        }
    }
    for r in full..rows {
        let x = &x.row(r)[..inner];
        let mut sum = *bias;
        for k in 0..inner {
            let w = lanes::<L>(w, k * columns + at);
            for j in 0..L {
                sum[j] = x[k].mul_add(w[j], sum[j]);
            }
        }
        *lanes_mut(out, r * out_stride + at) = sum;
    }
}

vectorised! {
    /// `sums += xᵀ d` for `rows` rows: `x` has `inner` columns, `d` and `sums` have `columns`, padded.
    pub(crate) fn add_outer<'a>(
        rows: usize,
        x: Matrix<'a>,
        inner: usize,
        d: &'a [f32],
        columns: usize,
        sums: &'a mut [f32],
    ) {
        for_lanes!(columns, L, at, {
            const M: usize = 64 / L;
            let full = inner - inner % M;
            for k in (0..full).step_by(M) {
                let mut tile: [[f32; L]; M] = [[0.0; L]; M];
                for r in 0..rows {
                    let x: &[f32; M] = lanes(x.row(r), k);
                    let d: &[f32; L] = lanes(d, r * columns + at);
                    for m in 0..M {
                        for j in 0..L {
                            tile[m][j] = x[m].mul_add(d[j], tile[m][j]);
                        }
                    }
                }
                for m in 0..M {
                    let sum: &mut [f32; L] = lanes_mut(sums, (k + m) * columns + at);
                    for j in 0..L {
                        sum[j] += tile[m][j];
                    }
                }
            }
            for k in full..inner {
                let mut tile = [0.0; L];
                for r in 0..rows {
                    let x = x.row(r)[k];
                    let d: &[f32; L] = lanes(d, r * columns + at);
                    for j in 0..L {
                        tile[j] = x.mul_add(d[j], tile[j]);
                    }
                }
                let sum: &mut [f32; L] = lanes_mut(sums, k * columns + at);
                for j in 0..L {
                    sum[j] += tile[j];
                }
            }
        });
    }
}

vectorised! {
    /// `sums += ` the sum of the rows of `d`.
    pub(crate) fn add_rows<'a>(rows: usize, d: &'a [f32], columns: usize, sums: &'a mut [f32]) {
        for_lanes!(columns, L, at, {
            let mut total: [f32; L] = [0.0; L];
            for r in 0..rows {
                let d: &[f32; L] = lanes(d, r * columns + at);
                for j in 0..L {
                    total[j] += d[j];
                }
            }
            let sum: &mut [f32; L] = lanes_mut(sums, at);
            for j in 0..L {
                sum[j] += total[j];
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(rows: usize, columns: usize, seed: u32) -> Vec<f32> {
        (0..rows * columns)
            .map(|i| ((i as u32).wrapping_mul(2_654_435_761) ^ seed) as f32 / 4.3e9 - 0.5)
            .collect()
    }

    #[test]
    fn products_match_their_definition_for_every_shape() {
        for (rows, inner, columns) in [(1, 1, 8), (7, 3, 8), (64, 16, 16), (13, 37, 32), (64, 5, 48)] {
            let (x, w, b) = (matrix(rows, inner, 1), matrix(inner, columns, 2), matrix(1, columns, 3));
            let x = Matrix { values: &x, stride: inner };
            let mut out = vec![f32::NAN; rows * columns];
            affine(rows, x, &w, Some(&b), columns, &mut out, columns);
            let d = matrix(rows, columns, 4);
            let (mut outer, mut sum) = (vec![1.0; inner * columns], vec![1.0; columns]);
            add_outer(rows, x, inner, &d, columns, &mut outer);
            add_rows(rows, &d, columns, &mut sum);
            for c in 0..columns {
                for r in 0..rows {
                    let exact = (0..inner).map(|k| x.row(r)[k] * w[k * columns + c]).sum::<f32>() + b[c];
                    assert!((out[r * columns + c] - exact).abs() < 1e-5);
                }
                for k in 0..inner {
                    let exact = 1.0 + (0..rows).map(|r| x.row(r)[k] * d[r * columns + c]).sum::<f32>();
                    assert!((outer[k * columns + c] - exact).abs() < 1e-5);
                }
                let exact = 1.0 + (0..rows).map(|r| d[r * columns + c]).sum::<f32>();
                assert!((sum[c] - exact).abs() < 1e-5);
            }
        }
    }
}
