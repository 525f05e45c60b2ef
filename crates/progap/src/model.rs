//! What is trained: one of the networks of crates/nn, kept and loaded by name.

use progap_nn::{Architecture, Network};

use crate::Result;
use crate::files::Tensors;

/// The shape of a model, known from the settings and public sizes alone.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Branches over rows: ProGAP's stages, GAP's parts, perceptrons.
    Network(Architecture),
}

/// A model.
#[derive(Debug, Clone)]
pub enum Model {
    /// Branches over rows.
    Network(Network),
}

impl Model {
    /// A model with initial values drawn from a seed.
    pub fn new(shape: Shape, seed: u64) -> Result<Model> {
        match shape {
            Shape::Network(architecture) => Ok(Model::Network(Network::new(architecture, seed)?)),
        }
    }

    /// The model as a network over rows.
    pub fn network(&self) -> &Network {
        match self {
            Model::Network(network) => network,
        }
    }

    /// As [`Model::network`], to change.
    pub fn network_mut(&mut self) -> &mut Network {
        match self {
            Model::Network(network) => network,
        }
    }

    pub(crate) fn add_to(&self, tensors: &mut Tensors, prefix: &str) {
        match self {
            Model::Network(network) => tensors.add_network(prefix, network),
        }
    }

    pub(crate) fn from(tensors: &Tensors, prefix: &str, shape: Shape) -> Result<Model> {
        match shape {
            Shape::Network(architecture) => Ok(Model::Network(tensors.network(prefix, architecture)?)),
        }
    }
}
