//! Shared by the tests of the readers and writers.
#![allow(dead_code, reason = "every test binary uses its own part of this")]

#[path = "../../../graph/tests/common/arbitrary.rs"]
pub mod arbitrary;
#[path = "../../../graph/tests/common/mutate.rs"]
pub mod mutate;
pub mod npz;
pub mod shared;
