//! Node-link JSON, as NetworkX (`node_link_data`), D3 and many web tools write it.
//!
//! The values of a node become the columns of a node table: all that is said of tables holds for them. Nodes come in
//! the order of their ids. Edges stand under `edges` or `links`; unless `"directed": true`, each edge gets its edge
//! back.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Described, LoadOptions, table};
use crate::{InFile, Place, Problem, Result, file, transform};

/// Reads a file.
pub fn read(path: &Path, options: &LoadOptions) -> Result<Described> {
    read_text(&file::read_text(path, options.encoding)?, options).in_file(path)
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    directed: bool,
    nodes: Vec<Map<String, Value>>,
    #[serde(alias = "links")]
    edges: Vec<Map<String, Value>>,
}

/// Reads a file's content.
pub fn read_text(text: &str, options: &LoadOptions) -> Result<Described> {
    let document: Document = serde_json::from_str(text).map_err(|error| {
        let message =
            format!("it is not a graph in node-link JSON, with lists \"nodes\" and \"edges\": {error}");
        crate::Error::from(Problem::Invalid(message))
    })?;
    let names: BTreeSet<&str> =
        document.nodes.iter().flat_map(|node| node.keys().map(String::as_str)).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let nodes = cells("nodes", &document.nodes, &names, false)?;
    let edges = cells("edges", &document.edges, &["source", "target"], true)?;
    let node_table = table::text(&names, nodes.iter().map(|row| borrowed(row)))?;
    let mut edges = edges;
    let weight =
        super::edge_attribute(options, |name| document.edges.iter().any(|edge| edge.contains_key(name)));
    let mut names = vec!["source", "target"];
    if let Some(weight) = weight {
        names.push("weight");
        let weights = cells("edges", &document.edges, &[weight], false)?;
        edges.iter_mut().zip(weights).for_each(|(row, weight)| row.extend(weight));
    }
    let edge_table = table::text(&names, edges.iter().map(|row| borrowed(row)))?;
    let described = table::describe_text(&node_table, &edge_table, options)?;
    let Described { dataset, columns } = described;
    let dataset =
        if !document.directed { transform::map_graph(dataset, transform::symmetrise)? } else { dataset };
    Ok(Described { dataset, columns })
}

/// The values of some keys, row by row, as a table has them.
fn cells(
    list: &str,
    rows: &[Map<String, Value>],
    names: &[&str],
    required: bool,
) -> Result<Vec<Vec<String>>> {
    let cell = |row: usize, name: &str| match rows[row].get(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(value.to_string()),
        None | Some(Value::Null) if !required => Ok(String::new()),
        found => {
            let found = found.map_or("no value", |_| "a value that is neither text nor a number");
            let place = Place::Element { key: list.to_string(), index: row as u64 };
            Err(Problem::Missing { what: format!("{name:?}"), found: found.into() }.at(place))
        }
    };
    (0..rows.len()).map(|row| names.iter().map(|name| cell(row, name)).collect()).collect()
}

fn borrowed(row: &[String]) -> Vec<&str> {
    row.iter().map(String::as_str).collect()
}
