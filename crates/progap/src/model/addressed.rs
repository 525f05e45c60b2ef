//! A model of addressed sums: what a node's features say of its class, times what noisy sums say, whose noise is known
//! row by row.

use progap_nn::{
    Architecture, Input, Inputs, Network, RowScaling, Softmax, SoftmaxShape, Tensor, logits as network_logits,
};

use crate::error::ErrorKind;
use crate::files::Tensors;
use crate::views::log_softmax;
use crate::{Error, Result};

/// The shape of [`Addressed`], known from the settings and public sizes alone.
#[derive(Debug, Clone, PartialEq)]
pub struct AddressedShape {
    /// Feature columns.
    pub columns: usize,
    /// Classes.
    pub classes: usize,
    /// The network that reads the features; a linear model where there is none.
    pub network: Option<Architecture>,
    /// Sums that are read; none where the features speak alone. Each has a column for every class, and the weight of
    /// its receiver.
    pub sums: usize,
}

impl AddressedShape {
    /// Features with more columns are divided by the length of each row.
    pub const RICH: usize = 600;

    fn linear(&self) -> SoftmaxShape {
        let scaling = if self.columns > Self::RICH { RowScaling::WeightedUnit } else { RowScaling::None };
        SoftmaxShape { inputs: vec![self.columns], hidden: 0, classes: self.classes, scaling }
    }

    fn of_sums(&self) -> SoftmaxShape {
        let inputs = vec![self.classes * self.sums];
        SoftmaxShape { inputs, hidden: 0, classes: self.classes, scaling: RowScaling::None }
    }

    /// The number of parameters.
    ///
    /// # Errors
    /// A shape that no model has.
    pub fn parameter_count(&self) -> Result<usize> {
        let possible =
            self.columns <= 1 << 24 && (1..=1 << 12).contains(&self.classes) && self.sums <= MAX_SUMS;
        if !possible {
            return Err(Error::unsuitable("no model of addressed sums has such a shape"));
        }
        let features = match &self.network {
            Some(network) => network.parameter_count()?,
            None => self.linear().parameter_count(),
        };
        let sum = self.classes * (self.classes + 2) + 2;
        let view = if self.sums == 0 { 0 } else { self.of_sums().parameter_count() + self.classes };
        Ok(features + self.sums * sum + view)
    }
}

/// More sums than any model reads.
const MAX_SUMS: usize = 64;

/// What the features say.
#[derive(Debug, Clone)]
pub enum FeatureModel {
    /// Made of sums over classes.
    Linear(Softmax),
    /// Trained by noisy gradients.
    Network(Box<Network>),
}

/// How a sum is read: as the mean of what it may be, given the noise of its row (a normal prior over all rows, normal
/// noise).
#[derive(Debug, Clone, PartialEq)]
pub struct Posterior {
    /// The mean of all rows.
    pub mean: Vec<f32>,
    /// The directions in which rows vary, each a column of a matrix with a row for each class.
    pub basis: Vec<f32>,
    /// By how much they vary in each, without the noise.
    pub variances: Vec<f32>,
    /// The deviation of the noise of a receiver of weight one.
    pub noise: f32,
    /// Rows are divided by this in the end.
    pub scale: f32,
}

impl Posterior {
    /// Reads a row of an aggregate: sums, and the receiver's weight, by which the row was multiplied. Without a weight
    /// nothing is known.
    pub fn read(&self, row: &[f32], out: &mut Vec<f32>) {
        let classes = self.mean.len();
        let weight = f64::from(row[classes]);
        let first = out.len();
        out.extend_from_slice(&self.mean);
        if weight > 0.0 {
            let noise = (f64::from(self.noise) / weight).powi(2);
            let centred: Vec<f64> = row[..classes]
                .iter()
                .zip(&self.mean)
                .map(|(v, m)| f64::from(*v) / weight - f64::from(*m))
                .collect();
            for (direction, &variance) in self.variances.iter().enumerate() {
                let variance = f64::from(variance);
                let along = |class: usize| f64::from(self.basis[class * classes + direction]);
                let found: f64 = centred.iter().enumerate().map(|(class, value)| value * along(class)).sum();
                let kept = found * variance / (variance + noise);
                for (class, value) in out[first..].iter_mut().enumerate() {
                    *value += (kept * along(class)) as f32;
                }
            }
        }
        out[first..].iter_mut().for_each(|value| *value /= self.scale);
    }
}

/// What the sums say.
#[derive(Debug, Clone)]
pub struct SumsModel {
    pub posteriors: Vec<Posterior>,
    pub softmax: Softmax,
    /// The logarithm of the share of each class, which both views know.
    pub log_prior: Vec<f32>,
}

/// A model of features and addressed sums.
#[derive(Debug, Clone)]
pub struct Addressed {
    shape: AddressedShape,
    features: FeatureModel,
    sums: Option<SumsModel>,
}

impl Addressed {
    pub fn new(
        (columns, classes): (usize, usize),
        features: FeatureModel,
        sums: Option<SumsModel>,
    ) -> Addressed {
        let network = match &features {
            FeatureModel::Network(network) => Some(network.architecture().clone()),
            FeatureModel::Linear(_) => None,
        };
        let count = sums.as_ref().map_or(0, |sums| sums.posteriors.len());
        Addressed { shape: AddressedShape { columns, classes, network, sums: count }, features, sums }
    }

    /// The shape.
    pub fn shape(&self) -> &AddressedShape {
        &self.shape
    }

    /// What the features say, and what the sums say where they are read.
    pub fn parts(&self) -> (&FeatureModel, Option<&SumsModel>) {
        (&self.features, self.sums.as_ref())
    }

    /// A linear model of the features, with weights (columns x classes) and biases.
    pub fn linear(
        (columns, classes): (usize, usize),
        weights: &[f32],
        biases: &[f32],
        column_weights: &[f32],
    ) -> Result<Softmax> {
        let shape = AddressedShape { columns, classes, network: None, sums: 0 }.linear();
        let (matrix, numbers, columns) = ([columns, classes], [classes], [columns]);
        let mut state = vec![
            Tensor { name: "weight", shape: &matrix, values: weights },
            Tensor { name: "bias", shape: &numbers, values: biases },
        ];
        if shape.scaling == RowScaling::WeightedUnit {
            state.push(Tensor { name: "columns", shape: &columns, values: column_weights });
        }
        Ok(Softmax::from_state(shape, state)?)
    }

    /// Adds a number to the logarithm of each class's odds.
    pub fn shift_logits(&mut self, by: &[f32]) -> Result<()> {
        match (&mut self.sums, &mut self.features) {
            (Some(sums), _) => sums.softmax.shift_logits(by),
            (None, FeatureModel::Linear(linear)) => linear.shift_logits(by),
            (None, FeatureModel::Network(network)) => network.shift_logits(by)?,
        }
        Ok(())
    }

    /// Whether every parameter is a finite number, and every unit one that can be divided by.
    pub fn is_finite(&self) -> bool {
        let finite = |values: &[f32]| values.iter().all(|value| value.is_finite());
        let linear = |model: &Softmax| model.state().iter().all(|(_, _, values)| finite(values));
        let features = match &self.features {
            FeatureModel::Linear(model) => linear(model),
            FeatureModel::Network(network) => network.state().iter().all(|tensor| finite(tensor.values)),
        };
        features
            && self.sums.as_ref().is_none_or(|sums| {
                linear(&sums.softmax)
                    && finite(&sums.log_prior)
                    && sums.posteriors.iter().all(|p| {
                        finite(&p.mean)
                            && finite(&p.basis)
                            && p.variances.iter().all(|v| v.is_finite() && *v >= 0.0)
                            && [p.noise, p.scale].iter().all(|v| v.is_finite() && *v > 0.0)
                    })
            })
    }

    /// The probability of each class for some nodes, row after row; `inputs` are the rows and the sums.
    pub fn probabilities(&self, inputs: &Inputs<'_>, nodes: &[u32]) -> Result<Vec<f32>> {
        let mut values = self.logits(inputs, nodes)?;
        log_softmax(&mut values, self.shape.classes);
        values.iter_mut().for_each(|value| *value = value.exp());
        Ok(values)
    }

    fn logits(&self, inputs: &Inputs<'_>, nodes: &[u32]) -> Result<Vec<f32>> {
        const NODES_AT_ONCE: usize = 1 << 16;
        let (&own, sums) = inputs.as_slice().split_first().ok_or(OTHER)?;
        let own = Inputs::checked_before(vec![own])?;
        let mut all = Vec::with_capacity(nodes.len() * self.shape.classes);
        for nodes in nodes.chunks(NODES_AT_ONCE) {
            progap_graph::store::release_pages_if_full();
            let mut known = match &self.features {
                FeatureModel::Linear(linear) => linear.logits(&own, nodes)?,
                FeatureModel::Network(network) => network_logits(network, &own, nodes)?,
            };
            log_softmax(&mut known, self.shape.classes);
            if let Some(model) = &self.sums {
                let seen = model.logits(&model.read(sums, nodes)?, nodes.len())?;
                known.iter_mut().zip(&seen).for_each(|(known, seen)| *known += seen);
            }
            all.append(&mut known);
        }
        Ok(all)
    }

    pub fn add_to(&self, tensors: &mut Tensors, prefix: &str) {
        match &self.features {
            FeatureModel::Network(network) => tensors.add(&format!("{prefix}features."), network.state()),
            FeatureModel::Linear(linear) => add_softmax(tensors, &format!("{prefix}features."), linear),
        }
        let Some(sums) = &self.sums else { return };
        let classes = self.shape.classes;
        let mut add = |name: String, shape: Vec<usize>, values: &[f32]| {
            tensors.values.insert(format!("{prefix}{name}"), (shape, values.to_vec()));
        };
        for (at, p) in sums.posteriors.iter().enumerate() {
            add(format!("sums.{at}.mean"), vec![classes], &p.mean);
            add(format!("sums.{at}.basis"), vec![classes, classes], &p.basis);
            add(format!("sums.{at}.variances"), vec![classes], &p.variances);
            add(format!("sums.{at}.units"), vec![2], &[p.noise, p.scale]);
        }
        add("prior".into(), vec![classes], &sums.log_prior);
        add_softmax(tensors, &format!("{prefix}view."), &sums.softmax);
    }

    /// A model of a shape, with the tensors under a prefix; every tensor must be there, and no other.
    pub fn from(tensors: &Tensors, prefix: &str, shape: AddressedShape) -> Result<Addressed> {
        let changed = || Error::unsuitable("its tensors do not have the shapes that its description gives");
        let all: Vec<Tensor<'_>> = tensors.under(prefix).collect();
        let part = |part: &'static str| {
            all.iter().filter_map(move |tensor| {
                let name = tensor.name.strip_prefix(part)?;
                Some(Tensor { name, ..*tensor })
            })
        };
        let named = |name: &str, shape: &[usize]| {
            let found = all.iter().find(|tensor| tensor.name == name && tensor.shape == shape);
            found.map(|tensor| tensor.values.to_vec()).ok_or_else(changed)
        };
        let features = match &shape.network {
            Some(architecture) => {
                FeatureModel::Network(Box::new(Network::from_state(architecture.clone(), part("features."))?))
            }
            None => FeatureModel::Linear(Softmax::from_state(shape.linear(), part("features."))?),
        };
        let classes = shape.classes;
        let posterior = |at: usize| -> Result<Posterior> {
            let units = named(&format!("sums.{at}.units"), &[2])?;
            Ok(Posterior {
                mean: named(&format!("sums.{at}.mean"), &[classes])?,
                basis: named(&format!("sums.{at}.basis"), &[classes, classes])?,
                variances: named(&format!("sums.{at}.variances"), &[classes])?,
                noise: units[0],
                scale: units[1],
            })
        };
        let sums = match shape.sums {
            0 => None,
            count => Some(SumsModel {
                posteriors: (0..count).map(posterior).collect::<Result<_>>()?,
                softmax: Softmax::from_state(shape.of_sums(), part("view."))?,
                log_prior: named("prior", &[classes])?,
            }),
        };
        let of_view = if shape.sums == 0 { 0 } else { 1 };
        let expected = 4 * shape.sums + of_view + part("view.").count() + part("features.").count();
        match all.len() == expected && (shape.sums > 0 || part("view.").count() == 0) {
            true => Ok(Addressed { shape, features, sums }),
            false => Err(changed()),
        }
    }
}

const OTHER: ErrorKind = ErrorKind::Internal("the inputs are not those of the model");

fn add_softmax(tensors: &mut Tensors, prefix: &str, model: &Softmax) {
    for (name, shape, values) in model.state() {
        tensors.values.insert(format!("{prefix}{name}"), (shape, values.to_vec()));
    }
}

impl SumsModel {
    /// What is read of some nodes' sums: those of each aggregate side by side.
    pub fn read(&self, sums: &[Input<'_>], nodes: &[u32]) -> Result<Vec<f32>> {
        read(&self.posteriors, sums, nodes)
    }

    /// The logits of rows that were read, less those of the prior.
    pub fn logits(&self, read: &[f32], rows: usize) -> Result<Vec<f32>> {
        let classes = self.log_prior.len();
        let everyone: Vec<u32> = (0..rows as u32).collect();
        let width = self.posteriors.len() * classes;
        let inputs = vec![Input::Dense { columns: width, values: read }];
        let mut seen = self.softmax.logits(&Inputs::checked_before(inputs)?, &everyone)?;
        for row in seen.chunks_exact_mut(classes) {
            row.iter_mut().zip(&self.log_prior).for_each(|(value, prior)| *value -= prior);
        }
        Ok(seen)
    }

    /// How much is left open about each row that was read, by what the sums say alone: the entropy in nats.
    pub fn entropies(&self, read: &[f32], rows: usize) -> Result<Vec<f32>> {
        let classes = self.log_prior.len();
        let mut seen = self.logits(read, rows)?;
        for row in seen.chunks_exact_mut(classes) {
            row.iter_mut().zip(&self.log_prior).for_each(|(value, prior)| *value += prior);
        }
        log_softmax(&mut seen, classes);
        let entropy = |row: &[f32]| -row.iter().map(|log| log * log.exp()).sum::<f32>();
        Ok(seen.chunks_exact(classes).map(entropy).collect())
    }
}

/// What is read of some nodes' sums by these posteriors.
pub fn read(posteriors: &[Posterior], sums: &[Input<'_>], nodes: &[u32]) -> Result<Vec<f32>> {
    if sums.len() != posteriors.len() {
        return Err(OTHER.into());
    }
    let classes = posteriors.first().map_or(0, |posterior| posterior.mean.len());
    let mut values = vec![];
    for input in sums {
        let Input::Dense { columns, values: sums } = *input else { return Err(OTHER.into()) };
        if columns != classes + 1 {
            return Err(OTHER.into());
        }
        input.tell(nodes);
        values.push(sums);
    }
    let mut out = Vec::with_capacity(nodes.len() * classes * posteriors.len());
    for &node in nodes {
        for (posterior, sums) in posteriors.iter().zip(&values) {
            posterior.read(&sums[node as usize * (classes + 1)..][..=classes], &mut out);
        }
    }
    Ok(out)
}
