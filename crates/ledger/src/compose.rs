//! The cost of many runs together.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use progap_privacy::Event;
use progap_privacy::accountant::{Accountant, Best, GdpAccountant, PldAccountant};
use progap_privacy::noise::tables;

use super::error::{Error, Result};

/// All events as one tree, as small as it can be made without changing its meaning.
///
/// Hundreds of runs would make a tree that is slow to account for and in the end too large to be accepted. Composition
/// knows no order, so equal mechanisms are counted, and all Gaussians become one.
///
/// # Proof definition
/// Whatever is true of the returned tree under any accountant is true of all the events, one after the other:
/// composition is commutative and associative; a subtree of Gaussians is dominated by a single Gaussian whose squared
/// signal-to-noise ratio is the sum, which is rounded up here by more than the rounding of the sum. Where more than
/// [`MAX_SAMPLED`] different sampled Gaussians come together, similar ones are replaced by one that is worse than each
/// of them, see [`merge_similar`].
pub(super) fn composed<E: Borrow<Event>>(events: &[E]) -> Result<Event> {
    if let [only] = events {
        return Ok(only.borrow().clone());
    }
    let mut parts = Parts::default();
    events.iter().for_each(|event| parts.add(event.borrow(), 1));
    parts.into_event()
}

/// Epsilon of all events at a delta, less what of it is kept for noise tables, by the tightest accountant that handles
/// them, and that accountant's name.
pub(super) fn epsilon<E: Borrow<Event>>(events: &[E], delta: f64) -> Result<(f64, &'static str)> {
    if events.is_empty() {
        return Ok((0.0, GdpAccountant.name()));
    }
    let bound = Best.epsilon(&composed(events)?, tables::provable(delta))?;
    Ok((bound.value, bound.accountant))
}

/// Epsilon of some runs together, by the tightest accountant that handles them; with a delta of zero, the sum of what
/// each costs with none. `noise_values` is what all of them draw from tables at most.
///
/// # Errors
/// Events that no accountant handles together at this delta, or noise tables whose error does not fit in it.
pub fn together(events: &[&Event], noise_values: u64, delta: f64) -> Result<f64> {
    let pure: Option<Vec<f64>> = events.iter().map(|event| event.pure_epsilon()).collect();
    match pure {
        Some(epsilons) if delta == 0.0 => Ok(epsilons.iter().sum()),
        _ => {
            let epsilon = epsilon(events, delta)?.0;
            if tables::fit(noise_values, epsilon, delta) {
                return Ok(epsilon);
            }
            Err(Error::Tables { dataset: "all".into(), epsilon, delta })
        }
    }
}

/// Whether the events are all Gaussian: then the total also holds if each run was designed after seeing the results
/// of the runs before it.
pub(super) fn all_gaussian<E: Borrow<Event>>(events: &[E]) -> bool {
    events.iter().all(|event| GdpAccountant::mu(event.borrow()).is_some())
}

/// The epsilon of the largest single Gaussian query that still fits, rounded down.
///
/// It is found by bisection over the query's signal-to-noise ratio: exactly where the exact accountant will do, to one
/// part in a hundred, and on a coarser grid, where each step takes a convolution. The lower end is always a query that
/// was found to fit, so that the answer is never too large.
pub(super) fn largest_query<E: Borrow<Event>>(events: &[E], budget: f64, delta: f64) -> Result<f64> {
    if events.is_empty() {
        return Ok(budget);
    }
    let delta = tables::provable(delta);
    let spent = composed(events)?;
    let coarse = PldAccountant::with_tolerance(1e-3)?;
    let (precision, accountant): (f64, &dyn Accountant) = if GdpAccountant.obstacle(&spent).is_none() {
        (1e-9, &GdpAccountant)
    } else if coarse.obstacle(&spent).is_none() {
        (1e-2, &coarse)
    } else {
        (1e-2, &Best)
    };
    let fits = |mu: f64| -> Result<bool> {
        let all = Event::composed(vec![spent.clone(), Event::gaussian(1.0, mu)?])?;
        Ok(accountant.epsilon(&all, delta)?.value <= budget)
    };
    let own =
        |mu: f64| -> Result<f64> { Ok(GdpAccountant.epsilon(&Event::gaussian(1.0, mu)?, delta)?.value) };
    // Alone it cannot be larger than the budget, so start from the query that would use all of it.
    let (mut low, mut high) = (0.0, 1e-6);
    while own(high)? <= budget {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if own(middle)? <= budget { low = middle } else { high = middle }
    }
    (low, high) = (0.0, low);
    while high - low > precision * high && high > 1e-6 {
        let middle = 0.5 * (low + high);
        if fits(middle)? { low = middle } else { high = middle }
    }
    if low == 0.0 { Ok(0.0) } else { own(low) }
}

/// Mechanisms with how often each was used.
#[derive(Default)]
struct Parts {
    /// Squared signal-to-noise ratio of all Gaussians, and the number of additions that led to it.
    squared_mu: f64,
    additions: u32,
    sampled: Vec<Sampled>,
    /// By their JSON, which is the same for equal events and gives an order that is always the same.
    counted: BTreeMap<String, (Event, u64)>,
    apart: Vec<Event>,
}

impl Parts {
    fn add(&mut self, event: &Event, count: u64) {
        if let Some(mu) = GdpAccountant::mu(event) {
            self.squared_mu += mu * mu * count as f64;
            self.additions += 1;
            return;
        }
        match event {
            Event::PoissonSampled { rate: 0.0, .. } => {}
            Event::PoissonSampled { rate, event: inner }
                if GdpAccountant::mu(inner).is_some_and(|mu| mu > 0.0) =>
            {
                let mu = GdpAccountant::mu(inner).unwrap_or(f64::INFINITY) * (1.0 + 4.0 * f64::EPSILON);
                match self.sampled.iter_mut().find(|known| known.rate == *rate && known.mu == mu) {
                    Some(known) => known.count = known.count.saturating_add(count),
                    None => self.sampled.push(Sampled { rate: *rate, mu, count }),
                }
            }
            Event::Composed { events } => events.iter().for_each(|child| self.add(child, count)),
            Event::SelfComposed { event, count: times } => self.add(event, count.saturating_mul(*times)),
            // A record may sit in another part of each of them, and an accountant can follow that only if they stay
            // apart.
            Event::Parallel { .. } if count == 1 => self.apart.push(event.clone()),
            _ => {
                let entry = self.counted.entry(event.to_json()).or_insert_with(|| (event.clone(), 0));
                entry.1 = entry.1.saturating_add(count);
            }
        }
    }

    fn into_event(self) -> Result<Event> {
        let mut events = self.apart;
        if self.squared_mu > 0.0 {
            let rounding = 1.0 + (f64::from(self.additions) + 8.0) * 4.0 * f64::EPSILON;
            events.push(Event::gaussian(1.0, (self.squared_mu * rounding).sqrt())?);
        }
        for Sampled { rate, mu, count } in merge_similar(self.sampled) {
            events.push(Event::gaussian(1.0, mu)?.poisson_sampled(rate)?.repeated(count)?);
        }
        for (event, count) in self.counted.into_values() {
            events.push(if count == 1 { event } else { event.repeated(count)? });
        }
        Ok(Event::composed(events)?)
    }
}

/// The largest number of different sampled Gaussians that are told apart.
const MAX_SAMPLED: usize = 16;

/// A Gaussian with a signal-to-noise ratio, on a sample, this many times.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sampled {
    rate: f64,
    mu: f64,
    count: u64,
}

/// Replaces similar mechanisms by their upper envelope until few are left, on a grid that is as fine as possible.
///
/// # Proof definition
/// The result dominates the input. A larger ratio dominates a smaller one: shrink the output and add the missing noise.
/// A larger rate dominates a smaller one: replace the output, with probability `1 - small / large`, by one of the
/// record's absence, and `(1 - large) Q + large P` becomes `(1 - small) Q + small P` while `Q` stays `Q`.
fn merge_similar(sampled: Vec<Sampled>) -> Vec<Sampled> {
    let mut merged = sampled.clone();
    let mut ratio = 1e-4;
    while merged.len() > MAX_SAMPLED {
        let cell = |value: f64| (value.ln() / ratio).floor() as i64;
        let mut cells: BTreeMap<(i64, i64), Sampled> = BTreeMap::new();
        for one in &sampled {
            let all = cells.entry((cell(one.rate), cell(one.mu))).or_insert(Sampled { count: 0, ..*one });
            all.rate = all.rate.max(one.rate);
            all.mu = all.mu.max(one.mu);
            all.count = all.count.saturating_add(one.count);
        }
        merged = cells.into_values().collect();
        ratio *= 2.0;
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaussian(sigma: f64) -> Event {
        Event::gaussian(sigma, 1.0).unwrap()
    }

    fn sampled(sigma: f64, count: u64) -> Event {
        gaussian(sigma).poisson_sampled(0.01).unwrap().repeated(count).unwrap()
    }

    #[test]
    fn gaussians_cost_what_the_exact_formula_says() {
        let runs: Vec<Event> = (0..500).map(|i| gaussian(40.0 + f64::from(i))).collect();
        let (found, accountant) = epsilon(&runs.iter().collect::<Vec<_>>(), 1e-7).unwrap();
        let plain =
            GdpAccountant.epsilon(&Event::composed(runs).unwrap(), tables::provable(1e-7)).unwrap().value;
        assert_eq!(accountant, "gdp");
        assert!(found >= plain && found <= plain * (1.0 + 1e-9), "{found} {plain}");
    }

    #[test]
    fn regrouping_does_not_change_the_cost_of_sampled_events() {
        let runs = [
            Event::composed(vec![gaussian(5.0), sampled(2.0, 100)]).unwrap(),
            Event::composed(vec![sampled(2.0, 50), gaussian(7.0).repeated(2).unwrap()])
                .unwrap()
                .repeated(2)
                .unwrap(),
        ];
        let small = composed(&[&runs[0], &runs[1]]).unwrap();
        let expected =
            Event::composed(vec![gaussian(5.0), gaussian(7.0).repeated(4).unwrap(), sampled(2.0, 200)])
                .unwrap();
        let [a, b] = [&small, &expected].map(|event| Best.epsilon(event, 1e-6).unwrap().value);
        assert!((a / b - 1.0).abs() < 1e-5, "{a} {b}");
        let Event::Composed { events } = small else { panic!("{small:?}") };
        assert_eq!(events.len(), 2);
    }

    #[test]
    fn many_different_sampled_events_are_rounded_up_a_little() {
        let runs: Vec<Event> = (0..40).map(|i| sampled(4.0 + 0.01 * f64::from(i), 50)).collect();
        let small = composed(&runs.iter().collect::<Vec<_>>()).unwrap();
        let Event::Composed { events } = &small else { panic!("{small:?}") };
        assert!(events.len() <= MAX_SAMPLED);
        let [found, exact] =
            [&small, &Event::composed(runs).unwrap()].map(|event| Best.epsilon(event, 1e-6).unwrap().value);
        assert!(found >= exact * (1.0 - 1e-5) && found < exact * 1.02, "{found} {exact}");
    }

    #[test]
    fn merged_events_dominate_every_one_of_them() {
        let one = |i: u32| {
            let i = f64::from(i);
            Sampled { rate: 0.01 * (1.0 + 0.37 * i).sqrt(), mu: 0.2 + 0.013 * i, count: 1 + i as u64 }
        };
        let all: Vec<Sampled> = (0..100).map(one).collect();
        let merged = merge_similar(all.clone());
        assert!(merged.len() <= MAX_SAMPLED);
        assert_eq!(merged.iter().map(|m| m.count).sum::<u64>(), all.iter().map(|a| a.count).sum::<u64>());
        assert!(all.iter().all(|a| merged.iter().any(|m| m.rate >= a.rate && m.mu >= a.mu)));
    }

    #[test]
    fn ten_thousand_runs_still_make_a_small_tree() {
        let runs: Vec<Event> = (0..10_001).map(|i| gaussian(1000.0 + f64::from(i))).collect();
        assert!(epsilon(&runs.iter().collect::<Vec<_>>(), 1e-6).is_ok());
    }

    #[test]
    fn what_is_left_fits_and_a_little_more_does_not() {
        let spent = [gaussian(3.0), gaussian(9.0)];
        let events: Vec<&Event> = spent.iter().collect();
        let (budget, delta) = (4.0, 1e-7);
        let left = largest_query(&events, budget, delta).unwrap();
        for (factor, fits) in [(1.0, true), (1.01, false)] {
            let sigma = progap_privacy_sigma(left * factor, tables::provable(delta));
            let query = gaussian(sigma);
            let total = epsilon(&[&spent[0], &spent[1], &query], delta).unwrap().0;
            assert_eq!(total <= budget, fits, "{left} {factor} {total}");
        }
        assert!(largest_query(&events, 1.0, delta).unwrap() == 0.0);
        assert_eq!(largest_query::<Event>(&[], budget, delta).unwrap(), budget);
    }

    /// The smallest noise of unit sensitivity with at most that epsilon, by bisection.
    fn progap_privacy_sigma(target: f64, delta: f64) -> f64 {
        let (mut low, mut high) = (1e-3, 1e6);
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if GdpAccountant.epsilon(&gaussian(middle), delta).unwrap().value <= target {
                high = middle;
            } else {
                low = middle;
            }
        }
        high
    }
}
