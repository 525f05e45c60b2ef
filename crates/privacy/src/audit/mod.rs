//! Audit statistics.
