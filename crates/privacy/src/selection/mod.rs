//! Choosing by private data without showing it: the best of a random number of runs.

mod runs;

pub use runs::RunCount;
