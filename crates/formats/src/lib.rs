#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod named;
pub mod read;
pub mod write;

use progap_graph::{
    AtomicFile, AtomicFolder, Buffer, Dataset, DatasetParts, EdgeWeights, Error, Features, Graph,
    GraphBuilder, InFile, InferenceKind, InferredSchema, NoColumn, NoColumns, NodeIds, NumberColumn, Part,
    Place, Problem, Ratios, Remedy, Result, Split, UNLABELLED, check_offsets, file, order, prepare, room,
    scale, single, store, synth, transform,
};
