//! Named parameters and running statistics, and their padded form.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::SageArchitecture;
use crate::error::{Error, Result, check_length};
use crate::jk::Jk;
use crate::kernel;
use crate::layer::Norm;
use crate::layer::batch_norm::{Columns, EPSILON};
use crate::layer::linear::Weights;
use crate::layout::{Layout, Start, Tensor as Place, hidden_padded};
use crate::network::Tensor;

/// Block `i` has the linear layer `i`, the norm's vectors `2i` and `2i + 1`, and the statistics of the same numbers; the
/// last linear layer follows them all.
pub(super) fn layout(arch: &SageArchitecture) -> Layout {
    let mut layout = Layout::empty();
    let (hidden, wide) = (arch.hidden, hidden_padded(arch.hidden));
    let last = arch.head_layers - 1;
    for block in 0..arch.blocks() {
        let hop = block.wrapping_sub(arch.base_layers);
        let (name, groups) = match block {
            _ if block < arch.base_layers => (format!("base.{block}"), 1),
            _ if hop < arch.convolutions => (format!("convolutions.{hop}"), 2),
            _ if hop == arch.convolutions => {
                ("joint".into(), if arch.jk == Jk::Cat { arch.convolutions } else { 1 })
            }
            _ => (format!("head.{}", hop - arch.convolutions - 1), 1),
        };
        let (group, inputs) = if block == 0 {
            ((arch.inputs, arch.inputs), arch.inputs)
        } else {
            ((hidden, wide), groups * hidden)
        };
        layout.linear(&name, group, inputs, (hidden, wide), Some(0));
        if arch.hops().contains(&block) {
            let start = Start::Uniform(1.0 / (hidden as f32).sqrt());
            layout.start_last(start, start);
        }
        layout.linears[block].needs_transposed = block > 0;
        if arch.norm != Norm::None {
            layout.vector(&format!("{name}.norm.weight"), hidden, Start::Constant(1.0), Some(0));
            layout.vector(&format!("{name}.norm.bias"), hidden, Start::Constant(0.0), Some(0));
        }
        if arch.norm == Norm::Batch {
            for (what, start) in [("running_mean", 0.0), ("running_var", 1.0)] {
                let at = layout.statistics.len() * hidden;
                layout.statistics.push(Place {
                    name: format!("{name}.norm.{what}"),
                    shape: vec![hidden],
                    range: at..at + hidden,
                    start: Start::Constant(start),
                    branch: Some(0),
                });
            }
        }
    }
    layout.linear(
        &format!("head.{last}"),
        (hidden, wide),
        hidden,
        (arch.classes, kernel::padded(arch.classes)),
        None,
    );
    layout
}

#[derive(Debug, Clone)]
pub(super) struct State {
    pub layout: Layout,
    pub parameters: Vec<f32>,
    pub statistics: Vec<f32>,
}

impl State {
    pub fn new(layout: Layout, seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut start = |tensors: &[Place]| {
            let mut values = vec![];
            for tensor in tensors {
                values.extend(tensor.range.clone().map(|_| match tensor.start {
                    Start::Constant(value) => value,
                    // 24 bits in [-1, 1).
                    Start::Uniform(bound) => ((rng.next_u64() >> 40) as f32 / 8_388_608.0 - 1.0) * bound,
                }));
            }
            values
        };
        let (parameters, statistics) = (start(&layout.tensors), start(&layout.statistics));
        State { layout, parameters, statistics }
    }

    pub fn tensors(&self) -> Vec<Tensor<'_>> {
        let parts = [(&self.layout.tensors, &self.parameters), (&self.layout.statistics, &self.statistics)];
        parts
            .into_iter()
            .flat_map(|(places, values)| {
                places.iter().map(|p| Tensor {
                    name: &p.name,
                    shape: &p.shape,
                    values: &values[p.range.clone()],
                })
            })
            .collect()
    }

    pub fn load<'a>(&mut self, state: impl IntoIterator<Item = Tensor<'a>>) -> Result<()> {
        let (mut parameters, mut statistics) = (self.parameters.clone(), self.statistics.clone());
        let mut missing: std::collections::BTreeSet<&str> =
            self.layout.tensors.iter().chain(&self.layout.statistics).map(|p| &p.name[..]).collect();
        for tensor in state {
            let named = |places: &'_ [Place]| places.iter().position(|p| p.name == tensor.name);
            let (place, values) = match (named(&self.layout.tensors), named(&self.layout.statistics)) {
                (Some(i), _) => (&self.layout.tensors[i], &mut parameters),
                (_, Some(i)) => (&self.layout.statistics[i], &mut statistics),
                _ => return Err(Error::UnknownTensor(tensor.name.into())),
            };
            if place.shape != tensor.shape {
                let (found, expected) = (tensor.shape.to_vec(), place.shape.clone());
                return Err(Error::Shape { name: tensor.name.into(), found, expected });
            }
            check_length(format!("tensor {:?}", tensor.name), tensor.values.len(), place.range.len())?;
            values[place.range.clone()].copy_from_slice(tensor.values);
            missing.remove(tensor.name);
        }
        if let Some(name) = missing.pop_first() {
            return Err(Error::MissingTensor(name.into()));
        }
        (self.parameters, self.statistics) = (parameters, statistics);
        Ok(())
    }

    /// The weights of a linear layer, padded; with their transpose where gradients need it.
    pub fn weights(&self, slot: usize, gradients: bool) -> Weights {
        let slot = &self.layout.linears[slot];
        let (inputs, outputs) = (slot.inputs_padded, slot.outputs_padded);
        let transpose = gradients && slot.needs_transposed;
        let mut w = vec![0.0; inputs * outputs];
        let mut transposed = vec![0.0; if transpose { inputs * outputs } else { 0 }];
        for (column, row) in slot.input_rows() {
            let from = &self.parameters[slot.weight.start + row * slot.outputs..][..slot.outputs];
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

    /// What a block's norm needs, with running statistics if it has any.
    pub fn norm(&self, block: usize) -> Columns {
        let Some([gamma, beta]) =
            self.layout.vectors.get(2 * block..2 * block + 2).and_then(|v| v.first_chunk())
        else {
            return Columns::default();
        };
        let wide = gamma.padded;
        let mut columns = Columns {
            gamma: padded(&self.parameters[gamma.range.clone()], wide),
            beta: padded(&self.parameters[beta.range.clone()], wide),
            ..Columns::default()
        };
        if let Some([mean, variance]) =
            self.layout.statistics.get(2 * block..2 * block + 2).and_then(|s| s.first_chunk())
        {
            columns.mean = padded(&self.statistics[mean.range.clone()], wide);
            let variance = self.statistics[variance.range.clone()].iter();
            let inverse: Vec<f32> =
                variance.map(|&v| (1.0 / (f64::from(v) + EPSILON).sqrt()) as f32).collect();
            columns.inverse = padded(&inverse, wide);
        }
        columns
    }
}

fn padded(values: &[f32], length: usize) -> Vec<f32> {
    let mut padded = values.to_vec();
    padded.resize(length, 0.0);
    padded
}
