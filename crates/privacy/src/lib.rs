//! Events, accountants, calibration, integer noise, selection and auditing statistics.
//!
//! This crate knows what was asked of private data and what that costs. It knows nothing of graphs, networks or
//! files.

#![forbid(unsafe_code)]

pub mod accountant;
pub mod calibrate;
pub mod error;
pub mod event;
pub mod special;

pub use error::{Error, Result, Unsupported};
pub use event::{Event, Unit, UnitEvent};
