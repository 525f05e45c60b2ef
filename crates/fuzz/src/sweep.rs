//! Many cases of one target, and what they came to.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use peak_alloc::PeakAlloc;
use serde_json::{Value, json};

use crate::evaluate::evaluate;
use crate::mutate::case;
use crate::{Target, root};

/// A case that must not be.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Its number.
    pub number: u64,
    /// The failure, in words.
    pub what: String,
}

/// The outcome of some cases.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// How many there were.
    pub cases: u64,
    /// Those that must not be.
    pub failures: Vec<Failure>,
    /// The time of the slowest.
    pub slowest: Duration,
    /// The bytes of the largest.
    pub largest: usize,
    /// The time of all together.
    pub took: Duration,
}

impl Tally {
    /// Adds what other cases came to.
    pub fn add(&mut self, other: Tally) {
        self.cases += other.cases;
        self.failures.extend(other.failures);
        self.slowest = self.slowest.max(other.slowest);
        self.largest = self.largest.max(other.largest);
        self.took += other.took;
    }

    /// As one line of JSON.
    pub fn to_json(&self) -> String {
        let failures: Vec<Value> = self.failures.iter().map(|f| json!([f.number, f.what])).collect();
        json!({
            "cases": self.cases,
            "failures": failures,
            "slowest": self.slowest.as_secs_f64(),
            "largest": self.largest,
            "took": self.took.as_secs_f64(),
        })
        .to_string()
    }

    /// From a line of JSON.
    pub fn from_json(text: &str) -> Option<Tally> {
        let value: Value = serde_json::from_str(text).ok()?;
        let seconds = |name: &str| Some(Duration::from_secs_f64(value[name].as_f64()?));
        let failure =
            |pair: &Value| Some(Failure { number: pair[0].as_u64()?, what: pair[1].as_str()?.into() });
        Some(Tally {
            cases: value["cases"].as_u64()?,
            failures: value["failures"].as_array()?.iter().map(failure).collect::<Option<_>>()?,
            slowest: seconds("slowest")?,
            largest: value["largest"].as_u64()? as usize,
            took: seconds("took")?,
        })
    }
}

/// Runs the cases of some numbers. Before each its number is written to `at`, so that who watches knows which one did
/// not end.
pub fn run(target: &Target, seed: u64, numbers: Range<u64>, memory: &PeakAlloc, at: Option<&File>) -> Tally {
    let seeds = (target.seeds)();
    let start = Instant::now();
    let mut tally = Tally::default();
    for number in numbers {
        if let Some(at) = at {
            let _ = at.write_all_at(&number.to_le_bytes(), 0);
        }
        let case = case(target, &seeds, seed, number);
        let evaluation = evaluate(target, &case, memory);
        tally.cases += 1;
        tally.slowest = tally.slowest.max(evaluation.took);
        tally.largest = tally.largest.max(evaluation.bytes);
        tally.failures.extend(evaluation.wrong.map(|what| Failure { number, what }));
    }
    tally.took = start.elapsed();
    tally
}

/// Keeps a case that must not be, where the next run of the tests finds it; gives its name.
pub fn keep(target: &Target, seed: u64, number: u64) -> std::io::Result<String> {
    let folder = root().join("fuzz/failures").join(target.name);
    std::fs::create_dir_all(&folder)?;
    let file = folder.join(format!("{seed}-{number}"));
    std::fs::write(&file, case(target, &(target.seeds)(), seed, number))?;
    Ok(format!("fuzz/failures/{}/{seed}-{number}", target.name))
}
