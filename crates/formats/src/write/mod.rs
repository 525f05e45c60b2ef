//! Writers: what they write, the readers read back.

pub mod npz;
pub mod table;
