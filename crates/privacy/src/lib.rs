//! Events, accountants, calibration, integer noise, selection and auditing statistics.
//!
//! This crate knows what was asked of private data and what that costs. It knows nothing of graphs, networks or
//! files. Definitions and proofs are in `docs/privacy.md`.
//!
//! # What a training run costs
//! Describe what is asked of the data as an [`Event`], then ask one accountant or the [best](accountant::Best):
//! ```
//! use progap_privacy::Event;
//! use progap_privacy::accountant::{Accountant, Best, RdpAccountant};
//!
//! let dp_sgd = Event::gaussian(1.1, 1.0)?.poisson_sampled(256.0 / 60_000.0)?.repeated(10_000)?;
//! let tight = Best.epsilon(&dp_sgd, 1e-5)?;
//! let moments = RdpAccountant::new().epsilon(&dp_sgd, 1e-5)?;
//! assert_eq!(tight.accountant, "pld");
//! assert!(tight.value < moments.value);
//! # Ok::<(), progap_privacy::Error>(())
//! ```
//!
//! # How much noise a promise needs
//! ```
//! use progap_privacy::Event;
//! use progap_privacy::accountant::Best;
//! use progap_privacy::calibrate::{Target, calibrate};
//!
//! let three_queries = |sigma: f64| Event::gaussian(sigma, 1.0)?.repeated(3);
//! let noise = calibrate(three_queries, Target::new(1.0, 1e-7)?, &Best)?;
//! assert!(noise.bound.value <= 1.0 && noise.multiplier < 8.11);
//! # Ok::<(), progap_privacy::Error>(())
//! ```
//!
//! # Noise that is safe against floating-point attacks
//! ```
//! use progap_privacy::noise::{Randomness, RoundedGaussian};
//!
//! let mut counts = vec![120_i32, 45, 0];
//! let mut stream = Randomness::from_os().purpose("histogram")?.stream();
//! RoundedGaussian::new(8.2)?.add_to(&mut stream, &mut counts);
//! # Ok::<(), progap_privacy::Error>(())
//! ```
//!
//! [`selection`] publishes the best of several private runs, and [`audit`] tests a claim by attack.

#![forbid(unsafe_code)]

pub mod accountant;
pub mod audit;
pub mod calibrate;
pub mod error;
pub mod event;
pub mod noise;
mod pure;
pub mod selection;
pub mod special;
mod within;

pub use error::{Error, Result, Unsupported};
pub use event::{Event, Unit, UnitEvent};
