//! The predictor: models, each with what it reads, and the kept aggregates. No edge is read, and no settings: shapes
//! travel with the parameters.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use progap_graph::{Buffer, store};
use progap_nn::{Input, Inputs, Network, embed, logits};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::calibration::{self, temper};
use crate::error::InFile;
use crate::files::{self, Tensors};
use crate::model::{Model, Shape, WrittenShape};
use crate::rows::{self, normalise};
use crate::settings::Settings;
use crate::vault::{Aggregate, Aggregates, Rows};
use crate::{Error, ErrorKind, Result, memory};

pub const MODEL: &str = "model.safetensors";
/// More models than any method releases.
const MAX_LINKS: usize = 64;

/// Nodes about which earlier models say something at a time.
const NODES_AT_ONCE: usize = 1 << 14;

/// Something that a model reads; several of them side by side are one input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reads {
    /// A node's own row.
    Rows,
    /// The aggregate of that index.
    Aggregate(usize),
    /// The output of the first branch of an earlier model, normalised.
    Embedding(usize),
    /// The logits of an earlier model.
    Logits(usize),
}

/// A trained model with what each of its inputs is made of.
#[derive(Debug, Clone)]
pub struct Link {
    pub model: Model,
    pub reads: Vec<Vec<Reads>>,
}

/// Trained models, each reading what those before it give, and the aggregates. The last one classifies.
#[derive(Debug)]
pub struct Predictor {
    pub links: Vec<Link>,
    /// The stage whose model is the last.
    pub stage: usize,
    /// The aggregates that are there: all, or none where the data owner keeps them back.
    pub aggregates: Aggregates,
    /// The widths of all that are read.
    pub widths: Vec<usize>,
    /// The factor on all logits of the last model, where it was calibrated.
    pub temperature: Option<f32>,
}

/// Metadata beside the parameters.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    models: Vec<LinkRecord>,
    aggregates: Vec<usize>,
    stage: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkRecord {
    shape: WrittenShape,
    reads: Vec<Vec<Reads>>,
}

/// An input as a model takes it.
enum Branch<'a> {
    Rows,
    Values(Cow<'a, [f32]>, usize),
}

/// The outputs of a model for those after it.
#[derive(Default)]
struct Given {
    embedding: Option<Aggregate>,
    logits: Option<Aggregate>,
}

pub const NO_MODEL: ErrorKind = ErrorKind::Internal("a release has a model");

impl Predictor {
    /// Models with what they read, for a method that kept these aggregates.
    pub fn new(links: Vec<Link>, stage: usize, aggregates: Aggregates) -> Self {
        let widths = aggregates.iter().map(|aggregate| aggregate.width).collect();
        Predictor { links, stage, aggregates, widths, temperature: None }
    }

    /// The aggregates that some model reads.
    pub fn aggregates_read(&self) -> impl Iterator<Item = usize> {
        let read = |index| {
            self.links
                .iter()
                .any(|link| link.reads.iter().flatten().any(|&reads| reads == Reads::Aggregate(index)))
        };
        (0..self.widths.len()).filter(move |&index| read(index))
    }

    /// The model that classifies.
    pub fn last(&self) -> Result<&Link> {
        self.links.last().ok_or_else(|| NO_MODEL.into())
    }

    /// Brings probabilities of the last model to its temperature, where it was calibrated.
    pub fn calibrate(&self, probabilities: &mut [f32], classes: usize) {
        if let Some(factor) = self.temperature {
            probabilities.par_chunks_exact_mut(classes.max(1)).for_each(|row| temper(row, factor));
        }
    }

    /// The probability of each class for some nodes, row after row, as the last model gives them.
    pub fn probabilities(&self, rows: &Rows, nodes: &[u32]) -> Result<Vec<f32>> {
        let last = self.links.len().wrapping_sub(1);
        if last > 0 {
            // Those before it say something about these nodes alone.
            let mut all = Vec::with_capacity(nodes.len() * rows.classes());
            // Rows here and there bring in what lies around them: under a bound few at a time.
            let at_once = if memory::bound().is_some() { NODES_AT_ONCE >> 6 } else { NODES_AT_ONCE };
            for nodes in nodes.chunks(at_once) {
                let (everyone, own): (Vec<u32>, _) =
                    ((0..nodes.len() as u32).collect(), rows.features_of(nodes));
                let aggregates = self.aggregates.iter().map(|aggregate| aggregate.select(nodes)).collect();
                all.extend(self.with_inputs_of(
                    (last, &aggregates),
                    rows::input(&own),
                    |model, inputs| model.probabilities(inputs, &everyone),
                )?);
            }
            return Ok(all);
        }
        self.with_inputs(last, rows, |model, inputs| match model {
            Model::Sage(sage) => {
                let own = Inputs::checked_before(vec![rows.input()])?;
                let near: Vec<&[f32]> = self.aggregates.iter().map(|a| &a.values[..]).collect();
                Ok(sage.probabilities(&own, &near, nodes)?)
            }
            other => other.probabilities(inputs, nodes),
        })
    }

    /// The logits of the model of that index, for every row.
    pub fn logits(&self, link: usize, rows: &Rows) -> Result<Vec<f32>> {
        self.with_inputs(link, rows, |model, inputs| all_logits(model.network()?, inputs))
    }

    /// Hands over a model with its inputs, made of what the models before it give.
    pub fn with_inputs<T>(
        &self,
        link: usize,
        rows: &Rows,
        act: impl FnOnce(&Model, &Inputs<'_>) -> Result<T>,
    ) -> Result<T> {
        self.with_inputs_of((link, &self.aggregates), rows.input(), act)
    }

    /// As [`Predictor::with_inputs`], for some nodes: with the rows and aggregates of these.
    fn with_inputs_of<T>(
        &self,
        (link, aggregates): (usize, &Aggregates),
        rows: Input<'_>,
        act: impl FnOnce(&Model, &Inputs<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut given: Vec<Given> = vec![];
        for (at, earlier) in self.links.iter().take(link).enumerate() {
            let read =
                |reads: Reads| self.links.iter().any(|link| link.reads.iter().flatten().any(|&r| r == reads));
            let mut own = Given::default();
            if read(Reads::Embedding(at)) || read(Reads::Logits(at)) {
                let branches = branches(earlier, aggregates, &given)?;
                let (inputs, network) = (inputs(rows, &branches)?, earlier.model.network()?);
                if read(Reads::Embedding(at)) {
                    let first = inputs.as_slice().first().copied().ok_or(NO_MODEL)?;
                    let (width, mut values) = (network.architecture().hidden, embed(network, 0, first)?);
                    values.chunks_exact_mut(width).for_each(normalise);
                    own.embedding = Some(Aggregate { values: values.into(), width });
                }
                if read(Reads::Logits(at)) {
                    let values = all_logits(network, &inputs)?;
                    own.logits =
                        Some(Aggregate { values: values.into(), width: network.architecture().classes });
                }
            }
            given.push(own);
        }
        let link = self.links.get(link).ok_or(NO_MODEL)?;
        let branches = branches(link, aggregates, &given)?;
        act(&link.model, &inputs(rows, &branches)?)
    }

    /// Whether every number that predictions are made of is finite.
    pub fn is_finite(&self) -> bool {
        let finite = |values: &[f32]| {
            store::note_read(size_of_val(values));
            values.iter().all(|value| value.is_finite())
        };
        self.links.iter().all(|link| link.model.is_finite())
            && self.aggregates.iter().all(|aggregate| aggregate.values.chunks(1 << 18).all(finite))
    }

    /// Writes the parameters with their shapes; the aggregates lie in the folder already.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let file = folder.join(MODEL);
        let mut tensors = Tensors::default();
        for (at, link) in self.links.iter().enumerate() {
            link.model.add_to(&mut tensors, &self.prefix(at));
        }
        let model = |link: &Link| LinkRecord {
            shape: WrittenShape::of(&link.model.shape()),
            reads: link.reads.clone(),
        };
        let models = self.links.iter().map(model).collect();
        let (aggregates, stage, temperature) = (self.widths.clone(), self.stage, self.temperature);
        let record = Record { models, aggregates, stage, temperature };
        tensors.note = serde_json::to_string(&record).in_file(&file)?;
        tensors.write(&file)
    }

    /// The last model's tensors have their plain names.
    fn prefix(&self, at: usize) -> String {
        prefix(at, self.links.len())
    }

    /// Opens what [`Predictor::write`] wrote, for rows of this many columns, classes and nodes. `read_file` gives a
    /// file's content, or nothing where the data owner kept it back; `name` that of the `number`-th aggregate.
    pub fn open(
        folder: &Path,
        read_file: &dyn Fn(&str) -> Result<Option<Buffer<u8>>>,
        name: &dyn Fn(usize) -> String,
        (columns, classes): (usize, usize),
        nodes: usize,
    ) -> Result<Self> {
        let file = folder.join(MODEL);
        let bytes = read_file(MODEL)?.ok_or_else(|| Error::file(&file, "there is no such file"))?;
        let mut tensors = Tensors::parse(&file, &bytes)?;
        let record: Record = serde_json::from_str(&tensors.note).in_file(&file)?;
        let shapes: Vec<Shape> =
            record.models.iter().map(|model| model.shape.shape()).collect::<Result<_>>()?;
        let fits = |at: usize| record.fits(at, &shapes, (columns, classes));
        if !(1..=MAX_LINKS).contains(&shapes.len()) || !(0..shapes.len()).all(fits) {
            let problem = format!(
                "its shape is not one for {columns} feature columns and {classes} classes: it was damaged or changed"
            );
            return Err(Error::file(&file, problem));
        }
        if record.temperature.is_some_and(|factor| !calibration::FACTORS.contains(&factor)) {
            return Err(Error::file(&file, "its temperature is none that calibration finds: it was changed"));
        }
        let (count, mut links) = (shapes.len(), vec![]);
        for (at, (shape, model)) in shapes.into_iter().zip(&record.models).enumerate() {
            let prefix = prefix(at, count);
            let own =
                if prefix.is_empty() { std::mem::take(&mut tensors) } else { tensors.split_off(&prefix) };
            let loaded = Model::from(&own, &prefix, shape).map_err(|error| Error::file(&file, error))?;
            links.push(Link { model: loaded, reads: model.reads.clone() });
        }
        let mut aggregates = Aggregates::new();
        for (index, &width) in record.aggregates.iter().enumerate() {
            let name = name(index + 1);
            // The data owner may keep back one that no mechanism protects; then there are no predictions.
            let Some(bytes) = read_file(&name)? else { continue };
            let values = files::parse_matrix(&folder.join(&name), &bytes, nodes, width)?;
            aggregates.push(Aggregate { values, width });
        }
        let Record { stage, temperature, aggregates: widths, .. } = record;
        Ok(Predictor { links, stage, aggregates, widths, temperature })
    }
}

impl Record {
    /// Whether what a model reads is as wide as its inputs, and comes from before it.
    fn fits(&self, at: usize, shapes: &[Shape], (columns, classes): (usize, usize)) -> bool {
        let width = |reads: &Reads| match *reads {
            Reads::Rows => Some(columns),
            Reads::Aggregate(index) => self.aggregates.get(index).copied(),
            Reads::Embedding(earlier) | Reads::Logits(earlier) if earlier >= at => None,
            Reads::Embedding(earlier) => match &shapes[earlier] {
                Shape::Network(architecture) => Some(architecture.hidden),
                Shape::Sage(_) | Shape::Views(_) | Shape::Addressed(_) => None,
            },
            Reads::Logits(earlier) => match &shapes[earlier] {
                Shape::Network(architecture) => Some(architecture.classes),
                Shape::Sage(_) | Shape::Views(_) | Shape::Addressed(_) => None,
            },
        };
        let widths: Option<Vec<usize>> = self.models[at]
            .reads
            .iter()
            .map(|reads| {
                let parts: Option<Vec<usize>> = reads.iter().map(width).collect();
                let joined = reads.len() == 1 || !reads.contains(&Reads::Rows);
                parts.filter(|_| joined).map(|parts| parts.into_iter().fold(0, usize::saturating_add))
            })
            .collect();
        match (&shapes[at], widths) {
            (_, None) => false,
            (Shape::Network(architecture), Some(widths)) => {
                architecture.inputs == widths && architecture.classes == classes
            }
            // Its rows, and some aggregates.
            (Shape::Views(shape), Some(widths)) => {
                shape.columns == columns
                    && shape.classes == classes
                    && self.models[at].reads.first() == Some(&vec![Reads::Rows])
                    && widths
                        .get(1..)
                        .is_some_and(|near| near.iter().copied().eq(shape.sums.iter().map(|sum| sum.width())))
            }
            (Shape::Addressed(shape), Some(widths)) => {
                let near: Vec<Vec<Reads>> =
                    (0..shape.sums.min(MAX_LINKS)).map(|index| vec![Reads::Aggregate(index)]).collect();
                let reads: Vec<Vec<Reads>> = std::iter::once(vec![Reads::Rows]).chain(near).collect();
                shape.columns == columns
                    && shape.classes == classes
                    && self.models[at].reads == reads
                    && widths[1..].iter().all(|&width| width == classes + 1)
                    && shape
                        .network
                        .as_ref()
                        .is_none_or(|network| network.inputs == [columns] && network.classes == classes)
            }
            // Its rows, and the aggregates in their order.
            (Shape::Sage(architecture), Some(widths)) => {
                let near = vec![architecture.hidden; architecture.convolutions.min(MAX_LINKS)];
                let expected: Vec<usize> = std::iter::once(columns).chain(near).collect();
                let ordered = (0..self.aggregates.len()).map(|index| vec![Reads::Aggregate(index)]);
                let reads: Vec<Vec<Reads>> = std::iter::once(vec![Reads::Rows]).chain(ordered).collect();
                architecture.inputs == columns
                    && architecture.classes == classes
                    && widths == expected
                    && self.models[at].reads == reads
            }
        }
    }
}

/// The prefix of the names of a model's tensors.
fn prefix(at: usize, models: usize) -> String {
    if at + 1 == models { String::new() } else { format!("before{at}.") }
}

/// The inputs of a model, those of several parts joined.
fn branches<'a>(link: &Link, aggregates: &'a Aggregates, given: &'a [Given]) -> Result<Vec<Branch<'a>>> {
    let part = |reads: Reads| -> Result<&'a Aggregate> {
        match reads {
            Reads::Aggregate(index) => aggregates.get(index).ok_or_else(|| {
                Error::unsuitable(
                    "what the model reads of a node's senders (private/aggregates-1.npy) was taken out of this \
                     release: \
                     predictions need it",
                )
            }),
            Reads::Embedding(at) => given.get(at).and_then(|given| given.embedding.as_ref()).ok_or_else(|| NO_MODEL.into()),
            Reads::Logits(at) => given.get(at).and_then(|given| given.logits.as_ref()).ok_or_else(|| NO_MODEL.into()),
            Reads::Rows => Err(Error::internal("rows are read by themselves")),
        }
    };
    let branch = |reads: &Vec<Reads>| match reads[..] {
        [Reads::Rows] => Ok(Branch::Rows),
        [one] => part(one).map(|part| Branch::Values(Cow::Borrowed(&part.values[..]), part.width)),
        _ => {
            let parts: Vec<&Aggregate> = reads.iter().map(|&reads| part(reads)).collect::<Result<_>>()?;
            let rows = parts.first().map_or(0, |part| part.values.len() / part.width.max(1));
            let (values, width) = side_by_side(&parts, 0..rows);
            Ok(Branch::Values(Cow::Owned(values), width))
        }
    };
    link.reads.iter().map(branch).collect()
}

fn inputs<'a>(rows: Input<'a>, branches: &'a [Branch<'_>]) -> Result<Inputs<'a>> {
    let input = |branch: &'a Branch<'_>| match branch {
        Branch::Rows => rows,
        Branch::Values(values, width) => Input::Dense { columns: *width, values },
    };
    Ok(Inputs::checked_before(branches.iter().map(input).collect())?)
}

fn all_logits(network: &Network, inputs: &Inputs<'_>) -> Result<Vec<f32>> {
    let everyone: Vec<u32> = (0..inputs.rows() as u32).collect();
    Ok(logits(network, inputs, &everyone)?)
}

/// Some rows of matrices of as many rows, joined row by row, and how wide they are together.
pub fn side_by_side(parts: &[&Aggregate], rows: Range<usize>) -> (Vec<f32>, usize) {
    let width: usize = parts.iter().map(|part| part.width).sum();
    let mut values = Vec::with_capacity(rows.len() * width);
    for row in rows {
        for part in parts {
            values.extend_from_slice(&part.values[row * part.width..][..part.width]);
        }
    }
    (values, width)
}

/// The file of the `number`-th aggregate; among the private ones if no mechanism protects it.
pub fn aggregate_name(settings: &Settings, number: usize) -> String {
    aggregate_file(settings.method.can().protects_predictions, number)
}

/// As [`aggregate_name`], where it is known whether one does.
pub fn aggregate_file(protected: bool, number: usize) -> String {
    if protected { format!("aggregates/{number}.npy") } else { format!("private/aggregates-{number}.npy") }
}
