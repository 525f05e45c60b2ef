//! Ledgers that cannot be written.

use super::*;

#[test]
fn a_file_without_write_access_can_be_read_and_not_charged() {
    let (_folder, path, mut ledger) = ledger(4.0);
    ledger.charge(run("run", 10.0)).unwrap();
    drop(ledger);
    let before = fs::read(&path).unwrap();
    let child = worker(&path, &["charge", "refused", "1", "10"]);
    let Some(output) = unwritable::output_without_write_access(&path, child) else { return };
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
        assert!(ledger.check_against(&reported).is_ok());
        if let Some(error) = said.lines().find_map(|line| line.strip_prefix("error ")) {
            *failures.entry(error.split_whitespace().next().unwrap().to_owned()).or_insert(0) += 1;
            assert_eq!(kept.len(), reported.len(), "{blocks} {said}");
        }
    }
    println!("write failures: {failures:?}");
    assert!(!failures.is_empty(), "no write failed: the limit was not in force");
    assert!(failures.keys().all(|kind| kind == "Full" || kind == "Storage"), "{failures:?}");
}
