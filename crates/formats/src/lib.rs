#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod named;
pub mod read;
pub mod write;

use progap_graph::{
    AtomicFile, AtomicFolder, Buffer, Dataset, DatasetParts, EdgeWeights, Error, Features, Graph,
    GraphBuilder, InFile, NoColumn, NoColumns, NodeIds, NumberColumn, Part, Place, Problem, Ratios, ReadOff,
    Remedy, Result, Split, UNLABELLED, Undeclared, check_offsets, file, order, prepare, room, scale, single,
    store, synth, transform,
};
