//! Noise that holds on real machines: random bits, integer distributions, and the rounding of what they
//! protect.

mod fixed;
mod gaussian;
mod stream;

pub use gaussian::{MAX_SIGMA, NoisySum, RoundedGaussian};
pub use stream::{Provenance, Purpose, Randomness, Reproducible, Secure, Source, Stream};
