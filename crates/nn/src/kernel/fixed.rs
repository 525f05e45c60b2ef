//! Products of rows of 8 or 16 columns, one after the other, as in a network with at most 16 neurons in a layer: where
//! every distance is known when this is compiled, a step is little more than its multiplications.
//!
//! They add in the same order as the products of any width, and so give the same bits.

use pulp::{Simd, WithSimd};

use super::dispatch_narrow;
use super::product::{self, Start, add, load, step, store, tile_by_registers};

/// [`product::affine`] for rows of `K` columns that give rows of `C`.
pub(super) fn affine<const K: usize, const C: usize>(of: product::Affine<'_>) {
    let (x, out) = (&of.x.values.as_chunks().0[..of.rows], &mut of.out.as_chunks_mut().0[..of.rows]);
    dispatch::<C, _>(Affine::<K, C> { x, w: of.w.as_chunks().0, start: of.start, out });
}

/// [`product::add_outer`] for rows of `K` columns and of `C`.
pub(super) fn add_outer<const K: usize, const C: usize>(of: product::AddOuter<'_>) {
    let (x, d) = (&of.x.values.as_chunks().0[..of.rows], &of.d.as_chunks().0[..of.rows]);
    dispatch::<C, _>(AddOuter::<K, C> { x, d, sums: of.sums.as_chunks_mut().0 });
}

/// Work that gives rows of `C` columns, on vectors that are no wider than those.
fn dispatch<const C: usize, W: WithSimd<Output = ()>>(work: W) {
    match C {
        8 => dispatch_narrow(work),
        _ => pulp::Arch::new().dispatch(work),
    }
}

struct Affine<'a, const K: usize, const C: usize> {
    x: &'a [[f32; K]],
    w: &'a [[f32; C]],
    start: Start<'a>,
    out: &'a mut [[f32; C]],
}

impl<const K: usize, const C: usize> WithSimd for Affine<'_, K, C> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        tile_by_registers!(C, self, tiles, simd);
    }
}

impl<const K: usize, const C: usize> Affine<'_, K, C> {
    /// Rows in groups of `M`, then one by one; a row is `V` vectors.
    #[inline(always)]
    fn tiles<S: Simd, const M: usize, const V: usize>(self, simd: S) {
        let Affine { x, w, start, out } = self;
        let (groups, rest) = x.as_chunks::<M>();
        let (group_outs, rest_outs) = out.as_chunks_mut::<M>();
        for (g, (x, out)) in groups.iter().zip(group_outs).enumerate() {
            tile(simd, x, w, begin::<S, M, V, C>(simd, start, g * M, out), out);
        }
        for ((r, x), out) in (groups.len() * M..).zip(rest).zip(rest_outs.as_chunks_mut().0) {
            tile(simd, &[*x], w, begin::<S, 1, V, C>(simd, start, r, out), out);
        }
    }
}

/// The start of the sums of `M` rows, the first of which is row `first`.
#[inline(always)]
fn begin<S: Simd, const M: usize, const V: usize, const C: usize>(
    simd: S,
    start: Start<'_>,
    first: usize,
    out: &[[f32; C]; M],
) -> [[S::f32s; V]; M] {
    match start {
        Start::Row(row) => [load::<S, V, C>(simd, row, 0); M],
        Start::Zero => [[simd.splat_f32s(0.0); V]; M],
        Start::Sum => std::array::from_fn(|i| load::<S, V, C>(simd, &out[i], 0)),
        // Loops, not closures, which may be left out of line and compiled for the baseline only.
        Start::Scaled(factors, rows) => {
            let mut sums = [[simd.splat_f32s(0.0); V]; M];
            for i in 0..M {
                let factor = simd.splat_f32s(factors[first + i]);
                sums[i] = load::<S, V, C>(simd, rows.row(first + i), 0);
                for sum in &mut sums[i] {
                    *sum = simd.mul_f32s(factor, *sum);
                }
            }
            sums
        }
    }
}

#[inline(always)]
fn tile<S: Simd, const M: usize, const V: usize, const K: usize, const C: usize>(
    simd: S,
    x: &[[f32; K]; M],
    w: &[[f32; C]],
    mut sums: [[S::f32s; V]; M],
    out: &mut [[f32; C]; M],
) {
    // With as many weights as columns the number of steps is known too. (A closure for both would be left out of line,
    // and compiled for the baseline only.)
    if let Some(w) = w.first_chunk::<K>() {
        for k in 0..K {
            step(simd, &mut sums, std::array::from_fn(|i| x[i][k]), load::<S, V, C>(simd, &w[k], 0));
        }
    } else {
        for (k, w) in w.iter().enumerate() {
            step(simd, &mut sums, std::array::from_fn(|i| x[i][k]), load::<S, V, C>(simd, w, 0));
        }
    }
    for (out, sums) in out.iter_mut().zip(&sums) {
        store::<S, V, C>(simd, out, 0, sums);
    }
}

struct AddOuter<'a, const K: usize, const C: usize> {
    x: &'a [[f32; K]],
    d: &'a [[f32; C]],
    sums: &'a mut [[f32; C]],
}

impl<const K: usize, const C: usize> WithSimd for AddOuter<'_, K, C> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        tile_by_registers!(C, self, tiles, simd);
    }
}

impl<const K: usize, const C: usize> AddOuter<'_, K, C> {
    /// Rows of the sums in groups of `M`, which divides `K`.
    #[inline(always)]
    fn tiles<S: Simd, const M: usize, const V: usize>(self, simd: S) {
        for (m, sums) in self.sums.as_chunks_mut::<M>().0.iter_mut().enumerate().take(K / M) {
            let mut tile = [[simd.splat_f32s(0.0); V]; M];
            for (x, d) in self.x.iter().zip(self.d) {
                step(simd, &mut tile, x.as_chunks::<M>().0[m], load::<S, V, C>(simd, d, 0));
            }
            for (row, tile) in sums.iter_mut().zip(&tile) {
                add::<S, V, C>(simd, row, 0, tile);
            }
        }
    }
}
