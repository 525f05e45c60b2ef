//! Reads lines of JSON `{"event": ..., "delta": ...}` and prints what each accountant says, as lines of JSON.
//!
//! Used by `scripts/oracle/compare.py`; the command line has a friendlier face.

use std::io::{BufRead, Write};
use std::time::Instant;

use progap_privacy::Event;
use progap_privacy::accountant::all;
use serde::Deserialize;

#[derive(Deserialize)]
struct Question {
    event: Event,
    delta: f64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let Question { event, delta } = serde_json::from_str(&line?)?;
        let mut answers = serde_json::Map::new();
        for accountant in all() {
            let started = Instant::now();
            let answer = match accountant.epsilon(&event, delta) {
                Ok(bound) => serde_json::json!({
                    // JSON has no infinity.
                    "epsilon": if bound.value.is_finite() { bound.value.into() } else { serde_json::json!("inf") },
                    "error": bound.error,
                    "caveat": bound.caveat,
                    "seconds": started.elapsed().as_secs_f64(),
                }),
                Err(error) => serde_json::json!({ "unsupported": error.to_string() }),
            };
            answers.insert(accountant.name().to_owned(), answer);
        }
        writeln!(out, "{}", serde_json::Value::Object(answers))?;
    }
    Ok(())
}
