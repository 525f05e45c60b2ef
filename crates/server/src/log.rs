//! The log: one JSON object a line, on standard error. Neither ids of nodes nor anything of their rows is ever in it.

use std::io::Write;

use serde_json::{Map, Value};

use crate::time;

/// What is written to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Log {
    /// Nothing.
    None,
    /// Start, stop, new versions, and mistakes of the server.
    Events,
    /// The same, and every request: its route without its values, its status, how long it took.
    Requests,
}

impl Log {
    /// Every choice by its name.
    pub const ALL: [(&'static str, Log); 3] =
        [("none", Log::None), ("events", Log::Events), ("requests", Log::Requests)];

    pub(crate) fn event(self, event: &str, facts: &[(&str, String)]) {
        if self >= Log::Events {
            let facts = facts.iter().map(|(name, value)| (name.to_string(), Value::from(value.as_str())));
            write(event, facts.collect());
        }
    }

    /// A request that was answered; the route is one of the documented ones.
    pub(crate) fn request(self, method: &str, route: &str, status: u16, seconds: f64) {
        if self >= Log::Requests {
            let facts = [
                ("method", Value::from(method)),
                ("route", Value::from(route)),
                ("status", Value::from(status)),
                ("seconds", Value::from(seconds)),
            ];
            write("request", facts.into_iter().map(|(name, value)| (name.to_string(), value)).collect());
        }
    }
}

fn write(event: &str, facts: Map<String, Value>) {
    let mut line = Map::new();
    line.insert("at".into(), time::now().into());
    line.insert("event".into(), event.into());
    line.extend(facts);
    let mut text = Value::from(line).to_string();
    text.push('\n');
    // Where even that cannot be written there is nobody to tell.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
