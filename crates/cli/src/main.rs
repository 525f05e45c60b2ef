//! The `progap` command.
fn main() {}
