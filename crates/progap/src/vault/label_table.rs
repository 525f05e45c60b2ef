//! Sums of public rows over the training nodes of each class, with Gaussian noise: all that the likelihood of a softmax
//! regression on public rows knows of labels.

use progap_graph::{Part, UNLABELLED};
use progap_privacy::Event;
use progap_privacy::noise::{Quantiser, RoundedGaussian, SenderBound, choose_scale};

use super::noise::not_planned;
use super::{Asked, Noise, Private, VaultQuery};
use crate::query::Query;
use crate::{Error, Result};

/// The name of the query.
pub const LABEL_TABLE: &str = "label table";

/// The query with noise of a multiple of its sensitivity.
pub(crate) fn label_table(noise: f64) -> Result<Query> {
    Ok(Query::new(
        LABEL_TABLE,
        "sums over the training nodes of each class of rows made of noisy aggregates, with noise",
        Event::gaussian(noise, 1.0)?,
    ))
}

/// Training nodes whose rows are made at a time.
const NODES_AT_ONCE: usize = 1 << 14;

/// A noisy sum of public rows over the training nodes of each class: a row of sums for each class, and the deviation of
/// its noise.
///
/// # Proof definition
/// Which nodes train, and the row `f_i` of each, are public: functions of the split and of what left the vault before.
/// A record has at most one label, so that adding or removing it moves the table by one row of norm one at most, in one
/// class. In integers: `f_i` becomes `z_i` with `|z_i| <= S` by integer arithmetic ([`Quantiser`]), and the table has
/// sensitivity `S` in L2 norm, exactly. The result is post-processing of the Gaussian mechanism with sensitivity 1 and
/// the noise of the plan's query ([proof](progap_privacy::proofs::addressed_sums#label-tables)).
pub struct LabelTable<'r> {
    /// The name of its noise, which no other query has.
    pub label: String,
    /// The numbers of a row.
    pub width: usize,
    /// Makes the rows of some nodes of the split and of what left the vault before; each is brought to norm one at
    /// most.
    pub make: &'r dyn Fn(&[u32]) -> Result<Vec<f32>>,
}

impl VaultQuery for LabelTable<'_> {
    type Answer = (Vec<f32>, f64);

    fn spec(&self, private: &Private) -> Result<Asked> {
        if private.part.is_some() {
            return Err(Error::internal("a table of labels is made in one process"));
        }
        Ok(Asked::new(label_table(1.0)?, private.rows.classes.saturating_mul(self.width)))
    }

    fn evaluate(self, private: &Private, noise: &mut Noise) -> Result<(Vec<f32>, f64)> {
        let (sigma, _) = noise.gaussian()?.ok_or_else(not_planned)?;
        let LabelTable { label, width, make } = self;
        let quantiser = Quantiser::<i16>::new(choose_scale(sigma, 1.0)?.1)?;
        let unit = quantiser.budget(SenderBound::Edge, 1)?;
        let mut table = vec![0i64; private.rows.classes * width];
        for nodes in private.rows.nodes(Part::Train).chunks(NODES_AT_ONCE) {
            let made = make(nodes)?;
            if width == 0 || made.len() != nodes.len() * width {
                return Err(Error::internal("every training node has one row"));
            }
            let mut integers = vec![0i16; made.len()];
            quantiser.rows(&made, width, &vec![unit; nodes.len()], &mut integers)?;
            for (&node, row) in nodes.iter().zip(integers.chunks_exact(width)) {
                let class = private.rows.labels[node as usize];
                if class != UNLABELLED {
                    let sums = &mut table[class as usize * width..][..width];
                    sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum += i64::from(value));
                }
            }
        }
        let query = noise.query(&label)?;
        let rounded = RoundedGaussian::for_messages(sigma, quantiser.scale())?;
        let noisy = rounded.release_owned(table, quantiser.scale(), query, rayon::current_num_threads());
        Ok((noisy.into_parts().0, sigma))
    }
}
