//! Downloads from a real server on this machine, which behaves well or badly.
#![cfg(feature = "fetch")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use progap_formats::named::fetch::{Download, FetchOptions, fetch};
use progap_formats::named::{self, Sha256Sum};
use progap_formats::read::LoadOptions;
use progap_graph::{Problem, Result};

mod common {
    pub mod server;
    pub mod shared;
}
use common::server::{Behaviour, Server};
use common::shared::shared;

fn quick() -> FetchOptions {
    FetchOptions { pause: Duration::from_millis(1), ..FetchOptions::default() }
}

fn content() -> Vec<u8> {
    (0..300_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// The name of each file in a folder, sorted.
fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

struct Case {
    folder: tempfile::TempDir,
    server: Server,
    download: Download,
}

impl Case {
    fn new(behaviour: Behaviour) -> Case {
        let folder = tempfile::tempdir().unwrap();
        let right = folder.path().join("right");
        fs::write(&right, content()).unwrap();
        let sha256 = Some(Sha256Sum::of_file(&right).unwrap());
        fs::remove_file(&right).unwrap();
        let server = Server::start(behaviour);
        let target = folder.path().join("file.bin");
        let url = format!("{}/file.bin", server.address);
        let download = Download { url, target, size: Some(content().len() as u64), sha256 };
        Case { folder, server, download }
    }

    fn run(&self) -> Result<()> {
        self.download.run(&quick(), &mut |_| {})
    }

    fn assert_right(&self) {
        assert_eq!(files(self.folder.path()), ["file.bin"]);
        assert!(fs::read(&self.download.target).unwrap() == content());
    }
}

#[test]
fn a_cut_download_goes_on_where_it_stopped() {
    let cuts = vec![100_000, 50_000];
    let case = Case::new(Behaviour { content: content(), ranges: true, cuts, ..Default::default() });
    let mut done = Vec::new();
    case.download.run(&quick(), &mut |progress| done.push((progress.done, progress.total))).unwrap();
    case.assert_right();
    assert_eq!(case.server.starts(), [None, Some(100_000), Some(150_000)]);
    assert!(done.is_sorted() && done.last() == Some(&(300_000, Some(300_000))));
}

#[test]
fn a_cut_download_goes_on_after_a_redirection() {
    let (ranges, redirect, cuts) = (true, true, vec![100_000]);
    let case = Case::new(Behaviour { content: content(), ranges, redirect, cuts, ..Default::default() });
    case.run().unwrap();
    case.assert_right();
    assert_eq!(case.server.starts(), [None, Some(100_000)]);
}

#[test]
fn an_earlier_run_is_continued_by_the_next() {
    let case = Case::new(Behaviour { content: content(), ranges: true, ..Default::default() });
    let part = case.folder.path().join("file.bin.part");
    fs::write(&part, &content()[..123_456]).unwrap();
    case.run().unwrap();
    case.assert_right();
    assert_eq!(case.server.starts(), [Some(123_456)]);
}

#[test]
fn a_server_without_ranges_starts_again() {
    let case = Case::new(Behaviour { content: content(), cuts: vec![100_000], ..Default::default() });
    case.run().unwrap();
    case.assert_right();
    assert_eq!(case.server.starts(), [None, Some(100_000)]);
}

#[test]
fn what_an_earlier_run_left_may_be_wrong() {
    for left in [vec![7; 1000], vec![7; 300_000], vec![7; 400_000]] {
        let case = Case::new(Behaviour { content: content(), ranges: true, ..Default::default() });
        fs::write(case.folder.path().join("file.bin.part"), left).unwrap();
        case.run().unwrap();
        case.assert_right();
    }
}

#[test]
fn a_finished_part_of_unknown_size_is_recognised() {
    let mut case = Case::new(Behaviour { content: content(), ranges: true, ..Default::default() });
    case.download.size = None;
    fs::write(case.folder.path().join("file.bin.part"), content()).unwrap();
    case.run().unwrap();
    case.assert_right();
    assert_eq!(case.server.starts(), [Some(300_000)]);
}

#[test]
fn a_wrong_file_is_refused_and_leaves_nothing() {
    let mut wrong = content();
    wrong[299_999] ^= 1;
    let longer = [content(), vec![0]].concat();
    for (content, by_size) in [(wrong, false), (longer, true), (content()[..200_000].to_vec(), true)] {
        let case = Case::new(Behaviour { content, ranges: true, ..Default::default() });
        let error = case.run().unwrap_err();
        match error.problem() {
            Problem::Checksum { .. } => assert!(!by_size),
            Problem::Length { .. } => assert!(by_size),
            _ => panic!("{error}"),
        }
        assert!(files(case.folder.path()).is_empty(), "{error}");
    }
}

#[test]
fn an_older_file_stays_until_the_new_one_is_verified() {
    let case = Case::new(Behaviour { content: vec![1; 300_000], ..Default::default() });
    fs::write(&case.download.target, "older").unwrap();
    assert!(case.run().is_err());
    assert_eq!(fs::read(&case.download.target).unwrap(), b"older");
    assert_eq!(files(case.folder.path()), ["file.bin"]);
}

#[test]
fn a_refusal_and_a_failing_server_say_what_to_do() {
    for (status, requests) in [(404, 1), (403, 1), (503, 4)] {
        let case = Case::new(Behaviour { status: Some(status), ..Default::default() });
        let message = case.run().unwrap_err().to_string();
        let target = case.download.target.display().to_string();
        for expected in [&status.to_string(), &case.download.url, &target, "by hand"] {
            assert!(message.contains(expected), "{message}");
        }
        assert_eq!(case.server.starts().len(), requests);
        assert!(files(case.folder.path()).is_empty());
    }
}

#[test]
fn a_server_that_never_finishes_is_given_up_and_what_came_is_kept() {
    let case = Case::new(Behaviour {
        content: content(),
        ranges: true,
        cuts: vec![1000, 0, 0, 0, 0],
        ..Default::default()
    });
    assert!(matches!(case.run().unwrap_err().problem(), Problem::Download { .. }));
    assert_eq!(files(case.folder.path()), ["file.bin.part"]);
    case.run().unwrap();
    case.assert_right();
}

#[test]
fn without_a_network_the_message_says_how_to_do_it_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    // Nobody listens there: the port was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let options = FetchOptions { mirror: Some(format!("http://{free}/")), attempts: 2, ..quick() };
    let error = fetch("fb:Reed98", folder.path(), &options, &mut |_| {}).unwrap_err();
    let message = error.to_string();
    let target = folder.path().join("facebook100/Reed98.mat").display().to_string();
    for expected in [&format!("http://{free}/Reed98.mat"), &target, "by hand"] {
        assert!(message.contains(expected), "{message}");
    }
}

fn from(server: &Server) -> FetchOptions {
    FetchOptions { mirror: Some(server.address.clone()), ..quick() }
}

#[test]
fn a_school_is_fetched_verified_and_loaded() {
    let Some(path) = shared("data/facebook100/Reed98.mat") else { return };
    let content = fs::read(path).unwrap();
    let server = Server::start(Behaviour {
        content: content.clone(),
        ranges: true,
        cuts: vec![30_000],
        ..Default::default()
    });
    let folder = tempfile::tempdir().unwrap();
    let fetched = fetch("fb:reed98", folder.path(), &from(&server), &mut |_| {}).unwrap();
    assert_eq!((fetched.len(), fetched[0].downloaded), (1, true));
    assert_eq!(fs::read(folder.path().join("facebook100/Reed98.mat")).unwrap(), content);
    let options = LoadOptions { min_class_count: Some(100), ..Default::default() };
    let dataset = named::load("fb:Reed98", folder.path(), &options).unwrap();
    assert_eq!((dataset.name(), dataset.classes() > 1), ("fb:Reed98", true));
    // A file that is here is not fetched again, unless it is damaged.
    assert!(!fetch("fb:Reed98", folder.path(), &from(&server), &mut |_| {}).unwrap()[0].downloaded);
    assert_eq!(server.starts(), [None, Some(30_000)]);
    fs::write(&fetched[0].path, "damaged").unwrap();
    assert!(named::load("fb:Reed98", folder.path(), &options).is_err());
    assert!(fetch("fb:Reed98", folder.path(), &from(&server), &mut |_| {}).unwrap()[0].downloaded);
    assert!(named::load("fb:Reed98", folder.path(), &options).is_ok());
}

#[test]
fn without_a_published_checksum_the_format_decides_and_the_checksum_is_noted() {
    let small = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/facebook100/compressed.mat");
    let right = fs::read(small).unwrap();
    let mut damaged = right.clone();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    let page = b"<html>Not what you want</html>".repeat(20);
    for wrong in [damaged, page] {
        let server = Server::start(Behaviour { content: wrong, ..Default::default() });
        let folder = tempfile::tempdir().unwrap();
        assert!(fetch("fb:Yale4", folder.path(), &from(&server), &mut |_| {}).is_err());
        assert!(files(&folder.path().join("facebook100")).is_empty());
    }
    let server = Server::start(Behaviour { content: right, ..Default::default() });
    let folder = tempfile::tempdir().unwrap();
    fetch("fb:Yale4", folder.path(), &from(&server), &mut |_| {}).unwrap();
    let school = folder.path().join("facebook100");
    assert_eq!(files(&school), ["Yale4.mat", "Yale4.mat.sha256"]);
    let options = LoadOptions { min_class_count: Some(1), ..Default::default() };
    assert!(named::load("fb:Yale4", folder.path(), &options).is_ok());
    fs::copy(school.join("Yale4.mat.sha256"), school.join("Yale4.mat")).unwrap();
    let error = named::load("fb:Yale4", folder.path(), &options).unwrap_err();
    assert!(matches!(error.problem(), Problem::Checksum { .. }), "{error}");

    // The school that has published counts: other counts are refused.
    let error = fetch("facebook", folder.path(), &from(&server), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("26406") || error.to_string().contains("1000 people"), "{error}");
}

fn archive(names: &[&str]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for name in names {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(format!("content of {name}").repeat(50).as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn a_wrong_archive_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(Behaviour { content: archive(&["readme.txt"]), ..Default::default() });
    let message = fetch("reddit", folder.path(), &from(&server), &mut |_| {}).unwrap_err().to_string();
    assert!(message.contains("no file reddit_data.npz") && message.contains("readme.txt"), "{message}");
    assert!(files(&folder.path().join("reddit")).is_empty());

    // Right names, but no data: what was unpacked does not stay.
    let names = ["x/reddit_data.npz", "x/reddit_graph.npz"];
    let server = Server::start(Behaviour { content: archive(&names), ..Default::default() });
    assert!(fetch("reddit", folder.path(), &from(&server), &mut |_| {}).is_err());
    assert!(files(&folder.path().join("reddit")).is_empty());
}
