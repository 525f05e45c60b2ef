//! The ledger from within: what SQLite was told, and rows that only a forger writes.

use progap_privacy::Event;

use super::*;

const NAME: &str = "school";

fn ledger() -> (tempfile::TempDir, Ledger) {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::create(folder.path().join("privacy.ledger")).unwrap();
    ledger.register(NAME, Unit::Edge, 4.0, 1e-7, None).unwrap();
    (folder, ledger)
}

fn run(id: &str) -> Charge {
    Charge::new(id, NAME, Unit::Edge, Event::gaussian(10.0, 1.0).unwrap()).with_note("x".repeat(1900))
}

#[test]
fn every_commit_is_synced() {
    let (_folder, ledger) = ledger();
    for ledger in [&ledger, &Ledger::open(ledger.path()).unwrap()] {
        let mode: String =
            ledger.connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        let sync: i64 = ledger.connection.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
        assert_eq!((mode.as_str(), sync), ("delete", 3));
    }
}

#[test]
fn a_full_disk_refuses_the_charge_and_keeps_the_rest() {
    let (_folder, mut ledger) = ledger();
    let pages: i64 = ledger.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    let limit = |ledger: &Ledger, pages: i64| {
        ledger.connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
    };
    limit(&ledger, pages + 2);
    let mut charged = 0;
    let error = loop {
        match ledger.charge(run(&format!("run-{charged}"))) {
            Ok(_) => charged += 1,
            Err(error) => break error,
        }
    };
    assert!(charged > 0 && matches!(error, Error::Full { .. }), "{error}");
    assert_eq!(ledger.check().unwrap().runs, charged);
    limit(&ledger, 1 << 20);
    ledger.charge(run(&format!("run-{charged}"))).unwrap();
    assert_eq!(ledger.check().unwrap().runs, charged + 1);
}

#[test]
fn a_ledger_in_use_is_waited_for_and_then_reported() {
    let (_folder, mut first) = ledger();
    let mut second = Ledger::open(first.path()).unwrap();
    second.set_patience(Duration::from_millis(50)).unwrap();
    let held = first.connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    assert!(matches!(second.charge(run("run")), Err(Error::Busy { .. })));
    assert_eq!(second.status(NAME, Unit::Edge).unwrap().runs, 0); // reading is still possible
    drop(held);
    second.charge(run("run")).unwrap();
}

/// A row whose seal is right and whose figures are not: somebody knew how to seal.
#[test]
fn figures_are_recomputed() {
    // One Gaussian query of noise 10 costs 0.447078 at this delta (by scipy).
    let cost = |unit, total, delta| Cost { unit, epsilon: 0.4471, total, delta, accountant: "gdp".into() };
    let with = |costs: &[Cost]| Body::Charge {
        dataset: NAME.into(),
        note: String::new(),
        costs: costs.to_vec(),
        converted: vec![],
        noise_values: 0,
        key_commitment: None,
        later: None,
    };
    let honest = with(&[cost(Unit::Edge, 0.4471, 1e-7)]);
    let event = r#"{"type":"gaussian","sigma":10.0,"sensitivity":1.0}"#;
    let cases = [
        (honest.clone(), event, true),
        (honest.clone(), r#"{"type":"gaussian","sigma":9.9,"sensitivity":1.0}"#, false),
        (honest.clone(), r#"{"type":"gaussian","sigma":0.0,"sensitivity":1.0}"#, false),
        (with(&[cost(Unit::Edge, 0.447, 1e-7)]), event, false),
        (with(&[cost(Unit::Edge, 4.1, 1e-7)]), event, false),
        (with(&[cost(Unit::Edge, 0.4471, 1e-5)]), event, false),
        (with(&[cost(Unit::Node, 0.4471, 1e-7)]), event, false),
        (with(&[]), event, false),
        (with(&[cost(Unit::Edge, 0.4471, 1e-7), cost(Unit::Node, 0.4471, 1e-7)]), event, false),
    ];
    for (body, event, right) in cases {
        let (_folder, mut ledger) = ledger();
        ledger
            .write(|path, tx, book, _| {
                let body = json(&body)?;
                append(path, tx, &book, Draft { run_id: Some("run"), event: Some(event), body })
            })
            .unwrap();
        match ledger.check() {
            Ok(_) => assert!(right, "{body:?} {event}"),
            Err(Error::Tampered { row, .. }) => assert!(!right && row == 2, "{body:?} {event}"),
            Err(error) => panic!("{error}"),
        }
    }
}
