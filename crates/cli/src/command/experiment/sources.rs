//! The data sets of an experiment.

use std::path::Path;

use progap_experiments::DataSpec;
use serde_json::Value;

use super::Result;
use crate::source::DataSource;

/// Names of data sets in tables: files by their names, without folder and ending, unless two would be the same.
pub fn short_names(sources: &[DataSource]) -> Vec<String> {
    let short = |source: &DataSource| {
        let path = Path::new(source.name());
        let is_path = path.components().count() > 1 || path.extension().is_some();
        let stem = path.file_stem().filter(|_| is_path).and_then(|stem| stem.to_str());
        stem.unwrap_or(source.name()).to_string()
    };
    let names: Vec<String> = sources.iter().map(short).collect();
    let is_unique = |name: &String| names.iter().filter(|other| *other == name).count() == 1;
    let one = |(source, name): (&DataSource, &String)| {
        if is_unique(name) { name.clone() } else { source.name().to_string() }
    };
    sources.iter().zip(&names).map(one).collect()
}

/// A data set as jobs name it: what decides its content, and where it lies here.
pub fn spec(source: &DataSource, name: String) -> Result<DataSpec> {
    let mut content = serde_json::to_value(source)?;
    let place = content.as_object_mut().and_then(|fields| fields.remove("folder")).unwrap_or(Value::Null);
    Ok(DataSpec { name, content, place })
}

/// Loads the data set of a job.
pub fn load(spec: &DataSpec, split: u64) -> progap::Result<progap_graph::Dataset> {
    let mut all = spec.content.clone();
    if let Some(fields) = all.as_object_mut().filter(|_| !spec.place.is_null()) {
        fields.insert("folder".into(), spec.place.clone());
    }
    let source: DataSource = serde_json::from_value(all)
        .map_err(|e| progap::Error::unsuitable(format!("the data set {}: {e}", spec.name)))?;
    Ok(source.with_seed(split).load_split()?)
}
