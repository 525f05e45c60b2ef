//! A run as data: the stages of a method, what each asks of private data before it is trained, and the model that it
//! trains. The number of stages, widths, the queries with their noise, bounds on memory and files, and words are folds
//! over it; a fit walks it ([`Walk`]), so that what is planned and what is asked cannot be different things.

use progap_graph::Dataset;

use crate::model::Shape;
use crate::plan::{PublicFacts, sensitivity};
use crate::settings::{Level, Settings};
use crate::vault::{asks_for_columns, asks_for_counts, vote_sensitivity};
use crate::{ErrorKind, Result};

/// The mechanism that answers a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryKind {
    /// Sums of messages over the graph, with Gaussian noise.
    Aggregation,
    /// Votes of neighbours for a class, counted with Laplace noise.
    Votes,
    /// The graph by randomised response on every possible edge, with its number of edges.
    Response,
    /// Training nodes of each class, with Gaussian noise.
    ClassCounts,
    /// Values of number columns, counted with Gaussian noise.
    ColumnCounts,
    /// Sums of own rows over the training nodes of each class, with Gaussian noise.
    ClassSums,
    /// Sums of public rows over the training nodes of each class, with Gaussian noise.
    LabelTable,
    /// Sums of clipped gradients over rows, with Gaussian noise, in each step of a stage.
    Gradient,
    /// The same over nodes with their senders.
    SubgraphGradient,
}

impl QueryKind {
    /// Whether its answer depends on edges.
    pub fn reads_edges(self) -> bool {
        use QueryKind::{Aggregation, Response, SubgraphGradient, Votes};
        matches!(self, Aggregation | Votes | Response | SubgraphGradient)
    }

    /// Whether its answer is a row for each node.
    pub fn is_sum(self) -> bool {
        matches!(self, QueryKind::Aggregation | QueryKind::Votes)
    }

    /// Whether it is asked in every step of training, and not once before it.
    pub fn is_gradient(self) -> bool {
        matches!(self, QueryKind::Gradient | QueryKind::SubgraphGradient)
    }
}

/// A query of a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct QuerySpec {
    pub kind: QueryKind,
    /// What is summed over neighbours, in words.
    pub of: &'static str,
    /// Numbers in the answer for each node, at most, or for each class of a table; 0 where it is neither.
    pub width: usize,
    /// How far one record moves the answer, or one touched term of it.
    pub sensitivity: f64,
}

impl QuerySpec {
    /// A sum of messages of this width.
    pub fn aggregation(settings: &Settings, of: &'static str, width: usize) -> QuerySpec {
        QuerySpec { kind: QueryKind::Aggregation, of, width, sensitivity: sensitivity(settings) }
    }

    /// A count of votes for one of these classes.
    pub fn votes(settings: &Settings, classes: usize) -> QuerySpec {
        let (of, sensitivity) = ("predicted classes", vote_sensitivity(settings));
        QuerySpec { kind: QueryKind::Votes, of, width: classes, sensitivity }
    }

    /// A table with a row of this width for each class, of rows of norm one.
    pub fn table(kind: QueryKind, width: usize) -> QuerySpec {
        QuerySpec { kind, of: "", width, sensitivity: 1.0 }
    }

    /// A query without a row for each node.
    pub fn of_kind(kind: QueryKind, sensitivity: f64) -> QuerySpec {
        QuerySpec { kind, of: "", width: 0, sensitivity }
    }
}

/// How a stage comes to its model.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Training {
    /// By epochs over the rows that it trains on.
    Epochs(usize),
    /// Fitted to its optimum at once.
    AtOnce {
        /// The most nodes, with or without a label, whose aggregates and probabilities are held to be fitted to.
        max_rows: usize,
        /// Whether the rows of all nodes are read again and again, and not of labelled ones alone.
        reads_all_rows: fn(&Dataset) -> bool,
    },
}

/// A model, what is asked for it, and how it is trained.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    /// Asked before it is trained, in this order; those of gradients while it is.
    pub queries: Vec<QuerySpec>,
    pub model: Shape,
    pub training: Training,
}

impl Stage {
    /// Trained by the epochs of the settings, with nothing asked before.
    pub fn by_epochs(settings: &Settings, model: Shape) -> Stage {
        Stage { queries: vec![], model, training: Training::Epochs(settings.epochs) }
    }

    /// The same, after queries.
    pub fn after(self, queries: impl IntoIterator<Item = QuerySpec>) -> Stage {
        Stage { queries: queries.into_iter().collect(), ..self }
    }

    /// The most epochs.
    pub fn epochs(&self) -> usize {
        match self.training {
            Training::Epochs(epochs) => epochs,
            Training::AtOnce { .. } => 1,
        }
    }
}

/// The stages of a run, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub stages: Vec<Stage>,
    /// Whether messages or the stage that is released are chosen by what happened so far.
    pub is_adaptive: bool,
}

impl Program {
    /// A program of these stages. What every method asks at a level where settings want it is added: maps of columns
    /// before anything else, noisy gradients in each stage with epochs, counts of classes after the last.
    pub fn new(settings: &Settings, stages: impl IntoIterator<Item = Stage>) -> Program {
        let mut stages: Vec<Stage> = stages.into_iter().collect();
        if settings.level == Level::Node {
            let gradient = QuerySpec::of_kind(QueryKind::Gradient, settings.clip);
            let has_own = |stage: &Stage| stage.queries.iter().any(|query| query.kind.is_gradient());
            let by_epochs = |stage: &Stage| matches!(stage.training, Training::Epochs(_)) && !has_own(stage);
            stages.iter_mut().filter(|stage| by_epochs(stage)).for_each(|stage| stage.queries.push(gradient));
        }
        if let Some(first) = stages.first_mut().filter(|_| asks_for_columns(settings)) {
            first.queries.insert(0, QuerySpec::of_kind(QueryKind::ColumnCounts, 1.0));
        }
        if let Some(last) = stages.last_mut().filter(|_| asks_for_counts(settings)) {
            last.queries.push(QuerySpec::of_kind(QueryKind::ClassCounts, 1.0));
        }
        Program { stages, is_adaptive: false }
    }

    /// All queries in their order, each with its stage.
    pub fn queries(&self) -> impl Iterator<Item = (usize, &QuerySpec)> {
        self.stages
            .iter()
            .enumerate()
            .flat_map(|(at, stage)| stage.queries.iter().map(move |query| (at, query)))
    }

    /// How many queries there are of a kind; of gradients, in how many stages.
    pub fn count(&self, kind: QueryKind) -> usize {
        self.queries().filter(|(_, query)| query.kind == kind).count()
    }

    /// The sums over the graph, in their order.
    pub fn sums(&self) -> impl Iterator<Item = &QuerySpec> {
        self.queries().map(|(_, query)| query).filter(|query| query.kind.is_sum())
    }

    /// Whether anything is asked of the edges.
    pub fn reads_edges(&self) -> bool {
        self.queries().any(|(_, query)| query.kind.reads_edges())
    }

    /// The widths of what models read beside rows: of sums, or of what the convolutions of the last model read.
    pub fn aggregate_widths(&self) -> Vec<usize> {
        match self.stages.last().map(|stage| &stage.model) {
            Some(Shape::Sage(sage)) => vec![sage.hidden; sage.convolutions],
            _ => self.sums().map(|query| query.width).collect(),
        }
    }

    /// The most epochs of a stage.
    pub fn epochs(&self) -> usize {
        self.stages.iter().map(Stage::epochs).max().unwrap_or(0)
    }

    /// The most parameters that the model of a stage has.
    ///
    /// # Errors
    /// A shape that no model has.
    pub fn max_parameters(&self) -> Result<usize> {
        self.stages.iter().try_fold(0, |most, stage| Ok(most.max(stage.model.max_parameters()?)))
    }

    /// The parameters of the last stage that a model can have: of settings at the ends of their ranges some stages are
    /// none.
    pub fn largest_model(&self) -> u64 {
        let counts = self.stages.iter().rev().filter_map(|stage| stage.model.max_parameters().ok());
        counts.map(|count| count as u64).next().unwrap_or(0)
    }

    /// An upper bound on the values of noise that are drawn from tables, where each stage with gradients has this many
    /// steps.
    pub fn noise_values(&self, sizes: PublicFacts, steps: u64) -> u64 {
        let values = |(stage, query): (usize, &QuerySpec)| match query.kind {
            QueryKind::Aggregation => (sizes.nodes as u64).saturating_mul(query.width as u64),
            QueryKind::ClassCounts => sizes.classes as u64,
            QueryKind::ClassSums | QueryKind::LabelTable => {
                (sizes.classes as u64).saturating_mul(query.width as u64)
            }
            QueryKind::ColumnCounts => crate::vault::column_bins(sizes.columns),
            QueryKind::Gradient | QueryKind::SubgraphGradient => {
                // Where nobody said how many classes there are, there is no model to count.
                let too_many = if sizes.classes == 0 { 0 } else { usize::MAX };
                let parameters = self.stages[stage].model.parameter_count().unwrap_or(too_many);
                steps.saturating_mul(parameters as u64)
            }
            // Sampled exactly: tables take a part of delta, and there is none.
            QueryKind::Votes | QueryKind::Response => 0,
        };
        self.queries().map(values).fold(0, u64::saturating_add)
    }
}

/// Where a fit is in its program. What the program does not say is refused before anything is drawn for it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Walk {
    /// Queries so far, those of gradients aside.
    asked: usize,
    /// Stages that are done.
    trained: usize,
}

const ASTRAY: ErrorKind = ErrorKind::Internal("the method asks for something else than its program says");

impl Walk {
    /// The next query, if it is of this kind and width. It may be asked as soon as the stage before its own is done.
    pub fn ask(&mut self, program: &Program, kind: QueryKind, width: usize) -> Result<()> {
        let next = program.queries().filter(|(_, query)| !query.kind.is_gradient()).nth(self.asked);
        let (stage, query) = next.ok_or(ASTRAY)?;
        if query.kind != kind || query.width != width || self.trained < stage {
            return Err(ASTRAY.into());
        }
        self.asked += 1;
        Ok(())
    }

    /// The stage to be trained, if it is the next, and all that its model reads was asked for.
    pub fn train(&self, program: &Program, stage: usize, model: &Shape) -> Result<()> {
        let is_before = |(at, query): &(usize, &QuerySpec)| {
            *at <= stage && !query.kind.is_gradient() && query.kind != QueryKind::ClassCounts
        };
        let whole = program.queries().filter(is_before).count() == self.asked;
        let planned = program.stages.get(stage).is_some_and(|planned| planned.model == *model);
        if whole && planned && stage == self.trained { Ok(()) } else { Err(ASTRAY.into()) }
    }

    /// A stage is done.
    pub fn trained(&mut self) {
        self.trained += 1;
    }

    /// Refuses an end before everything was asked and trained.
    pub fn finish(&self, program: &Program) -> Result<()> {
        let all = program.queries().filter(|(_, query)| !query.kind.is_gradient()).count();
        if self.asked == all && self.trained == program.stages.len() { Ok(()) } else { Err(ASTRAY.into()) }
    }
}
