#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod onnx;
mod packaged;
mod receipt;
mod signature;
mod signed;

pub use packaged::{Form, package, to_onnx, to_onnx_for_rows};
pub use receipt::{Made, sign_predictions, signature_of, verify_predictions};
pub use signature::{KeyFiles, PublicKey, SecretKey};
pub use signed::{Signed, export, signed};
