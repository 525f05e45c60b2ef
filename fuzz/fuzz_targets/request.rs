//! The target `request` of `crates/fuzz`, driven by libFuzzer.
#![no_main]

#[path = "../driver.rs"]
mod driver;

driver::drive!("request");
