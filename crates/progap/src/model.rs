//! What is trained: one of the networks of crates/nn, kept and loaded by name.

use progap_nn::{Architecture, Network, Sage, SageArchitecture};

use crate::files::Tensors;
use crate::{Error, Result};

/// The shape of a model, known from the settings and public sizes alone.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Branches over rows: ProGAP's stages, GAP's parts, perceptrons.
    Network(Architecture),
    /// GraphSAGE: rows that are mixed with their neighbours', layer by layer.
    Sage(SageArchitecture),
}

/// A model.
#[derive(Debug, Clone)]
pub enum Model {
    /// Branches over rows.
    Network(Network),
    /// GraphSAGE.
    Sage(Sage),
}

const NOT_A_NETWORK: Error = Error::Contradiction("the model is no network over rows");
const NOT_A_SAGE: Error = Error::Contradiction("the model is no GraphSAGE");

impl Model {
    /// A model with initial values drawn from a seed.
    pub fn new(shape: Shape, seed: u64) -> Result<Model> {
        match shape {
            Shape::Network(architecture) => Ok(Model::Network(Network::new(architecture, seed)?)),
            Shape::Sage(architecture) => Ok(Model::Sage(Sage::new(architecture, seed)?)),
        }
    }

    /// The model as a network over rows.
    pub fn network(&self) -> Result<&Network> {
        match self {
            Model::Network(network) => Ok(network),
            Model::Sage(_) => Err(NOT_A_NETWORK),
        }
    }

    /// As [`Model::network`], to change.
    pub fn network_mut(&mut self) -> Result<&mut Network> {
        match self {
            Model::Network(network) => Ok(network),
            Model::Sage(_) => Err(NOT_A_NETWORK),
        }
    }

    /// The model as a GraphSAGE.
    pub fn sage(&self) -> Result<&Sage> {
        match self {
            Model::Sage(sage) => Ok(sage),
            Model::Network(_) => Err(NOT_A_SAGE),
        }
    }

    /// As [`Model::sage`], to change.
    pub fn sage_mut(&mut self) -> Result<&mut Sage> {
        match self {
            Model::Sage(sage) => Ok(sage),
            Model::Network(_) => Err(NOT_A_SAGE),
        }
    }

    /// The number of parameters.
    pub fn parameter_count(&self) -> usize {
        match self {
            Model::Network(network) => network.parameter_count(),
            Model::Sage(sage) => sage.parameter_count(),
        }
    }

    /// Whether every parameter, and every statistic of a norm, is a finite number.
    pub fn is_finite(&self) -> bool {
        let state = match self {
            Model::Network(network) => network.state(),
            Model::Sage(sage) => sage.state(),
        };
        state.iter().all(|tensor| tensor.values.iter().all(|value| value.is_finite()))
    }

    pub(crate) fn add_to(&self, tensors: &mut Tensors, prefix: &str) {
        match self {
            Model::Network(network) => tensors.add(prefix, network.state()),
            Model::Sage(sage) => tensors.add(prefix, sage.state()),
        }
    }

    pub(crate) fn from(tensors: &Tensors, prefix: &str, shape: Shape) -> Result<Model> {
        match shape {
            Shape::Network(architecture) => {
                Ok(Model::Network(Network::from_state(architecture, tensors.under(prefix))?))
            }
            Shape::Sage(architecture) => {
                Ok(Model::Sage(Sage::from_state(architecture, tensors.under(prefix))?))
            }
        }
    }
}
