//! Inputs that a stranger may hand us, damaged in every way.
//!
//! A [`Target`] is a function of bytes that must come to an end: with a result or with an error in words, soon and in
//! bounded memory. The same functions are run by libFuzzer (`fuzz/`, which needs a nightly compiler) and by the
//! deterministic mutator here, which needs nothing: bounded in the tests, and as long as one likes by `cargo run
//! --release -p progap-fuzz -- --cases 10000000`.
//!
//! A case is named by target, seed and number, and [`mutate::case`] makes it again at any time.
#![forbid(unsafe_code)]

pub mod evaluate;
pub mod folders;
pub mod mutate;
pub mod readers;
pub mod sweep;
pub mod texts;

use std::path::{Path, PathBuf};

/// Something that reads bytes from strangers.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Reads the bytes. It must neither panic nor hang, whatever they are.
    pub run: fn(&[u8]),
    /// The inputs that the mutator starts from.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Its share of a sweep: slow targets have a small one.
    pub weight: u64,
}

/// Every target.
pub fn targets() -> Vec<Target> {
    [readers::targets(), texts::targets(), folders::targets()].concat()
}

/// The target of a name.
pub fn target(name: &str) -> Option<Target> {
    targets().into_iter().find(|target| target.name == name)
}

/// The root of the project.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The contents of all files below some folders and of some files, in the order of their names.
pub(crate) fn contents(paths: &[&str]) -> Vec<Vec<u8>> {
    let mut open: Vec<PathBuf> = paths.iter().map(|path| root().join(path)).collect();
    let mut files = vec![];
    while let Some(path) = open.pop() {
        match std::fs::read_dir(&path) {
            Ok(entries) => open.extend(entries.flatten().map(|entry| entry.path())),
            Err(_) => files.push(path),
        }
    }
    files.sort();
    files
        .iter()
        .map(|file| std::fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display())))
        .collect()
}
