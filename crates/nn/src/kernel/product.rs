//! Products of small matrices: a block of rows times weights, and the sums of outer products that are the
//! gradients of weights.
//!
//! Both add up `left[m] * right` over some steps, for a tile of a few `m` and a few vectors of columns whose sums stay
//! in registers; they differ in what a step is.

use pulp::{Simd, WithSimd};

use super::{dispatch_narrow, fixed, for_lanes, lanes, lanes_mut, vectorised};

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

/// The value that a product starts from.
#[derive(Clone, Copy)]
pub(crate) enum Start<'a> {
    /// The same row everywhere.
    Row(&'a [f32]),
    /// Row `r` of the matrix times factor `r`.
    Scaled(&'a [f32], Matrix<'a>),
    /// The values that are there already.
    Sum,
    Zero,
}

/// `out = start + x w` for `rows` rows: `x` has at least as many columns as `w` rows, and `columns`, of `w` and `out`,
/// is padded.
pub(crate) fn affine(
    rows: usize,
    x: Matrix<'_>,
    w: &[f32],
    start: Start<'_>,
    columns: usize,
    out: &mut [f32],
) {
    let affine = Affine { rows, x, w, start, columns, out };
    match (x.stride, columns) {
        (16, 16) => fixed::affine::<16, 16>(affine),
        (16, 8) => fixed::affine::<16, 8>(affine),
        (8, 16) => fixed::affine::<8, 16>(affine),
        (_, 8) => dispatch_narrow(Tiles::<_, 8>(affine)),
        _ => pulp::Arch::new().dispatch(Tiles::<_, 16>(affine)),
    }
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
    let outer = AddOuter { rows, x, inner, d, columns, sums };
    match (x.stride, inner, columns) {
        (16, 16, 16) => fixed::add_outer::<16, 16>(outer),
        (16, 16, 8) => fixed::add_outer::<16, 8>(outer),
        (_, _, 8) => dispatch_narrow(Tiles::<_, 8>(outer)),
        _ => pulp::Arch::new().dispatch(Tiles::<_, 16>(outer)),
    }
}

/// Calls a method with the numbers `M` of rows and `V` of vectors of a tile with `n` columns, whose sums stay in
/// registers: about eight at once hide the time an addition takes.
macro_rules! tile_by_registers {
    ($columns:expr, $this:expr, $method:ident, $simd:expr) => {
        match ($columns, S::F32_LANES) {
            (8, 8..) => $this.$method::<S, 8, 1>($simd),
            (8, 4) => $this.$method::<S, 4, 2>($simd),
            (8, _) => $this.$method::<S, 1, 8>($simd),
            (_, 16) => $this.$method::<S, 8, 1>($simd),
            (_, 8) => $this.$method::<S, 4, 2>($simd),
            (_, 4) => $this.$method::<S, 2, 4>($simd),
            _ => $this.$method::<S, 1, 16>($simd),
        }
    };
}
pub(super) use tile_by_registers;

/// A product computed tile by tile.
trait Tiled {
    /// Rows and columns of the result.
    fn shape(&self) -> (usize, usize);
    /// Rows `m..m + M` of the result, and its `T` columns from `at` on, which are `V` vectors.
    fn tile<S: Simd, const M: usize, const V: usize, const T: usize>(&mut self, simd: S, at: usize, m: usize);
}

/// A product in tiles of `W` columns.
struct Tiles<T, const W: usize>(T);

impl<T: Tiled, const W: usize> WithSimd for Tiles<T, W> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        tile_by_registers!(W, self, columns, simd);
    }
}

impl<T: Tiled, const W: usize> Tiles<T, W> {
    /// `W` columns after `W` columns: rows in groups of `M`, then one by one.
    #[inline(always)]
    fn columns<S: Simd, const M: usize, const V: usize>(&mut self, simd: S) {
        let (height, columns) = self.0.shape();
        let grouped = height / M * M;
        for at in (0..columns).step_by(W) {
            for m in (0..grouped).step_by(M) {
                self.0.tile::<S, M, V, W>(simd, at, m);
            }
            for m in grouped..height {
                self.0.tile::<S, 1, V, W>(simd, at, m);
            }
        }
    }
}

/// `sums[m] += left[m] * right`.
#[inline(always)]
pub(super) fn step<S: Simd, const M: usize, const V: usize>(
    simd: S,
    sums: &mut [[S::f32s; V]; M],
    left: [f32; M],
    right: [S::f32s; V],
) {
    for m in 0..M {
        let left = simd.splat_f32s(left[m]);
        for v in 0..V {
            sums[m][v] = simd.mul_add_e_f32s(left, right[v], sums[m][v]);
        }
    }
}

/// `T` values from `at` on as `V` vectors; the rest of a wider vector is zero.
#[inline(always)]
pub(crate) fn load<S: Simd, const V: usize, const T: usize>(simd: S, row: &[f32], at: usize) -> [S::f32s; V] {
    let values = &row[at..at + T];
    match T < S::F32_LANES {
        true => [simd.partial_load_f32s(values); V],
        false => *S::as_simd_f32s(values).0.first_chunk().expect("as many as vectors hold"),
    }
}

/// Writes what [`load`] reads.
#[inline(always)]
pub(crate) fn store<S: Simd, const V: usize, const T: usize>(
    simd: S,
    row: &mut [f32],
    at: usize,
    vectors: &[S::f32s; V],
) {
    let values = &mut row[at..at + T];
    match T < S::F32_LANES {
        true => simd.partial_store_f32s(values, vectors[0]),
        false => S::as_mut_simd_f32s(values).0.copy_from_slice(vectors),
    }
}

/// Adds to what [`load`] reads.
#[inline(always)]
pub(super) fn add<S: Simd, const V: usize, const T: usize>(
    simd: S,
    row: &mut [f32],
    at: usize,
    more: &[S::f32s; V],
) {
    let mut total = load::<S, V, T>(simd, row, at);
    for v in 0..V {
        total[v] = simd.add_f32s(total[v], more[v]);
    }
    store::<S, V, T>(simd, row, at, &total);
}

pub(super) struct Affine<'a> {
    pub rows: usize,
    pub x: Matrix<'a>,
    pub w: &'a [f32],
    pub start: Start<'a>,
    columns: usize,
    pub out: &'a mut [f32],
}

impl Tiled for Affine<'_> {
    #[inline(always)]
    fn shape(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }

    /// A step is a column of `x` and a row of `w`.
    #[inline(always)]
    fn tile<S: Simd, const M: usize, const V: usize, const T: usize>(
        &mut self,
        simd: S,
        at: usize,
        m: usize,
    ) {
        let columns = self.columns;
        assert!(at + T <= columns, "checked here, not in every step");
        let inner = self.w.len() / columns;
        let x: [&[f32]; M] = std::array::from_fn(|i| &self.x.row(m + i)[..inner]);
        let mut sums = match self.start {
            Start::Row(row) => [load::<S, V, T>(simd, row, at); M],
            Start::Zero => [[simd.splat_f32s(0.0); V]; M],
            Start::Sum => std::array::from_fn(|i| load::<S, V, T>(simd, &self.out[(m + i) * columns..], at)),
            Start::Scaled(factors, rows) => {
                let mut sums = [[simd.splat_f32s(0.0); V]; M];
                for i in 0..M {
                    let factor = simd.splat_f32s(factors[m + i]);
                    sums[i] = load::<S, V, T>(simd, rows.row(m + i), at);
                    for sum in &mut sums[i] {
                        *sum = simd.mul_f32s(factor, *sum);
                    }
                }
                sums
            }
        };
        for (k, w) in (0..inner).zip(self.w.chunks_exact(columns)) {
            let x = std::array::from_fn(|i| x[i][k]);
            step(simd, &mut sums, x, load::<S, V, T>(simd, w, at));
        }
        for (i, sums) in sums.iter().enumerate() {
            store::<S, V, T>(simd, &mut self.out[(m + i) * columns..], at, sums);
        }
    }
}

pub(super) struct AddOuter<'a> {
    pub rows: usize,
    pub x: Matrix<'a>,
    inner: usize,
    pub d: &'a [f32],
    columns: usize,
    pub sums: &'a mut [f32],
}

impl Tiled for AddOuter<'_> {
    #[inline(always)]
    fn shape(&self) -> (usize, usize) {
        (self.inner, self.columns)
    }

    /// A step is a row of `x` and a row of `d`.
    #[inline(always)]
    fn tile<S: Simd, const M: usize, const V: usize, const T: usize>(
        &mut self,
        simd: S,
        at: usize,
        m: usize,
    ) {
        let columns = self.columns;
        assert!(at + T <= columns, "checked here, not in every step");
        let x = self.x.values[..self.rows * self.x.stride].chunks_exact(self.x.stride);
        let mut sums = [[simd.splat_f32s(0.0); V]; M];
        for (x, d) in x.zip(self.d.chunks_exact(columns)) {
            let x = *x[m..].first_chunk().expect("within the inputs");
            step(simd, &mut sums, x, load::<S, V, T>(simd, d, at));
        }
        for (i, tile) in sums.iter().enumerate() {
            add::<S, V, T>(simd, &mut self.sums[(m + i) * columns..], at, tile);
        }
    }
}

vectorised! {
    /// `sums += ` the sum of the rows of `d`.
    pub(crate) fn add_rows<'a>(rows: usize, d: Matrix<'a>, columns: usize, sums: &'a mut [f32]) {
        for_lanes!(columns, L, at, {
            let mut total: [f32; L] = [0.0; L];
            for r in 0..rows {
                let d: [f32; L] = *lanes(d.values, r * d.stride + at);
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
    use crate::kernel::testing::matrix;

    #[test]
    fn products_match_their_definition_for_every_shape() {
        for (rows, inner, columns) in [
            (1, 1, 8),
            (7, 3, 8),
            (13, 37, 32),
            (64, 5, 48),
            (9, 64, 8),
            (7, 8, 64),
            (64, 16, 16),
            (13, 16, 8),
            (5, 6, 16),
        ] {
            let stride = if inner == 6 { 8 } else { inner };
            let (x, w, b) = (matrix(rows, stride, 1), matrix(inner, columns, 2), matrix(1, columns, 3));
            let x = Matrix { values: &x, stride };
            let mut out = vec![f32::NAN; rows * columns];
            affine(rows, x, &w, Start::Row(&b), columns, &mut out);
            let (factors, first) = (matrix(rows, 1, 5), out.clone());
            let scaled = Start::Scaled(&factors, Matrix { values: &first, stride: columns });
            for start in [Start::Zero, Start::Sum, scaled] {
                let mut more = out.clone();
                affine(rows, x, &w, start, columns, &mut more);
                for (i, more) in more.iter().enumerate() {
                    let before = match start {
                        Start::Sum => out[i],
                        Start::Scaled(..) => out[i] * factors[i / columns],
                        _ => 0.0,
                    };
                    assert!((more - before - (out[i] - b[i % columns])).abs() < 1e-5);
                }
            }
            let d = matrix(rows, columns, 4);
            let (mut outer, mut sum) = (vec![1.0; inner * columns], vec![1.0; columns]);
            add_outer(rows, x, inner, &d, columns, &mut outer);
            add_rows(rows, Matrix { values: &d, stride: columns }, columns, &mut sum);
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
