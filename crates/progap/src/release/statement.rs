//! The privacy statement: what is guaranteed, to whom, and how to check it.

use progap_graph::{Dataset, Part};
use progap_privacy::noise::Provenance;
use progap_privacy::{Event, Unit, UnitEvent};
use serde::{Deserialize, Serialize};

use super::selection::SelectionRule;
use super::words::{ADD_UP, GROUPS, WHOSE_EDGES, WHOSE_PREDICTION};
use crate::method::{Choice, Fitted};
use crate::plan::{Plan, PublicFacts};
use crate::query::{Noise, Queries, Query};
use crate::settings::{Bounding, DeltaRule, Level, Order, Scaling, Settings, Size};
use crate::units::Epsilons;
use crate::vault::SUBGRAPH_GRADIENT;
use crate::{Error, Result, delta, files, units};

/// One kind of query, and how often it was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mechanism {
    /// The name of the query.
    pub name: String,
    /// Its purpose, in words.
    pub what: String,
    /// Standard deviation of the noise; of a randomised response, that of one answer.
    pub sigma: f64,
    /// L2 sensitivity: how far one record moves the value, one touched term, or the mean of one answer.
    pub sensitivity: f64,
    /// Their ratio.
    pub noise_multiplier: f64,
    /// How often it was asked.
    pub count: u64,
    /// The probability with which a record took part each time.
    pub sampling_rate: f64,
}

/// An epsilon and a delta.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// The epsilon.
    pub epsilon: f64,
    /// The delta.
    pub delta: f64,
}

/// The guarantee of a release, in figures and words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// The version of the format.
    pub version: u64,
    /// The guarantee in plain words.
    pub in_words: String,
    /// Whether there is any.
    pub private: bool,
    /// The unit of one record.
    pub unit: Option<Unit>,
    /// The epsilon; absent without a guarantee.
    pub epsilon: Option<f64>,
    /// The delta; absent without a guarantee.
    pub delta: Option<f64>,
    /// The budget that the noise was planned for, where it comes from a seed, so that nothing is guaranteed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<Budget>,
    /// Edge level: epsilon, at the same delta, for both directions between two nodes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon_undirected: Option<f64>,
    /// Edge level: epsilon, at the same delta, for one direction alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon_directed: Option<f64>,
    /// Which accountant computed it.
    pub accountant: String,
    /// What an edge stands for, as the data's owner named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation: Option<String>,
    /// The queries.
    pub mechanisms: Vec<Mechanism>,
    /// The same as one tree, for accountants.
    pub event: Event,
    /// Where the noise came from.
    pub randomness: Provenance,
    /// By which rule epochs or stages were chosen.
    pub selection: SelectionRule,
    /// The run's decision by validation accuracies, where the settings leave it to the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// The public maximum that the weights of edges were divided by, where edges have weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_bound: Option<f64>,
    /// The facts that are assumed to be public.
    pub public: Vec<String>,
    /// The facts that the guarantee does not cover.
    pub not_covered: Vec<String>,
    /// The number of feature columns.
    pub feature_columns: usize,
    /// The number of nodes.
    pub nodes: usize,
}

impl Statement {
    pub(super) fn new(
        settings: &Settings,
        plan: &Plan,
        fitted: &Fitted,
        dataset: &Dataset,
    ) -> Result<Statement> {
        let (vault, asked) = (&fitted.vault, fitted.vault.asked());
        let event = match plan.unit {
            None => Event::NonPrivate,
            Some(_) => asked.event()?,
        };
        let private = plan.unit.is_some() && vault.provenance().is_private();
        let sizes = PublicFacts::stated([
            (Size::TrainNodes, dataset.split().map_or(0, |split| split.count(Part::Train))),
            (Size::Nodes, dataset.nodes()),
            (Size::Columns, dataset.features().columns()),
            (Size::Classes, dataset.classes()),
        ]);
        let both = match private {
            true => Epsilons::of(asked, plan.unit, (plan.epsilon, plan.delta), settings, sizes)?,
            false => Epsilons::default(),
        };
        let budget = Budget { epsilon: plan.epsilon, delta: plan.delta };
        let weight_bound = dataset.graph().weight_bound().filter(|_| settings.touches_edges());
        let mut statement = Statement {
            version: files::FORMAT,
            in_words: String::new(),
            private,
            unit: plan.unit,
            epsilon: private.then_some(budget.epsilon),
            delta: private.then_some(budget.delta),
            planned: plan.unit.filter(|_| !private).map(|_| budget),
            epsilon_undirected: both.undirected,
            epsilon_directed: both.directed,
            accountant: plan.accountant.into(),
            relation: dataset.relation().map(String::from),
            mechanisms: asked.iter().filter_map(|(query, count)| mechanism(query, count)).collect(),
            event,
            randomness: vault.provenance(),
            selection: SelectionRule::of(settings),
            choice: fitted.choice.clone(),
            weight_bound,
            public: public(settings, plan, sizes, (dataset.labelled(), weight_bound)),
            not_covered: not_covered(settings),
            feature_columns: dataset.features().columns(),
            nodes: dataset.nodes(),
        };
        statement.in_words = statement.words(settings);
        Ok(statement)
    }

    /// The level of the release, which the unit tells.
    pub fn level(&self) -> Level {
        match self.unit {
            None => Level::None,
            Some(Unit::Edge | Unit::EdgeUndirected) => Level::Edge,
            Some(Unit::Node) => Level::Node,
        }
    }

    /// The budget that the noise is for, whether or not it is guaranteed. None without noise.
    pub fn budget(&self) -> Option<Budget> {
        let guaranteed = self.epsilon.zip(self.delta);
        guaranteed.map(|(epsilon, delta)| Budget { epsilon, delta }).or(self.planned)
    }

    /// The meaning of the numbers, in plain words.
    fn words(&self, settings: &Settings) -> String {
        in_words(settings, self)
    }

    /// Whether the words that are there say what the numbers say.
    pub(super) fn has_its_words(&self, settings: &Settings) -> bool {
        self.in_words == self.words(settings)
    }
}

/// Of nodes, the first of what is taken as public.
pub(crate) fn nodes_are_public(settings: &Settings, nodes: usize) -> String {
    let order = match (settings.shuffle, settings.order) {
        (true, _) => ", which were renumbered at random",
        (false, Order::Tested) => ", in the order of their ids",
        (false, Order::Public) => ", and the order in which the data lists them",
    };
    format!(
        "which nodes there are ({nodes}), with their ids{order}; also where preparation left some out (nodes \
         without edges, rare \
         classes)"
    )
}

/// Of the files, whose reading ends in a refusal or not.
const READABLE: &str = "that the data could be read: every value is of its column's kind, and edges said to go both \
 ways are listed \
                        once each or twice each";
/// The same goes on at node level, where the values of rows are private.
const FORM_OF_ROWS: &str = "; and whether rows are stored with or without their zeros";

/// A row of the list of mechanisms: the words of the query, the numbers of its event. `None` for what adds no noise.
pub(super) fn mechanism(query: &Query, count: u64) -> Option<Mechanism> {
    let noise = query.noise()?;
    let Noise { sigma, sensitivity, sampling_rate } = noise;
    Some(Mechanism {
        name: query.name.clone(),
        what: query.purpose.clone(),
        sigma,
        sensitivity,
        noise_multiplier: noise.multiplier(),
        count,
        sampling_rate,
    })
}

fn in_words(settings: &Settings, statement: &Statement) -> String {
    if let Provenance::Reproducible { seed } = statement.randomness
        && statement.unit.is_some()
    {
        return format!(
            "Not private. The noise is reproducible (seed {seed}): anyone who knows the seed can remove it. For \
             experiments only."
        );
    }
    if !statement.private {
        return "Not private. The model was trained on the data as it is, without noise.".into();
    }
    let (epsilon, delta) = (statement.epsilon.unwrap_or(f64::INFINITY), statement.delta.unwrap_or(1.0));
    let epsilon = units::written(epsilon);
    let delta = delta::written(delta);
    let numbers = format!("with epsilon = {epsilon} and delta = {delta} (differential privacy)");
    if !settings.method.can().protects_predictions {
        return format!(
            "Training alone is private; predictions are not. For every node, what everyone else can tell from the \
             trained \
             parameters is almost the same as if that node's record, that is its features, its label and its own \
             list of \
             receivers, had been left out, {numbers}. A prediction reads the rows of a node's senders as they are, \
             without noise: give it only to those who may see them. The same holds for the folder private.{WHOSE_EDGES}"
        );
    }
    let nothing_asked = statement.event == Event::Composed { events: vec![] };
    match (statement.unit, nothing_asked) {
        (Some(Unit::Edge | Unit::EdgeUndirected), true) => {
            "No edge was used: the model and all its predictions are the same whatever the edges are.".into()
        }
        (Some(Unit::Edge), _) => {
            let both = match statement.epsilon_undirected.map(units::written) {
                Some(epsilon) => format!("for both together epsilon is {epsilon} at the same delta"),
                None => "both together are protected less".into(),
            };
            format!(
                "{} An undirected edge stored as two directed edges is two of them: {both}. {PUBLIC_ROWS}",
                hardly_tells(statement, &format!("directed edge{}", named(statement)))
            )
        }
        (Some(Unit::EdgeUndirected), _) => {
            let directed = statement.epsilon_directed.map(units::written);
            let directed = directed.map_or(String::new(), |epsilon| {
                format!(" For one direction of it alone epsilon is {epsilon} at the same delta.")
            });
            format!(
                "{}{directed} {PUBLIC_ROWS}",
                hardly_tells(statement, &format!("undirected edge{}", named(statement)))
            )
        }
        _ => format!(
            "{} {WHOSE_PREDICTION}{WHOSE_EDGES}",
            hardly_tells(
                statement,
                &format!("node's record (its features, label and list of receivers{})", named(statement))
            )
        ),
    }
}

/// What level edge leaves open.
const PUBLIC_ROWS: &str = "Features and labels of nodes are treated as public and are not protected.";

/// The owner's name for an edge.
fn named(statement: &Statement) -> String {
    statement.relation.as_deref().map_or(String::new(), |name| format!(" (\u{201c}{name}\u{201d})"))
}

/// The guarantee for any one record: its budget, and what it means for a guess at even odds, which is right with a
/// probability of at most `(e^epsilon + delta) / (1 + e^epsilon)` (Kairouz, Oh and Viswanath 2015, theorem 2).
fn hardly_tells(statement: &Statement, record: &str) -> String {
    let (epsilon, delta) = (statement.epsilon.unwrap_or(f64::INFINITY), statement.delta.unwrap_or(1.0));
    let seen = match statement.unit {
        Some(Unit::Node) => "From this release and its predictions about other nodes",
        _ => "From this release and every prediction it can make",
    };
    let tells = if epsilon <= 1.0 { "can hardly tell" } else { "has limited means to tell" };
    let right = (1000.0 * (1.0 - (1.0 - delta) / (1.0 + epsilon.exp()))).ceil() / 10.0;
    format!(
        "{seen} an observer {tells} whether any one {record} was in the data (epsilon {}, delta {}): a guess at even \
         odds is right at most {right:.1} % of the time.",
        units::written(epsilon),
        delta::written(delta)
    )
}

/// The line about the settings as public, with those that have most to do with the cost.
fn settings_are_public(settings: &Settings) -> String {
    let values = [("depth", settings.depth), ("epochs", settings.epochs)];
    let decide = values.iter().filter(|(name, _)| settings.without_effect(name).is_none());
    match decide.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "the settings".into(),
        some => format!("{some} and the other settings"),
    }
}

/// The list of what was taken as public; also for comparison with the list that is there.
pub(super) fn public(
    settings: &Settings,
    plan: &Plan,
    sizes: PublicFacts,
    (labelled, weight_bound): (usize, Option<f64>),
) -> Vec<String> {
    let mut public = vec![
        nodes_are_public(settings, sizes.nodes),
        format!("the {} classes and the {} feature columns", sizes.classes, sizes.columns),
        match labelled == sizes.nodes {
            true => "which nodes are training, validation and test nodes".into(),
            false => format!(
                "which nodes are training, validation and test nodes, and which have a label ({labelled} of {})",
                sizes.nodes
            ),
        },
        settings_are_public(settings),
        "the settings were given, not tuned on this data; tuning on it would cost more".into(),
    ];
    if settings.level == Level::Node {
        let how = match settings.scaling {
            Scaling::Single => {
                "nothing else was computed over rows, and each value was brought to scale by itself"
            }
            Scaling::Noisy => {
                "nothing else was computed over rows but what is among the queries: number columns without bounds \
                 were brought to \
                 scale by noisy counts, all others each value by itself"
            }
        };
        public.push(format!(
            "what the columns are (numbers, categories, dates, words), their categories, declared bounds, and where \
             values can be \
             missing; {how}"
        ));
    }
    match settings.level {
        Level::None => {}
        Level::Edge => public.push(READABLE.into()),
        Level::Node => public.push(format!("{READABLE}{FORM_OF_ROWS}")),
    }
    match settings.level {
        Level::None => {}
        Level::Node if plan.queries.get(SUBGRAPH_GRADIENT).is_some() => {
            public.push(format!(
                "at most {} edges of each sender are used, drawn from its own list; the published sampling depends \
                 on the \
                 private degrees of receivers, this one on no other record",
                settings.max_degree
            ));
            public
                .push(format!("batches of {} training nodes and {} steps", settings.batch_size, plan.steps));
        }
        Level::Edge => {
            public.push("features and labels of all nodes".into());
            if settings.weighs_pairs() && settings.touches_edges() {
                public.push(format!(
                    "the weights by which the two messages of an undirected edge share its influence: {} for \
                     training nodes and 1 for others, as receivers",
                    settings.known_weight
                ));
            }
            if settings.unit_from_data && settings.touches_edges() {
                let every = if settings.undirected { "every edge has" } else { "not every edge has" };
                public.push(format!(
                    "whether the graph is symmetric ({every} an edge back), from which the unit was chosen"
                ));
            }
            if delta::matters(settings) {
                public.push(match (settings.delta, settings.delta_rule) {
                    (None, DeltaRule::Published) => {
                        "the number of digits of the number of edges, from which delta was chosen by the published rule"
                            .into()
                    }
                    (given, _) => format!(
                        "the order of magnitude of the number of {}, {}",
                        delta::records_are(settings),
                        match given {
                            None => "from which delta was chosen",
                            Some(_) => "above one over which no delta is accepted",
                        }
                    ),
                });
            }
        }
        Level::Node if settings.weighs_receivers() => {
            if settings.depth > 0 {
                public.push(format!(
                    "the bound C = sqrt({}) on a sender's influence, which it divides between its receivers by their \
                     weights",
                    settings.max_degree
                ));
                public.push(format!(
                    "the weights of receivers: {} for training nodes and 1 for others at first, then also by what \
                     the sums before leave \
                     open",
                    settings.known_weight
                ));
            }
            if plan.steps > 0 {
                public.push(format!("the sampling rate {} and {} steps", plan.rate, plan.steps));
            }
        }
        Level::Node => {
            let how = match settings.bounding {
                Bounding::Weight => "weights of at most C / sqrt(out-degree)",
                Bounding::Cap => "weights of at most 1 and C / sqrt(out-degree)",
                Bounding::Sample => "a sample of out-edges, drawn from each sender's own list",
            };
            public.push(format!(
                "the bound C = sqrt({}) on a sender's influence, by {how}",
                settings.max_degree
            ));
            public.push(format!("the sampling rate {} and {} steps in each stage", plan.rate, plan.steps));
        }
    }
    if let (Some(bound), true) = (weight_bound, settings.level != Level::None) {
        public.push(format!(
            "the maximum {bound} of edge weights, by which they were divided, and to which larger ones were clamped"
        ));
    }
    if settings.level == Level::Node
        && settings.delta.is_none()
        && settings.delta_rule == DeltaRule::Published
    {
        public.push(
            "delta is that of the published rule, which counts training nodes and not all nodes".into(),
        );
    }
    public
}

/// Where time and memory of training lie, of what stands in the folder of a release alone.
pub const COST_FILE: &str = " (file private/cost.json; take it out of what you hand on)";

pub(super) fn not_covered(settings: &Settings) -> Vec<String> {
    let cost = format!("time and memory of training, which depend on the data{COST_FILE}");
    let mut not_covered = Vec::new();
    if !settings.method.can().protects_predictions {
        not_covered.push(
            "predictions, and the file private/aggregates-1.npy that they read: neighbours' rows as they are, \
             without noise"
                .to_string(),
        );
    }
    not_covered.extend(match settings.level {
        Level::None => vec!["anything".into()],
        Level::Edge => vec!["features and labels of nodes".into(), cost],
        Level::Node => vec![
            "a node's own row: predictions about a node use its own features (file private/rows.progap)"
                .into(),
            "what other nodes' records say about a node, such as their edges to it, and its class where neighbours \
             are alike"
                .into(),
            "the accuracies in private/metrics.json, which are computed from private labels without noise (take it \
             out of what \
             you hand on)".into(),
            cost,
        ],
    });
    if settings.level != Level::None {
        not_covered.extend([ADD_UP, GROUPS].map(String::from));
    }
    not_covered
}

impl Statement {
    /// The events of the run in every unit but its own in which a bound of its cost is known; nothing without a
    /// guarantee.
    ///
    /// # Errors
    /// A statement whose parts do not fit together.
    pub fn in_other_units(&self, settings: &Settings) -> Result<Vec<UnitEvent>> {
        match self.unit {
            None => Ok(vec![]),
            Some(unit) => units::in_other_units(&self.queries()?, settings, unit),
        }
    }

    /// The queries: the words are those of the list, the events those of the tree.
    ///
    /// # Errors
    /// A list and a tree that are not of the same queries.
    pub(super) fn queries(&self) -> Result<Queries> {
        let unknown = || Error::unsuitable("the event tree holds something that no method asks");
        let Event::Composed { events } = &self.event else { return Err(unknown()) };
        if events.len() != self.mechanisms.len() {
            return Err(unknown());
        }
        let query = |(row, event): (&Mechanism, &Event)| match event {
            Event::SelfComposed { event, count } => {
                let query = Query::new(&row.name, &row.what, (**event).clone());
                match mechanism(&query, *count) {
                    Some(numbers) if numbers == *row => Ok((query, *count)),
                    _ => Err(unknown()),
                }
            }
            _ => Err(unknown()),
        };
        self.mechanisms.iter().zip(events).map(query).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::catalogue;

    /// The facts that reading takes as public are said at every private level.
    #[test]
    fn the_order_of_nodes_and_that_data_could_be_read_are_said_to_be_public() {
        let sizes = PublicFacts { nodes: 9000, train_nodes: 6000, ..PublicFacts::EXAMPLE };
        for entry in catalogue::methods() {
            for &level in entry.levels.iter().filter(|&&level| level != Level::None) {
                let settings = Settings::of(entry.method, level);
                let settings = settings.checked().expect("settings");
                let plan = Plan::new(&settings, sizes).expect("a plan");
                let public = public(&settings, &plan, sizes, (sizes.nodes, None));
                assert!(public[0].contains("in the order of their ids"), "{public:?}");
                assert_eq!(public.iter().filter(|line| line.starts_with(READABLE)).count(), 1, "{public:?}");
                assert_eq!(public.iter().any(|line| line.ends_with(FORM_OF_ROWS)), level == Level::Node);
            }
        }
    }

    /// Settings that decide nothing are not said to be public.
    #[test]
    fn only_settings_that_decide_something_are_named_as_public() {
        for entry in catalogue::methods() {
            for &level in entry.levels {
                let settings = Settings::of(entry.method, level);
                let said = settings_are_public(&settings);
                for name in ["depth", "epochs"] {
                    let decides = settings.without_effect(name).is_none();
                    assert_eq!(said.contains(name), decides, "{} {level}: {said}", entry.method);
                }
            }
        }
    }
}
