//! Audits: the guarantee under attack.

use progap::Settings;
use progap::settings::PublicFacts;
use progap_audit::attack::Attack;
use progap_audit::{Auditor, evaluate};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::data::Dataset;
use crate::errors::exception;
use crate::model::Model;
use crate::observe::watched;
use crate::settings::request;

/// Attacks the guarantee of a run with these settings on these data, or of a release of them; what came of it, as JSON.
#[pyfunction]
#[pyo3(signature = (dataset, settings, published, release, parts, canaries, confidence, callback))]
#[allow(clippy::too_many_arguments, reason = "called from one place")]
pub fn audit(
    py: Python<'_>,
    dataset: &Dataset,
    settings: &Bound<'_, PyDict>,
    published: bool,
    release: Option<&Model>,
    parts: Vec<String>,
    canaries: Option<usize>,
    confidence: f64,
    callback: Option<Py<PyAny>>,
) -> PyResult<String> {
    let request = request(settings, published)?;
    let opened = release.and_then(Model::release);
    let data = dataset.data(py)?;
    let report = watched(py, callback.as_ref(), |observer| {
        let settings = match opened {
            Some(release) => release.settings()?.clone().into(),
            None => request.settings()?,
        };
        let resolved = settings.resolve(&PublicFacts::of(data, &settings))?.into_settings();
        // The canaries are of the unit that the data decides, and must not decide it themselves.
        let settings = Settings { unit_from_data: false, ..resolved };
        let auditor = Auditor { dataset: data, settings: &settings, canaries };
        let wanted = |part: &str| match parts.is_empty() {
            true => part != "training" || auditor.claims_about_releases(),
            false => parts.iter().any(|asked| asked == part),
        };
        let mut trials = vec![];
        if wanted("mechanism") {
            trials.extend(auditor.mechanism()?);
        }
        if wanted("training") {
            trials.extend(auditor.training(observer)?);
        }
        let (mut links, mut members) = (vec![], None);
        if wanted("attacks") {
            let made;
            let release = match opened {
                Some(release) => release,
                None => {
                    made = auditor.train(observer)?;
                    &made
                }
            };
            let (on_edges, on_nodes) = auditor.attacks(release)?;
            (links, members) = (on_edges, Some(on_nodes));
        }
        let findings = evaluate(&trials, confidence)?;
        Ok(serde_json::json!({
            "dataset": data.name(),
            "method": settings.method,
            "level": settings.level,
            "confidence": confidence,
            "refuted": findings.iter().any(|finding| finding.refuted),
            "findings": findings,
            "link_inference": links.iter().map(Attack::outcome).collect::<Result<Vec<_>, _>>()?,
            "membership_inference": members.as_ref().map(Attack::outcome).transpose()?,
        }))
    })?;
    serde_json::to_string(&report).map_err(|error| exception(py, "ProGAPError", error))
}
