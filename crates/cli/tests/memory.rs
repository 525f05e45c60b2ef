//! A small file that unpacks to more than there is: an error in words, not the end of the process.
#![cfg(target_os = "linux")]

mod common;

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{outcome, put};
use zip::CompressionMethod::Deflated;
use zip::write::{SimpleFileOptions, ZipWriter};

/// Each file unpacks to this; as numbers to more.
const UNPACKED: usize = 1 << 28;
/// The memory that the process may have in all, in kilobytes.
const LIMIT: &str = "300000";

/// Loads a file in a process that may have so much memory and no more.
#[track_caller]
fn refused(at: &Path, file: &str) {
    let program = format!("ulimit -v {LIMIT}; exec {} inspect {file}", env!("CARGO_BIN_EXE_progap"));
    let run = outcome(Command::new("sh").args(["-c", &program]).current_dir(at).output().expect("a shell"));
    run.refused(&[file, "does not fit into memory"]);
}

fn header(descr: &str, shape: &str) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat()
}

fn repeated(to: &mut dyn Write, pattern: &[u8], bytes: usize) {
    let block = pattern.repeat((1 << 20) / pattern.len());
    for _ in 0..bytes / block.len() {
        to.write_all(&block).expect("written");
    }
}

/// An archive of arrays of which one is all zeros.
fn put_archive(file: &Path, arrays: &[(&str, Vec<u8>, usize)]) {
    let mut zip = ZipWriter::new(File::create(file).expect("a file"));
    let options = SimpleFileOptions::default().compression_method(Deflated).compression_level(Some(1));
    for (key, content, zeros) in arrays {
        zip.start_file(format!("{key}.npy"), options.large_file(true)).expect("a name");
        zip.write_all(content).expect("written");
        repeated(&mut zip, &[0], *zeros);
    }
    zip.finish().expect("an archive");
    let size = std::fs::metadata(file).expect("a file").len();
    assert!(size < (UNPACKED / 100) as u64, "{size} bytes");
}

#[test]
fn a_small_archive_of_very_many_numbers_is_refused_in_words() {
    let place = common::folder();
    let at = place.path();
    let labels = || ("y", [header("|u1", "(3,)"), vec![0, 1, 0]].concat(), 0);
    let edges = || ("edge_index", [header("|u1", "(2, 2)"), vec![0, 1, 1, 2]].concat(), 0);
    let features = || ("x", [header("|u1", "(3, 1)"), vec![1, 2, 3]].concat(), 0);
    let wide = ("x", header("|u1", &format!("({UNPACKED}, 1)")), UNPACKED);
    let many = ("y", header("|u1", &format!("({UNPACKED},)")), UNPACKED);
    put_archive(&at.join("labels.npz"), &[many, features(), edges()]);
    refused(at, "labels.npz");
    let columns = ("x", header("|u1", &format!("(4, {})", UNPACKED / 4)), UNPACKED);
    let four = ("y", [header("|u1", "(4,)"), vec![0, 1, 0, 1]].concat(), 0);
    put_archive(&at.join("features.npz"), &[four, columns, edges()]);
    refused(at, "features.npz");
    let long = ("edge_index", header("|u1", &format!("(2, {})", UNPACKED / 2)), UNPACKED);
    put_archive(&at.join("edges.npz"), &[labels(), features(), long]);
    refused(at, "edges.npz");
    // A file that contradicts itself is found out before anything is unpacked.
    put_archive(&at.join("rows.npz"), &[labels(), wide, edges()]);
    let run = common::progap_in(at, &["inspect", "rows.npz"]);
    run.refused(&["rows.npz", "expected 3"]);
}

#[test]
fn small_compressed_tables_of_very_many_rows_are_refused_in_words() {
    let place = common::folder();
    let at = place.path();
    let zipped = |file: &str, head: &str, row: &str| {
        std::fs::create_dir_all(at.join(file).parent().expect("a folder")).expect("made");
        let mut gzip = Command::new("gzip")
            .args(["-1", "-c"])
            .stdin(Stdio::piped())
            .stdout(File::create(at.join(file)).expect("a file"))
            .spawn()
            .expect("gzip starts");
        let mut stdin = gzip.stdin.take().expect("a pipe");
        stdin.write_all(head.as_bytes()).expect("written");
        repeated(&mut stdin, row.as_bytes(), UNPACKED);
        drop(stdin);
        assert!(gzip.wait().expect("gzip ends").success());
    };
    if Command::new("gzip").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: there is no gzip here");
        return;
    }
    zipped("nodes/nodes.csv.gz", "id,label,age\n", "1,x,5\n");
    put(at, &[("nodes/edges.csv", b"source,target\n1,1\n")]);
    refused(at, "nodes");
    zipped("edges/edges.csv.gz", "source,target\n", "a,b\n");
    put(at, &[("edges/nodes.csv", b"id,label,age\na,x,1\nb,y,2\n")]);
    refused(at, "edges");
}
