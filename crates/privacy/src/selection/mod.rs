//! Choosing by private data without showing it: the best of a random number of runs, or one of a list by score.

mod exponential;
mod runs;

pub use exponential::ExponentialMechanism;
pub use runs::RunCount;
