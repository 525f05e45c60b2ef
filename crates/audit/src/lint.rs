//! Remarks for the data owner before training: likely mistakes in the data or in what is asked of it.
//!
//! All of it is computed from the private data as it is, without noise. It is for the data owner alone and has no part
//! in what a release holds.

mod closely;
mod columns;

pub use closely::closely;

use progap_graph::{Dataset, EdgesBack, Graph, NodeIds, Part};
use rayon::prelude::*;
use serde::Serialize;

use progap::error::{Remedy, Vocabulary, advice};
use progap::plan::PublicFacts;
use progap::settings::{Declaration, DeltaRule, Direction, Level, Settings};
use progap::{delta, order};

/// How much a remark matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// Good to know.
    Note,
    /// Likely to be a mistake.
    Warning,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// Its kind, for programs.
    pub code: &'static str,
    /// How much it matters.
    pub weight: Weight,
    /// The finding, in words.
    pub text: String,
    /// What to do about it.
    #[serde(skip)]
    pub remedies: Vec<Remedy>,
}

impl Remark {
    /// This remark, with another remedy.
    fn remedy(mut self, remedy: Remedy) -> Remark {
        self.remedies.push(remedy);
        self
    }

    /// The finding and its remedies in somebody's own vocabulary.
    pub fn said(&self, vocabulary: &dyn Vocabulary) -> String {
        match self.remedies.as_slice() {
            [] => self.text.clone(),
            remedies => format!("{}; {}", self.text, advice(remedies, vocabulary)),
        }
    }
}

/// A class with fewer training records than this is learnt badly, and its few records are easily told apart.
const FEW: usize = 10;
/// Edges whose edge back is looked for; of larger graphs a sample.
const LOOKED_AT: usize = 1 << 20;
/// A column with fewer values than this is no list of names.
const MIN_VALUES: usize = 20;

/// Everything that is found in a data set for a run with these settings. `given` are the settings that were asked for
/// by name, as in config.toml.
pub fn lint(dataset: &Dataset, settings: &Settings, given: &[&str]) -> Vec<Remark> {
    let mut remarks = Vec::new();
    units(dataset, settings, given, &mut remarks);
    edges(dataset, settings, &mut remarks);
    let sizes = PublicFacts::of(dataset, settings);
    if let Some(text) = delta::caution(settings, sizes) {
        remarks.push(warning("delta", text));
    }
    if settings.delta_rule == DeltaRule::Published && settings.delta.is_none() && delta::matters(settings) {
        let text = format!(
            "delta {:e} follows the published rule; the usual one for this data is {:e}",
            delta::of(settings, sizes),
            delta::usual(settings.level, delta::records(settings, sizes))
        );
        remarks.push(note("published-delta", text));
    }
    names(dataset, settings, &mut remarks);
    columns::no_bounds(dataset, settings, &mut remarks);
    columns::left_out(dataset, settings, &mut remarks);
    columns::undeclared(dataset, settings, &mut remarks);
    columns::beyond_bounds(dataset, settings, &mut remarks);
    classes(dataset, &mut remarks);
    for name in given {
        if let Some(why) = settings.without_effect(name) {
            let words = Declaration::find(name).map_or_else(|_| (*name).to_string(), Declaration::words);
            remarks.push(warning("no-effect", format!("the {words} has no effect: {why}")));
        }
    }
    remarks
}

fn note(code: &'static str, text: String) -> Remark {
    Remark { code, weight: Weight::Note, text, remedies: vec![] }
}

fn warning(code: &'static str, text: String) -> Remark {
    Remark { code, weight: Weight::Warning, text, remedies: vec![] }
}

fn units(dataset: &Dataset, settings: &Settings, given: &[&str], remarks: &mut Vec<Remark>) {
    let graph = dataset.graph();
    let known = settings.unit_from_data && settings.touches_edges();
    let symmetric = graph.edges() > 0 && if known { settings.undirected } else { graph.is_symmetric() };
    if symmetric && settings.direction == Direction::Both && settings.touches_edges() {
        // A refusal would tell that the graph is symmetric.
        let text = "every edge has an edge back, so that both directions say the same, at twice the cost";
        remarks.push(warning("both-alike", text.into()).remedy(Remedy::set("direction", "in")));
    }
    if !symmetric && settings.touches_edges() && !given.contains(&"directed") {
        one_way(graph, settings, remarks);
    }
    match settings.level {
        Level::Edge if symmetric && !settings.undirected && settings.touches_edges() => {
            let published = settings.delta_rule == DeltaRule::Published;
            let why = if published { ", as published," } else { "" };
            let text = format!(
                "every edge has an edge back, but one direction{why} counts as a record: an undirected edge is \
                 protected \
                 less than epsilon says"
            );
            let asked = if published { Remedy::Drop("preset") } else { Remedy::Drop("directed") };
            remarks.push(warning("directed-unit", text).remedy(asked).remedy(Remedy::Give("undirected")));
        }
        Level::Node if symmetric => remarks.push(note(
            "reverse-edge-remains",
            "every edge has an edge back: a person's record holds the edges from that person; the other side of each \
             undirected edge is in the neighbour's record, and still shows that they are neighbours when the \
             person's own record is \
             left out"
                .into(),
        )),
        _ => {}
    }
}

/// Edges without an edge back on a graph that looks undirected, wholly or nearly.
fn one_way(graph: &Graph, settings: &Settings, remarks: &mut Vec<Remark>) {
    let back = EdgesBack::of(graph, LOOKED_AT);
    let EdgesBack { with, of, .. } = back;
    if back.listed_once(graph) {
        let (found, remedy) = match with {
            0 => ("no edge has an edge back".to_string(), "undirected"),
            _ => (format!("only {with} of {of} edges have an edge back"), "symmetrise"),
        };
        let text = format!(
            "{found}, as where a file lists each edge of an undirected graph once: if edges mean the same both ways, \
             add the other direction"
        );
        remarks.push(warning("listed-once", text).remedy(Remedy::Give(remedy)));
    } else if settings.level == Level::Edge && 10 * with >= 9 * of && of > 0 && !settings.undirected {
        let text = format!(
            "{with} of {of} edges have an edge back: if edges mean the same both ways, the rest can be added and both \
             directions protected"
        );
        remarks.push(warning("nearly-symmetric", text).remedy(Remedy::Give("symmetrise")));
    }
}

fn edges(dataset: &Dataset, settings: &Settings, remarks: &mut Vec<Remark>) {
    let graph = dataset.graph();
    let loops = graph.self_loops();
    // Loops that repeat are left out as loops.
    let repeated = graph.edges() - loops - graph.distinct_edges();
    if repeated > 0 {
        let text =
            format!("{repeated} edges repeat another one and were merged with it: an edge is there or not");
        remarks.push(warning("repeated-edges", text));
    }
    if loops > 0 {
        let text = format!("{loops} edges lead from a node to itself and were left out");
        remarks.push(note("self-loops", text));
    }
    names_in_order(dataset, settings, remarks);
    let alone = receive_nothing(graph, settings.direction);
    if graph.distinct_edges() == 0 {
        remarks
            .push(warning("no-edges", "there is no edge between two nodes: only features can help".into()));
    } else if alone > 0 {
        let text =
            format!("{alone} of {} nodes receive nothing: for them only features can help", graph.nodes());
        // Half of a bipartite graph whose edges lead one way receives nothing, and most sources of a citation graph.
        remarks.push(match 4 * alone > graph.nodes() && !graph.is_symmetric() {
            true => {
                let text = format!("{text}; if edges mean something both ways, use both");
                let added = Remedy::Give("symmetrise");
                match settings.method.can().both_directions {
                    true => {
                        warning("no-senders", text).remedy(Remedy::set("direction", "both")).remedy(added)
                    }
                    false => warning("no-senders", text).remedy(added),
                }
            }
            false => note("no-senders", text),
        });
    }
}

/// Nodes whose names, in order, follow edges. Numbers that do are refused by training itself, so that [`closely`] alone
/// has a remark on them.
fn names_in_order(dataset: &Dataset, settings: &Settings, remarks: &mut Vec<Remark>) {
    let NodeIds::Text { .. } = dataset.node_ids() else { return };
    let Some(found) = order::telling(dataset, settings) else { return };
    remarks.push(warning("id-order-leak", format!(
        "ids are public, and nodes in their order tell edges ({found}): give ids that do not follow edges, such as \
         pseudonyms"
    )));
}

/// How many nodes no message reaches.
fn receive_nothing(graph: &Graph, direction: Direction) -> usize {
    let alone =
        |graph: &Graph, node: usize| graph.in_neighbours(node).iter().all(|&sender| sender as usize == node);
    let turned = (direction != Direction::In).then(|| graph.transpose());
    let hears_nothing = |&node: &usize| match (&turned, direction) {
        (Some(turned), Direction::Both) => alone(graph, node) && alone(turned, node),
        (Some(turned), _) => alone(turned, node),
        (None, _) => alone(graph, node),
    };
    (0..graph.nodes()).filter(hears_nothing).count()
}

/// Whether a text is written as an e-mail address is.
fn is_address(text: &str) -> bool {
    let Some((name, host)) = text.trim().rsplit_once('@') else { return false };
    let plain = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    plain(name) && plain(host) && host.split('.').count() > 1 && host.split('.').all(|part| !part.is_empty())
}

/// Whether a text is written as a person's name is: two to four words that begin with capitals.
fn is_name(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let word = |word: &&str| {
        word.chars().next().is_some_and(char::is_uppercase)
            && word.chars().all(|c| c.is_alphabetic() || "-'.".contains(c))
    };
    (2..=4).contains(&words.len()) && words.iter().all(word)
}

/// Texts that name people and would go into a release.
fn names(dataset: &Dataset, settings: &Settings, remarks: &mut Vec<Remark>) {
    // Features and what their columns are called are part of a release, but at node level its list of columns is
    // for the data owner, and their number public.
    let where_to = match settings.level {
        Level::Node => "the number of its values is public, and private/rows.progap holds them all",
        _ => "every value goes into the release as a feature of its own, readable by all",
    };
    for (column, first, count) in text_columns(dataset.feature_names()) {
        let values = &dataset.feature_names()[first..first + count];
        let value = |name: &String| name[column.len() + 1..].to_string();
        let addresses = values.iter().filter(|name| is_address(&value(name))).count();
        if 2 * addresses > count {
            remarks.push(warning(
                "addresses",
                format!("the column {column:?} holds {addresses} e-mail addresses: {where_to}; take it out"),
            ));
            continue;
        }
        let used = records_with(dataset, first, count);
        if count >= MIN_VALUES && 2 * count > used {
            remarks.push(warning(
                "nearly-unique",
                format!(
                    "the text column {column:?} has {count} values for {used} nodes, nearly one each, as names have: \
                     {where_to}; take it out, or group its values"
                ),
            ));
        }
    }
    if let NodeIds::Text { .. } = dataset.node_ids() {
        let share = |test: fn(&str) -> bool| {
            (0..dataset.nodes()).filter(|&node| test(&dataset.node_ids().name(node))).count()
        };
        let nodes = dataset.nodes();
        for (code, what, count) in
            [("id-addresses", "e-mail addresses", share(is_address)), ("id-names", "names", share(is_name))]
        {
            if 2 * count > nodes {
                let text = format!(
                    "{count} of {nodes} node ids look like {what}, and ids go into every release: give numbers or \
                     pseudonyms instead"
                );
                remarks.push(warning(code, text));
            }
        }
    }
}

/// The text columns among features, as (column, first feature, number of values): one-hot features are called
/// `column=value` and stand together.
fn text_columns(names: &[String]) -> Vec<(&str, usize, usize)> {
    let mut columns: Vec<(&str, usize, usize)> = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let Some((column, _)) = name.split_once('=') else { continue };
        match columns.last_mut() {
            Some((last, first, count)) if *last == column && *first + *count == at => *count += 1,
            _ => columns.push((column, at, 1)),
        }
    }
    columns
}

/// How many nodes have a value in one of these columns.
fn records_with(dataset: &Dataset, first: usize, count: usize) -> usize {
    let has = |node: &usize| {
        dataset
            .features()
            .row(*node)
            .any(|(column, value)| value != 0.0 && (first..first + count).contains(&column))
    };
    (0..dataset.nodes()).into_par_iter().filter(has).count()
}

fn classes(dataset: &Dataset, remarks: &mut Vec<Remark>) {
    if dataset.classes() == 1 {
        remarks.push(warning("one-class", "there is one class only: nothing can be learnt".into()));
        return;
    }
    let Some(split) = dataset.split() else { return };
    let mut training = vec![0usize; dataset.classes()];
    split.nodes(Part::Train).for_each(|node| training[dataset.labels()[node] as usize] += 1);
    let named = |wanted: &dyn Fn(usize) -> bool| {
        let all = dataset.class_names().iter().zip(&training).filter(|(_, count)| wanted(**count));
        let all: Vec<String> = all.map(|(name, count)| format!("{name:?} ({count})")).collect();
        let more = if all.len() > 5 { format!(" and {} more", all.len() - 5) } else { String::new() };
        (!all.is_empty()).then(|| all[..all.len().min(5)].join(", ") + &more)
    };
    if let Some(classes) = named(&|count| count == 0) {
        let text = format!(
            "no training node has the class {classes}: it cannot be learnt; frequent classes can be kept alone"
        );
        remarks.push(warning("class-without-training", text).remedy(Remedy::Give("min_class_count")));
    }
    if let Some(classes) = named(&|count| count > 0 && count < FEW) {
        let text =
            format!("few training nodes, fewer than {FEW}, have the class {classes}: it is learnt badly");
        remarks.push(warning("small-class", text));
    }
}

#[cfg(test)]
mod tests {
    use progap_formats::read::{LoadOptions, table};

    use super::*;
    use progap::settings::Draft;
    use progap::settings::Order;

    fn data(nodes: &str, edges: &str) -> Dataset {
        let (nodes, edges) = (("nodes.csv", nodes.as_bytes()), ("edges.csv", edges.as_bytes()));
        table::read_bytes(nodes, edges, &LoadOptions::default()).expect("a data set")
    }

    /// As [`data`], with a column of towns that are categories however many there are.
    fn with_towns(nodes: &str, edges: &str) -> Dataset {
        let (nodes, edges) = (("nodes.csv", nodes.as_bytes()), ("edges.csv", edges.as_bytes()));
        let options = LoadOptions { categorical: vec!["town".into()], ..LoadOptions::default() };
        table::read_bytes(nodes, edges, &options).expect("a data set")
    }

    fn codes(dataset: &Dataset, settings: &Settings) -> Vec<&'static str> {
        let settings = &resolved(dataset, settings);
        lint(dataset, settings, &[])
            .into_iter()
            .chain(closely(dataset, settings))
            .map(|remark| remark.code)
            .collect()
    }

    fn resolved(dataset: &Dataset, settings: &Settings) -> Settings {
        let facts = PublicFacts::of(dataset, settings);
        Draft::from(settings.clone()).resolve(&facts).expect("settings").into_settings()
    }

    /// A ring of neighbours with enough of everything: nothing to say but what a change adds.
    fn ring(change: impl Fn(usize) -> (String, String), extra_edges: &str) -> Dataset {
        ring_of_steps(7, change, extra_edges)
    }

    fn ring_of_steps(step: usize, change: impl Fn(usize) -> (String, String), extra_edges: &str) -> Dataset {
        let mut nodes = String::from("id,label,town,split\n");
        let mut edges = String::from("source,target\n");
        for node in 0..120 {
            let (id, town) = change(node);
            let part = ["train", "train", "val", "test"][node / 2 % 4];
            nodes += &format!("{id},{},{town},{part}\n", ["x", "y"][node % 2]);
            let (next, back) = (change((node + step) % 120).0, change((node + 120 - step) % 120).0);
            edges += &format!("{id},{next}\n{id},{back}\n");
        }
        with_towns(&nodes, &(edges + extra_edges))
    }

    fn plain(node: usize) -> (String, String) {
        (node.to_string(), ["Ayr", "Bath"][node % 2].into())
    }

    #[test]
    fn nothing_is_said_where_there_is_nothing_to_say() {
        assert_eq!(
            codes(
                &ring(plain, ""),
                &Settings::of(progap::MethodKind::ProgapLabels, Level::Edge).unit_by_graph()
            ),
            [""; 0]
        );
    }

    #[test]
    fn an_order_of_nodes_that_follows_edges_is_found_at_private_levels() {
        let edge = Settings::of(progap::MethodKind::ProgapLabels, Level::Edge).unit_by_graph();
        assert_eq!(codes(&ring_of_steps(1, plain, ""), &edge), ["id-order-leak"]);
        let node = Settings::of(progap::MethodKind::ProgapLabels, Level::Node);
        assert!(codes(&ring_of_steps(1, plain, ""), &node).contains(&"id-order-leak"));
        assert_eq!(
            codes(&ring_of_steps(1, plain, ""), &Settings { order: Order::Public, ..edge.clone() }),
            [""; 0]
        );
        assert_eq!(codes(&ring_of_steps(1, plain, ""), &Settings { shuffle: true, ..edge }), [""; 0]);
        let none = Settings::of(progap::MethodKind::ProgapLabels, Level::None);
        assert_eq!(codes(&ring_of_steps(1, plain, ""), &none), [""; 0]);
    }

    #[test]
    fn both_directions_of_a_symmetric_graph_are_said_to_be_alike() {
        let settings = Settings::of(progap::MethodKind::ProgapViews, Level::Edge).unit_by_graph();
        let both = Settings { direction: Direction::Both, ..settings };
        assert_eq!(codes(&ring(plain, ""), &both), ["both-alike"]);
        assert_eq!(codes(&ring(plain, "0,5\n"), &both), ["nearly-symmetric"]);
    }

    #[test]
    fn a_symmetric_graph_under_the_directed_unit_is_found() {
        let edge = Settings::of(progap::MethodKind::ProgapLabels, Level::Edge);
        assert_eq!(codes(&ring(plain, ""), &edge), ["directed-unit"]);
        assert_eq!(codes(&ring(plain, "0,5\n"), &edge), ["nearly-symmetric"]);
        let paper = Settings::paper(progap::settings::MethodKind::Progap, Level::Edge);
        assert_eq!(codes(&ring(plain, ""), &paper), ["directed-unit", "delta", "published-delta"]);
        assert_eq!(codes(&ring(plain, ""), &Settings { depth: 0, ..edge }), [""; 0]);
        assert_eq!(
            codes(&ring(plain, ""), &Settings::of(progap::MethodKind::ProgapLabels, Level::Node)),
            ["reverse-edge-remains", "no-categories"]
        );
    }

    #[test]
    fn repeated_edges_and_loops_are_counted_and_do_not_hide_a_symmetric_graph() {
        let edge = Settings::of(progap::MethodKind::ProgapLabels, Level::Edge).unit_by_graph();
        let dataset = ring(plain, "0,7\n0,7\n5,5\n5,5\n");
        let edge = resolved(&dataset, &edge);
        assert!(edge.undirected);
        let remarks = lint(&dataset, &edge, &[]);
        let text = |code: &str| remarks.iter().find(|r| r.code == code).map(|r| r.text.clone()).expect(code);
        assert!(text("repeated-edges").starts_with("2 edges repeat"), "{remarks:?}");
        assert!(text("self-loops").starts_with("2 edges lead"), "{remarks:?}");
        assert_eq!(PublicFacts::of(&dataset, &edge).edges, 240, "merged edges are counted");
    }

    #[test]
    fn names_and_addresses_are_found() {
        let edge = Settings::of(progap::MethodKind::ProgapLabels, Level::Edge).unit_by_graph();
        let unique = ring(|node| (node.to_string(), format!("Person {node}")), "");
        assert_eq!(codes(&unique, &edge), ["nearly-unique"]);
        let addresses = ring(|node| (node.to_string(), format!("p{node}@example.org")), "");
        assert_eq!(codes(&addresses, &edge), ["addresses"]);
        let ids = ring(|node| (format!("p{node}@example.org"), plain(node).1), "");
        assert_eq!(codes(&ids, &edge), ["id-addresses"]);
        let names = ring(|node| (format!("Ann B{}", "e".repeat(node + 1)), plain(node).1), "");
        assert_eq!(codes(&names, &edge), ["id-names"]);
        for (text, address) in
            [("a@b.c", true), ("a@b", false), ("@b.c", false), ("a b@c.d", false), ("a", false)]
        {
            assert_eq!(is_address(text), address, "{text}");
        }
    }

    #[test]
    fn small_and_missing_classes_are_found() {
        let edge = Settings::of(progap::MethodKind::ProgapLabels, Level::Edge);
        let rows = |label: &dyn Fn(usize) -> &'static str| {
            let mut nodes = String::from("id,label,age,split\n");
            for node in 0..60 {
                let part = ["train", "train", "val", "test"][node % 4];
                nodes += &format!("{node},{},{node},{part}\n", label(node));
            }
            data(&nodes, "source,target\n0,1\n")
        };
        assert_eq!(codes(&rows(&|_| "x"), &edge), ["no-senders", "one-class"]);
        let classes = rows(&|node| match node {
            0 => "rare",
            2 => "unseen",
            _ if node % 8 < 4 => "x",
            _ => "y",
        });
        assert_eq!(codes(&classes, &edge), ["no-senders", "class-without-training", "small-class"]);
    }

    #[test]
    fn a_delta_near_one_over_the_records_is_found() {
        let edge =
            Settings { delta: Some(1e-3), ..Settings::of(progap::MethodKind::ProgapLabels, Level::Edge) }
                .unit_by_graph();
        assert_eq!(codes(&ring(plain, ""), &edge), ["delta"]);
        assert_eq!(codes(&ring(plain, ""), &Settings { delta: Some(1e-4), ..edge }), [""; 0]);
    }
}
