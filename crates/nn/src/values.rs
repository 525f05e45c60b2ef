//! The values of a layout: how they start, go by name, and look padded. What every kind of model shares.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::aligned::Aligned;
use crate::error::{Error, Result, check_length};
use crate::layer::batch_norm::EPSILON;
use crate::layer::linear::Weights;
use crate::layer::norm::NormLayer;
use crate::layout::{Layout, Start, Tensor as Place, padded_width};
use crate::network::Tensor;

/// Defines the methods of a model that give and take its state: all parameters, and the running statistics.
macro_rules! state_methods {
    ($model:ident, $architecture:ident) => {
        impl $model {
            /// A model with a given state; every tensor must be there, and no other.
            pub fn from_state<'a>(
                architecture: $architecture,
                state: impl IntoIterator<Item = $crate::Tensor<'a>>,
            ) -> $crate::Result<Self> {
                let mut model = $model::new(architecture, 0)?;
                model.load_state(state)?;
                Ok(model)
            }

            /// The shape.
            pub fn architecture(&self) -> &$architecture {
                &self.architecture
            }

            /// All parameters.
            pub fn parameters(&self) -> &[f32] {
                &self.values.parameters
            }

            /// All parameters, to write to.
            pub fn parameters_mut(&mut self) -> &mut [f32] {
                &mut self.values.parameters
            }

            /// The number of parameters.
            pub fn parameter_count(&self) -> usize {
                self.values.parameters.len()
            }

            /// The running mean and variance of every batch normalisation.
            pub fn statistics(&self) -> &[f32] {
                &self.values.statistics
            }

            /// Every parameter and running statistic, by name.
            pub fn state(&self) -> Vec<$crate::Tensor<'_>> {
                self.values.tensors()
            }

            /// Takes over a state; every tensor must be there, and no other. On an error nothing is changed.
            pub fn load_state<'a>(
                &mut self,
                state: impl IntoIterator<Item = $crate::Tensor<'a>>,
            ) -> $crate::Result<()> {
                self.values.load(state)
            }
        }
    };
}
pub(crate) use state_methods;

/// Parameters, and the running statistics of batch normalisation.
#[derive(Debug, Clone)]
pub(crate) struct Values {
    pub layout: Layout,
    pub parameters: Vec<f32>,
    pub statistics: Vec<f32>,
}

impl Values {
    /// As PyTorch's start, drawn with a generator that is not secret.
    pub fn new(layout: Layout, seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut start = |places: &[Place]| {
            let mut values = vec![0.0; places.last().map_or(0, |place| place.range.end)];
            for place in places {
                for value in &mut values[place.range.clone()] {
                    *value = match place.start {
                        Start::Constant(value) => value,
                        // 24 bits in [-1, 1).
                        Start::Uniform(bound) => ((rng.next_u64() >> 40) as f32 / 8_388_608.0 - 1.0) * bound,
                    };
                }
            }
            values
        };
        let (parameters, statistics) = (start(&layout.tensors), start(&layout.statistics));
        Values { layout, parameters, statistics }
    }

    /// Every tensor, by name.
    pub fn tensors(&self) -> Vec<Tensor<'_>> {
        let parts = [(&self.layout.tensors, &self.parameters), (&self.layout.statistics, &self.statistics)];
        parts
            .into_iter()
            .flat_map(|(places, values)| {
                places.iter().map(|place| Tensor {
                    name: &place.name,
                    shape: &place.shape,
                    values: &values[place.range.clone()],
                })
            })
            .collect()
    }

    /// Takes over all tensors; every one must be there, and no other. On an error nothing is changed.
    pub fn load<'a>(&mut self, tensors: impl IntoIterator<Item = Tensor<'a>>) -> Result<()> {
        let mut loaded = self.clone();
        let mut missing: std::collections::BTreeSet<String> =
            self.tensors().iter().map(|tensor| tensor.name.to_string()).collect();
        for tensor in tensors {
            loaded.store(&tensor)?;
            missing.remove(tensor.name);
        }
        if let Some(name) = missing.pop_first() {
            return Err(Error::MissingTensor(name));
        }
        *self = loaded;
        Ok(())
    }

    /// Takes over one tensor.
    pub fn store(&mut self, tensor: &Tensor<'_>) -> Result<()> {
        let named = |places: &'_ [Place]| places.iter().position(|place| place.name == tensor.name);
        let (place, values) = match (named(&self.layout.tensors), named(&self.layout.statistics)) {
            (Some(i), _) => (&self.layout.tensors[i], &mut self.parameters),
            (_, Some(i)) => (&self.layout.statistics[i], &mut self.statistics),
            _ => return Err(Error::UnknownTensor(tensor.name.into())),
        };
        if place.shape != tensor.shape {
            let (found, expected) = (tensor.shape.to_vec(), place.shape.clone());
            return Err(Error::Shape { name: tensor.name.into(), found, expected });
        }
        check_length(format_args!("tensor {:?}", tensor.name), tensor.values.len(), place.range.len())?;
        values[place.range.clone()].copy_from_slice(tensor.values);
        Ok(())
    }

    /// The weights of a linear layer, padded; with their transpose where gradients need it.
    pub fn weights(&self, slot: usize, gradients: bool) -> Weights {
        let slot = &self.layout.linears[slot];
        let (inputs, outputs) = (slot.inputs_padded, slot.outputs_padded);
        let weights = &self.parameters[slot.weight.clone()];
        let transpose = gradients && slot.needs_transposed;
        let mut w = Aligned::zeros(inputs * outputs);
        let mut transposed = Aligned::zeros(if transpose { inputs * slot.outputs } else { 0 });
        for (column, row) in slot.input_rows() {
            let from = &weights[row * slot.outputs..][..slot.outputs];
            w[column * outputs..][..slot.outputs].copy_from_slice(from);
            if transpose {
                for (k, &value) in from.iter().enumerate() {
                    transposed[k * inputs + column] = value;
                }
            }
        }
        let b = padded(&self.parameters[slot.bias.clone()], outputs);
        Weights { w, b, transposed, inputs, outputs }
    }

    /// The norm after layer `i`, with running statistics if it has any.
    pub fn norm_layer(&self, i: usize) -> NormLayer {
        let (layout, columns) = (&self.layout, padded_width(self.layout.hidden));
        let mut norm = NormLayer { width: layout.hidden, columns, ..NormLayer::default() };
        let Some([gamma, beta]) = layout.norm_vectors(i) else { return norm };
        norm.kind = layout.norm;
        let vector = |slot: usize| padded(&self.parameters[layout.vectors[slot].range.clone()], columns);
        (norm.gamma, norm.beta) = (vector(gamma), vector(beta));
        if let [mean, variance] = layout.running(i) {
            norm.mean = padded(&self.statistics[mean.range.clone()], columns);
            let variance = self.statistics[variance.range.clone()].iter();
            let inverse: Vec<f32> =
                variance.map(|&v| (1.0 / (f64::from(v) + EPSILON).sqrt()) as f32).collect();
            norm.inverse = padded(&inverse, columns);
        }
        norm
    }
}

fn padded(values: &[f32], length: usize) -> Vec<f32> {
    let mut padded = values.to_vec();
    padded.resize(length, 0.0);
    padded
}
