//! Which runs the experiments of the paper consist of.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::grid::{Change, changed, changed_where_it_matters, combinations, refuse_changes_in_vain, setting};
use super::published::with_published_sizes;
use super::tuning::{Tuning, trials};
use super::{DataSpec, Job};
use crate::method::catalogue::entry;
use crate::plan::{Plan, PublicSizes};
use crate::settings::{Level, Method, Metric, Settings};
use crate::{Error, Result};

/// The experiments that consist of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Name {
    /// Methods by levels by data sets.
    Table2,
    /// Accuracy against epsilon.
    Tradeoff,
    /// Accuracy epoch by epoch.
    Convergence,
    /// Accuracy against depth.
    Depth,
    /// Progressive against layerwise training.
    Layerwise,
    /// Additions to the paper on and off.
    Ablation,
    /// A comparison of the user's own.
    Custom,
}

/// The settings that runs start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Preset {
    /// Our defaults.
    #[default]
    Default,
    /// The published accounting, sampling and settings.
    Paper,
    /// One beside the other.
    Both,
}

/// What can be asked of an experiment; what is not given is as in the paper.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The data sets.
    pub data: Vec<DataSpec>,
    /// Runs of each settings, each with a split and a seed of its own.
    pub runs: u64,
    /// The methods.
    pub methods: Option<Vec<Method>>,
    /// The levels.
    pub levels: Option<Vec<Level>>,
    /// The budgets, at every private level.
    pub epsilons: Option<Vec<f64>>,
    /// The depths.
    pub depths: Option<Vec<usize>>,
    /// How settings are chosen.
    pub tuning: Tuning,
    /// The settings to start from.
    pub preset: Preset,
    /// Settings for all runs.
    pub changes: Vec<Change>,
    /// The metric that is shown; where validation nodes choose epochs, also the one by which they do.
    pub metric: Metric,
}

impl Options {
    /// So many runs on some data sets of what an experiment usually compares, with fixed settings.
    pub fn new(data: Vec<DataSpec>, runs: u64) -> Options {
        Options {
            data,
            runs,
            methods: None,
            levels: None,
            epsilons: None,
            depths: None,
            tuning: Tuning::None,
            preset: Preset::Default,
            changes: vec![],
            metric: Metric::Accuracy,
        }
    }
}

/// One figure of an experiment: several settings to choose from, each run several times.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The data set.
    pub data: DataSpec,
    /// The method.
    pub method: Method,
    /// The level.
    pub level: Level,
    /// The budget; none at level none, 0 where no edge is touched at edge level.
    pub epsilon: Option<f64>,
    /// What else tells it from other cells: names and values.
    pub variant: Vec<(String, String)>,
    /// The settings to choose from, without seeds.
    pub candidates: Vec<Settings>,
}

/// An experiment: cells, and how they are run.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// Which one.
    pub name: Name,
    /// Runs of each settings.
    pub runs: u64,
    /// How settings are chosen.
    pub tuning: Tuning,
    /// The cells.
    pub cells: Vec<Cell>,
    /// Variants that a method does not have, and why.
    pub left_out: Vec<String>,
    /// The metric that is shown.
    pub metric: Metric,
}

/// The additions that `ablation` turns on and off: levels, a name, settings.
fn additions() -> Vec<(Vec<Level>, &'static str, Vec<Change>)> {
    let both = || vec![Level::Edge, Level::Node];
    let (edge, node) = (|| vec![Level::Edge], || vec![Level::Node]);
    let change = |name: &str, value: &str| (name.to_string(), json!(value));
    let number = |name: &str, value: f64| (name.to_string(), json!(value));
    let published =
        vec![change("accounting", "rdp"), change("bounding", "sample"), change("messages", "embeddings")];
    vec![
        (both(), DEFAULTS, vec![]),
        (both(), "noise by Renyi divergences", vec![change("accounting", "rdp")]),
        (node(), "degrees bounded by sampling", vec![change("bounding", "sample")]),
        (node(), "degrees bounded by capped weights", vec![change("bounding", "cap")]),
        (both(), "messages of embeddings", vec![change("messages", "embeddings")]),
        (edge(), "no weight decay", vec![number("weight_decay", 0.0)]),
        (node(), "gradients as noisy as aggregates", vec![number("gradient_noise_ratio", 1.0)]),
        (both(), "accounting, bounds and messages as published", published),
    ]
}

/// What tells cells apart where both presets stand side by side.
pub const PRESET: &str = "preset";

/// The first row of `ablation`.
const DEFAULTS: &str = "defaults";

impl Experiment {
    /// The cells of an experiment of the paper.
    ///
    /// # Errors
    /// Options that contradict each other, or leave nothing to run.
    pub fn new(name: Name, options: &Options) -> Result<Experiment> {
        let maker = Maker { name, options };
        maker.check()?;
        let mut cells = Vec::new();
        let mut left_out = Vec::new();
        for data in &options.data {
            maker.add_data_set(data, &mut cells, &mut left_out)?;
        }
        refuse_changes_in_vain(&options.changes, &cells)?;
        Ok(Experiment { left_out, ..Experiment::of(name, options, cells)? })
    }

    /// An experiment of these cells.
    pub(super) fn of(name: Name, options: &Options, cells: Vec<Cell>) -> Result<Experiment> {
        let mut unique: Vec<Cell> = Vec::new();
        for mut cell in cells {
            let chooses = |settings: &&mut Settings| settings.without_effect("metric").is_none();
            if options.metric != Metric::Accuracy {
                cell.candidates
                    .iter_mut()
                    .filter(chooses)
                    .for_each(|settings| settings.metric = options.metric);
            }
            if !unique.contains(&cell) {
                unique.push(cell);
            }
        }
        if unique.iter().all(|cell| cell.candidates.is_empty()) || options.runs == 0 {
            return Err(Error::Contradiction(
                "there is nothing to run: no data set, method, level and settings are left together",
            ));
        }
        let &Options { runs, tuning, metric, .. } = options;
        Ok(Experiment { name, runs, tuning, cells: unique, left_out: vec![], metric })
    }

    /// Every job once, in an order in which data sets are loaded once and runs find the stages of deeper ones.
    pub fn jobs(&self) -> Result<Vec<Job>> {
        let mut jobs = Vec::new();
        for (at, cell) in self.cells.iter().enumerate() {
            for split in 1..=self.runs {
                jobs.extend(self.cell_jobs(cell, split)?.into_iter().map(|job| (at, job)));
            }
        }
        let mut data: Vec<&DataSpec> = Vec::new();
        for cell in &self.cells {
            if !data.contains(&&cell.data) {
                data.push(&cell.data);
            }
        }
        let place = |spec: &DataSpec| data.iter().position(|known| *known == spec);
        jobs.sort_by_key(|(at, job)| {
            (place(&job.data), job.split, *at, std::cmp::Reverse(job.settings.depth))
        });
        let mut seen = HashSet::new();
        Ok(jobs.into_iter().map(|(_, job)| job).filter(|job| seen.insert(job.key())).collect())
    }

    /// The jobs of a cell on one split, in the order of its settings; by private tuning in the order of its trials.
    pub(super) fn cell_jobs(&self, cell: &Cell, split: u64) -> Result<Vec<Job>> {
        let job = |settings: &Settings, seed: u64| Job {
            data: cell.data.clone(),
            split,
            settings: Settings { seed: Some(seed), ..settings.clone() },
        };
        Ok(match self.tuning {
            Tuning::Private => {
                // A record of dp-gnn moves many predictions, and edge-rand has no delta: their choice is not accounted for.
                let method = cell.candidates.first().map(|settings| settings.method);
                method.map_or(Ok(()), |method| method.recipe().check_tuning())?;
                let trials = trials(cell.candidates.len(), split)?;
                trials.iter().map(|trial| job(&cell.candidates[trial.candidate], trial.seed)).collect()
            }
            Tuning::None | Tuning::Grid => {
                cell.candidates.iter().map(|settings| job(settings, split)).collect()
            }
        })
    }
}

/// Makes cells.
struct Maker<'o> {
    name: Name,
    options: &'o Options,
}

impl Maker<'_> {
    fn check(&self) -> Result<()> {
        if self.options.data.is_empty() {
            return Err(Error::Contradiction("there is nothing to run: name a data set"));
        }
        if self.options.preset == Preset::Both && !matches!(self.name, Name::Table2 | Name::Tradeoff) {
            return Err(Error::Contradiction("only table2 and tradeoff show both presets side by side"));
        }
        for (name, _) in &self.options.changes {
            match setting(name)?.name {
                "method" => return Err(Error::Contradiction("methods are chosen with `methods`")),
                "level" => return Err(Error::Contradiction("levels are chosen with `levels`")),
                "epsilon" => return Err(Error::Contradiction("budgets are chosen with `epsilons`")),
                "depth" => return Err(Error::Contradiction("depths are chosen with `depths`")),
                _ => {}
            }
        }
        let empty =
            |what: &str| Error::Unsuitable(format!("the list of {what} is empty: the grid has no point"));
        let lists = [
            ("methods", self.options.methods.as_ref().map(Vec::len)),
            ("levels", self.options.levels.as_ref().map(Vec::len)),
            ("epsilons", self.options.epsilons.as_ref().map(Vec::len)),
            ("depths", self.options.depths.as_ref().map(Vec::len)),
        ];
        match lists.iter().find(|(_, length)| *length == Some(0)) {
            Some((what, _)) => Err(empty(what)),
            None => Ok(()),
        }
    }

    fn methods(&self) -> Vec<Method> {
        let usual = || match self.name {
            Name::Table2 => Method::ALL.to_vec(),
            Name::Tradeoff => vec![Method::Progap, Method::Gap],
            _ => vec![Method::Progap],
        };
        self.options.methods.clone().unwrap_or_else(usual)
    }

    fn levels(&self) -> Vec<Level> {
        let usual = || match self.name {
            Name::Table2 | Name::Layerwise => vec![Level::None, Level::Edge, Level::Node],
            _ => vec![Level::Edge, Level::Node],
        };
        self.options.levels.clone().unwrap_or_else(usual)
    }

    fn epsilons(&self, level: Level) -> Vec<Option<f64>> {
        let usual: &[f64] = match (level, self.name) {
            (Level::None, _) => return vec![None],
            (Level::Edge, Name::Tradeoff) => &[0.25, 0.5, 1.0, 2.0, 4.0],
            (Level::Node, Name::Tradeoff) => &[2.0, 4.0, 8.0, 16.0, 32.0],
            (Level::Edge, Name::Depth) => &[0.25, 1.0, 4.0],
            (Level::Node, Name::Depth) => &[2.0, 8.0, 32.0],
            (Level::Edge, _) => &[1.0],
            (Level::Node, _) => &[8.0],
        };
        self.options.epsilons.as_deref().unwrap_or(usual).iter().copied().map(Some).collect()
    }

    fn depths(&self, usual: &[usize]) -> Vec<usize> {
        self.options.depths.clone().unwrap_or_else(|| usual.to_vec())
    }

    /// The variants of a cell at a level: names and values, settings, and the depth where it is fixed.
    fn variants(&self, level: Level) -> Vec<Variant> {
        let depth = |depth: usize| ("depth".to_string(), depth.to_string());
        let at_depth = |k| Variant { labels: vec![depth(k)], depth: Some(k), ..self.plain_variant() };
        match self.name {
            Name::Tradeoff | Name::Table2 if self.options.preset == Preset::Both => {
                let labelled = |name: &str, paper| {
                    let labels = vec![(PRESET.to_string(), name.to_string())];
                    Variant { labels, paper, ..Variant::default() }
                };
                vec![labelled("default", false), labelled("paper", true)]
            }
            Name::Table2 | Name::Tradeoff | Name::Custom => vec![self.plain_variant()],
            Name::Convergence => self.depths(&[5]).into_iter().map(at_depth).collect(),
            Name::Depth => self.depths(&[1, 2, 3, 4, 5]).into_iter().map(at_depth).collect(),
            Name::Layerwise => {
                let one = |k: usize, name: &str, layerwise: bool| Variant {
                    labels: vec![depth(k), ("training".into(), name.into())],
                    depth: Some(k),
                    changes: vec![("layerwise".into(), json!(layerwise))],
                    ..self.plain_variant()
                };
                let both = |k| [one(k, "progressive", false), one(k, "layerwise", true)];
                self.depths(&[5]).into_iter().flat_map(both).collect()
            }
            Name::Ablation => {
                let additions = additions().into_iter().filter(|(levels, _, _)| levels.contains(&level));
                let one = |(_, name, changes): (_, &str, _)| Variant {
                    labels: vec![("additions".into(), name.into())],
                    changes,
                    ..self.plain_variant()
                };
                additions.map(one).collect()
            }
        }
    }

    /// A variant that has no name.
    fn plain_variant(&self) -> Variant {
        Variant { paper: self.options.preset == Preset::Paper, ..Variant::default() }
    }

    fn add_data_set(&self, data: &DataSpec, cells: &mut Vec<Cell>, left_out: &mut Vec<String>) -> Result<()> {
        let mut defaults: Vec<Settings> = Vec::new();
        for level in self.levels() {
            for method in self.methods().into_iter().filter(|&method| entry(method).levels.contains(&level)) {
                for epsilon in self.epsilons(level) {
                    for variant in self.variants(level) {
                        let optional = self.name == Name::Ablation && !variant.changes.is_empty()
                            || self.options.preset == Preset::Both && variant.paper;
                        let label = variant.labels.iter().map(|(_, value)| value.clone()).collect::<String>();
                        match self.cell(data, method, level, epsilon, variant) {
                            // An addition need not exist for every method, or change anything; nor need a preset.
                            Err(why) if optional => {
                                let why = format!("{label}, for {method} at level {level}: {why}");
                                if !left_out.contains(&why) {
                                    left_out.push(why);
                                }
                            }
                            Ok(cell) if optional && cell.candidates == defaults => {}
                            // Without a query there is nothing to account for: presets do not differ.
                            Ok(cell)
                                if optional && self.name != Name::Ablation && cell.epsilon == Some(0.0) => {}
                            cell => {
                                let cell = cell?;
                                if !optional {
                                    defaults.clone_from(&cell.candidates);
                                }
                                cells.push(cell);
                            }
                        }
                    }
                }
            }
        }
        if self.name == Name::Tradeoff && !self.levels().contains(&Level::None) {
            // The dotted line: what the first method reaches without privacy.
            let first = self.methods().first().copied().unwrap_or(Method::Progap);
            if entry(first).levels.contains(&Level::None) {
                let variant = self.variants(Level::None).into_iter().next().unwrap_or_default();
                cells.push(self.cell(data, first, Level::None, None, variant)?);
            }
        }
        Ok(())
    }

    fn cell(
        &self,
        data: &DataSpec,
        method: Method,
        level: Level,
        epsilon: Option<f64>,
        variant: Variant,
    ) -> Result<Cell> {
        let usual = if variant.paper { Settings::paper(method, level) } else { Settings::of(method, level) };
        // Figures stand beside published ones, which are for directed edges.
        let usual = usual.with_published_guarantee();
        let usual = if level == Level::Node { with_published_sizes(usual, &data.name) } else { usual };
        let mut base = Settings { epsilon, ..changed_where_it_matters(&usual, &self.options.changes)? };
        base = changed(&base, &variant.changes)?;
        if let Some(depth) = variant.depth {
            base.depth = depth;
        }
        let mut label = epsilon;
        if level == Level::Edge && touches_no_edge(&base) {
            // The budget changes nothing: one cell stands for all.
            (base.epsilon, label) = (usual.epsilon, Some(0.0));
        }
        let candidates = self.candidates(&base, variant.depth.is_some())?;
        Ok(Cell { data: data.clone(), method, level, epsilon: label, variant: variant.labels, candidates })
    }

    /// The settings to choose from.
    fn candidates(&self, base: &Settings, depth_is_fixed: bool) -> Result<Vec<Settings>> {
        let has_depth = base.depth > 0;
        if self.options.tuning == Tuning::None {
            let mut settings = base.clone();
            match self.options.depths.as_deref() {
                _ if depth_is_fixed || !has_depth => {}
                None => {}
                Some([depth]) => settings.depth = *depth,
                Some(_) => {
                    return Err(Error::Contradiction(
                        "several `depths` need a way to choose one: give `tuning grid` or `tuning private`",
                    ));
                }
            }
            return Ok(vec![settings.checked()?.into_settings()]);
        }
        let numbers = |values: &[usize]| values.iter().map(|value| json!(value)).collect::<Vec<Value>>();
        let mut axes: Vec<(String, Vec<Value>)> = Vec::new();
        if has_depth {
            axes.push(("layers".into(), numbers(&[1, 2])));
            if !depth_is_fixed {
                axes.push(("depth".into(), numbers(&self.depths(&[1, 2, 3, 4, 5]))));
            }
        }
        axes.push(("learning_rate".into(), vec![json!(0.01), json!(0.05)]));
        if base.level == Level::Node {
            axes.push(("epochs".into(), numbers(&[5, 10])));
        }
        // What the user fixed is not tuned.
        let fixed: Vec<&str> =
            self.options.changes.iter().map(|(name, _)| Ok(setting(name)?.name)).collect::<Result<_>>()?;
        axes.retain(|(name, _)| !fixed.contains(&name.as_str()));
        let mut all = Vec::new();
        let mut refusal = None;
        for changes in combinations(&axes) {
            let settings = changed(base, &changes)?;
            // A method need not have every depth of the grid.
            match settings.checked() {
                Ok(settings) => all.push(settings.into_settings()),
                Err(error) => refusal = Some(error),
            }
        }
        match (all.is_empty(), refusal) {
            (false, _) => Ok(all),
            (true, Some(error)) => Err(error),
            (true, None) => Err(Error::Contradiction("the grid is empty")),
        }
    }
}

#[derive(Default)]
struct Variant {
    labels: Vec<(String, String)>,
    depth: Option<usize>,
    changes: Vec<Change>,
    /// Whether it starts from the published settings.
    paper: bool,
}

/// Whether a method asks nothing of the graph, whatever its budget.
fn touches_no_edge(settings: &Settings) -> bool {
    let sizes = PublicSizes { edges: 1_000_000, train_nodes: 100_000, ..PublicSizes::default() };
    let plan = settings.checked().and_then(|settings| Plan::new(&settings, sizes));
    plan.is_ok_and(|plan| plan.epsilon == 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn options(tuning: Tuning) -> Options {
        let data = DataSpec { name: "demo".into(), content: json!("demo"), place: Value::Null };
        Options { tuning, ..Options::new(vec![data], 10) }
    }

    fn only(method: Method, level: Level, tuning: Tuning) -> Options {
        Options { methods: Some(vec![method]), levels: Some(vec![level]), ..options(tuning) }
    }

    #[test]
    fn the_grid_is_that_of_the_paper() {
        for (level, configurations) in [(Level::None, 20), (Level::Edge, 20), (Level::Node, 40)] {
            let experiment = Experiment::new(Name::Table2, &only(Method::Progap, level, Tuning::Grid));
            let experiment = experiment.expect("an experiment");
            assert_eq!(experiment.cells.len(), 1);
            assert_eq!(experiment.cells[0].candidates.len(), configurations, "{level}");
            assert_eq!(experiment.jobs().expect("jobs").len(), 10 * configurations);
        }
        let node = only(Method::Progap, Level::Node, Tuning::Grid);
        let fixed = Options { changes: vec![("epochs".into(), json!(3))], ..node };
        let experiment = Experiment::new(Name::Table2, &fixed).expect("an experiment");
        assert_eq!(experiment.cells[0].candidates.len(), 20, "what is fixed is not tuned");
    }

    #[test]
    fn experiments_have_the_cells_of_the_paper() {
        let count = |name| Experiment::new(name, &options(Tuning::None)).expect("an experiment").cells.len();
        let levels: usize = crate::method::catalogue::methods().map(|entry| entry.levels.len()).sum();
        assert_eq!(count(Name::Table2), levels);
        assert_eq!(count(Name::Tradeoff), 2 * 2 * 5 + 1);
        assert_eq!(count(Name::Depth), 2 * 3 * 5);
        assert_eq!(count(Name::Convergence), 2);
        assert_eq!(count(Name::Layerwise), 3 * 2);
        assert!(count(Name::Ablation) >= 2 + 4);
    }

    #[test]
    fn both_presets_stand_side_by_side_where_they_differ() {
        let methods = Some(vec![Method::Progap, Method::Mlp]);
        let both = Options { preset: Preset::Both, methods, ..options(Tuning::None) };
        let both = Options { levels: Some(vec![Level::Edge]), epsilons: Some(vec![1.0, 2.0]), ..both };
        let cells = Experiment::new(Name::Tradeoff, &both).expect("an experiment").cells;
        let preset = |cell: &Cell| cell.variant[0].1.clone();
        let of = |method| cells.iter().filter(move |c| c.method == method && c.level == Level::Edge);
        assert_eq!(
            of(Method::Progap).map(preset).collect::<Vec<_>>(),
            ["default", "paper", "default", "paper"]
        );
        let progap: Vec<&Cell> = of(Method::Progap).collect();
        assert_ne!(progap[0].candidates, progap[1].candidates);
        assert_eq!(
            of(Method::Mlp).map(preset).collect::<Vec<_>>(),
            ["default"],
            "the same with both presets"
        );
        let refused = Experiment::new(Name::Depth, &both).expect_err("refused").to_string();
        assert!(refused.contains("only table2 and tradeoff"), "{refused}");
    }

    #[test]
    fn a_perceptron_at_edge_level_is_one_cell_at_epsilon_zero() {
        let options = only(Method::Mlp, Level::Edge, Tuning::None);
        let options = Options { epsilons: Some(vec![0.5, 1.0, 2.0]), ..options };
        let experiment = Experiment::new(Name::Tradeoff, &options).expect("an experiment");
        let edge: Vec<&Cell> = experiment.cells.iter().filter(|cell| cell.level == Level::Edge).collect();
        assert_eq!((edge.len(), edge[0].epsilon), (1, Some(0.0)));
    }

    #[test]
    fn runs_of_different_cells_are_done_once() {
        let experiment = Experiment::new(Name::Ablation, &options(Tuning::None)).expect("an experiment");
        let jobs = experiment.jobs().expect("jobs");
        let keys: HashSet<String> = jobs.iter().map(Job::key).collect();
        assert_eq!(keys.len(), jobs.len());
        assert!(jobs.windows(2).all(|pair| pair[0].split <= pair[1].split), "splits one after the other");
    }

    #[test]
    fn ablation_says_what_a_method_does_not_have() {
        let ablation = |method| {
            let options = only(method, Level::Node, Tuning::None);
            let two = Options { data: [options.data.clone(), options.data.clone()].concat(), ..options };
            Experiment::new(Name::Ablation, &two).expect("an experiment").left_out
        };
        assert_eq!(ablation(Method::Progap), [""; 0]);
        let left_out = ablation(Method::DpGnn);
        assert_eq!(left_out.len(), 1, "{left_out:?}");
        let (what, why) = ("degrees bounded by capped weights, for dp-gnn at level node: ", "`bounding`");
        assert!(left_out[0].starts_with(what) && left_out[0].contains(why), "{left_out:?}");
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        let said = |name, options: &Options| Experiment::new(name, options).expect_err("refused").to_string();
        let usual = options(Tuning::None);
        let none = Options { data: vec![], ..usual.clone() };
        assert!(said(Name::Table2, &none).contains("name a data set"));
        let empty = Options { depths: Some(vec![]), ..options(Tuning::Grid) };
        assert!(said(Name::Table2, &empty).contains("depths is empty"));
        let several = Options { depths: Some(vec![1, 2]), ..usual.clone() };
        assert!(said(Name::Table2, &several).contains("`tuning grid`"));
        let unknown = Options { changes: vec![("depht".into(), json!(1))], ..usual.clone() };
        assert!(said(Name::Table2, &unknown).contains("no setting \"depht\""));
        let level = Options { changes: vec![("level".into(), json!("edge"))], ..usual.clone() };
        assert!(said(Name::Table2, &level).contains("`levels`"));
        let vain = Options { changes: vec![("encoder-layers".into(), json!(1))], ..usual.clone() };
        assert!(
            said(Name::Depth, &vain).contains("`encoder_layers` has no effect: it belongs to `method gap`")
        );
        assert!(Experiment::new(Name::Table2, &vain).is_ok(), "gap is among the methods");
        let budget = Options { epsilons: Some(vec![-1.0]), ..usual };
        assert!(said(Name::Table2, &budget).contains("epsilon -1"));
    }

    #[test]
    fn private_tuning_draws_settings_and_numbers_of_runs() {
        let options = only(Method::Progap, Level::Edge, Tuning::Private);
        let experiment = Experiment::new(Name::Table2, &options).expect("an experiment");
        let numbers: Vec<usize> = (1..=10)
            .map(|split| experiment.cell_jobs(&experiment.cells[0], split).expect("jobs").len())
            .collect();
        assert!(numbers.iter().any(|n| *n != numbers[0]), "{numbers:?}");
        assert_eq!(experiment.jobs().expect("jobs").len(), numbers.iter().sum::<usize>());
    }
}
