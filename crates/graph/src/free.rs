//! How much memory is free, as far as the system says so.

use std::path::Path;

/// Bytes that this process may still take: those of the machine, or fewer where a control group (a container, a job)
/// has less.
pub fn free_memory() -> Option<u64> {
    let text = |file: &str| std::fs::read_to_string(file).ok();
    let machine = text("/proc/meminfo").and_then(|text| meminfo(&text));
    let group = text("/proc/self/cgroup").and_then(|text| group(&text, Path::new("/sys/fs/cgroup")));
    machine.into_iter().chain(group).min()
}

/// Bytes of this process that lie in no file.
pub(crate) fn own_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    kilobytes(&text, "RssAnon:")
}

fn meminfo(text: &str) -> Option<u64> {
    kilobytes(text, "MemAvailable:")
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// The least that is free in the control groups of a process, of either version, and in those above them. What they
/// hold of files is given back where memory is short.
fn group(groups: &str, mounted: &Path) -> Option<u64> {
    const V2: [&str; 4] = ["memory.max", "memory.current", "inactive_file", "active_file"];
    const V1: [&str; 4] =
        ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "total_active_file"];
    let found = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (root, names) = match controllers {
            "" => (mounted.to_path_buf(), V2),
            _ if controllers.split(',').any(|name| name == "memory") => (mounted.join("memory"), V1),
            _ => return None,
        };
        let ancestors = Path::new(path).ancestors();
        ancestors.filter_map(|path| free_in(&root.join(path.strip_prefix("/").ok()?), names)).min()
    });
    found.min()
}

fn free_in(folder: &Path, [limit, used, inactive, active]: [&str; 4]) -> Option<u64> {
    let text = |file: &str| std::fs::read_to_string(folder.join(file)).ok();
    let number = |file: &str| text(file)?.trim().parse::<u64>().ok();
    let held = text("memory.stat").unwrap_or_default();
    let of = |name: &str| -> Option<u64> {
        let mut lines = held.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(found, _)| *found == name)?.1.trim().parse().ok()
    };
    let files = of(inactive).unwrap_or(0) + of(active).unwrap_or(0);
    Some(number(limit)?.saturating_sub(number(used)?.saturating_sub(files)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_machine_and_control_groups_is_free() {
        assert_eq!(meminfo("MemTotal: 9 kB\nMemAvailable:     2048 kB\n"), Some(2 << 20));
        assert_eq!(meminfo("nonsense"), None);
        let place = tempfile::tempdir().unwrap();
        let put = |file: &str, content: &str| {
            let file = place.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, content).unwrap();
        };
        let free = |groups: &str| group(groups, place.path());
        assert_eq!(free("0::/a/b\n"), None, "nothing is said");
        put("memory.max", "max\n");
        put("a/memory.max", "1000\n");
        put("a/memory.current", "700\n");
        put("a/memory.stat", "anon 600\ninactive_file 60\nactive_file 40\n");
        put("a/b/memory.max", "5000\n");
        put("a/b/memory.current", "1\n");
        assert_eq!(free("0::/a/b\n"), Some(400), "that of the group above");
        put("memory/memory.limit_in_bytes", "300\n");
        put("memory/memory.usage_in_bytes", "100\n");
        assert_eq!(free("4:cpu:/x\n3:memory,pids:/gone\n0::/a/b\n"), Some(200), "the older kind");
    }
}
