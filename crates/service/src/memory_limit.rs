//! How much memory this process may use: that of the machine, or less where a control group says so.

use std::fs;
use std::path::Path;

/// Bytes of memory that this process may use; `None` where the machine does not say.
pub fn memory_limit() -> Option<u64> {
    within(Path::new("/"))
}

/// The least of the machine's memory and of the limits of the process's group and those around it, of
/// either version of control groups. In a container the paths may be the host's; then the mount's root
/// has the limit.
fn within(root: &Path) -> Option<u64> {
    let read = |path: &Path| fs::read_to_string(root.join(path)).ok();
    let machine = read(Path::new("proc/meminfo")).and_then(|text| total(&text));
    let groups = read(Path::new("proc/self/cgroup")).unwrap_or_default();
    let of_group = groups.lines().filter_map(|line| {
        let mut words = line.splitn(3, ':').skip(1);
        let (controllers, path) = (words.next()?, words.next()?);
        let (mount, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|one| one == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let places = Path::new(path.trim_start_matches('/')).ancestors();
        let limit = |place| read(&Path::new(mount).join(place).join(file))?.trim().parse().ok();
        places.filter_map(limit).min()
    });
    machine.into_iter().chain(of_group).min()
}

/// `MemTotal` of /proc/meminfo, in bytes.
fn total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree with these files.
    fn limit_of(name: &str, files: &[(&str, &str)]) -> Option<u64> {
        let root = std::env::temp_dir().join(format!("subak-memory-{}-{name}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("directories");
            fs::write(path, text).expect("a file");
        }
        let limit = within(&root);
        let _ = fs::remove_dir_all(root);
        limit
    }

    const MACHINE: (&str, &str) = ("proc/meminfo", "MemTotal:  8192 kB\nMemFree: 1 kB\n");

    #[test]
    fn the_least_of_machine_and_groups_counts() {
        assert_eq!(limit_of("none", &[]), None);
        assert_eq!(limit_of("machine", &[MACHINE]), Some(8 << 20));
        let two = [
            MACHINE,
            ("proc/self/cgroup", "0::/outer/inner\n"),
            ("sys/fs/cgroup/outer/memory.max", "1048576\n"),
            ("sys/fs/cgroup/outer/inner/memory.max", "max\n"),
        ];
        assert_eq!(limit_of("two", &two), Some(1 << 20));
        let one = [
            MACHINE,
            ("proc/self/cgroup", "4:memory:/host/path\n3:cpu:/\n0::/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "2097152\n"),
        ];
        assert_eq!(limit_of("one", &one), Some(2 << 20));
        let unlimited = [
            MACHINE,
            ("proc/self/cgroup", "4:memory:/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        assert_eq!(limit_of("unlimited", &unlimited), Some(8 << 20));
    }
}
