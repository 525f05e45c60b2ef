//! Whose budget a ledger charges: names, units, keyed identities; and ledgers of version 1, which knew fingerprints.

#[path = "common/unwritable.rs"]
mod unwritable;

use std::path::{Path, PathBuf};

use progap::ledger::{Charge, Error, Ledger};
use progap_privacy::{Event, Unit};
use rusqlite::Connection;
use sha2::{Digest, Sha256};

const SCHOOL: &str = "0123456789abcdef0123456789abcdef";
const CLINIC: &str = "fedcba9876543210fedcba9876543210";

fn ledger() -> (tempfile::TempDir, PathBuf, Ledger) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("privacy.ledger");
    let ledger = Ledger::create(&path).unwrap();
    (folder, path, ledger)
}

fn run(id: &str, dataset: &str, unit: Unit) -> Charge {
    Charge::new(id, dataset, unit, Event::gaussian(10.0, 1.0).unwrap())
}

fn with_key(id: &str, commitment: &str) -> Charge {
    Charge { key_commitment: Some(commitment.into()), ..run(id, "school", Unit::Edge) }
}

/// A row as it lies in the file: number, time, fingerprint, run, event, body, seal.
type Row = (i64, String, String, Option<String>, Option<String>, String, String);

fn rows(path: &Path) -> Vec<Row> {
    let raw = Connection::open(path).unwrap();
    let mut statement = raw
        .prepare("SELECT seq, time, fingerprint, run_id, event, body, hash FROM entry ORDER BY seq")
        .unwrap();
    let all = statement.query_map([], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?))
    });
    all.unwrap().collect::<Result<_, _>>().unwrap()
}

fn identities(path: &Path) -> Vec<String> {
    let raw = Connection::open(path).unwrap();
    let mut statement = raw.prepare("SELECT identity FROM identity ORDER BY dataset, unit").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn an_account_is_found_by_name_then_by_the_data_then_by_the_name_of_the_data_set() {
    let (_folder, _, mut ledger) = ledger();
    ledger.register("school", Unit::Edge, 4.0, 1e-7, Some(SCHOOL)).unwrap();
    ledger.register("clinic", Unit::Edge, 4.0, 1e-7, Some(CLINIC)).unwrap();
    let find =
        |asked: Option<&str>, own: &str, data: &str| ledger.find(asked, own, data, Unit::Edge).unwrap();

    let by_data = find(None, "whatever", &SCHOOL.to_uppercase());
    assert_eq!((by_data.name.as_str(), by_data.warning), ("school", None));
    // The data decide, not the name of a file.
    assert_eq!(find(None, "clinic", SCHOOL).name, "school");
    let by_name = find(Some("school"), "whatever", SCHOOL);
    assert_eq!((by_name.name.as_str(), by_name.warning), ("school", None));

    // The same name with other data: said aloud, and charged to the name.
    let by_own_name = find(None, "school", "00000000");
    let warning = by_own_name.warning.expect("other data").to_string();
    assert!(by_own_name.name == "school" && warning.contains("not the data") && warning.contains("school"));
    let confused = find(Some("clinic"), "school", SCHOOL);
    let warning = confused.warning.expect("the data of another account").to_string();
    assert!(confused.name == "clinic" && warning.contains("those of school"), "{warning}");

    for (asked, own) in [(None, "nowhere"), (Some("nowhere"), "school")] {
        let error = ledger.find(asked, own, "00000000", Unit::Edge).unwrap_err();
        assert!(matches!(error, Error::Unregistered { .. }), "{error}");
        assert!(error.to_string().contains("give it one"), "{error}");
    }
}

#[test]
fn a_data_set_has_one_budget_for_each_unit_and_the_same_data_no_second_name() {
    let (_folder, _, mut ledger) = ledger();
    let both = [Unit::Edge, Unit::Node];
    assert_eq!(ledger.register_units("school", &both, 1.0, 1e-7, Some(SCHOOL)).unwrap(), None);
    for unit in both {
        let found = ledger.find(None, "other", SCHOOL, unit).unwrap();
        assert_eq!((found.name.as_str(), found.unit, found.warning), ("school", unit, None));
        ledger.charge(run(unit.name(), "school", unit)).unwrap();
        assert_eq!(ledger.status("school", unit).unwrap().runs, 1);
    }
    assert!(matches!(ledger.budget("school", None), Err(Error::Ambiguous { .. })));
    // There is a budget under the owner's name, but none for that unit.
    for error in [
        ledger.find(None, "file", SCHOOL, Unit::EdgeUndirected).unwrap_err(),
        ledger.charge(run("third", "school", Unit::EdgeUndirected)).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Unit { .. }), "{error}");
        assert!(error.to_string().contains("edge, node") && error.to_string().contains("school"), "{error}");
    }
    let second = ledger.register("pupils", Unit::Node, 1.0, 1e-7, Some(SCHOOL)).unwrap_err();
    assert!(matches!(second, Error::SameData { .. }) && second.to_string().contains("school"), "{second}");
    // Another unit of the same name with other data: entered, and said aloud.
    let warning = ledger.register("school", Unit::EdgeUndirected, 1.0, 1e-7, Some(CLINIC)).unwrap();
    assert!(warning.expect("other data").to_string().contains("not the data"));
    // All units or none.
    let half = ledger.register_units("new", &[Unit::Node, Unit::Edge, Unit::Node], 1.0, 1e-7, None);
    assert!(matches!(half, Err(Error::Registered { .. })));
    let half = ledger.register_units("school", &[Unit::EdgeUndirected, Unit::Edge], 1.0, 1e-7, None);
    assert!(matches!(half, Err(Error::Registered { .. })));
    assert_eq!(ledger.datasets().unwrap().len(), 3);
    assert_eq!(ledger.check().unwrap().datasets, 3);
}

/// The parts of a ledger that anybody may see: the rows, their seals, the receipts.
#[test]
fn rows_seals_and_receipts_are_the_same_to_the_last_byte_whatever_the_data() {
    let write = |data: &str| {
        let (folder, path, mut ledger) = ledger();
        ledger.register_units("school", &[Unit::Edge, Unit::Node], 4.0, 1e-7, Some(data)).unwrap();
        let name = ledger.find(None, "file", data, Unit::Edge).unwrap().name;
        let receipt = ledger.charge(run("one", &name, Unit::Edge).with_note("train school")).unwrap();
        ledger.set_budget("school", Unit::Edge, 5.0, 1e-7, "agreed").unwrap();
        let public = (rows(&path), serde_json::to_string(&receipt).unwrap());
        (public, identities(&path), folder)
    };
    // Rows have the time in seconds: two ledgers that were written in the same one must be equal.
    let same_second = || loop {
        let (first, second) = (write(SCHOOL), write(CLINIC));
        let times = |rows: &[Row]| rows.iter().map(|row| row.1.clone()).collect::<Vec<_>>();
        if times(&first.0.0) == times(&second.0.0) {
            return (first, second);
        }
    };
    let (first, second) = same_second();
    assert_eq!(first.0, second.0);
    let (rows, receipt) = first.0;
    let public = format!("{rows:?} {receipt}");
    assert!(receipt.contains(r#""dataset":"school""#) && receipt.contains(r#""unit":"edge""#), "{receipt}");
    for hidden in first.1.iter().map(String::as_str).chain([SCHOOL, "fingerprint"]) {
        assert!(!public.contains(hidden), "{hidden} is in {public}");
    }
    // The identity is keyed: another ledger has another one for the same data.
    assert_eq!(first.1[0], first.1[1]);
    assert_ne!(first.1, write(SCHOOL).1);
}

#[test]
fn a_run_cannot_go_on_with_another_key() {
    let (_folder, path, mut ledger) = ledger();
    ledger.register("school", Unit::Edge, 4.0, 1e-7, Some(SCHOOL)).unwrap();
    let charge = with_key("one", "AABBCCDD");
    let receipt = ledger.charge(charge.clone()).unwrap();
    assert_eq!(ledger.charge(charge).unwrap(), receipt);
    for other in [run("one", "school", Unit::Edge), with_key("one", "aabbccde")] {
        let error = ledger.charge(other).unwrap_err();
        assert!(matches!(&error, Error::RunChanged { what: "with another key", .. }), "{error}");
    }
    assert!(rows(&path)[1].5.contains(r#""key_commitment":"aabbccdd""#));
    assert_eq!(ledger.charges("school", Unit::Edge).unwrap()[0].key_commitment.as_deref(), Some("aabbccdd"));
    ledger.check().unwrap();
}

#[test]
fn a_run_with_seeded_noise_is_never_charged() {
    let (_folder, _, mut ledger) = ledger();
    ledger.register("school", Unit::Edge, 4.0, 1e-7, Some(SCHOOL)).unwrap();
    let error = ledger.charge(run("one", "school", Unit::Edge).with_seeded_noise(true)).unwrap_err();
    assert!(matches!(error, Error::Seeded { .. }) && error.to_string().contains("not private"), "{error}");
    assert_eq!(ledger.check().unwrap().runs, 0);
}

#[test]
fn budgets_that_no_run_can_ever_use_are_refused() {
    let (_folder, _, mut ledger) = ledger();
    ledger.register("school", Unit::Edge, 4.0, 1e-7, Some(SCHOOL)).unwrap();
    for (epsilon, delta) in [
        (9e-4, 1e-7),
        (1001.0, 1e-7),
        (1.0, 1e-31),
        (1.0, 0.11),
        // Within what settings accept, but tables of noise keep neither.
        (1000.0, 0.1),
        (50.0, 1e-7),
        (1.0, 1e-29),
    ] {
        let entered = ledger.register("x", Unit::Edge, epsilon, delta, None).unwrap_err();
        let changed = ledger.set_budget("school", Unit::Edge, epsilon, delta, "why").unwrap_err();
        for error in [entered, changed] {
            let known = matches!(error, Error::Invalid { .. } | Error::Tables { .. });
            assert!(known, "{epsilon} {delta}: {error}");
        }
    }
    assert_eq!(ledger.check().unwrap().rows, 1);
    for (at, (epsilon, delta)) in
        [(1e-3, 1e-7), (45.0, 1e-7), (1.0, 1e-26), (60.0, 0.1)].into_iter().enumerate()
    {
        ledger.register(&format!("usable {at}"), Unit::Edge, epsilon, delta, None).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn a_new_ledger_is_readable_by_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, path, _ledger) = ledger();
    assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
}

mod version_1 {
    use super::*;

    const SCHEMA: &str = "\
CREATE TABLE entry (seq INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL, fingerprint TEXT NOT NULL, \
run_id TEXT UNIQUE, event TEXT, body TEXT NOT NULL, hash TEXT NOT NULL) STRICT;
CREATE TRIGGER entry_is_never_changed BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END;
CREATE TRIGGER entry_is_never_deleted BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END;
PRAGMA application_id = 1346849863;
PRAGMA user_version = 1;";

    /// Writes a ledger as version 1 did.
    fn write(path: &Path) -> Vec<Row> {
        let raw = Connection::open(path).unwrap();
        raw.execute_batch(SCHEMA).unwrap();
        let event = r#"{"type":"gaussian","sigma":10.0,"sensitivity":1.0}"#;
        let school = r#"{"kind":"register","name":"school","unit":"edge","epsilon":4.0,"delta":1e-7}"#;
        let clinic = r#"{"kind":"register","name":"clinic","unit":"node","epsilon":1.0,"delta":1e-5}"#;
        let charge = r#"{"kind":"charge","unit":"edge","note":"train school","epsilon":0.4472,"total":0.4472,"delta":1e-7,"accountant":"gdp","noise_values":1000}"#;
        let budget = r#"{"kind":"budget","epsilon":0.5,"delta":1e-7,"reason":"agreed"}"#;
        let contents = [
            (SCHOOL, None, None, school),
            (CLINIC, None, None, clinic),
            (SCHOOL, Some("one"), Some(event), charge),
            (SCHOOL, None, None, budget),
        ];
        let mut head = "progap ledger 1".to_owned();
        for (at, (fingerprint, run_id, event, body)) in contents.into_iter().enumerate() {
            let (seq, time) = (at as i64 + 1, "2025-03-01T12:00:00Z");
            let mut hash = Sha256::new();
            hash.update(seq.to_le_bytes());
            for field in [Some(head.as_str()), Some(time), Some(fingerprint), run_id, event, Some(body)] {
                hash.update(field.map_or(u64::MAX, |text| text.len() as u64).to_le_bytes());
                hash.update(field.unwrap_or_default().as_bytes());
            }
            head = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
            raw.execute(
                "INSERT INTO entry VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                (seq, time, fingerprint, run_id, event, body, &head),
            )
            .unwrap();
        }
        drop(raw);
        rows(path)
    }

    fn old_ledger() -> (tempfile::TempDir, PathBuf, Vec<Row>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old.ledger");
        let before = write(&path);
        (folder, path, before)
    }

    #[test]
    fn is_upgraded_and_loses_nothing() {
        let (_folder, path, before) = old_ledger();
        let mut ledger = Ledger::open(&path).unwrap();
        let after = rows(&path);
        assert_eq!(after[..before.len()], before[..], "old rows keep their seals");
        assert_eq!(after.len(), before.len() + 1, "one row ends the old part");
        let standing = ledger.datasets().unwrap();
        let shown: Vec<_> = standing.iter().map(|s| (s.name.as_str(), s.unit, s.epsilon, s.runs)).collect();
        assert_eq!(shown, [("school", Unit::Edge, 0.5, 1), ("clinic", Unit::Node, 1.0, 0)]);
        assert!(standing.iter().all(|status| status.upgraded && status.identity_known));
        assert!((0.4470..0.4473).contains(&standing[0].spent), "{standing:?}");

        // A run that was charged is charged; the budget left is as before; the data are known.
        let resumed = run("one", "school", Unit::Edge).with_noise_values(1000);
        let receipt = ledger.charge(resumed).unwrap();
        assert_eq!((receipt.row, receipt.dataset.as_str(), &receipt.hash), (3, "school", &before[2].6));
        assert!(ledger.holds(&receipt).unwrap());
        assert!(matches!(ledger.charge(run("two", "school", Unit::Edge)), Err(Error::OverBudget(_))));
        for (data, name, unit) in [(SCHOOL, "school", Unit::Edge), (CLINIC, "clinic", Unit::Node)] {
            let found = ledger.find(None, "file", data, unit).unwrap();
            assert_eq!((found.name.as_str(), found.warning), (name, None));
        }
        let second = ledger.register("pupils", Unit::Edge, 1.0, 1e-7, Some(SCHOOL));
        assert!(matches!(second, Err(Error::SameData { .. })));

        // It goes on by the rules of version 2, and is upgraded once.
        ledger.register("school", Unit::Node, 1.0, 1e-7, Some(SCHOOL)).unwrap();
        ledger.set_budget("school", Unit::Edge, 4.0, 1e-7, "agreed").unwrap();
        let charge = with_key("two", "aabbccdd");
        let next = ledger.charge(charge).unwrap();
        assert!(next.total > receipt.total, "costs of both versions add up");
        drop(ledger);
        let ledger = Ledger::open(&path).unwrap();
        let checked = ledger.check().unwrap();
        assert_eq!((checked.rows, checked.datasets, checked.runs), (8, 3, 2));
        assert!(rows(&path)[before.len()..].iter().all(|row| row.2.is_empty()), "no more fingerprints");
        assert!(!ledger.status("school", Unit::Node).unwrap().upgraded);
    }

    #[test]
    fn seals_after_the_upgrade_do_not_follow_from_what_was_before_it() {
        let upgraded = || {
            let (folder, path, _) = old_ledger();
            drop(Ledger::open(&path).unwrap());
            (rows(&path).pop().expect("the row of the upgrade"), folder).0
        };
        let (first, second) = (upgraded(), upgraded());
        assert_ne!(first.5, second.5, "32 random bytes");
        assert_ne!(first.6, second.6);
    }

    #[test]
    fn that_was_changed_is_not_upgraded() {
        for sql in [
            "UPDATE entry SET event = replace(event, '10.0', '90.0') WHERE seq = 3",
            "DELETE FROM entry WHERE seq = 4",
        ] {
            let (_folder, path, _) = old_ledger();
            let raw = Connection::open(&path).unwrap();
            let triggers = SCHEMA.lines().filter(|line| line.starts_with("CREATE TRIGGER"));
            raw.execute_batch("DROP TRIGGER entry_is_never_changed; DROP TRIGGER entry_is_never_deleted")
                .unwrap();
            raw.execute_batch(sql).unwrap();
            triggers.for_each(|trigger| raw.execute_batch(trigger.trim_end_matches(';')).unwrap());
            drop(raw);
            let before = std::fs::read(&path).unwrap();
            let error = Ledger::open(&path).unwrap_err();
            assert!(matches!(error, Error::Tampered { .. }), "{sql}: {error}");
            assert_eq!(std::fs::read(&path).unwrap(), before);
        }
    }

    #[test]
    fn is_upgraded_by_one_of_many_processes() {
        let (_folder, path, before) = old_ledger();
        let threads: Vec<_> = (0..6)
            .map(|at| {
                let path = path.clone();
                std::thread::spawn(move || {
                    let mut ledger = Ledger::open(path).unwrap();
                    ledger.register(&format!("new {at}"), Unit::Edge, 1.0, 1e-7, None).unwrap();
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(Ledger::open(&path).unwrap().check().unwrap().rows, before.len() as u64 + 1 + 6);
    }

    /// Without write access it can be read by the rules of version 1.
    #[cfg(unix)]
    #[test]
    fn that_may_not_be_written_can_be_read_and_not_charged() {
        let (_folder, path, before) = old_ledger();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "version_1::read_only_worker", "--nocapture"]).env("OLD_LEDGER", &path);
        let Some(output) = unwritable::output_without_write_access(&path, child) else { return };
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("as it should be"), "{said}");
        assert_eq!(rows(&path), before);
    }

    /// Not a test but the body of the process above; without a ledger it does nothing.
    #[test]
    fn read_only_worker() {
        let Ok(path) = std::env::var("OLD_LEDGER") else { return };
        let mut ledger = Ledger::open(path).unwrap();
        assert_eq!(ledger.status("school", Unit::Edge).unwrap().runs, 1);
        assert_eq!(ledger.check().unwrap().rows, 4);
        assert!(matches!(ledger.find(None, "school", SCHOOL, Unit::Edge), Err(Error::ReadOnly { .. })));
        assert!(matches!(ledger.charge(run("two", "school", Unit::Edge)), Err(Error::ReadOnly { .. })));
        println!("\nas it should be");
    }
}
