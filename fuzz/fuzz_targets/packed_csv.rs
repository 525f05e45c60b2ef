//! The target `packed_csv` of `crates/fuzz`, driven by libFuzzer.
#![no_main]

#[path = "../driver.rs"]
mod driver;

driver::drive!("packed_csv");
