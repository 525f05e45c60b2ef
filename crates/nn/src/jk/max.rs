//! The maximum: `out_j = max_k h_kj`. The gradient goes to the hop that had it, the first of equals.

use super::Sizes;

fn winner(row: &[f32], wide: usize, column: usize) -> usize {
    let values = row.iter().skip(column).step_by(wide).enumerate();
    values.fold((0, f32::NEG_INFINITY), |best, (k, &v)| if v > best.1 { (k, v) } else { best }).0
}

pub(crate) fn forward(sizes: Sizes, hops: &[f32], out: &mut [f32]) {
    let wide = sizes.wide;
    for (row, out) in hops.chunks_exact(sizes.hops * wide).zip(out.chunks_exact_mut(wide)).take(sizes.rows) {
        for (j, out) in out.iter_mut().enumerate() {
            *out = row[winner(row, wide, j) * wide + j];
        }
    }
}

pub(crate) fn backward(sizes: Sizes, hops: &[f32], d_out: &[f32], d_hops: &mut [f32]) {
    let wide = sizes.wide;
    d_hops.fill(0.0);
    let rows = hops.chunks_exact(sizes.hops * wide).zip(d_hops.chunks_exact_mut(sizes.hops * wide));
    for ((row, d_row), d_out) in rows.zip(d_out.chunks_exact(wide)).take(sizes.rows) {
        for (j, &g) in d_out.iter().enumerate() {
            d_row[winner(row, wide, j) * wide + j] = g;
        }
    }
}
