//! The second view, taught on all nodes, and its combination with the first.

use progap_nn::{Design, Evidence, Input, Inputs, Softmax, Start, Task};

use super::combination::{Combination, Known, pulled_towards};
use super::evaluate::mean;
use super::features::Features;
use super::{MANY_LABELS, Roles};
use crate::rows::Rows;
use crate::vault::Aggregate;
use crate::views::{Block, GraphView, Joined, ViewsShape, log_softmax, read};
use crate::{Error, Result};

/// Penalties of the view of the sums where there is no noise: nodes that judge choose.
const PENALTIES: [f64; 2] = [0.01, 0.001];
/// About as many rows tell which of them is better, in so many steps,
const SEARCHED: usize = 4096;
const SEARCH_STEPS: usize = 40;
/// and with that one the fit goes on to all of them for so many more.
const LATER_STEPS: usize = 20;
/// The penalty where [`MANY_LABELS`] teach the combination what the view could tell it.
const PENALTY_OF_MANY: f64 = 0.003;
/// The penalty under noise where one node in twenty has a label; it falls with the root of that share.
const PENALTY: f64 = 0.01;

/// Classes from which on less is tried, and the combination does not read the sums themselves: weights, and the time that they take, grow
/// with the square of the classes.
pub(super) const MANY_CLASSES: usize = 17;
/// The most products of a step of the view's fit, which bounds the rows that it is fitted to,
const MOST_PRODUCTS: usize = 1 << 28;
/// but to fewer than these it never is.
const LEAST_ROWS: usize = 4096;

/// Inputs to the fit of a stage.
pub(super) struct Stage<'a> {
    pub shape: &'a ViewsShape,
    pub rows: &'a Rows,
    pub roles: &'a Roles,
    pub features: &'a Features,
    pub aggregates: &'a [Aggregate],
    pub seed: u64,
}

impl Stage<'_> {
    /// Both views together, and the log loss of each node that judges.
    pub fn fit(&self) -> Result<(GraphView, Vec<f64>)> {
        let (shape, roles) = (self.shape, self.roles);
        let blocks: Vec<Block> =
            self.aggregates.iter().map(|a| Block::of(&a.values, shape.classes)).collect();
        let share = roles.train_nodes as f64 / self.rows.labels().len().max(1) as f64;
        let (penalties, steps) = match shape.directions {
            true if shape.classes >= MANY_CLASSES => (vec![PENALTIES[0]], 40),
            true if roles.train_nodes < MANY_LABELS => (PENALTIES.to_vec(), 100),
            true => (vec![PENALTY_OF_MANY], 40),
            false => (vec![PENALTY * (0.05 / share).sqrt().clamp(0.1, 2.0)], 60),
        };
        let products = shape.width() * (shape.classes + shape.hidden);
        let everyone = roles.part(LEAST_ROWS.max(MOST_PRODUCTS / products));
        let (searched, steps) = match penalties.len() > 1 && everyone.len() > SEARCHED {
            true => (roles.part(SEARCHED), SEARCH_STEPS),
            false => (everyone.clone(), steps),
        };
        let lesson = self.lesson(&blocks, &searched)?;
        let mut best: Option<(f64, f64, (Softmax, Start), Combination)> = None;
        for decay in penalties {
            let found = lesson.learn(self, decay, steps, None)?;
            let combination = self.combine(&blocks, &found.0)?;
            let log_loss = mean(&combination.log_losses);
            if best.as_ref().is_none_or(|(least, ..)| log_loss < *least) {
                best = Some((log_loss, decay, found, combination));
            }
        }
        let (_, decay, (mut view, start), mut combination) =
            best.ok_or(Error::Internal("no penalty was tried"))?;
        if searched.len() < everyone.len() {
            view = self.lesson(&blocks, &everyone)?.learn(self, decay, LATER_STEPS, Some(&start))?.0;
            combination = self.combine(&blocks, &view)?;
        }
        let Combination { model, log_losses } = combination;
        Ok((GraphView { blocks, view, combination: model }, log_losses))
    }

    /// The design and likelihoods of some nodes, from which the view of the sums learns.
    fn lesson(&self, blocks: &[Block], nodes: &[u32]) -> Result<Lesson> {
        let sums = self.sums(blocks, nodes);
        let design = Design::new(&self.inputs(&sums)?, &(0..nodes.len() as u32).collect::<Vec<_>>())?;
        Ok(Lesson { design, likelihoods: self.likelihoods(nodes)? })
    }

    fn sums(&self, blocks: &[Block], nodes: &[u32]) -> Vec<f32> {
        let values: Vec<&[f32]> = self.aggregates.iter().map(|a| &a.values[..]).collect();
        read(blocks, &values, nodes, self.shape)
    }

    fn inputs<'s>(&self, sums: &'s [f32]) -> Result<Inputs<'s>> {
        Ok(Inputs::checked_before(vec![Input::Dense { columns: self.shape.width(), values: sums }])?)
    }

    /// How likely what is known of each node besides the sums would be in each class, up to a factor for each node.
    fn likelihoods(&self, nodes: &[u32]) -> Result<Vec<f32>> {
        let (rows, roles) = (self.rows, self.roles);
        let (classes, priors) = (rows.classes(), roles.priors(rows));
        let mut values = self.features.known(rows, nodes)?;
        for (&node, row) in nodes.iter().zip(values.chunks_exact_mut(classes)) {
            if roles.is_train[node as usize] {
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

    /// The combination that nodes that judge like best.
    fn combine(&self, blocks: &[Block], view: &Softmax) -> Result<Combination> {
        let (shape, rows, roles) = (self.shape, self.rows, self.roles);
        let (classes, width) = (shape.classes, shape.width());
        let parts = [&roles.train, &roles.held_out];
        let sums = parts.map(|nodes| self.sums(blocks, nodes));
        let places = parts.map(|nodes| (0..nodes.len() as u32).collect::<Vec<_>>());
        let labels = parts.map(|nodes| Roles::labels(rows, nodes));
        let joined = |part: usize| -> Result<Joined<'_>> {
            let mut seen = view.logits(&self.inputs(&sums[part])?, &places[part])?;
            log_softmax(&mut seen, classes);
            Ok(Joined::new(&self.features.known(rows, parts[part])?, &seen, &sums[part], shape))
        };
        let joined = [joined(0)?, joined(1)?];
        let many = classes >= MANY_CLASSES;
        let inputs = |part: usize| if many { joined[part].views() } else { joined[part].inputs() };
        let inputs = [inputs(0)?, inputs(1)?];
        let known =
            |part: usize| Known { inputs: &inputs[part], places: &places[part], labels: &labels[part] };
        let mut product = vec![0f32; (2 * classes + if many { 0 } else { width }) * classes];
        (0..2 * classes).for_each(|row| product[row * classes + row % classes] = 1.0);
        let combination = pulled_towards(&product, classes, (known(0), known(1)), roles.folds())?;
        Ok(match many {
            true => Combination { model: shape.blind_to_sums(&combination.model)?, ..combination },
            false => combination,
        })
    }
}

/// Rows of sums, and what is known of each besides them.
struct Lesson {
    design: Design,
    likelihoods: Vec<f32>,
}

impl Lesson {
    fn learn(
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
