//! The models: networks of crates/nn, kept and loaded by name.

pub mod addressed;
pub mod assessment;
pub mod calibration;
pub mod predictor;
pub mod views;

use progap_nn::{
    Activation, Architecture, Inputs, Jk, Network, Norm, NormPlacement, Sage, SageArchitecture, probabilities,
};
use serde::{Deserialize, Serialize};

use crate::addressed::{Addressed, AddressedShape};
use crate::files::Tensors;
use crate::settings::{Combination, Nonlinearity};
use crate::views::{SumShape, Views, ViewsShape};
use crate::{Error, ErrorKind, Result};

/// The shape of a model, known from the settings and public sizes alone.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Branches over rows: ProGAP's stages, GAP's parts, perceptrons.
    Network(Architecture),
    /// GraphSAGE: rows that are mixed with their neighbours', layer by layer.
    Sage(SageArchitecture),
    /// Two views: features, and noisy sums.
    Views(ViewsShape),
    /// Two views: features, and addressed sums.
    Addressed(AddressedShape),
}

/// A model.
#[derive(Debug, Clone)]
pub enum Model {
    /// Branches over rows.
    Network(Network),
    /// GraphSAGE.
    Sage(Sage),
    /// Two views: features, and noisy sums.
    Views(Views),
    /// Two views: features, and addressed sums.
    Addressed(Addressed),
}

const NOT_A_NETWORK: ErrorKind = ErrorKind::Internal("the model is no network over rows");
const NOT_A_SAGE: ErrorKind = ErrorKind::Internal("the model is no GraphSAGE");
const NOT_VIEWS: ErrorKind = ErrorKind::Internal("the model is none of two views");

impl Model {
    /// A model with initial values drawn from a seed.
    pub fn new(shape: Shape, seed: u64) -> Result<Model> {
        match shape {
            Shape::Network(architecture) => Ok(Model::Network(Network::new(architecture, seed)?)),
            Shape::Sage(architecture) => Ok(Model::Sage(Sage::new(architecture, seed)?)),
            Shape::Views(_) | Shape::Addressed(_) => {
                Err(Error::internal("a model of two views has no initial values: it is fitted"))
            }
        }
    }

    /// The model as a network over rows.
    pub fn network(&self) -> Result<&Network> {
        match self {
            Model::Network(network) => Ok(network),
            _ => Err(NOT_A_NETWORK.into()),
        }
    }

    /// As [`Model::network`], to change.
    pub fn network_mut(&mut self) -> Result<&mut Network> {
        match self {
            Model::Network(network) => Ok(network),
            _ => Err(NOT_A_NETWORK.into()),
        }
    }

    /// The model as a GraphSAGE.
    pub fn sage(&self) -> Result<&Sage> {
        match self {
            Model::Sage(sage) => Ok(sage),
            _ => Err(NOT_A_SAGE.into()),
        }
    }

    /// As [`Model::sage`], to change.
    pub fn sage_mut(&mut self) -> Result<&mut Sage> {
        match self {
            Model::Sage(sage) => Ok(sage),
            _ => Err(NOT_A_SAGE.into()),
        }
    }

    /// The model as one of two views.
    pub fn views(&self) -> Result<&Views> {
        match self {
            Model::Views(views) => Ok(views),
            _ => Err(NOT_VIEWS.into()),
        }
    }

    /// The probability of each class for some nodes, row after row; `inputs` are the rows and the aggregates.
    pub fn probabilities(&self, inputs: &Inputs<'_>, nodes: &[u32]) -> Result<Vec<f32>> {
        match self {
            Model::Network(network) => Ok(probabilities(network, inputs, nodes)?),
            Model::Views(views) => views.probabilities(inputs, nodes),
            Model::Addressed(model) => model.probabilities(inputs, nodes),
            Model::Sage(_) => Err(NOT_A_NETWORK.into()),
        }
    }

    /// Adds a number to the logarithm of each class's odds, where the model is made to be balanced after it is trained.
    pub fn shift_logits(&mut self, by: &[f32]) -> Result<()> {
        match self {
            Model::Network(network) => Ok(network.shift_logits(by)?),
            Model::Addressed(model) => model.shift_logits(by),
            _ => Err(NOT_A_NETWORK.into()),
        }
    }

    /// Whether every parameter, and every statistic of a norm, is a finite number.
    pub fn is_finite(&self) -> bool {
        let state = match self {
            Model::Network(network) => network.state(),
            Model::Sage(sage) => sage.state(),
            Model::Views(views) => return views.is_finite(),
            Model::Addressed(model) => return model.is_finite(),
        };
        state.iter().all(|tensor| tensor.values.iter().all(|value| value.is_finite()))
    }

    pub fn add_to(&self, tensors: &mut Tensors, prefix: &str) {
        match self {
            Model::Network(network) => tensors.add(prefix, network.state()),
            Model::Sage(sage) => tensors.add(prefix, sage.state()),
            Model::Views(views) => views.add_to(tensors, prefix),
            Model::Addressed(model) => model.add_to(tensors, prefix),
        }
    }

    /// A model of a shape, with the tensors under a prefix.
    ///
    /// # Errors
    /// Tensors that are not those of the shape. A shape with more parameters than the file holds is refused before any
    /// memory is taken for it.
    pub fn from(tensors: &Tensors, prefix: &str, shape: Shape) -> Result<Model> {
        let there: usize = tensors.under(prefix).map(|tensor| tensor.values.len()).sum();
        if shape.parameter_count()? > there {
            return Err(Error::unsuitable(format!(
                "the file of the model holds {there} numbers, fewer than a model of its shape has: it was damaged or \
                 changed"
            )));
        }
        match shape {
            Shape::Network(architecture) => {
                Ok(Model::Network(Network::from_state(architecture, tensors.under(prefix))?))
            }
            Shape::Sage(architecture) => {
                Ok(Model::Sage(Sage::from_state(architecture, tensors.under(prefix))?))
            }
            Shape::Views(shape) => Ok(Model::Views(Views::from(tensors, prefix, shape)?)),
            Shape::Addressed(shape) => Ok(Model::Addressed(Addressed::from(tensors, prefix, shape)?)),
        }
    }

    /// The shape.
    pub fn shape(&self) -> Shape {
        match self {
            Model::Network(network) => Shape::Network(network.architecture().clone()),
            Model::Sage(sage) => Shape::Sage(sage.architecture().clone()),
            Model::Views(views) => Shape::Views(views.shape().clone()),
            Model::Addressed(model) => Shape::Addressed(model.shape().clone()),
        }
    }
}

impl Shape {
    /// The most parameters of a model of this shape, where the shape leaves their number to the fit.
    ///
    /// # Errors
    /// A shape that no model has.
    pub fn max_parameters(&self) -> Result<usize> {
        match self {
            Shape::Views(shape) => shape.max_parameters(),
            _ => self.parameter_count(),
        }
    }

    /// The number of parameters, without the memory for any of them; the fewest, where the shape leaves their number to
    /// the fit.
    ///
    /// # Errors
    /// A shape that no model has.
    pub fn parameter_count(&self) -> Result<usize> {
        Ok(match self {
            Shape::Network(architecture) => architecture.parameter_count()?,
            Shape::Sage(architecture) => architecture.parameter_count()?,
            Shape::Views(shape) => shape.parameter_count()?,
            Shape::Addressed(shape) => shape.parameter_count()?,
        })
    }
}

/// A shape as it is written beside the parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum WrittenShape {
    /// Branches over inputs.
    Network {
        inputs: Vec<usize>,
        hidden: usize,
        layers: usize,
        activation: String,
        norm: String,
        dropout: f32,
        jk: String,
        normalise: bool,
        norm_placement: String,
        classes: usize,
    },
    /// GraphSAGE.
    Sage {
        inputs: usize,
        hidden: usize,
        base_layers: usize,
        convolutions: usize,
        head_layers: usize,
        activation: String,
        norm: String,
        dropout: f32,
        jk: String,
        normalise: bool,
        classes: usize,
    },
    /// Two views.
    Views { columns: usize, classes: usize, hidden: usize, sums: Vec<WrittenSum>, directions: bool },
    /// Two views with addressed sums; the network of the features, where there is one.
    Addressed { columns: usize, classes: usize, network: Option<Box<WrittenShape>>, sums: usize },
}

/// The parts of a sum that a model of two views reads: how many classes, and how many features; a constant stands
/// between them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenSum {
    classes: usize,
    features: usize,
}

const NORMS: [(&str, Norm); 3] = [("none", Norm::None), ("batch", Norm::Batch), ("group", Norm::Group)];
const PLACEMENTS: [(&str, NormPlacement); 2] =
    [("per-branch", NormPlacement::PerBranch), ("after-join", NormPlacement::AfterJoin)];

/// The settings' names of activations.
fn activations() -> Vec<(&'static str, Activation)> {
    Nonlinearity::ALL.iter().map(|choice| (choice.name(), choice.layer())).collect()
}

/// The settings' names of combinations.
fn combinations() -> Vec<(&'static str, Jk)> {
    Combination::ALL.iter().map(|choice| (choice.name(), choice.layer())).collect()
}

fn name_of<T: PartialEq>(list: &[(&'static str, T)], value: &T) -> String {
    list.iter().find(|(_, other)| other == value).map_or("unknown", |(name, _)| name).into()
}

fn named<T: Copy>(list: &[(&'static str, T)], name: &str) -> Result<T> {
    list.iter().find(|(other, _)| *other == name).map(|(_, value)| *value).ok_or_else(unknown_shape)
}

fn unknown_shape() -> Error {
    Error::unsuitable("the shape of the model has a part that is not known here: it was damaged or changed")
}

impl WrittenShape {
    /// How a shape is written.
    pub fn of(shape: &Shape) -> WrittenShape {
        match shape {
            Shape::Network(a) => WrittenShape::Network {
                inputs: a.inputs.clone(),
                hidden: a.hidden,
                layers: a.layers,
                activation: name_of(&activations(), &a.activation),
                norm: name_of(&NORMS, &a.norm),
                dropout: a.dropout,
                jk: name_of(&combinations(), &a.jk),
                normalise: a.normalise,
                norm_placement: name_of(&PLACEMENTS, &a.norm_placement),
                classes: a.classes,
            },
            Shape::Sage(a) => WrittenShape::Sage {
                inputs: a.inputs,
                hidden: a.hidden,
                base_layers: a.base_layers,
                convolutions: a.convolutions,
                head_layers: a.head_layers,
                activation: name_of(&activations(), &a.activation),
                norm: name_of(&NORMS, &a.norm),
                dropout: a.dropout,
                jk: name_of(&combinations(), &a.jk),
                normalise: a.normalise,
                classes: a.classes,
            },
            Shape::Views(ViewsShape { columns, classes, hidden, sums, directions }) => {
                let sum = |&SumShape { classes, features }: &SumShape| WrittenSum { classes, features };
                let sums = sums.iter().map(sum).collect();
                let (columns, classes, hidden, directions) = (*columns, *classes, *hidden, *directions);
                WrittenShape::Views { columns, classes, hidden, sums, directions }
            }
            Shape::Addressed(AddressedShape { columns, classes, network, sums }) => WrittenShape::Addressed {
                columns: *columns,
                classes: *classes,
                network: network.clone().map(|network| Box::new(WrittenShape::of(&Shape::Network(network)))),
                sums: *sums,
            },
        }
    }

    /// The shape that is written.
    ///
    /// # Errors
    /// Parts that are not known here.
    pub fn shape(&self) -> Result<Shape> {
        Ok(match self {
            WrittenShape::Network {
                inputs,
                hidden,
                layers,
                activation,
                norm,
                dropout,
                jk,
                normalise,
                norm_placement,
                classes,
            } => Shape::Network(Architecture {
                hidden: *hidden,
                layers: *layers,
                activation: named(&activations(), activation)?,
                norm: named(&NORMS, norm)?,
                dropout: *dropout,
                jk: named(&combinations(), jk)?,
                normalise: *normalise,
                norm_placement: named(&PLACEMENTS, norm_placement)?,
                ..Architecture::new(inputs.clone(), *classes)
            }),
            WrittenShape::Sage {
                inputs,
                hidden,
                base_layers,
                convolutions,
                head_layers,
                activation,
                norm,
                dropout,
                jk,
                normalise,
                classes,
            } => Shape::Sage(SageArchitecture {
                hidden: *hidden,
                base_layers: *base_layers,
                convolutions: *convolutions,
                head_layers: *head_layers,
                activation: named(&activations(), activation)?,
                norm: named(&NORMS, norm)?,
                dropout: *dropout,
                jk: named(&combinations(), jk)?,
                normalise: *normalise,
                ..SageArchitecture::new(*inputs, *classes)
            }),
            WrittenShape::Views { columns, classes, hidden, sums, directions } => {
                let sum = |&WrittenSum { classes, features }: &WrittenSum| SumShape { classes, features };
                let sums = sums.iter().map(sum).collect();
                let (columns, classes, hidden, directions) = (*columns, *classes, *hidden, *directions);
                Shape::Views(ViewsShape { columns, classes, hidden, sums, directions })
            }
            WrittenShape::Addressed { columns, classes, network, sums } => {
                let network = match network.as_deref() {
                    None => None,
                    Some(written) => match written.shape()? {
                        Shape::Network(network) => Some(network),
                        _ => return Err(unknown_shape()),
                    },
                };
                Shape::Addressed(AddressedShape {
                    columns: *columns,
                    classes: *classes,
                    network,
                    sums: *sums,
                })
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_read_as_it_was_written_and_a_hostile_one_takes_no_memory() {
        let network = Architecture { jk: Jk::Max, ..Architecture::new(vec![7, 5], 3) };
        let views = ViewsShape {
            columns: 9,
            classes: 3,
            hidden: 8,
            sums: vec![SumShape { classes: 3, features: 4 }, SumShape { classes: 0, features: 4 }],
            directions: true,
        };
        for shape in [
            Shape::Network(network.clone()),
            Shape::Sage(SageArchitecture::new(9, 2)),
            Shape::Views(views.clone()),
        ] {
            let text = serde_json::to_string(&WrittenShape::of(&shape)).expect("JSON");
            let read: WrittenShape = serde_json::from_str(&text).expect("a shape");
            assert_eq!(read.shape().expect("known"), shape);
        }
        // 64 inputs of 16 million columns would be 64 GB at the smallest width.
        let hostile = Architecture { inputs: vec![1 << 24; 64], hidden: 1024, ..network };
        let refused = Model::from(&Tensors::default(), "", Shape::Network(hostile)).expect_err("refused");
        assert!(refused.to_string().contains("damaged"), "{refused}");
        for hostile in [
            ViewsShape { columns: usize::MAX, ..views.clone() },
            ViewsShape { classes: 0, ..views.clone() },
            ViewsShape { sums: vec![SumShape { classes: 3, features: usize::MAX / 2 }], ..views.clone() },
            ViewsShape { sums: vec![SumShape { classes: 0, features: 2 }], ..views.clone() },
            ViewsShape { sums: vec![views.sums[0]; 65], ..views.clone() },
            ViewsShape { classes: 1 << 16, ..views },
        ] {
            assert!(Model::from(&Tensors::default(), "", Shape::Views(hostile)).is_err());
        }
        let unknown = serde_json::json!({ "kind": "sage", "inputs": 1, "hidden": 1, "base_layers": 1, "convolutions": 1,
            "head_layers": 1, "activation": "?", "norm": "none", "dropout": 0.0, "jk": "cat", "normalise": true, "classes": 2 });
        let unknown: WrittenShape = serde_json::from_value(unknown).expect("a shape");
        assert!(unknown.shape().is_err());
    }
}
