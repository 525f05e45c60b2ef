//! Where a command may write: what exists is replaced if the user says so, what was read never is, and nothing is put
//! into a release or a run.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use progap::{Error, Remedy};

/// Says whether a file or folder that exists may be replaced; flattened into commands that write one.
#[derive(clap::Args, Clone, Copy, Default)]
pub struct Force {
    /// Replace what exists
    #[arg(long)]
    pub force: bool,
}

/// The files and folders that a command reads, which it must not write.
#[derive(Default)]
pub struct Inputs(Vec<PathBuf>);

impl Inputs {
    /// Those of these paths that exist.
    pub fn of<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Inputs {
        Inputs(paths.into_iter().filter(|path| path.exists()).map(Path::to_path_buf).collect())
    }

    /// Whether a path leads to one of the inputs, or to a file directly in one that may be read with it: by any name,
    /// through any link.
    fn has(&self, path: &Path) -> bool {
        // The only format that is never one of several files in a folder.
        let alone =
            |path: &Path| path.extension().is_some_and(|ending| ending == progap_graph::store::EXTENSION);
        let within = |folder: &PathBuf| {
            std::fs::read_dir(folder).is_ok_and(|entries| {
                entries.flatten().any(|entry| !alone(&entry.path()) && same(path, &entry.path()))
            })
        };
        self.0.iter().any(|input| same(path, input) || within(input))
    }
}

impl Force {
    /// Refuses to write a file that is there, an input, or within a release or a run.
    pub fn file(self, path: &Path, inputs: &Inputs) -> progap::Result<()> {
        refuse_releases(path).map_err(Error::unsuitable)?;
        let Ok(there) = path.symlink_metadata() else { return Ok(()) };
        if inputs.has(path) {
            return Err(Error::file(path, "this file is an input: choose another output file"));
        }
        if there.is_dir() {
            return Err(Error::file(path, "this is a folder: give a file name"));
        }
        match self.force {
            true => Ok(()),
            false => Err(Error::file(path, "it already exists")
                .remedy(Remedy::words("choose another name"))
                .remedy(Remedy::Replace)),
        }
    }

    /// Refuses to write into a folder in which something is, or where one of these files would replace an input, or
    /// that is within a release or a run.
    pub fn folder(self, path: &Path, files: &[&str], inputs: &Inputs) -> Result<(), String> {
        refuse_releases(path)?;
        if path.symlink_metadata().is_err() {
            return Ok(());
        }
        let read = inputs.0.iter().any(|input| same(path, input));
        if read || files.iter().any(|name| inputs.has(&path.join(name))) {
            return Err(format!(
                "{}: this folder holds an input: choose another output folder",
                path.display()
            ));
        }
        let mut entries = std::fs::read_dir(path)
            .map_err(|e| format!("{}: cannot write into this folder ({e})", path.display()))?;
        match entries.next().is_none() || self.force {
            true => Ok(()),
            false => Err(format!(
                "{}: the folder is not empty: choose another one, or replace its contents with --force",
                path.display()
            )),
        }
    }
}

/// Refuses a file in a folder that does not exist.
pub fn expect_folder_of(path: &Path) -> Result<(), String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.filter(|folder| !folder.exists()) {
        None => Ok(()),
        Some(folder) => Err(format!(
            "{}: its folder {} does not exist: make it, or choose another place",
            path.display(),
            folder.display()
        )),
    }
}

/// Refuses a place that is, or lies within, a release or a run: they are checked file by file, and hold what cannot be
/// made again. Saying so twice does not help.
pub fn refuse_releases(path: &Path) -> Result<(), String> {
    for folder in resolved(path).ancestors() {
        let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
        let what = if has("manifest.json") && has("privacy.json") {
            "a release"
        } else if has("aggregates") && (has("run.json") || has("secret.key")) {
            "an unfinished run"
        } else {
            continue;
        };
        return Err(format!(
            "{}: this is inside {what}, {}, where nothing else belongs: choose another place",
            path.display(),
            folder.display()
        ));
    }
    Ok(())
}

/// A path without links, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    for folder in whole.ancestors() {
        if let (Ok(there), Ok(rest)) = (folder.canonicalize(), whole.strip_prefix(folder)) {
            return there.join(rest);
        }
    }
    whole
}

/// Whether two paths lead to the same file or folder, also by hard links.
fn same(one: &Path, other: &Path) -> bool {
    match (std::fs::metadata(one), std::fs::metadata(other)) {
        (Ok(first), Ok(second)) => same_file(&first, &second) || canonical_equal(one, other),
        _ => false,
    }
}

fn canonical_equal(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(first), Ok(second)) if first == second)
}

#[cfg(unix)]
fn same_file(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn same_file(_: &Metadata, _: &Metadata) -> bool {
    false
}
