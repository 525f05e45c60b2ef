//! One file per command.

pub mod account;
pub mod audit;
pub mod check;
pub mod completions;
pub mod data;
pub mod experiment;
pub mod export;
pub mod inspect;
pub mod key;
pub mod ledger;
pub mod man;
pub mod methods;
pub mod predict;
pub mod report;
pub mod serve;
pub mod train;
pub mod verify;

/// The outcome of a command: nothing, or one sentence for the user.
pub type Outcome = Result<(), Box<dyn std::error::Error>>;
