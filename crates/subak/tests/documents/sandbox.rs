//! Where a document is run: one bash in a directory, a network, a file system below /run and a
//! world of processes of its own. Whatever it started ends with it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// All commands of a document together.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a server that a document starts in the background has until it listens.
const START_S: u32 = 10;
/// What makes the place: /run, /etc and /var/log are the document's own (of /etc, its changes). Its network
/// is loopback alone, which every Linux machine has: a document that needs more would fail its reader.
const PREPARE: &str = "\
    mount -t tmpfs tmpfs /run && mkdir /run/upper /run/work && \
    mount -t overlay overlay -o lowerdir=/etc,upperdir=/run/upper,workdir=/run/work /etc && \
    mkdir -p /etc/subak && mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/log && \
    ip link set lo up";

/// Ends with the whole world of processes when it is dropped.
pub(crate) struct Sandbox {
    child: Child,
    stdin: ChildStdin,
    /// What bash itself says: one line with an exit status for each command.
    said: Receiver<String>,
    directory: PathBuf,
    deadline: Instant,
}

/// What a command did.
pub(crate) struct Done {
    pub(crate) status: i32,
    pub(crate) printed: String,
}

fn unshare() -> Command {
    let mut command = Command::new("unshare");
    // As somebody else than root, a user namespace gives the right to make the others.
    if !is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]);
    command
}

fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let user = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    user.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
}

/// Whether this machine lets us.
pub(crate) fn can_be_made() -> bool {
    let tried = unshare().args(["bash", "-c", PREPARE]).output();
    tried.is_ok_and(|output| output.status.success())
}

impl Sandbox {
    pub(crate) fn new() -> Sandbox {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("subak-document-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(directory.join("work")).expect("a directory");
        let binary = Path::new(env!("CARGO_BIN_EXE_subak")).parent().expect("a directory");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut child = unshare()
            .args(["bash", "--noprofile", "--norc"])
            .current_dir(directory.join("work"))
            .env("PATH", format!("{}:{path}:/usr/sbin:/sbin", binary.display()))
            .env("HOME", directory.join("work"))
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "dumb")
            .env("COLUMNS", "80")
            .env_remove("XDG_RUNTIME_DIR")
            .env_remove("RUST_LOG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("unshare");
        let stdin = child.stdin.take().expect("stdin");
        let stdout = BufReader::new(child.stdout.take().expect("stdout"));
        let (send, said) = channel();
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| send.send(line))
        });
        let deadline = Instant::now() + PATIENCE;
        let mut sandbox = Sandbox { child, stdin, said, directory, deadline };
        // Jobs, as a person at a terminal has them, but without their messages.
        sandbox.tell(PREPARE);
        sandbox.tell("set -m");
        sandbox.tell(&format!(
            "listening() {{ cat /proc/net/tcp /proc/net/tcp6 /proc/net/unix | \
             grep -Ec ' 0A |: 0+2 0+ 0+10000 '; }}\n\
             settled() {{ local last=$1 now i; for ((i = 0; i < {START_S}0; i++)); do \
             sleep 0.1; now=$(listening); kill -0 $! || return; \
             ((now > $1 && now == last)) && return; last=$now; done; }}"
        ));
        sandbox
    }

    /// Where commands run.
    pub(crate) fn directory(&self) -> PathBuf {
        self.directory.join("work")
    }

    /// Time that is left.
    pub(crate) fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Runs a command in the one bash; none when it did not end in time, or ended the bash.
    pub(crate) fn run(&mut self, command: &str) -> Option<Done> {
        let (script, output) = (self.directory.join("command"), self.directory.join("output"));
        fs::write(&script, command).expect("write the command");
        // A file of its own for each command: what goes on in the background may still write.
        let _ = fs::remove_file(&output);
        let (script, out) = (script.display(), output.display());
        let last = command.lines().last().unwrap_or_default();
        let is_server = last.split(" #").next().is_some_and(|last| last.trim_end().ends_with('&'))
            && ["subak serve", "subak agent", "subak demo", "subak lab endpoint"]
                .iter()
                .any(|at| command.contains(at));
        let (before, after) = match is_server {
            true => ("before=$(listening); ", "settled $before; "),
            false => ("", ""),
        };
        self.tell(&format!(
            "{before}eval \"$(<{script})\" >{out} 2>&1 </dev/null; status=$?; {after}echo $status"
        ));
        let said = self.said.recv_timeout(self.left()).ok();
        let printed = fs::read(&output).unwrap_or_default();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        said.map(|said| Done { status: said.trim().parse().unwrap_or(-1), printed })
    }

    fn tell(&mut self, line: &str) {
        // A bash that has ended says nothing more, which is noticed there.
        let _ = writeln!(self.stdin, "{line}");
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}
