//! Files and folders that are there whole or not at all.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::{TempDir, TempPath};

use crate::Result;
use crate::error::InFile;

/// How the names of files begin that are not finished.
const PREFIX: &str = ".progap-";
/// How much is written at a time.
const BUFFER: usize = 1 << 20;

/// A file that is written beside its target and takes the target's name only when it is complete.
///
/// Dropped without [`AtomicFile::commit`], it leaves nothing behind and an older target untouched.
pub struct AtomicFile {
    target: PathBuf,
    path: TempPath,
    writer: BufWriter<File>,
}

impl AtomicFile {
    /// Starts a file in the target's folder, which must exist. Who may read it is for the user's umask to say; in a
    /// folder called `private` at most its owner.
    pub fn create(target: &Path) -> Result<Self> {
        match folder_of(target).ends_with("private") {
            true => Self::create_private(target),
            false => Self::with_mode(target, 0o666, BUFFER),
        }
    }

    /// Starts a file that only its owner can read, from its first byte on.
    pub fn create_private(target: &Path) -> Result<Self> {
        Self::with_mode(target, 0o600, BUFFER)
    }

    /// As [`AtomicFile::create_private`], for a secret that is written in one piece: no buffer keeps a copy of it.
    pub fn create_secret(target: &Path) -> Result<Self> {
        Self::with_mode(target, 0o600, 0)
    }

    fn with_mode(target: &Path, mode: u32, buffer: usize) -> Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
        #[cfg(not(unix))]
        let _ = mode;
        let file = builder.tempfile_in(folder_of(target));
        // The name of the temporary file tells the user nothing.
        let (file, path) = file.map_err(|e| io::Error::from(e.kind())).in_file(target)?.into_parts();
        let writer = BufWriter::with_capacity(buffer, file);
        Ok(AtomicFile { target: target.to_path_buf(), path, writer })
    }

    /// Whether this is the name of a file that was never finished, because the process was killed.
    pub fn is_unfinished(name: &OsStr) -> bool {
        name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
    }

    /// Syncs the content to disk and gives it its name.
    pub fn commit(self) -> Result<()> {
        self.finish(|_| Ok(()), true).map(drop)
    }

    /// As [`AtomicFile::commit`], unless something has the name already: that is an error, and stays as it is.
    pub fn commit_new(self) -> Result<()> {
        self.finish(|_| Ok(()), false).map(drop)
    }

    /// As [`AtomicFile::commit`]; the file is locked before it has its name and stays so while what is returned lives.
    /// Where the file system knows no locks there is none.
    pub fn commit_locked(self) -> Result<File> {
        self.finish(
            |file| match file.try_lock() {
                Err(std::fs::TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
                Ok(()) | Err(std::fs::TryLockError::Error(_)) => Ok(()),
            },
            true,
        )
    }

    fn finish(self, before: impl FnOnce(&File) -> io::Result<()>, replace: bool) -> Result<File> {
        let AtomicFile { target, path, writer } = self;
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error).in_file(&target)?;
        before(&file).in_file(&target)?;
        file.sync_all().in_file(&target)?;
        let named = if replace { path.persist(&target) } else { path.persist_noclobber(&target) };
        named.map_err(|e| e.error).in_file(&target)?;
        sync_name(&target)?;
        Ok(file)
    }
}

/// A folder that is made beside its target and takes the target's name only when everything in it is written.
///
/// Dropped before that, it leaves nothing behind.
pub struct AtomicFolder {
    target: PathBuf,
    staged: TempDir,
}

impl AtomicFolder {
    /// Starts a folder beside the target; the folders above it are made where they do not exist.
    pub fn create(target: &Path) -> Result<Self> {
        let parent = folder_of(target);
        std::fs::create_dir_all(parent).in_file(target)?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
        let staged = builder.tempdir_in(parent);
        // The name of the temporary folder tells the user nothing.
        let staged = staged.map_err(|e| io::Error::from(e.kind())).in_file(target)?;
        Ok(AtomicFolder { target: target.to_path_buf(), staged })
    }

    /// Where its files are written until then.
    pub fn path(&self) -> &Path {
        self.staged.path()
    }

    /// Gives it its name. An empty folder that has it is replaced, by one with its permissions; one in which
    /// something lies is an error, and stays as it is.
    pub fn commit(self) -> Result<()> {
        self.rename().in_file(&self.target)?;
        self.named()
    }

    /// It has its name, and is not removed any more.
    fn named(self) -> Result<()> {
        let _ = self.staged.keep();
        sync_name(&self.target)
    }

    fn rename(&self) -> io::Result<()> {
        if let Ok(there) = std::fs::symlink_metadata(&self.target).map(|there| there.permissions()) {
            std::fs::set_permissions(self.staged.path(), there)?;
            // Elsewhere no folder takes the place of another.
            #[cfg(not(unix))]
            let _ = std::fs::remove_dir(&self.target);
        }
        std::fs::rename(self.staged.path(), &self.target)
    }

    /// As [`AtomicFolder::commit`]; where the target holds something, or cannot be replaced as one, the files are
    /// moved into it one by one. `last` is taken away first and comes last: where it is, everything is.
    pub fn commit_into(self, last: Option<&str>) -> Result<()> {
        match self.rename() {
            Ok(()) => return self.named(),
            Err(e) if !self.target.is_dir() => return Err(e).in_file(&self.target),
            Err(_) => {}
        }
        let AtomicFolder { target, staged } = self;
        if let Some(last) = last.map(|last| target.join(last)) {
            match std::fs::remove_file(&last) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e).in_file(&last),
                _ => {}
            }
        }
        let mut files = files_below(staged.path()).in_file(&target)?;
        files.sort_by_key(|file| (last.map(Path::new) == Some(file), file.clone()));
        for file in files {
            let to = target.join(&file);
            std::fs::create_dir_all(folder_of(&to)).in_file(&to)?;
            let from = staged.path().join(&file);
            match std::fs::rename(&from, &to) {
                // The target is a disk of its own.
                Err(e) if e.kind() == io::ErrorKind::CrossesDevices => {
                    let mut copy = AtomicFile::create(&to)?;
                    File::open(&from).and_then(|mut file| io::copy(&mut file, &mut copy)).in_file(&to)?;
                    copy.commit()?;
                }
                moved => moved.in_file(&to)?,
            }
        }
        sync_name(&target.join(last.unwrap_or("any")))
    }
}

/// The files below a folder, relative to it.
fn files_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (vec![], vec![PathBuf::new()]);
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(folder.join(&next))? {
            let entry = entry?;
            let name = next.join(entry.file_name());
            if entry.file_type()?.is_dir() { folders.push(name) } else { found.push(name) }
        }
    }
    Ok(found)
}

/// A new name itself must survive a power cut.
fn sync_name(target: &Path) -> Result<()> {
    #[cfg(unix)]
    File::open(folder_of(target)).and_then(|folder| folder.sync_all()).in_file(target)?;
    #[cfg(not(unix))]
    let _ = target;
    Ok(())
}

fn folder_of(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl io::Seek for AtomicFile {
    fn seek(&mut self, position: io::SeekFrom) -> io::Result<u64> {
        self.writer.seek(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The umask of this process may be any: a file written in the ordinary way shows what it is.
    #[cfg(unix)]
    #[test]
    fn permissions_follow_the_umask_or_are_the_owner_s() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mode =
            |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777;
        std::fs::write(folder.path().join("ordinary"), b"").unwrap();
        AtomicFile::create(&folder.path().join("a")).unwrap().commit().unwrap();
        AtomicFile::create_private(&folder.path().join("b")).unwrap().commit().unwrap();
        assert_eq!((mode("a"), mode("b")), (mode("ordinary"), mode("ordinary") & 0o600));
    }

    #[test]
    fn a_file_that_is_not_committed_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out.bin");
        std::fs::write(&target, b"old").unwrap();
        let mut file = AtomicFile::create(&target).unwrap();
        file.write_all(b"new").unwrap();
        drop(file);
        assert_eq!(std::fs::read(&target).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let mut file = AtomicFile::create(&target).unwrap();
        file.write_all(b"new").unwrap();
        file.commit().unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
    }

    #[test]
    fn a_folder_is_there_whole_or_not_at_all() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("new/out");
        let write = |folder: &AtomicFolder, name: &str, content: &str| {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, content).unwrap();
        };
        let entries = || std::fs::read_dir(place.path().join("new")).unwrap().count();
        let folder = AtomicFolder::create(&target).unwrap();
        write(&folder, "a", "1");
        assert!(!target.exists());
        drop(folder);
        assert_eq!(entries(), 0, "nothing is left behind");
        std::fs::create_dir(&target).unwrap();
        for (content, ok) in [("1", true), ("2", false)] {
            let folder = AtomicFolder::create(&target).unwrap();
            write(&folder, "a", content);
            assert_eq!(folder.commit().is_ok(), ok, "an empty folder is replaced, a full one is not");
        }
        let folder = AtomicFolder::create(&target).unwrap();
        write(&folder, "a", "3");
        write(&folder, "below/b", "3");
        std::fs::write(target.join("mine"), "mine").unwrap();
        folder.commit_into(Some("a")).unwrap();
        let read = |name: &str| std::fs::read_to_string(target.join(name)).unwrap();
        assert_eq!(["a", "below/b", "mine"].map(read), ["3", "3", "mine"]);
        assert_eq!(entries(), 1, "nothing is left behind");
    }

    #[test]
    fn a_new_file_takes_no_name_that_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a");
        AtomicFile::create(&target).unwrap().commit_new().unwrap();
        let mut second = AtomicFile::create(&target).unwrap();
        second.write_all(b"other").unwrap();
        assert!(second.commit_new().is_err());
        assert_eq!(std::fs::read(&target).unwrap(), b"");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
    }
}
