//! Private selection.
