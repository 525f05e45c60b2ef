//! Measurements and predictions **without any protection**: for the data owner alone, and never to train anything.

use progap_graph::Part;
use progap_nn::{Batch, DistributedBatch, Network, Sage, accuracy};
use progap_privacy::noise::SenderBound;

use super::Private;
use crate::model::Model;
use crate::rows::Aggregates;
use crate::{Error, Result, propagate};

impl Private {
    /// The inputs of a GraphSAGE's convolutions from the senders, **without any protection**: for the data owner alone,
    /// and the statement says so. Each sender sends to all its receivers, with the weight that sampling gives it on
    /// average.
    pub fn unprotected_aggregates(&self, sage: &Sage) -> Result<Vec<Vec<f32>>> {
        Ok(sage.aggregates(&self.rows.own()?, &self.senders_on_average())?)
    }

    /// As [`Vault::unprotected_accuracy`], of a GraphSAGE.
    pub fn unprotected_sage_accuracy(&self, sage: &Sage, part: Part) -> Result<f64> {
        let (inputs, nodes) = (self.rows.own()?, self.rows.nodes(part));
        if nodes.is_empty() {
            return Ok(f64::NAN);
        }
        let batch = Batch::new(&inputs, &self.rows.labels, &nodes, self.rows.classes)?;
        Ok(sage.accuracy_along(batch, &self.senders_on_average())?)
    }

    fn senders_on_average(&self) -> propagate::Senders<'_> {
        match (&self.every_edge, self.bound) {
            (Some(graph), SenderBound::Sample { max_edges }) => {
                let weight = |degree: u32| (max_edges as f32 / degree.max(1) as f32).min(1.0);
                propagate::Senders::weighted(graph, graph.out_degrees().into_iter().map(weight).collect())
            }
            _ => propagate::Senders::sum(&self.graph),
        }
    }

    /// The accuracy on a part of the nodes, **without any protection**: at node level it is for the data owner alone,
    /// and the statement says so. Of no nodes it is not a number.
    pub fn unprotected_accuracy(
        &self,
        network: &Network,
        aggregates: &Aggregates,
        part: Part,
    ) -> Result<f64> {
        let inputs = self.rows.inputs(aggregates)?;
        let nodes = self.rows.nodes(part);
        if self.count(part) == 0 {
            return Ok(f64::NAN);
        }
        let batch = Batch::new(&inputs, &self.rows.labels, &nodes, self.rows.classes)?;
        Ok(accuracy(network, self.evaluated(batch, part)?)?)
    }

    /// As [`Vault::unprotected_accuracy`], of any model that reads rows and aggregates.
    pub fn unprotected_accuracy_of(&self, model: &Model, aggregates: &Aggregates, part: Part) -> Result<f64> {
        let model = match model {
            Model::Network(network) => return self.unprotected_accuracy(network, aggregates, part),
            Model::Addressed(model) => model,
            _ => return Err(Error::internal("the model reads more than rows and aggregates")),
        };
        let nodes = self.rows.nodes(part);
        let probabilities = model.probabilities(&self.rows.inputs(aggregates)?, &nodes)?;
        let truth: Vec<u32> = nodes.iter().map(|&node| self.rows.labels[node as usize]).collect();
        let right =
            probabilities.chunks_exact(self.rows.classes.max(1)).zip(&truth).filter(|(row, truth)| {
                let best =
                    (0..row.len()).fold(0, |best, class| if row[class] > row[best] { class } else { best });
                best as u32 == **truth
            });
        Ok(right.count() as f64 / nodes.len() as f64)
    }

    /// A batch of own nodes of a part of the split, as part of those of all ranks.
    pub(crate) fn evaluated<'b>(&'b self, batch: Batch<'b>, part: Part) -> Result<Batch<'b>> {
        let Some(held) = &self.part else { return Ok(batch) };
        let rows = held.count(part);
        Ok(batch.shared(DistributedBatch { collective: &held.ranks, rows, first: 0, numbered_from: 0 })?)
    }
}
