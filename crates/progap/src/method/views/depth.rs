//! How many aggregations, by public sizes.

use super::MANY_LABELS;
use crate::plan::PublicSizes;
use crate::settings::Level;

/// The number of aggregations that labels of such a share and a budget can make use of: the fewer labels, the farther they must
/// travel; the smaller the budget, the fewer sums it pays for.
pub(super) fn by_sizes(level: Level, epsilon: Option<f64>, sizes: PublicSizes) -> usize {
    let share = sizes.train_nodes.max(1) as f64 / sizes.nodes.max(1) as f64;
    let depth = 3.0 + (0.75 / share).log(4.0);
    let (depth, most) = match epsilon.filter(|_| level != Level::None) {
        Some(epsilon) => (depth + 0.75 * epsilon.log2().min(0.0), 7.0),
        None if sizes.train_nodes < MANY_LABELS => return 5,
        None => (depth, 5.0),
    };
    (depth + 0.5).floor().clamp(2.0, most) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_labels_travel_farther_and_small_budgets_pay_for_less() {
        let depth = |train_nodes: usize, epsilon: f64| {
            let sizes = PublicSizes { train_nodes, nodes: 10_000, ..PublicSizes::default() };
            by_sizes(Level::Edge, Some(epsilon), sizes)
        };
        assert_eq!([7500, 2000, 500, 100].map(|train| depth(train, 1.0)), [3, 4, 5, 6]);
        assert_eq!([7500, 2000, 500, 100].map(|train| depth(train, 8.0)), [3, 4, 5, 6]);
        assert_eq!([7500, 2000, 500, 100].map(|train| depth(train, 0.25)), [2, 2, 3, 5]);
        assert_eq!((depth(1, 1.0), depth(10_000, 1e-3)), (7, 2));
        let free = |train_nodes: usize| {
            by_sizes(Level::None, None, PublicSizes { train_nodes, nodes: 100_000, ..PublicSizes::default() })
        };
        assert_eq!([75_000, 20_000, 10_000, 5000, 100].map(free), [3, 4, 4, 5, 5]);
    }
}
