//! The front door: a data set in, a release out.

mod account;

use std::path::Path;

pub use account::{AccountQuery, ResolvedRun};

use progap_formats::named;
use progap_formats::read::{self, LoadOptions};
use progap_graph::{Dataset, Ratios};

use crate::method::Observer;
use crate::run::{self, Training};
use crate::settings::Request;
use crate::{Release, Result};

/// Loads a data set: a folder or file of any known format, or one that is known by name, such as `demo`, from the
/// folder `data` or `$PROGAP_DATA`. Where it has no split of its own, one is drawn: 75 % of the nodes train, 10 %
/// validate, 15 % test.
///
/// ```
/// let data = progap::load("demo")?;
/// assert!(data.split().is_some());
/// # Ok::<(), progap::Error>(())
/// ```
///
/// # Errors
/// Data that is not there or cannot be read: with the file, the place in it, and what to do.
pub fn load(source: impl AsRef<Path>) -> Result<Dataset> {
    load_with(source, &LoadOptions::default())
}

/// As [`load`], with what the files do not say: names of columns, directions of edges, the seed of the split.
///
/// ```no_run
/// use progap::LoadOptions;
///
/// let options = LoadOptions { label_column: Some("diagnosis".into()), ..LoadOptions::default() };
/// let data = progap::load_with("my-graph/", &options)?;
/// # Ok::<(), progap::Error>(())
/// ```
///
/// # Errors
/// As [`load`].
pub fn load_with(source: impl AsRef<Path>, options: &LoadOptions) -> Result<Dataset> {
    let path = source.as_ref();
    let name =
        path.to_str().filter(|name| !path.exists() && !looks_like_a_path(path) && named::is_name(name));
    let dataset = match name {
        Some(name) => named::load(name, &named::data_dir(None), options)?,
        None => read::load(path, options)?,
    };
    Ok(dataset.or_random_split(Ratios::default(), options.seed)?)
}

/// Whether something is called as a file is: then it is looked for as one even where it is not there.
pub fn looks_like_a_path(path: &Path) -> bool {
    let says_folder = path.to_string_lossy().ends_with(std::path::MAIN_SEPARATOR);
    path.components().count() > 1 || path.extension().is_some() || path.as_os_str().is_empty() || says_folder
}

/// Trains on a data set that has a split, with the protection that is asked for and everything else by default.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path().join("release");
/// # let small = progap_graph::synth::SocialNetwork::new(300).edges(3000).classes(2).seed(1).generate()?;
/// # let data = small.or_random_split(progap_graph::Ratios::default(), 1)?;
/// let release = progap::train(&data, progap::Edge::epsilon(1.0)).into_folder(&folder)?;
/// println!("{}", release.guarantee());
/// let predictions = release.predict()?;
/// assert_eq!(predictions.classes.len(), data.nodes());
/// # Ok::<(), progap::Error>(())
/// ```
pub fn train(dataset: &Dataset, asked: impl Into<Request>) -> Training<'_> {
    Training::new(dataset, asked.into())
}

/// Goes on with a run that was interrupted, with the data that it began with. Nothing is asked or charged a second
/// time.
///
/// # Errors
/// A folder without such a run; other data; files that were changed.
pub fn resume(dataset: &Dataset, folder: impl AsRef<Path>, observer: &mut dyn Observer) -> Result<Release> {
    run::resume(dataset.clone(), folder.as_ref(), observer)
}

/// The cost of a run, without running it: the noise that [`train`] would use, to the last digit.
///
/// ```
/// use progap::Node;
///
/// let sums = progap::account(Node::epsilon(8.0).delta(1e-5).depth(1));
/// let plan = sums.nodes(26_406).train_nodes(19_804).columns(16).plan()?;
/// assert!(plan.gradient_multiplier > 0.0 && plan.epsilon <= 8.0);
/// # Ok::<(), progap::Error>(())
/// ```
pub fn account<'d>(asked: impl Into<Request>) -> AccountQuery<'d> {
    AccountQuery::new(asked.into())
}
