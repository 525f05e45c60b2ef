//! One file per command.

pub mod account;
pub mod audit;
pub mod data;
pub mod inspect;
pub mod ledger;
pub mod methods;
pub mod predict;
pub mod train;
pub mod verify;

/// What a command comes to: nothing, or one sentence for the user.
pub type Outcome = Result<(), Box<dyn std::error::Error>>;
