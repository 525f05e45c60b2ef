//! Predictions about nodes that were not there in training.

use std::path::Path;

use progap_graph::{Dataset, read};

use super::{Predictions, Release, every_node, predictions};
use crate::model::Model;
use crate::predictor::{Link, Predictor, Reads};
use crate::vault::{Aggregate, Aggregates};
use crate::views::{Views, ViewsShape};
use crate::{Error, Result};

impl Release {
    /// Reads a table of nodes that were not there in training, with the columns of those that were: categories that were known,
    /// numbers brought to the same scale. Other columns are not used.
    ///
    /// # Errors
    /// Tables that do not fit; a release without the rows of its nodes, beside which the scale of each column lies.
    pub fn read_rows(&self, table: &Path, id_column: Option<&str>) -> Result<Dataset> {
        if !self.has_features() {
            let message = "it holds no features, and so not how a table becomes them: use the release itself";
            return Err(Error::file(&self.folder, message));
        }
        Ok(read::table::read_later(table, &self.nodes, id_column)?)
    }

    /// Predictions for nodes that were not there in training (see [`Release::read_rows`]): as for nodes that nobody
    /// sends to; with two views, what the features say by themselves. No edge and no aggregate is read.
    ///
    /// # Errors
    /// Rows with other columns or classes.
    pub fn predict_rows(&self, rows: &Dataset) -> Result<Predictions> {
        let fits = rows.feature_names() == self.nodes.feature_names()
            && rows.features().columns() == self.statement.feature_columns
            && rows.class_names() == self.nodes.class_names();
        if !fits {
            return Err(Error::Unsuitable("the rows have other columns than those of the release".into()));
        }
        predictions(&self.predictor.without_senders(rows.nodes()), rows, &every_node(rows))
    }
}

impl Predictor {
    /// The same models, for nodes that nobody sends to.
    fn without_senders(&self, nodes: usize) -> Predictor {
        if let [Link { model: Model::Views(views), .. }] = &self.links[..] {
            let model = Model::Views(views.features_alone());
            let links = vec![Link { model, reads: vec![vec![Reads::Rows]] }];
            return Predictor::new(links, 0, Aggregates::default());
        }
        let nothing = |&width: &usize| Aggregate { values: vec![0.0; nodes * width].into(), width };
        let aggregates = self.widths.iter().map(nothing).collect();
        let predictor = Predictor::new(self.links.clone(), self.stage, aggregates);
        Predictor { temperature: self.temperature, ..predictor }
    }
}

impl Views {
    /// The view of the features, without the graph.
    fn features_alone(&self) -> Views {
        let shape = ViewsShape { aggregates: 0, ..self.shape().clone() };
        Views::new(shape, self.parts().0.clone(), None)
    }
}
