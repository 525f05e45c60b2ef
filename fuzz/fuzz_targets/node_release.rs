//! The target `node_release` of `crates/fuzz`, driven by libFuzzer.
#![no_main]

#[path = "../driver.rs"]
mod driver;

driver::drive!("node_release");
