//! A guarantee in one line.

use progap_privacy::Unit;

use super::Statement;

/// The guarantee, in figures. [`Statement::in_words`](super::Statement) says it in sentences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Guarantee {
    /// Differential privacy.
    Private {
        /// The epsilon.
        epsilon: f64,
        /// The delta.
        delta: f64,
        /// The unit, which is one record.
        unit: Unit,
    },
    /// None, because the noise comes from a seed, and anybody can compute it.
    Seeded,
    /// None, because nothing is protected.
    Nothing,
}

impl std::fmt::Display for Guarantee {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Guarantee::Private { epsilon, delta, unit } => {
                write!(f, "epsilon {epsilon:.4}, delta {}, unit {unit}", crate::delta::written(*delta))
            }
            Guarantee::Seeded => {
                f.write_str("none: seeded run, not private, as anyone can compute the noise")
            }
            Guarantee::Nothing => f.write_str("none: nothing is protected"),
        }
    }
}

impl Statement {
    /// The guarantee in figures.
    pub fn guarantee(&self) -> Guarantee {
        match (self.unit, self.epsilon, self.delta) {
            (Some(unit), Some(epsilon), Some(delta)) if self.private => {
                Guarantee::Private { epsilon, delta, unit }
            }
            (Some(_), _, _) => Guarantee::Seeded,
            _ => Guarantee::Nothing,
        }
    }
}
