//! Many processes at one ledger, and processes that are killed.

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
            n == 0 || GdpAccountant.epsilon(&gaussian(10.0).repeated(n).unwrap(), 1e-7).unwrap().value <= 4.0
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
                worker(&path, &["charge", &prefix, "10000", "5000"]).stdout(Stdio::piped()).spawn().unwrap()
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
