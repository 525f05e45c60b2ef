//! Trees from JSON that a stranger may have written: bounded before any work is done.

use super::{MAX_DEPTH, MAX_JSON_BYTES};
use crate::error::{Error, Result};

pub(super) fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    if text.len() > MAX_JSON_BYTES {
        return Err(Error::Json(format!("the text has {} bytes, more than {MAX_JSON_BYTES}", text.len())));
    }
    // Deserialising a tagged enum buffers each level, so refuse deep nesting before any work is done.
    let depth = nesting(text);
    if depth > 3 * MAX_DEPTH {
        return Err(Error::Json(format!(
            "brackets are nested {depth} deep; a tree has at most {MAX_DEPTH} levels"
        )));
    }
    serde_json::from_str(text).map_err(|error| Error::Json(error.to_string()))
}

/// The deepest bracket nesting outside of strings.
fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}
