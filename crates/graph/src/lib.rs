#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

pub mod aggregate;
mod atomic;
pub mod buffer;
mod builder;
mod dataset;
mod error;
mod features;
mod fingerprint;
mod graph;
mod graph_builder;
mod ids;
pub mod named;
pub mod part;
pub mod prepare;
pub mod read;
mod room;
pub mod scale;
mod scaled;
mod sketch;
mod split;
pub mod standard;
pub mod store;
pub mod summary;
mod symmetry;
pub mod synth;
pub mod transform;
mod undeclared;
pub mod weighted;
mod weights;
pub mod write;

pub use atomic::AtomicFile;
pub use buffer::{Buffer, Owner};
pub use builder::DatasetBuilder;
pub use dataset::{Dataset, DatasetParts, UNLABELLED};
pub use error::{Error, Place, Problem, Result};
pub use features::Features;
pub use graph::Graph;
pub use graph_builder::{GraphBuilder, GraphFiller};
pub use ids::NodeIds;
pub use scale::{NumberColumn, Preparation};
pub use scaled::Scaled;
pub use sketch::{PARTS, SKETCHES, Sketch};
pub use split::{Part, Ratios, Split};
pub use undeclared::{ReadOff, Undeclared};
