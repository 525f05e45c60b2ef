//! A budget over several runs, and a release that somebody else can check.

use progap::ledger::Ledger;
use progap::{Edge, Unit};

fn main() -> progap::Result<()> {
    let data = progap::load("demo")?;
    let mut ledger = Ledger::create("budget.db")?;
    let people = ledger.identity(&data)?;
    ledger.register("demo", Unit::EdgeUndirected, 2.0, 1e-6, Some(&people))?;

    let asked = Edge::epsilon(1.0).delta(1e-6).epochs(10);
    let release = progap::train(&data, asked).ledger("budget.db").into_folder("checked-release")?;

    // Whoever holds the release recomputes what can be recomputed, and sees what is only claimed.
    for finding in release.verify()? {
        println!("{:<9} {}: {}", finding.verdict.to_string(), finding.what, finding.detail);
        assert!(finding.ok, "this release must not be trusted");
    }
    let spent = ledger.status("demo", Unit::EdgeUndirected)?;
    println!("epsilon {:.4} of {} spent", spent.spent, spent.epsilon);
    Ok(())
}
