#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod account;
mod addressed;
pub mod assessment;
mod calibration;
pub mod cost;
pub mod delta;
pub mod error;
mod files;
mod folder;
mod front;
#[cfg_attr(not(feature = "ledger"), path = "no_ledger.rs")]
pub mod ledger;
mod memory;
pub mod method;
mod mixing;
mod model;
mod onnx;
pub mod order;
pub mod plan;
mod predictor;
mod propagate;
pub mod query;
pub mod ranks;
pub mod release;
#[doc(hidden)]
#[allow(missing_docs, reason = "for audits and tests")]
pub mod rows;
pub mod run;
#[doc(hidden)]
#[allow(missing_docs, reason = "for audits and tests")]
pub mod scaling;
mod scratch;
pub mod settings;
#[cfg_attr(not(feature = "sign"), path = "no_signature.rs")]
pub mod signature;
pub mod units;
#[doc(hidden)]
#[allow(missing_docs, reason = "for audits and tests")]
pub mod vault;
mod views;

pub use account::{Accounted, Decided};
pub use error::{Error, ErrorKind, InFile, Remedy, Result, Vocabulary};
pub use front::{account, load, load_with, looks_like_a_path, resume, train};
pub use memory::keep_memory_below;
pub use method::{Observer, Progress};
pub use progap_formats::read::LoadOptions;
pub use progap_graph::{Dataset, DatasetBuilder};
pub use progap_privacy::Unit;
pub use release::{Guarantee, Predictions, Release};
pub use run::{Trained, Training};
pub use settings::{
    Accounting, Bounding, Combination, Edge, Level, Messages, MethodKind, Node, Nonlinearity, Selection,
    Settings, Unprotected,
};
