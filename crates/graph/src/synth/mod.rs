//! Synthetic graphs: the embedded data set [`demo()`], others like it at any size, and uniform ones.

mod assemble;
mod column;
mod demo;
mod dense;
mod groups;
mod model;
mod random;
mod social;

pub use column::Column;
pub use demo::demo;
pub use social::{Class, SocialNetwork};

use crate::{Graph, Problem, Result};

/// An undirected graph of about this many directed edges (two for each pair) between nodes drawn uniformly.
///
/// For measuring kernels: it has no structure at all, which is the hardest case for a cache. At most nine
/// tenths of all pairs can be joined.
pub fn uniform(nodes: usize, edges: usize, seed: u64) -> Result<Graph> {
    if nodes == 0 {
        return Err(Problem::Empty("nodes").into());
    }
    if nodes > SocialNetwork::MAX_NODES {
        let limit = SocialNetwork::MAX_NODES;
        return Err(Problem::TooLarge(format!("{nodes} nodes are more than {limit}")).into());
    }
    check_edges(nodes, edges, SocialNetwork::MAX_EDGES)?;
    assemble::assemble(&model::Uniform::new(nodes, edges, seed)?)
}

/// Whether this many directed edges fit between the nodes, with some room to draw them in.
fn check_edges(nodes: usize, edges: usize, most: usize) -> Result<()> {
    let pairs = nodes as u128 * (nodes as u128 - 1);
    if edges as u128 > pairs {
        let message = format!("{edges} directed edges are more than the {pairs} that {nodes} nodes can have");
        return Err(Problem::Invalid(message).into());
    }
    if edges as u128 * 10 > pairs * 9 {
        let message = format!(
            "{edges} directed edges are more than nine tenths of the {pairs} that {nodes} nodes can have"
        );
        return Err(Problem::TooLarge(message).into());
    }
    if edges > most {
        return Err(Problem::TooLarge(format!("{edges} directed edges are more than {most}")).into());
    }
    Ok(())
}
