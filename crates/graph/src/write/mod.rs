//! Writers: what was read comes out again.

pub mod npz;
