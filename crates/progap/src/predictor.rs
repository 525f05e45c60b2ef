//! What makes predictions: the last model, an encoder before it where the method has one, and the kept aggregates. No
//! edge is read.

use std::path::Path;

use progap_nn::{Network, probabilities};

use crate::files::{self, Tensors};
use crate::method::{self, Choice};
use crate::model::Model;
use crate::settings::Settings;
use crate::vault::{Aggregate, Aggregates, Rows};
use crate::{Error, Result};

pub(crate) const MODEL: &str = "model.safetensors";
const ENCODER: &str = "encoder.";

/// A trained model with all that it reads besides a node's own row.
#[derive(Debug)]
pub(crate) struct Predictor {
    pub encoder: Option<Network>,
    pub model: Model,
    pub aggregates: Aggregates,
}

impl Predictor {
    /// The probability of each class for some nodes, row after row.
    pub fn probabilities(&self, rows: &Rows, nodes: &[u32]) -> Result<Vec<f32>> {
        let encoded;
        let rows = match &self.encoder {
            Some(encoder) => {
                encoded = rows.encoded(encoder)?;
                &encoded
            }
            None => rows,
        };
        match &self.model {
            Model::Network(network) => Ok(probabilities(network, &rows.inputs(&self.aggregates)?, nodes)?),
            Model::Sage(sage) if self.aggregates.len() < sage.architecture().convolutions => {
                Err(Error::Unsuitable(
                    "what the model reads of a node's senders (private/aggregates-1.npy) was taken out of this release: \
                     predictions need it"
                        .into(),
                ))
            }
            Model::Sage(sage) => {
                let near: Vec<&[f32]> = self.aggregates.iter().map(|a| &a.values[..]).collect();
                Ok(sage.probabilities(&rows.own()?, &near, nodes)?)
            }
        }
    }

    /// Whether every number that predictions are made of is finite.
    pub fn is_finite(&self) -> bool {
        let encoder = self.encoder.iter().flat_map(Network::state);
        self.model.is_finite()
            && encoder.flat_map(|tensor| tensor.values.iter()).all(|value| value.is_finite())
            && self.aggregates.iter().all(|aggregate| aggregate.values.iter().all(|value| value.is_finite()))
    }

    /// Writes the parameters; the aggregates lie in the folder already. Gives the names of all its files.
    pub fn write(&self, folder: &Path, settings: &Settings) -> Result<Vec<String>> {
        let mut tensors = Tensors::default();
        self.model.add_to(&mut tensors, "");
        if let Some(encoder) = &self.encoder {
            tensors.add(ENCODER, encoder.state());
        }
        tensors.write(&folder.join(MODEL))?;
        Ok(Predictor::files(settings))
    }

    /// The names of all files that predictions are made of, besides rows.
    pub fn files(settings: &Settings) -> Vec<String> {
        // Also those that only later stages read, where an earlier one is released: they are part of what was asked.
        let aggregates = (1..=settings.depth).map(|number| aggregate_name(settings, number));
        std::iter::once(MODEL.to_string()).chain(aggregates).collect()
    }

    /// Opens what [`Predictor::write`] wrote, for what the run chose, (feature columns, classes)
    /// and so many nodes. `read_file` gives a file's content, or nothing where the data owner kept it back.
    pub fn open(
        folder: &Path,
        read_file: &dyn Fn(&str) -> Result<Option<Vec<u8>>>,
        settings: &Settings,
        choice: Option<&Choice>,
        sizes: (usize, usize),
        nodes: usize,
    ) -> Result<Self> {
        let file = folder.join(MODEL);
        let bytes = read_file(MODEL)?.ok_or_else(|| Error::file(&file, "there is no such file"))?;
        // A statement that speaks of more columns than the model can have must not decide how much memory is taken.
        let least = sizes.0.saturating_add(sizes.1).saturating_mul(settings.hidden).saturating_mul(4);
        if bytes.len() < least {
            let problem = format!(
                "it has {} bytes, too few for {} feature columns and {} classes: it was damaged or changed",
                bytes.len(),
                sizes.0,
                sizes.1
            );
            return Err(Error::file(&file, problem));
        }
        let mut tensors = Tensors::parse(&file, &bytes)?;
        let last = choice.map_or(method::stages(settings) - 1, |choice| choice.stage);
        let encoder = if settings.method.recipe().has_encoder() {
            let own = tensors.split_off(ENCODER);
            Some(Model::from(&own, ENCODER, method::shape(settings, sizes, 0, choice))?.network()?.clone())
        } else {
            None
        };
        let model = Model::from(&tensors, "", method::shape(settings, sizes, last, choice))?;
        let mut aggregates = Aggregates::new();
        let read = choice.map_or(settings.depth, |choice| choice.stage);
        let widths = settings.method.recipe().aggregate_widths(settings, sizes, choice);
        for (index, width) in widths.into_iter().take(read).enumerate() {
            let name = aggregate_name(settings, index + 1);
            // The data owner may keep back one that no mechanism protects; then there are no predictions.
            let Some(bytes) = read_file(&name)? else { continue };
            let values = files::parse_matrix(&folder.join(&name), &bytes, nodes, width)?;
            aggregates.push(Aggregate { values: values.into(), width });
        }
        Ok(Predictor { encoder, model, aggregates })
    }
}

/// The file of the `number`-th aggregate; among the private ones if no mechanism protects it.
pub(crate) fn aggregate_name(settings: &Settings, number: usize) -> String {
    if settings.method.recipe().aggregates_are_protected() {
        format!("aggregates/{number}.npy")
    } else {
        format!("private/aggregates-{number}.npy")
    }
}
