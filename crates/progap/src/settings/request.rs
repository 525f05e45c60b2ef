//! Requests: some settings by name, everything else by default. One place turns that into settings that work.

use serde_json::Value;

use super::declaration::Declaration;
use super::{
    Bounding, ClassWeights, Draft, FeatureLearning, Level, MethodKind, Metric, Settings, ValidSettings,
};
use crate::method::catalogue::{OF_BATCHES, PUBLISHED, RECOMMENDED, default_level, entry, method_for};
use crate::{Error, Result};

/// A setting by name, and its new value.
pub type Change = (String, Value);

/// Settings asked for by name, over the defaults of a method and a level, over the published settings, or over settings
/// from a file. What works is decided in [`Request::settings`], and nowhere else.
///
/// ```
/// use progap::settings::{Request, Level};
///
/// let settings = Request::default().with("level", "node").with("clip", 0.5).settings()?;
/// assert_eq!((settings.level, settings.clip, settings.epsilon), (Level::Node, 0.5, Some(8.0)));
///
/// let ignored = Request::default().with("clip", 0.5).settings().unwrap_err();
/// assert_eq!(ignored.to_string(), "`clip` has no effect: it belongs to level node; leave it out");
/// # Ok::<(), progap::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    start: Start,
    changes: Vec<Change>,
    /// Whether the unit and the rule for delta are the published ones where they are not asked for, as in all
    /// experiments.
    published_guarantee: bool,
    /// Whether a budget may be asked for where nothing costs.
    any_cost: bool,
}

#[derive(Debug, Clone, PartialEq, Default)]
enum Start {
    /// The defaults of the method at the level.
    #[default]
    Usual,
    /// The published settings.
    Published,
    /// These.
    From(Box<Draft>),
}

impl Request {
    /// Starts from the published settings, see [`Settings::paper`].
    pub fn published() -> Request {
        Request { start: Start::Published, ..Request::default() }
    }

    /// Also asks for this; what is asked for twice is as it was asked for last.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Request {
        self.changes.push((name.into(), value.into()));
        self
    }

    /// The same where a budget has to be given, whether anything costs or not: to be accounted for. Elsewhere a budget
    /// that nothing is asked for is refused, as every setting that decides nothing.
    #[must_use]
    pub fn at_any_cost(self) -> Request {
        Request { any_cost: true, ..self }
    }

    /// The same under the guarantee that experiments compare by, see [`Settings::with_published_guarantee`].
    #[must_use]
    pub fn with_published_guarantee(self) -> Request {
        Request { published_guarantee: true, ..self }
    }

    /// Also asks for a level; for that of the method or of the file if `None`.
    #[must_use]
    fn at(self, level: Level) -> Request {
        self.with("level", level.name())
    }

    /// The settings that a file lists. As many files list everything, a setting that decides nothing may stand there
    /// with its default or its published value, as if nobody had asked for it.
    ///
    /// ```
    /// use progap::settings::Request;
    ///
    /// let list = |clip: f64| vec![("level".into(), "edge".into()), ("clip".into(), clip.into())];
    /// assert!(Request::listed(list(1.0))?.settings().is_ok());
    /// assert!(Request::listed(list(0.5)).is_err());
    /// # Ok::<(), progap::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Request::settings`].
    pub fn listed(changes: Vec<Change>) -> Result<Request> {
        let mut request = Request { changes, ..Request::default() };
        // A list of everything is that of a run: then nothing is left to sizes or to the graph.
        let values: serde_json::Map<String, Value> = request.changes.iter().cloned().collect();
        if let Ok(all) = serde_json::from_value::<Settings>(values.into()) {
            request = Request::from(all);
        }
        let settings = request.draft()?;
        settings.check()?;
        if let Some((setting, why)) = settings.chosen_in_vain() {
            return Err(Error::no_effect(setting.name, why));
        }
        request.changes.retain(|(name, _)| {
            Declaration::find(name).is_ok_and(|setting| settings.without_effect(setting.name).is_none())
        });
        Ok(request)
    }

    /// The names of what was asked for, as in config.toml.
    pub fn names(&self) -> Vec<&'static str> {
        let found = self.changes.iter().filter_map(|(name, _)| Declaration::find(name).ok());
        found.map(|declaration| declaration.name).collect()
    }

    /// The level that was asked for, or that follows.
    ///
    /// # Errors
    /// Names that no setting has, and values that one cannot have.
    pub fn level(&self) -> Result<Level> {
        Ok(self.draft()?.level)
    }

    /// The settings.
    ///
    /// # Errors
    /// Names that no setting has, values that one cannot have, settings that contradict each other, and settings that
    /// were asked for and decide nothing.
    pub fn settings(&self) -> Result<Draft> {
        let settings = self.draft()?;
        for name in self.names() {
            // At a private level alone: without one there is nothing that it could be a budget of.
            let asked = self.any_cost && settings.level != Level::None;
            if asked && Declaration::find(name)?.about.budget {
                continue;
            }
            if let Some(why) = settings.without_effect(name) {
                return Err(Error::no_effect(name, why));
            }
        }
        settings.check()?;
        Ok(settings)
    }

    /// As [`Request::settings`], but what decides nothing is as if nobody had asked for it: one run stands for all that
    /// are the same.
    ///
    /// # Errors
    /// As [`Request::settings`], but for what decides nothing.
    pub fn settings_where_they_matter(&self) -> Result<Draft> {
        let all = self.draft()?;
        let decided = [("method", all.method.name()), ("level", all.level.name())];
        let mut changes: Vec<Change> = decided.map(|(name, value)| (name.into(), value.into())).to_vec();
        for (name, value) in &self.changes {
            let declaration = Declaration::find(name)?;
            // A method that costs nothing is compared with others at each budget, and stored runs are found by it.
            let compared = declaration.about.budget && all.level != Level::None;
            let decides = compared || all.without_effect(declaration.name).is_none();
            if decides && !["method", "level"].contains(&declaration.name) {
                changes.push((name.clone(), value.clone()));
            }
        }
        let draft = Request { changes, ..self.clone() }.draft()?;
        draft.check()?;
        Ok(draft)
    }

    /// The settings, whether they work or not.
    fn draft(&self) -> Result<Draft> {
        let mut first = Settings::plain(Level::Edge);
        let mut asked = |wanted: &str| -> Result<bool> {
            let mut found = false;
            for (name, value) in &self.changes {
                let declaration = Declaration::find(name)?;
                if declaration.name == wanted {
                    declaration.set(&mut first, value.clone())?;
                    found = true;
                }
            }
            Ok(found)
        };
        let (has_method, has_level) = (asked("method")?, asked("level")?);
        let method = has_method.then_some(first.method);
        let level = has_level.then_some(first.level);
        let names = self.names();
        let usual = |start: fn(MethodKind, Level) -> Settings| {
            let unnamed = || match self.start {
                Start::Published => PUBLISHED,
                _ => method_for(&names),
            };
            let method = method.unwrap_or_else(unnamed);
            start(method, level.unwrap_or_else(|| default_level(method)))
        };
        let mut settings = match &self.start {
            Start::Usual => usual(Settings::of).unit_by_graph(),
            Start::Published => usual(Settings::paper),
            Start::From(settings) => settings.moved_to(method, level),
        };
        if self.published_guarantee {
            settings = settings.with_published_guarantee();
        }
        for (name, value) in &self.changes {
            let declaration = Declaration::find(name)?;
            if !["method", "level"].contains(&declaration.name) {
                declaration.set(&mut settings, value.clone())?;
            }
            if declaration.name == "undirected" {
                settings.unit_from_data = false;
            }
        }
        let given = self.names();
        // Where rare classes are weighed up, selection should weigh them too.
        if given.contains(&"class_weights") && !given.contains(&"metric") {
            let balanced = settings.class_weights == ClassWeights::Balanced;
            let by_accuracy = settings.metric == Metric::Accuracy;
            if balanced && by_accuracy && settings.without_effect("metric").is_none() {
                settings.metric = Metric::BalancedAccuracy;
            }
        }
        let mut draft = match &self.start {
            // What can follow from facts depends on what was given, too.
            Start::Usual => Draft::following(settings),
            Start::From(before) if before.method == settings.method => before.with(settings),
            Start::Published | Start::From(_) => settings.into(),
        };
        given.iter().for_each(|name| draft.close(name));
        // Weights of receivers divide a sender's whole influence: bounded in another way it sends labels alike to all.
        if draft.is_open("feature_learning") && draft.bounding != Bounding::Weight {
            draft.feature_learning = FeatureLearning::Stages;
            draft.close("feature_learning");
        }
        if draft.names_a_network(&given) {
            draft.close("feature_learning");
        }
        Ok(draft)
    }
}

impl Settings {
    /// Whether a setting was given that decides something where features are learnt in batches, and nothing else.
    fn names_a_network(&self, given: &[&str]) -> bool {
        self.level == Level::Node && given.iter().any(|name| OF_BATCHES.contains(name))
    }

    /// The same for another method or level: what was chosen is kept as far as it makes sense there.
    fn moved_to(&self, method: Option<MethodKind>, level: Option<Level>) -> Settings {
        let mut settings = self.clone();
        // A level that the method does not have comes with its own.
        let lacks = |level: Level| method.is_none() && !entry(settings.method).levels.contains(&level);
        let method = level.filter(|&level| lacks(level)).map(|_| RECOMMENDED).or(method);
        if let Some(method) = method.filter(|&method| method != settings.method) {
            settings = Settings {
                seed: settings.seed,
                epsilon: settings.epsilon,
                delta: settings.delta.filter(|_| method.has_delta()),
                undirected: settings.undirected,
                unit_from_data: settings.unit_from_data,
                delta_rule: settings.delta_rule,
                ..Settings::of(method, settings.level)
            };
        }
        if let Some(level) = level.filter(|&level| level != settings.level) {
            let fresh = Settings::of(settings.method, level);
            settings = Settings {
                level,
                undirected: false,
                unit_from_data: level == Level::Edge,
                epsilon: fresh.epsilon,
                epochs: fresh.epochs,
                selection: fresh.selection,
                calibration: if level == Level::Node { fresh.calibration } else { settings.calibration },
                ..settings
            };
            for declaration in Settings::declarations() {
                if settings.without_effect(declaration.name).is_some() {
                    let kept = declaration.set(&mut settings, declaration.get(&fresh));
                    debug_assert!(kept.is_ok(), "a value of the setting itself");
                }
            }
        }
        settings
    }
}

impl From<Settings> for Request {
    fn from(settings: Settings) -> Request {
        Draft::from(settings).into()
    }
}

impl From<&Settings> for Request {
    fn from(settings: &Settings) -> Request {
        settings.clone().into()
    }
}

impl From<Draft> for Request {
    fn from(draft: Draft) -> Request {
        Request { start: Start::From(Box::new(draft)), ..Request::default() }
    }
}

impl From<&Draft> for Request {
    fn from(draft: &Draft) -> Request {
        draft.clone().into()
    }
}

impl From<ValidSettings> for Request {
    fn from(settings: ValidSettings) -> Request {
        settings.into_settings().into()
    }
}

impl From<&ValidSettings> for Request {
    fn from(settings: &ValidSettings) -> Request {
        (**settings).clone().into()
    }
}

/// Protect every edge: from the release an observer can hardly tell whether any one edge was in the data.
///
/// ```
/// use progap::{Edge, MethodKind};
///
/// let settings = Edge::epsilon(1.0).method(MethodKind::Gap).depth(3).settings()?;
/// assert_eq!((settings.epsilon, settings.depth), (Some(1.0), 3));
/// # Ok::<(), progap::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Edge(pub(super) Request);

/// Protect every node's record: its features, its label and its own list of receivers.
///
/// ```
/// use progap::{Bounding, Node};
///
/// let settings = Node::epsilon(8.0).clip(0.5).bounding(Bounding::Sample).settings()?;
/// assert_eq!((settings.epsilon, settings.clip), (Some(8.0), 0.5));
/// # Ok::<(), progap::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Node(pub(super) Request);

/// Protect nothing: plain training, for comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Unprotected(pub(super) Request);

impl Edge {
    /// With this budget, and everything else by default. There is no other way to begin, so it may also be of a run
    /// that uses no edge.
    pub fn epsilon(epsilon: f64) -> Edge {
        Edge(Request::default().at(Level::Edge).with("epsilon", epsilon).at_any_cost())
    }

    /// Protects both directions between two nodes together, whatever the graph.
    #[must_use]
    pub fn undirected(self) -> Edge {
        Edge(self.0.with("undirected", true))
    }

    /// Protects one direction of an edge, also where every edge has an edge back.
    #[must_use]
    pub fn directed(self) -> Edge {
        Edge(self.0.with("undirected", false))
    }
}

impl Node {
    /// With this budget, and everything else by default.
    pub fn epsilon(epsilon: f64) -> Node {
        Node(Request::default().at(Level::Node).with("epsilon", epsilon))
    }
}

impl Unprotected {
    /// With everything by default.
    #[allow(clippy::new_without_default, reason = "nothing protected must be asked for by name")]
    pub fn new() -> Unprotected {
        Unprotected(Request::default().at(Level::None))
    }
}

macro_rules! requests {
    ($($name:ident)*) => {
        $(impl $name {
            /// The settings that this asks for.
            ///
            /// # Errors
            /// As [`Request::settings`].
            pub fn settings(&self) -> Result<Draft> {
                self.0.settings()
            }
        }

        impl From<$name> for Request {
            fn from(asked: $name) -> Request {
                asked.0
            }
        })*
    };
}

requests!(Edge Node Unprotected);
