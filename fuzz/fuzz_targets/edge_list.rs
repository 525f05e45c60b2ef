//! The target `edge_list` of `crates/fuzz`, driven by libFuzzer.
#![no_main]

#[path = "../driver.rs"]
mod driver;

driver::drive!("edge_list");
