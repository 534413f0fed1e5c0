//! This process in a control group with a share of a core: as a smaller machine would be.
//!
//! Version 2 where its `cpu` controller can be had, else version 1. It takes the right to make groups:
//! root, or a delegated subtree (`systemd-run --user --scope -p Delegate=yes`).

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The kernel's usual period, in µs: a share of 0.5 is 50 ms of every 100.
const PERIOD_US: u64 = 100_000;
/// The least quota the kernel takes.
const LEAST_US: u64 = 1_000;

/// The group, until it is dropped: then the process goes back where it was.
#[derive(Debug)]
pub struct CpuLimit {
    group: PathBuf,
    before: PathBuf,
}

impl CpuLimit {
    /// Moves this process to a new group that may use `cores` (0.5: half of one).
    ///
    /// # Errors
    /// A right or the controller is missing; the message says what would help.
    pub fn enter(cores: f64) -> io::Result<CpuLimit> {
        let (group, before) = limited(&std::process::id().to_string(), cores)?;
        let limit = CpuLimit { group, before };
        write(&limit.group.join("cgroup.procs"), &std::process::id().to_string())?;
        Ok(limit)
    }
}

impl Drop for CpuLimit {
    fn drop(&mut self) {
        // What is left is an empty group; there is nobody to tell.
        let _ = write(&self.before.join("cgroup.procs"), &std::process::id().to_string());
        let _ = fs::remove_dir(&self.group);
    }
}

/// A group with a share of a core that other processes are moved to. Dropped after they have ended, it
/// is gone.
#[derive(Debug)]
pub struct CpuGroup(PathBuf);

impl CpuGroup {
    /// A new one, whose processes may together use `cores`.
    ///
    /// # Errors
    /// As [`CpuLimit::enter`].
    pub fn new(cores: f64) -> io::Result<CpuGroup> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (group, _) = limited(&format!("{}-{number}", std::process::id()), cores)?;
        Ok(CpuGroup(group))
    }

    /// Moves a process there; those that it starts afterwards are there too.
    ///
    /// # Errors
    /// It is gone, or belongs to somebody else.
    pub fn take(&self, pid: u32) -> io::Result<()> {
        write(&self.0.join("cgroup.procs"), &pid.to_string())
    }
}

impl Drop for CpuGroup {
    fn drop(&mut self) {
        // What is left is an empty group; there is nobody to tell.
        let _ = fs::remove_dir(&self.0);
    }
}

/// A new group of this name, and the one it is in.
fn limited(name: &str, cores: f64) -> io::Result<(PathBuf, PathBuf)> {
    let quota_us = (cores * PERIOD_US as f64) as u64;
    if !cores.is_finite() || quota_us < LEAST_US {
        return Err(io::Error::other("a CPU limit is a number of cores from 0.01 on"));
    }
    let (own, mounts) =
        (fs::read_to_string("/proc/self/cgroup")?, fs::read_to_string("/proc/self/mounts")?);
    let place = place(&own, &mounts).ok_or_else(|| {
        io::Error::other("no control groups with a cpu controller are mounted here")
    })?;
    let group = make(&place, name, quota_us).map_err(|error| {
        let help = "it takes root, or a delegated group such as \
                    systemd-run --user --scope -p Delegate=yes gives";
        io::Error::new(error.kind(), format!("no CPU limit: {error}; {help}"))
    })?;
    Ok((group, place.own))
}

/// Where groups are made.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    /// The group of this process.
    own: PathBuf,
    is_v2: bool,
}

/// From `/proc/self/cgroup` and `/proc/self/mounts`.
fn place(own: &str, mounts: &str) -> Option<Place> {
    let mounted = |wanted: &dyn Fn(&str, &str) -> bool| {
        mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (at, kind, options) = (words.next()?, words.next()?, words.next()?);
            wanted(kind, options).then(|| PathBuf::from(at))
        })
    };
    let below = |root: PathBuf, path: &str| root.join(path.trim_start_matches('/'));
    let v1 = own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let root = mounted(&|kind, options| {
            kind == "cgroup" && options.split(',').any(|option| option == "cpu")
        })?;
        let is_cpu = controllers.split(',').any(|controller| controller == "cpu");
        is_cpu.then(|| Place { own: below(root, path), is_v2: false })
    });
    let v2 = || {
        let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
        let root = mounted(&|kind, _| kind == "cgroup2")?;
        Some(Place { own: below(root, path), is_v2: true })
    };
    v1.or_else(v2)
}

fn make(place: &Place, name: &str, quota_us: u64) -> io::Result<PathBuf> {
    let group = place.own.join(format!("subak-lab-{name}"));
    fs::create_dir(&group).map_err(|error| said("cannot make", &group, &error))?;
    if place.is_v2 {
        if !group.join("cpu.max").exists() {
            write(&place.own.join("cgroup.subtree_control"), "+cpu")?;
        }
        write(&group.join("cpu.max"), &format!("{quota_us} {PERIOD_US}"))?;
    } else {
        write(&group.join("cpu.cfs_period_us"), &PERIOD_US.to_string())?;
        write(&group.join("cpu.cfs_quota_us"), &quota_us.to_string())?;
    }
    Ok(group)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let open = fs::OpenOptions::new().write(true).open(path);
    let written = open.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| said("cannot write", path, &error))
}

fn said(what: &str, path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_found() {
        let v1 = place(
            "9:cpuset:/\n1:cpu,cpuacct:/a/b\n0::/u\n",
            "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n\
             cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpuacct,cpu 0 0\n",
        );
        let own = PathBuf::from("/sys/fs/cgroup/cpu/a/b");
        assert_eq!(v1, Some(Place { own, is_v2: false }));
        let v2 = place("0::/user.slice\n", "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n");
        let own = PathBuf::from("/sys/fs/cgroup/user.slice");
        assert_eq!(v2, Some(Place { own, is_v2: true }));
        assert_eq!(place("", "tmpfs /tmp tmpfs rw 0 0\n"), None);
    }

    #[test]
    fn a_limit_that_is_none_is_refused() {
        for cores in [0.0, -1.0, f64::NAN, 0.001] {
            CpuLimit::enter(cores).expect_err("too little");
        }
    }
}
