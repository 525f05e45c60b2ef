//! Predictions about nodes that were not there in training.

use progap_formats::read::table::{LaterOptions, LaterRows, LaterTable, read_new_nodes};

use super::{Predictions, Release, Used, every_node, predictions};
use crate::model::Model;
use crate::predictor::{Link, Predictor, Reads};
use crate::vault::{Aggregate, Aggregates};
use crate::views::{Views, ViewsShape};
use crate::{Error, Result};

/// Predictions about the rows of a table.
#[derive(Debug)]
pub struct RowPredictions {
    /// The rows that fit, with their ids, and those that do not, with their reasons.
    pub read: LaterRows,
    /// About each row that fits, in their order.
    pub predictions: Predictions,
    /// What they are made of.
    pub used: Used,
}

impl Release {
    /// Reads a table of nodes that were not there in training as the node table of training was read: its columns,
    /// categories that were known, the order of dates, gaps, numbers brought to the same scale. Other columns are not
    /// used. A row that does not fit is listed with its reason; the others are there.
    ///
    /// # Errors
    /// Tables that cannot be read, or lack a column; a release without its schema, or whose features have no names.
    pub fn read_rows<'a>(
        &self,
        table: impl Into<LaterTable<'a>>,
        options: &LaterOptions<'_>,
    ) -> Result<LaterRows> {
        let Some(schema) = &self.schema else {
            let message = "it has no schema.json, and so not how a table becomes features: train it again";
            return Err(Error::file(&self.folder, message));
        };
        Ok(read_new_nodes(table, schema, options)?)
    }

    /// Predictions for the rows of a table that fit (see [`Release::read_rows`]): as for nodes that nobody
    /// sends to; with two views, what the features say by themselves. No edge and no aggregate is read.
    ///
    /// # Errors
    /// As [`Release::read_rows`].
    pub fn predict_rows<'a>(
        &self,
        table: impl Into<LaterTable<'a>>,
        options: &LaterOptions<'_>,
    ) -> Result<RowPredictions> {
        let read = self.read_rows(table, options)?;
        let predictions = match &read.rows {
            Some(rows) => {
                predictions(&self.predictor.without_senders(rows.nodes()), rows, &every_node(rows))?
            }
            None => Predictions { nodes: vec![], classes: vec![], probabilities: vec![] },
        };
        Ok(RowPredictions { read, predictions, used: Used::Features })
    }
}

impl Predictor {
    /// The same models, for nodes that nobody sends to.
    fn without_senders(&self, nodes: usize) -> Predictor {
        let nothing = |&width: &usize| Aggregate { values: vec![0.0; nodes * width].into(), width };
        match self.features_alone() {
            Some(predictor) => predictor,
            None => {
                let aggregates = self.widths.iter().map(nothing).collect();
                let predictor = Predictor::new(self.links.clone(), self.stage, aggregates);
                Predictor { temperature: self.temperature, ..predictor }
            }
        }
    }

    /// The model of the features alone, where they have one of their own.
    pub fn features_alone(&self) -> Option<Predictor> {
        let [Link { model: Model::Views(views), .. }] = &self.links[..] else { return None };
        let model = Model::Views(views.features_alone());
        let links = vec![Link { model, reads: vec![vec![Reads::Rows]] }];
        Some(Predictor::new(links, 0, Aggregates::default()))
    }
}

impl Views {
    /// The view of the features, without the graph.
    fn features_alone(&self) -> Views {
        let shape = ViewsShape { sums: vec![], ..self.shape().clone() };
        Views::new(shape, self.parts().0.clone(), None)
    }
}
