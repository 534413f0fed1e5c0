//! The machine under measurement: CPUs this process may use, pinning, limits.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::time::{Duration, Instant};

/// The CPUs in this thread's affinity mask, ascending.
///
/// # Errors
/// Whatever `sched_getaffinity` says.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    // SAFETY: an all-zero cpu_set_t is a valid (empty) set, and the kernel writes at most
    // the size passed.
    let set = unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        if libc::sched_getaffinity(0, mem::size_of_val(&set), &mut set) < 0 {
            return Err(io::Error::last_os_error());
        }
        set
    };
    // SAFETY: CPU_ISSET reads a bit of the set; the index is below CPU_SETSIZE.
    Ok((0..libc::CPU_SETSIZE as usize)
        .filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) })
        .collect())
}

/// Binds the calling thread to one CPU. Threads and processes it starts inherit that.
///
/// Allocates nothing, so that it may run between `fork` and `exec`.
///
/// # Errors
/// The CPU is not there or not allowed.
pub fn pin_to(cpu: usize) -> io::Result<()> {
    // SAFETY: CPU_SET ignores an index past the set's end; the set outlives the call.
    let code = unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, mem::size_of_val(&set), &set)
    };
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The calling thread runs before all others of its core (`SCHED_RR`), but for those that do so too.
/// Dropping this, on the same thread, makes it one of many again. What it starts is not ahead.
#[derive(Debug)]
pub struct Ahead(());

impl Ahead {
    /// # Errors
    /// Mostly that root or `CAP_SYS_NICE` is needed.
    pub fn run() -> io::Result<Ahead> {
        schedule(libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, 1)?;
        Ok(Ahead(()))
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        // Back to what everybody has needs no rights.
        let _ = schedule(libc::SCHED_OTHER, 0);
    }
}

fn schedule(policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameter outlives the call; 0 is the calling thread.
    let code = unsafe { libc::sched_setscheduler(0, policy, &parameter) };
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes timers of the calling thread exact: without this the kernel may be 50 µs late
/// so as to wake several sleepers at once, nearly a whole period at 15,000 requests/s.
pub(crate) fn exact_timers() {
    // SAFETY: takes an integer, no pointers; it cannot fail for a value > 0.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
}

/// Allows this process, and those it starts, at least `wanted` open descriptors.
/// Raises the hard limit too where the rights allow (root). Returns the limit now
/// in force, which may be lower than `wanted`.
///
/// # Errors
/// Whatever `getrlimit` or `setrlimit` says, short of missing rights.
pub fn raise_descriptor_limit(wanted: u64) -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a live, writable rlimit.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } < 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur >= wanted {
        return Ok(limit.rlim_cur);
    }
    let set = |new: libc::rlimit| {
        // SAFETY: `new` is a live rlimit that the call reads.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &new) == 0 }
    };
    if set(libc::rlimit { rlim_cur: wanted, rlim_max: limit.rlim_max.max(wanted) }) {
        return Ok(wanted);
    }
    let reachable = wanted.min(limit.rlim_max);
    if set(libc::rlimit { rlim_cur: reachable, rlim_max: limit.rlim_max }) {
        return Ok(reachable);
    }
    Err(io::Error::last_os_error())
}

/// Nanoseconds the given CPU has spent on work since the machine started, everything
/// but idle and waiting for disks, from `/proc/stat`. Advances in ticks of 10 ms.
///
/// # Errors
/// `/proc/stat` cannot be read or has no such CPU.
pub fn cpu_busy_ns(cpu: usize) -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let name = format!("cpu{cpu}");
    let line = text
        .lines()
        .find(|line| line.split_ascii_whitespace().next() == Some(&name))
        .ok_or_else(|| io::Error::other(format!("/proc/stat has no {name}")))?;
    // user nice system idle iowait irq softirq steal; guest times are within user.
    let ticks: u64 = line
        .split_ascii_whitespace()
        .skip(1)
        .take(7)
        .enumerate()
        .filter(|(index, _)| !matches!(index, 3 | 4))
        .filter_map(|(_, field)| field.parse::<u64>().ok())
        .sum();
    Ok(ticks * (1_000_000_000 / ticks_per_second()))
}

/// The share of these CPUs, 0 to 1, that all processes use while the calling thread waits so long.
///
/// # Errors
/// `/proc/stat` cannot be read or has no such CPU.
pub fn busy_share(cpus: &[usize], during: Duration) -> io::Result<f64> {
    let busy = || cpus.iter().map(|cpu| cpu_busy_ns(*cpu)).sum::<io::Result<u64>>();
    let (began, before) = (Instant::now(), busy()?);
    std::thread::sleep(during);
    let lasted = began.elapsed();
    let used = busy()?.saturating_sub(before) as f64;
    let all = lasted.as_nanos() as f64 * cpus.len() as f64;
    // The kernel counts in steps, which may be a little more than the time.
    Ok(if all > 0.0 { (used / all).min(1.0) } else { 0.0 })
}

/// The unit of the kernel's CPU times, usually 100.
fn ticks_per_second() -> u64 {
    // SAFETY: no pointers.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_pinned_thread_may_use_that_cpu_only() {
        let cpus = allowed_cpus().expect("an affinity mask");
        let last = *cpus.last().expect("at least one CPU");
        let seen = std::thread::spawn(move || {
            pin_to(last).expect("a CPU of the mask");
            allowed_cpus().expect("an affinity mask")
        });
        assert_eq!(seen.join().expect("the thread"), [last]);
        assert_eq!(allowed_cpus().expect("an affinity mask"), cpus, "other threads keep theirs");
    }

    #[test]
    fn a_thread_is_ahead_until_it_drops_that_and_what_it_starts_is_not() {
        // SAFETY: no pointers; 0 is the calling thread.
        let policy = || unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
        match Ahead::run() {
            Ok(ahead) => {
                assert_eq!(policy(), libc::SCHED_RR);
                let started = std::thread::spawn(policy);
                assert_eq!(started.join().expect("the thread"), libc::SCHED_OTHER);
                drop(ahead);
            }
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        }
        assert_eq!(policy(), libc::SCHED_OTHER);
    }

    #[test]
    fn a_cpu_is_as_busy_as_what_runs_on_it() {
        let cpu = *allowed_cpus().expect("an affinity mask").last().expect("at least one CPU");
        let (stop, begun) = (AtomicBool::new(false), Barrier::new(2));
        let share = std::thread::scope(|scope| {
            scope.spawn(|| {
                pin_to(cpu).expect("a CPU of the mask");
                begun.wait();
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            begun.wait();
            let share = busy_share(&[cpu], Duration::from_millis(500));
            stop.store(true, Ordering::Relaxed);
            share
        });
        let share = share.expect("/proc/stat");
        assert!((0.6..=1.0).contains(&share), "{share}");
        assert!(busy_share(&[libc::CPU_SETSIZE as usize], Duration::ZERO).is_err());
        assert_eq!(busy_share(&[], Duration::ZERO).expect("nothing to read"), 0.0);
    }

    #[test]
    fn pinning_to_an_absent_cpu_is_an_error() {
        assert!(pin_to(libc::CPU_SETSIZE as usize - 1).is_err());
    }

    #[test]
    fn the_descriptor_limit_never_falls() {
        let before = raise_descriptor_limit(1).expect("a limit");
        let after = raise_descriptor_limit(before.saturating_add(1)).expect("a limit");
        assert!(after >= before, "{after} < {before}");
    }
}
