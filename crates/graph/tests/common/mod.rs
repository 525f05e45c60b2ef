//! Shared by the tests of the readers and writers.
#![allow(dead_code, reason = "every test binary uses its own part of this")]

pub mod arbitrary;
pub mod mutate;
pub mod npz;
pub mod repair;
pub mod shared;
