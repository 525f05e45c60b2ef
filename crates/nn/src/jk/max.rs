//! The maximum: `out_j = max_k h_kj`. The gradient goes to the branch that had it, the first of equals.

use super::{CombinationBackward, Sizes};

fn winner(row: &[f32], width: usize, column: usize) -> usize {
    let values = row.iter().skip(column).step_by(width).enumerate();
    values.fold((0, f32::NEG_INFINITY), |best, (k, &v)| if v > best.1 { (k, v) } else { best }).0
}

pub(crate) fn forward(sizes: Sizes, branches: &[f32], out: &mut [f32]) {
    let width = sizes.padded_width;
    for (row, out) in
        branches.chunks_exact(sizes.branches * width).zip(out.chunks_exact_mut(width)).take(sizes.rows)
    {
        for (j, out) in out.iter_mut().enumerate() {
            *out = row[winner(row, width, j) * width + j];
        }
    }
}

pub(crate) fn backward(sizes: Sizes, pass: CombinationBackward<'_>) {
    let CombinationBackward { branches, d_out, d_branches } = pass;
    let width = sizes.padded_width;
    d_branches.fill(0.0);
    let rows = branches
        .chunks_exact(sizes.branches * width)
        .zip(d_branches.chunks_exact_mut(sizes.branches * width));
    for ((row, d_row), d_out) in rows.zip(d_out.chunks_exact(width)).take(sizes.rows) {
        for (j, &g) in d_out.iter().enumerate() {
            d_row[winner(row, width, j) * width + j] = g;
        }
    }
}
