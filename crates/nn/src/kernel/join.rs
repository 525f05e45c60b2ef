//! Loops over the rows of joined branches: scaling, activation, row normalisation, and their backward passes.

use pulp::{Simd, WithSimd};

use super::product::{Matrix, add, load, store};
use super::tile::{TILE, TileWork, down, for_tiles, slope};
use super::{lanes, lanes_mut, vectorised};
use crate::layer::Activation;
use crate::layer::activation::{value, with_activation};

/// `out = f(scale x + shift)`.
pub(crate) fn activate_scaled(
    activation: Activation,
    columns: usize,
    x: &[f32],
    scale: &[f32],
    shift: &[f32],
    out: &mut [f32],
) {
    with_activation!(activation, of_scaled(columns, x, scale, shift, out));
}

vectorised! {
    fn of_scaled<'a, const ACTIVATION: u8>(
        columns: usize,
        x: &'a [f32],
        scale: &'a [f32],
        shift: &'a [f32],
        out: &'a mut [f32],
    ) {
        for at in (0..columns).step_by(TILE) {
            let [scale, shift]: [[f32; TILE]; 2] = [*lanes(scale, at), *lanes(shift, at)];
            for (x, out) in x.chunks_exact(columns).zip(out.chunks_exact_mut(columns)) {
                let x: &[f32; TILE] = lanes(x, at);
                let out: &mut [f32; TILE] = lanes_mut(out, at);
                for j in 0..TILE {
                    out[j] = value::<ACTIVATION>(scale[j].mul_add(x[j], shift[j]));
                }
            }
        }
    }
}

/// Each row times its factor.
pub(crate) fn multiply_rows(columns: usize, factors: &[f32], values: &mut [f32]) {
    for_tiles(columns, MultiplyRows { columns, factors, values });
}

struct MultiplyRows<'a> {
    columns: usize,
    factors: &'a [f32],
    values: &'a mut [f32],
}

impl TileWork for MultiplyRows<'_> {
    #[inline(always)]
    fn tile<S: Simd, const V: usize>(&mut self, simd: S, at: usize) {
        for (row, &factor) in self.values.chunks_exact_mut(self.columns).zip(self.factors) {
            let (mut x, factor) = (load::<S, V, TILE>(simd, row, at), simd.splat_f32s(factor));
            for x in &mut x {
                *x = simd.mul_f32s(*x, factor);
            }
            store::<S, V, TILE>(simd, row, at, &x);
        }
    }
}

/// Where the sums of a batch normalisation's gradients go: `Σ g` and `Σ g (z - mean)`, with `z` its input.
pub(crate) struct NormSums<'a> {
    pub z: &'a [f32],
    pub mean: &'a [f32],
    pub first: &'a mut [f32],
    pub second: &'a mut [f32],
}

/// Replaces an activation's output `a` by `f' g`, with `g` the gradient with respect to it; adds that to the sums.
pub(crate) fn activation_backward(
    activation: Activation,
    columns: usize,
    g: &[f32],
    a: &mut [f32],
    sums: Option<NormSums<'_>>,
) {
    with_activation!(activation, activation_backward_of(columns, g, a, sums));
}

fn activation_backward_of<const ACTIVATION: u8>(
    columns: usize,
    g: &[f32],
    a: &mut [f32],
    sums: Option<NormSums<'_>>,
) {
    for_tiles(columns, ActivationBackward::<ACTIVATION> { columns, g, a, sums });
}

struct ActivationBackward<'a, const ACTIVATION: u8> {
    columns: usize,
    g: &'a [f32],
    a: &'a mut [f32],
    sums: Option<NormSums<'a>>,
}

impl<const ACTIVATION: u8> TileWork for ActivationBackward<'_, ACTIVATION> {
    #[inline(always)]
    fn tile<S: Simd, const V: usize>(&mut self, simd: S, at: usize) {
        let columns = self.columns;
        let rows = self.a.chunks_exact_mut(columns).zip(down::<S, V>(simd, self.g, columns, at));
        let Some(NormSums { z, mean, first, second }) = &mut self.sums else {
            for (row, mut g) in rows {
                let a = load::<S, V, TILE>(simd, row, at);
                for v in 0..V {
                    g[v] = simd.mul_f32s(g[v], slope::<S, ACTIVATION>(simd, a[v]));
                }
                store::<S, V, TILE>(simd, row, at, &g);
            }
            return;
        };
        let mean = load::<S, V, TILE>(simd, mean, at);
        let [mut sum, mut sum_z] = [[simd.splat_f32s(0.0); V]; 2];
        for ((row, mut g), z) in rows.zip(down::<S, V>(simd, z, columns, at)) {
            let a = load::<S, V, TILE>(simd, row, at);
            for v in 0..V {
                g[v] = simd.mul_f32s(g[v], slope::<S, ACTIVATION>(simd, a[v]));
                sum[v] = simd.add_f32s(sum[v], g[v]);
                sum_z[v] = simd.mul_add_e_f32s(g[v], simd.sub_f32s(z[v], mean[v]), sum_z[v]);
            }
            store::<S, V, TILE>(simd, row, at, &g);
        }
        add::<S, V, TILE>(simd, first, at, &sum);
        add::<S, V, TILE>(simd, second, at, &sum_z);
    }
}

/// A matrix stored in parts of `columns` columns: row `r` of part `p` starts at `p * step + r * columns`.
#[derive(Clone, Copy)]
pub(crate) struct InParts<'a> {
    pub values: &'a [f32],
    pub step: usize,
    pub columns: usize,
}

impl<'a> InParts<'a> {
    pub fn part(self, part: usize) -> Matrix<'a> {
        Matrix { values: &self.values[part * self.step..], stride: self.columns }
    }
}

/// Work on whole rows; a tile of one is `V` vectors.
pub(crate) trait RowWork {
    fn rows<S: Simd, const V: usize>(self, simd: S);
}

pub(crate) struct RowDispatch<W>(pub W);

impl<W: RowWork> WithSimd for RowDispatch<W> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match S::F32_LANES {
            16 => self.0.rows::<S, 1>(simd),
            8 => self.0.rows::<S, 2>(simd),
            4 => self.0.rows::<S, 4>(simd),
            _ => self.0.rows::<S, 16>(simd),
        }
    }
}

#[inline(always)]
pub(crate) fn total<S: Simd, const V: usize>(simd: S, vectors: [S::f32s; V]) -> f32 {
    let mut sum = vectors[0];
    for vector in &vectors[1..] {
        sum = simd.add_f32s(sum, *vector);
    }
    simd.reduce_sum_f32s(sum)
}

/// The squared norm of each row, over all parts.
pub(crate) fn squares(parts: usize, x: InParts<'_>, squares: &mut [f32]) {
    pulp::Arch::new().dispatch(RowDispatch(Squares { parts, x, squares }));
}

struct Squares<'a> {
    parts: usize,
    x: InParts<'a>,
    squares: &'a mut [f32],
}

impl RowWork for Squares<'_> {
    #[inline(always)]
    fn rows<S: Simd, const V: usize>(self, simd: S) {
        let InParts { values, step, columns } = self.x;
        for (r, square) in self.squares.iter_mut().enumerate() {
            let mut sums = [simd.splat_f32s(0.0); V];
            for part in 0..self.parts {
                for at in (0..columns).step_by(TILE) {
                    let x = load::<S, V, TILE>(simd, values, part * step + r * columns + at);
                    for v in 0..V {
                        sums[v] = simd.mul_add_e_f32s(x[v], x[v], sums[v]);
                    }
                }
            }
            *square = total(simd, sums);
        }
    }
}

/// The backward pass of a batch normalisation as a map of each column: with `z` its input and `g` the gradient with
/// respect to its output, the gradient with respect to `z` is `scale g + linear z + constant`.
#[derive(Clone, Copy)]
pub(crate) struct NormBackward<'a> {
    pub scale: &'a [f32],
    pub linear: &'a [f32],
    pub constant: &'a [f32],
}

/// The backward pass of the norms of a join, one a part, and of the row normalisation before them, in place: from the
/// gradient `g` with respect to the norms' output to that with respect to the joined rows. `z` is the norms' input;
/// part `p` of `g` starts at `p * step`. Without `inverse` norms, rows were not normalised.
pub(crate) fn join_backward(
    norms: &[NormBackward<'_>],
    z: InParts<'_>,
    inverse: Option<&[f32]>,
    g: &mut [f32],
    step: usize,
    rows: usize,
) {
    let arch = pulp::Arch::new();
    let join = JoinBackward { norms, z, inverse, g, step, rows };
    match (norms.len(), z.columns, inverse) {
        (1, TILE, Some(inverse)) => arch.dispatch(RowDispatch(JoinBackwardFew::<1>::new(join, inverse))),
        (2, TILE, Some(inverse)) => arch.dispatch(RowDispatch(JoinBackwardFew::<2>::new(join, inverse))),
        (3, TILE, Some(inverse)) => arch.dispatch(RowDispatch(JoinBackwardFew::<3>::new(join, inverse))),
        (4, TILE, Some(inverse)) => arch.dispatch(RowDispatch(JoinBackwardFew::<4>::new(join, inverse))),
        _ => arch.dispatch(RowDispatch(join)),
    }
}

struct JoinBackward<'a> {
    norms: &'a [NormBackward<'a>],
    z: InParts<'a>,
    inverse: Option<&'a [f32]>,
    g: &'a mut [f32],
    step: usize,
    rows: usize,
}

impl RowWork for JoinBackward<'_> {
    #[inline(always)]
    fn rows<S: Simd, const V: usize>(self, simd: S) {
        let InParts { values, step, columns } = self.z;
        for r in 0..self.rows {
            let mut sums = [simd.splat_f32s(0.0); V];
            for (part, norm) in self.norms.iter().enumerate() {
                for at in (0..columns).step_by(TILE) {
                    let z = load::<S, V, TILE>(simd, values, part * step + r * columns + at);
                    let place = part * self.step + r * columns + at;
                    let mut g = load::<S, V, TILE>(simd, self.g, place);
                    let norm = [norm.scale, norm.linear, norm.constant]
                        .map(|values| load::<S, V, TILE>(simd, values, at));
                    centred(simd, norm, z, &mut g, &mut sums);
                    store::<S, V, TILE>(simd, self.g, place, &g);
                }
            }
            let Some(inverse) = self.inverse else { continue };
            let (radial, inverse) = (-total(simd, sums), inverse[r]);
            for part in 0..self.norms.len() {
                for at in (0..columns).step_by(TILE) {
                    let z = load::<S, V, TILE>(simd, values, part * step + r * columns + at);
                    let place = part * self.step + r * columns + at;
                    let g = load::<S, V, TILE>(simd, self.g, place);
                    store::<S, V, TILE>(simd, self.g, place, &divided(simd, radial, inverse, z, g));
                }
            }
        }
    }
}

/// `g = scale g + linear z + constant`, and `z g` is added to sums.
#[inline(always)]
fn centred<S: Simd, const V: usize>(
    simd: S,
    [scale, linear, constant]: [[S::f32s; V]; 3],
    z: [S::f32s; V],
    g: &mut [S::f32s; V],
    sums: &mut [S::f32s; V],
) {
    for v in 0..V {
        let offset = simd.mul_add_e_f32s(linear[v], z[v], constant[v]);
        g[v] = simd.mul_add_e_f32s(scale[v], g[v], offset);
        sums[v] = simd.mul_add_e_f32s(z[v], g[v], sums[v]);
    }
}

/// `inverse (g + radial z)`.
#[inline(always)]
fn divided<S: Simd, const V: usize>(
    simd: S,
    radial: f32,
    inverse: f32,
    z: [S::f32s; V],
    mut g: [S::f32s; V],
) -> [S::f32s; V] {
    let [radial, inverse] = [radial, inverse].map(|value| simd.splat_f32s(value));
    for v in 0..V {
        g[v] = simd.mul_f32s(inverse, simd.mul_add_e_f32s(radial, z[v], g[v]));
    }
    g
}

/// [`JoinBackward`] for `P` parts of one tile each: gradients between the two steps stay in registers.
struct JoinBackwardFew<'a, const P: usize> {
    norms: [NormBackward<'a>; P],
    z: [&'a [[f32; TILE]]; P],
    inverse: &'a [f32],
    g: [&'a mut [[f32; TILE]]; P],
}

impl<'a, const P: usize> JoinBackwardFew<'a, P> {
    fn new(join: JoinBackward<'a>, inverse: &'a [f32]) -> Self {
        let JoinBackward { norms, z, g, step, rows, .. } = join;
        let part = |p: usize| &z.values[p * z.step..].as_chunks().0[..rows];
        let mut g = g.chunks_mut(step).map(|g| &mut g.as_chunks_mut().0[..rows]);
        JoinBackwardFew {
            norms: *norms.first_chunk().expect("as many parts"),
            z: std::array::from_fn(part),
            inverse: &inverse[..rows],
            g: std::array::from_fn(|_| g.next().expect("as many parts")),
        }
    }
}

impl<const P: usize> RowWork for JoinBackwardFew<'_, P> {
    #[inline(always)]
    fn rows<S: Simd, const V: usize>(self, simd: S) {
        let zero = [simd.splat_f32s(0.0); V];
        let mut norms = [[zero; 3]; P];
        for (norm, from) in norms.iter_mut().zip(&self.norms) {
            norm[0] = load::<S, V, TILE>(simd, from.scale, 0);
            norm[1] = load::<S, V, TILE>(simd, from.linear, 0);
            norm[2] = load::<S, V, TILE>(simd, from.constant, 0);
        }
        for (r, &inverse) in self.inverse.iter().enumerate() {
            let mut sums = zero;
            let mut gs = [zero; P];
            for (p, g) in gs.iter_mut().enumerate() {
                let z = load::<S, V, TILE>(simd, &self.z[p][r], 0);
                *g = load::<S, V, TILE>(simd, &self.g[p][r], 0);
                centred(simd, norms[p], z, g, &mut sums);
            }
            let radial = -total(simd, sums);
            for (p, g) in gs.into_iter().enumerate() {
                let z = load::<S, V, TILE>(simd, &self.z[p][r], 0);
                let g = divided(simd, radial, inverse, z, g);
                store::<S, V, TILE>(simd, &mut self.g[p][r], 0, &g);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::testing::{close, matrix};
    use crate::layer::activation;

    #[test]
    fn rows_are_scaled_shifted_activated_and_multiplied() {
        for columns in [16, 48] {
            let (x, scale, shift) = (matrix(5, columns, 1), matrix(1, columns, 2), matrix(1, columns, 3));
            let mut out = vec![9.0; x.len()];
            for (activation, value) in [
                (Activation::Selu, activation::value::<{ activation::SELU }> as fn(f32) -> f32),
                (Activation::Relu, activation::value::<{ activation::RELU }>),
                (Activation::Tanh, activation::value::<{ activation::TANH }>),
                (Activation::Elu, activation::value::<{ activation::ELU }>),
            ] {
                activate_scaled(activation, columns, &x, &scale, &shift, &mut out);
                close(&out, |i| value(scale[i % columns] * x[i] + shift[i % columns]));
            }
            let (factors, mut out) = (matrix(5, 1, 4), x.clone());
            multiply_rows(columns, &factors, &mut out);
            close(&out, |i| factors[i / columns] * x[i]);
        }
    }

    #[test]
    fn gradients_go_activation_backwards_and_are_added_up() {
        for columns in [16, 48] {
            let [z, g, a] = [1, 2, 3].map(|seed| matrix(7, columns, seed));
            let mean = matrix(1, columns, 4);
            type Slope = fn(f32) -> f32;
            let slopes: [(Activation, Slope); 4] = [
                (Activation::Selu, activation::slope::<{ activation::SELU }>),
                (Activation::Relu, activation::slope::<{ activation::RELU }>),
                (Activation::Tanh, activation::slope::<{ activation::TANH }>),
                (Activation::Elu, activation::slope::<{ activation::ELU }>),
            ];
            for (activation, slope) in slopes {
                let exact = |i: usize| slope(a[i]) * g[i];
                let mut out = a.clone();
                activation_backward(activation, columns, &g, &mut out, None);
                close(&out, exact);
                let (mut out, [mut first, mut second]) =
                    (a.clone(), [vec![0.5; columns], vec![0.5; columns]]);
                let sums = NormSums { z: &z, mean: &mean, first: &mut first, second: &mut second };
                activation_backward(activation, columns, &g, &mut out, Some(sums));
                close(&out, exact);
                let column = |j: usize| (j..g.len()).step_by(columns);
                close(&first, |j| 0.5 + column(j).map(exact).sum::<f32>());
                close(&second, |j| 0.5 + column(j).map(|i| exact(i) * (z[i] - mean[j])).sum::<f32>());
            }
        }
    }

    #[test]
    fn rows_in_parts_have_lengths_and_gradients() {
        for (parts, columns) in [(1, 16), (3, 16), (2, 48)] {
            // Five rows, and a gap behind each part.
            let (rows, step) = (5, 7 * columns);
            let [z, g] = [1, 2].map(|seed| matrix(7 * parts, columns, seed));
            let x = InParts { values: &z, step, columns };
            let row =
                |r: usize| (0..parts * columns).map(move |j| j / columns * step + r * columns + j % columns);
            let mut found = vec![0.0; rows];
            squares(parts, x, &mut found);
            close(&found, |r| row(r).map(|i| z[i] * z[i]).sum());

            let [scale, linear, constant] = [3, 4, 5].map(|seed| matrix(parts, columns, seed));
            let of = |values: &'_ [f32], part: usize| values[part * columns..][..columns].to_vec();
            let owned: Vec<[Vec<f32>; 3]> =
                (0..parts).map(|p| [of(&scale, p), of(&linear, p), of(&constant, p)]).collect();
            let norms: Vec<NormBackward> = owned
                .iter()
                .map(|[scale, linear, constant]| NormBackward { scale, linear, constant })
                .collect();
            let centred = |i: usize| {
                let j = i / step * columns + i % columns;
                scale[j] * g[i] + linear[j] * z[i] + constant[j]
            };
            let inverse = matrix(rows, 1, 6);
            for divided in [false, true] {
                let mut out = g.clone();
                join_backward(&norms, x, divided.then_some(&inverse[..]), &mut out, step, rows);
                for (r, &inverse) in inverse.iter().enumerate() {
                    let radial: f32 = row(r).map(|i| z[i] * centred(i)).sum();
                    for i in row(r) {
                        let exact = if divided { inverse * (centred(i) - radial * z[i]) } else { centred(i) };
                        assert!((out[i] - exact).abs() < 1e-5, "{parts} {columns} {r} {i}");
                    }
                }
                assert_eq!(out[rows * columns..step], g[rows * columns..step], "the gap is left alone");
            }
        }
    }
}
