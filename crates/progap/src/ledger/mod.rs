//! The ledger, which says what was asked of which data: `progap-ledger`, and what to do about its errors.

pub use progap_ledger::*;

use crate::error::Remedy;

/// What to do about an error of a ledger, where its sentence does not say it.
pub fn remedies(error: &Error) -> Vec<Remedy> {
    match error {
        Error::Missing { .. } => vec![Remedy::CreateLedger],
        Error::Unregistered { path, dataset, asked } | Error::Unit { path, dataset, asked, .. } => {
            vec![Remedy::CreateBudget { ledger: path.clone(), dataset: dataset.clone(), unit: *asked }]
        }
        Error::Registered { .. } => vec![Remedy::ChangeBudget],
        Error::SamePeople { known_as, .. } => {
            vec![Remedy::words(format!("use {known_as}")), Remedy::ChangeBudget, Remedy::OtherPeople]
        }
        Error::Several { .. } => vec![Remedy::Give("ledger_name")],
        Error::PrivateRows { .. } => vec![Remedy::set("level", "node"), Remedy::PublicRows],
        Error::Ambiguous { .. } => vec![Remedy::Give("unit")],
        Error::Seeded { .. } => vec![Remedy::Drop("seed"), Remedy::Drop("ledger")],
        _ => Vec::new(),
    }
}
