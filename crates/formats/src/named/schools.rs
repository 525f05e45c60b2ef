//! The hundred schools of Facebook100.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::{RemoteFile, Sha256Sum};

struct Known {
    name: &'static str,
    size: Option<u64>,
    sha256: Option<Sha256Sum>,
}

/// The names of the schools, as in the names of their files.
pub static SCHOOLS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| TABLE.iter().map(|known| known.name).collect());

static TABLE: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let lines = include_str!("checksums.txt").lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let mut words = line.split(' ');
            let name = words.next()?;
            let size = words.next()?.parse().ok();
            Some(Known { name, size, sha256: Sha256Sum::from_hex(words.next()?) })
        })
        .collect()
});

/// Where a school's file comes from: the copies that the published experiments used.
pub(super) fn remote_file(school: &str) -> RemoteFile {
    let known = TABLE.iter().find(|known| known.name == school);
    RemoteFile {
        url: format!("https://github.com/sisaman/pyg-datasets/raw/main/datasets/facebook100/{school}.mat"),
        path: Path::new("facebook100").join(format!("{school}.mat")),
        size: known.and_then(|known| known.size),
        about: None,
        sha256: known.and_then(|known| known.sha256),
        members: vec![],
    }
}

/// The spelling of the original archive, for the two schools where it differs.
pub(super) fn with_space(path: &Path) -> Option<PathBuf> {
    match path.file_name()?.to_str()? {
        "JohnsHopkins55.mat" => Some(path.with_file_name("Johns Hopkins55.mat")),
        "NotreDame57.mat" => Some(path.with_file_name("Notre Dame57.mat")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        assert_eq!(TABLE.len(), 100);
        assert!(SCHOOLS.is_sorted());
        assert_eq!(TABLE.iter().filter(|known| known.sha256.is_some() && known.size.is_some()).count(), 60);
        assert!(TABLE.iter().all(|known| known.sha256.is_some() == known.size.is_some()));
        // Each name ends in the school's number.
        let number = |name: &str| name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<u32>();
        let mut numbers: Vec<u32> = SCHOOLS.iter().map(|name| number(name).unwrap()).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(1..=100));
    }
}
