#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod accountant;
pub mod audit;
pub mod calibrate;
pub mod error;
pub mod event;
pub mod noise;
pub mod proofs;
mod pure;
pub mod selection;
pub mod special;
mod within;

pub use error::{Error, Result, Unsupported};
pub use event::{Event, Unit, UnitEvent};
