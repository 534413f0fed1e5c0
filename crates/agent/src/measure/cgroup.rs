//! A control group's limits on CPU and memory, and its own use of them.
//!
//! | | version 2 | version 1 |
//! |---|---|---|
//! | CPU limit | `cpu.max` | `cpu.cfs_quota_us` ÷ `cpu.cfs_period_us` |
//! | CPU use | `usage_usec` of `cpu.stat` | `cpuacct.usage`, in nanoseconds |
//! | memory limit | `memory.max` | `memory.limit_in_bytes` |
//! | memory use | `memory.current` | `memory.usage_in_bytes` |
//! | of that, given back first | `inactive_file` of `memory.stat` | `total_inactive_file` |
//!
//! A group inside the one that is looked at, or around it, is not: its limits are its own affair.
//! Source: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/ of the kernel.

use std::path::{Path, PathBuf};

use super::files::{Roots, number_of, read, read_number};
use super::memory::Memory;

/// A group, by the directories its controllers have it in.
#[derive(Clone, Debug)]
pub(super) struct Cgroup {
    version: Version,
    cpu: PathBuf,
    cpuacct: PathBuf,
    memory: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Version {
    One,
    Two,
}

/// Processor time used, within a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CpuWithin {
    pub(super) used_nanos: u64,
    pub(super) limit_millicpus: u64,
}

impl Cgroup {
    /// The group of this name; whether it is there shows when it is read.
    pub(super) fn new(roots: &Roots, name: &Path) -> Cgroup {
        let base = roots.sys.join("fs/cgroup");
        let name = name.strip_prefix("/").unwrap_or(name);
        if base.join("cgroup.controllers").exists() {
            let group = base.join(name);
            Cgroup {
                version: Version::Two,
                cpu: group.clone(),
                cpuacct: group.clone(),
                memory: group,
            }
        } else {
            let of = |controller| base.join(controller).join(name);
            let (cpu, cpuacct, memory) = (of("cpu"), of("cpuacct"), of("memory"));
            Cgroup { version: Version::One, cpu, cpuacct, memory }
        }
    }

    /// Where its CPU controller has it, which a group must be in to be measured.
    pub(super) fn path(&self) -> &Path {
        &self.cpu
    }

    /// None without a limit.
    pub(super) fn cpu(&self) -> Option<CpuWithin> {
        let (limit_millicpus, used_nanos) = match self.version {
            Version::Two => {
                let limit = parse_cpu_max(&read(&self.cpu.join("cpu.max"))?)?;
                let used = number_of(&read(&self.cpuacct.join("cpu.stat"))?, "usage_usec")?;
                (limit, used.checked_mul(1000)?)
            }
            Version::One => {
                // -1 is no limit, and no number here.
                let quota = read_number(&self.cpu.join("cpu.cfs_quota_us"))?;
                let period = read_number(&self.cpu.join("cpu.cfs_period_us"))?;
                (millicpus(quota, period)?, read_number(&self.cpuacct.join("cpuacct.usage"))?)
            }
        };
        Some(CpuWithin { used_nanos, limit_millicpus })
    }

    /// None without a limit below what the machine has.
    pub(super) fn memory(&self, machine_bytes: u64) -> Option<Memory> {
        let (limit, current, inactive) = match self.version {
            Version::Two => ("memory.max", "memory.current", "inactive_file"),
            Version::One => {
                ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            }
        };
        // "max" is no number; version 1 says "no limit" by a number larger than any machine.
        let capacity_bytes = read_number(&self.memory.join(limit))
            .filter(|limit| *limit > 0 && *limit < machine_bytes)?;
        let current = read_number(&self.memory.join(current))?;
        let stat = read(&self.memory.join("memory.stat")).unwrap_or_default();
        let inactive = number_of(&stat, inactive).unwrap_or(0);
        Some(Memory { capacity_bytes, used_bytes: current.saturating_sub(inactive) })
    }
}

/// Quota and period in microseconds, or `max` and a period.
fn parse_cpu_max(text: &str) -> Option<u64> {
    let mut words = text.split_ascii_whitespace();
    let (quota, period) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    millicpus(quota, period)
}

fn millicpus(quota: u64, period: u64) -> Option<u64> {
    let millicpus = quota.checked_mul(1000)?.checked_div(period)?;
    (millicpus > 0).then_some(millicpus)
}

#[cfg(test)]
mod tests {
    use super::parse_cpu_max;

    #[test]
    fn quotas_are_thousandths_of_a_processor() {
        assert_eq!(parse_cpu_max("50000 100000\n"), Some(500));
        assert_eq!(parse_cpu_max("400000 100000\n"), Some(4000));
        for text in [
            "max 100000\n",
            "",
            "50000",
            "50000 0",
            "0 100000",
            "1 100000",
            "-1 100000",
            "18446744073709551615 1",
        ] {
            assert_eq!(parse_cpu_max(text), None, "{text}");
        }
    }
}
