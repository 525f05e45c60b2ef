//! The proofs, a page for each mechanism: what is guaranteed, to whom, and why it holds.
//!
//! Every page names the code that relies on its theorem and the tests that would fail if it were wrong; paths are
//! relative to this crate in the project's repository. The code links back, so that a proof is one step away from what
//! it proves.
//!
//! Notation: `|x|` is the Euclidean norm over all rows and entries, `Phi` the standard normal distribution function, `X
//! -> Y` a randomised mechanism. Data sets `D`, `D'` are *neighbours* when they differ in one record of the unit in
//! use. A mechanism `M` is `(epsilon, delta)`-private if `P(M(D) in A) <= e^epsilon P(M(D') in A) + delta` for all
//! neighbours, in both orders, and all events `A`. It is `mu`-Gaussian-private if telling `M(D)` from `M(D')` is never
//! easier than telling `Normal(mu, 1)` from `Normal(0, 1)`.
//!
//! **Post-processing.** If `M` is private and `f` does not look at the data, `f(M)` is as private as `M`. This is used
//! everywhere, and it is why results of a mechanism may be used freely.

/// One page: its text, and where its links lead.
macro_rules! pages {
    ($($name:ident $file:literal,)*) => {
        $(
            #[doc = concat!(include_str!(concat!("../proofs/", $file, ".md")), include_str!("../proofs/links.md"))]
            pub mod $name {}
        )*
    };
}

pages! {
    units "units",
    delta "delta",
    sender_weights "sender-weights",
    joint_dp "joint-dp",
    events "events",
    gaussian_composition "gaussian-composition",
    privacy_loss "privacy-loss",
    renyi "renyi",
    subgraph_batches "subgraph-batches",
    pure "pure",
    parallel "parallel",
    rounding "rounding",
    gradient_sums "gradient-sums",
    poisson_samples "poisson-samples",
    randomised_response "randomised-response",
    top_response "top-response",
    votes "votes",
    class_counts "class-counts",
    addressed_sums "addressed-sums",
    selection "selection",
    randomness "randomness",
    ledger "ledger",
    hub "hub",
    audit "audit",
    columns "columns",
    nothing_else_leaves "nothing-else-leaves",
    verify "verify",
    not_claimed "not-claimed",
}
