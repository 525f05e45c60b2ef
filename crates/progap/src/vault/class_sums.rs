//! Sums of the training nodes' own rows over each class, with Gaussian noise: all that a naive Bayes model knows of
//! features and labels.

use progap_graph::{Features, Part, UNLABELLED};
use progap_privacy::Event;
use progap_privacy::noise::{Quantiser, RoundedGaussian, SenderBound, choose_scale};

use super::noise::not_planned;
use super::{Asked, Noise, Private, VaultQuery};
use crate::query::Query;
use crate::{Error, Result};

/// The name of the query.
pub const CLASS_SUMS: &str = "class sums";

/// The length of the constant in a row of norm one; the rest is for the features.
pub(crate) const CONSTANT: f64 = 0.3;

/// The query with noise of a multiple of its sensitivity.
pub(crate) fn class_sum(noise: f64) -> Result<Query> {
    Ok(Query::new(
        CLASS_SUMS,
        "sums over the training nodes of each class of their feature rows, brought to norm one beside a constant, \
         with noise",
        Event::gaussian(noise, 1.0)?,
    ))
}

/// Sums of rows over each class, as they left the vault.
#[derive(Debug, Clone, PartialEq)]
pub struct NoisyClassSums {
    /// For each class the sum of each column over rows of norm one at most, and at the end how many rows there are.
    pub sums: Vec<f32>,
    /// The columns of a row of sums: those of the features, and one.
    pub width: usize,
    /// The deviation of the noise of the columns,
    pub noise: f64,
    /// and of the numbers of rows.
    pub noise_of_counts: f64,
}

/// A noisy sum of the training nodes' rows over each class. A row longer than one is divided by its length; beside it
/// stands a constant, and together they have norm one at most.
///
/// # Proof definition
/// Which nodes train is public. A record has one row and at most one label, so that adding or removing it moves the
/// table by one row, in one class. In integers: the row with its constant becomes `z` with `|z| <= S` by integer
/// arithmetic ([`Quantiser`]), as a function of this record alone, and the table has sensitivity `S` in L2 norm,
/// exactly. The result is post-processing of the Gaussian mechanism with sensitivity 1 and the noise of the plan's
/// query ([proof](progap_privacy::proofs::addressed_sums#class-sums)).
#[derive(Debug, Clone, Copy)]
pub struct ClassSums;

impl VaultQuery for ClassSums {
    type Answer = NoisyClassSums;

    fn spec(&self, private: &Private) -> Result<Asked> {
        if private.part.is_some() {
            return Err(Error::internal("sums of classes are made in one process"));
        }
        Ok(Asked::new(class_sum(1.0)?, private.rows.classes.saturating_mul(private.columns() + 1)))
    }

    fn evaluate(self, private: &Private, noise: &mut Noise) -> Result<NoisyClassSums> {
        let (sigma, _) = noise.gaussian()?.ok_or_else(not_planned)?;
        let columns = private.columns();
        let width = columns + 1;
        let quantiser = Quantiser::<i16>::new(choose_scale(sigma, 1.0)?.1)?;
        let unit = quantiser.budget(SenderBound::Edge, 1)?;
        let mut table = vec![0i64; private.rows.classes * width];
        let (mut row, mut places, mut integers) = (vec![], vec![], vec![]);
        for node in private.rows.nodes(Part::Train).into_iter().map(|node| node as usize) {
            let label = private.rows.labels[node];
            if label == UNLABELLED {
                continue;
            }
            read_row(&private.rows.features, node, &mut row, &mut places);
            brought_to_norm_one(&mut row);
            places.push(columns);
            integers.clear();
            integers.resize(row.len(), 0i16);
            quantiser.rows(&row, row.len(), &[unit], &mut integers)?;
            let sums = &mut table[label as usize * width..][..width];
            places.iter().zip(&integers).for_each(|(&place, &value)| sums[place] += i64::from(value));
        }
        let query = noise.query(CLASS_SUMS)?;
        let rounded = RoundedGaussian::for_messages(sigma, quantiser.scale())?;
        let noisy = rounded.release_owned(table, quantiser.scale(), query, rayon::current_num_threads());
        let mut sums = noisy.into_parts().0;
        let content = (1.0 - CONSTANT * CONSTANT).sqrt();
        for row in sums.chunks_exact_mut(width) {
            let (count, values) = row.split_last_mut().ok_or(Error::internal("a row has a constant"))?;
            values.iter_mut().for_each(|value| *value /= content as f32);
            *count /= CONSTANT as f32;
        }
        Ok(NoisyClassSums { sums, width, noise: sigma / content, noise_of_counts: sigma / CONSTANT })
    }
}

/// The values of a node's row that may differ from zero, and their columns: each once.
fn read_row(features: &Features, node: usize, row: &mut Vec<f32>, places: &mut Vec<usize>) {
    row.clear();
    places.clear();
    match features {
        Features::Dense { columns, values } => {
            row.extend_from_slice(&values[node * columns..][..*columns]);
            places.extend(0..*columns);
        }
        Features::Half { columns, values } => {
            row.extend(values[node * columns..][..*columns].iter().map(|value| value.to_f32()));
            places.extend(0..*columns);
        }
        Features::Sparse { offsets, indices, values, .. } => {
            let entries = offsets[node] as usize..offsets[node + 1] as usize;
            places.extend(indices[entries.clone()].iter().map(|&column| column as usize));
            match values {
                Some(values) => row.extend_from_slice(&values[entries]),
                None => row.resize(entries.len(), 1.0),
            }
        }
    }
}

/// Divides a row by its length where that is more than one, and puts the constant behind it.
fn brought_to_norm_one(row: &mut Vec<f32>) {
    let length = row.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt().max(1.0);
    let factor = (1.0 - CONSTANT * CONSTANT).sqrt() / length;
    row.iter_mut().for_each(|value| *value = (f64::from(*value) * factor) as f32);
    row.push(CONSTANT as f32);
}
