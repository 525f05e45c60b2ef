//! Opening a folder from a stranger is safe.
#![cfg(unix)]

#[path = "support/hostile.rs"]
mod hostile;

use std::path::Path;

#[test]
fn every_hostile_folder_is_refused_soon_and_nothing_outside_is_read() {
    let place = tempfile::tempdir().expect("a folder");
    let tried = hostile::hostile_folders(Path::new(env!("CARGO_BIN_EXE_progap")), place.path());
    let count = tried.unwrap_or_else(|complaints| {
        panic!("{} were not refused as they should be:\n{}", complaints.len(), complaints.join("\n"))
    });
    println!("{count} hostile folders");
    assert!(count >= 400, "{count}");
}
