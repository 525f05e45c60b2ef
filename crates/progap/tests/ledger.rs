//! The ledger with real files, real processes, real crashes and real write failures.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use progap::ledger::{Charge, Error, Ledger, OverBudget, Receipt};
use progap_privacy::accountant::{Accountant, GdpAccountant};
use progap_privacy::noise::tables;
use progap_privacy::{Event, Unit};
use rusqlite::Connection;

const NAME: &str = "school";
const FINGERPRINT: &str = "0123456789abcdef";

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
    ledger.register(NAME, Unit::Edge, epsilon, 1e-7, Some(FINGERPRINT)).unwrap();
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
            assert!((receipt.total / total - 1.0).abs() < 1e-9, "{receipt:?} {total}");
            assert!((receipt.epsilon - 0.95).abs() < 0.01, "{receipt:?}");
        }
        let refusal = refused(ledger.charge(run("one more", 4.9)));
        assert_eq!((refusal.budget, refusal.delta), (4.0, 1e-7));
        assert!(
            refusal.total > 4.0
                && refusal.spent == receipts[13].total
                && refusal.asked == receipts[0].epsilon
        );
        // What it says is left fits, and a percent more does not.
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
        assert!(ledger.holds(&first).unwrap());
        assert!(!ledger.holds(&Receipt { epsilon: 0.1, ..first }).unwrap());

        ledger.register("other", Unit::Edge, 4.0, 1e-7, Some("ffffffff")).unwrap();
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
    fn units_are_never_mixed() {
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
        ledger.register("clinic", Unit::Node, 1.0, 1e-5, Some("AABBCCDD")).unwrap();
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
        let again = ledger.register(NAME, Unit::Edge, 1.0, 1e-5, Some("11111111"));
        assert!(matches!(again, Err(Error::Registered { .. })));
    }

    #[test]
    fn a_budget_moves_by_a_logged_act_but_not_below_what_is_spent() {
        let (_folder, _, mut ledger) = ledger(1.0);
        let first = ledger.charge(run("a", 4.69)).unwrap();
        refused(ledger.charge(run("b", 4.69)));
        ledger.set_budget(NAME, Unit::Edge, 2.0, 1e-7, "agreed by the data owners").unwrap();
        ledger.charge(run("b", 4.69)).unwrap();
        let low = ledger.set_budget(NAME, Unit::Edge, first.total, 1e-7, "regret");
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
        said.push(ledger.register("x", Unit::Edge, 1.0, 0.1, Some("not hex!")).unwrap_err());
        said.push(ledger.charge(run("run", 5.0).with_key_commitment("not hex!")).unwrap_err());
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

mod files {
    use super::*;

    #[test]
    fn what_is_not_a_ledger_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert!(matches!(Ledger::open(at("missing")), Err(Error::Missing { .. })));
        assert!(matches!(Ledger::open(folder.path()), Err(Error::NotALedger { .. })));
        assert!(matches!(Ledger::create(at("no/folder")), Err(Error::CannotOpen { .. })));
        fs::write(at("empty"), "").unwrap();
        fs::write(at("text"), "name,budget\n".repeat(500)).unwrap();
        Connection::open(at("sqlite")).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
        for name in ["empty", "text", "sqlite"] {
            assert!(matches!(Ledger::open(at(name)), Err(Error::NotALedger { .. })), "{name}");
        }
        for name in ["text", "sqlite", "."] {
            let before = fs::read(at(name)).unwrap_or_default();
            assert!(matches!(Ledger::create(at(name)), Err(Error::Exists { .. })), "{name}");
            assert_eq!(fs::read(at(name)).unwrap_or_default(), before);
        }
        Ledger::create(at("empty")).unwrap();
        assert!(matches!(Ledger::create(at("empty")), Err(Error::Exists { .. })));
        Connection::open(at("empty")).unwrap().execute_batch("PRAGMA user_version = 3").unwrap();
        assert!(matches!(Ledger::open(at("empty")), Err(Error::Newer { found: 3, known: 2, .. })));
    }

    #[test]
    fn a_damaged_file_is_an_error_and_never_a_panic_or_a_forgotten_charge() {
        let (folder, path, mut ledger) = ledger(4.0);
        for i in 0..10 {
            ledger.charge(run(format!("run-{i}"), 10.0)).unwrap();
        }
        let head = ledger.check().unwrap().head;
        drop(ledger);
        let whole = fs::read(&path).unwrap();
        let copy = folder.path().join("copy");
        let damages = (0..whole.len()).step_by(97).flat_map(|at| {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x55;
            [flipped, whole[..at].to_vec()]
        });
        let (mut kept, mut caught) = (0, 0);
        for damaged in damages {
            fs::write(&copy, damaged).unwrap();
            match Ledger::open(&copy).and_then(|ledger| ledger.check()) {
                // Unused bytes of a page may change; what is written may not.
                Ok(checked) => {
                    assert_eq!(checked.head, head);
                    kept += 1;
                }
                Err(_) => caught += 1,
            }
        }
        assert!(kept > 0 && caught > kept, "{kept} {caught}");
    }

    #[test]
    fn the_api_and_the_file_refuse_to_forget() {
        let (_folder, path, mut ledger) = ledger(4.0);
        ledger.charge(run("run", 10.0)).unwrap();
        let raw = Connection::open(&path).unwrap();
        for sql in ["DELETE FROM entry", "UPDATE entry SET hash = ''"] {
            assert!(raw.execute_batch(sql).unwrap_err().to_string().contains("only grows"));
        }
        raw.execute_batch("DROP TRIGGER entry_is_never_deleted").unwrap();
        assert!(matches!(Ledger::open(&path), Err(Error::Damaged { .. })));
    }

    /// Changes a ledger behind its back, triggers put aside and put back.
    fn forge(path: &Path, sql: &str) {
        let raw = Connection::open(path).unwrap();
        let triggers: Vec<(String, String)> = raw
            .prepare("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        for (name, _) in &triggers {
            raw.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
        }
        raw.execute_batch(sql).unwrap();
        for (_, sql) in &triggers {
            raw.execute_batch(sql).unwrap();
        }
    }

    #[test]
    fn the_first_forged_row_is_named_and_nothing_more_is_charged() {
        let forgeries = [
            ("UPDATE entry SET event = replace(event, '10.0', '90.0') WHERE seq = 3", 3),
            ("UPDATE entry SET body = replace(body, '4.0', '9.0') WHERE seq = 1", 1),
            ("UPDATE entry SET time = '2001-01-01T00:00:00Z' WHERE seq = 4", 4),
            ("UPDATE entry SET run_id = 'x' WHERE seq = 2", 2),
            ("UPDATE entry SET fingerprint = 'ffffffff' WHERE seq = 5", 5),
            ("DELETE FROM entry WHERE seq = 3", 3),
            ("DELETE FROM entry WHERE seq = 5", 5),
            ("DELETE FROM entry WHERE seq = 5; UPDATE entry SET seq = 5 WHERE seq = 4", 4),
            ("DELETE FROM entry", 1),
        ];
        for (sql, bad) in forgeries {
            let (_folder, path, mut ledger) = ledger(4.0);
            for i in 0..4 {
                ledger.charge(run(format!("run-{i}"), 10.0)).unwrap();
            }
            drop(ledger);
            forge(&path, sql);
            let mut ledger = Ledger::open(&path).unwrap();
            for error in [ledger.check().unwrap_err(), ledger.charge(run("next", 10.0)).unwrap_err()] {
                let Error::Tampered { row, .. } = error else { panic!("{sql}: {error}") };
                assert_eq!(row, bad, "{sql}");
            }
        }
    }
}

mod write_failures {
    use super::*;

    #[test]
    fn a_file_without_write_access_can_be_read_and_not_charged() {
        let (folder, path, mut ledger) = ledger(4.0);
        ledger.charge(run("run", 10.0)).unwrap();
        drop(ledger);
        let before = fs::read(&path).unwrap();
        let mut child = worker(&path, &["charge", "refused", "1", "10"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            use std::os::unix::process::CommandExt;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
            if fs::OpenOptions::new().append(true).open(&path).is_ok() {
                // The superuser may write everything, so somebody else has to try.
                child.uid(65_534);
            }
        }
        let output = match child.output() {
            Ok(output) => output,
            Err(error) => {
                return eprintln!("skipped: no process without write access can be started ({error})");
            }
        };
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("read 1 runs") && said.contains("error ReadOnly"), "{said}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    /// Runs the command with a limit on the size of any file it writes, so that writing fails as on a full disk.
    #[cfg(unix)]
    fn limited(blocks: usize, command: &Command) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; ulimit -f $0; exec \"$@\"", &blocks.to_string()]);
        shell.arg(command.get_program()).args(command.get_args());
        shell.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
        shell
    }

    #[test]
    #[cfg(unix)]
    fn a_write_that_fails_at_any_size_leaves_a_whole_ledger() {
        let mut failures = HashMap::new();
        for blocks in (8..200).step_by(24) {
            let (_folder, path, ledger) = ledger(40.0);
            drop(ledger);
            let output = limited(blocks, &worker(&path, &["charge", "run", "120", "1000"])).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let reported = receipts(&said);
            let ledger = Ledger::open(&path).unwrap();
            ledger.check().unwrap();
            let kept = ledger.charges(NAME, Unit::Edge).unwrap();
            assert!(reported.iter().all(|receipt| ledger.holds(receipt).unwrap()));
            if let Some(error) = said.lines().find_map(|line| line.strip_prefix("error ")) {
                *failures.entry(error.split_whitespace().next().unwrap().to_owned()).or_insert(0) += 1;
                assert_eq!(kept.len(), reported.len(), "{blocks} {said}");
            }
        }
        println!("write failures: {failures:?}");
        assert!(!failures.is_empty(), "no write failed: the limit was not in force");
        assert!(failures.keys().all(|kind| kind == "Full" || kind == "Storage"), "{failures:?}");
    }
}

mod processes {
    use super::*;

    #[test]
    fn many_processes_never_exceed_the_budget_nor_charge_twice() {
        let (_folder, path, mut ledger) = ledger(4.0);
        ledger.set_budget(NAME, Unit::Edge, 4.0, 1e-7, "unchanged").unwrap();
        // Four processes ask for 40 runs each, every run by two of them: 80 runs, of which 59 fit (mu^2 = 1/1.30^2 over
        // 1/10^2), whichever come first.
        let children: Vec<Child> = (0..4)
            .map(|i| {
                let prefix = if i % 2 == 0 { "even" } else { "odd" };
                worker(&path, &["charge", prefix, "40", "10"]).stdout(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        let mut reported = Vec::new();
        let mut refusals = 0;
        for child in children {
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success(), "{said}");
            reported.extend(receipts(&said));
            for line in said.lines().filter(|line| line.starts_with("error ")) {
                assert!(line.starts_with("error OverBudget"), "{line}");
                refusals += 1;
            }
        }
        let kept = ledger.charges(NAME, Unit::Edge).unwrap();
        let most = (0..)
            .take_while(|&n| {
                n == 0
                    || GdpAccountant.epsilon(&gaussian(10.0).repeated(n).unwrap(), 1e-7).unwrap().value <= 4.0
            })
            .last()
            .unwrap();
        assert_eq!(kept.len() as u64, most);
        assert!(refusals > 0);
        // Each accepted run was reported to both processes that asked, with one receipt.
        let mut by_run: HashMap<&str, Vec<&Receipt>> = HashMap::new();
        reported.iter().for_each(|receipt| by_run.entry(&receipt.run_id).or_default().push(receipt));
        assert_eq!(by_run.len(), kept.len());
        for run in &kept {
            let receipts = &by_run[run.receipt.run_id.as_str()];
            assert!(receipts.len() <= 2 && receipts.iter().all(|&receipt| *receipt == run.receipt));
        }
        ledger.check().unwrap();
    }

    #[test]
    fn of_many_processes_that_create_one_ledger_one_succeeds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("privacy.ledger");
        let children: Vec<Child> =
            (0..6).map(|_| worker(&path, &["create"]).stdout(Stdio::piped()).spawn().unwrap()).collect();
        let said: Vec<String> = children
            .into_iter()
            .map(|child| String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap())
            .collect();
        assert_eq!(said.iter().filter(|text| text.contains("created")).count(), 1, "{said:?}");
        assert_eq!(said.iter().filter(|text| text.contains("error Exists")).count(), 5, "{said:?}");
        assert_eq!(Ledger::open(&path).unwrap().check().unwrap().rows, 0);
    }

    #[test]
    fn a_process_that_is_killed_leaves_a_whole_ledger_with_every_reported_charge() {
        let (_folder, path, ledger) = ledger(40.0);
        drop(ledger);
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut reported = Vec::new();
        for round in 0..12 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut children: Vec<Child> = ["a", "b"]
                .map(|name| {
                    let prefix = format!("{name}{round}");
                    worker(&path, &["charge", &prefix, "10000", "5000"])
                        .stdout(Stdio::piped())
                        .spawn()
                        .unwrap()
                })
                .into();
            let mut outputs: Vec<_> =
                children.iter_mut().map(|child| BufReader::new(child.stdout.take().unwrap())).collect();
            // Both are at work once the first receipt is there; then the axe falls within the next few transactions.
            let mut first = String::new();
            while !first.contains("receipt") {
                assert!(outputs[0].read_line(&mut first).unwrap() > 0, "{first}");
            }
            std::thread::sleep(Duration::from_micros((state >> 33) % 40_000));
            for child in &mut children {
                child.kill().unwrap();
                child.wait().unwrap();
            }
            reported.extend(receipts(&first));
            for output in &mut outputs {
                let mut text = String::new();
                output.read_to_string(&mut text).unwrap();
                // A last line without its end was still being printed.
                reported.extend(receipts(&text[..text.rfind('\n').map_or(0, |end| end + 1)]));
            }
            let ledger = Ledger::open(&path).unwrap();
            let kept = ledger.charges(NAME, Unit::Edge).unwrap();
            let by_run: HashMap<&str, &Receipt> =
                kept.iter().map(|run| (run.receipt.run_id.as_str(), &run.receipt)).collect();
            assert_eq!(by_run.len(), kept.len(), "a run is there twice");
            for receipt in &reported {
                assert_eq!(by_run.get(receipt.run_id.as_str()), Some(&receipt));
            }
        }
        let ledger = Ledger::open(&path).unwrap();
        let checked = ledger.check().unwrap();
        println!("24 kills, {} receipts reported, {} charges kept", reported.len(), checked.runs);
        // A kill between the commit and the print leaves a charge that nobody saw: one for each process at most.
        assert!(checked.runs >= reported.len() && checked.runs <= reported.len() + 24);
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
