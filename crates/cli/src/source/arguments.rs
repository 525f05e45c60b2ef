//! What is said of a data set as the command line has it, read and written.

use std::path::Path;

use progap_formats::read::encoding::Encoding;
use progap_graph::Ratios;

use super::{DEFAULT_FOLDER, DataSource};

impl DataSource {
    /// The options that say which data these are, as one would type them after `--data`: not the split, which changes
    /// no identity.
    pub fn as_arguments(&self) -> Vec<String> {
        fn flag(name: &str, value: Option<String>) -> impl Iterator<Item = String> {
            value.into_iter().flat_map(move |value| [format!("--{name}"), value])
        }
        let path = |path: &Path| path.display().to_string();
        let folder = &self.folder.data_dir;
        let mut all = vec![self.dataset.clone()];
        all.extend(flag("edges", self.edges.as_deref().map(path)));
        all.extend(flag("labels", self.labels.as_deref().map(path)));
        all.extend(flag("header", self.header.map(|header| if header { "yes" } else { "no" }.to_string())));
        all.extend(flag("encoding", self.encoding.clone()));
        all.extend(flag("data-dir", (folder != Path::new(DEFAULT_FOLDER)).then(|| path(folder))));
        all.extend(flag("id", self.id.clone()));
        all.extend(flag("label", self.label.clone()));
        all.extend(flag("split", self.split.clone()));
        all.extend(flag("source", self.source.clone()));
        all.extend(flag("target", self.target.clone()));
        all.extend(self.weights.as_arguments());
        all.extend(flag("categorical", (!self.categorical.is_empty()).then(|| self.categorical.join(","))));
        all.extend(self.columns.as_arguments());
        all.extend(self.array.iter().flat_map(|array| flag("array", Some(array.clone()))));
        all.extend(flag("mask", self.mask.map(|mask| mask.to_string())));
        all.extend(flag("keep-nodes", self.transforms.kept_nodes().map(path)));
        all.extend(flag("min-class-count", self.transforms.min_class_count.map(|count| count.to_string())));
        all.extend(self.undirected.then(|| "--undirected".into()));
        all.extend(self.symmetrise.then(|| "--symmetrise".into()));
        all.extend(self.transforms.switches().map(String::from));
        all
    }
}

pub(super) fn parse_yes_no(text: &str) -> std::result::Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("give yes or no".into()),
    }
}

/// An encoding by its name, spelt as we spell it.
pub fn parse_encoding(text: &str) -> std::result::Result<String, String> {
    let found = Encoding::from_name(text).map(|encoding| encoding.to_string());
    found.ok_or_else(|| "give utf-8, latin-1 or utf-16".into())
}

pub(super) fn parse_ratios(text: &str) -> std::result::Result<Ratios, String> {
    let parse = |share: &str| share.trim().parse::<f64>().map_err(|_| format!("{share:?} is not a share"));
    let (val, test) = text.split_once(',').ok_or("give two shares, such as 0.10,0.15")?;
    Ok(Ratios { val: parse(val)?, test: parse(test)? })
}
