//! The vault, the methods, training, the release, inference and the ledger.
//!
//! This crate knows how private data is asked and what comes out of it. It must never know terminals, HTTP or
//! Python.
#![forbid(unsafe_code)]

pub mod ledger;
