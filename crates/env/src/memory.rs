//! How much memory the machine has left.

/// Memory that can be taken without anything being swapped out, in bytes; `None` where the system does
/// not say.
pub fn available_memory_bytes() -> Option<u64> {
    available(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

/// Reads `MemAvailable` of Linux' `/proc/meminfo`.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read_in_bytes() {
        let text = "MemTotal:       24117248 kB\nMemFree:  1 kB\nMemAvailable:   23068672 kB\n";
        assert_eq!(available(text), Some(22 << 30));
        assert_eq!(available("MemTotal: 5 kB"), None);
        assert_eq!(available("MemAvailable: many kB"), None);
    }
}
