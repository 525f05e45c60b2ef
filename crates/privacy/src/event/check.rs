//! Which trees are accepted: every number in its range, and the tree itself not too deep, large or often repeated.

use super::{Event, MAX_COUNT, MAX_DEPTH, MAX_NODES};
use crate::error::{Error, Result};

/// A path from the root, kept on the stack and only written out when an error needs it.
#[derive(Clone, Copy)]
pub(crate) enum Path<'a> {
    Root,
    Event(&'a Path<'a>),
    Item(&'a Path<'a>, usize),
}

impl std::fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Path::Root => f.write_str("event"),
            Path::Event(parent) => write!(f, "{parent}.event"),
            Path::Item(parent, index) => write!(f, "{parent}.events[{index}]"),
        }
    }
}

pub(super) fn check(
    event: &Event,
    path: &Path<'_>,
    depth: usize,
    repeats: u64,
    nodes: &mut usize,
) -> Result<()> {
    let bad = |name, value: String, expected| {
        Err(Error::InvalidEvent { path: path.to_string(), name, value, expected })
    };
    let positive = |name, value: f64| {
        if value.is_finite() && value > 0.0 {
            Ok(())
        } else {
            bad(name, value.to_string(), "a finite number above 0")
        }
    };
    let probability = |name, value: f64| {
        if (0.0..=1.0).contains(&value) { Ok(()) } else { bad(name, value.to_string(), "between 0 and 1") }
    };
    // A ratio that over- or underflows would turn into a silent 0 or infinity further on.
    let ratio = |name, value: f64| {
        if (1e-150..=1e150).contains(&value) {
            Ok(())
        } else {
            bad(name, value.to_string(), "between 1e-150 and 1e150")
        }
    };
    *nodes += 1;
    if *nodes > MAX_NODES {
        return bad("the number of nodes", format!("above {MAX_NODES}"), "at most 10000");
    }
    if depth > MAX_DEPTH {
        return bad("the depth", depth.to_string(), "at most 32");
    }
    match event {
        Event::Gaussian { sigma, sensitivity } => {
            positive("sigma", *sigma)?;
            positive("sensitivity", *sensitivity)?;
            ratio("sigma / sensitivity", sigma / sensitivity)
        }
        Event::Laplace { scale, sensitivity } => {
            positive("scale", *scale)?;
            positive("sensitivity", *sensitivity)?;
            ratio("scale / sensitivity", scale / sensitivity)
        }
        Event::RandomizedResponse { true_positive, false_positive } => {
            probability("true_positive", *true_positive)?;
            probability("false_positive", *false_positive)
        }
        Event::PoissonSampled { rate, event } => {
            probability("rate", *rate)?;
            check(event, &Path::Event(path), depth + 1, repeats, nodes)
        }
        Event::Composed { events } => check_all(events, path, depth, repeats, nodes),
        Event::SelfComposed { event, count } => {
            if *count == 0 {
                return bad("count", "0".to_owned(), "at least 1");
            }
            match repeats.checked_mul(*count) {
                Some(total) if total <= MAX_COUNT => {
                    check(event, &Path::Event(path), depth + 1, total, nodes)
                }
                _ => bad(
                    "count",
                    count.to_string(),
                    "at most 1000000000 repetitions along any path of the tree",
                ),
            }
        }
        Event::Parallel { events } => {
            if events.is_empty() {
                return bad("events", "empty".to_owned(), "a list of at least one event");
            }
            check_all(events, path, depth, repeats, nodes)
        }
        Event::SampledWithoutReplacement { population, batch_size, max_terms, sigma, term_sensitivity } => {
            if !(1..=1 << 40).contains(population) {
                return bad("population", population.to_string(), "between 1 and 2^40");
            }
            if !(1..=*population).contains(batch_size) {
                return bad("batch_size", batch_size.to_string(), "between 1 and the population");
            }
            if !(1..=(*population).min(1_000_000)).contains(max_terms) {
                return bad(
                    "max_terms",
                    max_terms.to_string(),
                    "between 1 and the population, at most 1000000",
                );
            }
            positive("sigma", *sigma)?;
            positive("term_sensitivity", *term_sensitivity)?;
            ratio("sigma / term_sensitivity", sigma / term_sensitivity)
        }
        Event::PrivateSelection { eta, gamma, event } => {
            if !(eta.is_finite() && *eta > -1.0) {
                return bad("eta", eta.to_string(), "a finite number above -1");
            }
            if !(*gamma > 0.0 && *gamma <= 1.0) {
                return bad("gamma", gamma.to_string(), "above 0 and at most 1");
            }
            check(event, &Path::Event(path), depth + 1, repeats, nodes)
        }
        Event::NonPrivate => Ok(()),
    }
}

fn check_all(events: &[Event], path: &Path<'_>, depth: usize, repeats: u64, nodes: &mut usize) -> Result<()> {
    events
        .iter()
        .enumerate()
        .try_for_each(|(index, event)| check(event, &Path::Item(path, index), depth + 1, repeats, nodes))
}
