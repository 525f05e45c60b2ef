//! The vault, the methods, training, the release, inference and the ledger.
//!
//! This crate knows how private data is asked and what comes out of it. It must never know terminals, HTTP or
//! Python.
#![forbid(unsafe_code)]

pub mod assessment;
pub mod audit;
pub mod cost;
pub mod delta;
pub mod effect;
mod error;
pub mod experiment;
mod files;
mod folder;
pub mod ledger;
pub mod lint;
mod memory;
pub mod method;
mod model;
pub mod plan;
mod predictor;
pub mod propagate;
pub mod query;
pub mod release;
mod rows;
pub mod run;
pub mod settings;
pub mod signature;
mod sqlite;
pub mod units;
pub mod vault;

pub use error::{Error, Result};
pub use release::Release;
pub use settings::{Level, Settings};
