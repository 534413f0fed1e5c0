//! What systemd hears, on a notification socket of the test's own, and what its journal gets.

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::support::{Endpoint, Setup, Subak, fresh_directory, wait_until};
use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

/// The manager's end.
struct Manager {
    socket: UnixDatagram,
    directory: PathBuf,
}

impl Manager {
    fn new() -> Manager {
        let directory = fresh_directory();
        let socket = UnixDatagram::bind(directory.join("notify")).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
        Manager { socket, directory }
    }

    fn path(&self) -> PathBuf {
        self.directory.join("notify")
    }

    /// What is told next; `None` where nothing comes for a moment.
    fn hear(&self) -> Option<String> {
        let mut buffer = [0; 4096];
        let length = self.socket.recv(&mut buffer).ok()?;
        Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
    }

    /// All that is told until something begins like this; it is the last one.
    #[track_caller]
    fn hear_until(&self, begin: &str) -> Vec<String> {
        let mut all = Vec::new();
        wait_until(&format!("{begin} is told"), || {
            all.extend(self.hear());
            all.last().is_some_and(|last| last.starts_with(begin))
        });
        all
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn spawn(setup: Setup, manager: &Path, more: &[&str]) -> Subak {
    let socket = format!("NOTIFY_SOCKET={}", manager.display());
    let wrapper = [&["env", &socket], more].concat();
    let address = crate::support::fresh_address();
    Subak::spawn_with(&wrapper, &setup.bind(&address).text(), &address)
}

#[test]
fn it_is_told_when_it_serves_reloads_and_stops() {
    let endpoint = Endpoint::named("x");
    let manager = Manager::new();
    let setup = Setup::before(&[&endpoint]).top("shutdown_timeout = \"20s\"");
    let mut subak = spawn(setup, &manager.path(), &[]);
    assert_eq!(manager.hear_until("READY=1").len(), 1, "it is the first to be told");
    // From this moment on it is served, without another look at the log.
    assert_eq!(subak.get("/").0, 200);
    // The client has just left, or is about to be counted out.
    let status = manager.hear_until("STATUS=").pop().expect("told");
    assert!(
        ["STATUS=generation 1, 0 connections", "STATUS=generation 1, 1 connections"]
            .contains(&&*status),
        "{status}"
    );

    subak.signal("HUP");
    let reloading = manager.hear_until("RELOADING=1").pop().expect("told");
    let (_, time) = reloading.split_once("\nMONOTONIC_USEC=").expect("the time");
    assert!(time.parse::<u64>().is_ok_and(|time| time > 0), "{time}");
    manager.hear_until("READY=1");
    let status = manager.hear_until("STATUS=").pop().expect("told");
    assert!(status.starts_with("STATUS=generation 2, "), "{status}");

    subak.write_config("nonsense = 1");
    subak.signal("HUP");
    manager.hear_until("RELOADING=1");
    manager.hear_until("READY=1");
    let status = manager.hear_until("STATUS=").pop().expect("told");
    assert!(status.contains("generation 2") && status.contains("config"), "{status}");

    subak.signal("TERM");
    let stopping = manager.hear_until("STOPPING=1").pop().expect("told");
    assert_eq!(stopping, "STOPPING=1\nEXTEND_TIMEOUT_USEC=30000000");
    assert_eq!(subak.wait_for_exit().code(), Some(0));
}

#[test]
fn a_pool_without_an_endpoint_that_works_is_in_the_status() {
    let dead = crate::support::fresh_address();
    let manager = Manager::new();
    let setup = Setup::before_addresses([dead])
        .pool("health = { tcp = true, interval = \"100ms\", timeout = \"100ms\", fall = 1 }");
    let subak = spawn(setup, &manager.path(), &[]);
    manager.hear_until("READY=1");
    wait_until("the status names the pool", || {
        manager.hear().is_some_and(|told| told.starts_with("STATUS=") && told.contains("pool app"))
    });
    drop(subak);
}

#[test]
fn the_watchdog_hears_of_life_only_while_every_worker_turns() {
    let endpoint = Endpoint::named("x");
    let manager = Manager::new();
    let setup = Setup::before(&[&endpoint]).workers(2);
    let mut subak = spawn(setup, &manager.path(), &["WATCHDOG_USEC=600000"]);
    manager.hear_until("READY=1");
    // Often enough, at least in one of ten tries: others may keep the machine busy for a while.
    let hears_three_in_time = || {
        let began = Instant::now();
        for _ in 0..3 {
            manager.hear_until("WATCHDOG=1");
        }
        began.elapsed() < Duration::from_millis(3 * 600)
    };
    assert!((0..10).any(|_| hears_three_in_time()));

    let Some(worker) = stop_thread(subak.pid(), "worker-1") else {
        eprintln!("SKIPPED: a thread cannot be stopped here (ptrace)");
        return;
    };
    subak.wait_for_log("workers do not answer");
    // What had been sent before.
    while manager.hear().is_some() {}
    let silent = Instant::now();
    while silent.elapsed() < Duration::from_millis(1200) {
        let heard = manager.hear();
        assert!(heard.as_deref().is_none_or(|told| told.starts_with("STATUS=")), "{heard:?}");
    }
    ptrace::detach(worker, None).expect("the worker goes on");
    manager.hear_until("WATCHDOG=1");
    subak.signal("TERM");
    assert_eq!(subak.wait_for_exit().code(), Some(0));
}

/// Stops one thread of a process, until it is detached from.
fn stop_thread(process: u32, name: &str) -> Option<Pid> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("threads");
    let named = |task: &std::fs::DirEntry| {
        std::fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == name)
    };
    let task = tasks.map(|task| task.expect("a thread")).find(named).expect("the thread");
    let id = task.file_name().into_string().expect("a number").parse().expect("a number");
    let thread = Pid::from_raw(id);
    ptrace::seize(thread, ptrace::Options::empty()).ok()?;
    ptrace::interrupt(thread).expect("stop it");
    waitpid(thread, Some(WaitPidFlag::__WALL)).expect("it has stopped");
    Some(thread)
}

#[test]
fn a_manager_that_does_not_read_holds_nothing_up() {
    let endpoint = Endpoint::named("x");
    let manager = Manager::new();
    // More messages than the socket's queue takes.
    let mut subak = spawn(Setup::before(&[&endpoint]), &manager.path(), &["WATCHDOG_USEC=2"]);
    subak.wait_for_log("serving workers=");
    for _ in 0..40 {
        subak.signal("HUP");
        assert_eq!(subak.get("/").0, 200);
    }
    subak.signal("TERM");
    assert_eq!(subak.wait_for_exit().code(), Some(0));
}

#[test]
fn the_journal_gets_a_priority_on_every_line_and_others_get_what_they_ask_for() {
    let run = |wrapper: &[&str], arguments: &[&str]| {
        let directory = fresh_directory();
        let file = directory.join("subak.toml");
        std::fs::write(&file, "[listener.web]\nbind = 1\n").expect("write");
        let mut command = std::process::Command::new(wrapper[0]);
        command.args(&wrapper[1..]).arg(env!("CARGO_BIN_EXE_subak")).arg("serve");
        let output = command.args(arguments).arg("--config").arg(&file).output().expect("subak");
        assert_eq!(output.status.code(), Some(2));
        let _ = std::fs::remove_dir_all(directory);
        String::from_utf8(output.stderr).expect("text")
    };
    let journal = run(&["env"], &["--log-format", "journal"]);
    assert!(journal.starts_with("<3>not started: error: "), "{journal}");
    assert!(journal.lines().count() > 3, "{journal}");
    assert!(journal.lines().all(|line| line.starts_with("<3>")), "{journal}");

    // As systemd does it: the stream is named by its device and inode.
    let named = "JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) exec \"$0\" \"$@\"";
    let detected = run(&["sh", "-c", named], &[]);
    assert!(detected.starts_with("<3>not started"), "{detected}");
    let elsewhere = run(&["env", "JOURNAL_STREAM=8:1"], &[]);
    assert!(elsewhere.contains("ERROR not started"), "{elsewhere}");

    let json = run(&["env"], &["--log-format", "json"]);
    let line: serde_json::Value = serde_json::from_str(json.trim_end()).expect("one object");
    assert_eq!(line["level"], "ERROR");
    assert!(
        line["message"].as_str().is_some_and(|said| said.starts_with("not started: ")),
        "{json}"
    );
}
