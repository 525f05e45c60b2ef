//! A tree of events from a file, with or without its unit.

use std::io::Read;
use std::path::Path;

use progap_privacy::event::MAX_JSON_BYTES;
use progap_privacy::{Event, Unit, UnitEvent};

use super::Failure;

/// The tree in a file, and its unit where it has one.
pub fn read(path: &Path) -> Result<(Option<Unit>, Event), Failure> {
    let name = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    let mut text = String::new();
    // One byte beyond the limit, so that the parser sees that it is too much.
    let limit = MAX_JSON_BYTES as u64 + 1;
    let read = if path == Path::new("-") {
        std::io::stdin().take(limit).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit).read_to_string(&mut text))
    };
    read.map_err(|error| format!("{name}: the event tree cannot be read: {error}"))?;
    // A unit and a tree, or a tree alone: only the former has a unit at its top.
    let wrapped = match UnitEvent::from_json(&text) {
        Ok(UnitEvent { unit, event }) => Ok((Some(unit), event)),
        Err(wrapped_error) => match Event::from_json(&text) {
            Ok(event) => Ok((None, event)),
            Err(_) if has_unit(&text) => Err(wrapped_error),
            Err(error) => Err(error),
        },
    };
    wrapped.map_err(|error| format!("{name}: {error}").into())
}

/// Whether a text is an object with a unit at its top.
fn has_unit(text: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Top {
        #[allow(dead_code)]
        unit: serde::de::IgnoredAny,
    }
    serde_json::from_str::<Top>(text).is_ok()
}
