//! Files that are no ledger, damaged or forged.

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
    for name in ["empty", "text", "sqlite", "."] {
        let before = fs::read(at(name)).unwrap_or_default();
        assert!(matches!(Ledger::create(at(name)), Err(Error::Exists { .. })), "{name}");
        assert_eq!(fs::read(at(name)).unwrap_or_default(), before);
    }
    Ledger::create(at("new")).unwrap();
    assert!(matches!(Ledger::create(at("new")), Err(Error::Exists { .. })));
    Ledger::open_or_create(at("new")).unwrap();
    Connection::open(at("new")).unwrap().execute_batch("PRAGMA user_version = 3").unwrap();
    assert!(matches!(Ledger::open(at("new")), Err(Error::Newer { found: 3, known: 1, .. })));
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
