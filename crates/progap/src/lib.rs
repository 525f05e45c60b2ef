#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod cost;
pub mod error;
#[doc(hidden)]
#[allow(missing_docs, reason = "for audits, exports and tests")]
pub mod files;
mod front;
#[cfg_attr(not(feature = "ledger"), path = "ledger/absent.rs")]
pub mod ledger;
pub mod method;
#[doc(hidden)]
#[allow(missing_docs, reason = "for audits, exports and tests")]
pub mod model;
pub mod plan;
pub mod ranks;
pub mod release;
pub mod run;
pub mod settings;
#[doc(hidden)]
#[allow(missing_docs, reason = "for audits, exports and tests")]
pub mod vault;

// The names by which most of the crate knows these.
use cost::memory;
use files::{folder, scratch};
use model::{addressed, calibration, predictor, views};
use vault::{mixing, propagate};

pub use cost::set_memory_limit;
pub use error::{Error, ErrorKind, InFile, Remedy, Result, Vocabulary};
pub use front::{AccountQuery, ResolvedRun, account, load, load_with, looks_like_a_path, resume, train};
pub use method::{Observer, Progress};
pub use model::assessment;
pub use plan::{delta, query, units};
pub use progap_formats::read::LoadOptions;
pub use progap_graph::{Dataset, DatasetBuilder};
pub use progap_privacy::Unit;
pub use release::{Guarantee, Predictions, Release, order};
pub use run::{Trained, Training};
pub use settings::{
    Accounting, Bounding, Combination, Edge, Level, Messages, MethodKind, Node, Nonlinearity, Selection,
    Settings, Unprotected,
};
#[doc(hidden)]
pub use vault::{rows, scaling};
