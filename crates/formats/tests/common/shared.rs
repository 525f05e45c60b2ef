//! Real data that lie beside the project, where they do.

use std::path::PathBuf;

/// A path in the folder of real data; `None`, with a message, where there is none.
pub fn shared(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("PROGAP_SHARED").map_or_else(
        || {
            let project = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
            project.join("../shared")
        },
        PathBuf::from,
    );
    let found = root.join(path);
    if found.exists() {
        return Some(found);
    }
    eprintln!("skipped: {} is not there (set PROGAP_SHARED to the folder of real data)", found.display());
    None
}
