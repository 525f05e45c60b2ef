//! Files of data that a stranger may send: pipes, devices, links that lead out of the folder, small files that unpack
//! to large ones, quotes that are never closed. Each is refused in one sentence, at once, and nothing outside is
//! shown.
#![cfg(unix)]

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

use progap_formats::read::{LoadOptions, load, table};
use progap_graph::{Error, Place, Problem};

#[allow(dead_code, reason = "its other half is of other tests")]
#[path = "common/npz.rs"]
mod npz;

const NODES: &str = "id,label,age\nann,x,30\nbob,y,40\ncem,x,50\n";
const EDGES: &str = "source,target\nann,bob\nbob,cem\n";
const SECRET: &str = "something outside of the folder 4711";

fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("data")).unwrap();
    std::fs::write(place.path().join("secret.csv"), SECRET).unwrap();
    std::fs::write(place.path().join("data/nodes.csv"), NODES).unwrap();
    std::fs::write(place.path().join("data/edges.csv"), EDGES).unwrap();
    place
}

/// The refusal of a file or folder, which must come soon.
#[track_caller]
fn refused(path: &Path) -> Error {
    let (tell, told) = channel();
    let path = path.to_path_buf();
    std::thread::spawn(move || {
        let _ = tell.send(load(&path, &LoadOptions::default()));
    });
    let error = told.recv_timeout(Duration::from_secs(60)).expect("it hangs").expect_err("it is refused");
    assert!(!error.to_string().contains("4711"), "{error}");
    assert_eq!(error.to_string().lines().count(), 1);
    error
}

fn replace(path: PathBuf, make: impl FnOnce(&Path)) {
    std::fs::remove_file(&path).unwrap();
    make(&path);
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_pipe_or_a_device_is_not_read_and_not_waited_for() {
    for name in ["nodes.csv", "edges.csv"] {
        let place = place();
        replace(place.path().join("data").join(name), pipe);
        let error = refused(&place.path().join("data"));
        assert!(
            matches!(error.problem(), Problem::NotAFile(_)) && error.to_string().contains(name),
            "{error}"
        );
    }
    let place = place();
    for name in ["a.npz", "a.progap", "a.graphml", "a.json", "a.mat", "unknown"] {
        pipe(&place.path().join(name));
        assert!(matches!(refused(&place.path().join(name)).problem(), Problem::NotAFile(_)), "{name}");
    }
    symlink("/dev/zero", place.path().join("zero.npz")).unwrap();
    assert!(matches!(refused(&place.path().join("zero.npz")).problem(), Problem::NotAFile(_)));
}

#[test]
fn a_link_in_a_folder_does_not_lead_out_of_it() {
    for name in ["nodes.csv", "edges.csv"] {
        let place = place();
        let out = place.path().join("secret.csv");
        replace(place.path().join("data").join(name), |path| symlink(&out, path).unwrap());
        let error = refused(&place.path().join("data"));
        assert!(matches!(error.problem(), Problem::LeadsOut), "{error}");
    }
    let place = place();
    let data = place.path().join("data");
    // A link within the folder, and a folder behind a link that the user named, are as good as any.
    std::fs::rename(data.join("nodes.csv"), data.join("all.txt")).unwrap();
    symlink("all.txt", data.join("nodes.csv")).unwrap();
    symlink("data", place.path().join("link")).unwrap();
    for folder in ["data", "link"] {
        assert_eq!(load(&place.path().join(folder), &LoadOptions::default()).unwrap().nodes(), 3);
    }
    // Files in other layouts.
    for (name, beside) in [
        ("adj.npz", Some("nodes.npz")),
        ("a.edges", Some("a.labels")),
        ("School.mat", None),
        ("parts.json", None),
        ("reddit_data.npz", None),
    ] {
        let folder = tempfile::tempdir().unwrap();
        symlink(place.path().join("secret.csv"), folder.path().join(name)).unwrap();
        if let Some(beside) = beside {
            std::fs::write(folder.path().join(beside), "a b\n").unwrap();
        }
        let error = refused(folder.path());
        assert!(matches!(error.problem(), Problem::LeadsOut), "{name}: {error}");
    }
}

#[test]
fn a_quote_that_is_never_closed_is_named_by_its_line() {
    let read = |nodes: &str, edges: &str| {
        table::read_bytes(
            ("nodes.csv", nodes.as_bytes()),
            ("edges.csv", edges.as_bytes()),
            &LoadOptions::default(),
        )
    };
    let more = "dan,y,60\neve,x,70\n";
    for (nodes, row) in [
        (format!("{NODES}\"{more}"), 5),
        (format!("{NODES}fay,\"x,1\n{more}"), 5),
        // Behind a cell of two lines, in the second of them.
        (format!("{NODES}\"f\nay\",\"x,1\n{more}"), 6),
        (NODES.replace("ann", "\"ann"), 2),
        (NODES.replace("id,label", "id,\"label"), 1),
        (format!("{NODES}gus,x,\""), 5),
    ] {
        let error = read(&nodes, EDGES).expect_err(&nodes);
        assert!(matches!(error.problem(), Problem::OpenQuote), "{nodes}: {error}");
        assert_eq!(error.place(), Some(&Place::Row(row)), "{nodes}");
    }
    let error = read(NODES, "source,target\nann,\"bob\n").expect_err("edges");
    assert!(matches!(error.problem(), Problem::OpenQuote), "{error}");
    // Quotes that are closed, doubled, or within a text that has none around it, with and without an end of the last
    // line.
    for good in ["\"dan\",y,60", "\"d\"\"an\",y,60\n", "d\"an,y,60", "\"d\nan\",y,60\r\n"] {
        assert_eq!(read(&format!("{NODES}{good}"), EDGES).expect(good).nodes(), 4, "{good}");
    }
    let uneven = read(&format!("{NODES}dan,y\n"), EDGES).expect_err("a short row");
    assert_eq!(uneven.place(), Some(&Place::Row(5)));
}

/// Half a megabyte of zeros, packed: 500 megabytes.
fn gzip(text: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(9));
    text.for_each(|line| packed.write_all(&line).unwrap());
    packed.finish().unwrap()
}

/// The most memory that this process held.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn a_small_file_that_unpacks_to_a_large_one_is_refused() {
    let place = place();
    // As a table: no line is short, and every node has an id of its own.
    let row = [b"x".to_vec(), vec![b','; 4000], b"\n".to_vec()].concat();
    let header =
        |_: usize| b"label".to_vec().into_iter().chain((0..4000).flat_map(|n| format!(",c{n}").into_bytes()));
    let rows =
        std::iter::once(header(0).chain(*b"\n").collect::<Vec<u8>>()).chain((0..60_000).map(|_| row.clone()));
    let packed = gzip(rows);
    assert!(packed.len() < 600_000, "{}", packed.len());
    std::fs::remove_file(place.path().join("data/nodes.csv")).unwrap();
    std::fs::write(place.path().join("data/nodes.csv.gz"), packed).unwrap();
    let options = LoadOptions { id_column: Some("c0".into()), ..LoadOptions::default() };
    let error = load(&place.path().join("data"), &options).expect_err("too large");
    assert!(!matches!(error.problem(), Problem::Io(_)), "{error}");

    let edges = gzip((0..120).map(|_| b"ann bob\n".repeat(1 << 17)));
    std::fs::write(place.path().join("list.txt.gz"), edges).unwrap();
    std::fs::write(place.path().join("labels.txt"), "ann x\nbob y\n").unwrap();
    let options = LoadOptions { label_file: Some(place.path().join("labels.txt")), ..LoadOptions::default() };
    let error = load(&place.path().join("list.txt.gz"), &options).expect_err("too large");
    assert!(matches!(error.problem(), Problem::Expands), "{error}");

    // As an archive: two nodes whose features are zeros without end.
    let zeros = vec![0u8; 400 << 20];
    let features = npz::array("<f8", &format!("(2, {})", zeros.len() / 16), &zeros);
    drop(zeros);
    let archive = npz::archive(&[
        ("y", &npz::integers(&[0, 1])),
        ("edge_index", &npz::array("<i8", "(2, 1)", &[0; 16])),
        ("x", &features),
    ]);
    drop(features);
    assert!(archive.len() < 1_000_000, "{}", archive.len());
    let file = place.path().join("small.npz");
    std::fs::write(&file, archive).unwrap();
    let before = peak();
    let error = refused(&file);
    assert!(matches!(error.problem(), Problem::Expands), "{error}");
    assert!(peak() - before < 200 << 20, "{} bytes more", peak() - before);
}

/// Every reader opens files at one place.
#[test]
fn readers_open_files_at_one_place_only() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            // The others write, download, or ask the system.
            let name = path.file_name().unwrap().to_str().unwrap();
            if ["file.rs", "atomic.rs", "free.rs", "pages.rs", "fetch.rs", "checksum.rs"].contains(&name) {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            for opening in ["File::open(", "fs::read(", "fs::read_to_string(", "OpenOptions"] {
                assert!(!code.contains(opening), "{} has {opening}", path.display());
            }
        }
    }
}
