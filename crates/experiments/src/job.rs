//! One run: a data set, a split, settings.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use progap::settings::Draft;

/// Changes when the same job would come to other results.
const VERSION: u32 = 3;

/// A data set as it was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSpec {
    /// Its name.
    pub name: String,
    /// A description that decides its content; part of a job's key.
    pub content: Value,
    /// Where it lies here; not part of a job's key, for that differs between machines.
    #[serde(default)]
    pub place: Value,
}

/// A run to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The data set.
    pub data: DataSpec,
    /// The seed of its split, counted from 1.
    pub split: u64,
    /// The settings, with a seed.
    pub settings: Draft,
}

impl Job {
    /// A name for the job and for what comes of it: equal for equal jobs, on any machine.
    pub fn key(&self) -> String {
        let settings = serde_json::to_value(&self.settings).unwrap_or(Value::Null);
        let text = json!({ "version": VERSION, "data": self.data.content, "split": self.split, "settings": settings });
        Sha256::digest(sorted(&text)).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// JSON with the names of every object in order, however they were written.
pub(super) fn sorted(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let fields = fields.iter().map(|(name, value)| format!("{}:{}", json!(name), sorted(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        Value::Array(values) => format!("[{}]", values.iter().map(sorted).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use progap::Level;

    fn job() -> Job {
        let data = DataSpec { name: "a".into(), content: json!({ "x": 1, "a": [true] }), place: Value::Null };
        Job {
            data,
            split: 1,
            settings: progap::Settings {
                seed: Some(1),
                ..progap::Settings::of(progap::MethodKind::ProgapLabels, Level::Edge)
            }
            .into(),
        }
    }

    #[test]
    fn a_key_names_what_decides_the_result_and_nothing_else() {
        let key = job().key();
        let mut same = job();
        same.data.name = "b".into();
        same.data.place = json!("/elsewhere");
        same.data.content = serde_json::from_str(r#"{"a":[true],"x":1}"#).expect("JSON");
        assert_eq!(same.key(), key);
        let others: [fn(&mut Job); 4] = [
            |job| job.split = 2,
            |job| job.settings.seed = Some(2),
            |job| job.settings.learning_rate = 0.02,
            |job| job.data.content = json!({ "x": 2, "a": [true] }),
        ];
        for change in others {
            let mut other = job();
            change(&mut other);
            assert_ne!(other.key(), key);
        }
    }

    #[test]
    fn a_job_is_read_back_as_it_was_written() {
        let text = serde_json::to_string(&job()).expect("JSON");
        let back: Job = serde_json::from_str(&text).expect("a job");
        assert_eq!((back.key(), back), (job().key(), job()));
    }
}
