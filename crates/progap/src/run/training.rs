//! Training as it is asked for: data, settings, and where the result goes.

use std::path::{Path, PathBuf};

use progap_graph::{AtomicFolder, Buffer, Dataset, DatasetParts, Graph, Part};
use progap_privacy::noise::RunKey;
use serde_json::Value;

use super::memory::InMemoryRun;
use super::pipeline::{World, fit, metrics};
use super::{Account, RunFile, RunFolder, charge_new, charge_run, chargeable, prepare, run_in_pool};
use crate::assessment::Assessment;
use crate::files;
use crate::method::Observer;
use crate::method::checkpoint::State;
use crate::method::trainer::RunSpec;
use crate::order::{self, Arranged, OwnersOrder};
use crate::plan::Plan;
use crate::predictor::{Predictor, aggregate_name};
use crate::release::{self, Config, Guarantee, Metrics, Predictions, Release, Statement};
use crate::settings::{Order, PublicFacts, Request, Settings, ValidSettings};
use crate::{Error, Remedy, Result};

/// A run that is about to be made: see [`train`](crate::train).
#[must_use = "nothing is trained before `into_folder` or `in_memory`"]
pub struct Training<'t> {
    pub(super) dataset: &'t Dataset,
    pub(super) request: Request,
    pub(super) ledger: Option<PathBuf>,
    pub(super) ledger_name: Option<String>,
    pub(super) account: Option<Account>,
    pub(super) source: Value,
    pub(super) observer: Option<&'t mut dyn Observer>,
}

impl<'t> Training<'t> {
    pub(crate) fn new(dataset: &'t Dataset, request: Request) -> Training<'t> {
        Training {
            dataset,
            request,
            ledger: None,
            ledger_name: None,
            account: None,
            source: Value::Null,
            observer: None,
        }
    }

    /// Charges this ledger before any noisy value is used. The budget is found by the data, or by the data set's own
    /// name; the observer is told what the owner should know about it.
    pub fn ledger(mut self, path: impl Into<PathBuf>) -> Self {
        self.ledger = Some(path.into());
        self
    }

    /// The data set's name in the ledger.
    pub fn ledger_name(mut self, name: impl Into<String>) -> Self {
        self.ledger_name = Some(name.into());
        self
    }

    /// Charges a budget that [`Account::find`] found.
    pub fn charged_to(mut self, account: Account) -> Self {
        self.account = Some(account);
        self
    }

    /// Keeps a note of how the data was asked for beside the settings, so that it can be loaded again; a key `private`
    /// stays out of the release.
    pub fn source(mut self, source: Value) -> Self {
        self.source = source;
        self
    }

    /// Tells this of every epoch; it can stop the run. A function of a [`Progress`](crate::method::Progress) is one.
    pub fn observer(mut self, observer: &'t mut dyn Observer) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Trains, and leaves a release in a new folder. What was done survives a crash: [`resume`](crate::resume) goes on
    /// with it.
    ///
    /// # Errors
    /// Everything that can be refused is refused before the folder is made or the ledger is charged; the ledger is
    /// charged before the first noisy value is used.
    pub fn into_folder(self, folder: impl AsRef<Path>) -> Result<Release> {
        let nobody: &mut dyn Observer = &mut ();
        let PreparedRun { arranged, plan, key, run, observer, .. } = self.asked(nobody, order::check)?;
        let run = RunFolder::create(folder.as_ref(), run, key, arranged.numbers.as_ref())?;
        charge_new(&run, &plan)?;
        run_in_pool(arranged.dataset, run, plan, observer)
    }

    /// Trains, and writes nothing but the charge in a ledger. A run that is stopped is lost, and so is what it was
    /// charged. Nodes keep the order of the data; what [`Trained::save`] writes has the order of a release.
    ///
    /// # Errors
    /// As [`Training::into_folder`].
    pub fn in_memory(self) -> Result<Trained> {
        let nobody: &mut dyn Observer = &mut ();
        let owner = self.dataset.node_ids().clone();
        let mut told = None;
        let PreparedRun { arranged, settings, plan, key, run, observer } =
            self.asked(nobody, |dataset, settings| {
                told = order::check(dataset, settings).err().map(|error| error.to_string());
                Ok(())
            })?;
        let Arranged { dataset, order, numbers } = arranged;
        charge_run(&run, &plan)?;
        // As a thread of the pool: one that is not would hand over every pass over the rows, thousands of them, and
        // wait.
        rayon::scope(|_| {
            // As in a folder.
            let mut memory = InMemoryRun::alone();
            memory.watches_training = false;
            let spec = RunSpec { settings: &settings, plan: &plan, seed: run.model_seed };
            let at = (State::default(), &mut memory as _);
            let (fitted, _) = fit(World::Whole(&dataset), spec, key, at, observer)?;
            let dataset = fitted.scaled(dataset.into())?.held()?;
            let metrics = metrics(&fitted, &settings);
            let statement = release::stated(&settings, &plan, &fitted, &dataset)?;
            let no_edges = Graph::from_rows(vec![0u64; dataset.nodes() + 1], Vec::<u32>::new())?;
            let nodes = Dataset::new(DatasetParts { graph: no_edges, ..dataset.into_parts() })?;
            let config = Config::published(&run.dataset, &settings, run.source);
            let predictor = fitted.predictor;
            let owner = order.map(|order| OwnersOrder::new(&nodes, &order, owner)).transpose()?;
            Ok(Trained {
                settings,
                statement,
                metrics,
                nodes,
                owner,
                numbers,
                told,
                predictor,
                config,
                aggregates: memory.aggregates,
            })
        })
    }

    /// All that is decided before anything is asked; `check` has a look at the order of nodes.
    fn asked<'a>(
        self,
        nobody: &'a mut dyn Observer,
        check: impl FnOnce(&Dataset, &Settings) -> Result<()>,
    ) -> Result<PreparedRun<'a>>
    where
        't: 'a,
    {
        let dataset = self.dataset;
        let draft = self.request.settings()?;
        let settings = draft.resolve(&PublicFacts::of(dataset, &draft))?;
        check(dataset, &settings)?;
        let observer: &'a mut dyn Observer = match self.observer {
            Some(observer) => observer,
            None => nobody,
        };
        let account =
            account(dataset, &settings, (self.account, self.ledger), self.ledger_name.as_deref(), observer)?;
        let mut arranged = Arranged::new(dataset, &settings)?;
        arranged.dataset = arranged.dataset.prepared(settings.preparation())?;
        let dataset = &arranged.dataset;
        let plan = prepare(dataset, &settings)?;
        crate::memory::check_run(dataset, &settings, &plan)?;
        let key = if settings.seed.is_none() { Some(RunKey::from_os()?) } else { None };
        let run =
            RunFile::new(&dataset.clone().into(), &settings, account.as_ref(), self.source, key.as_ref())?;
        Ok(PreparedRun { arranged, settings, plan, key, run, observer })
    }
}

/// The budget that a run is charged to: the one that is named, else the one that is found in the ledger.
pub(super) fn account(
    dataset: &Dataset,
    settings: &Settings,
    (account, ledger): (Option<Account>, Option<PathBuf>),
    name: Option<&str>,
    observer: &mut dyn Observer,
) -> Result<Option<Account>> {
    if account.is_some() {
        chargeable(settings)?;
    }
    let Some(path) = ledger.filter(|_| account.is_none()) else { return Ok(account) };
    let (found, warning) = Account::find(dataset, settings, &path, name)?;
    warning.iter().for_each(|warning| observer.warning(warning));
    Ok(Some(found))
}

/// A run before its first question.
struct PreparedRun<'a> {
    /// Prepared for the level.
    arranged: Arranged,
    settings: ValidSettings,
    plan: Plan,
    key: Option<RunKey>,
    run: RunFile,
    observer: &'a mut dyn Observer,
}

/// A trained model with its guarantee, in memory only. It holds what a release holds, no edge among it.
#[derive(Debug)]
pub struct Trained {
    /// The settings, with everything decided.
    pub settings: ValidSettings,
    /// The privacy statement.
    pub statement: Statement,
    /// Accuracies.
    pub metrics: Metrics,
    /// In the order of a release.
    nodes: Dataset,
    /// The order of the data, where it is another one.
    owner: Option<OwnersOrder>,
    /// Where nodes were renumbered, their new numbers.
    numbers: Option<String>,
    /// Why there is no release of this order.
    told: Option<String>,
    predictor: Predictor,
    config: Config,
    /// Everything that was asked, also what predictions do not read.
    aggregates: Vec<Buffer<f32>>,
}

impl Trained {
    /// The guarantee of the model and its predictions.
    pub fn guarantee(&self) -> Guarantee {
        self.statement.guarantee()
    }

    /// For whom predictions are, in words; None if they may go to anyone.
    pub fn caution(&self) -> Option<&'static str> {
        self.statement.caution(self.settings.method.can().protects_predictions)
    }

    /// The nodes that were trained on, without edges, in the order of the data.
    pub fn nodes(&self) -> &Dataset {
        self.owner.as_ref().map_or(&self.nodes, OwnersOrder::nodes)
    }

    /// Predictions for every node.
    ///
    /// # Errors
    /// More probabilities than fit into memory.
    pub fn predict(&self) -> Result<Predictions> {
        self.predict_nodes(&release::every_node(&self.nodes))
    }

    /// Compares what the model says about a part of the nodes with their labels in the data set that it was trained on;
    /// nothing where the part has no nodes.
    ///
    /// # Errors
    /// As [`Trained::predict`].
    pub fn assess(&self, labelled: &Dataset, part: Part) -> Result<Option<Assessment>> {
        let split = self.nodes().split().into_iter();
        let members: Vec<u32> = split.flat_map(|split| split.nodes(part)).map(|node| node as u32).collect();
        if members.is_empty() {
            return Ok(None);
        }
        let found = self.predict_nodes(&members)?;
        Ok(Some(release::beside_labels(found, labelled).assessment()))
    }

    /// Predictions for some nodes, by their position in the data.
    ///
    /// # Errors
    /// As [`Trained::predict`].
    pub fn predict_nodes(&self, nodes: &[u32]) -> Result<Predictions> {
        let predict = |nodes: &[u32]| release::predictions(&self.predictor, &self.nodes, nodes);
        self.owner.as_ref().map_or_else(|| predict(nodes), |owner| owner.predict(nodes, predict))
    }

    /// Writes the release that [`Training::into_folder`] would have left, without the time that training took.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let folder = folder.path().join("release");
    /// # let small = progap_graph::synth::SocialNetwork::new(300).edges(3000).classes(2).seed(1).generate()?;
    /// # let data = small.or_random_split(progap_graph::Ratios::default(), 1)?;
    /// let trained = progap::train(&data, progap::Edge::epsilon(1.0)).in_memory()?;
    /// let release = trained.save(&folder)?;
    /// assert_eq!(release.predict()?, trained.predict()?);
    /// # Ok::<(), progap::Error>(())
    /// ```
    ///
    /// # Errors
    /// An order of nodes that tells edges, see [`Trained::save_with`]; a folder that is not empty; a disk that is full.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<Release> {
        self.save_with(folder, false, self.settings.order)
    }

    /// As [`Trained::save`], with a word on the order of nodes that was not given in training: that they are renumbered
    /// at random, or that anyone may know their order.
    ///
    /// # Errors
    /// As [`Trained::save`].
    pub fn save_with(&self, folder: impl AsRef<Path>, shuffle: bool, order: Order) -> Result<Release> {
        let folder = folder.as_ref();
        if std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(Error::file(folder, "the folder is not empty").remedy(Remedy::NewFolder));
        }
        let mut settings = self.settings.clone().into_settings();
        (settings.shuffle, settings.order) = (settings.shuffle || shuffle, order);
        let settings = settings.checked()?;
        if let (Some(told), false, Order::Tested) = (&self.told, settings.shuffle, order) {
            return Err(Error::unsuitable(told.clone()));
        }
        let anew = match settings.shuffle && !self.settings.shuffle {
            true => Some(Arranged::new(&self.nodes, &settings)?),
            false => None,
        };
        let nodes = anew.as_ref().map_or(&self.nodes, |anew| &anew.dataset);
        let numbers = anew.as_ref().map_or(&self.numbers, |anew| &anew.numbers);
        let mut statement = self.statement.clone();
        statement.public[0] = release::nodes_are_public(&settings, nodes.nodes());
        let mut config = self.config.clone();
        (config.settings.shuffle, config.settings.order) = (settings.shuffle, order);
        let staged = AtomicFolder::create(folder)?;
        let place = staged.path();
        files::make_folder(&place.join("aggregates"))?;
        order::write(place, numbers.as_ref())?;
        for (at, values) in self.aggregates.iter().enumerate() {
            let file = place.join(aggregate_name(&self.settings, at + 1));
            if let Some(folder) = file.parent() {
                files::make_folder(folder)?;
            }
            let width = values.len() / nodes.nodes();
            let moved = anew.as_ref().and_then(|anew| anew.order.as_ref()).map(|order| {
                let rows = order.iter().map(|&node| node as usize * width);
                rows.flat_map(|row| values[row..row + width].iter().copied()).collect::<Vec<f32>>()
            });
            files::write_matrix(&file, moved.as_deref().unwrap_or(values), width)?;
        }
        let content = release::Content {
            config,
            dataset: &nodes.clone().into(),
            statement: &statement,
            metrics: &self.metrics,
            predictor: &self.predictor,
        };
        release::write(place, &content)?;
        staged.commit()?;
        Release::open(folder)
    }
}
