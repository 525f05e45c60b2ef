//! Loops over the rows of a part of the combination, where norm and activation stand after it, a strip of columns at a time.

use pulp::{Simd, WithSimd};

use super::product::{add, load, store};
use super::strip::{Strips, T, down, each, slope};
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
        for at in (0..columns).step_by(T) {
            let [scale, shift]: [[f32; T]; 2] = [*lanes(scale, at), *lanes(shift, at)];
            for (x, out) in x.chunks_exact(columns).zip(out.chunks_exact_mut(columns)) {
                let x: &[f32; T] = lanes(x, at);
                let out: &mut [f32; T] = lanes_mut(out, at);
                for j in 0..T {
                    out[j] = value::<ACTIVATION>(scale[j].mul_add(x[j], shift[j]));
                }
            }
        }
    }
}

/// Each row times its factor.
pub(crate) fn multiply_rows(columns: usize, factors: &[f32], values: &mut [f32]) {
    each(columns, MultiplyRows { columns, factors, values });
}

struct MultiplyRows<'a> {
    columns: usize,
    factors: &'a [f32],
    values: &'a mut [f32],
}

impl Strips for MultiplyRows<'_> {
    #[inline(always)]
    fn strip<S: Simd, const V: usize>(&mut self, simd: S, at: usize) {
        for (row, &factor) in self.values.chunks_exact_mut(self.columns).zip(self.factors) {
            let (mut x, factor) = (load::<S, V, T>(simd, row, at), simd.splat_f32s(factor));
            for x in &mut x {
                *x = simd.mul_f32s(*x, factor);
            }
            store::<S, V, T>(simd, row, at, &x);
        }
    }
}

/// What a norm gives to the sums of its gradients: its input less the mean, and where `Σ g` and `Σ g (z - mean)` are added.
pub(crate) struct NormSums<'a> {
    pub z: &'a [f32],
    pub mean: &'a [f32],
    pub first: &'a mut [f32],
    pub second: &'a mut [f32],
}

/// Puts `f' g` in the place of `a`, where `a` is what the activation gave and `g` the gradient by it; and adds it to sums.
pub(crate) fn through_activation(
    activation: Activation,
    columns: usize,
    g: &[f32],
    a: &mut [f32],
    sums: Option<NormSums<'_>>,
) {
    with_activation!(activation, through(columns, g, a, sums));
}

fn through<const ACTIVATION: u8>(columns: usize, g: &[f32], a: &mut [f32], sums: Option<NormSums<'_>>) {
    each(columns, Through::<ACTIVATION> { columns, g, a, sums });
}

struct Through<'a, const ACTIVATION: u8> {
    columns: usize,
    g: &'a [f32],
    a: &'a mut [f32],
    sums: Option<NormSums<'a>>,
}

impl<const ACTIVATION: u8> Strips for Through<'_, ACTIVATION> {
    #[inline(always)]
    fn strip<S: Simd, const V: usize>(&mut self, simd: S, at: usize) {
        let columns = self.columns;
        let rows = self.a.chunks_exact_mut(columns).zip(down::<S, V>(simd, self.g, columns, at));
        let Some(NormSums { z, mean, first, second }) = &mut self.sums else {
            for (row, mut g) in rows {
                let a = load::<S, V, T>(simd, row, at);
                for v in 0..V {
                    g[v] = simd.mul_f32s(g[v], slope::<S, ACTIVATION>(simd, a[v]));
                }
                store::<S, V, T>(simd, row, at, &g);
            }
            return;
        };
        let mean = load::<S, V, T>(simd, mean, at);
        let [mut sum, mut sum_z] = [[simd.splat_f32s(0.0); V]; 2];
        for ((row, mut g), z) in rows.zip(down::<S, V>(simd, z, columns, at)) {
            let a = load::<S, V, T>(simd, row, at);
            for v in 0..V {
                g[v] = simd.mul_f32s(g[v], slope::<S, ACTIVATION>(simd, a[v]));
                sum[v] = simd.add_f32s(sum[v], g[v]);
                sum_z[v] = simd.mul_add_e_f32s(g[v], simd.sub_f32s(z[v], mean[v]), sum_z[v]);
            }
            store::<S, V, T>(simd, row, at, &g);
        }
        add::<S, V, T>(simd, first, at, &sum);
        add::<S, V, T>(simd, second, at, &sum_z);
    }
}

/// Rows in several parts: row `r` of part `p` are the `columns` values from `p * step + r * columns` on.
#[derive(Clone, Copy)]
pub(crate) struct InParts<'a> {
    pub values: &'a [f32],
    pub step: usize,
    pub columns: usize,
}

/// Work on rows that lie in parts.
trait Rows {
    fn rows<S: Simd, const V: usize>(self, simd: S);
}

struct Together<W>(W);

impl<W: Rows> WithSimd for Together<W> {
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
fn total<S: Simd, const V: usize>(simd: S, vectors: [S::f32s; V]) -> f32 {
    let mut sum = vectors[0];
    for vector in &vectors[1..] {
        sum = simd.add_f32s(sum, *vector);
    }
    simd.reduce_sum_f32s(sum)
}

/// The squared length of each row, over all parts.
pub(crate) fn squares(parts: usize, x: InParts<'_>, squares: &mut [f32]) {
    pulp::Arch::new().dispatch(Together(Squares { parts, x, squares }));
}

struct Squares<'a> {
    parts: usize,
    x: InParts<'a>,
    squares: &'a mut [f32],
}

impl Rows for Squares<'_> {
    #[inline(always)]
    fn rows<S: Simd, const V: usize>(self, simd: S) {
        let InParts { values, step, columns } = self.x;
        for (r, square) in self.squares.iter_mut().enumerate() {
            let mut sums = [simd.splat_f32s(0.0); V];
            for part in 0..self.parts {
                for at in (0..columns).step_by(T) {
                    let x = load::<S, V, T>(simd, values, part * step + r * columns + at);
                    for v in 0..V {
                        sums[v] = simd.mul_add_e_f32s(x[v], x[v], sums[v]);
                    }
                }
            }
            *square = total(simd, sums);
        }
    }
}

/// What leads from the gradient `g` by what a norm gave to that by its input `z`: `scale g + linear z + constant`.
#[derive(Clone, Copy)]
pub(crate) struct Centre<'a> {
    pub scale: &'a [f32],
    pub linear: &'a [f32],
    pub constant: &'a [f32],
}

/// From the gradient by what norms gave, one for each part, to that by what was divided by its length to become their input
/// `z`; in place. Part `p` of the gradient begins at `p * step`. Without `inverse` lengths nothing was divided.
pub(crate) fn open(
    centre: &[Centre<'_>],
    z: InParts<'_>,
    inverse: Option<&[f32]>,
    g: &mut [f32],
    step: usize,
    rows: usize,
) {
    let arch = pulp::Arch::new();
    let open = Open { centre, z, inverse, g, step, rows };
    match (centre.len(), z.columns, inverse) {
        (1, T, Some(inverse)) => arch.dispatch(Together(OpenFew::<1>::new(open, inverse))),
        (2, T, Some(inverse)) => arch.dispatch(Together(OpenFew::<2>::new(open, inverse))),
        (3, T, Some(inverse)) => arch.dispatch(Together(OpenFew::<3>::new(open, inverse))),
        (4, T, Some(inverse)) => arch.dispatch(Together(OpenFew::<4>::new(open, inverse))),
        _ => arch.dispatch(Together(open)),
    }
}

struct Open<'a> {
    centre: &'a [Centre<'a>],
    z: InParts<'a>,
    inverse: Option<&'a [f32]>,
    g: &'a mut [f32],
    step: usize,
    rows: usize,
}

impl Rows for Open<'_> {
    #[inline(always)]
    fn rows<S: Simd, const V: usize>(self, simd: S) {
        let InParts { values, step, columns } = self.z;
        for r in 0..self.rows {
            let mut sums = [simd.splat_f32s(0.0); V];
            for (part, centre) in self.centre.iter().enumerate() {
                for at in (0..columns).step_by(T) {
                    let z = load::<S, V, T>(simd, values, part * step + r * columns + at);
                    let place = part * self.step + r * columns + at;
                    let mut g = load::<S, V, T>(simd, self.g, place);
                    let centre = [centre.scale, centre.linear, centre.constant]
                        .map(|values| load::<S, V, T>(simd, values, at));
                    centred(simd, centre, z, &mut g, &mut sums);
                    store::<S, V, T>(simd, self.g, place, &g);
                }
            }
            let Some(inverse) = self.inverse else { continue };
            let (along, inverse) = (-total(simd, sums), inverse[r]);
            for part in 0..self.centre.len() {
                for at in (0..columns).step_by(T) {
                    let z = load::<S, V, T>(simd, values, part * step + r * columns + at);
                    let place = part * self.step + r * columns + at;
                    let g = load::<S, V, T>(simd, self.g, place);
                    store::<S, V, T>(simd, self.g, place, &divided(simd, along, inverse, z, g));
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
        let centre = simd.mul_add_e_f32s(linear[v], z[v], constant[v]);
        g[v] = simd.mul_add_e_f32s(scale[v], g[v], centre);
        sums[v] = simd.mul_add_e_f32s(z[v], g[v], sums[v]);
    }
}

/// `inverse (g + along z)`.
#[inline(always)]
fn divided<S: Simd, const V: usize>(
    simd: S,
    along: f32,
    inverse: f32,
    z: [S::f32s; V],
    mut g: [S::f32s; V],
) -> [S::f32s; V] {
    let [along, inverse] = [along, inverse].map(|value| simd.splat_f32s(value));
    for v in 0..V {
        g[v] = simd.mul_f32s(inverse, simd.mul_add_e_f32s(along, z[v], g[v]));
    }
    g
}

/// As [`Open`], for `P` parts of one strip each: what is between the two steps stays in registers.
struct OpenFew<'a, const P: usize> {
    centre: [Centre<'a>; P],
    z: [&'a [[f32; T]]; P],
    inverse: &'a [f32],
    g: [&'a mut [[f32; T]]; P],
}

impl<'a, const P: usize> OpenFew<'a, P> {
    fn new(open: Open<'a>, inverse: &'a [f32]) -> Self {
        let Open { centre, z, g, step, rows, .. } = open;
        let part = |p: usize| &z.values[p * z.step..].as_chunks().0[..rows];
        let mut g = g.chunks_mut(step).map(|g| &mut g.as_chunks_mut().0[..rows]);
        OpenFew {
            centre: *centre.first_chunk().expect("as many parts"),
            z: std::array::from_fn(part),
            inverse: &inverse[..rows],
            g: std::array::from_fn(|_| g.next().expect("as many parts")),
        }
    }
}

impl<const P: usize> Rows for OpenFew<'_, P> {
    #[inline(always)]
    fn rows<S: Simd, const V: usize>(self, simd: S) {
        for (r, &inverse) in self.inverse.iter().enumerate() {
            let mut sums = [simd.splat_f32s(0.0); V];
            let mut gs = [sums; P];
            for (p, g) in gs.iter_mut().enumerate() {
                let z = load::<S, V, T>(simd, &self.z[p][r], 0);
                *g = load::<S, V, T>(simd, &self.g[p][r], 0);
                let Centre { scale, linear, constant } = self.centre[p];
                let centre = [scale, linear, constant].map(|values| load::<S, V, T>(simd, values, 0));
                centred(simd, centre, z, g, &mut sums);
            }
            let along = -total(simd, sums);
            for (p, g) in gs.into_iter().enumerate() {
                let z = load::<S, V, T>(simd, &self.z[p][r], 0);
                let g = divided(simd, along, inverse, z, g);
                store::<S, V, T>(simd, &mut self.g[p][r], 0, &g);
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
    fn gradients_go_through_activations_and_are_added_up() {
        for columns in [16, 48] {
            let [z, g, a] = [1, 2, 3].map(|seed| matrix(7, columns, seed));
            let mean = matrix(1, columns, 4);
            type Slope = fn(f32) -> f32;
            let slopes: [(Activation, Slope); 3] = [
                (Activation::Selu, activation::slope::<{ activation::SELU }>),
                (Activation::Relu, activation::slope::<{ activation::RELU }>),
                (Activation::Tanh, activation::slope::<{ activation::TANH }>),
            ];
            for (activation, slope) in slopes {
                let exact = |i: usize| slope(a[i]) * g[i];
                let mut out = a.clone();
                through_activation(activation, columns, &g, &mut out, None);
                close(&out, exact);
                let (mut out, [mut first, mut second]) =
                    (a.clone(), [vec![0.5; columns], vec![0.5; columns]]);
                let sums = NormSums { z: &z, mean: &mean, first: &mut first, second: &mut second };
                through_activation(activation, columns, &g, &mut out, Some(sums));
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
            let centre: Vec<Centre> =
                owned.iter().map(|[scale, linear, constant]| Centre { scale, linear, constant }).collect();
            let centred = |i: usize| {
                let j = i / step * columns + i % columns;
                scale[j] * g[i] + linear[j] * z[i] + constant[j]
            };
            let inverse = matrix(rows, 1, 6);
            for divided in [false, true] {
                let mut out = g.clone();
                open(&centre, x, divided.then_some(&inverse[..]), &mut out, step, rows);
                for (r, &inverse) in inverse.iter().enumerate() {
                    let along: f32 = row(r).map(|i| z[i] * centred(i)).sum();
                    for i in row(r) {
                        let exact = if divided { inverse * (centred(i) - along * z[i]) } else { centred(i) };
                        assert!((out[i] - exact).abs() < 1e-5, "{parts} {columns} {r} {i}");
                    }
                }
                assert_eq!(out[rows * columns..step], g[rows * columns..step], "the gap is left alone");
            }
        }
    }
}
