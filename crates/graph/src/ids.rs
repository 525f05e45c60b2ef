//! Names of nodes.

use std::collections::HashMap;

use crate::{Buffer, Problem, Result};

/// The name of each node in the user's own files.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeIds {
    /// Nodes are called 0, 1, 2 and so on.
    Position,
    /// Nodes have integer ids.
    Integers(Buffer<i64>),
    /// Nodes have text ids: all texts joined, and where each begins (and the last ends).
    Text {
        /// The texts, one after the other, in UTF-8.
        bytes: Buffer<u8>,
        /// Where each text begins, and where the last one ends.
        offsets: Buffer<u64>,
    },
}

impl NodeIds {
    /// Text ids from a list; ids 0, 1, 2 ... that are merely positions are not stored.
    pub fn from_texts<S: AsRef<str>>(ids: impl IntoIterator<Item = S>) -> NodeIds {
        let mut bytes = Vec::new();
        let mut offsets = vec![0];
        for id in ids {
            bytes.extend_from_slice(id.as_ref().as_bytes());
            offsets.push(bytes.len() as u64);
        }
        NodeIds::Text { bytes: bytes.into(), offsets: offsets.into() }
    }

    /// Integer ids from a list; ids that are merely positions are not stored.
    pub fn from_integers(ids: Vec<i64>) -> NodeIds {
        if ids.iter().enumerate().all(|(at, &id)| id == at as i64) {
            NodeIds::Position
        } else {
            NodeIds::Integers(ids.into())
        }
    }

    /// The id of a node, as text.
    pub fn name(&self, node: usize) -> String {
        match self {
            NodeIds::Position => node.to_string(),
            NodeIds::Integers(ids) => ids[node].to_string(),
            NodeIds::Text { bytes, offsets } => {
                let text = &bytes[offsets[node] as usize..offsets[node + 1] as usize];
                String::from_utf8_lossy(text).into_owned()
            }
        }
    }

    /// Where each id stands, for looking nodes up by the user's names.
    pub fn positions(&self, nodes: usize) -> HashMap<String, u32> {
        (0..nodes).map(|node| (self.name(node), node as u32)).collect()
    }

    /// The ids of the nodes that are listed, in that order.
    #[must_use]
    pub fn select(&self, nodes: &[u32]) -> NodeIds {
        match self {
            NodeIds::Position => NodeIds::from_integers(nodes.iter().map(|&n| n.into()).collect()),
            NodeIds::Integers(ids) => {
                NodeIds::from_integers(nodes.iter().map(|&n| ids[n as usize]).collect())
            }
            NodeIds::Text { .. } => NodeIds::from_texts(nodes.iter().map(|&n| self.name(n as usize))),
        }
    }

    /// Bytes held by the ids.
    pub fn bytes(&self) -> usize {
        match self {
            NodeIds::Position => 0,
            NodeIds::Integers(ids) => size_of_val(&**ids),
            NodeIds::Text { bytes, offsets } => size_of_val(&**bytes) + size_of_val(&**offsets),
        }
    }

    /// Whether there is an id for each of this many nodes.
    pub(crate) fn check(&self, nodes: usize) -> Result<()> {
        let found = match self {
            NodeIds::Position => return Ok(()),
            NodeIds::Integers(ids) => ids.len(),
            NodeIds::Text { bytes, offsets } => {
                crate::graph::check_offsets("node ids", offsets, bytes.len())?;
                if std::str::from_utf8(bytes).is_err() {
                    return Err(Problem::Corrupt("the node ids are not UTF-8 text".into()).into());
                }
                offsets.len() - 1
            }
        };
        if found != nodes {
            let what = "list of node ids".into();
            return Err(Problem::Length { what, found: found as u64, expected: nodes as u64 }.into());
        }
        Ok(())
    }
}
