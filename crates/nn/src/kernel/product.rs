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

/// `out = bias + x w` for `rows` rows: `x` has as many columns as `w` rows, and `columns`, of `w` and `out`, is padded.
pub(crate) fn affine(
    rows: usize,
    x: Matrix<'_>,
    w: &[f32],
    bias: Option<&[f32]>,
    columns: usize,
    out: &mut [f32],
    out_stride: usize,
) {
    // The common widths are compiled on their own: their rows lie at fixed distances, and loops have fixed lengths.
    match (w.len() / columns, x.stride) {
        (8, 8) => affine_fixed::<8>(rows, x.values, w, bias, columns, out, out_stride),
        (16, 16) => affine_fixed::<16>(rows, x.values, w, bias, columns, out, out_stride),
        (32, 32) => affine_fixed::<32>(rows, x.values, w, bias, columns, out, out_stride),
        (48, 48) => affine_fixed::<48>(rows, x.values, w, bias, columns, out, out_stride),
        (64, 64) => affine_fixed::<64>(rows, x.values, w, bias, columns, out, out_stride),
        (inner, _) => affine_any(rows, x, inner, w, bias, columns, out, out_stride),
    }
}

vectorised! {
    fn affine_fixed<'a, const K: usize>(
        rows: usize,
        x: &'a [f32],
        w: &'a [f32],
        bias: Option<&'a [f32]>,
        columns: usize,
        out: &'a mut [f32],
        out_stride: usize,
    ) {
        let x = &x.as_chunks::<K>().0[..rows];
        for_lanes!(columns, L, at, {
            // As many rows at a time as give eight sums of eight lanes under way at once.
            const M: usize = 64 / L;
            let bias: [f32; L] = bias.map_or([0.0; L], |bias| *lanes(bias, at));
            let (groups, rest) = x.as_chunks::<M>();
            for (g, x) in groups.iter().enumerate() {
                let mut sums = [bias; M];
                for (k, w) in w.chunks_exact(columns).enumerate().take(K) {
                    let w: [f32; L] = *lanes(w, at);
                    for m in 0..M {
                        for j in 0..L {
                            sums[m][j] = x[m][k].mul_add(w[j], sums[m][j]);
                        }
                    }
                }
                for m in 0..M {
                    *lanes_mut(out, (g * M + m) * out_stride + at) = sums[m];
                }
            }
            for (r, x) in rest.iter().enumerate() {
                let sum = affine_row::<L>(x, w, &bias, columns, at);
                *lanes_mut(out, (groups.len() * M + r) * out_stride + at) = sum;
            }
        });
    }
}

vectorised! {
    fn affine_any<'a>(
        rows: usize,
        x: Matrix<'a>,
        inner: usize,
        w: &'a [f32],
        bias: Option<&'a [f32]>,
        columns: usize,
        out: &'a mut [f32],
        out_stride: usize,
    ) {
        for_lanes!(columns, L, at, {
            const M: usize = 4;
            let bias: [f32; L] = bias.map_or([0.0; L], |bias| *lanes(bias, at));
            let full = rows - rows % M;
            for r in (0..full).step_by(M) {
                let x: [&[f32]; M] = std::array::from_fn(|m| &x.row(r + m)[..inner]);
                let mut sums = [bias; M];
                for k in 0..inner {
                    let w: [f32; L] = *lanes(w, k * columns + at);
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
                let sum = affine_row::<L>(&x.row(r)[..inner], w, &bias, columns, at);
                *lanes_mut(out, r * out_stride + at) = sum;
            }
        });
    }
}

/// One row: the same operations in the same order as in a group of rows.
#[inline(always)]
fn affine_row<const L: usize>(x: &[f32], w: &[f32], bias: &[f32; L], columns: usize, at: usize) -> [f32; L] {
    let mut sum = *bias;
    for (&x, w) in x.iter().zip(w.chunks_exact(columns)) {
        let w: [f32; L] = *lanes(w, at);
        for j in 0..L {
            sum[j] = x.mul_add(w[j], sum[j]);
        }
    }
    sum
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
        let x = &x.values[..rows * x.stride];
        let stride = x.len() / rows.max(1);
        let d = &d[..rows * columns];
        for_lanes!(columns, L, at, {
            const M: usize = 64 / L;
            let full = inner - inner % M;
            for k in (0..full).step_by(M) {
                let mut tile: [[f32; L]; M] = [[0.0; L]; M];
                for (x, d) in x.chunks_exact(stride).zip(d.chunks_exact(columns)) {
                    let x: [f32; M] = *lanes(x, k);
                    let d: [f32; L] = *lanes(d, at);
                    for m in 0..M {
                        for j in 0..L {
                            tile[m][j] = x[m].mul_add(d[j], tile[m][j]);
                        }
                    }
                }
                for m in 0..M {
                    let mut sum: [f32; L] = *lanes(sums, (k + m) * columns + at);
                    for j in 0..L {
                        sum[j] += tile[m][j];
                    }
                    *lanes_mut(sums, (k + m) * columns + at) = sum;
                }
            }
            for k in full..inner {
                let mut tile: [f32; L] = *lanes(sums, k * columns + at);
                for (x, d) in x.chunks_exact(stride).zip(d.chunks_exact(columns)) {
                    let d: [f32; L] = *lanes(d, at);
                    for j in 0..L {
                        tile[j] = x[k].mul_add(d[j], tile[j]);
                    }
                }
                *lanes_mut(sums, k * columns + at) = tile;
            }
        });
    }
}

vectorised! {
    /// `sums += ` the sum of the rows of `d`.
    pub(crate) fn add_rows<'a>(rows: usize, d: &'a [f32], columns: usize, sums: &'a mut [f32]) {
        for_lanes!(columns, L, at, {
            let mut total: [f32; L] = [0.0; L];
            for d in d[..rows * columns].chunks_exact(columns) {
                let d: [f32; L] = *lanes(d, at);
                for j in 0..L {
                    total[j] += d[j];
                }
            }
            let mut sum: [f32; L] = *lanes(sums, at);
            for j in 0..L {
                sum[j] += total[j];
            }
            *lanes_mut(sums, at) = sum;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(rows: usize, columns: usize, seed: u32) -> Vec<f32> {
        (0..rows * columns).map(|i| ((i as u32).wrapping_mul(2_654_435_761) ^ seed) as f32 / 4.3e9 - 0.5).collect()
    }

    #[test]
    fn products_match_their_definition_for_every_shape() {
        for (rows, inner, columns) in [(1, 1, 8), (7, 3, 8), (64, 16, 16), (13, 37, 32), (64, 5, 48), (9, 64, 8), (7, 8, 64)] {
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
