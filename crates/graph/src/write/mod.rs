//! Writers: what they write, the readers read back.

pub mod table;
