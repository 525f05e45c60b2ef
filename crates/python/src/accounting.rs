//! The accountant alone: what was asked, as a tree of events, and what that costs.

use progap_privacy::accountant::{self, Accountant, Best};
use progap_privacy::calibrate::{Target, calibrate as least_noise};
use pyo3::prelude::*;

use crate::errors::{OrRaise, exception};

/// A mechanism, or several of them combined: what was asked of private data. It does not change.
#[pyclass(frozen, eq, module = "progap")]
#[derive(PartialEq, Clone)]
pub struct Event(pub progap_privacy::Event);

const NO_NOISE: &str = "this event holds a response, or nothing private: there is no noise in it to multiply";

fn made(py: Python<'_>, event: progap_privacy::Result<progap_privacy::Event>) -> PyResult<Event> {
    event.or_raise(py).map(Event)
}

fn inner(events: Vec<PyRef<'_, Event>>) -> Vec<progap_privacy::Event> {
    events.iter().map(|event| event.0.clone()).collect()
}

#[pymethods]
impl Event {
    /// Gaussian noise of standard deviation `sigma` on a query that one record moves by at most `sensitivity` in L2
    /// norm.
    #[staticmethod]
    #[pyo3(signature = (sigma, sensitivity = 1.0))]
    fn gaussian(py: Python<'_>, sigma: f64, sensitivity: f64) -> PyResult<Event> {
        made(py, progap_privacy::Event::gaussian(sigma, sensitivity))
    }

    /// Laplace noise of a scale on a query that one record moves by at most `sensitivity` in L1 norm.
    #[staticmethod]
    #[pyo3(signature = (scale, sensitivity = 1.0))]
    fn laplace(py: Python<'_>, scale: f64, sensitivity: f64) -> PyResult<Event> {
        made(py, progap_privacy::Event::laplace(scale, sensitivity))
    }

    /// Randomised response on one bit: the probabilities of reporting 1 where it is 1, and where it is 0.
    #[staticmethod]
    fn randomized_response(py: Python<'_>, true_positive: f64, false_positive: f64) -> PyResult<Event> {
        made(py, progap_privacy::Event::randomized_response(true_positive, false_positive))
    }

    /// A noisy sum over a batch drawn without replacement, where one record touches up to `max_terms` of `population`
    /// terms.
    #[staticmethod]
    fn sampled_without_replacement(
        py: Python<'_>,
        population: u64,
        batch_size: u64,
        max_terms: u64,
        sigma: f64,
        term_sensitivity: f64,
    ) -> PyResult<Event> {
        let event = progap_privacy::Event::sampled_without_replacement(
            population,
            batch_size,
            max_terms,
            sigma,
            term_sensitivity,
        );
        made(py, event)
    }

    /// Several events, one after the other, each free to depend on the results before it.
    #[staticmethod]
    fn composed(py: Python<'_>, events: Vec<PyRef<'_, Event>>) -> PyResult<Event> {
        made(py, progap_privacy::Event::composed(inner(events)))
    }

    /// Several events over disjoint records: one record takes part in one of them only.
    #[staticmethod]
    fn parallel(py: Python<'_>, events: Vec<PyRef<'_, Event>>) -> PyResult<Event> {
        made(py, progap_privacy::Event::parallel(inner(events)))
    }

    /// Something without any guarantee.
    #[staticmethod]
    fn non_private() -> Event {
        Event(progap_privacy::Event::NonPrivate)
    }

    /// A tree from JSON, as statements and `progap account --events` write it.
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Event> {
        made(py, progap_privacy::Event::from_json(text))
    }

    /// This event on a sample that each record joins with probability `rate`.
    fn poisson_sampled(&self, py: Python<'_>, rate: f64) -> PyResult<Event> {
        made(py, self.0.clone().poisson_sampled(rate))
    }

    /// This event `count` times.
    fn repeated(&self, py: Python<'_>, count: u64) -> PyResult<Event> {
        made(py, self.0.clone().repeated(count))
    }

    /// The best of a random number of runs of this event (Papernot and Steinke 2022).
    fn selected(&self, py: Python<'_>, eta: f64, gamma: f64) -> PyResult<Event> {
        made(py, self.0.clone().selected(eta, gamma))
    }

    /// The same queries with `factor` times the noise.
    fn with_noise_times(&self, py: Python<'_>, factor: f64) -> PyResult<Event> {
        let Some(event) = self.0.with_noise_times(factor) else {
            return Err(exception(py, "PrivacyError", NO_NOISE));
        };
        event.validate().or_raise(py)?;
        Ok(Event(event))
    }

    /// The tree as JSON.
    fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// The kind of the root, as it is spelt in JSON.
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    fn __add__(&self, py: Python<'_>, other: PyRef<'_, Event>) -> PyResult<Event> {
        made(py, progap_privacy::Event::composed(vec![self.0.clone(), other.0.clone()]))
    }

    fn __mul__(&self, py: Python<'_>, count: u64) -> PyResult<Event> {
        self.repeated(py, count)
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.0.to_json().hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("Event({})", written(&self.0))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((py.get_type::<Event>().getattr("from_json")?, (self.0.to_json(),)))
    }
}

/// A tree in one line.
fn written(event: &progap_privacy::Event) -> String {
    use progap_privacy::Event as E;
    let list = |events: &[E]| events.iter().map(written).collect::<Vec<_>>().join(", ");
    match event {
        E::Gaussian { sigma, sensitivity } => format!("gaussian(sigma={sigma}, sensitivity={sensitivity})"),
        E::Laplace { scale, sensitivity } => format!("laplace(scale={scale}, sensitivity={sensitivity})"),
        E::PoissonSampled { rate, event } => format!("{}.poisson_sampled({rate})", written(event)),
        E::SelfComposed { event, count } => format!("{}.repeated({count})", written(event)),
        E::Composed { events } => format!("composed([{}])", list(events)),
        E::Parallel { events } => format!("parallel([{}])", list(events)),
        E::PrivateSelection { eta, gamma, event } => format!("{}.selected({eta}, {gamma})", written(event)),
        E::RandomizedResponse { true_positive, false_positive } => {
            format!("randomized_response({true_positive}, {false_positive})")
        }
        E::SampledWithoutReplacement { population, batch_size, max_terms, sigma, term_sensitivity } => {
            format!(
                "sampled_without_replacement({population}, {batch_size}, {max_terms}, sigma={sigma}, \
             term_sensitivity={term_sensitivity})"
            )
        }
        E::NonPrivate => "non_private()".into(),
    }
}

/// An upper bound on an epsilon or a delta.
#[pyclass(frozen, get_all, name = "Bound", module = "progap.accounting")]
pub struct Cost {
    /// The bound; infinite (epsilon) or 1 (delta) if nothing better can be said.
    value: f64,
    /// About how far above the accountant's own theorem the numerics have put it.
    error: f64,
    /// The accountant that gave it.
    accountant: String,
    /// Why the value is larger than it would have to be, if the numerics could not resolve it.
    caveat: Option<String>,
}

#[pymethods]
impl Cost {
    fn __float__(&self) -> f64 {
        self.value
    }

    fn __repr__(&self) -> String {
        format!("Bound({}, accountant={:?})", self.value, self.accountant)
    }
}

impl From<accountant::Bound> for Cost {
    fn from(bound: accountant::Bound) -> Cost {
        let accountant::Bound { value, error, accountant, caveat } = bound;
        Cost { value, error, accountant: accountant.into(), caveat: caveat.map(String::from) }
    }
}

fn by_name(name: &str) -> progap_privacy::Result<&'static dyn Accountant> {
    if name == "best" { Ok(&Best) } else { accountant::by_name(name) }
}

/// The names of all accountants, tightest first.
#[pyfunction]
pub fn accountants() -> Vec<&'static str> {
    accountant::all().map(<dyn Accountant>::name).to_vec()
}

/// The smallest epsilon that an accountant can prove at a delta.
#[pyfunction]
pub fn epsilon(py: Python<'_>, event: PyRef<'_, Event>, delta: f64, accountant: &str) -> PyResult<Cost> {
    let event = event.0.clone();
    py.detach(|| by_name(accountant)?.epsilon(&event, delta)).or_raise(py).map(Cost::from)
}

/// The smallest delta that an accountant can prove at an epsilon.
#[pyfunction]
pub fn delta(py: Python<'_>, event: PyRef<'_, Event>, epsilon: f64, accountant: &str) -> PyResult<Cost> {
    let event = event.0.clone();
    py.detach(|| by_name(accountant)?.delta(&event, epsilon)).or_raise(py).map(Cost::from)
}

/// The least multiple of an event's noise that meets a target: the multiple, the event with it, and what it costs.
#[pyfunction]
pub fn calibrate(
    py: Python<'_>,
    event: PyRef<'_, Event>,
    epsilon: f64,
    delta: f64,
    accountant: &str,
) -> PyResult<(f64, Event, Cost)> {
    let target = Target::new(epsilon, delta).or_raise(py)?;
    let event = event.0.clone();
    if event.with_noise_times(1.0).is_none() {
        return Err(exception(py, "PrivacyError", NO_NOISE));
    }
    let with = |factor: f64| Ok(event.with_noise_times(factor).unwrap_or(progap_privacy::Event::NonPrivate));
    let found = py.detach(|| least_noise(with, target, by_name(accountant)?)).or_raise(py)?;
    Ok((found.multiplier, Event(found.event), found.bound.into()))
}
