//! What a process and its children use: CPU time, memory, descriptors.
//!
//! nginx is a master and a worker, so everything here is summed over a process
//! *tree*. Source: `/proc/PID/stat` (split into user and system, in ticks of
//! 10 ms) and the process's CPU clock (the total, in nanoseconds).
#![allow(unsafe_code)]

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use crate::machine;

/// CPU time used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Executing the program.
    pub user: Duration,
    /// In the kernel on its behalf.
    pub system: Duration,
}

impl CpuTime {
    /// User and system together.
    pub fn total(self) -> Duration {
        self.user + self.system
    }

    /// What was used since `earlier`. The total is exact, the split to a tick or two.
    pub fn since(self, earlier: CpuTime) -> CpuTime {
        let total = self.total().saturating_sub(earlier.total());
        let system = self.system.saturating_sub(earlier.system).min(total);
        CpuTime { user: total - system, system }
    }
}

/// Memory in bytes, from `/proc/PID/smaps_rollup`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Resident, shared pages divided by the number of those who share them.
    pub proportional: u64,
    /// Pages that only this process has and has written to.
    pub private_dirty: u64,
    /// Resident altogether.
    pub resident: u64,
}

/// The process and all its descendants, the process first.
///
/// # Errors
/// The process does not exist (any more).
pub fn tree(root: u32) -> io::Result<Vec<u32>> {
    fs::metadata(format!("/proc/{root}"))?;
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // A process that ends meanwhile is simply not part of the tree.
        if let Ok(fields) = stat_fields(pid) {
            parents.push((pid, number(&fields, PARENT)));
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while next < found.len() {
        let parent = u64::from(found[next]);
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    Ok(found)
}

/// CPU time of all processes given.
///
/// The sum is the kernel's nanosecond count; the split between user and system
/// follows the ticks.
///
/// # Errors
/// One of the processes is gone.
pub fn cpu_time(pids: &[u32]) -> io::Result<CpuTime> {
    let mut sum = CpuTime::default();
    for pid in pids {
        let fields = stat_fields(*pid)?;
        let (user, system) = (number(&fields, USER), number(&fields, SYSTEM));
        let total = cpu_clock(*pid)?;
        let system_share =
            if user + system == 0 { 0.0 } else { system as f64 / (user + system) as f64 };
        let system = total.mul_f64(system_share);
        sum.user += total.saturating_sub(system);
        sum.system += system;
    }
    Ok(sum)
}

/// Time the calling thread has executed, and time it could have but had no CPU, because others had it
/// or its control group's quota was used up. The first is exact; the second is zero where the kernel does not say (`/proc/thread-self/schedstat`).
///
/// # Errors
/// Whatever `clock_gettime` says.
pub fn thread_times() -> io::Result<(Duration, Duration)> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let waited_ns = text.split_ascii_whitespace().nth(1).and_then(|field| field.parse().ok());
    Ok((thread_cpu()?, Duration::from_nanos(waited_ns.unwrap_or(0))))
}

/// Time the calling thread has executed.
///
/// # Errors
/// Whatever `clock_gettime` says.
pub fn thread_cpu() -> io::Result<Duration> {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live local of the right type.
    if unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Duration::new(now.tv_sec as u64, now.tv_nsec as u32))
}

/// Memory of all processes given together.
///
/// # Errors
/// One of the processes is gone, or belongs to somebody else.
pub fn memory(pids: &[u32]) -> io::Result<Memory> {
    let mut sum = Memory::default();
    for pid in pids {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
        sum.proportional += kilobytes(&text, "Pss:");
        sum.private_dirty += kilobytes(&text, "Private_Dirty:");
        sum.resident += kilobytes(&text, "Rss:");
    }
    Ok(sum)
}

/// Open descriptors of a process.
///
/// # Errors
/// The process is gone, or belongs to somebody else.
pub fn descriptors(pid: u32) -> io::Result<usize> {
    Ok(fs::read_dir(format!("/proc/{pid}/fd"))?.count())
}

/// Asks a process to end (SIGTERM).
///
/// # Errors
/// The process is gone, or belongs to somebody else.
pub fn terminate(pid: u32) -> io::Result<()> {
    signal(pid, libc::SIGTERM)
}

/// Asks a process to end as Ctrl-C does (SIGINT).
///
/// # Errors
/// The process is gone, or belongs to somebody else.
pub fn interrupt(pid: u32) -> io::Result<()> {
    signal(pid, libc::SIGINT)
}

/// Stops a process where it is (SIGSTOP), until [`go_on`].
///
/// # Errors
/// The process is gone, or belongs to somebody else.
pub fn pause(pid: u32) -> io::Result<()> {
    signal(pid, libc::SIGSTOP)
}

/// Lets a process go on (SIGCONT).
///
/// # Errors
/// The process is gone, or belongs to somebody else.
pub fn go_on(pid: u32) -> io::Result<()> {
    signal(pid, libc::SIGCONT)
}

/// Ends a process at once (SIGKILL).
///
/// # Errors
/// The process is gone, or belongs to somebody else.
pub fn kill(pid: u32) -> io::Result<()> {
    signal(pid, libc::SIGKILL)
}

fn signal(pid: u32, signal: libc::c_int) -> io::Result<()> {
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    // SAFETY: no pointers. The pid is positive, so this reaches one process only.
    if unsafe { libc::kill(pid, signal) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Has `command` be asked to end (SIGTERM) when the thread that starts it ends, however that is.
pub fn end_with_parent(command: &mut Command) {
    // SAFETY: between fork and exec only the call below runs, a plain system call.
    unsafe {
        command.pre_exec(|| {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
}

/// Has `command` run on one CPU only and be asked to end (SIGTERM) when the thread
/// that starts it ends, so that no measured process outlives a failed measurement.
pub fn confine(command: &mut Command, cpu: usize) {
    // SAFETY: between fork and exec only the calls below run; both are plain system
    // calls without allocation or locks.
    unsafe {
        command.pre_exec(move || {
            machine::pin_to(cpu)?;
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
}

/// Whether this process has root's rights.
pub fn is_root() -> bool {
    // SAFETY: no pointers, cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Bytes the kernel holds in its object caches (sockets, epoll entries, inodes),
/// machine-wide, from `/proc/meminfo`.
///
/// # Errors
/// `/proc/meminfo` cannot be read.
pub fn kernel_slab() -> io::Result<u64> {
    Ok(kilobytes(&fs::read_to_string("/proc/meminfo")?, "Slab:"))
}

/// Indices into [`stat_fields`], which starts behind the name: field 3 of proc(5) is 0.
const PARENT: usize = 1;
const USER: usize = 11;
const SYSTEM: usize = 12;

/// The fields of `/proc/PID/stat` behind the command's name, which may hold anything.
fn stat_fields(pid: u32) -> io::Result<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, rest) = text.rsplit_once(')').ok_or_else(|| io::Error::other("odd /proc/PID/stat"))?;
    Ok(rest.split_ascii_whitespace().map(str::to_owned).collect())
}

fn number(fields: &[String], index: usize) -> u64 {
    fields.get(index).and_then(|field| field.parse().ok()).unwrap_or(0)
}

/// The value of a `Name:   123 kB` line, in bytes; zero where there is no such line.
fn kilobytes(text: &str, name: &str) -> u64 {
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}

/// CPU time of all threads of a process, exact to the nanosecond.
fn cpu_clock(pid: u32) -> io::Result<Duration> {
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let mut clock = 0;
    // SAFETY: both pointers are to live locals of the right types.
    unsafe {
        let code = libc::clock_getcpuclockid(pid, &mut clock);
        if code != 0 {
            return Err(io::Error::from_raw_os_error(code));
        }
        if libc::clock_gettime(clock, &mut now) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(Duration::new(now.tv_sec as u64, now.tv_nsec as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::time::Instant;

    #[test]
    fn cpu_time_follows_work_and_not_waiting() {
        let me = [std::process::id()];
        let before = cpu_time(&me).expect("my own times");
        let (start, mut waste) = (Instant::now(), 0_u64);
        while cpu_time(&me).expect("my own times").since(before).total() < Duration::from_millis(30)
        {
            waste = std::hint::black_box(waste.wrapping_mul(31).wrapping_add(7));
            assert!(start.elapsed() < Duration::from_secs(30), "work is not counted");
        }
    }

    #[test]
    fn a_child_belongs_to_the_tree_until_it_ends() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
        let me = std::process::id();
        let with = tree(me).expect("my tree");
        assert_eq!(with[0], me);
        assert!(with.contains(&child.id()));
        child.kill().expect("to kill sleep");
        child.wait().expect("to reap sleep");
        assert!(!tree(me).expect("my tree").contains(&child.id()));
        assert!(tree(child.id()).is_err());
    }

    #[test]
    fn a_confined_process_has_one_cpu_and_ends_when_asked() {
        let cpu = *machine::allowed_cpus().expect("a mask").last().expect("a CPU");
        let mut command = Command::new("sleep");
        confine(command.arg("60"), cpu);
        let mut child = command.spawn().expect("sleep");
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("status");
        let listed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        assert_eq!(listed.map(str::trim), Some(cpu.to_string().as_str()));
        terminate(child.id()).expect("to end sleep");
        assert_eq!(child.wait().expect("to reap sleep").signal(), Some(libc::SIGTERM));
    }

    #[test]
    fn memory_grows_by_what_is_written() {
        const SIZE: usize = 32 << 20;
        let me = [std::process::id()];
        let before = memory(&me).expect("my memory");
        let block = std::hint::black_box(vec![1_u8; SIZE]);
        let after = memory(&me).expect("my memory");
        let grown = after.private_dirty.saturating_sub(before.private_dirty);
        assert!(grown as usize > SIZE * 9 / 10, "grown by {grown} bytes");
        assert_eq!(block[SIZE / 2], 1);
    }

    #[test]
    fn an_open_file_is_a_descriptor() {
        let listed = descriptors(std::process::id()).expect("my descriptors");
        assert!(listed >= 3, "{listed}");
    }
}
