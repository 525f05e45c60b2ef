//! Trees from JSON that a stranger may have written: bounded before any work is done.

use super::{MAX_DEPTH, MAX_JSON_BYTES};
use crate::error::{Error, Result};

/// The types of events of this version; `docs/formats.md` says what stays as it is.
pub(super) const TYPES: [&str; 10] = [
    "gaussian",
    "laplace",
    "randomized-response",
    "poisson-sampled",
    "composed",
    "self-composed",
    "parallel",
    "sampled-without-replacement",
    "private-selection",
    "non-private",
];

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
    serde_json::from_str(text).map_err(|error| newer(text).unwrap_or_else(|| Error::Json(error.to_string())))
}

/// Says that a tree that cannot be read has an event that a newer program knows, where that is so.
fn newer(text: &str) -> Option<Error> {
    let mut left = vec![serde_json::from_str::<serde_json::Value>(text).ok()?];
    while let Some(value) = left.pop() {
        match value {
            serde_json::Value::Array(values) => left.extend(values),
            serde_json::Value::Object(fields) => {
                let kind = fields.get("type").and_then(|kind| kind.as_str());
                if let Some(kind) = kind.filter(|kind| !TYPES.contains(kind)) {
                    return Some(Error::UnknownEvent(kind.chars().take(60).collect()));
                }
                left.extend(fields.into_iter().map(|(_, value)| value));
            }
            _ => {}
        }
    }
    None
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
