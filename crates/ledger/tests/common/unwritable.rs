//! Processes that may not write a file.

use std::path::Path;
use std::process::{Command, Output};

/// The output of a command that may write neither the file nor its folder; nothing where no such process can be
/// started.
pub fn output_without_write_access(path: &Path, mut command: Command) -> Option<Output> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        use std::os::unix::process::CommandExt;
        let folder = path.parent().expect("a folder");
        for (path, mode) in [(path, 0o444), (folder, 0o555)] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("permissions");
        }
        if std::fs::OpenOptions::new().append(true).open(path).is_ok() {
            // The superuser may write everything, so somebody else has to try.
            command.uid(65_534);
        }
    }
    let skipped = |error| eprintln!("skipped: no process without write access can be started ({error})");
    command.output().map_err(skipped).ok()
}
