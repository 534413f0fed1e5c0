//! Control groups, with processes that spin inside.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A control group with 3 % of a processor, which who spins gets on the busiest machine, of the
/// version this machine has; removed when dropped. None, loudly, where it cannot be made.
pub(crate) struct Group {
    name: String,
    directories: Vec<PathBuf>,
}

impl Group {
    pub(crate) fn new() -> Option<Group> {
        let base = Path::new("/sys/fs/cgroup");
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("subak-e2e-{}-{number}", std::process::id());
        let is_v2 = base.join("cgroup.controllers").exists();
        let parents: &[&str] = if is_v2 { &[""] } else { &["cpu", "cpuacct"] };
        let directories: Vec<_> =
            parents.iter().map(|parent| base.join(parent).join(&name)).collect();
        let group = Group { name, directories };
        let limited = (|| {
            for directory in &group.directories {
                std::fs::create_dir_all(directory)?;
            }
            let directory = &group.directories[0];
            if is_v2 {
                std::fs::write(directory.join("cpu.max"), "3000 100000")
            } else {
                std::fs::write(directory.join("cpu.cfs_period_us"), "100000")?;
                std::fs::write(directory.join("cpu.cfs_quota_us"), "3000")
            }
        })();
        if let Err(error) = limited {
            eprintln!("SKIPPED: load in a control group cannot be made here: {error}");
            return None;
        }
        Some(group)
    }

    /// A group whose processes have so many bytes of memory, and are killed when they need more. None,
    /// loudly, where it cannot be made.
    pub(crate) fn with_memory(bytes: u64) -> Option<Group> {
        let base = Path::new("/sys/fs/cgroup");
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("subak-e2e-{}-{number}", std::process::id());
        let is_v2 = base.join("cgroup.controllers").exists();
        let directory = if is_v2 { base.join(&name) } else { base.join("memory").join(&name) };
        let file = if is_v2 { "memory.max" } else { "memory.limit_in_bytes" };
        let group = Group { name, directories: vec![directory.clone()] };
        let limited = std::fs::create_dir_all(&directory)
            .and_then(|()| std::fs::write(directory.join(file), bytes.to_string()));
        if let Err(error) = limited {
            eprintln!(
                "SKIPPED: a control group with a limit of memory cannot be made here: {error}"
            );
            return None;
        }
        Some(group)
    }

    /// The words before a command that run it inside.
    pub(crate) fn wrapper(&self) -> [String; 4] {
        let join: String = self
            .directories
            .iter()
            .map(|directory| format!("echo $$ > {}/cgroup.procs && ", directory.display()))
            .collect();
        ["sh", "-c", &format!("{join} exec \"$@\""), "sh"].map(str::to_owned)
    }

    /// As `/proc/PID/cgroup` has it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// A process inside that spins.
    pub(crate) fn spin(&self) -> Spinning {
        Spinning(self.shell("while :; do :; done").spawn().expect("sh"))
    }

    /// This shell script, to be run inside.
    pub(crate) fn shell(&self, script: &str) -> Command {
        let join: String = self
            .directories
            .iter()
            .map(|directory| format!("echo $$ > {}/cgroup.procs; ", directory.display()))
            .collect();
        let mut sh = Command::new("sh");
        sh.args(["-c", &format!("set -e; {join} {script}")]).stdin(Stdio::null());
        sh
    }
}

/// A process that spins until this is dropped. Drop it before its group, which has to be empty.
pub(crate) struct Spinning(Child);

impl Drop for Spinning {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for directory in &self.directories {
            let _ = std::fs::remove_dir(directory);
        }
    }
}
