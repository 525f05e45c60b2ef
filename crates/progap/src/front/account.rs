//! The cost of a run, asked without running it: the second question of the front door.

use progap_graph::Dataset;
use progap_privacy::accountant::Accountant;

use crate::plan::{self, Plan, PublicFacts};
use crate::query::Queries;
use crate::settings::{Declaration, Draft, Request, Size, ValidSettings};
use crate::{Error, Remedy, Result, run};

/// A question to the accountant: see [`account`](crate::account).
#[must_use = "nothing is accounted for before `plan`"]
#[derive(Debug, Clone)]
pub struct AccountQuery<'d> {
    request: Request,
    known: Vec<(Size, usize)>,
    dataset: Option<&'d Dataset>,
}

/// A run as its cost depends on it: settings with everything decided, and the sizes that decided it.
#[derive(Debug, Clone)]
pub struct ResolvedRun {
    /// The settings.
    pub settings: ValidSettings,
    /// What is public of the data, as far as anything follows from it.
    pub facts: PublicFacts,
}

impl<'d> AccountQuery<'d> {
    pub(crate) fn new(request: Request) -> AccountQuery<'d> {
        AccountQuery { request: request.at_any_cost(), known: vec![], dataset: None }
    }

    /// For a run on this data set.
    pub fn on(mut self, dataset: &'d Dataset) -> Self {
        self.dataset = Some(dataset);
        self
    }

    /// For data of this size.
    pub fn with(mut self, size: Size, count: usize) -> Self {
        self.known.push((size, count));
        self
    }

    /// The number of training nodes, on which the cost of gradients depends, and a depth that is not given.
    pub fn train_nodes(self, nodes: usize) -> Self {
        self.with(Size::TrainNodes, nodes)
    }

    /// The number of all nodes, for a delta that is not given, and at edge level for a depth.
    pub fn nodes(self, nodes: usize) -> Self {
        self.with(Size::Nodes, nodes)
    }

    /// The number of directed edges, for a delta that is not given at edge level.
    pub fn edges(self, edges: usize) -> Self {
        self.with(Size::Edges, edges)
    }

    /// The number of feature columns, for a depth that is not given at node level.
    pub fn columns(self, columns: usize) -> Self {
        self.with(Size::Columns, columns)
    }

    /// The number of classes, for a depth that is not given at node level.
    pub fn classes(self, classes: usize) -> Self {
        self.with(Size::Classes, classes)
    }

    /// The number of number columns without declared bounds, none where it is not given: whether they are counted with
    /// noise at node level follows from it and the number of nodes.
    pub fn number_columns(self, columns: usize) -> Self {
        self.with(Size::NumberColumns, columns)
    }

    /// The settings of the run and the sizes that they follow from.
    ///
    /// # Errors
    /// Settings that cannot work; sizes that are missing, and sizes that decide nothing.
    pub fn decided(&self) -> Result<ResolvedRun> {
        let draft = self.request.settings()?;
        let facts = match (self.dataset, self.known.first()) {
            (Some(_), Some((size, _))) => {
                return Err(no_effect(size.name(), "sizes are those of the data set"));
            }
            (Some(dataset), None) => PublicFacts::of(dataset, &draft),
            (None, _) => {
                self.check_sizes(&draft)?;
                PublicFacts::stated(self.known.iter().copied())
            }
        };
        Ok(ResolvedRun { settings: draft.resolve(&facts)?, facts })
    }

    /// The noise, and what it costs.
    ///
    /// # Errors
    /// As [`AccountQuery::decided`]; a data set that cannot be trained on.
    pub fn plan(&self) -> Result<Plan> {
        let decided = self.decided()?;
        match self.dataset {
            Some(dataset) => {
                let prepared = dataset.clone().prepared(decided.settings.preparation())?;
                run::prepare(&prepared, &decided.settings)
            }
            None => decided.plan(),
        }
    }

    /// Refuses sizes that are missing, and those that decide nothing.
    fn check_sizes(&self, settings: &Draft) -> Result<()> {
        let mut needed = settings.sizes_needed();
        let count =
            |wanted| self.known.iter().rev().find(|(size, _)| *size == wanted).map(|(_, count)| *count);
        let knows = |size| count(size).is_some();
        let train_nodes = count(Size::TrainNodes);
        for part in needed.iter_mut().filter(|part| part.instead == Some("batch_size")) {
            part.sizes = settings.batches_follow_from(train_nodes);
        }
        let columns = knows(Size::NumberColumns) && settings.is_open("scaling");
        let for_columns: &[Size] = if columns { &[Size::NumberColumns, Size::Nodes] } else { &[] };
        for part in &needed {
            let missing: Vec<&'static str> =
                part.sizes.iter().filter(|size| !knows(**size)).map(|size| size.name()).collect();
            if missing.is_empty() {
                continue;
            }
            let error = match part.instead {
                Some(setting) => {
                    let words =
                        Declaration::find(setting).map_or_else(|_| setting.into(), Declaration::words);
                    Error::unsuitable(format!("the {words} is not given, nor all that it follows from"))
                        .remedy(Remedy::Give(setting))
                }
                None => Error::unsuitable("at node level the cost depends on how often a node is in a batch"),
            };
            return Err(error.remedy(Remedy::GiveAll(missing)));
        }
        if columns && count(Size::NumberColumns) > Some(0) && !knows(Size::Nodes) {
            let what =
                "the number of nodes is not given, and the scaling follows from it and the number columns";
            return Err(Error::unsuitable(what).remedy(Remedy::Give("nodes")));
        }
        let decides =
            |size: &Size| for_columns.contains(size) || needed.iter().any(|part| part.sizes.contains(size));
        match self.known.iter().map(|(size, _)| size).find(|size| !decides(size)) {
            None => Ok(()),
            Some(size) => Err(no_effect(size.name(), "nothing that costs anything follows from it here")),
        }
    }
}

impl ResolvedRun {
    /// The noise by the accounting of the settings: that of training, to the last digit.
    ///
    /// # Errors
    /// A guarantee that no noise gives, or that the accountant cannot show.
    pub fn plan(&self) -> Result<Plan> {
        Plan::new(&self.settings, self.facts)
    }

    /// The noise that another accountant would ask for.
    ///
    /// # Errors
    /// As [`ResolvedRun::plan`].
    pub fn plan_by(&self, accountant: &dyn Accountant) -> Result<Plan> {
        Plan::by(accountant, &self.settings, self.facts)
    }

    /// The accountant of the settings.
    ///
    /// # Errors
    /// None: the settings name accountants that there are.
    pub fn accountant(&self) -> Result<&'static dyn Accountant> {
        plan::accountant(&self.settings)
    }

    /// The queries, with noise as large as the sensitivities: see [`plan::asked`].
    ///
    /// # Errors
    /// Sizes that contradict the settings.
    pub fn asked(&self) -> Result<Queries> {
        plan::asked(&self.settings, self.facts)
    }
}

fn no_effect(name: &'static str, why: &str) -> Error {
    Error::no_effect(name, why)
}
