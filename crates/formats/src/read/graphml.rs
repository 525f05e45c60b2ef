//! GraphML, as NetworkX, igraph, Gephi and yEd write it.
//!
//! The values of a node become the columns of a node table, under the names of their keys: all that is said of tables
//! holds for them. Nodes come in the order of their ids. `edgedefault="undirected"` gives each edge its edge back.
//! Edges of nested graphs, hyperedges and ports are not read.

mod xml;

use std::collections::HashMap;
use std::path::Path;

use self::xml::{Reader, Tag};
use super::{Described, LoadOptions, table};
use crate::{InFile, Place, Problem, Result, file, room, transform};

/// More than any file has; a forged one is refused early.
const MAX_KEYS: usize = 1 << 16;

/// Reads a file.
pub fn read(path: &Path, options: &LoadOptions) -> Result<Described> {
    read_text(&file::read_text(path, options.encoding)?, options).in_file(path)
}

/// Reads a file's content.
pub fn read_text(text: &str, options: &LoadOptions) -> Result<Described> {
    let Parsed { keys, edge_keys, nodes, edges, undirected } = parse(text)?;
    let mut names = vec!["id".to_string()];
    names.extend(keys.iter().map(|key| key.name.clone()));
    let header: Vec<&str> = names.iter().map(String::as_str).collect();
    let rows = nodes.iter().map(|node| {
        let values = (0..keys.len()).map(|at| value(&node.values, at, &keys));
        std::iter::once(node.id.as_str()).chain(values).collect::<Vec<&str>>()
    });
    let node_table = table::text(&header, rows)?;
    let weight = super::edge_attribute(options, |name| edge_keys.iter().any(|key| key.name == name));
    let weight = weight.and_then(|weight| edge_keys.iter().position(|key| key.name == weight));
    let pairs = edges.iter().map(|edge| {
        let ends = [edge.source.as_str(), edge.target.as_str()].into_iter();
        ends.chain(weight.map(|at| edge.value(at, &edge_keys))).collect()
    });
    let names = ["source", "target", "weight"];
    let edge_table = table::text(&names[..if weight.is_some() { 3 } else { 2 }], pairs)?;
    let described = table::describe_text(&node_table, &edge_table, options)?;
    let Described { dataset, columns } = described;
    let dataset = if undirected { transform::map_graph(dataset, transform::symmetrise)? } else { dataset };
    Ok(Described { dataset, columns })
}

struct Key {
    id: String,
    name: String,
    default: Option<String>,
}

struct Node {
    id: String,
    values: HashMap<usize, String>,
}

struct Edge {
    source: String,
    target: String,
    values: HashMap<usize, String>,
}

impl Edge {
    fn value<'a>(&'a self, at: usize, keys: &'a [Key]) -> &'a str {
        value(&self.values, at, keys)
    }
}

/// The value under a key, or its default.
fn value<'a>(values: &'a HashMap<usize, String>, at: usize, keys: &'a [Key]) -> &'a str {
    values.get(&at).or(keys[at].default.as_ref()).map_or("", String::as_str)
}

struct Parsed {
    keys: Vec<Key>,
    edge_keys: Vec<Key>,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    undirected: bool,
}

fn parse(text: &str) -> Result<Parsed> {
    let mut reader = Reader::new(text);
    let mut parsed =
        Parsed { keys: vec![], edge_keys: vec![], nodes: vec![], edges: vec![], undirected: false };
    let mut position: HashMap<String, usize> = HashMap::new();
    let mut edge_position: HashMap<String, usize> = HashMap::new();
    let mut open: Vec<String> = vec![];
    let (mut in_node, mut in_edge, mut in_key, mut value_of) = (false, false, None, None);
    while let Some(tag) = reader.next()? {
        let row = reader.row();
        let missing = |what: &str| {
            Problem::Missing { what: what.into(), found: "other attributes".into() }.at(Place::Row(row))
        };
        match tag {
            Tag::Text(text) => {
                if let (Some(at), Some(node)) = (value_of, parsed.nodes.last_mut().filter(|_| in_node)) {
                    node.values.entry(at).or_default().push_str(text.trim());
                } else if let (Some(at), Some(edge)) = (value_of, parsed.edges.last_mut().filter(|_| in_edge))
                {
                    edge.values.entry(at).or_default().push_str(text.trim());
                } else if let (Some(at), Some("default")) = (in_key, open.last().map(String::as_str)) {
                    let key: &mut Key = &mut parsed.keys[at];
                    key.default.get_or_insert_with(String::new).push_str(text.trim());
                }
            }
            Tag::Open { name, attributes, closed } => {
                let get = |key: &str| {
                    attributes.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone())
                };
                match name.as_str() {
                    "key" if get("for").is_none_or(|of| of == "node" || of == "all") => {
                        if parsed.keys.len() == MAX_KEYS {
                            return Err(
                                Problem::TooLarge("the file has too many keys".into()).at(Place::Row(row))
                            );
                        }
                        let id = get("id").ok_or_else(|| missing("id of a key"))?;
                        let name = get("attr.name").unwrap_or_else(|| id.clone());
                        position.insert(id.clone(), parsed.keys.len());
                        in_key = Some(parsed.keys.len()).filter(|_| !closed);
                        parsed.keys.push(Key { id, name, default: None });
                    }
                    // Of the keys of edges those with a default are rare: it is not read.
                    "key" if get("for").as_deref() == Some("edge") && parsed.edge_keys.len() < MAX_KEYS => {
                        let id = get("id").ok_or_else(|| missing("id of a key"))?;
                        let name = get("attr.name").unwrap_or_else(|| id.clone());
                        edge_position.insert(id.clone(), parsed.edge_keys.len());
                        parsed.edge_keys.push(Key { id, name, default: None });
                    }
                    "graph" if open.iter().all(|name| name != "graph") => {
                        parsed.undirected = get("edgedefault").as_deref() == Some("undirected");
                    }
                    "node" => {
                        let id = get("id").ok_or_else(|| missing("id of a node"))?;
                        room::push(&mut parsed.nodes, Node { id, values: HashMap::new() })?;
                        in_node = !closed;
                    }
                    "data" if in_node => {
                        let key = get("key").ok_or_else(|| missing("key of a value"))?;
                        let at = position.get(&key).copied().ok_or_else(|| undeclared(&key, row))?;
                        value_of = Some(at).filter(|_| !closed);
                    }
                    "edge" => {
                        let source = get("source").ok_or_else(|| missing("source of an edge"))?;
                        let target = get("target").ok_or_else(|| missing("target of an edge"))?;
                        room::push(&mut parsed.edges, Edge { source, target, values: HashMap::new() })?;
                        in_edge = !closed;
                    }
                    "data" if in_edge => {
                        let key = get("key").ok_or_else(|| missing("key of a value"))?;
                        value_of = edge_position.get(&key).copied().filter(|_| !closed);
                    }
                    _ => {}
                }
                if !closed {
                    room::push(&mut open, name)?;
                }
            }
            Tag::Close(name) => {
                if open.pop().as_deref() != Some(name.as_str()) {
                    let message = format!("</{name}> ends nothing that is open");
                    return Err(Problem::Corrupt(message).at(Place::Row(row)));
                }
                match name.as_str() {
                    "node" => in_node = false,
                    "edge" => in_edge = false,
                    "data" => value_of = None,
                    "key" => in_key = None,
                    _ => {}
                }
            }
        }
    }
    if let Some(name) = open.last() {
        return Err(Problem::Truncated(format!("<{name}> is never closed")).into());
    }
    rename(&mut parsed.keys);
    Ok(parsed)
}

/// A value under a key that the file does not declare.
fn undeclared(key: &str, row: u64) -> crate::Error {
    let message = format!(
        "the key {key:?} of a value of a node is not declared: there is no <key id={key:?} for=\"node\">"
    );
    Problem::Invalid(message).at(Place::Row(row))
}

/// Columns have names of their own, and the id is a column already.
fn rename(keys: &mut [Key]) {
    let mut seen: std::collections::HashSet<String> = std::iter::once("id".to_string()).collect();
    for key in keys {
        if key.name.is_empty() || !seen.insert(key.name.clone()) {
            key.name = format!("{} ({})", key.name, key.id);
            seen.insert(key.name.clone());
        }
    }
}
