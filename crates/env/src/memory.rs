//! How much memory this process may use, and how much of it is left.
//!
//! What Linux says counts: the machine's memory, the limits of the control groups that the process is in and of
//! all groups above them (versions 1 and 2), and the limit of its address space (`ulimit -v`). Elsewhere nothing
//! is known.

use rustix::process::{Resource, getrlimit};

/// Limits of control groups at and above this stand for none: version 1 has a number for "unlimited".
const UNLIMITED_BYTES: u64 = 1 << 60;

/// The most memory that this process may use, in bytes: what the machine has, or less where a control group or a
/// resource limit says so. `None` where the system does not say.
pub fn memory_bytes() -> Option<u64> {
    let text = |path: &str| std::fs::read_to_string(path).ok();
    let limits = [field(&text("/proc/meminfo")?, "MemTotal:"), group(&text, limit_in), address_space_bytes()];
    limits.into_iter().flatten().min()
}

/// Memory that this process can take without anything being swapped out, in bytes; `None` where the system does
/// not say.
pub fn available_memory_bytes() -> Option<u64> {
    let text = |path: &str| std::fs::read_to_string(path).ok();
    let limits =
        [field(&text("/proc/meminfo")?, "MemAvailable:"), group(&text, room_in), address_space_bytes()];
    limits.into_iter().flatten().min()
}

/// Reads a line of `/proc/meminfo`.
fn field(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

fn address_space_bytes() -> Option<u64> {
    getrlimit(Resource::As).current
}

/// The files of one version of control groups.
struct Files {
    /// Where the groups are mounted.
    mount: &'static str,
    limit: &'static str,
    usage: &'static str,
    /// The line of `memory.stat` that says how much of the usage is file pages that can be dropped.
    droppable: &'static str,
}

const VERSION_1: Files = Files {
    mount: "/sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    droppable: "total_inactive_file",
};

const VERSION_2: Files = Files {
    mount: "/sys/fs/cgroup",
    limit: "memory.max",
    usage: "memory.current",
    droppable: "inactive_file",
};

/// Reads a file whole; `None` if it cannot be read.
type Read<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// The least of what `of` finds in the control groups of this process and in those above them.
fn group(read: &Read<'_>, of: fn(&Read<'_>, &Files, &str) -> Option<u64>) -> Option<u64> {
    let groups = read("/proc/self/cgroup")?;
    let found = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let files = match controllers {
            "" => &VERSION_2,
            names if names.split(',').any(|name| name == "memory") => &VERSION_1,
            _ => return None,
        };
        // In a container the path may be the host's; then what is mounted is the group itself.
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        ends.filter_map(|end| of(read, files, &format!("{}{}", files.mount, &path[..end]))).min()
    });
    found.min()
}

fn number(read: &Read<'_>, directory: &str, file: &str) -> Option<u64> {
    read(&format!("{directory}/{file}"))?.trim().parse().ok()
}

/// The limit of the group in `directory`; `None` if it has none.
fn limit_in(read: &Read<'_>, files: &Files, directory: &str) -> Option<u64> {
    number(read, directory, files.limit).filter(|limit| *limit < UNLIMITED_BYTES)
}

/// What is left of it.
fn room_in(read: &Read<'_>, files: &Files, directory: &str) -> Option<u64> {
    let limit = limit_in(read, files, directory)?;
    let usage = number(read, directory, files.usage)?;
    let statistics = read(&format!("{directory}/memory.stat")).unwrap_or_default();
    let droppable =
        statistics.lines().find_map(|line| line.strip_prefix(files.droppable)?.trim().parse().ok());
    Some(limit.saturating_sub(usage.saturating_sub(droppable.unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_the_machine_is_read_in_bytes() {
        let text = "MemTotal:       24117248 kB\nMemFree:  1 kB\nMemAvailable:   23068672 kB\n";
        assert_eq!(field(text, "MemTotal:"), Some(23 << 30));
        assert_eq!(field(text, "MemAvailable:"), Some(22 << 30));
        assert_eq!(field("MemTotal: 5 kB", "MemAvailable:"), None);
        assert_eq!(field("MemAvailable: many kB", "MemAvailable:"), None);
    }

    /// What `of` finds where these files are.
    fn found(files: &[(&str, &str)], of: fn(&Read<'_>, &Files, &str) -> Option<u64>) -> Option<u64> {
        let read =
            |path: &str| files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned());
        group(&read, of)
    }

    #[test]
    fn least_limit_of_a_group_and_those_above_it_counts() {
        let files = [
            ("/proc/self/cgroup", "0::/a/b\n"),
            ("/sys/fs/cgroup/a/memory.max", "1000\n"),
            ("/sys/fs/cgroup/a/memory.current", "900\n"),
            ("/sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 300\nactive_file 7\n"),
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
        ];
        assert_eq!(found(&files, limit_in), Some(1000));
        assert_eq!(found(&files, room_in), Some(400));
        assert_eq!(found(&files[..1], limit_in), None);
        assert_eq!(found(&[], limit_in), None);
    }

    #[test]
    fn groups_of_the_first_version_are_found_also_where_a_container_hides_their_path() {
        let files = [
            ("/proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/docker/abc\n0::/\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2000\n"),
            ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "500\n"),
        ];
        assert_eq!(found(&files, limit_in), Some(2000));
        assert_eq!(found(&files, room_in), Some(1500));
    }

    #[test]
    fn number_for_unlimited_is_no_limit() {
        let files = [
            ("/proc/self/cgroup", "4:memory:/\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        assert_eq!(found(&files, limit_in), None);
    }
}
