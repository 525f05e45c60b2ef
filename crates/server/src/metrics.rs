//! What Prometheus reads. Labels are routes, models and columns: never ids, never values of a row.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use progap::release::Used;

/// The upper ends of the buckets of the histogram of latencies, in seconds.
const BUCKETS: [f64; 14] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// Counters of one server.
#[derive(Default)]
pub(crate) struct Metrics(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    requests: BTreeMap<(&'static str, String, u16), u64>,
    latency: BTreeMap<String, Latency>,
    predictions: BTreeMap<(String, &'static str), u64>,
    rejected: BTreeMap<(String, String), u64>,
    rows: BTreeMap<String, u64>,
    reloads: [u64; 2],
}

#[derive(Default)]
struct Latency {
    buckets: [u64; BUCKETS.len()],
    count: u64,
    seconds: f64,
}

impl Metrics {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request that was answered. The route is one of those that there are.
    pub fn request(&self, method: &'static str, route: &str, status: u16, took: Duration) {
        let (mut counts, seconds) = (self.counts(), took.as_secs_f64());
        *counts.requests.entry((method, route.into(), status)).or_default() += 1;
        if !counts.latency.contains_key(route) {
            counts.latency.insert(route.into(), Latency::default());
        }
        if let Some(latency) = counts.latency.get_mut(route) {
            let at = BUCKETS.partition_point(|&end| end < seconds);
            latency.buckets.iter_mut().skip(at).for_each(|bucket| *bucket += 1);
            latency.count += 1;
            latency.seconds += seconds;
        }
    }

    /// Predictions that were given out, by what they are made of.
    pub fn predicted(&self, model: &str, used: Used, count: usize) {
        *self.counts().predictions.entry((model.into(), used.name())).or_default() += count as u64;
    }

    /// New rows, and the columns that some of them did not fit in: how far data has drifted from what was known in
    /// training.
    pub fn rows<'c>(&self, model: &str, rows: usize, misfits: impl Iterator<Item = &'c str>) {
        let mut counts = self.counts();
        *counts.rows.entry(model.into()).or_default() += rows as u64;
        for column in misfits {
            *counts.rejected.entry((model.into(), column.into())).or_default() += 1;
        }
    }

    /// A new version that is served, or was refused.
    pub fn reloaded(&self, served: bool) {
        self.counts().reloads[usize::from(served)] += 1;
    }

    /// All of them, in the text format of Prometheus; `models` are names with the SHA-256 of what is served.
    pub fn text(&self, models: &[(String, String)]) -> String {
        let (counts, mut out) = (self.counts(), String::new());
        let mut family = |name: &str, kind: &str, help: &str, samples: Vec<(String, f64)>| {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (labels, value) in samples {
                let _ = writeln!(out, "{labels} {value}");
            }
        };
        let requests = counts.requests.iter().map(|((method, route, status), &count)| {
            let labels = format!("{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}}");
            (format!("progap_requests_total{labels}"), count as f64)
        });
        family("progap_requests_total", "counter", "Requests that were answered.", requests.collect());
        let mut samples = vec![];
        for (route, latency) in &counts.latency {
            let name =
                |end: String| format!("progap_request_seconds_bucket{{route=\"{route}\",le=\"{end}\"}}");
            samples.extend(
                BUCKETS.iter().zip(latency.buckets).map(|(end, count)| (name(end.to_string()), count as f64)),
            );
            samples.push((name("+Inf".into()), latency.count as f64));
            samples.push((format!("progap_request_seconds_sum{{route=\"{route}\"}}"), latency.seconds));
            samples
                .push((format!("progap_request_seconds_count{{route=\"{route}\"}}"), latency.count as f64));
        }
        family(
            "progap_request_seconds",
            "histogram",
            "Time from the head of a request to the head of its answer.",
            samples,
        );
        let predictions = counts.predictions.iter().map(|((model, used), &count)| {
            (format!("progap_predictions_total{{model=\"{model}\",used=\"{used}\"}}"), count as f64)
        });
        let help = "Predictions that were given out, by what they are made of.";
        family("progap_predictions_total", "counter", help, predictions.collect());
        let rows = counts
            .rows
            .iter()
            .map(|(model, &count)| (format!("progap_rows_total{{model=\"{model}\"}}"), count as f64));
        family(
            "progap_rows_total",
            "counter",
            "New rows that were sent, those that did not fit included.",
            rows.collect(),
        );
        let rejected = counts.rejected.iter().map(|((model, column), &count)| {
            (
                format!("progap_rows_rejected_total{{model=\"{model}\",column=\"{}\"}}", escaped(column)),
                count as f64,
            )
        });
        let help = "New rows that did not fit, by the first column that is not as it was in training.";
        family("progap_rows_rejected_total", "counter", help, rejected.collect());
        let reloads = ["refused", "served"].iter().zip(counts.reloads);
        let reloads = reloads
            .map(|(outcome, count)| (format!("progap_reloads_total{{outcome=\"{outcome}\"}}"), count as f64));
        family("progap_reloads_total", "counter", "New versions of releases.", reloads.collect());
        let models = models.iter().map(|(model, release)| {
            (format!("progap_model_info{{model=\"{model}\",release=\"{release}\"}}"), 1.0)
        });
        family(
            "progap_model_info",
            "gauge",
            "The releases that are served, by the SHA-256 of their manifest.",
            models.collect(),
        );
        out
    }
}

/// The value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
