#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(not(feature = "audit"), allow(dead_code, unused_imports, reason = "audits ask what no run asks"))]

mod account;
mod addressed;
pub mod assessment;
#[cfg(feature = "audit")]
pub mod audit;
mod calibration;
pub mod cost;
pub mod delta;
pub mod error;
mod files;
mod folder;
mod front;
#[cfg_attr(not(feature = "ledger"), path = "ledger/absent.rs")]
pub mod ledger;
pub mod lint;
mod memory;
pub mod method;
mod mixing;
mod model;
mod onnx;
pub mod order;
pub mod plan;
mod predictor;
mod propagate;
pub mod query;
pub mod ranks;
pub mod release;
mod rows;
pub mod run;
mod scaling;
mod scratch;
pub mod settings;
#[cfg_attr(not(feature = "sign"), path = "no_signature.rs")]
pub mod signature;
pub mod units;
mod vault;
mod views;

pub use account::{Accounted, Decided};
pub use error::{Error, ErrorKind, InFile, Remedy, Result, Vocabulary};
pub use front::{account, load, load_with, looks_like_a_path, resume, train};
pub use memory::keep_memory_below;
pub use method::{Observer, Progress};
pub use progap_graph::read::LoadOptions;
pub use progap_graph::{Dataset, DatasetBuilder};
pub use progap_privacy::Unit;
pub use release::{Guarantee, Predictions, Release};
pub use run::{Trained, Training};
pub use settings::{
    Accounting, Bounding, Combination, Edge, Level, Messages, MethodKind, Node, Nonlinearity, Selection,
    Settings, Unprotected,
};

/// Internals for tests and benchmarks: no part of the interface.
#[doc(hidden)]
#[allow(missing_docs)]
pub mod internals {
    pub use crate::vault::*;

    #[cfg(feature = "audit")]
    pub mod audit {
        pub mod mechanism {
            pub use crate::audit::mechanism::*;
        }
        pub mod response {
            pub use crate::audit::response::*;
        }
        pub mod subgraph {
            pub use crate::audit::subgraph::*;
        }
        pub mod tables {
            pub use crate::audit::tables::*;
        }
        pub mod votes {
            pub use crate::audit::votes::*;
        }
    }
}
