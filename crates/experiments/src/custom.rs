//! A comparison from a file: settings to start from, and lists of those to vary.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::grid::{Change, combinations, refuse_changes_in_vain, setting};
use super::options::{Name, Options, Preset};
use super::suite::{Cell, Experiment};
use super::tuning::Tuning;
use progap::InFile;
use progap::settings::{Draft, Request};
use progap::{Error, Result};

/// A comparison of the user's own.
///
/// ```toml
/// name = "how deep"
/// data-sets = ["demo"]
/// runs = 3
///
/// [base]
/// level = "edge"
/// epochs = 20
///
/// [vary]
/// depth = [1, 2, 3]
/// epsilon = [0.5, 1.0]
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CustomFile {
    /// Its name.
    pub name: String,
    /// The data sets: names, paths, or tables of what `progap train` can be told about a data set.
    #[serde(default)]
    pub data_sets: Vec<Value>,
    /// Runs of each settings.
    pub runs: Option<u64>,
    /// Start from the published settings.
    #[serde(default)]
    pub paper: bool,
    #[serde(default)]
    base: Map<String, Value>,
    #[serde(default)]
    vary: Map<String, Value>,
}

impl CustomFile {
    /// Reads a file.
    ///
    /// # Errors
    /// Keys that are not known, here or as settings; lists that are empty or none.
    pub fn read(path: &Path) -> Result<CustomFile> {
        let text = std::fs::read_to_string(path).in_file(path)?;
        CustomFile::parse(&text).in_file(path)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// As [`CustomFile::read`].
    pub fn parse(text: &str) -> Result<CustomFile> {
        // TOML's own message has the line and a picture of it; one sentence is enough.
        let file: CustomFile = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            Error::unsuitable(format!("line {line}: {}", error.message().trim().replace('\n', "; ")))
        })?;
        for name in file.base.keys().chain(file.vary.keys()) {
            setting(name)?;
        }
        for (name, values) in &file.vary {
            match values.as_array() {
                Some(values) if !values.is_empty() => {}
                Some(_) => {
                    return Err(Error::unsuitable(format!(
                        "the list of {name} is empty: the grid has no point"
                    )));
                }
                None => {
                    return Err(Error::unsuitable(format!(
                        "vary.{name} is not a list; write {name} = [{values}], or put it under [base]"
                    )));
                }
            }
            if file.base.contains_key(name) {
                return Err(Error::unsuitable(format!("{name} is both under [base] and under [vary]")));
            }
        }
        Ok(file)
    }

    /// The names of the settings that vary.
    pub fn varied(&self) -> Vec<String> {
        self.vary.keys().cloned().collect()
    }

    /// The experiment. Of the options, the data sets, the number of runs, the preset and the changes count.
    pub fn experiment(&self, options: &Options) -> Result<Experiment> {
        if options.tuning != Tuning::None {
            return Err(Error::contradiction("a comparison of one's own compares settings and tunes none"));
        }
        if options.preset == Preset::Both {
            return Err(Error::contradiction("a comparison of one's own starts from one preset"));
        }
        let paper = self.paper || options.preset == Preset::Paper;
        let axes: Vec<(String, Vec<Value>)> = self
            .vary
            .iter()
            .map(|(name, values)| (name.clone(), values.as_array().cloned().unwrap_or_default()))
            .collect();
        let base: Vec<Change> = self.base.clone().into_iter().collect();
        let mut cells = Vec::new();
        for data in &options.data {
            for chosen in combinations(&axes) {
                let all: Vec<Change> = base.iter().chain(&options.changes).chain(&chosen).cloned().collect();
                let described =
                    || chosen.iter().map(|(name, v)| format!("{name} = {}", plain(v))).collect::<Vec<_>>();
                let settings = settings(&all, paper).map_err(|error| {
                    Error::unsuitable(format!("with {}: {error}", described().join(", ")))
                })?;
                let hidden = |name: &str| {
                    ["method", "level", "epsilon"].contains(&name) || settings.without_effect(name).is_some()
                };
                let shown = chosen.iter().filter(|(name, _)| !hidden(name));
                let variant = shown.map(|(name, value)| (name.replace('_', " "), plain(value))).collect();
                let (method, level, epsilon) = (settings.method, settings.level, settings.epsilon);
                let (data, candidates) = (data.clone(), vec![settings]);
                cells.push(Cell { data, method, level, epsilon, variant, candidates });
            }
        }
        let varied = axes.iter().map(|(name, values)| (name.clone(), values[0].clone()));
        let all: Vec<Change> = base.iter().chain(&options.changes).cloned().chain(varied).collect();
        refuse_changes_in_vain(&all, &cells)?;
        Experiment::of(Name::Custom, options, cells)
    }
}

/// The settings after all changes, under the guarantee of all experiments; `undirected` and `delta_rule` choose
/// another.
fn settings(changes: &[Change], paper: bool) -> Result<Draft> {
    let mut request = if paper { Request::published() } else { Request::default() };
    for (name, value) in changes {
        request = request.with(setting(name)?.name, value.clone());
    }
    request.with_published_guarantee().settings_where_they_matter()
}

/// A value as people write it.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => json!("auto").to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DataSpec;
    use progap::settings::{Level, MethodKind};

    fn options() -> Options {
        let data = DataSpec { name: "demo".into(), content: json!("demo"), place: Value::Null };
        Options::new(vec![data], 2)
    }

    #[test]
    fn a_file_becomes_cells() {
        let file = CustomFile::parse(
            "name = 'x'\ndata-sets = ['demo']\n[base]\nepochs = 5\n[vary]\nmethod = ['progap', 'gap']\n\
             level = ['none', 'edge']\nepsilon = [0.5, 1.0]\nlearning-rate = [0.01]\n",
        );
        let experiment = file.expect("a file").experiment(&options()).expect("an experiment");
        // Without privacy both budgets are the same cell.
        assert_eq!(experiment.cells.len(), 2 * (1 + 2));
        let last = &experiment.cells[experiment.cells.len() - 1];
        assert_eq!((last.method, last.level, last.epsilon), (MethodKind::Gap, Level::Edge, Some(1.0)));
        assert_eq!(last.variant, [("learning-rate".to_string(), "0.01".to_string())]);
        assert!(experiment.cells.iter().all(|cell| cell.candidates[0].epochs == 5));
    }

    /// A setting of node level varies there, and one run at edge level stands beside all of them.
    #[test]
    fn what_decides_nothing_in_a_run_does_not_vary_it() {
        let text = "name = 'x'\n[vary]\nlevel = ['edge', 'node']\nclip = [0.5, 1.0, 2.0]\n";
        let file = CustomFile::parse(text).expect("a file");
        let experiment = file.experiment(&options()).expect("an experiment");
        let of = |level| experiment.cells.iter().filter(move |cell| cell.level == level);
        assert_eq!((of(Level::Edge).count(), of(Level::Node).count()), (1, 3));
        assert!(of(Level::Edge).all(|cell| cell.variant.is_empty() && cell.candidates[0].clip == 1.0));
    }

    /// Method, level and defaults follow from what is asked for by the rule of training.
    #[test]
    fn a_comparison_has_the_settings_of_training() {
        for (base, asked) in [
            ("epochs = 5", &[("epochs", json!(5))][..]),
            ("layerwise = true", &[("layerwise", json!(true))]),
            ("messages = 'labels'", &[("messages", json!("labels"))]),
            ("method = 'dp-gnn'", &[("method", json!("dp-gnn"))]),
            ("class_weights = 'balanced'", &[("class_weights", json!("balanced"))]),
            ("level = 'node'\nclip = 0.5", &[("level", json!("node")), ("clip", json!(0.5))]),
        ] {
            let file = CustomFile::parse(&format!("name = 'x'\n[base]\n{base}\n")).expect("a file");
            let experiment = file.experiment(&options()).expect(base);
            let trained =
                asked.iter().fold(Request::default(), |all, (name, value)| all.with(name, value.clone()));
            let trained = trained.with_published_guarantee().settings().expect(base);
            assert_eq!(experiment.cells[0].candidates, [trained], "{base}");
        }
    }

    #[test]
    fn mistakes_in_a_file_are_named() {
        for (text, part) in [
            ("name = 'x'\nrunz = 3", "line 2: unknown field `runz`"),
            ("name = 'x'\n[base]\ndepht = 3", "no setting \"depht\""),
            ("name = 'x'\n[vary]\ndepth = []", "list of depth is empty"),
            ("name = 'x'\n[vary]\ndepth = 3", "depth = [3]"),
            ("name = 'x'\n[base]\ndepth = 1\n[vary]\ndepth = [3]", "both under"),
            ("runs = 3", "missing field `name`"),
            ("name = ", "line 1"),
        ] {
            let error = CustomFile::parse(text).expect_err(text).to_string();
            assert!(error.contains(part) && !error.contains('\n'), "{part:?} is not in {error:?}");
        }
        let vain = CustomFile::parse("name = 'x'\n[vary]\nclip = [0.5, 1.0]").expect("a file");
        let error = vain.experiment(&options()).expect_err("edges have no gradients to clip").to_string();
        assert!(error.contains("`clip` has no effect: it belongs to level node"), "{error}");
        let file = CustomFile::parse("name = 'x'\n[vary]\ndepth = [1, 1000]").expect("a file");
        let error = file.experiment(&options()).expect_err("too deep").to_string();
        assert!(error.contains("with depth = 1000"), "{error}");
    }
}
