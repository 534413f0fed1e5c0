//! Which processors this process may use.
#![allow(unsafe_code)]

use std::fs;
use std::mem;

/// The processors of the inherited affinity mask, in ascending order.
pub(crate) fn allowed() -> Vec<usize> {
    // SAFETY: an all-zero cpu_set_t is the empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: `set` is valid for writes of its own size.
    let done = unsafe { libc::sched_getaffinity(0, mem::size_of_val(&set), &mut set) };
    if done != 0 {
        return vec![0];
    }
    // SAFETY: every index is below CPU_SETSIZE.
    (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
}

/// How many workers suit this process: the processors it may use, capped by its cgroup's quota.
pub fn suitable_workers() -> usize {
    let quota = fs::read_to_string("/sys/fs/cgroup/cpu.max").ok();
    let quota = quota.as_deref().and_then(parse_quota).unwrap_or(usize::MAX);
    allowed().len().min(quota).max(1)
}

/// Whole processors in a `cpu.max` file ("200000 100000" = 2; "max 100000" = no quota).
fn parse_quota(text: &str) -> Option<usize> {
    let mut words = text.split_whitespace();
    let quota: u64 = words.next()?.parse().ok()?;
    let period: u64 = words.next()?.parse().ok()?;
    usize::try_from(quota.div_ceil(period.max(1))).ok()
}

/// Keeps the calling thread on one processor. A refusal is harmless: the thread then floats.
pub(crate) fn pin(cpu: usize) {
    // SAFETY: an all-zero cpu_set_t is the empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: `cpu` comes from `allowed` and is below CPU_SETSIZE; `set` is valid.
    unsafe {
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, mem::size_of_val(&set), &set);
    }
}

#[cfg(test)]
mod tests {
    use super::parse_quota;

    #[test]
    fn quotas_are_rounded_up_to_whole_processors() {
        assert_eq!(parse_quota("200000 100000\n"), Some(2));
        assert_eq!(parse_quota("150000 100000\n"), Some(2));
        assert_eq!(parse_quota("50000 100000\n"), Some(1));
        assert_eq!(parse_quota("max 100000\n"), None);
        assert_eq!(parse_quota("nonsense"), None);
    }
}
