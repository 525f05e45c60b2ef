//! The view of the sums, and its combination with the features.
//!
//! ```text
//! view          g(y | s) = softmax(s W + tanh(s U + c) V + b), s the sums of labels
//!               loss = - mean over all nodes of log sum over y of p(x | y) g(y | s),  p(x | y) = p(y | x) / p(y), or the label itself
//! combination   log p = [log p(y | x), log g(y | s), all sums, x] as a table (candidates.rs), on training nodes
//! ```
//!
//! Given the class both views are nearly independent, so that the features are evidence about every node, and errors of
//! theirs average out. The weights of the combination are pulled towards the plain product of both views, which is
//! right where they are independent.

use progap_nn::{Design, Evidence, Input, Inputs, Softmax, Start, Task};
use rayon::prelude::*;

use super::candidates::{Candidate, Known, Labelled, better, is_table, mean};
use super::features::{Features, unit_scale};
use super::{MANY_LABELS, Splits};
use crate::rows::Rows;
use crate::vault::Aggregate;
use crate::views::{Block, GraphView, Joined, Part, Sums, TableModel, ViewsShape, log_softmax, read_width};
use crate::{Error, Result};

/// Penalties of the view of the sums where there is no noise: nodes that are not fitted to choose.
const PENALTIES: [f64; 2] = [0.01, 0.001];
/// About as many rows tell which of them is better, in so many steps,
const SEARCHED: usize = 4096;
const SEARCH_STEPS: usize = 40;
/// and with that one the fit goes on to all of them for so many more.
const LATER_STEPS: usize = 20;
/// The penalty where [`MANY_LABELS`] tell the combination what the view could tell it.
const PENALTY_OF_MANY: f64 = 0.003;
/// The penalty under noise where one node in twenty has a label; it falls with the root of that share.
const PENALTY: f64 = 0.01;

/// Classes from which on less is tried, and the combination does not read the sums themselves: weights, and the time
/// that they take, grow with the square of the classes.
pub(super) const MANY_CLASSES: usize = 17;
/// The most products of a step of the view's fit, which bounds the rows that it is fitted to,
const MAX_PRODUCTS: usize = 1 << 28;
/// but to fewer than these it never is.
const MIN_ROWS: usize = 4096;

/// Inputs to the fit of a stage.
pub(super) struct Stage<'a> {
    pub shape: &'a ViewsShape,
    pub rows: &'a Rows,
    pub splits: &'a Splits,
    pub features: &'a Features,
    pub aggregates: &'a [Aggregate],
    pub seed: u64,
}

impl Stage<'_> {
    /// Both views together, and the log loss of each node that chooses.
    pub fn fit(&self) -> Result<(GraphView, Vec<f64>)> {
        let (shape, splits) = (self.shape, self.splits);
        let of = |(aggregate, &sum): (&Aggregate, _)| Block::of(&aggregate.values, sum);
        let blocks: Vec<Block> = self.aggregates.iter().zip(&shape.sums).map(of).collect();
        let share = splits.train_nodes as f64 / self.rows.labels().len().max(1) as f64;
        let (penalties, steps) = match shape.directions {
            true if shape.classes >= MANY_CLASSES => (vec![PENALTIES[0]], 40),
            true if splits.train_nodes < MANY_LABELS => (PENALTIES.to_vec(), 100),
            true => (vec![PENALTY_OF_MANY], 40),
            false => (vec![PENALTY * (0.05 / share).sqrt().clamp(0.1, 2.0)], 60),
        };
        let products = self.view_columns() * (shape.classes + shape.hidden);
        let everyone = splits.part(MIN_ROWS.max(MAX_PRODUCTS / products.max(1)));
        let (searched, steps) = match penalties.len() > 1 && everyone.len() > SEARCHED {
            true => (splits.part(SEARCHED), SEARCH_STEPS),
            false => (everyone.clone(), steps),
        };
        let data = self.view_data(&blocks, &searched, None)?;
        let mut best: Option<(f64, f64, (Softmax, Start), Candidate)> = None;
        for decay in penalties {
            let found = data.fit(self, decay, steps, None)?;
            let combination = self.linear(&blocks, (&found.0, &[]))?;
            let log_loss = mean(&combination.log_losses);
            if best.as_ref().is_none_or(|(least, ..)| log_loss < *least) {
                best = Some((log_loss, decay, found, combination));
            }
        }
        let (_, decay, (mut view, start), mut combination) =
            best.ok_or(Error::internal("no penalty was tried"))?;
        if searched.len() < everyone.len() {
            view = self.view_data(&blocks, &everyone, None)?.fit(self, decay, LATER_STEPS, Some(&start))?.0;
            combination = self.linear(&blocks, (&view, &[]))?;
        }
        if self.is_table() {
            let by_others = self.views_by_others(&blocks, &searched, decay, steps)?;
            if !by_others.is_empty() {
                combination = self.linear(&blocks, (&view, &by_others))?;
            }
            combination = self.or_more_than_linear(&blocks, (&view, &by_others), combination)?;
        }
        let Candidate { model, log_losses, .. } = combination;
        Ok((GraphView { blocks, view, combination: model }, log_losses))
    }

    /// The columns that the view of the sums reads.
    fn view_columns(&self) -> usize {
        read_width(&self.shape.sums, self.shape.directions, Part::Labels)
    }

    /// Where training nodes choose, for each of their folds the view of the sums that was fitted without its labels.
    fn views_by_others(
        &self,
        blocks: &[Block],
        nodes: &[u32],
        decay: f64,
        steps: usize,
    ) -> Result<Vec<Softmax>> {
        let folds = self.splits.folds();
        let without =
            |fold: usize| Ok(self.view_data(blocks, nodes, Some(fold))?.fit(self, decay, steps, None)?.0);
        (0..if folds.choosing > 0 { folds.count } else { 0 }).into_par_iter().map(without).collect()
    }

    /// The design and likelihoods of some nodes, to which the view of the sums is fitted, perhaps without the labels of
    /// a fold.
    fn view_data(&self, blocks: &[Block], nodes: &[u32], without: Option<usize>) -> Result<ViewData> {
        let sums = self.sums(blocks, nodes);
        let design = Design::new(&self.view_inputs(&sums)?, &(0..nodes.len() as u32).collect::<Vec<_>>())?;
        Ok(ViewData { design, likelihoods: self.likelihoods(nodes, without)? })
    }

    fn sums(&self, blocks: &[Block], nodes: &[u32]) -> Sums {
        let values: Vec<&[f32]> = self.aggregates.iter().map(|a| &a.values[..]).collect();
        Sums::of(blocks, &values, nodes, self.shape.directions)
    }

    fn view_inputs<'s>(&self, sums: &'s Sums) -> Result<Inputs<'s>> {
        let dense = Input::Dense { columns: self.view_columns(), values: sums.labels() };
        Ok(Inputs::checked_before(vec![dense])?)
    }

    /// How likely what is known of each node besides the sums would be in each class, up to a factor for each node.
    fn likelihoods(&self, nodes: &[u32], without: Option<usize>) -> Result<Vec<f32>> {
        let (rows, splits) = (self.rows, self.splits);
        let (classes, priors) = (rows.classes(), splits.priors(rows));
        let mut values = self.features.known(rows, nodes)?;
        let folds = splits.folds();
        let is_left_out = |node: &u32| {
            let place = self.features.places.get(node).copied();
            without.is_some_and(|fold| place.is_some_and(|place| folds.holds(fold, place)))
        };
        for (&node, row) in nodes.iter().zip(values.chunks_exact_mut(classes)) {
            if splits.is_train[node as usize] && !is_left_out(&node) {
                let label = rows.labels()[node as usize] as usize;
                row.fill(0.0);
                row[label] = (1.0 / priors[label]) as f32;
                continue;
            }
            row.iter_mut().zip(&priors).for_each(|(value, prior)| {
                *value = (f64::from(value.exp()) / prior) as f32;
            });
        }
        Ok(values)
    }

    /// The linear combination that nodes that choose like best.
    fn linear(&self, blocks: &[Block], view: View<'_>) -> Result<Candidate> {
        let shape = self.shape;
        let (many, out_of_fold) = (shape.classes >= MANY_CLASSES, self.is_table());
        let read = self.read(blocks, false)?;
        let joined = self.joined(&read, view)?;
        let inputs = |part: usize| if many { joined[part].views() } else { joined[part].inputs() };
        let inputs = [inputs(0)?, inputs(1)?];
        let centre = self.product(if many { 0 } else { shape.width() });
        let combination = self.labelled(&read, &inputs).linear(&centre, out_of_fold)?;
        Ok(match many {
            true => {
                let model = TableModel::new(shape.blind_to_sums(&combination.model.base)?);
                Candidate { model, ..combination }
            }
            false => combination,
        })
    }

    /// Whether more than linear combinations are tried.
    fn is_table(&self) -> bool {
        is_table(self.shape.columns, self.shape.classes) && self.splits.train.len() > 1
    }

    /// The better of a linear combination and a perceptron that reads the rows too, with trees where these help.
    fn or_more_than_linear(&self, blocks: &[Block], view: View<'_>, linear: Candidate) -> Result<Candidate> {
        let shape = self.shape;
        let read = self.read(blocks, true)?;
        let joined = self.joined(&read, view)?;
        let inputs = [joined[0].inputs()?, joined[1].inputs()?];
        let data = self.labelled(&read, &inputs);
        let own = Inputs::checked_before(inputs[0].as_slice()[3..].to_vec())?;
        let scales = [1.0, 1.0, 1.0, unit_scale(&own, shape.columns)?];
        let perceptron = data.perceptron(&self.product(shape.width() + shape.columns), &scales)?;
        data.boosted(better(linear, perceptron))
    }

    /// Weights of the plain product of both views, with this many columns beside them.
    fn product(&self, others: usize) -> Vec<f32> {
        let classes = self.shape.classes;
        let mut product = vec![0f32; (2 * classes + others) * classes];
        (0..2 * classes).for_each(|row| product[row * classes + row % classes] = 1.0);
        product
    }

    /// What is read of training nodes and of those held out, with or without their rows.
    fn read(&self, blocks: &[Block], with_rows: bool) -> Result<Read> {
        let (rows, parts) = (self.rows, [&self.splits.train, &self.splits.held_out]);
        let own = match with_rows {
            true => Some([rows.own()?.dense_rows(parts[0])?, rows.own()?.dense_rows(parts[1])?]),
            false => None,
        };
        Ok(Read {
            sums: parts.map(|nodes| self.sums(blocks, nodes)),
            own,
            places: parts.map(|nodes| (0..nodes.len() as u32).collect()),
            labels: parts.map(|nodes| Splits::labels(rows, nodes)),
        })
    }

    fn joined<'r>(&self, read: &'r Read, (view, by_others): View<'_>) -> Result<[Joined<'r>; 2]> {
        let parts = [&self.splits.train, &self.splits.held_out];
        let joined = |part: usize| -> Result<Joined<'r>> {
            let (inputs, classes) = (self.view_inputs(&read.sums[part])?, self.shape.classes);
            let mut seen = view.logits(&inputs, &read.places[part])?;
            for (fold, without) in by_others.iter().enumerate().filter(|_| part == 0) {
                let left_out = self.splits.folds().of(fold, &read.places[part]);
                let logits = without.logits(&inputs, &left_out)?;
                for (&place, logits) in left_out.iter().zip(logits.chunks_exact(classes)) {
                    seen[place as usize * classes..][..classes].copy_from_slice(logits);
                }
            }
            log_softmax(&mut seen, classes);
            let known = self.features.known(self.rows, parts[part])?;
            let own = read.own.as_ref().map(|own| &own[part][..]);
            Ok(Joined::new(&known, &seen, read.sums[part].all(), own, self.shape))
        };
        Ok([joined(0)?, joined(1)?])
    }

    fn labelled<'i>(&self, read: &'i Read, inputs: &'i [Inputs<'i>; 2]) -> Labelled<'i> {
        let known = |part: usize| Known {
            inputs: &inputs[part],
            places: &read.places[part],
            labels: &read.labels[part],
        };
        let (folds, classes) = (self.splits.folds(), self.shape.classes);
        Labelled { fitted: known(0), held_out: known(1), folds, classes }
    }
}

/// The view of the sums, and for each fold of the training nodes the one that was fitted without it; none where their
/// labels do not choose.
type View<'a> = (&'a Softmax, &'a [Softmax]);

/// Sums, rows and labels of training nodes and of those held out.
struct Read {
    sums: [Sums; 2],
    own: Option<[Vec<f32>; 2]>,
    places: [Vec<u32>; 2],
    labels: [Vec<u32>; 2],
}

/// Rows of sums, and what is known of each besides them.
struct ViewData {
    design: Design,
    likelihoods: Vec<f32>,
}

impl ViewData {
    fn fit(
        &self,
        stage: &Stage<'_>,
        decay: f64,
        iterations: usize,
        start: Option<&Start>,
    ) -> Result<(Softmax, Start)> {
        let task = Task {
            evidence: Evidence::Likelihoods(&self.likelihoods),
            classes: stage.shape.classes,
            row_weights: &[],
            hidden: stage.shape.hidden,
            decay,
            towards: &[],
            iterations,
            tolerance: 1e-6,
            seed: stage.seed,
        };
        Ok(self.design.fit(&task, start)?)
    }
}
