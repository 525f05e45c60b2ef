//! Intervals by resampling.

/// The mean; not a number without values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The fewest runs that an interval is made of: resamples of fewer vary much less than the mean does.
pub const MIN_RUNS: usize = 5;

/// A 95 % interval for the mean, by 1000 resamples of the values; the same for the same values. `None` if there are
/// fewer than [`MIN_RUNS`].
pub fn mean_interval(values: &[f64]) -> Option<[f64; 2]> {
    if values.len() < MIN_RUNS {
        return None;
    }
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut below = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as usize) % limit
    };
    let mut means: Vec<f64> = (0..1000)
        .map(|_| (0..values.len()).map(|_| values[below(values.len())]).sum::<f64>() / values.len() as f64)
        .collect();
    means.sort_by(f64::total_cmp);
    Some([means[25], means[974]])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For the numbers 1 to 10 the mean of a resample has standard deviation sqrt(8.25 / 10) = 0.908, so that the
    /// interval is about 5.5 +- 1.78; 1000 resamples move its ends by 0.15 at most, but for one seed in 10,000.
    #[test]
    fn the_interval_is_as_wide_as_theory_says() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        let [low, high] = mean_interval(&values).expect("ten are enough");
        assert!((low - 3.72).abs() < 0.2 && (high - 7.28).abs() < 0.2, "{low} to {high}");
        assert_eq!(mean_interval(&[0.5; 7]), Some([0.5, 0.5]));
    }

    /// Two equal runs would have an interval of no width, which holds the mean of all runs in few of a hundred cases.
    #[test]
    fn fewer_than_five_runs_have_no_interval() {
        assert_eq!(mean_interval(&[]), None);
        assert_eq!(mean_interval(&[0.5; 4]), None);
        assert!(mean_interval(&[0.5; 5]).is_some());
    }
}
