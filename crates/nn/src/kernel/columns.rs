//! Columns of a few rows: a loop over one is vector code, where one over the few columns of a row would not be.

use super::{lanes, lanes_mut, sum_lanes};

/// Rows worked on together: columns of them stay in the nearest cache.
pub(crate) const ROWS: usize = 64;

/// One column of `n` rows.
pub(crate) type Column = [f32; ROWS];

/// The sum of a column, by halves.
#[inline(always)]
pub(crate) fn total(column: &Column) -> f32 {
    let (mut thirty_two, mut sixteen) = ([0.0; 32], [0.0; 16]);
    for r in 0..32 {
        thirty_two[r] = column[r] + column[r + 32];
    }
    for r in 0..16 {
        sixteen[r] = thirty_two[r] + thirty_two[r + 16];
    }
    sum_lanes(&sixteen)
}

/// Rows to columns; missing rows are zero.
#[inline(always)]
pub(crate) fn turn(rows: &[f32], columns: &mut [Column]) {
    let width = columns.len();
    for r in (0..ROWS).step_by(8) {
        let rows = rows.get(r * width..).unwrap_or_default();
        for (at, columns) in (0..).step_by(8).zip(columns.as_chunks_mut::<8>().0) {
            let tile: [[f32; 8]; 8] = match rows.len() >= 8 * width {
                true => std::array::from_fn(|r| *lanes(rows, r * width + at)),
                false => std::array::from_fn(|r| {
                    if r * width < rows.len() { *lanes(rows, r * width + at) } else { [0.0; 8] }
                }),
            };
            let turned = transposed(tile);
            for j in 0..8 {
                *lanes_mut(&mut columns[j], r) = turned[j];
            }
        }
    }
}

/// Columns to rows.
#[inline(always)]
pub(crate) fn turn_back(columns: &[Column], rows: &mut [f32]) {
    let width = columns.len();
    for (r, rows) in (0..ROWS).step_by(8).zip(rows.chunks_mut(8 * width)) {
        for (at, columns) in (0..).step_by(8).zip(columns.as_chunks::<8>().0) {
            let tile = transposed(std::array::from_fn(|j| *lanes(&columns[j], r)));
            for (row, tile) in rows.chunks_exact_mut(width).zip(&tile) {
                *lanes_mut(row, at) = *tile;
            }
        }
    }
}

/// A square tile turned, in steps that each are a shuffle of two vectors.
#[inline(always)]
fn transposed(x: [[f32; 8]; 8]) -> [[f32; 8]; 8] {
    // Pairs of neighbours, then pairs of pairs, then halves.
    let low = |a: [f32; 8], b: [f32; 8]| [a[0], b[0], a[1], b[1], a[4], b[4], a[5], b[5]];
    let high = |a: [f32; 8], b: [f32; 8]| [a[2], b[2], a[3], b[3], a[6], b[6], a[7], b[7]];
    let y = [
        low(x[0], x[1]),
        high(x[0], x[1]),
        low(x[2], x[3]),
        high(x[2], x[3]),
        low(x[4], x[5]),
        high(x[4], x[5]),
        low(x[6], x[7]),
        high(x[6], x[7]),
    ];
    let low = |a: [f32; 8], b: [f32; 8]| [a[0], a[1], b[0], b[1], a[4], a[5], b[4], b[5]];
    let high = |a: [f32; 8], b: [f32; 8]| [a[2], a[3], b[2], b[3], a[6], a[7], b[6], b[7]];
    let z = [
        low(y[0], y[2]),
        high(y[0], y[2]),
        low(y[1], y[3]),
        high(y[1], y[3]),
        low(y[4], y[6]),
        high(y[4], y[6]),
        low(y[5], y[7]),
        high(y[5], y[7]),
    ];
    let low = |a: [f32; 8], b: [f32; 8]| [a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]];
    let high = |a: [f32; 8], b: [f32; 8]| [a[4], a[5], a[6], a[7], b[4], b[5], b[6], b[7]];
    [
        low(z[0], z[4]),
        low(z[1], z[5]),
        low(z[2], z[6]),
        low(z[3], z[7]),
        high(z[0], z[4]),
        high(z[1], z[5]),
        high(z[2], z[6]),
        high(z[3], z[7]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_columns_and_rows_again() {
        for (rows, width) in [(64, 8), (13, 8), (5, 24), (64, 16)] {
            let values: Vec<f32> = (0..rows * width).map(|i| i as f32).collect();
            let mut columns = vec![[0.0; ROWS]; width];
            turn(&values, &mut columns);
            for (c, column) in columns.iter().enumerate() {
                assert!((0..rows).all(|r| column[r] == values[r * width + c]));
                assert_eq!(total(column), (0..rows).map(|r| values[r * width + c]).sum::<f32>());
            }
            let mut back = vec![0.0; values.len()];
            turn_back(&columns, &mut back);
            assert_eq!(back, values);
        }
    }
}
