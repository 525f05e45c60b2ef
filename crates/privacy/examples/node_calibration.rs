//! Times the calibration of node-level noise, the search that a user waits for.
//!
//!     cargo run --release -p progap-privacy --example node_calibration

use std::time::Instant;

use progap_privacy::Event;
use progap_privacy::accountant::{Accountant, PldAccountant, RdpAccountant, TheoremAccountant};
use progap_privacy::calibrate::{Target, calibrate};

const REPEATS: u32 = 5;

/// Processor time of this process so far, where the operating system tells.
fn processor_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit(") ").next()?.split_whitespace().collect();
    // User and system time, in hundredths of a second.
    Some(fields.get(11)?.parse::<f64>().ok()? / 100.0 + fields.get(12)?.parse::<f64>().ok()? / 100.0)
}

fn main() -> progap_privacy::Result<()> {
    println!("N = 19804, B = 256, 10 epochs, delta = 1e-5, one multiplier, one thread");
    println!("wall: best of {REPEATS}; cpu: mean of {REPEATS}; in milliseconds");
    println!("depth  epsilon accountant   multiplier   recomputed       wall        cpu");
    let accountants: [&dyn Accountant; 3] =
        [&PldAccountant::new(), &RdpAccountant::new(), &TheoremAccountant];
    for depth in 1..=5 {
        for epsilon in [2.0, 8.0] {
            for accountant in accountants {
                let plan = |multiplier: f64| {
                    let step = Event::gaussian(multiplier, 1.0)?.poisson_sampled(256.0 / 19804.0)?;
                    let sums = Event::gaussian(multiplier, 1.0)?.repeated(depth)?;
                    Event::composed(vec![sums, step.repeated((depth + 1) * 773)?])
                };
                let target = Target::new(epsilon, 1e-5)?;
                let mut found = calibrate(plan, target, accountant)?;
                let (mut wall, processor) = (f64::INFINITY, processor_seconds());
                for _ in 0..REPEATS {
                    let started = Instant::now();
                    found = calibrate(plan, target, accountant)?;
                    wall = wall.min(started.elapsed().as_secs_f64());
                }
                let spent =
                    processor_seconds().zip(processor).map(|(end, start)| (end - start) / f64::from(REPEATS));
                println!(
                    "{depth:>5} {epsilon:>8} {:>10} {:>12.6} {:>12.8} {:>10.1} {:>10}",
                    accountant.name(),
                    found.multiplier,
                    found.bound.value,
                    1e3 * wall,
                    spent.map_or("-".to_owned(), |seconds| format!("{:.1}", 1e3 * seconds))
                );
            }
        }
    }
    Ok(())
}
