//! Graphs and everything that turns people's files into a [`Dataset`] and back.
//!
//! This crate knows graphs, features, labels, splits, file formats, transforms, synthetic graphs and the
//! aggregation kernel. It must never know privacy budgets or networks.
//!
//! ```
//! use progap_graph::Graph;
//!
//! // Two friendships, 0-1 and 1-2, stored as both directions.
//! let graph = Graph::from_edges(3, &[0, 1, 1, 2], &[1, 0, 2, 1])?;
//! assert!(graph.is_undirected());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

pub mod aggregate;
mod atomic;
pub mod buffer;
mod dataset;
mod error;
mod features;
mod graph;
mod ids;
pub mod named;
pub mod prepare;
pub mod read;
mod room;
pub mod scale;
mod split;
pub mod store;
pub mod summary;
pub mod synth;
pub mod transform;
pub mod write;

pub use atomic::AtomicFile;
pub use buffer::Buffer;
pub use dataset::{Dataset, DatasetParts, UNLABELLED};
pub use error::{Error, Place, Problem, Result};
pub use features::Features;
pub use graph::{Graph, GraphBuilder, GraphFiller};
pub use ids::NodeIds;
pub use scale::{NumberColumn, Preparation};
pub use split::{Part, Ratios, Split};
