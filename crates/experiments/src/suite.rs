//! An experiment: cells, and the runs they consist of.

use std::collections::HashSet;

use super::cells::Maker;
use super::grid::refuse_changes_in_vain;
use super::options::{Name, Options};
use super::tuning::{Tuning, trials};
use super::{DataSpec, Job};
use progap::method::catalogue::tunes_privately;
use progap::settings::{Draft, Level, MethodKind, Metric};
use progap::{Error, Remedy, Result};

/// One figure of an experiment: several settings to choose from, each run several times.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The data set.
    pub data: DataSpec,
    /// The method.
    pub method: MethodKind,
    /// The level.
    pub level: Level,
    /// The budget; none at level none, 0 where no edge is touched at edge level.
    pub epsilon: Option<f64>,
    /// Names and values that tell it from other cells.
    pub variant: Vec<(String, String)>,
    /// The settings to choose from, without seeds.
    pub candidates: Vec<Draft>,
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
impl Experiment {
    /// The cells of an experiment of the paper.
    ///
    /// # Errors
    /// Options that contradict each other, or leave nothing to run.
    pub fn new(name: Name, options: &Options) -> Result<Experiment> {
        let maker = Maker { name, options };
        maker.check()?;
        let mut cells = Vec::new();
        let mut left_out = maker.left_out();
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
            let chooses = |settings: &&mut Draft| settings.without_effect("metric").is_none();
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
            return Err(Error::contradiction(
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
        let job = |settings: &Draft, seed: u64| {
            let mut settings = settings.clone();
            settings.seed = Some(seed);
            Job { data: cell.data.clone(), split, settings }
        };
        Ok(match self.tuning {
            Tuning::Private => {
                // A record of dp-gnn moves many predictions, and edge-rand has no delta: their choice is not accounted
                // for.
                let method = cell.candidates.first().map(|settings| settings.method);
                if let Some(method) = method.filter(|method| !tunes_privately(*method)) {
                    return Err(Error::unsuitable(format!(
                        "private tuning is not there for the method {method}"
                    ))
                    .remedy(Remedy::words("leave that method out"))
                    .remedy(Remedy::set("tuning", "none")));
                }
                let trials = trials(cell.candidates.len(), split)?;
                trials.iter().map(|trial| job(&cell.candidates[trial.candidate], trial.seed)).collect()
            }
            Tuning::None | Tuning::Grid => {
                cell.candidates.iter().map(|settings| job(settings, split)).collect()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::Preset;
    use progap::ErrorKind;

    use super::*;

    pub(crate) fn options(tuning: Tuning) -> Options {
        let data = DataSpec { name: "demo".into(), content: json!("demo"), place: Value::Null };
        Options { tuning, ..Options::new(vec![data], 10) }
    }

    fn only(method: MethodKind, level: Level, tuning: Tuning) -> Options {
        Options { methods: Some(vec![method]), levels: Some(vec![level]), ..options(tuning) }
    }

    #[test]
    fn the_grid_is_that_of_the_paper() {
        for (level, configurations) in [(Level::None, 20), (Level::Edge, 20), (Level::Node, 40)] {
            let experiment = Experiment::new(Name::Table2, &only(MethodKind::Progap, level, Tuning::Grid));
            let experiment = experiment.expect("an experiment");
            assert_eq!(experiment.cells.len(), 1);
            assert_eq!(experiment.cells[0].candidates.len(), configurations, "{level}");
            assert_eq!(experiment.jobs().expect("jobs").len(), 10 * configurations);
        }
        let node = only(MethodKind::Progap, Level::Node, Tuning::Grid);
        let fixed = Options { changes: vec![("epochs".into(), json!(3))], ..node };
        let experiment = Experiment::new(Name::Table2, &fixed).expect("an experiment");
        assert_eq!(experiment.cells[0].candidates.len(), 20, "what is fixed is not tuned");
    }

    #[test]
    fn experiments_have_the_cells_of_the_paper() {
        let count = |name| Experiment::new(name, &options(Tuning::None)).expect("an experiment").cells.len();
        let levels: usize = progap::method::catalogue::methods().map(|entry| entry.levels.len()).sum();
        assert_eq!(count(Name::Table2), levels);
        // Dotted, the first method of the levels without privacy: it is the same.
        assert_eq!(count(Name::Tradeoff), 4 * 5 + 4 * 5 + 1);
        assert_eq!(count(Name::Depth), 2 * 3 * 5);
        assert_eq!(count(Name::Convergence), 2);
        assert_eq!(count(Name::Layerwise), 3 * 2);
        assert!(count(Name::Ablation) >= 2 + 4);
    }

    /// The method that `train` takes stands beside the published ones, but where only published settings are shown.
    #[test]
    fn the_default_method_is_compared() {
        for name in [Name::Table2, Name::Tradeoff] {
            let of = |preset| Experiment::new(name, &Options { preset, ..options(Tuning::None) });
            let has_views = |experiment: &Experiment| {
                experiment
                    .cells
                    .iter()
                    .any(|cell| (cell.method, cell.level) == (MethodKind::ProgapViews, Level::Edge))
            };
            for preset in [Preset::Default, Preset::Both] {
                assert!(has_views(&of(preset).expect("an experiment")), "{name:?} {preset:?}");
            }
            let published = of(Preset::Paper).expect("an experiment");
            assert!(!has_views(&published));
            assert!(published.left_out[0].contains("progap-labels: it has no published settings"));
        }
    }

    /// Accuracy against the share of labels: the recommended method, ProGAP as published, and the features alone, for
    /// each share.
    #[test]
    fn every_share_of_labels_has_its_cells() {
        let data = |share: f64| DataSpec { name: "demo".into(), content: json!(share), place: Value::Null };
        let shares = vec![0.01, 0.75];
        let specs: Vec<DataSpec> = shares.iter().map(|&share| data(share)).collect();
        let levels = Some(vec![Level::Edge, Level::Node]);
        let asked = Options { levels, shares, ..Options::new(specs, 2) };
        let experiment = Experiment::new(Name::Labels, &asked).expect("an experiment");
        let told = |cell: &Cell| {
            let variant: Vec<&str> = cell.variant.iter().map(|(_, value)| value.as_str()).collect();
            format!("{} {} {}", cell.level, cell.method, variant.join(" "))
        };
        let expected = ["1 %", "75 %"].map(|share| {
            [
                format!("edge progap-views {share} default"),
                format!("edge progap-labels {share} default"),
                format!("edge progap {share} paper"),
                format!("edge mlp {share} default"),
                format!("node progap-views {share} default"),
                format!("node progap-labels {share} default"),
                format!("node progap {share} paper"),
                format!("node mlp {share} default"),
            ]
        });
        assert_eq!(experiment.cells.iter().map(told).collect::<Vec<_>>(), expected.concat());
        let views = &experiment.cells[0].candidates[0];
        assert!(views.is_open("depth"), "the depth follows from the share");
        assert!(Experiment::new(Name::Labels, &options(Tuning::None)).is_err(), "without shares");
    }

    /// Settings that a method does not read are not tuned.
    #[test]
    fn a_grid_has_no_point_twice() {
        let options = only(MethodKind::ProgapViews, Level::Edge, Tuning::Grid);
        let experiment = Experiment::new(Name::Table2, &options).expect("an experiment");
        assert_eq!(experiment.cells[0].candidates.len(), 5, "depths, and nothing else");
    }

    #[test]
    fn both_presets_stand_side_by_side_where_they_differ() {
        let methods = Some(vec![MethodKind::Progap, MethodKind::Mlp]);
        let both = Options { preset: Preset::Both, methods, ..options(Tuning::None) };
        let both = Options { levels: Some(vec![Level::Edge]), epsilons: Some(vec![1.0, 2.0]), ..both };
        let cells = Experiment::new(Name::Tradeoff, &both).expect("an experiment").cells;
        let preset = |cell: &Cell| cell.variant[0].1.clone();
        let of = |method| cells.iter().filter(move |c| c.method == method && c.level == Level::Edge);
        assert_eq!(
            of(MethodKind::Progap).map(preset).collect::<Vec<_>>(),
            ["default", "paper", "default", "paper"]
        );
        let progap: Vec<&Cell> = of(MethodKind::Progap).collect();
        assert_ne!(progap[0].candidates, progap[1].candidates);
        assert_eq!(
            of(MethodKind::Mlp).map(preset).collect::<Vec<_>>(),
            ["default"],
            "the same with both presets"
        );
        let refused = Experiment::new(Name::Depth, &both).expect_err("refused").to_string();
        assert!(refused.contains("only table2 and tradeoff"), "{refused}");
    }

    #[test]
    fn a_perceptron_at_edge_level_is_one_cell_at_epsilon_zero() {
        let options = only(MethodKind::Mlp, Level::Edge, Tuning::None);
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
        assert_eq!(ablation(MethodKind::ProgapLabels), [""; 0]);
        let left_out = ablation(MethodKind::DpGnn);
        assert_eq!(left_out.len(), 1, "{left_out:?}");
        let (what, why) = ("degrees bounded by capped weights, for dp-gnn at level node: ", "`bounding`");
        assert!(left_out[0].starts_with(what) && left_out[0].contains(why), "{left_out:?}");
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        let refused = |name, options: &Options| Experiment::new(name, options).expect_err("refused");
        let said = |name, options: &Options| refused(name, options).to_string();
        let usual = options(Tuning::None);
        let none = Options { data: vec![], ..usual.clone() };
        assert!(said(Name::Table2, &none).contains("name a data set"));
        let empty = Options { depths: Some(vec![]), ..options(Tuning::Grid) };
        assert!(said(Name::Table2, &empty).contains("depths is empty"));
        let several = Options { depths: Some(vec![1, 2]), ..usual.clone() };
        assert!(refused(Name::Table2, &several).remedies().contains(&Remedy::set("tuning", "grid")));
        let unknown = Options { changes: vec![("depht".into(), json!(1))], ..usual.clone() };
        assert!(said(Name::Table2, &unknown).contains("no setting \"depht\""));
        let level = Options { changes: vec![("level".into(), json!("edge"))], ..usual.clone() };
        assert_eq!(refused(Name::Table2, &level).remedies(), [Remedy::Give("levels")]);
        let vain = Options { changes: vec![("encoder-layers".into(), json!(1))], ..usual.clone() };
        assert!(matches!(
            refused(Name::Depth, &vain).kind(),
            ErrorKind::NoEffect { name: "encoder_layers", .. }
        ));
        assert!(Experiment::new(Name::Table2, &vain).is_ok(), "gap is among the methods");
        let budget = Options { epsilons: Some(vec![-1.0]), ..usual };
        assert!(said(Name::Table2, &budget).contains("epsilon -1"));
    }

    #[test]
    fn private_tuning_draws_settings_and_numbers_of_runs() {
        let options = only(MethodKind::ProgapLabels, Level::Edge, Tuning::Private);
        let experiment = Experiment::new(Name::Table2, &options).expect("an experiment");
        let numbers: Vec<usize> = (1..=10)
            .map(|split| experiment.cell_jobs(&experiment.cells[0], split).expect("jobs").len())
            .collect();
        assert!(numbers.iter().any(|n| *n != numbers[0]), "{numbers:?}");
        assert_eq!(experiment.jobs().expect("jobs").len(), numbers.iter().sum::<usize>());
    }
}
