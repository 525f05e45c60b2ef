//! Loops over rows, a strip of 16 columns at a time: written in vectors, where the compiler does not find them by itself.

use pulp::{Simd, WithSimd};

use super::product::{add, load, store};
use crate::layer::Activation;
use crate::layer::activation::{RELU, SCALE, SCALE_ALPHA, SELU, with_activation};

/// Columns of a strip.
pub(super) const T: usize = 16;

/// Work on the rows of matrices with so many columns.
pub(super) trait Strips {
    /// The strip from column `at` on, which is `V` vectors wide.
    fn strip<S: Simd, const V: usize>(&mut self, simd: S, at: usize);
}

/// Does the work, strip after strip of so many columns.
pub(super) fn each(columns: usize, work: impl Strips) {
    pulp::Arch::new().dispatch(Each { columns, work });
}

struct Each<W> {
    columns: usize,
    work: W,
}

impl<W: Strips> WithSimd for Each<W> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        for at in (0..self.columns).step_by(T) {
            match S::F32_LANES {
                16 => self.work.strip::<S, 1>(simd, at),
                8 => self.work.strip::<S, 2>(simd, at),
                4 => self.work.strip::<S, 4>(simd, at),
                _ => self.work.strip::<S, 16>(simd, at),
            }
        }
    }
}

/// One strip of every row of `columns`.
#[inline(always)]
pub(super) fn down<S: Simd, const V: usize>(
    simd: S,
    values: &[f32],
    columns: usize,
    at: usize,
) -> impl Iterator<Item = [S::f32s; V]> {
    assert!(at + T <= columns, "checked here, not in every row");
    values.chunks_exact(columns).map(move |row| load::<S, V, T>(simd, row, at))
}

/// Adds `Σ c q` and `Σ c q²`, with `q = a - mean` and one `c` for each row.
pub(crate) fn add_along(
    columns: usize,
    mean: &[f32],
    a: &[f32],
    c: &[f32],
    first: &mut [f32],
    second: &mut [f32],
) {
    each(columns, AddAlong { columns, mean, a, c, first, second });
}

struct AddAlong<'a> {
    columns: usize,
    mean: &'a [f32],
    a: &'a [f32],
    c: &'a [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
}

impl Strips for AddAlong<'_> {
    #[inline(always)]
    fn strip<S: Simd, const V: usize>(&mut self, simd: S, at: usize) {
        let mean = load::<S, V, T>(simd, self.mean, at);
        let [mut first, mut second] = [[simd.splat_f32s(0.0); V]; 2];
        for (a, &c) in down::<S, V>(simd, self.a, self.columns, at).zip(self.c) {
            let c = simd.splat_f32s(c);
            for v in 0..V {
                let q = simd.sub_f32s(a[v], mean[v]);
                let along = simd.mul_f32s(c, q);
                first[v] = simd.add_f32s(first[v], along);
                second[v] = simd.mul_add_e_f32s(along, q, second[v]);
            }
        }
        add::<S, V, T>(simd, self.first, at, &first);
        add::<S, V, T>(simd, self.second, at, &second);
    }
}

/// The first row, and the sums of deviations from it and of their squares.
pub(crate) fn deviations(values: &[f32], row: &mut [f32], first: &mut [f32], second: &mut [f32]) {
    each(row.len(), Deviations { values, row, first, second });
}

struct Deviations<'a> {
    values: &'a [f32],
    row: &'a mut [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
}

impl Strips for Deviations<'_> {
    #[inline(always)]
    fn strip<S: Simd, const V: usize>(&mut self, simd: S, at: usize) {
        let centre = load::<S, V, T>(simd, self.values, at);
        let [mut first, mut second] = [[simd.splat_f32s(0.0); V]; 2];
        for a in down::<S, V>(simd, self.values, self.row.len(), at) {
            for v in 0..V {
                let deviation = simd.sub_f32s(a[v], centre[v]);
                first[v] = simd.add_f32s(first[v], deviation);
                second[v] = simd.mul_add_e_f32s(deviation, deviation, second[v]);
            }
        }
        store::<S, V, T>(simd, self.row, at, &centre);
        store::<S, V, T>(simd, self.first, at, &first);
        store::<S, V, T>(simd, self.second, at, &second);
    }
}

/// What a backward pass through a folded norm and the activation before it needs, padded: from `s g`, with `g` the gradient
/// by the norm's output, to `f' (s g + along_linear a c + along_constant c + linear a + constant)`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slopes {
    pub constant: Vec<f32>,
    pub linear: Vec<f32>,
    pub along_constant: Vec<f32>,
    pub along_linear: Vec<f32>,
}

/// Turns `delta`, which is `s g + constant`, into the gradient by what the activation was given.
pub(crate) fn backward(
    activation: Activation,
    slopes: &Slopes,
    columns: usize,
    a: &[f32],
    along: Option<&[f32]>,
    delta: &mut [f32],
) {
    with_activation!(activation, backward_of(slopes, columns, a, along, delta));
}

fn backward_of<const ACTIVATION: u8>(
    slopes: &Slopes,
    columns: usize,
    a: &[f32],
    along: Option<&[f32]>,
    delta: &mut [f32],
) {
    each(columns, Backward::<ACTIVATION> { slopes, columns, a, along, delta });
}

struct Backward<'a, const ACTIVATION: u8> {
    slopes: &'a Slopes,
    columns: usize,
    a: &'a [f32],
    along: Option<&'a [f32]>,
    delta: &'a mut [f32],
}

impl<const ACTIVATION: u8> Strips for Backward<'_, ACTIVATION> {
    #[inline(always)]
    fn strip<S: Simd, const V: usize>(&mut self, simd: S, at: usize) {
        let Slopes { linear, along_constant, along_linear, .. } = self.slopes;
        let [linear, along_constant, along_linear] =
            [linear, along_constant, along_linear].map(|values| load::<S, V, T>(simd, values, at));
        let rows =
            self.delta.chunks_exact_mut(self.columns).zip(down::<S, V>(simd, self.a, self.columns, at));
        match self.along {
            Some(along) => {
                for ((delta, a), &c) in rows.zip(along) {
                    let (mut g, c) = (load::<S, V, T>(simd, delta, at), simd.splat_f32s(c));
                    for v in 0..V {
                        let along = simd.mul_add_e_f32s(along_linear[v], a[v], along_constant[v]);
                        g[v] = simd.mul_add_e_f32s(along, c, g[v]);
                    }
                    store::<S, V, T>(simd, delta, at, &through::<S, V, ACTIVATION>(simd, linear, a, g));
                }
            }
            None => {
                for (delta, a) in rows {
                    let g = load::<S, V, T>(simd, delta, at);
                    store::<S, V, T>(simd, delta, at, &through::<S, V, ACTIVATION>(simd, linear, a, g));
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
        _ => simd.mul_add_e_f32s(simd.neg_f32s(a), a, simd.splat_f32s(1.0)),
    }
}

/// Partial sums of a row's squares.
pub(crate) const PARTS: usize = T;

/// Adds the squares of `scale x + shift` to each row's partial sums.
pub(crate) fn add_squares(columns: usize, x: &[f32], scale: &[f32], shift: &[f32], squares: &mut [f32]) {
    each(columns, AddSquares { columns, x, scale, shift, squares });
}

struct AddSquares<'a> {
    columns: usize,
    x: &'a [f32],
    scale: &'a [f32],
    shift: &'a [f32],
    squares: &'a mut [f32],
}

impl Strips for AddSquares<'_> {
    #[inline(always)]
    fn strip<S: Simd, const V: usize>(&mut self, simd: S, at: usize) {
        let [scale, shift] = [self.scale, self.shift].map(|values| load::<S, V, T>(simd, values, at));
        let rows = down::<S, V>(simd, self.x, self.columns, at);
        for (squares, x) in self.squares.chunks_exact_mut(PARTS).zip(rows) {
            let mut sums = load::<S, V, T>(simd, squares, 0);
            for v in 0..V {
                let y = simd.mul_add_e_f32s(scale[v], x[v], shift[v]);
                sums[v] = simd.mul_add_e_f32s(y, y, sums[v]);
            }
            store::<S, V, T>(simd, squares, 0, &sums);
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
            add_along(columns, &mean, &a, &c, &mut first, &mut second);
            close(&first, |j| 0.5 + column(j).zip(&c).map(|(a, c)| c * (a - mean[j])).sum::<f32>());
            close(&second, |j| 0.5 + column(j).zip(&c).map(|(a, c)| c * (a - mean[j]).powi(2)).sum::<f32>());

            let mut row = vec![0.0; columns];
            deviations(&a, &mut row, &mut first, &mut second);
            close(&row, |j| a[j]);
            close(&first, |j| column(j).map(|v| v - a[j]).sum::<f32>());
            close(&second, |j| column(j).map(|v| (v - a[j]).powi(2)).sum::<f32>());

            let (scale, mut squares) = (matrix(1, columns, 4), vec![0.25; rows * PARTS]);
            add_squares(columns, &a, &scale, &mean, &mut squares);
            let lengths: Vec<f32> = squares.chunks(PARTS).map(|parts| parts.iter().sum()).collect();
            let square = |i: usize| (scale[i % columns] * a[i] + mean[i % columns]).powi(2);
            close(&lengths, |r| {
                0.25 * PARTS as f32 + (r * columns..(r + 1) * columns).map(square).sum::<f32>()
            });
        }
    }

    #[test]
    fn gradients_go_through_norm_and_activation() {
        for (columns, along) in [(16, true), (48, true), (32, false)] {
            let (a, g, c) = (matrix(5, columns, 1), matrix(5, columns, 2), matrix(5, 1, 3));
            let [linear, along_constant, along_linear] = [4, 5, 6].map(|seed| matrix(1, columns, seed));
            let slopes = Slopes { constant: vec![], linear, along_constant, along_linear };
            let exact = |slope: fn(f32) -> f32| {
                let (slopes, a, g, c) = (&slopes, &a, &g, &c);
                move |i: usize| {
                    let (j, c) = (i % columns, if along { c[i / columns] } else { 0.0 });
                    let along = c * (slopes.along_linear[j] * a[i] + slopes.along_constant[j]);
                    slope(a[i]) * (g[i] + along + slopes.linear[j] * a[i])
                }
            };
            let found = |activation: Activation| {
                let mut delta = g.clone();
                backward(activation, &slopes, columns, &a, along.then_some(&c[..]), &mut delta);
                delta
            };
            close(&found(Activation::Selu), exact(activation::slope::<{ activation::SELU }>));
            close(&found(Activation::Relu), exact(activation::slope::<{ activation::RELU }>));
            close(&found(Activation::Tanh), exact(activation::slope::<{ activation::TANH }>));
        }
    }
}
