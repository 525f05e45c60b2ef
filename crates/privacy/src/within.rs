//! Whether what was asked is no more than what was planned, without an accountant.

use crate::event::Event;

/// Two quotients of the same numbers by different roads differ by a few units in the last place.
const SLACK: f64 = 8.0 * f64::EPSILON;

/// A query up to the ratio of its noise to its sensitivity, which alone decides what it costs.
#[derive(PartialEq)]
struct Kind {
    /// The probability with which a record joins; one for a query of all records.
    rate: f64,
    /// Terms in all, in a batch, and touched by one record; zeros where records are drawn one by one.
    batch: [u64; 3],
}

struct Asked {
    kind: Kind,
    ratio: f64,
    count: u64,
}

impl Event {
    /// Whether this tree asks for nothing beyond `plan`: the same kinds of noisy sums, none of them more often, and
    /// none with less noise for its sensitivity. What a plan costs then bounds what this costs, by every accountant.
    ///
    /// `false` says nothing: trees with anything but Gaussian sums, sampled, repeated and composed, are not compared.
    ///
    /// # Proof definition
    /// A Gaussian sum's dominating pair depends on the ratio of noise to sensitivity alone, and one with a larger ratio
    /// is post-processing of one with a smaller ratio (add the rest of the noise), also inside the same sampling. So is
    /// a composition of which some members are left out. Ratios are compared up to eight units in the last place, which
    /// move epsilon by less than one part in 10^12.
    ///
    /// ```
    /// use progap_privacy::Event;
    ///
    /// let plan = Event::composed(vec![Event::gaussian(2.0, 1.0)?.repeated(3)?])?;
    /// let asked = Event::composed(vec![Event::gaussian(4.0, 2.0)?, Event::gaussian(5.0, 2.0)?.repeated(2)?])?;
    /// assert!(asked.is_within(&plan));
    /// assert!(!Event::gaussian(1.9, 1.0)?.is_within(&plan));
    /// # Ok::<(), progap_privacy::Error>(())
    /// ```
    pub fn is_within(&self, plan: &Event) -> bool {
        let (mut asked, mut planned) = (Vec::new(), Vec::new());
        if collect(self, 1, &mut asked).is_none() || collect(plan, 1, &mut planned).is_none() {
            return false;
        }
        asked.iter().all(|query| {
            let alike = || planned.iter().filter(|other| other.kind == query.kind);
            let Some(ratio) = alike().map(|other| other.ratio).next() else { return false };
            let uniform = alike().all(|other| other.ratio == ratio);
            let allowed = alike().map(|other| other.count).fold(0, u64::saturating_add);
            let wanted = asked.iter().filter(|other| other.kind == query.kind);
            let wanted = wanted.map(|other| other.count).fold(0, u64::saturating_add);
            uniform && wanted <= allowed && query.ratio >= ratio * (1.0 - SLACK)
        })
    }
}

fn collect(event: &Event, count: u64, all: &mut Vec<Asked>) -> Option<()> {
    match event {
        Event::Gaussian { sigma, sensitivity } => {
            all.push(Asked { kind: Kind { rate: 1.0, batch: [0; 3] }, ratio: sigma / sensitivity, count });
        }
        Event::PoissonSampled { rate, event } => {
            let Event::Gaussian { sigma, sensitivity } = **event else { return None };
            all.push(Asked { kind: Kind { rate: *rate, batch: [0; 3] }, ratio: sigma / sensitivity, count });
        }
        Event::SampledWithoutReplacement { population, batch_size, max_terms, sigma, term_sensitivity } => {
            let kind = Kind { rate: 1.0, batch: [*population, *batch_size, *max_terms] };
            all.push(Asked { kind, ratio: sigma / term_sensitivity, count });
        }
        Event::Composed { events } => {
            events.iter().try_for_each(|event| collect(event, count, all))?;
        }
        Event::SelfComposed { event, count: times } => collect(event, count.checked_mul(*times)?, all)?,
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accountant::{Accountant, Best};
    use proptest::prelude::*;

    fn gaussian(ratio: f64, count: u64) -> Event {
        Event::gaussian(3.0 * ratio, 3.0).unwrap().repeated(count).unwrap()
    }

    fn sampled(ratio: f64, rate: f64, count: u64) -> Event {
        Event::gaussian(ratio, 1.0).unwrap().poisson_sampled(rate).unwrap().repeated(count).unwrap()
    }

    fn all(events: &[Event]) -> Event {
        Event::composed(events.to_vec()).unwrap()
    }

    #[test]
    fn more_queries_less_noise_other_sampling_and_other_kinds_are_beyond_a_plan() {
        let plan = all(&[gaussian(2.0, 3), sampled(1.5, 0.1, 100)]);
        for (asked, within) in [
            (plan.clone(), true),
            (all(&[]), true),
            (all(&[gaussian(2.0, 1), gaussian(2.5, 2)]), true),
            (all(&[gaussian(2.0, 4)]), false),
            (all(&[gaussian(2.0, 3), gaussian(9.0, 1)]), false),
            (all(&[gaussian(2.0 * (1.0 - 1e-12), 1)]), false),
            (all(&[sampled(1.5, 0.1, 101)]), false),
            (all(&[sampled(1.5, 0.11, 1)]), false),
            (all(&[sampled(1.4, 0.1, 1)]), false),
            (Event::NonPrivate, false),
            (Event::laplace(1e9, 1.0).unwrap(), false),
            (gaussian(2.0, 1).poisson_sampled(0.1).unwrap(), false),
        ] {
            assert_eq!(asked.is_within(&plan), within, "{asked:?}");
        }
        assert!(!gaussian(2.0, 1).is_within(&Event::NonPrivate));
        // Two ratios of one kind in a plan: nothing is said.
        assert!(!gaussian(2.0, 1).is_within(&all(&[gaussian(2.0, 1), gaussian(1.0, 1)])));
        let batches = |terms, sigma| Event::sampled_without_replacement(100, 10, terms, sigma, 2.0).unwrap();
        assert!(batches(5, 3.0).is_within(&batches(5, 3.0)));
        assert!(!batches(6, 3.0).is_within(&batches(5, 3.0)) && !batches(5, 2.9).is_within(&batches(5, 3.0)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// An accountant's bound for what was asked is never above its bound for the plan.
        #[test]
        fn what_is_within_a_plan_costs_no_more(
            ratio in 1.0_f64..8.0, step in 1.0_f64..4.0, counts in (1_u64..6, 1_u64..200), less in (0_u64..6, 0_u64..200),
            more in (0.0_f64..1.0, 0.0_f64..1.0),
        ) {
            let plan = all(&[gaussian(ratio, counts.0), sampled(step, 0.02, counts.1)]);
            let mut asked = Vec::new();
            let left = (counts.0.saturating_sub(less.0), counts.1.saturating_sub(less.1));
            if left.0 > 0 { asked.push(gaussian(ratio * (1.0 + more.0), left.0)); }
            if left.1 > 0 { asked.push(sampled(step * (1.0 + more.1), 0.02, left.1)); }
            let asked = all(&asked);
            prop_assert!(asked.is_within(&plan));
            let cost = |event: &Event| Best.epsilon(event, 1e-6).unwrap().value;
            let nothing = matches!(&asked, Event::Composed { events } if events.is_empty());
            prop_assert!(nothing || cost(&asked) <= cost(&plan) * (1.0 + 1e-6));
        }
    }
}
