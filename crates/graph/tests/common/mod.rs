//! Shared by the tests of the format of our own.
#![allow(dead_code, reason = "every test binary uses its own part of this")]

pub mod arbitrary;
pub mod mutate;
pub mod repair;
