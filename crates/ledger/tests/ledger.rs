//! The ledger with real files, real processes, real crashes and real write failures.

#[path = "ledger/files.rs"]
mod files;
#[path = "ledger/forecast.rs"]
mod forecast;
#[path = "ledger/later.rs"]
mod later;
#[path = "ledger/processes.rs"]
mod processes;
#[path = "common/unwritable.rs"]
mod unwritable;
#[path = "ledger/write_failures.rs"]
mod write_failures;

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use progap_ledger::{Charge, Cost, Error, Ledger, OverBudget, Receipt};
use progap_privacy::accountant::{Accountant, GdpAccountant};
use progap_privacy::noise::tables;
use progap_privacy::{Event, Unit};
use rusqlite::Connection;

const NAME: &str = "school";

fn gaussian(sigma: f64) -> Event {
    Event::gaussian(sigma, 1.0).unwrap()
}

fn run(id: impl Into<String>, sigma: f64) -> Charge {
    Charge::new(id, NAME, Unit::Edge, gaussian(sigma))
}

/// A folder with a ledger in it, whose one data set has the given budget at delta 1e-7.
fn ledger(epsilon: f64) -> (tempfile::TempDir, PathBuf, Ledger) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("privacy.ledger");
    let mut ledger = Ledger::create(&path).unwrap();
    ledger.register(NAME, Unit::Edge, epsilon, 1e-7, None).unwrap();
    (folder, path, ledger)
}

fn refused(result: Result<Receipt, Error>) -> OverBudget {
    match result {
        Err(Error::OverBudget(refusal)) => *refusal,
        other => panic!("{other:?}"),
    }
}

mod charging {
    use super::*;

    #[test]
    fn costs_compose_exactly_and_the_budget_is_a_wall() {
        let (_folder, _, mut ledger) = ledger(4.0);
        let mut receipts = Vec::new();
        for i in 0.. {
            match ledger.charge(run(format!("run-{i}"), 4.9)) {
                Ok(receipt) => receipts.push(receipt),
                Err(_) => break,
            }
        }
        // mu^2 of the budget is 1/1.30^2 (the published reference), of a run 1/4.9^2: 14 of them fit.
        assert_eq!(receipts.len(), 14);
        for (i, receipt) in receipts.iter().enumerate() {
            // A part of delta is kept for noise tables.
            let runs = gaussian(4.9).repeated(i as u64 + 1).unwrap();
            let total = GdpAccountant.epsilon(&runs, tables::provable(1e-7)).unwrap().value;
            assert!((receipt.cost.total / total - 1.0).abs() < 1e-9, "{receipt:?} {total}");
            assert!((receipt.cost.epsilon - 0.95).abs() < 0.01, "{receipt:?}");
        }
        let refusal = refused(ledger.charge(run("one more", 4.9)));
        assert_eq!((refusal.budget, refusal.delta), (4.0, 1e-7));
        assert!(
            refusal.total > 4.0
                && refusal.spent == receipts[13].cost.total
                && refusal.asked == receipts[0].cost.epsilon
        );
        // The epsilon that it says is left fits, and a percent more does not.
        let sigma = |epsilon: f64| {
            let (mut low, mut high) = (1e-2, 1e6);
            for _ in 0..100 {
                let middle = 0.5 * (low + high);
                let found = GdpAccountant.epsilon(&gaussian(middle), tables::provable(1e-7)).unwrap().value;
                if found <= epsilon { high = middle } else { low = middle }
            }
            high
        };
        refused(ledger.charge(run("too much", sigma(refusal.left * 1.01))));
        ledger.charge(run("the rest", sigma(refusal.left))).unwrap();
        let checked = ledger.check().unwrap();
        assert_eq!((checked.rows, checked.datasets, checked.runs), (16, 1, 15));
    }

    #[test]
    fn a_resumed_run_is_charged_once_and_a_changed_one_is_refused() {
        let (_folder, path, mut ledger) = ledger(4.0);
        let event = Event::composed(vec![
            gaussian(0.1 + 0.2 + 30.0),
            gaussian(7.3).poisson_sampled(1.0 / 77.0).unwrap().repeated(100).unwrap(),
        ])
        .unwrap();
        let charge = Charge::new("run", NAME, Unit::Edge, event).with_note("first");
        let first = ledger.charge(charge.clone()).unwrap();
        drop(ledger);
        let mut ledger = Ledger::open(&path).unwrap();
        assert_eq!(ledger.charge(charge.clone()).unwrap(), first);
        assert_eq!(ledger.charge(charge.clone().with_note("other words")).unwrap(), first);
        assert_eq!(ledger.charges(NAME, Unit::Edge).unwrap().len(), 1);
        ledger.check_against(std::slice::from_ref(&first)).unwrap();
        let cost = Cost { epsilon: 0.1, ..first.cost.clone() };
        let forged = ledger.check_against(&[Receipt { cost, ..first }]).unwrap_err();
        assert!(matches!(forged, Error::RolledBack { .. }), "{forged}");

        ledger.register("other", Unit::Edge, 4.0, 1e-7, None).unwrap();
        let changes = [
            Charge { event: gaussian(7.0), ..charge.clone() },
            Charge { dataset: "other".into(), ..charge.clone() },
            Charge { unit: Unit::EdgeUndirected, ..charge },
        ];
        for change in changes {
            assert!(matches!(ledger.charge(change), Err(Error::RunChanged { .. })));
        }
    }

    /// The small error of noise tables grows with epsilon, and adds up over the runs.
    #[test]
    fn a_budget_that_noise_tables_cannot_keep_is_refused() {
        let (_folder, _, mut ledger) = ledger(30.0);
        let many = 200_000;
        ledger.charge(run("first", 5.0).with_noise_values(many)).unwrap();
        let second = run("second", 5.0).with_noise_values(u64::MAX);
        assert!(matches!(ledger.charge(second), Err(Error::Tables { .. })));
        assert_eq!(ledger.charges(NAME, Unit::Edge).unwrap().len(), 1);
        assert!(matches!(ledger.set_budget(NAME, Unit::Edge, 60.0, 1e-7, "more"), Err(Error::Tables { .. })));
    }

    #[test]
    fn a_run_needs_a_budget_in_its_own_unit() {
        let (_folder, _, mut ledger) = ledger(4.0);
        for unit in [Unit::EdgeUndirected, Unit::Node] {
            let charge = Charge { unit, ..run("run", 5.0) };
            assert!(matches!(ledger.charge(charge), Err(Error::Unit { .. })), "{unit}");
        }
        assert_eq!(ledger.status(NAME, Unit::Edge).unwrap().runs, 0);
    }

    #[test]
    fn what_has_no_guarantee_never_fits() {
        let (_folder, _, mut ledger) = ledger(40.0);
        let refusal = refused(ledger.charge(Charge { event: Event::NonPrivate, ..run("run", 1.0) }));
        assert_eq!(refusal.total, f64::INFINITY);
    }

    #[test]
    fn data_sets_have_budgets_of_their_own() {
        let (_folder, _, mut ledger) = ledger(1.0);
        ledger.register("clinic", Unit::Node, 1.0, 1e-5, None).unwrap();
        ledger.charge(run("a", 4.69)).unwrap();
        refused(ledger.charge(run("b", 4.69)));
        let clinic = Charge { dataset: "clinic".into(), unit: Unit::Node, ..run("b", 4.69) };
        ledger.charge(clinic).unwrap();
        for unit in [None, Some(Unit::Node)] {
            let found = ledger.budget("clinic", unit).unwrap();
            assert_eq!((found.name.as_str(), found.unit, found.epsilon), ("clinic", Unit::Node, 1.0));
        }
        assert!(matches!(ledger.budget("clinics", None), Err(Error::Unregistered { .. })));
        assert!(matches!(ledger.budget("clinic", Some(Unit::Edge)), Err(Error::Unit { .. })));
        let standing = ledger.datasets().unwrap();
        assert_eq!(
            standing.iter().map(|s| (s.name.as_str(), s.runs)).collect::<Vec<_>>(),
            [("school", 1), ("clinic", 1)]
        );
        assert!(standing.iter().all(|s| s.fully_adaptive && s.spent <= s.epsilon));
        let again = ledger.register(NAME, Unit::Edge, 1.0, 1e-5, None);
        assert!(matches!(again, Err(Error::Registered { .. })));
    }

    #[test]
    fn a_budget_moves_by_a_logged_act_but_not_below_what_is_spent() {
        let (_folder, _, mut ledger) = ledger(1.0);
        let first = ledger.charge(run("a", 4.69)).unwrap();
        refused(ledger.charge(run("b", 4.69)));
        ledger.set_budget(NAME, Unit::Edge, 2.0, 1e-7, "agreed by the data owners").unwrap();
        ledger.charge(run("b", 4.69)).unwrap();
        let low = ledger.set_budget(NAME, Unit::Edge, first.cost.total, 1e-7, "regret");
        assert!(matches!(low, Err(Error::BudgetBelowSpent { .. })));
        // A smaller delta makes the same runs cost more.
        let spent = ledger.status(NAME, Unit::Edge).unwrap().spent;
        assert!(matches!(
            ledger.set_budget(NAME, Unit::Edge, spent, 1e-9, "regret"),
            Err(Error::BudgetBelowSpent { .. })
        ));
        ledger.set_budget(NAME, Unit::Edge, spent, 1e-7, "nothing more").unwrap();
        refused(ledger.charge(run("c", 1e4)));
        assert_eq!(ledger.check().unwrap().rows, 5);
    }

    #[test]
    fn nonsense_is_refused_in_words() {
        let (_folder, _, mut ledger) = ledger(1.0);
        let mut said = Vec::new();
        for (epsilon, delta) in
            [(0.0, 1e-7), (f64::NAN, 1e-7), (f64::INFINITY, 1e-7), (1.0, 0.0), (1.0, 1.0), (1.0, f64::NAN)]
        {
            said.push(ledger.register("x", Unit::Edge, epsilon, delta, None).unwrap_err());
            said.push(ledger.set_budget(NAME, Unit::Edge, epsilon, delta, "why").unwrap_err());
        }
        said.push(ledger.register("", Unit::Edge, 1.0, 0.1, None).unwrap_err());
        said.push(
            ledger.charge(Charge { key_commitment: Some("not hex!".into()), ..run("run", 5.0) }).unwrap_err(),
        );
        said.push(ledger.charge(run("two\nlines", 5.0)).unwrap_err());
        said.push(ledger.charge(run("run", 5.0).with_note("x".repeat(2001))).unwrap_err());
        assert!(said.iter().all(|error| matches!(error, Error::Invalid { .. })), "{said:?}");
        let unknown = Charge { dataset: "nobody".into(), ..run("run", 5.0) };
        assert!(matches!(ledger.charge(unknown), Err(Error::Unregistered { .. })));
        let forged = Charge { event: Event::Gaussian { sigma: -1.0, sensitivity: 1.0 }, ..run("run", 5.0) };
        assert!(matches!(ledger.charge(forged), Err(Error::Accounting(_))));
        assert_eq!(ledger.check().unwrap().rows, 1);
    }

    #[test]
    fn hundreds_of_different_runs_add_up_in_seconds() {
        let (_folder, _, mut ledger) = ledger(40.0);
        let start = Instant::now();
        for i in 0..300 {
            ledger.charge(run(format!("gaussian-{i}"), 20.0 + f64::from(i))).unwrap();
        }
        let gaussians = start.elapsed();
        let training = |i: u32| {
            let step = gaussian(8.0 + 0.01 * f64::from(i)).poisson_sampled(0.01).unwrap();
            let event =
                Event::composed(vec![gaussian(30.0 + f64::from(i)), step.repeated(700).unwrap()]).unwrap();
            Charge { event, ..run(format!("training-{i}"), 1.0) }
        };
        let start = Instant::now();
        for i in 0..8 {
            ledger.charge(training(i)).unwrap();
        }
        let trainings = start.elapsed() / 8;
        let start = Instant::now();
        let status = ledger.status(NAME, Unit::Edge).unwrap();
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
        println!(
            "300 Gaussian runs {gaussians:?}; a sampled run on top {trainings:?}; status {:?}",
            start.elapsed()
        );
        assert!((status.runs, status.accountant, status.fully_adaptive) == (308, "pld", false), "{status:?}");
        assert!(status.left > 0.0 && status.left < status.epsilon - status.spent + 20.0);
    }
}

/// The receipts in what a worker printed.
fn receipts(said: &str) -> Vec<Receipt> {
    said.lines()
        .filter_map(|line| line.strip_prefix("receipt "))
        .map(|json| serde_json::from_str(json).unwrap())
        .collect()
}

/// This test binary again, as a process of its own that does what `worker_process` reads from its environment.
fn worker(path: &Path, task: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "worker_process", "--nocapture", "--test-threads=1"]);
    command.env("LEDGER_PATH", path).env("LEDGER_TASK", task.join(" "));
    command
}

/// Not a test but the body of the worker processes; without a task it does nothing.
#[test]
fn worker_process() {
    let (Ok(path), Ok(task)) = (std::env::var("LEDGER_PATH"), std::env::var("LEDGER_TASK")) else { return };
    let mut out = std::io::stdout();
    let mut say = move |line: String| {
        // In one write, after a line end: the harness prints its own words on the same line.
        out.write_all(format!("\n{line}\n").as_bytes()).and_then(|()| out.flush()).unwrap();
    };
    let kind = |error: &Error| {
        let name = format!("{error:?}");
        let end = name.find(|c: char| !c.is_alphanumeric()).unwrap_or(name.len());
        format!("error {} {error}", &name[..end])
    };
    match task.split(' ').collect::<Vec<_>>()[..] {
        ["create"] => match Ledger::create(&path) {
            Ok(_) => say("created".into()),
            Err(error) => say(kind(&error)),
        },
        ["charge", prefix, count, sigma] => {
            let mut ledger = Ledger::open(&path).unwrap();
            say(format!("read {} runs", ledger.charges(NAME, Unit::Edge).unwrap().len()));
            let (count, sigma): (usize, f64) = (count.parse().unwrap(), sigma.parse().unwrap());
            for i in 0..count {
                match ledger.charge(run(format!("{prefix}-{i}"), sigma).with_note("x".repeat(300))) {
                    Ok(receipt) => say(format!("receipt {}", serde_json::to_string(&receipt).unwrap())),
                    Err(error @ Error::OverBudget(_)) => say(kind(&error)),
                    // Whatever else it is, trying again would not help.
                    Err(error) => return say(kind(&error)),
                }
            }
        }
        _ => panic!("{task}"),
    }
}
