//! Settings that cannot work are refused here, once, before any budget is spent.

use progap_graph::{Dataset, Graph};
use serde::Serialize;

use super::declaration::Declaration;
use super::{Calibration, ClassWeights, Direction, Level, Order, Scaling, Selection, Settings};
use crate::method::catalogue;
use crate::plan::PublicSizes;
use crate::{Error, Result};

/// Settings that were found to work together. There is no other way to make one, so nothing that takes them checks them again.
///
/// ```
/// use progap::settings::{Level, Settings};
///
/// let settings = Settings { depth: 3, ..Settings::new(Level::Edge) }.checked()?;
/// assert_eq!(settings.depth, 3);
/// assert!(Settings { depth: 300, ..Settings::new(Level::Edge) }.checked().is_err());
/// # Ok::<(), progap::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Checked(Settings);

impl std::ops::Deref for Checked {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.0
    }
}

impl Checked {
    /// As [`Settings::for_data`]: what follows from the data works with all else, whatever it is.
    #[must_use]
    pub fn for_data(&self, dataset: &Dataset) -> Checked {
        Checked(self.0.for_data(dataset))
    }

    /// As [`Checked::for_data`], for the data that these settings were asked for. Which columns there are is public.
    ///
    /// # Errors
    /// Noisy counts of number columns where there are none to count.
    pub fn on(&self, dataset: &Dataset) -> Result<Checked> {
        match self.scaling == Scaling::Noisy && dataset.open_numbers() == 0 {
            false => Ok(self.for_data(dataset)),
            true => Err(Error::NoEffect {
                name: "scaling",
                why: "the data has no number columns without declared bounds".into(),
            }),
        }
    }

    /// As [`Settings::for_sizes`]: what follows from sizes works with all else, whatever they are.
    #[must_use]
    pub fn for_sizes(&self, sizes: PublicSizes) -> Checked {
        Checked(self.0.for_sizes(sizes))
    }

    /// As [`Settings::for_graph`]: a unit that follows from a graph works with all else, whichever it is.
    #[must_use]
    pub fn for_graph(&self, graph: &Graph) -> Checked {
        Checked(self.0.for_graph(graph))
    }

    /// The settings, to be changed and checked again.
    pub fn into_settings(self) -> Settings {
        self.0
    }
}

impl Settings {
    /// These settings, if they work together.
    ///
    /// # Errors
    /// Numbers out of their range; a method without the level; settings that contradict each other.
    pub fn checked(&self) -> Result<Checked> {
        self.check().map(|()| Checked(self.clone()))
    }

    /// Refuses what cannot work, before any budget is spent.
    fn check(&self) -> Result<()> {
        Settings::declarations().iter().try_for_each(|declaration| declaration.check_range(self))?;
        if !catalogue::entry(self.method).levels.contains(&self.level) {
            return Err(Error::Unsuitable(format!(
                "the method {} has no level {}; these have: {}",
                self.method,
                self.level,
                catalogue::with_level(self.level)
            )));
        }
        self.method.recipe().check(self)?;
        if self.method.recipe().is_pure() && self.delta.is_some() {
            return Err(Error::Unsuitable(format!(
                "the method {} is private with a delta of zero: leave `delta` out",
                self.method
            )));
        }
        match (self.level, self.epsilon, self.delta) {
            (Level::None, None, None) | (Level::Edge | Level::Node, Some(_), _) => {}
            (Level::None, _, _) => {
                return Err(Error::Contradiction(
                    "epsilon and delta belong to a private level: give `level edge` or `level node`, or leave them out",
                ));
            }
            (_, None, _) => return Err(Error::Contradiction("a private level needs an epsilon")),
        }
        if self.undirected && self.level != Level::Edge {
            return Err(Error::Contradiction("`undirected` belongs to `level edge`"));
        }
        if self.unit_from_data && self.level != Level::Edge {
            return Err(Error::Contradiction("the unit is chosen at `level edge` only"));
        }
        if self.direction == Direction::Both && !self.method.recipe().hears_both_ways() {
            return Err(Error::Contradiction(
                "`direction both` belongs to `method views`: use `direction in` or `direction out`, or add the ways back to the data \
                 with `symmetrise`",
            ));
        }
        if self.level == Level::Node && self.selection == Selection::BestValidation {
            return Err(Error::Contradiction(
                "validation labels are private at node level, so they cannot choose an epoch: keep the last one",
            ));
        }
        if self.level == Level::Node
            && self.class_weights == ClassWeights::Balanced
            && !self.method.recipe().takes_counts()
        {
            return Err(Error::Contradiction(
                "`class_weights balanced` counts training labels, which are private at node level, and this method has no noisy counts: \
                 leave it out, or use `method progap`",
            ));
        }
        if self.scaling == Scaling::Noisy
            && !(self.level == Level::Node && self.method.recipe().takes_counts())
        {
            return Err(Error::Contradiction(
                "`scaling noisy` belongs to `level node`, and to methods with noisy counts: leave it out, or use `method progap`",
            ));
        }
        if self.level == Level::Node && self.calibration == Calibration::Temperature {
            return Err(Error::Contradiction(
                "validation labels are private at node level, so they cannot calibrate probabilities: leave `calibration` out",
            ));
        }
        if self.shuffle && self.order == Order::Public {
            return Err(Error::Contradiction(
                "`shuffle` renumbers nodes, and `order public` keeps their order: give one of them",
            ));
        }
        if self.level == Level::Node && self.dropout > 0.0 {
            return Err(Error::Contradiction("dropout is not supported at node level: leave `dropout` out"));
        }
        Ok(())
    }

    /// The first setting that somebody chose though it decides nothing here, and why: its value is neither the default nor the
    /// published one.
    pub fn chosen_in_vain(&self) -> Option<(&'static Declaration, String)> {
        let usual = [Settings::of(self.method, self.level), Settings::paper(self.method, self.level)];
        Settings::declarations().iter().find_map(|declaration| {
            let value = declaration.get(self);
            let chosen = usual.iter().all(|usual| declaration.get(usual) != value);
            let why = self.without_effect(declaration.name).filter(|_| chosen)?;
            Some((declaration, why.into_owned()))
        })
    }
}
