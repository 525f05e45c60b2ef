//! Loops over rows, a tile of 16 columns at a time: explicit vectors where the compiler does not find them by itself.

use pulp::{Simd, WithSimd};

use super::product::{add, load, store};
use crate::layer::Activation;
use crate::layer::activation::{ELU, RELU, SCALE, SCALE_ALPHA, SELU, with_activation};

/// Columns of a tile.
pub(crate) const TILE: usize = 16;

/// Work on the rows of matrices, one tile of columns after another.
pub(super) trait TileWork {
    /// The tile that starts at column `at`, `V` vectors wide.
    fn tile<S: Simd, const V: usize>(&mut self, simd: S, at: usize);
}

/// Does the work on all tiles of `columns` columns.
pub(super) fn for_tiles(columns: usize, work: impl TileWork) {
    pulp::Arch::new().dispatch(StripDispatch { columns, work });
}

struct StripDispatch<W> {
    columns: usize,
    work: W,
}

impl<W: TileWork> WithSimd for StripDispatch<W> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        for at in (0..self.columns).step_by(TILE) {
            match S::F32_LANES {
                16 => self.work.tile::<S, 1>(simd, at),
                8 => self.work.tile::<S, 2>(simd, at),
                4 => self.work.tile::<S, 4>(simd, at),
                _ => self.work.tile::<S, 16>(simd, at),
            }
        }
    }
}

/// One tile of every row.
#[inline(always)]
pub(super) fn down<S: Simd, const V: usize>(
    simd: S,
    values: &[f32],
    columns: usize,
    at: usize,
) -> impl Iterator<Item = [S::f32s; V]> {
    assert!(at + TILE <= columns, "checked here, not in every row");
    values.chunks_exact(columns).map(move |row| load::<S, V, TILE>(simd, row, at))
}

/// Adds `Σ c q` and `Σ c q²`, with `q = a - mean` and one radial coefficient `c` a row.
pub(crate) fn add_radial(
    columns: usize,
    mean: &[f32],
    a: &[f32],
    c: &[f32],
    first: &mut [f32],
    second: &mut [f32],
) {
    for_tiles(columns, AddRadial { columns, mean, a, c, first, second });
}

struct AddRadial<'a> {
    columns: usize,
    mean: &'a [f32],
    a: &'a [f32],
    c: &'a [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
}

impl TileWork for AddRadial<'_> {
    #[inline(always)]
    fn tile<S: Simd, const V: usize>(&mut self, simd: S, at: usize) {
        let mean = load::<S, V, TILE>(simd, self.mean, at);
        let [mut first, mut second] = [[simd.splat_f32s(0.0); V]; 2];
        for (a, &c) in down::<S, V>(simd, self.a, self.columns, at).zip(self.c) {
            let c = simd.splat_f32s(c);
            for v in 0..V {
                let q = simd.sub_f32s(a[v], mean[v]);
                let radial = simd.mul_f32s(c, q);
                first[v] = simd.add_f32s(first[v], radial);
                second[v] = simd.mul_add_e_f32s(radial, q, second[v]);
            }
        }
        add::<S, V, TILE>(simd, self.first, at, &first);
        add::<S, V, TILE>(simd, self.second, at, &second);
    }
}

/// The first row, and the sums of deviations from it and of their squares.
pub(crate) fn deviations(values: &[f32], row: &mut [f32], first: &mut [f32], second: &mut [f32]) {
    for_tiles(row.len(), Deviations { values, row, first, second });
}

struct Deviations<'a> {
    values: &'a [f32],
    row: &'a mut [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
}

impl TileWork for Deviations<'_> {
    #[inline(always)]
    fn tile<S: Simd, const V: usize>(&mut self, simd: S, at: usize) {
        let centre = load::<S, V, TILE>(simd, self.values, at);
        let [mut first, mut second] = [[simd.splat_f32s(0.0); V]; 2];
        for a in down::<S, V>(simd, self.values, self.row.len(), at) {
            for v in 0..V {
                let deviation = simd.sub_f32s(a[v], centre[v]);
                first[v] = simd.add_f32s(first[v], deviation);
                second[v] = simd.mul_add_e_f32s(deviation, deviation, second[v]);
            }
        }
        store::<S, V, TILE>(simd, self.row, at, &centre);
        store::<S, V, TILE>(simd, self.first, at, &first);
        store::<S, V, TILE>(simd, self.second, at, &second);
    }
}

/// Coefficients of the backward pass through an absorbed norm and the activation before it, padded: with `g` the
/// gradient with respect to the norm's output and `c` the row's radial coefficient, the gradient with respect to the
/// activation's input is `f' (s g + (radial_linear a + radial_constant) c + linear a + constant)`.
#[derive(Debug, Clone, Default)]
pub(crate) struct BackwardCoefficients {
    pub constant: Vec<f32>,
    pub linear: Vec<f32>,
    pub radial_constant: Vec<f32>,
    pub radial_linear: Vec<f32>,
}

/// Turns `delta`, which is `s g + constant`, into the gradient with respect to the activation's input.
pub(crate) fn backward(
    activation: Activation,
    coefficients: &BackwardCoefficients,
    columns: usize,
    a: &[f32],
    radial: Option<&[f32]>,
    delta: &mut [f32],
) {
    with_activation!(activation, backward_of(coefficients, columns, a, radial, delta));
}

fn backward_of<const ACTIVATION: u8>(
    coefficients: &BackwardCoefficients,
    columns: usize,
    a: &[f32],
    radial: Option<&[f32]>,
    delta: &mut [f32],
) {
    for_tiles(columns, Backward::<ACTIVATION> { coefficients, columns, a, radial, delta });
}

struct Backward<'a, const ACTIVATION: u8> {
    coefficients: &'a BackwardCoefficients,
    columns: usize,
    a: &'a [f32],
    radial: Option<&'a [f32]>,
    delta: &'a mut [f32],
}

impl<const ACTIVATION: u8> TileWork for Backward<'_, ACTIVATION> {
    #[inline(always)]
    fn tile<S: Simd, const V: usize>(&mut self, simd: S, at: usize) {
        let BackwardCoefficients { linear, radial_constant, radial_linear, .. } = self.coefficients;
        let [linear, radial_constant, radial_linear] =
            [linear, radial_constant, radial_linear].map(|values| load::<S, V, TILE>(simd, values, at));
        let rows =
            self.delta.chunks_exact_mut(self.columns).zip(down::<S, V>(simd, self.a, self.columns, at));
        match self.radial {
            Some(radial) => {
                for ((delta, a), &c) in rows.zip(radial) {
                    let (mut g, c) = (load::<S, V, TILE>(simd, delta, at), simd.splat_f32s(c));
                    for v in 0..V {
                        let radial = simd.mul_add_e_f32s(radial_linear[v], a[v], radial_constant[v]);
                        g[v] = simd.mul_add_e_f32s(radial, c, g[v]);
                    }
                    store::<S, V, TILE>(simd, delta, at, &through::<S, V, ACTIVATION>(simd, linear, a, g));
                }
            }
            None => {
                for (delta, a) in rows {
                    let g = load::<S, V, TILE>(simd, delta, at);
                    store::<S, V, TILE>(simd, delta, at, &through::<S, V, ACTIVATION>(simd, linear, a, g));
                }
            }
        }
    }
}

/// `f' (g + linear a)`.
#[inline(always)]
fn through<S: Simd, const V: usize, const ACTIVATION: u8>(
    simd: S,
    linear: [S::f32s; V],
    a: [S::f32s; V],
    mut g: [S::f32s; V],
) -> [S::f32s; V] {
    for v in 0..V {
        g[v] = simd.mul_add_e_f32s(linear[v], a[v], g[v]);
        g[v] = simd.mul_f32s(g[v], slope::<S, ACTIVATION>(simd, a[v]));
    }
    g
}

/// `f'(z)` where `f(z) = a`, as [`crate::layer::activation::slope`].
#[inline(always)]
pub(super) fn slope<S: Simd, const ACTIVATION: u8>(simd: S, a: S::f32s) -> S::f32s {
    let positive = simd.greater_than_f32s(a, simd.splat_f32s(0.0));
    match ACTIVATION {
        SELU => {
            let below = simd.add_f32s(a, simd.splat_f32s(SCALE_ALPHA));
            simd.select_f32s(positive, simd.splat_f32s(SCALE), below)
        }
        RELU => simd.select_f32s(positive, simd.splat_f32s(1.0), simd.splat_f32s(0.0)),
        ELU => {
            let one = simd.splat_f32s(1.0);
            simd.select_f32s(positive, one, simd.add_f32s(a, one))
        }
        _ => simd.mul_add_e_f32s(simd.neg_f32s(a), a, simd.splat_f32s(1.0)),
    }
}

/// Partial sums of squares, a row.
pub(crate) const LANES: usize = TILE;

/// Adds the squares of `scale x + shift` to each row's partial sums.
pub(crate) fn add_squares(columns: usize, x: &[f32], scale: &[f32], shift: &[f32], squares: &mut [f32]) {
    for_tiles(columns, AddSquares { columns, x, scale, shift, squares });
}

struct AddSquares<'a> {
    columns: usize,
    x: &'a [f32],
    scale: &'a [f32],
    shift: &'a [f32],
    squares: &'a mut [f32],
}

impl TileWork for AddSquares<'_> {
    #[inline(always)]
    fn tile<S: Simd, const V: usize>(&mut self, simd: S, at: usize) {
        let [scale, shift] = [self.scale, self.shift].map(|values| load::<S, V, TILE>(simd, values, at));
        let rows = down::<S, V>(simd, self.x, self.columns, at);
        for (squares, x) in self.squares.chunks_exact_mut(LANES).zip(rows) {
            let mut sums = load::<S, V, TILE>(simd, squares, 0);
            for v in 0..V {
                let y = simd.mul_add_e_f32s(scale[v], x[v], shift[v]);
                sums[v] = simd.mul_add_e_f32s(y, y, sums[v]);
            }
            store::<S, V, TILE>(simd, squares, 0, &sums);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::testing::{close, matrix};
    use crate::layer::activation;

    #[test]
    fn sums_match_their_definition() {
        for (rows, columns) in [(1, 16), (5, 16), (7, 48)] {
            let (a, mean, c) = (matrix(rows, columns, 1), matrix(1, columns, 2), matrix(rows, 1, 3));
            let column = |j: usize| a.iter().skip(j).step_by(columns);
            let [mut first, mut second] = [vec![0.5; columns], vec![0.5; columns]];
            add_radial(columns, &mean, &a, &c, &mut first, &mut second);
            close(&first, |j| 0.5 + column(j).zip(&c).map(|(a, c)| c * (a - mean[j])).sum::<f32>());
            close(&second, |j| 0.5 + column(j).zip(&c).map(|(a, c)| c * (a - mean[j]).powi(2)).sum::<f32>());

            let mut row = vec![0.0; columns];
            deviations(&a, &mut row, &mut first, &mut second);
            close(&row, |j| a[j]);
            close(&first, |j| column(j).map(|v| v - a[j]).sum::<f32>());
            close(&second, |j| column(j).map(|v| (v - a[j]).powi(2)).sum::<f32>());

            let (scale, mut squares) = (matrix(1, columns, 4), vec![0.25; rows * LANES]);
            add_squares(columns, &a, &scale, &mean, &mut squares);
            let lengths: Vec<f32> = squares.chunks(LANES).map(|parts| parts.iter().sum()).collect();
            let square = |i: usize| (scale[i % columns] * a[i] + mean[i % columns]).powi(2);
            close(&lengths, |r| {
                0.25 * LANES as f32 + (r * columns..(r + 1) * columns).map(square).sum::<f32>()
            });
        }
    }

    #[test]
    fn gradients_go_through_norm_and_activation() {
        for (columns, radial) in [(16, true), (48, true), (32, false)] {
            let (a, g, c) = (matrix(5, columns, 1), matrix(5, columns, 2), matrix(5, 1, 3));
            let [linear, radial_constant, radial_linear] = [4, 5, 6].map(|seed| matrix(1, columns, seed));
            let coefficients =
                BackwardCoefficients { constant: vec![], linear, radial_constant, radial_linear };
            let exact = |slope: fn(f32) -> f32| {
                let (coefficients, a, g, c) = (&coefficients, &a, &g, &c);
                move |i: usize| {
                    let (j, c) = (i % columns, if radial { c[i / columns] } else { 0.0 });
                    let radial = c * (coefficients.radial_linear[j] * a[i] + coefficients.radial_constant[j]);
                    slope(a[i]) * (g[i] + radial + coefficients.linear[j] * a[i])
                }
            };
            let found = |activation: Activation| {
                let mut delta = g.clone();
                backward(activation, &coefficients, columns, &a, radial.then_some(&c[..]), &mut delta);
                delta
            };
            close(&found(Activation::Selu), exact(activation::slope::<{ activation::SELU }>));
            close(&found(Activation::Relu), exact(activation::slope::<{ activation::RELU }>));
            close(&found(Activation::Tanh), exact(activation::slope::<{ activation::TANH }>));
            close(&found(Activation::Elu), exact(activation::slope::<{ activation::ELU }>));
        }
    }
}
