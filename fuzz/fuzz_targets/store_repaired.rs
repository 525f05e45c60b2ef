//! The target `store_repaired` of `crates/fuzz`, driven by libFuzzer.
#![no_main]

#[path = "../driver.rs"]
mod driver;

driver::drive!("store_repaired");
