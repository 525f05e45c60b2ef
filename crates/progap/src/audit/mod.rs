//! An empirical check of the privacy claim: canaries whose presence is decided by coins, and attacks on a release.
//!
//! An accountant bounds the privacy loss from above by proof, an audit from below by experiment. Canaries (edges, or
//! records of nodes) are put into the data by fair coins, the real code is run once, and each canary gets a score from
//! what came out. How well the scores tell the coins gives a lower bound on epsilon that holds with the stated
//! confidence; where it exceeds the claim, the claim is wrong. docs/audit.md says how to read the results.
//!
//! | file | what it holds |
//! |---|---|
//! | [`evidence`] | coins and scores, the claim about them, and what they prove |
//! | [`mechanism`] | canaries for the vault's own queries, the strongest there can be |
//! | [`training`] | canaries in a real data set, scored from what a whole training run releases |
//! | [`attack`] | link and membership inference against a release, as an outsider would try |
//!
//! What a mechanism under audit does is a function from a data set to answers. The product hands in the vault; tests hand
//! in broken mechanisms, which must be found out.

pub mod attack;
pub mod evidence;
pub mod mechanism;
pub mod training;

pub use evidence::{Claim, Evidence, Finding, Trial, judge};
