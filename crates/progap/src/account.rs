//! The cost of a run, asked without running it: the second question of the front door.

use progap_graph::Dataset;
use progap_privacy::accountant::Accountant;

use crate::plan::{self, Plan, PublicSizes};
use crate::query::Queries;
use crate::settings::{Checked, Request, Settings, Size};
use crate::{Error, Result, run};

/// A question to the accountant: see [`account`](crate::account).
#[must_use = "nothing is accounted for before `plan`"]
#[derive(Debug, Clone)]
pub struct Accounted<'d> {
    request: Request,
    sizes: PublicSizes,
    known: Vec<Size>,
    dataset: Option<&'d Dataset>,
}

/// A run as its cost depends on it: settings with everything decided, and the sizes that decided it.
#[derive(Debug, Clone)]
pub struct Decided {
    /// The settings.
    pub settings: Checked,
    /// The sizes, as far as anything follows from them.
    pub sizes: PublicSizes,
}

impl<'d> Accounted<'d> {
    pub(crate) fn new(request: Request) -> Accounted<'d> {
        Accounted {
            request: request.at_any_cost(),
            sizes: PublicSizes::default(),
            known: vec![],
            dataset: None,
        }
    }

    /// For a run on this data set.
    pub fn on(mut self, dataset: &'d Dataset) -> Self {
        self.dataset = Some(dataset);
        self
    }

    /// For data of this size.
    pub fn with(mut self, size: Size, count: usize) -> Self {
        size.set(&mut self.sizes, count);
        self.known.push(size);
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

    /// The number of number columns without declared bounds, none where it is not given: whether they are counted with noise at node
    /// level follows from it and the number of nodes.
    pub fn number_columns(self, columns: usize) -> Self {
        self.with(Size::NumberColumns, columns)
    }

    /// The settings of the run and the sizes that they follow from.
    ///
    /// # Errors
    /// Settings that cannot work; sizes that are missing, and sizes that decide nothing.
    pub fn decided(&self) -> Result<Decided> {
        let settings = self.request.settings()?;
        if let Some(dataset) = self.dataset {
            if let Some(name) = self.known.first().map(|size| size.name()) {
                return Err(no_effect(name, "sizes are those of the data set"));
            }
            let settings = settings.on(dataset)?;
            let sizes = PublicSizes::of(dataset, &settings);
            return Ok(Decided { settings, sizes });
        }
        self.check_sizes(&settings)?;
        Ok(Decided { settings: settings.for_sizes(self.sizes), sizes: self.sizes })
    }

    /// The noise, and what it costs.
    ///
    /// # Errors
    /// As [`Accounted::decided`]; a data set that cannot be trained on.
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
    fn check_sizes(&self, settings: &Settings) -> Result<()> {
        let mut needed = settings.sizes_needed();
        let train_nodes = self.known.contains(&Size::TrainNodes).then_some(self.sizes.train_nodes);
        for part in needed.iter_mut().filter(|part| part.instead == Some("batch_size")) {
            part.sizes = settings.batches_follow_from(train_nodes);
        }
        let columns = self.known.contains(&Size::NumberColumns) && settings.from_sizes.scaling;
        let for_columns: &[Size] = if columns { &[Size::NumberColumns, Size::Nodes] } else { &[] };
        let named = |sizes: &[Size]| {
            let names: Vec<String> = sizes.iter().map(|size| format!("`{}`", size.name())).collect();
            names.join(" and ")
        };
        for part in &needed {
            let missing: Vec<Size> =
                part.sizes.iter().copied().filter(|size| !self.known.contains(size)).collect();
            let names = named(&missing);
            match part.instead {
                _ if missing.is_empty() => {}
                Some(setting) => {
                    return unknown(format!("give `{setting}`, or {names} that it follows from"));
                }
                None => {
                    return unknown(format!(
                        "give {names}: at `level node` the cost depends on how often a node is in a batch"
                    ));
                }
            }
        }
        if columns && self.sizes.open_numbers > 0 && !self.known.contains(&Size::Nodes) {
            return unknown("give `nodes` beside `number_columns`: the scaling follows from both".into());
        }
        let decides =
            |size: &Size| for_columns.contains(size) || needed.iter().any(|part| part.sizes.contains(size));
        match self.known.iter().find(|size| !decides(size)) {
            None => Ok(()),
            Some(size) => Err(no_effect(size.name(), "nothing that costs anything follows from it here")),
        }
    }
}

impl Decided {
    /// The noise by the accounting of the settings: that of training, to the last digit.
    ///
    /// # Errors
    /// A guarantee that no noise gives, or that the accountant cannot show.
    pub fn plan(&self) -> Result<Plan> {
        Plan::new(&self.settings, self.sizes)
    }

    /// The noise that another accountant would ask for.
    ///
    /// # Errors
    /// As [`Decided::plan`].
    pub fn plan_by(&self, accountant: &dyn Accountant) -> Result<Plan> {
        Plan::by(accountant, &self.settings, self.sizes)
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
        plan::asked(&self.settings, self.sizes)
    }
}

fn unknown<T>(problem: String) -> Result<T> {
    Err(Error::Unsuitable(problem))
}

fn no_effect(name: &'static str, why: &str) -> Error {
    Error::NoEffect { name, why: why.into() }
}
