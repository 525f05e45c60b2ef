//! From what is asked of an experiment to its cells: the settings that stand side by side.

use serde_json::{Value, json};

use super::DataSpec;
use super::grid::{Change, changed, changed_where_it_matters, combinations, setting};
use super::options::{Name, Options, Preset};
use super::published::with_published_sizes;
use super::suite::Cell;
use super::tuning::Tuning;
use progap::method::catalogue::{entry, is_published};
use progap::settings::{Draft, Level, MethodKind, Settings};
use progap::{Error, Remedy, Result};

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

/// The label of the cells of [`Name::Labels`]: the share of labelled nodes, in percent.
pub const LABELS: &str = "labels";

/// The label of cells where both presets stand side by side.
pub const PRESET: &str = "preset";

/// The first row of `ablation`.
const DEFAULTS: &str = "defaults";

/// Makes cells.
pub(super) struct Maker<'o> {
    pub name: Name,
    pub options: &'o Options,
}

impl Maker<'_> {
    pub(super) fn check(&self) -> Result<()> {
        if self.options.data.is_empty() {
            return Err(Error::contradiction("there is nothing to run: name a data set"));
        }
        if (self.name == Name::Labels) != (self.options.shares.len() == self.options.data.len()) {
            return Err(Error::contradiction(
                "the experiment labels, and no other, has a share for each data set",
            ));
        }
        if self.options.preset == Preset::Both && !matches!(self.name, Name::Table2 | Name::Tradeoff) {
            return Err(Error::contradiction("only table2 and tradeoff show both presets side by side"));
        }
        let listed =
            |list| Error::contradiction("it is chosen by a list of its own").remedy(Remedy::Give(list));
        for (name, _) in &self.options.changes {
            match setting(name)?.name {
                "method" => return Err(listed("methods")),
                "level" => return Err(listed("levels")),
                "epsilon" => return Err(listed("epsilons")),
                "depth" => return Err(listed("depths")),
                _ => {}
            }
        }
        let empty =
            |what: &str| Error::unsuitable(format!("the list of {what} is empty: the grid has no point"));
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

    fn methods(&self) -> Vec<MethodKind> {
        let usual = || match self.name {
            Name::Table2 => MethodKind::ALL.to_vec(),
            Name::Tradeoff => {
                vec![MethodKind::ProgapViews, MethodKind::ProgapLabels, MethodKind::Progap, MethodKind::Gap]
            }
            Name::Labels => {
                vec![MethodKind::ProgapViews, MethodKind::ProgapLabels, MethodKind::Progap, MethodKind::Mlp]
            }
            _ if self.options.preset == Preset::Paper => vec![MethodKind::Progap],
            _ => vec![MethodKind::ProgapLabels],
        };
        let unpublished = self.unpublished();
        let asked = self.options.methods.clone();
        asked.unwrap_or_else(|| usual().into_iter().filter(|method| !unpublished.contains(method)).collect())
    }

    /// The methods without published settings, where nothing but published settings is shown.
    fn unpublished(&self) -> Vec<MethodKind> {
        let only_published =
            self.options.preset == Preset::Paper && matches!(self.name, Name::Table2 | Name::Tradeoff);
        let unpublished = |method: &MethodKind| only_published && !is_published(*method);
        MethodKind::ALL.iter().copied().filter(unpublished).collect()
    }

    /// What an experiment has in general and this one leaves out.
    pub(super) fn left_out(&self) -> Vec<String> {
        let unasked = self.unpublished().into_iter().filter(|_| self.options.methods.is_none());
        unasked
            .map(|method| {
                format!("{method}: it has no published settings, and is there where it is asked for")
            })
            .collect()
    }

    fn levels(&self) -> Vec<Level> {
        let usual = || match self.name {
            Name::Table2 | Name::Layerwise => vec![Level::None, Level::Edge, Level::Node],
            Name::Labels => vec![Level::Edge],
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

    /// The variants of a cell of a method at a level: names and values, settings, and the depth where it is fixed.
    fn variants(&self, data: &DataSpec, method: MethodKind, level: Level) -> Vec<Variant> {
        let depth = |depth: usize| ("depth".to_string(), depth.to_string());
        let at_depth = |k| Variant { labels: vec![depth(k)], depth: Some(k), ..self.plain_variant() };
        match self.name {
            Name::Tradeoff | Name::Table2 if self.options.preset == Preset::Both => {
                let labelled = |name: &str, paper| {
                    let labels = vec![(PRESET.to_string(), name.to_string())];
                    Variant { labels, paper, ..Variant::default() }
                };
                let paper = is_published(method).then(|| labelled("paper", true));
                std::iter::once(labelled("default", false)).chain(paper).collect()
            }
            Name::Table2 | Name::Tradeoff | Name::Custom => vec![self.plain_variant()],
            Name::Labels => {
                let place = self.options.data.iter().position(|other| other == data);
                let share =
                    place.and_then(|place| self.options.shares.get(place)).copied().unwrap_or(f64::NAN);
                let paper = method == MethodKind::Progap;
                vec![Variant {
                    labels: vec![
                        (LABELS.into(), format!("{} %", (1e4 * share).round() / 100.0)),
                        (PRESET.into(), if paper { "paper" } else { "default" }.into()),
                    ],
                    paper,
                    ..Variant::default()
                }]
            }
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

    pub(super) fn add_data_set(
        &self,
        data: &DataSpec,
        cells: &mut Vec<Cell>,
        left_out: &mut Vec<String>,
    ) -> Result<()> {
        let mut defaults: Vec<Draft> = Vec::new();
        for level in self.levels() {
            for method in self.methods().into_iter().filter(|&method| entry(method).levels.contains(&level)) {
                for epsilon in self.epsilons(level) {
                    for variant in self.variants(data, method, level) {
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
            // The dotted lines: what the first method of each level reaches without privacy.
            let first = |level: Level| {
                let has = |method: &MethodKind, level| entry(*method).levels.contains(&level);
                self.methods().into_iter().find(|method| has(method, level) && has(method, Level::None))
            };
            let mut open: Vec<MethodKind> = self.levels().into_iter().filter_map(first).collect();
            open.dedup();
            for method in open {
                let variant = self.variants(data, method, Level::None).into_iter().next().unwrap_or_default();
                cells.push(self.cell(data, method, Level::None, None, variant)?);
            }
        }
        Ok(())
    }

    fn cell(
        &self,
        data: &DataSpec,
        method: MethodKind,
        level: Level,
        epsilon: Option<f64>,
        variant: Variant,
    ) -> Result<Cell> {
        let usual = if variant.paper { Settings::paper(method, level) } else { Settings::of(method, level) };
        // Figures stand beside published ones, which are for directed edges.
        let usual = usual.with_published_guarantee();
        let usual = if variant.paper { usual.into() } else { Draft::following(usual) };
        let usual = if level == Level::Node { with_published_sizes(usual, &data.name) } else { usual };
        let mut base = changed_where_it_matters(&usual, &self.options.changes)?;
        base.epsilon = epsilon;
        base = changed(&base, &variant.changes)?;
        if let Some(depth) = variant.depth {
            base = changed(&base, &[("depth".to_string(), json!(depth))])?;
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
    fn candidates(&self, base: &Draft, depth_is_fixed: bool) -> Result<Vec<Draft>> {
        let has_depth = base.depth > 0;
        if self.options.tuning == Tuning::None {
            let mut settings = base.clone();
            match self.options.depths.as_deref() {
                _ if depth_is_fixed || !has_depth => {}
                None => {}
                Some([depth]) => settings = changed(base, &[("depth".to_string(), json!(depth))])?,
                Some(_) => {
                    return Err(Error::contradiction("several depths need a way to choose one")
                        .remedy(Remedy::set("tuning", "grid"))
                        .remedy(Remedy::set("tuning", "private")));
                }
            }
            settings.checked()?;
            return Ok(vec![settings]);
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
        // Settings that the user fixed are not tuned.
        let fixed: Vec<&str> =
            self.options.changes.iter().map(|(name, _)| Ok(setting(name)?.name)).collect::<Result<_>>()?;
        axes.retain(|(name, _)| !fixed.contains(&name.as_str()) && base.without_effect(name).is_none());
        let mut all = Vec::new();
        let mut refusal = None;
        for changes in combinations(&axes) {
            let settings = changed(base, &changes)?;
            // A method need not have every depth of the grid.
            match settings.checked() {
                Ok(_) => all.push(settings),
                Err(error) => refusal = Some(error),
            }
        }
        match (all.is_empty(), refusal) {
            (false, _) => Ok(all),
            (true, Some(error)) => Err(error),
            (true, None) => Err(Error::contradiction("the grid is empty")),
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
    settings.level == Level::Edge && !settings.touches_edges()
}
