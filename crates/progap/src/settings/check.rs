//! Settings that cannot work are refused here, once, before any budget is spent.

use serde::Serialize;

use super::declaration::Declaration;
use super::{Calibration, ClassWeights, Direction, Level, Order, Scaling, Selection, Settings};
use crate::method::catalogue;
use crate::{Error, Remedy, Result};

/// Settings that were found to work together. There is no other way to make one, so nothing that takes them checks them
/// again.
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
pub struct ValidSettings(Settings);

impl std::ops::Deref for ValidSettings {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.0
    }
}

impl ValidSettings {
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
    pub fn checked(&self) -> Result<ValidSettings> {
        self.check().map(|()| ValidSettings(self.clone()))
    }

    /// Refuses what cannot work, before any budget is spent.
    pub(super) fn check(&self) -> Result<()> {
        Settings::declarations().iter().try_for_each(|declaration| declaration.check_range(self))?;
        if !catalogue::entry(self.method).levels.contains(&self.level) {
            return Err(Error::unsuitable(format!(
                "the method {} has no level {}; these have: {}",
                self.method,
                self.level,
                catalogue::with_level(self.level)
            )));
        }
        self.method.method().check(self)?;
        if self.method.can().is_pure && self.delta.is_some() {
            return Err(Error::unsuitable(format!(
                "the method {} is private with a delta of zero",
                self.method
            ))
            .remedy(Remedy::Drop("delta")));
        }
        match (self.level, self.epsilon, self.delta) {
            (Level::None, None, None) | (Level::Edge | Level::Node, Some(_), _) => {}
            (Level::None, _, _) => {
                return Err(Error::contradiction("epsilon and delta belong to a private level")
                    .remedy(Remedy::set("level", "edge"))
                    .remedy(Remedy::set("level", "node"))
                    .remedy(Remedy::words("leave them out")));
            }
            (_, None, _) => return Err(Error::contradiction("a private level needs an epsilon")),
        }
        if self.undirected && self.level != Level::Edge {
            return Err(Error::contradiction("undirected edges are a unit at level edge")
                .remedy(Remedy::Drop("undirected")));
        }
        if self.unit_from_data && self.level != Level::Edge {
            return Err(Error::contradiction("the unit is chosen at level edge only"));
        }
        if self.direction == Direction::Both && !self.method.can().both_directions {
            return Err(Error::contradiction("both directions belong to the method progap-views")
                .remedy(Remedy::set("direction", "in"))
                .remedy(Remedy::set("direction", "out"))
                .remedy(Remedy::set("method", "progap-views"))
                .remedy(Remedy::Give("symmetrise")));
        }
        if self.level == Level::Node && self.selection == Selection::BestValidation {
            return Err(Error::contradiction(
                "validation labels are private at node level, so they cannot choose an epoch: keep the last one",
            ));
        }
        if self.level == Level::Node
            && self.class_weights == ClassWeights::Balanced
            && !self.method.can().histograms
        {
            return Err(Error::contradiction(
                "balanced class weights count training labels, which are private at node level, and this method has \
                 no noisy counts",
            )
            .remedy(Remedy::Drop("class_weights"))
            .remedy(Remedy::set("method", "progap-labels")));
        }
        if self.scaling == Scaling::Noisy && !(self.level == Level::Node && self.method.can().histograms) {
            return Err(Error::contradiction(
                "noisy scaling belongs to level node, and to methods with noisy counts",
            )
            .remedy(Remedy::Drop("scaling"))
            .remedy(Remedy::set("method", "progap-labels")));
        }
        if self.level == Level::Node && self.calibration == Calibration::Temperature {
            return Err(Error::contradiction(
                "validation labels are private at node level, so they cannot calibrate probabilities",
            )
            .remedy(Remedy::Drop("calibration")));
        }
        if self.shuffle && self.order == Order::Public {
            return Err(Error::contradiction("nodes are to be renumbered, and to keep their order")
                .remedy(Remedy::Drop("shuffle"))
                .remedy(Remedy::Drop("order")));
        }
        if self.level == Level::Node && self.dropout > 0.0 {
            return Err(Error::contradiction("dropout is not supported at node level")
                .remedy(Remedy::Drop("dropout")));
        }
        Ok(())
    }

    /// The first setting that somebody chose though it decides nothing here, and why: its value is neither the default
    /// nor the published one.
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
