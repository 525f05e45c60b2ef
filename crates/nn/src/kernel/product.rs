//! Products of small matrices: a block of rows times weights, and the sums of outer products that are the
//! gradients of weights.

use pulp::{Simd, WithSimd};

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
    pulp::Arch::new().dispatch(Affine { rows, x, w, bias, columns, out, out_stride });
}

struct Affine<'a> {
    rows: usize,
    x: Matrix<'a>,
    w: &'a [f32],
    bias: Option<&'a [f32]>,
    columns: usize,
    out: &'a mut [f32],
    out_stride: usize,
}

impl WithSimd for Affine<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let tile = if self.columns == 8 { 8 } else { 16 };
        for at in (0..self.columns).step_by(tile) {
            // Sums in about eight registers at once hide the time an addition takes.
            match tile / S::F32_LANES {
                0 => self.narrow(at),
                1 => self.tiles::<S, 8, 1>(simd, at),
                2 => self.tiles::<S, 4, 2>(simd, at),
                4 => self.tiles::<S, 2, 4>(simd, at),
                8 => self.tiles::<S, 1, 8>(simd, at),
                _ => self.tiles::<S, 1, 16>(simd, at),
            }
        }
    }
}

impl Affine<'_> {
    /// `V` vectors of columns from `at` on: rows in groups of `M`, then one by one.
    #[inline(always)]
    fn tiles<S: Simd, const M: usize, const V: usize>(&mut self, simd: S, at: usize) {
        let grouped = self.rows - self.rows % M;
        for r in (0..grouped).step_by(M) {
            self.tile::<S, M, V>(simd, at, r);
        }
        for r in grouped..self.rows {
            self.tile::<S, 1, V>(simd, at, r);
        }
    }

    #[inline(always)]
    fn tile<S: Simd, const M: usize, const V: usize>(&mut self, simd: S, at: usize, r: usize) {
        let width = V * S::F32_LANES;
        let inner = self.w.len() / self.columns;
        let x: [&[f32]; M] = std::array::from_fn(|m| &self.x.row(r + m)[..inner]);
        let start: [S::f32s; V] = match self.bias {
            Some(bias) => vectors::<S, V>(&bias[at..at + width]),
            None => [simd.splat_f32s(0.0); V],
        };
        let mut sums = [start; M];
        for (k, w) in self.w.chunks_exact(self.columns).enumerate() {
            let w: [S::f32s; V] = vectors::<S, V>(&w[at..at + width]);
            for m in 0..M {
                let value = simd.splat_f32s(x[m][k]);
                for v in 0..V {
                    sums[m][v] = simd.mul_add_e_f32s(value, w[v], sums[m][v]);
                }
            }
        }
        for (m, sums) in sums.iter().enumerate() {
            let out = &mut self.out[(r + m) * self.out_stride + at..][..width];
            S::as_mut_simd_f32s(out).0.copy_from_slice(sums);
        }
    }

    /// Eight columns where vectors are wider.
    #[inline(always)]
    fn narrow(&mut self, at: usize) {
        for r in 0..self.rows {
            let mut sum: [f32; 8] = self.bias.map_or([0.0; 8], |bias| *lanes(bias, at));
            for (&x, w) in self.x.row(r).iter().zip(self.w.chunks_exact(self.columns)) {
                let w: [f32; 8] = *lanes(w, at);
                for j in 0..8 {
                    sum[j] = x.mul_add(w[j], sum[j]);
                }
            }
            *lanes_mut(self.out, r * self.out_stride + at) = sum;
        }
    }
}

/// `V` vectors.
#[inline(always)]
fn vectors<S: Simd, const V: usize>(values: &[f32]) -> [S::f32s; V] {
    *S::as_simd_f32s(values).0.first_chunk().expect("as many values as vectors hold")
}

/// `sums += xᵀ d` for `rows` rows: `x` has `inner` columns, `d` and `sums` have `columns`, padded.
pub(crate) fn add_outer(
    rows: usize,
    x: Matrix<'_>,
    inner: usize,
    d: &[f32],
    columns: usize,
    sums: &mut [f32],
) {
    pulp::Arch::new().dispatch(AddOuter { rows, x, inner, d, columns, sums });
}

struct AddOuter<'a> {
    rows: usize,
    x: Matrix<'a>,
    inner: usize,
    d: &'a [f32],
    columns: usize,
    sums: &'a mut [f32],
}

impl WithSimd for AddOuter<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let tile = if self.columns == 8 { 8 } else { 16 };
        for at in (0..self.columns).step_by(tile) {
            match tile / S::F32_LANES {
                0 => self.narrow(at),
                1 => self.tiles::<S, 8, 1>(simd, at),
                2 => self.tiles::<S, 4, 2>(simd, at),
                4 => self.tiles::<S, 2, 4>(simd, at),
                8 => self.tiles::<S, 1, 8>(simd, at),
                _ => self.tiles::<S, 1, 16>(simd, at),
            }
        }
    }
}

impl AddOuter<'_> {
    /// `V` vectors of columns from `at` on: inputs in groups of `M`, then one by one.
    #[inline(always)]
    fn tiles<S: Simd, const M: usize, const V: usize>(&mut self, simd: S, at: usize) {
        let grouped = self.inner - self.inner % M;
        for k in (0..grouped).step_by(M) {
            self.tile::<S, M, V>(simd, at, k);
        }
        for k in grouped..self.inner {
            self.tile::<S, 1, V>(simd, at, k);
        }
    }

    #[inline(always)]
    fn tile<S: Simd, const M: usize, const V: usize>(&mut self, simd: S, at: usize, k: usize) {
        let width = V * S::F32_LANES;
        let x = self.x.values[..self.rows * self.x.stride].chunks_exact(self.x.stride);
        let mut tile = [[simd.splat_f32s(0.0); V]; M];
        for (x, d) in x.zip(self.d.chunks_exact(self.columns)) {
            let x: &[f32; M] = x[k..].first_chunk().expect("within the inputs");
            let d: [S::f32s; V] = vectors::<S, V>(&d[at..at + width]);
            for m in 0..M {
                let value = simd.splat_f32s(x[m]);
                for v in 0..V {
                    tile[m][v] = simd.mul_add_e_f32s(value, d[v], tile[m][v]);
                }
            }
        }
        for m in 0..M {
            let sums = &mut self.sums[(k + m) * self.columns + at..][..width];
            for (sum, tile) in S::as_mut_simd_f32s(sums).0.iter_mut().zip(tile[m]) {
                *sum = simd.add_f32s(*sum, tile);
            }
        }
    }

    /// Eight columns where vectors are wider.
    #[inline(always)]
    fn narrow(&mut self, at: usize) {
        for k in 0..self.inner {
            let mut tile = [0.0; 8];
            for r in 0..self.rows {
                let d: [f32; 8] = *lanes(self.d, r * self.columns + at);
                let x = self.x.row(r)[k];
                for j in 0..8 {
                    tile[j] = x.mul_add(d[j], tile[j]);
                }
            }
            let sum: &mut [f32; 8] = lanes_mut(self.sums, k * self.columns + at);
            for j in 0..8 {
                sum[j] += tile[j];
            }
        }
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
        (0..rows * columns)
            .map(|i| ((i as u32).wrapping_mul(2_654_435_761) ^ seed) as f32 / 4.3e9 - 0.5)
            .collect()
    }

    #[test]
    fn products_match_their_definition_for_every_shape() {
        for (rows, inner, columns) in
            [(1, 1, 8), (7, 3, 8), (64, 16, 16), (13, 37, 32), (64, 5, 48), (9, 64, 8), (7, 8, 64)]
        {
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
