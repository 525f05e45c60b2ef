//! Time that a charge takes as a ledger grows. Run with `cargo bench -p progap-ledger --bench ledger`.

use std::time::Instant;

use progap_ledger::{Charge, Ledger};
use progap_privacy::{Event, Unit};

const NAME: &str = "bench";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let gaussian = |i: u32| Event::gaussian(300.0 + f64::from(i), 1.0);
    grow("Gaussian runs", Ledger::create(folder.path().join("gaussian"))?, &[1, 100, 1000], gaussian)?;
    let alike = |_| training(8.0);
    grow("equal training runs", Ledger::create(folder.path().join("alike"))?, &[1, 10, 50], alike)?;
    let different = |i: u32| training(8.0 + 0.01 * f64::from(i));
    grow("different training runs", Ledger::create(folder.path().join("different"))?, &[1, 10, 50], different)
}

/// A query on the graph and 700 steps of sampled gradients.
fn training(sigma: f64) -> progap_privacy::Result<Event> {
    let steps = Event::gaussian(sigma, 1.0)?.poisson_sampled(0.01)?.repeated(700)?;
    Event::composed(vec![Event::gaussian(4.0 * sigma, 1.0)?, steps])
}

fn grow(
    what: &str,
    mut ledger: Ledger,
    stops: &[u32],
    event: impl Fn(u32) -> progap_privacy::Result<Event>,
) -> Result<(), Box<dyn std::error::Error>> {
    ledger.register(NAME, Unit::Edge, 45.0, 1e-6, None)?;
    for i in 0..=stops.iter().copied().max().unwrap_or(0) {
        let start = Instant::now();
        let receipt = ledger.charge(Charge::new(format!("run-{i}"), NAME, Unit::Edge, event(i)?))?;
        if stops.contains(&i) {
            let charge = start.elapsed();
            let start = Instant::now();
            let status = ledger.status(NAME, Unit::Edge)?;
            let (status_time, left) = (start.elapsed(), status.left);
            println!(
                "{what}: after {i} the next charge takes {charge:.1?}, status {status_time:.1?} (total {:.4}, left \
                 {left:.2})",
                receipt.cost.total
            );
        }
    }
    let start = Instant::now();
    let checked = ledger.check()?;
    println!("{what}: check of {} rows takes {:.1?}", checked.rows, start.elapsed());
    Ok(())
}
