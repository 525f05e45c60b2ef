//! What a release shows to whoever attacks it: the answers of the vault, what it says of rows, and messages as far as
//! its model tells them.

use progap_graph::Dataset;

use super::Release;
use crate::rows::{Aggregate, Aggregates, Rows};
use crate::{Error, Result, files, method};

impl Release {
    /// Every aggregate that the release shows, those of stages after the released one included: all were asked for, all
    /// are there to be read, and an attacker reads them all.
    #[doc(hidden)]
    pub fn answers(&self) -> Result<&Aggregates> {
        if let Some(answers) = self.answers.get() {
            return Ok(answers);
        }
        let settings = self.settings()?;
        let sizes = (self.statement.feature_columns, self.nodes.classes());
        let widths = method::program(settings, sizes, self.statement.choice.as_ref()).aggregate_widths();
        let mut answers = self.predictor.aggregates.clone();
        for (index, &width) in widths.iter().enumerate().skip(answers.len()) {
            let name = self.contents.aggregate(index + 1);
            if self.listed.public.files.contains_key(&name) {
                let bytes = self.listed.content(&name, self.bounds.of(&name))?;
                let values =
                    files::parse_matrix(&self.folder.join(&name), &bytes, self.nodes.nodes(), width)?;
                answers.push(Aggregate { values, width });
            }
        }
        Ok(self.answers.get_or_init(|| answers))
    }

    /// A data set with its columns brought to scale as those of this release were.
    #[doc(hidden)]
    pub fn prepared(&self, dataset: &Dataset) -> Result<Dataset> {
        let prepared = dataset.clone().prepared(self.settings()?.preparation())?;
        match (prepared.numbers().iter().all(|number| number.map.is_some()), &self.schema) {
            (true, _) => Ok(prepared),
            (false, Some(schema)) => {
                let numbers = schema.mapped(prepared.numbers());
                Ok(prepared.prepared_as(&numbers)?)
            }
            (false, None) => Err(Error::unsuitable(
                "the maps of number columns are in schema.json, which this release does not have: train it again",
            )),
        }
    }

    /// The probabilities of classes for some nodes of a prepared data set.
    #[doc(hidden)]
    pub fn probabilities_of(&self, rows: &Rows, nodes: &[u32]) -> Result<Vec<f32>> {
        self.predictor().probabilities(rows, nodes)
    }

    /// The message that every node would have sent for the aggregate of that index, as far as the model tells.
    #[doc(hidden)]
    pub fn sent(&self, rows: &Rows, index: usize) -> Result<Option<Vec<f32>>> {
        self.settings()?.method.method().sent(self, rows, index)
    }
}
