//! Experiments: the paper's tables and figures, and comparisons of one's own, as many independent runs.
//!
//! | file | what it knows |
//! |---|---|
//! | `job.rs` | one run: a data set, a split, settings; and its key |
//! | `grid.rs` | settings made from other settings by name |
//! | `options.rs` | what can be asked of an experiment |
//! | `cells.rs` | which settings stand side by side in the experiments of the paper |
//! | `suite.rs` | an experiment: its cells, and the runs they consist of |
//! | `custom.rs` | a comparison from a file |
//! | `tuning.rs` | how settings are chosen, and what that costs |
//! | `store.rs` | the results of finished runs, on disk at once |
//! | `queue.rs` | runs over the cores |
//! | `library.rs` | loaded data sets, shared between runs |
//! | `outcome.rs` | from runs to means and intervals |
//! | `bootstrap.rs` | intervals by resampling |
//! | `timing.rs` | how long the runs that are left will take |
//! | `published.rs` | figures of the paper and of its code |
//!
//! Runs are seeded, so that they can be repeated: none of them is a private release, and no ledger is charged.

#![forbid(unsafe_code)]

mod bootstrap;
mod cells;
mod custom;
mod grid;
mod job;
mod library;
mod options;
mod outcome;
pub mod published;
mod queue;
mod store;
mod suite;
mod timing;
mod tuning;

pub use bootstrap::{MIN_RUNS, mean, mean_interval};
pub use cells::{LABELS, PRESET};
pub use custom::CustomFile;
pub use grid::{Change, changed};
pub use job::{DataSpec, Job};
pub use library::{Library, Loaded};
pub use options::{Name, Options, Preset};
pub use outcome::{Outcome, TuningCost, outcome};
pub use queue::{Notice, Queue, Tally};
pub use store::{Curve, Finished, Merged, Store, Stored};
pub use suite::{Cell, Experiment};
pub use timing::{Clock, work};
pub use tuning::Tuning;
