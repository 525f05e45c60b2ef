//! Our own format: what goes in comes out, and damage is noticed.

mod common;

use progap_graph::synth::SocialNetwork;
use progap_graph::{Dataset, Features, Problem, store};
use proptest::prelude::*;

fn round_trip(dataset: &Dataset) -> (Dataset, Dataset, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("graph.progap");
    store::write(dataset, &path).expect("written");
    let content = std::fs::read(&path).expect("read back");
    (store::open(&path).expect("opened"), store::read(&path).expect("read"), content)
}

fn sample() -> Vec<u8> {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    round_trip(&common::arbitrary::dataset().new_tree(&mut runner).expect("a data set").current()).2
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_goes_in_comes_out(dataset in common::arbitrary::dataset()) {
        let (mapped, owned, _) = round_trip(&dataset);
        prop_assert_eq!(&mapped, &dataset);
        prop_assert_eq!(&owned, &dataset);
    }
}

#[test]
fn any_single_changed_byte_is_noticed_or_harmless() {
    let original = sample();
    let intact = store::from_bytes(original.clone()).expect("intact");
    let mut noticed = 0;
    for at in 0..original.len() {
        let mut copy = original.clone();
        copy[at] ^= 0x55;
        match store::from_bytes(copy) {
            Err(_) => noticed += 1,
            // Only padding carries no checksum.
            Ok(dataset) => assert_eq!(dataset, intact, "byte {at}"),
        }
    }
    assert!(noticed * 2 > original.len(), "{noticed} of {}", original.len());
}

#[test]
fn cut_and_mutated_files_are_refused_without_a_panic() {
    let original = sample();
    for length in 0..original.len() {
        assert!(store::from_bytes(original[..length].to_vec()).is_err(), "{length} bytes");
    }
    for copy in common::mutate::mutations(&original, 2000, 7) {
        let _ = store::from_bytes(copy);
    }
}

/// Damage that the checksums do not give away, because they fit it.
#[test]
fn mutated_files_with_right_checksums_are_refused_or_whole() {
    let original = sample();
    let mut repaired = original.clone();
    common::repair::checksums(&mut repaired);
    assert_eq!(repaired, original);
    let mut refused = 0;
    for mut copy in common::mutate::mutations(&original, 2000, 8) {
        common::repair::checksums(&mut copy);
        match store::from_bytes(copy) {
            Err(error) => refused += usize::from(!matches!(error.problem(), Problem::Checksum { .. })),
            // The result is a data set like any other.
            Ok(dataset) => assert_eq!(round_trip(&dataset).0, dataset),
        }
    }
    assert!(refused > 500, "{refused} of 2000");
}

#[test]
fn a_newer_version_and_a_foreign_file_say_what_they_are() {
    let mut newer = sample();
    newer[8] = 9;
    let error = store::from_bytes(newer).expect_err("a newer version");
    assert!(matches!(error.problem(), Problem::Unsupported(m) if m.contains("version 9")), "{error}");
    let error = store::from_bytes(vec![b'x'; 100]).expect_err("a foreign file");
    assert!(matches!(error.problem(), Problem::Corrupt(_)), "{error}");
}

#[test]
fn rows_that_are_made_while_they_are_written_are_those_that_are_there() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // More rows than are made at once, and a last block of another length.
    let network = SocialNetwork::new(40_001).edges(100_000).dense(5).labelled(0.3).seed(3);
    let dataset = network.generate().expect("a network");
    assert!(matches!(dataset.features(), Features::Half { columns: 5, .. }));
    let share = dataset.labelled() as f64 / dataset.nodes() as f64;
    assert!((share - 0.3).abs() < 0.02, "{share}");
    let (held, made) = (folder.path().join("held.progap"), folder.path().join("made.progap"));
    store::write(&dataset, &held).expect("written");
    let without = network.generate_into(&made).expect("written");
    assert_eq!((without.features().columns(), without.graph()), (0, dataset.graph()));
    assert!(std::fs::read(&held).expect("read") == std::fs::read(&made).expect("read"));
    assert_eq!(store::open(&made).expect("opened"), dataset);
    let (_, owned, content) = round_trip(&dataset);
    assert_eq!((owned.fingerprint(), content[8]), (dataset.fingerprint(), 4), "a version of its own");
}

#[test]
fn pages_of_a_file_can_be_given_back_at_any_time() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("large.progap");
    let network = SocialNetwork::new(300_000).edges(600_000).dense(128);
    network.generate_into(&path).expect("written");
    store::keep_mapped_below(1);
    assert!(store::is_mapping_bounded());
    let mapped = store::open(&path).expect("opened");
    let first = mapped.fingerprint();
    assert_eq!((0..5).map(|_| mapped.fingerprint()).filter(|found| *found == first).count(), 5);
    #[cfg(target_os = "linux")]
    {
        std::thread::sleep(std::time::Duration::from_millis(200));
        let pages = std::fs::read_to_string("/proc/self/statm").expect("a system that tells");
        let mapped: u64 = pages.split(' ').nth(2).expect("a number").parse().expect("a number");
        assert!(mapped * 4096 < 70_000_000, "{mapped} pages of a file of 80 MB");
    }
}

/// All files of a folder, by name.
fn listing(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn parts_are_the_whole(dataset in common::arbitrary::dataset(), parts in 1..5usize) {
        let place = tempfile::tempdir().expect("a temporary folder");
        let folder = place.path().join("parts");
        store::write_parts(&dataset, &folder, parts).expect("written");
        prop_assert_eq!(listing(&folder).len(), parts + 1);
        prop_assert_eq!(listing(place.path()), ["parts"], "nothing is left beside it");
        prop_assert_eq!(&store::open_parts(&folder).expect("opened"), &dataset);
    }
}

#[test]
fn parts_are_cut_by_edges_and_read_by_those_who_need_them() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let dataset = SocialNetwork::new(60_000).edges(900_000).dense(16).generate().expect("a network");
    let folder = place.path().join("parts");
    store::write_parts(&dataset, &folder, 4).expect("written");
    let manifest = std::fs::read(folder.join(store::MANIFEST)).expect("a manifest");
    store::check_manifest(&manifest).expect("a manifest of ours");
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).expect("JSON");
    let parts = manifest["parts"].as_array().expect("parts");
    let number = |part: &serde_json::Value, key: &str| part[key].as_u64().expect("a number");
    let edges: Vec<u64> = parts.iter().map(|part| number(part, "edges")).collect();
    assert_eq!(edges.iter().sum::<u64>(), dataset.graph().edges() as u64);
    let bytes: Vec<u64> = parts.iter().map(|part| number(part, "bytes")).collect();
    for part in 0..4 {
        let size = std::fs::metadata(folder.join(format!("part-0000{part}.bin"))).expect("a part").len();
        assert_eq!(size, bytes[part]);
        let mean = bytes.iter().sum::<u64>() / 4;
        // Of each of six sections a part has up to 64 KiB more or less.
        assert!(size.abs_diff(mean) < mean / 5 + 6 * (64 << 10), "{bytes:?}");
    }
    // A damaged last part does not matter to a reader of the first half, until all checksums are compared.
    let last = folder.join("part-00003.bin");
    let mut damaged = std::fs::read(&last).expect("a part");
    let middle = damaged.len() / 2;
    damaged[middle..middle + 64].fill(0xff);
    std::fs::write(&last, damaged).expect("written");
    let file = store::PartFile::open(&folder).expect("the small sections are whole");
    let mut sums = file.check(0..30_000).expect("whole rows");
    let error = file.check(30_000..60_000).and_then(|rest| {
        sums.extend(rest);
        file.verify(sums)
    });
    let error = error.expect_err("damaged").to_string();
    assert!(error.contains("part-00003.bin") && error.contains("checksum"), "{error}");
    let error = store::open_parts(&folder).expect_err("damaged").to_string();
    assert!(error.contains("part-00003.bin"), "{error}");
    std::fs::File::options().write(true).open(&last).expect("a part").set_len(70_000).expect("cut");
    let error = store::open_parts(&folder).expect_err("cut short").to_string();
    assert!(error.contains("part-00003.bin") && error.contains("70000 bytes of"), "{error}");
    std::fs::remove_file(&last).expect("removed");
    let error = store::open_parts(&folder).expect_err("missing").to_string();
    assert!(error.contains("part-00003.bin"), "{error}");
}

#[test]
fn parts_are_not_written_over_what_is_there() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let dataset = SocialNetwork::new(300).edges(900).generate().expect("a network");
    let folder = place.path().join("parts");
    std::fs::create_dir(&folder).expect("a folder");
    store::write_parts(&dataset, &folder, 2).expect("an empty folder is as good as none");
    let before = listing(&folder);
    assert!(store::write_parts(&dataset, &folder, 3).is_err());
    assert_eq!((listing(&folder), listing(place.path())), (before, vec!["parts".to_string()]));
    for parts in [0, 5000] {
        let error =
            store::write_parts(&dataset, &place.path().join("no"), parts).expect_err("no number of parts");
        assert!(error.to_string().contains("1 to 4096"), "{error}");
    }
}

#[test]
fn forged_manifests_are_refused() {
    let refused = |pieces: &str, bytes: usize, words: &str| {
        let text = format!(
            r#"{{"version":1,"bytes":{bytes},"parts":[{{"nodes":[0,1],"edges":0,"bytes":{bytes},"checksum":"0","pieces":{pieces}}}]}}"#
        );
        let error = store::check_manifest(text.as_bytes()).expect_err(&text).to_string();
        assert!(error.contains(words), "{error}");
    };
    refused("[]", 0, "do not make one file");
    refused("[[0,65536],[65536,0]]", 65536, "empty or begins within a page");
    refused("[[0,100],[100,100]]", 200, "begins within a page");
    refused("[[0,65536],[131072,65536]]", 131_072, "do not make one file");
    refused("[[0,131072],[65536,65536]]", 196_608, "do not make one file");
    refused("[[0,65536]]", 65537, "another size");
    refused("[[65536,18446744073709551615]]", 1, "begins within a page");
    for text in ["", "{}", r#"{"version":2,"bytes":1,"parts":[]}"#, r#"{"version":1,"bytes":1,"parts":[]}"#] {
        assert!(store::check_manifest(text.as_bytes()).is_err(), "{text}");
    }
}
