use serde_json::json;

use super::*;
use crate::DataSpec;
use progap::Level;

fn job(split: u64) -> Job {
    let data = DataSpec { name: "a".into(), content: json!("a"), place: json!(null) };
    Job {
        data,
        split,
        settings: progap::Settings {
            seed: Some(split),
            ..progap::Settings::of(progap::MethodKind::ProgapLabels, Level::Edge)
        }
        .into(),
    }
}

fn finished(test: f64) -> std::result::Result<Finished, String> {
    let curve = Curve { epochs: vec![2], train: vec![Some(0.1), None], val: vec![None, Some(0.2)] };
    let (val, train, stages) = (None, Some(0.5), vec![test]);
    let (sizes, scores) = (progap::plan::PublicFacts::EXAMPLE, None);
    Ok(Finished { test, val, train, stages, curve, val_nodes: 2, sizes, scores })
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("deep/results.sqlite");
    (folder, path)
}

#[test]
fn what_was_added_is_there_after_opening_again() {
    let (_folder, path) = place();
    let mut store = Store::open(&path).expect("made");
    store.add(&job(1), "f1", &Err("no memory".into()), 1.0).expect("added");
    store.add(&job(2), "f2", &finished(0.25), 2.0).expect("added");
    store.add(&job(1), "f1", &finished(0.5), 3.0).expect("a failure makes way");
    drop(store);
    let store = Store::open(&path).expect("opened");
    let all = store.all().expect("read");
    assert_eq!(all.len(), 2);
    let first = &all[&job(1).key()];
    assert_eq!((&first.outcome, first.seconds, first.split), (&finished(0.5), 3.0, 1));
    assert_eq!(first.settings, Some(job(1).settings));
    assert_eq!(store.fingerprint(&job(2)).expect("read"), Some("f2".into()));
    assert_eq!(store.fingerprint(&job(3)).expect("read"), None);
}

#[test]
fn one_process_writes_and_others_read() {
    let (_folder, path) = place();
    let mut store = Store::open(&path).expect("made");
    let error = Store::open(&path).expect_err("locked").to_string();
    assert!(error.contains("another process is writing"), "{error}");
    store.add(&job(1), "f", &finished(0.5), 1.0).expect("added");
    assert_eq!(Store::read(&path).expect("opened").all().expect("read").len(), 1);
    drop(store);
    Store::open(&path).expect("free again");
}

#[test]
fn other_versions_and_other_files_are_refused_and_left_alone() {
    let (_folder, path) = place();
    let mut store = Store::open(&path).expect("made");
    store.add(&job(1), "f", &finished(0.5), 1.0).expect("added");
    store.connection.pragma_update(None, "user_version", 7).expect("changed");
    drop(store);
    let before = fs::read(&path).expect("bytes");
    let error = Store::open(&path).expect_err("another version").to_string();
    assert!(error.contains("version 7") && error.contains("another folder"), "{error}");
    assert_eq!(fs::read(&path).expect("bytes"), before);
    for content in ["id,label\n1,2\n".repeat(100), "x".into()] {
        fs::write(&path, &content).expect("written");
        let error = Store::open(&path).expect_err("not ours").to_string();
        assert!(error.contains("not a store of results"), "{error}");
        assert_eq!(fs::read(&path).expect("bytes"), content.as_bytes());
    }
    let (_other, ledger) = place();
    fs::create_dir_all(ledger.parent().expect("a folder")).expect("made");
    progap::ledger::Ledger::create(&ledger).expect("a ledger");
    assert!(Store::open(&ledger).expect_err("a ledger").to_string().contains("not a store"));
    assert!(Store::read(Path::new("nowhere")).expect_err("nothing").to_string().contains("no results"));
}

#[test]
fn merging_collects_and_refuses_other_data() {
    let ((_a, ours), (_b, theirs), (_c, changed)) = (place(), place(), place());
    let mut store = Store::open(&ours).expect("made");
    store.add(&job(1), "f1", &finished(0.5), 1.0).expect("added");
    store.add(&job(2), "f2", &Err("died".into()), 1.0).expect("added");
    let mut other = Store::open(&theirs).expect("made");
    for split in [1, 2, 3] {
        other.add(&job(split), &format!("f{split}"), &finished(0.25), 1.0).expect("added");
    }
    let merged = store.merge(std::slice::from_ref(&theirs)).expect("merged");
    assert_eq!(merged, Merged { added: 2, known: 1 });
    assert_eq!(store.merge(&[theirs]).expect("merged"), Merged { added: 0, known: 3 });
    assert_eq!(store.all().expect("read")[&job(1).key()].outcome, finished(0.5));
    let mut other = Store::open(&changed).expect("made");
    other.add(&job(3), "another", &finished(0.25), 1.0).expect("added");
    let error = store.merge(&[changed]).expect_err("other data").to_string();
    assert!(error.contains("other data") && error.contains("nothing was merged"), "{error}");
}
