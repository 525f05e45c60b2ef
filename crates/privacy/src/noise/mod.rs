//! Noise that holds on real machines: random bits, integer distributions, and the rounding of what they protect.
//!
//! | what | where |
//! |---|---|
//! | random bits, used once | [`Randomness`], [`Query`], [`Purpose`], [`Stream`] |
//! | the secret of a run | [`RunKey`] |
//! | Gaussian noise on integers | [`RoundedGaussian`] |
//! | Laplace noise on integers | [`RoundedLaplace`], [`Scale`] |
//! | exact coins, randomised response | [`Bernoulli`], [`RandomisedResponse`], [`bernoulli`] |
//! | randomised response on long lists of bits | [`SparseResponse`] |
//! | the largest of long lists of noisy bits | [`TopResponse`] |
//! | which records join a batch | [`PoissonSample`] |
//! | messages as integers | [`Quantiser`], [`SenderBound`] |
//! | what tables of noise cost | [`tables`] |
//! | gradient sums as integers | [`GradientGrid`] |
//! | results that remember their source | [`Noisy`], [`Provenance`] |
//!
//! The proofs are in [`proofs`](crate::proofs).

pub mod bernoulli;
mod digest;
pub(crate) mod fixed;
mod gaussian;
mod gradient;
mod key;
mod laplace;
mod masses;
mod message;
mod pieces;
mod poisson;
mod release;
mod response;
mod shared;
mod source;
mod stream;
pub mod tables;
mod top;

pub use bernoulli::{Bernoulli, RandomisedResponse};
pub use digest::{BlockDigest, QueryDigest};
pub use gaussian::{MAX_SIGMA, NoisySum, RoundedGaussian};
pub use gradient::{GradientGrid, Summation};
pub use key::RunKey;
pub use laplace::{RoundedLaplace, Scale};
pub use message::{MessageInt, MessageType, NormBudget, Quantiser, SenderBound, choose_scale};
pub use pieces::PieceVisitor;
pub use poisson::PoissonSample;
pub use release::Noisy;
pub use response::SparseResponse;
pub use shared::{Held, ShardMismatch};
pub use source::{AnySource, Provenance, Reproducible, Secure, Source};
pub use stream::{Purpose, Query, Randomness, Stream};
pub use top::TopResponse;
