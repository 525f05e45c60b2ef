//! Pure differential privacy: what an event costs with a delta of zero.

use crate::event::Event;

/// Covers a handful of roundings, each of a relative 2^-53 or, inside a logarithm, an absolute one.
fn up(value: f64) -> f64 {
    value + 4.0 * f64::EPSILON * (1.0 + value)
}

impl Event {
    /// The epsilon with which the event is `(epsilon, 0)`-private, or nothing if none is known.
    ///
    /// ```
    /// use progap_privacy::Event;
    ///
    /// // A noisy count and a response to one bit: 0.1 and 0.9.
    /// let count = Event::laplace(10.0, 1.0)?;
    /// let keep = 1.0 / (1.0 + (-0.9f64).exp());
    /// let response = Event::randomized_response(keep, 1.0 - keep)?;
    /// let total = Event::composed(vec![count, response])?.pure_epsilon().unwrap();
    /// assert!((total - 1.0).abs() < 1e-12);
    /// assert_eq!(Event::gaussian(1.0, 1.0)?.pure_epsilon(), None);
    /// # Ok::<(), progap_privacy::Error>(())
    /// ```
    ///
    /// # Proof definition
    /// The largest logarithm of a ratio of likelihoods, in both directions: of a Laplace law `sensitivity / scale`; of
    /// a response that of its two answers; on a Poisson sample at rate `q`, `ln(1 + q (e^epsilon - 1))`. Logarithms add
    /// along a composition, adaptive or not, and the largest counts where a record is in one part only. Rounded up. See
    /// [proof](crate::proofs::pure).
    pub fn pure_epsilon(&self) -> Option<f64> {
        let epsilon = match self {
            Event::Laplace { scale, sensitivity } => up(sensitivity / scale),
            Event::RandomizedResponse { true_positive: p, false_positive: q } => {
                let ratio = |a: f64, b: f64| if a == b { 0.0 } else { up((a / b).ln().abs()) };
                ratio(*p, *q).max(ratio(1.0 - p, 1.0 - q))
            }
            Event::PoissonSampled { rate, .. } if *rate == 0.0 => 0.0,
            Event::PoissonSampled { rate, event } => {
                let inner = event.pure_epsilon()?;
                up((rate * inner.exp_m1()).ln_1p()).min(inner)
            }
            Event::Composed { events } => {
                let parts = events.iter().map(Event::pure_epsilon);
                parts.sum::<Option<f64>>()? * (1.0 + events.len() as f64 * f64::EPSILON)
            }
            Event::SelfComposed { event, count } => {
                event.pure_epsilon()? * *count as f64 * (1.0 + f64::EPSILON)
            }
            Event::Parallel { events } => {
                let parts: Option<Vec<f64>> = events.iter().map(Event::pure_epsilon).collect();
                parts?.into_iter().fold(0.0, f64::max)
            }
            Event::Gaussian { .. }
            | Event::SampledWithoutReplacement { .. }
            | Event::PrivateSelection { .. }
            | Event::NonPrivate => return None,
        };
        epsilon.is_finite().then_some(epsilon)
    }
}
