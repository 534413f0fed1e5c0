//! Main memory, as `/proc/meminfo` tells it.
//!
//! In use is what is not `MemAvailable`: the kernel's own estimate of what a new program can have
//! without swapping, which counts caches that can be given back as free. Source: proc_meminfo(5).

use super::files::number_of;

/// Memory with a limit, and how much of it is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Memory {
    pub(super) capacity_bytes: u64,
    pub(super) used_bytes: u64,
}

/// Reads `/proc/meminfo`.
pub(super) fn parse_meminfo(text: &str) -> Option<Memory> {
    let bytes = |key| number_of(text, key)?.checked_mul(1024);
    let capacity_bytes = bytes("MemTotal:").filter(|total| *total > 0)?;
    let used_bytes = capacity_bytes.saturating_sub(bytes("MemAvailable:")?);
    Some(Memory { capacity_bytes, used_bytes })
}

#[cfg(test)]
mod tests {
    use super::{Memory, parse_meminfo};

    const RECORDED: &str = "\
MemTotal:       24684084 kB
MemFree:        24104236 kB
MemAvailable:   24174012 kB
Buffers:            2608 kB
Cached:           187948 kB
HugePages_Total:       0
Hugepagesize:       2048 kB
";

    #[test]
    fn what_is_not_available_is_in_use() {
        let expected = Memory {
            capacity_bytes: 24_684_084 * 1024,
            used_bytes: (24_684_084 - 24_174_012) * 1024,
        };
        assert_eq!(parse_meminfo(RECORDED), Some(expected));
        let more = "MemTotal: 100 kB\nMemAvailable: 101 kB\n";
        assert_eq!(parse_meminfo(more), Some(Memory { capacity_bytes: 102_400, used_bytes: 0 }));
    }

    #[test]
    fn what_is_not_understood_is_not_known() {
        for text in [
            "",
            "MemTotal: 100 kB\nMemFree: 50 kB\n",
            "MemAvailable: 50 kB\n",
            "MemTotal: 0 kB\nMemAvailable: 0 kB\n",
            "MemTotal: many kB\nMemAvailable: 50 kB\n",
            "MemTotal: 18446744073709551615 kB\nMemAvailable: 50 kB\n",
        ] {
            assert_eq!(parse_meminfo(text), None, "{text}");
        }
    }
}
