//! Predictions about nodes that were not there in training, with their edges: the release's own queries, asked of new
//! records.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use progap_formats::read::LoadOptions;
use progap_formats::read::table::{LaterOptions, LaterRows, read_edges_among};
use progap_graph::Dataset;
use progap_privacy::accountant::{Accountant, Best};
use progap_privacy::noise::tables;
use progap_privacy::{Event, Unit, UnitEvent};
use serde::{Deserialize, Serialize};

use super::statement::mechanism;
use super::{
    Finding, Mechanism, Predictions, Release, Used, every_node, missing_for_predictions, predictions,
};
use crate::error::InFile;
use crate::folder::SMALL;
use crate::ledger::{Charge, Later, Ledger, Receipt};
use crate::predictor::Predictor;
use crate::query::Queries;
use crate::rows::Rows;
use crate::settings::{Level, Settings};
use crate::vault::later::{LaterEdges, Sizes};
use crate::vault::{Aggregate, Aggregates, aggregation};
use crate::{Error, Remedy, Result, delta, files, units};

/// A question about new nodes.
#[derive(Debug, Clone, Copy)]
pub struct NewNodes<'a> {
    /// Their rows.
    pub nodes: &'a Path,
    /// Their edges, to nodes of the release.
    pub edges: &'a Path,
    /// How both tables are read.
    pub options: LaterOptions<'a>,
    /// The ledger that training was charged to.
    pub ledger: &'a Path,
    /// The name of the data in it, where several could be meant.
    pub ledger_name: Option<&'a str>,
    /// The name of this question, where the same nodes were asked about before with other edges.
    pub again: Option<&'a str>,
}

/// Predictions about new nodes.
#[derive(Debug)]
pub struct NewPredictions {
    /// The rows that fit, and those that do not.
    pub read: LaterRows,
    /// About each row that fits, in their order.
    pub predictions: Predictions,
    /// What they are made of.
    pub used: Used,
    /// What was asked, and what it costs.
    pub statement: NewStatement,
    /// How many edges join two of the new nodes, which were not asked about: **for the data owner alone**.
    pub left_out: usize,
}

/// The guarantee of predictions about new nodes, to be kept beside them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewStatement {
    /// The version of the format.
    pub version: u64,
    /// The guarantee in plain words.
    pub in_words: String,
    /// The SHA-256 of the manifest of the release that was asked.
    pub release: String,
    /// The unit of one record.
    pub unit: Unit,
    /// What one new record pays.
    pub epsilon: f64,
    /// At this delta.
    pub delta: f64,
    /// Which accountant computed it.
    pub accountant: String,
    /// The queries.
    pub mechanisms: Vec<Mechanism>,
    /// The same as one tree, for accountants.
    pub event: Event,
    /// How many new nodes were asked about.
    pub new_nodes: usize,
    /// The facts that are assumed to be public.
    pub public: Vec<String>,
    /// What the ledger says: the whole cost for the worst record is in it.
    pub receipt: Receipt,
    /// The SHA-256 of the file of predictions.
    pub predictions: String,
}

/// The file beside predictions about new nodes.
pub fn new_statement_of(predictions: &Path) -> PathBuf {
    let mut name = OsString::from(predictions);
    name.push(".privacy.json");
    name.into()
}

impl NewStatement {
    /// Takes the checksum of a file of predictions, and writes the statement beside it.
    ///
    /// # Errors
    /// Files that cannot be read or written.
    pub fn write(&mut self, predictions: &Path) -> Result<()> {
        let content = std::fs::File::open(predictions).in_file(predictions)?;
        self.predictions = crate::folder::checksum(&content, u64::MAX).in_file(predictions)?;
        files::write_json(&new_statement_of(predictions), self)
    }

    fn words(&self) -> String {
        let record = match self.unit {
            Unit::EdgeUndirected => "undirected edge",
            _ => "directed edge",
        };
        format!(
            "From these predictions an observer learns about any one new {record} no more than epsilon {} at delta {} \
             allows; edges that the release was trained on pay nothing for them. Features of the new nodes, and which \
             nodes they are, are public. What a new edge pays in all, where its nodes are asked about more than once, \
             is counted in the ledger.",
            units::written(self.epsilon),
            delta::written(self.delta)
        )
    }
}

/// Recomputes what can be recomputed of the statement beside predictions about new nodes; empty if there is none.
///
/// # Errors
/// Files that cannot be read.
pub fn verify_new(predictions: &Path) -> Result<Vec<Finding>> {
    let file = new_statement_of(predictions);
    if !file.is_file() {
        return Ok(vec![]);
    }
    let open = std::fs::File::open(&file).in_file(&file)?;
    let mut bytes = vec![];
    std::io::Read::read_to_end(&mut std::io::Read::take(open, SMALL), &mut bytes).in_file(&file)?;
    let statement: NewStatement = files::versioned(&bytes, "the statement", &file)?;
    let content = std::fs::File::open(predictions).in_file(predictions)?;
    let found = crate::folder::checksum(&content, u64::MAX).in_file(predictions)?;
    let mut findings = vec![Finding::checked(
        "predictions",
        match found == statement.predictions {
            true => format!("SHA-256 {found}, as in the statement beside them"),
            false => "they are not those of the statement beside them".into(),
        },
        found == statement.predictions,
    )];
    findings.push(Finding::checked(
        "words",
        statement.in_words.clone(),
        statement.in_words == statement.words(),
    ));
    let asked = asked_of(&statement.event);
    let listed = asked.as_ref().is_some_and(|queries| listed(queries) == statement.mechanisms);
    let detail = format!(
        "{} noisy sums over the new edges",
        statement.mechanisms.iter().fold(0, |sum: u64, one| sum.saturating_add(one.count))
    );
    findings.push(Finding::checked("queries", detail, listed));
    let cost = statement
        .event
        .validate()
        .and_then(|()| Best.epsilon(&statement.event, tables::provable(statement.delta)));
    findings.push(match cost {
        Ok(bound) => {
            let ok = bound.value <= statement.epsilon * (1.0 + 1e-9) && statement.receipt.cost.epsilon > 0.0;
            Finding::checked("epsilon", format!("{:.6}, stated {:.6}", bound.value, statement.epsilon), ok)
        }
        Err(error) => Finding::checked("epsilon", error.to_string(), false),
    });
    let Receipt { run_id, dataset, cost, .. } = &statement.receipt;
    let detail = format!(
        "run {run_id} in the budget of {dataset}: epsilon {} for the worst record in all; release {}",
        units::written(cost.total),
        statement.release
    );
    findings.push(Finding::claimed("ledger", detail, ["receipt", "release"]));
    Ok(findings)
}

/// The queries of a release that asks for nothing but sums of messages.
fn asked_of(event: &Event) -> Option<Queries> {
    let (one, count) = match event {
        Event::SelfComposed { event, count } => (&**event, *count),
        Event::Composed { events } => match &events[..] {
            [only] => return asked_of(only),
            _ => return None,
        },
        one => (one, 1),
    };
    matches!(one, Event::Gaussian { .. }).then(|| Queries::from_iter([(aggregation(one.clone()), count)]))
}

fn listed(queries: &Queries) -> Vec<Mechanism> {
    queries.iter().filter_map(|(query, count)| mechanism(query, count)).collect()
}

/// What the same queries cost in the other unit of an edge.
///
/// # Proof definition
/// A new edge, in one direction or both, moves one row of each sum, that of its new node, by at most one: no influence
/// is shared with a row of an old node, whatever training did.
fn converted(queries: &Queries, settings: &Settings, unit: Unit) -> Result<Vec<UnitEvent>> {
    let whole = Settings { known_weight: 1.0, ..settings.clone() };
    units::in_other_units(queries, &whole, unit)
}

impl Release {
    /// Predictions about nodes that were not there in training, by their features and by noisy sums over their edges to
    /// nodes that were.
    ///
    /// # Proof definition
    /// The messages of old nodes follow from the release. The edges are new records, which pay what the release's
    /// queries cost one record; edges that were trained on are in none of these sums
    /// ([proof](progap_privacy::proofs::ledger#records-that-arrive-later)). The ledger is charged before the first
    /// noisy value is there. Noise follows from the ledger's secret, the release, the nodes, the name of the question
    /// and the exact sums: the same question has the same answer and is charged once, and under one name another
    /// question is refused, so that whether two answers are the same tells nothing of edges.
    ///
    /// # Errors
    /// Releases that cannot be asked; tables that cannot be read; nodes that the release knows, and edges that it may
    /// know; a budget that does not suffice.
    pub fn predict_new(&self, asked: &NewNodes<'_>) -> Result<NewPredictions> {
        let (unit, queries, sigma) = self.asks_again()?;
        let read = self.read_rows(asked.nodes, &asked.options)?;
        let Some(rows) = read.rows.clone() else {
            let reason = read.rejects.first().map_or("there are none".into(), |reject| reject.reason.clone());
            return Err(Error::file(asked.nodes, format!("none of its rows can be predicted: {reason}")));
        };
        let nodes = self.all_nodes(&rows, &read, asked)?;
        let options = LoadOptions { encoding: asked.options.encoding, ..LoadOptions::default() };
        let graph = read_edges_among(asked.edges, &nodes.ids, &options)?;
        let widths = &self.predictor.widths;
        let mut ledger = Ledger::open(asked.ledger)?;
        let key = ledger.noise_key(self.sha256())?;
        let commitment = files::hex(&key.commitment());
        let name = |node: usize| nodes.ids[node].clone();
        let locked = (sigma, widths.len());
        let sizes = Sizes { old: nodes.old, new: rows.nodes() };
        let mut edges = LaterEdges::new(&graph, sizes, self.settings()?, locked, key, &name)
            .map_err(|error| error.at(asked.edges))?;

        // What is public of the question names it; the digest holds it to its edges.
        let new_ids = || nodes.ids[nodes.old..nodes.old + rows.nodes()].iter().map(String::as_str);
        let public = ["run", self.sha256(), asked.again.unwrap_or_default()];
        let run_id = format!("new-{:.32}", ledger.digest(public.into_iter().chain(new_ids()))?);
        let later = Later {
            after: String::new(),
            release: self.sha256().into(),
            nodes: ledger.node_tags(new_ids())?,
            asked: edges.digest(|text| Ok(ledger.digest(["edges", &run_id, text])?))?,
        };
        let (account, after) = self.run_in(&ledger, unit, asked)?;
        let event = queries.event()?;
        let values = rows.nodes().saturating_mul(widths.iter().sum()) as u64;
        let delta = self.statement.delta.unwrap_or(0.0);
        let bound = Best.epsilon(&event, tables::provable(delta))?;
        if !tables::fit(values, bound.value, delta) {
            return Err(Error::unsuitable(
                "so many new nodes need more noise than tables can give at this delta: ask for fewer",
            ));
        }
        let mut charge = Charge::new(&run_id, account, unit, event.clone())
            .with_noise_values(values)
            .with_note(format!("{} new nodes, release {:.16}", rows.nodes(), self.sha256()))
            .about_later(Later { after, ..later });
        charge.key_commitment = Some(commitment);
        charge.converted = converted(&queries, self.settings()?, unit)?;
        let receipt = ledger.charge(charge).map_err(said_again)?;

        let mut statement = NewStatement {
            version: files::FORMAT,
            in_words: String::new(),
            release: self.sha256().into(),
            unit,
            epsilon: bound.value,
            delta,
            accountant: bound.accountant.into(),
            mechanisms: listed(&queries),
            event,
            new_nodes: rows.nodes(),
            public: vec![
                "which new nodes are asked about, with their ids and features, and by which names of questions".into(),
                "that each listed edge joins a new node with one that the release knows, or two new ones".into(),
                "everything that the release takes as public".into(),
            ],
            receipt,
            predictions: String::new(),
        };
        statement.in_words = statement.words();
        let aggregates = self.sums_of_new(&mut edges, &run_id, &nodes.rank)?;
        let predictor = Predictor {
            temperature: self.predictor.temperature,
            ..Predictor::new(self.predictor.links.clone(), self.predictor.stage, aggregates)
        };
        let predictions = predictions(&predictor, &rows, &every_node(&rows))?;
        Ok(NewPredictions { read, predictions, used: self.used(), statement, left_out: edges.left_out() })
    }

    /// The unit, the queries and the noise of a release whose queries can be asked again, of new edges.
    fn asks_again(&self) -> Result<(Unit, Queries, f64)> {
        let no = |why: &'static str| {
            Err(Error::unsuitable(why).remedy(Remedy::words("predict them by their features alone")))
        };
        match self.level() {
            Level::Edge => {}
            Level::Node => {
                return no(
                    "at node level a message to a new node is one more query about its sender's record, which is not charged \
                     here: edges of new nodes are asked about at edge level only",
                );
            }
            Level::None => {
                return no("a release without privacy has no noise to protect edges of new nodes with");
            }
        }
        let statement = &self.statement;
        let settings = self.settings()?;
        if !statement.private {
            return no("the release has reproducible noise, which protects no edge of new nodes");
        }
        if self.predictor.widths.is_empty() {
            return no("the release reads nothing of edges, and so none of new nodes");
        }
        if statement.weight_bound.is_some() {
            return no(
                "the release was trained on edges with weights, and those of new nodes are read without",
            );
        }
        if settings.shuffle {
            return no(
                "the numbers of the release's nodes were shuffled, so that no edge can name one of them",
            );
        }
        if let Some(missing) = missing_for_predictions(self) {
            return Err(Error::file(&self.folder, missing));
        }
        if !self.has_labels() {
            return no(
                "features and labels of old nodes were taken out of this export, and their messages need them",
            );
        }
        let method = settings.method.method();
        for index in 0..self.predictor.widths.len() {
            if !method.tells_messages(self, index)? {
                return Err(Error::unsuitable(format!(
                    "what old nodes sent for sum {} does not follow from a release of the method {}, so that new nodes have \
                     no sums that it could read",
                    index + 1,
                    settings.method
                ))
                .remedy(Remedy::set("method", "progap-views"))
                .remedy(Remedy::words("predict them by their features alone")));
            }
        }
        let one = asked_of(&statement.event).and_then(|queries| Some(queries.iter().next()?.0.clone()));
        let (Some(unit), Some(one)) = (statement.unit, one) else {
            return no("the release asked for other things than sums of messages");
        };
        let Some(noise) = one.noise() else { return no("the release has no noise") };
        // The sums of stages that are not released are asked of nobody again.
        Ok((unit, Queries::from_iter([(one, self.predictor.widths.len() as u64)]), noise.sigma))
    }

    /// All ids that edges may name.
    fn all_nodes(&self, rows: &Dataset, read: &LaterRows, asked: &NewNodes<'_>) -> Result<Named> {
        let old = self.nodes.nodes();
        let known = self.nodes.node_ids().positions(old);
        let new: Vec<String> = (0..rows.nodes()).map(|node| rows.node_ids().name(node)).collect();
        if let Some(id) = new.iter().find(|id| known.contains_key(*id)) {
            let problem = format!("the release has a node {id:?} already: ask for it by its id");
            return Err(Error::file(asked.nodes, problem));
        }
        // In an order of their own, so that the same nodes in another order are the same question.
        let mut order: Vec<usize> = (0..new.len()).collect();
        order.sort_unstable_by(|&a, &b| new[a].cmp(&new[b]));
        let mut rank = vec![0; new.len()];
        order.iter().enumerate().for_each(|(place, &row)| rank[row] = place);
        let mut ids: Vec<String> = (0..old).map(|node| self.nodes.node_ids().name(node)).collect();
        ids.extend(order.iter().map(|&row| new[row].clone()));
        // Edges of rows that were rejected join nobody here.
        let mut rejected: Vec<&String> = read.rejects.iter().map(|reject| &reject.id).collect();
        rejected.retain(|id| !id.is_empty() && !known.contains_key(*id) && !new.contains(id));
        rejected.sort_unstable();
        rejected.dedup();
        ids.extend(rejected.into_iter().cloned());
        Ok(Named { old, ids, rank })
    }

    /// The data and the run of this release in a ledger.
    fn run_in(&self, ledger: &Ledger, unit: Unit, asked: &NewNodes<'_>) -> Result<(String, String)> {
        let mut runs = ledger.runs_with(&self.statement.event, unit, asked.ledger_name)?;
        let Some(first) = runs.first().cloned() else {
            return Err(Error::file(
                asked.ledger,
                "the training of this release was not charged to this ledger, which therefore cannot say what its edges \
                 paid: give the ledger of its training, and the name of its data there",
            ));
        };
        runs.retain(|(name, _)| *name != first.0);
        match runs.first() {
            None => Ok(first),
            Some((other, _)) => {
                let problem =
                    format!("runs like that of this release are charged to {:?} and to {other:?}", first.0);
                Err(Error::file(asked.ledger, problem).remedy(Remedy::Give("ledger_name")))
            }
        }
    }

    /// The noisy sums of new nodes, in the order of their rows.
    fn sums_of_new(&self, edges: &mut LaterEdges, run_id: &str, rank: &[usize]) -> Result<Aggregates> {
        let rows = Rows::of_nodes(&self.nodes)?;
        let settings = self.settings()?;
        let (method, ways) = (settings.method.method(), settings.direction.ways());
        let mut aggregates = Aggregates::new();
        for (index, &width) in self.predictor.widths.iter().enumerate() {
            let messages = method.sent(self, &rows, index)?;
            let messages =
                messages.ok_or(Error::internal("a message that follows from a release is not told"))?;
            let sums = edges.sums(&format!("sum {index} of {run_id}"), index % ways, &messages, width)?;
            let values: Vec<f32> =
                rank.iter().flat_map(|place| &sums[place * width..][..width]).copied().collect();
            aggregates.push(Aggregate { values: values.into(), width });
        }
        Ok(aggregates)
    }
}

/// Everyone whom an edge may name.
struct Named {
    old: usize,
    /// Old nodes, new ones in the order of their ids, and rejected ones.
    ids: Vec<String>,
    /// The place of each row among the new ones.
    rank: Vec<usize>,
}

/// The refusal of a question whose name was given to another one.
fn said_again(error: crate::ledger::Error) -> Error {
    match error {
        crate::ledger::Error::RunChanged { .. } => Error::unsuitable(
            "these nodes were asked about before with other edges: asked again they are charged again, by another name",
        )
        .remedy(Remedy::Give("again")),
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MethodKind;

    /// In training a directed edge that shares its influence with its reverse moves sums by less than one. One to a new
    /// node does not share it.
    #[test]
    fn one_direction_of_a_new_edge_is_charged_whole() {
        let shared = Settings {
            undirected: true,
            known_weight: 0.25,
            ..Settings::of(MethodKind::ProgapViews, Level::Edge)
        };
        assert!(shared.weighs_pairs());
        let queries = Queries::from_iter([(aggregation(Event::gaussian(4.0, 1.0).expect("noise")), 2)]);
        let moved = |found: Vec<UnitEvent>| match asked_of(&found[0].event).expect("sums").iter().next() {
            Some((query, 2)) if found[0].unit == Unit::Edge => query.noise().expect("noise").sensitivity,
            _ => panic!("{found:?}"),
        };
        let unit = Unit::EdgeUndirected;
        assert!(moved(units::in_other_units(&queries, &shared, unit).expect("events")) < 1.0);
        assert_eq!(moved(converted(&queries, &shared, unit).expect("events")), 1.0);
    }
}
