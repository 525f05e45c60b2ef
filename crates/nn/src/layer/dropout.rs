//! Dropout: in training each value is kept with probability `1 - p` and divided by it, else set to zero. Backward
//! the gradient is treated in the same way.
//!
//! Whether a value is kept is a hash of the step's seed, the layer, the row and the column, not the next draw of a
//! generator: activations are computed anew in each pass, in any order, and must meet the same mask.

use crate::kernel::vectorised;

/// The mask of one layer in one step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mask {
    key: u32,
    /// A value is dropped if its hash is below this.
    threshold: u32,
    scale: f32,
    /// Added to the number of each row.
    numbered_from: u32,
}

impl Mask {
    pub fn new(rate: f32, seed: u64, layer: usize, numbered_from: u32) -> Self {
        let mixed =
            (seed ^ (layer as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let key = (mixed ^ (mixed >> 32)) as u32;
        let threshold = (f64::from(rate) * 4_294_967_296.0) as u32;
        Mask { key, threshold, scale: 1.0 / (1.0 - rate), numbered_from }
    }
}

#[inline(always)]
fn mix(value: u32) -> u32 {
    let mut x = value;
    x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

vectorised! {
    /// Applies the mask to `width` values of each row; rows start `stride` apart.
    pub(crate) fn apply<'a>(mask: Mask, rows: &'a [u32], width: usize, values: &'a mut [f32], stride: usize) {
        for (r, &row) in rows.iter().enumerate() {
            let key = mix(row.wrapping_add(mask.numbered_from) ^ mask.key);
            for (j, value) in values[r * stride..][..width].iter_mut().enumerate() {
                let kept = mix(key.wrapping_add(j as u32)) >= mask.threshold;
                *value = if kept { *value * mask.scale } else { 0.0 };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_drops_the_given_share_and_differs_between_seeds_and_layers() {
        let rows: Vec<u32> = (0..10_000).collect();
        let run = |seed, layer| {
            let mut values = vec![1.0f32; 160_000];
            apply(Mask::new(0.3, seed, layer, 0), &rows, 16, &mut values, 16);
            values
        };
        let first = run(1, 0);
        let dropped = first.iter().filter(|&&v| v == 0.0).count() as f64 / 160_000.0;
        // Six standard deviations.
        assert!((dropped - 0.3).abs() < 6.0 * (0.21f64 / 160_000.0).sqrt(), "{dropped}");
        assert!(first.iter().all(|&v| v == 0.0 || (v - 1.0 / 0.7).abs() < 1e-6));
        assert_eq!(first, run(1, 0));
        for other in [run(2, 0), run(1, 1)] {
            let same = first.iter().zip(&other).filter(|(a, b)| a == b).count() as f64 / 160_000.0;
            assert!((same - 0.58).abs() < 0.01, "independent masks agree on 58%, not {same}");
        }
    }
}
