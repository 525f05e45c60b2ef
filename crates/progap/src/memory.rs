//! How much memory there is, so that what cannot fit is refused in words instead of being killed.

use crate::{Error, Result};

/// Bytes that this process may still take, where the system says so.
pub(crate) fn available() -> Option<u64> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| meminfo(&text));
    // A container's own limit, less what it uses already.
    let number = |file: &str| -> Option<u64> {
        std::fs::read_to_string(format!("/sys/fs/cgroup/{file}")).ok()?.trim().parse().ok()
    };
    let container =
        number("memory.max").and_then(|most| Some(most.saturating_sub(number("memory.current")?)));
    machine.into_iter().chain(container).min()
}

fn meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// About the bytes of a graph in training: each edge is held twice, there and back.
pub(crate) fn graph(edges: f64) -> f64 {
    8.0 * edges
}

/// Refuses what needs more memory than there is, with its size.
pub(crate) fn check(what: &str, bytes: f64, available: Option<u64>) -> Result<()> {
    match available {
        Some(available) if bytes > available as f64 => Err(Error::Unsuitable(format!(
            "{what} would take about {}, and {} of memory are free: use a machine with more, or a smaller graph",
            size(bytes),
            size(available as f64)
        ))),
        _ => Ok(()),
    }
}

fn size(bytes: f64) -> String {
    let gigabytes = bytes / 1e9;
    if gigabytes >= 1.0 { format!("{gigabytes:.1} GB") } else { format!("{:.1} MB", bytes / 1e6) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_with_its_size() {
        assert!(check("the graph", 1e9, Some(2_000_000_000)).is_ok());
        assert!(check("the graph", 1e30, None).is_ok(), "nothing is known");
        let message = check("the graph", 64e9, Some(500_000_000)).unwrap_err().to_string();
        assert!(message.contains("64.0 GB") && message.contains("500.0 MB"), "{message}");
        assert_eq!(meminfo("MemTotal: 9 kB\nMemAvailable:     2048 kB\n"), Some(2 << 20));
        assert_eq!(meminfo("nonsense"), None);
    }
}
