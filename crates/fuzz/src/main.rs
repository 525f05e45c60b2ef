//! A sweep over all targets, in processes of its own so that one that dies or hangs is seen and named.
//!
//! ```sh
//! cargo run --release -p progap-fuzz -- --cases 10000000            # all targets, two at a time
//! cargo run --release -p progap-fuzz -- --cases 100000 --target npz --seed 3
//! cargo run --release -p progap-fuzz -- --renew                     # the whole folders of the corpus
//! ```
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use peak_alloc::PeakAlloc;
use progap_fuzz::sweep::{Failure, Tally};
use progap_fuzz::{Target, evaluate, folders, sweep, target, targets};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// A process that is at the same case for so long hangs.
const PATIENCE: Duration = Duration::from_secs(30);
/// This many cases are run by one process.
const SHARD: u64 = 50_000;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    match start() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start() -> Outcome<bool> {
    let mut options: BTreeMap<String, String> = BTreeMap::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        match name.as_str() {
            "--renew" => return folders::renew().map(|()| true),
            "--cases" | "--seed" | "--target" | "--threads" | "--worker" | "--from" | "--to" | "--at" => {
                let value = arguments.next().ok_or(format!("{name} needs a value"))?;
                options.insert(name, value);
            }
            _ => {
                return Err(format!(
                    "{name} is not known; there are --cases, --seed, --target, --threads, --renew"
                )
                .into());
            }
        }
    }
    let number = |name: &str, default: u64| -> Outcome<u64> {
        options.get(name).map_or(Ok(default), |text| Ok(text.parse()?))
    };
    let seed = number("--seed", 1)?;
    if let Some(name) = options.get("--worker") {
        let target = target(name).ok_or("no such target")?;
        let at = options.get("--at").map(File::create).transpose()?;
        evaluate::listen();
        let tally = sweep::run(&target, seed, number("--from", 0)?..number("--to", 0)?, &MEMORY, at.as_ref());
        println!("{}", tally.to_json());
        return Ok(true);
    }
    let chosen = match options.get("--target") {
        Some(name) => vec![target(name).ok_or(format!("there is no target {name}"))?],
        None => targets(),
    };
    all(&chosen, number("--cases", 1_000_000)?, seed, number("--threads", 2)?)
}

/// Cuts the cases into shards, runs them, prints a table.
fn all(chosen: &[Target], cases: u64, seed: u64, threads: u64) -> Outcome<bool> {
    let weights: u64 = chosen.iter().map(|target| target.weight).sum();
    let mut shards = vec![];
    for target in chosen {
        let own = (cases * target.weight).div_ceil(weights);
        shards.extend((0..own.div_ceil(SHARD)).map(|k| (*target, k * SHARD..((k + 1) * SHARD).min(own))));
    }
    let start = Instant::now();
    let (shards, tallies) = (Mutex::new(shards), Mutex::new(BTreeMap::<&str, Tally>::new()));
    let worker = || -> Result<(), String> {
        loop {
            let Some((target, range)) = shards.lock().map_err(|e| e.to_string())?.pop() else {
                return Ok(());
            };
            let tally = watched(&target, seed, range).map_err(|e| e.to_string())?;
            tallies.lock().map_err(|e| e.to_string())?.entry(target.name).or_default().add(tally);
        }
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(worker)).collect();
        running
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("a thread died".into())))
    })?;
    let tallies = tallies.into_inner()?;
    println!(
        "| target | cases | failures | slowest case | largest allocation | cases per second \
         |\n|---|---|---|---|---|---|"
    );
    let mut total = Tally::default();
    for target in chosen {
        let Some(tally) = tallies.get(target.name) else { continue };
        row(target.name, tally);
        total.add(tally.clone());
        for failure in &tally.failures {
            let kept = sweep::keep(target, seed, failure.number)?;
            eprintln!("{}, case {}: {} ({kept})", target.name, failure.number, failure.what);
        }
    }
    row("all", &total);
    println!("\nseed {seed}, {:.0} s", start.elapsed().as_secs_f64());
    Ok(total.failures.is_empty())
}

fn row(name: &str, tally: &Tally) {
    println!(
        "| {name} | {} | {} | {:.3} s | {:.1} MB | {:.0} |",
        tally.cases,
        tally.failures.len(),
        tally.slowest.as_secs_f64(),
        tally.largest as f64 / 1e6,
        tally.cases as f64 / tally.took.as_secs_f64().max(1e-9)
    );
}

/// Runs cases in a process of its own; one that ends it or does not end is a failure, and the rest goes on after it.
fn watched(target: &Target, seed: u64, range: std::ops::Range<u64>) -> Outcome<Tally> {
    let mut tally = Tally::default();
    let mut from = range.start;
    let place = tempfile::Builder::new().prefix("progap-sweep-").tempdir_in(folders::scratch())?;
    let at = place.path().join("at");
    let number = || -> Option<u64> {
        let mut bytes = [0; 8];
        File::open(&at).ok()?.read_exact(&mut bytes).ok()?;
        Some(u64::from_le_bytes(bytes))
    };
    while from < range.end {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--worker", target.name, "--seed", &seed.to_string(), "--from", &from.to_string()])
            .args(["--to", &range.end.to_string(), "--at"])
            .arg(&at)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (mut last, mut since) = (None, Instant::now());
        let ended = loop {
            if let Some(status) = child.try_wait()? {
                break Some(status);
            }
            std::thread::sleep(Duration::from_millis(20));
            let now = number();
            if now != last {
                (last, since) = (now, Instant::now());
            } else if since.elapsed() > PATIENCE {
                child.kill()?;
                child.wait()?;
                break None;
            }
        };
        let mut said = String::new();
        if let Some(mut stdout) = child.stdout.take() {
            stdout.read_to_string(&mut said)?;
        }
        match (ended, Tally::from_json(&said)) {
            (Some(status), Some(done)) if status.success() => {
                tally.add(done);
                break;
            }
            (ended, _) => {
                let stopped = number().unwrap_or(from);
                let what =
                    ended.map_or("did not end".into(), |status| format!("the process died ({status})"));
                // Cases before it in this process were right, or would be found again.
                tally.cases += stopped + 1 - from;
                tally.failures.push(Failure { number: stopped, what });
                from = stopped + 1;
            }
        }
    }
    Ok(tally)
}
