//! Settings on their way from a request to a run.

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};

use super::{PublicFacts, Scaling, Selection, Settings, ValidSettings, heuristics};
use crate::{Error, Result};

/// Settings as far as they are known before the data is: what nobody gave and public facts decide is open, with its
/// usual value so long.
///
/// ```
/// use progap::settings::{PublicFacts, Request, Size};
///
/// let draft = Request::default().with("level", "node").with("epsilon", 8.0).settings()?;
/// assert!(draft.is_open("batch_size") && !draft.is_open("epsilon"));
/// let facts = PublicFacts::stated([(Size::TrainNodes, 170), (Size::Nodes, 200), (Size::Classes, 2)]);
/// assert_eq!((draft.batch_size, draft.resolve(&facts)?.batch_size), (512, 16));
/// # Ok::<(), progap::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    settings: Settings,
    /// Names of settings that are open, in the order of [`heuristics::FOLLOWING`].
    open: Vec<String>,
}

impl Draft {
    /// With everything left to public facts that can follow from them.
    #[must_use]
    pub fn following(settings: Settings) -> Draft {
        let open = heuristics::FOLLOWING.iter().filter(|name| heuristics::follows(&settings, name));
        let open = open.map(|name| (*name).to_string()).collect();
        Draft { open, ..Draft::from(settings) }
    }

    /// As much left open, in these settings.
    pub(super) fn with(&self, settings: Settings) -> Draft {
        Draft { settings, open: self.open.clone() }
    }

    /// Whether public facts decide a setting.
    pub fn is_open(&self, name: &str) -> bool {
        self.open.iter().any(|open| open == name)
    }

    /// A setting that is given follows from nothing.
    pub fn close(&mut self, name: &str) {
        self.open.retain(|open| open != name);
    }

    /// The settings of a run on data of which this is public: nothing is open any more.
    ///
    /// # Errors
    /// Settings that cannot work; noisy counts of number columns where there are none to count.
    pub fn resolve(&self, facts: &PublicFacts) -> Result<ValidSettings> {
        let mut settings = self.settings.clone();
        if settings.unit_from_data && settings.touches_edges() {
            settings.undirected = facts.is_symmetric;
        }
        heuristics::decide(&mut settings, facts, &|name| self.is_open(name));
        // Without validation nodes there is nothing to choose by.
        if facts.val_nodes == Some(0) {
            settings.selection = Selection::LastEpoch;
        }
        if settings.scaling == Scaling::Noisy && facts.unbounded_columns == Some(0) {
            return Err(Error::no_effect(
                "scaling",
                "the data has no number columns without declared bounds",
            ));
        }
        settings.checked()
    }
}

impl From<Settings> for Draft {
    fn from(settings: Settings) -> Draft {
        Draft { settings, open: vec![] }
    }
}

impl From<ValidSettings> for Draft {
    fn from(settings: ValidSettings) -> Draft {
        settings.into_settings().into()
    }
}

impl Deref for Draft {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl DerefMut for Draft {
    fn deref_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }
}
