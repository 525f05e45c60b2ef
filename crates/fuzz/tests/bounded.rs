//! A bounded number of cases of every target: no panic, no hang, no more memory than a small file can ask for.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use peak_alloc::PeakAlloc;
use progap::{Release, release, run};
use progap_fuzz::{Target, evaluate, folders, sweep, targets};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Cases of a target of weight 1.
const CASES: u64 = 5;
/// Of the slowest target too there are this many.
const LEAST: u64 = 40;

/// How many cases have ended.
static ENDED: AtomicU64 = AtomicU64::new(0);

/// Ends the process, and with it the test, where nothing ends for a minute: a case that hangs cannot be stopped
/// otherwise.
fn watch() {
    std::thread::spawn(|| {
        let mut before = u64::MAX;
        loop {
            let now = ENDED.load(Ordering::Relaxed);
            if now == before {
                eprintln!("a case has not ended for a minute: find it with `cargo run -p progap-fuzz`");
                std::process::exit(1);
            }
            before = now;
            std::thread::sleep(Duration::from_secs(60));
        }
    });
}

/// One test, so that nothing else allocates in this process meanwhile.
#[test]
fn damaged_files_and_folders_of_every_kind_end_in_words_soon_and_in_little_memory() {
    the_corpus_is_whole();
    evaluate::listen();
    watch();
    let mut wrong = vec![];
    for target in targets() {
        for content in kept(&target).into_iter().chain((target.seeds)()) {
            wrong.extend(
                evaluate::evaluate(&target, &content, &MEMORY)
                    .wrong
                    .map(|what| (target.name, u64::MAX, what)),
            );
        }
        let cases = (CASES * target.weight).max(LEAST);
        for from in (0..cases).step_by(10) {
            let tally = sweep::run(&target, 1, from..(from + 10).min(cases), &MEMORY, None);
            ENDED.fetch_add(1, Ordering::Relaxed);
            wrong.extend(
                tally.failures.into_iter().map(|failure| (target.name, failure.number, failure.what)),
            );
        }
    }
    assert!(wrong.is_empty(), "{} cases of seed 1 went wrong: {wrong:#?}", wrong.len());
    an_evaluation_sees_what_it_is_for();
}

/// Cases that went wrong once.
fn kept(target: &Target) -> Vec<Vec<u8>> {
    let folder = progap_fuzz::root().join("fuzz/failures").join(target.name);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| std::fs::read(entry.path()).expect("a file")).collect()
}

/// Mutations of what is not read at all would find nothing.
fn the_corpus_is_whole() {
    let place = tempfile::tempdir().expect("a folder");
    for name in ["release", "node", "run"] {
        for (file, content) in folders::files(name) {
            let path = place.path().join(name).join(file);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, content).expect("written");
        }
    }
    let renew = "renew it with `cargo run -p progap-fuzz -- --renew`";
    for name in ["release", "node"] {
        let folder = place.path().join(name);
        Release::open(&folder).unwrap_or_else(|e| panic!("{e}; {renew}"));
        let findings = release::verify(&folder).unwrap_or_else(|e| panic!("{e}; {renew}"));
        assert!(findings.iter().all(|finding| finding.ok), "{findings:#?}; {renew}");
    }
    let signed = progap_export::signed(&place.path().join("release"), None).expect("a signature");
    assert!(signed.1.fingerprint.is_some(), "{renew}");
    run::resume(folders::network(), &place.path().join("run"), &mut ())
        .unwrap_or_else(|e| panic!("{e}; {renew}"));
    let ledger = place.path().join("privacy.ledger");
    std::fs::copy(progap_fuzz::root().join("fuzz/corpus/ledger/privacy.ledger"), &ledger).expect("copied");
    progap::ledger::Ledger::open(&ledger)
        .and_then(|ledger| ledger.check())
        .unwrap_or_else(|e| panic!("{e}; {renew}"));
}

/// A check that cannot fail shows nothing.
fn an_evaluation_sees_what_it_is_for() {
    let found = |run: fn(&[u8])| {
        let target = Target { name: "test", run, seeds: Vec::new, weight: 1 };
        evaluate::evaluate(&target, b"x", &MEMORY).wrong.unwrap_or_default()
    };
    assert!(found(|case| assert!(case.is_empty(), "not empty")).contains("not empty"));
    assert!(found(|_| drop(std::hint::black_box(vec![1u8; 300 << 20]))).contains("allocated"));
    assert_eq!(found(|_| drop(File::open("nowhere"))), "");
}
