//! Fourier transforms, planned once for each size.

use std::cell::RefCell;
use std::sync::Arc;

use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};

/// The most points for which plans are kept, all sizes together: some megabytes of factors for each thread.
const KEPT_POINTS: usize = 1 << 16;

thread_local! {
    /// Plans, and how many points they are for. A search asks for the same few sizes again and again, and a plan costs
    /// more than a transform.
    static PLANS: RefCell<(RealFftPlanner<f64>, Vec<usize>)> = RefCell::new((RealFftPlanner::new(), vec![]));
}

/// The transform of that size and its inverse.
pub(super) fn transforms(size: usize) -> (Arc<dyn RealToComplex<f64>>, Arc<dyn ComplexToReal<f64>>) {
    let plan =
        |planner: &mut RealFftPlanner<f64>| (planner.plan_fft_forward(size), planner.plan_fft_inverse(size));
    if size > KEPT_POINTS {
        return plan(&mut RealFftPlanner::new());
    }
    PLANS.with_borrow_mut(|(planner, sizes)| {
        if !sizes.contains(&size) {
            if sizes.iter().sum::<usize>() + size > KEPT_POINTS {
                (*planner, *sizes) = (RealFftPlanner::new(), vec![]);
            }
            sizes.push(size);
        }
        plan(planner)
    })
}

/// The next even size with small prime factors.
pub(super) fn transform_size(at_least: i64) -> usize {
    let wanted = at_least.clamp(16, 1 << 24) as usize;
    let power = wanted.next_power_of_two();
    [power / 8 * 5, power / 4 * 3, power / 8 * 7]
        .into_iter()
        .filter(|&size| size >= wanted)
        .min()
        .unwrap_or(power)
}
