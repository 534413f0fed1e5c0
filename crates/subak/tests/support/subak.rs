//! The real binary, on addresses of its own.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::{Client, Endpoint, PATIENCE, wait_until};

static NEXT: AtomicU32 = AtomicU32::new(1);

/// An address of loopback that nothing else uses: by process and counter, so that tests can run side
/// by side without asking for a free port and losing it before it is bound.
pub(crate) fn fresh_address() -> String {
    let process = (std::process::id() & 0xfff).max(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    assert!(number < 4096, "more addresses than one program of tests can have");
    let [_, a, b, c] = (process << 12 | number).to_be_bytes();
    format!("127.{a}.{b}.{c}:8080")
}

/// An address of IPv6 loopback, which has one address only: a port below those that the kernel gives
/// to clients, by process and counter.
pub(crate) fn fresh_address_v6() -> String {
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + (std::process::id().wrapping_mul(64).wrapping_add(number) % 20_000);
        let address = format!("[::1]:{port}");
        if TcpListener::bind(&*address).is_ok() {
            return address;
        }
    }
}

/// The usual configuration: one listener, one pool.
pub(crate) struct Setup {
    address: String,
    workers: usize,
    top: String,
    listener: String,
    pool: String,
    /// As they stand in the file.
    endpoints: Vec<String>,
    tail: String,
}

impl Setup {
    /// `round_robin` over these endpoints, on one worker.
    pub(crate) fn before(endpoints: &[&Endpoint]) -> Setup {
        Setup::before_addresses(endpoints.iter().map(|endpoint| endpoint.address()))
    }

    pub(crate) fn before_addresses(endpoints: impl IntoIterator<Item = String>) -> Setup {
        Setup::before_tables(endpoints.into_iter().map(|address| format!("{address:?}")))
    }

    /// Endpoints as the file has them: `{ address = "…", weight = 2 }`.
    pub(crate) fn before_tables(endpoints: impl IntoIterator<Item = String>) -> Setup {
        Setup {
            address: fresh_address(),
            workers: 1,
            top: String::new(),
            listener: String::new(),
            pool: String::new(),
            endpoints: endpoints.into_iter().collect(),
            tail: String::new(),
        }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn workers(mut self, workers: usize) -> Setup {
        self.workers = workers;
        self
    }

    /// Where it listens, instead of a fresh address.
    pub(crate) fn bind(mut self, address: &str) -> Setup {
        address.clone_into(&mut self.address);
        self
    }

    /// A line before the first table.
    pub(crate) fn top(mut self, line: &str) -> Setup {
        self.top += line;
        self.top.push('\n');
        self
    }

    /// A line of `[listener.web]`.
    pub(crate) fn listener(mut self, line: &str) -> Setup {
        self.listener += line;
        self.listener.push('\n');
        self
    }

    /// A line of `[pool.app]`.
    pub(crate) fn pool(mut self, line: &str) -> Setup {
        self.pool += line;
        self.pool.push('\n');
        self
    }

    /// Text at the end: routes and other tables.
    pub(crate) fn tail(mut self, text: &str) -> Setup {
        self.tail += text;
        self.tail.push('\n');
        self
    }

    /// The configuration as text.
    pub(crate) fn text(&self) -> String {
        let Setup { address, workers, top, listener, pool, endpoints, tail } = self;
        let default = if listener.contains("pool =") { "" } else { "pool = \"app\"" };
        let balance = if pool.contains("balance =") { "" } else { "balance = \"round_robin\"" };
        let mut text = format!("workers = {workers}\n{top}\n[listener.web]\nbind = {address:?}\n");
        let written = write!(
            text,
            "{default}\n{listener}\n[pool.app]\n{balance}\nendpoints = [{}]\n{pool}\n{tail}",
            endpoints.join(", ")
        );
        written.expect("writing to memory");
        text
    }

    #[track_caller]
    pub(crate) fn start(&self) -> Subak {
        Subak::start_at(&self.text(), &self.address)
    }

    /// The same, logging no more than by default: see [`Subak::start_quietly_at`].
    #[track_caller]
    pub(crate) fn start_quietly(&self) -> Subak {
        Subak::start_quietly_at(&self.text(), &self.address)
    }
}

/// A running Subak. Killed when dropped; what it has logged is shown when the test fails.
pub(crate) struct Subak {
    child: Child,
    address: String,
    directory: PathBuf,
    log: Arc<Mutex<String>>,
}

impl Subak {
    /// Serves by this configuration; `address` is where [`Subak::client`] connects.
    #[track_caller]
    pub(crate) fn start_at(config: &str, address: &str) -> Subak {
        Subak::spawn(config, address).ready(config)
    }

    /// Waits until it serves.
    #[track_caller]
    pub(crate) fn ready(self, config: &str) -> Subak {
        let mut subak = self;
        let deadline = Instant::now() + PATIENCE;
        while !subak.log().contains("serving workers=") {
            if let Some(status) = subak.child.try_wait().expect("wait") {
                // The reader of its output may be behind by a moment.
                wait_until("the log is there", || !subak.log().is_empty());
                panic!("not started: {status}\n{}\n{config}", subak.log());
            }
            assert!(Instant::now() < deadline, "not ready in time\n{}", subak.log());
            std::thread::sleep(Duration::from_millis(5));
        }
        subak
    }

    /// Starts it and does not wait; it may also end by itself.
    #[track_caller]
    pub(crate) fn spawn(config: &str, address: &str) -> Subak {
        Subak::spawn_with(&[], config, address)
    }

    /// Starts it by a command that runs another: `["prlimit", "--nofile=100"]`.
    #[track_caller]
    pub(crate) fn spawn_with(wrapper: &[&str], config: &str, address: &str) -> Subak {
        Subak::spawn_logging("info,subak_http=debug", wrapper, config, address)
    }

    /// Serves and logs no more than by default, for what is measured: a line for every request that
    /// fails costs Subak something, and who reads them as much again.
    #[track_caller]
    pub(crate) fn start_quietly_at(config: &str, address: &str) -> Subak {
        Subak::spawn_logging("info", &[], config, address).ready(config)
    }

    #[track_caller]
    fn spawn_logging(level: &str, wrapper: &[&str], config: &str, address: &str) -> Subak {
        let directory = fresh_directory();
        let file = directory.join("subak.toml");
        std::fs::write(&file, config).expect("write the configuration");
        let words = [wrapper, &[env!("CARGO_BIN_EXE_subak")]].concat();
        let mut child = Command::new(words[0])
            .args(&words[1..])
            .args(["serve", "--log", level, "--config"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start subak");
        let log = Arc::new(Mutex::new(String::new()));
        let lines = BufReader::new(child.stderr.take().expect("stderr")).lines();
        let writer = log.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut log = writer.lock().expect("log");
                log.push_str(&line);
                log.push('\n');
            }
        });
        Subak { child, address: address.to_owned(), directory, log }
    }

    /// The address clients connect to.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn socket_address(&self) -> SocketAddr {
        self.address.parse().expect("an address")
    }

    /// A new connection to it.
    #[track_caller]
    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.address)
    }

    /// A GET on a connection of its own; its status and body.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let answer = self.client().get(path);
        (answer.status, answer.text())
    }

    /// GETs of /0, /1 … at once, each on a connection of its own; the statuses.
    pub(crate) fn at_once(&self, count: usize) -> Vec<u16> {
        let clients: Vec<_> = (0..count)
            .map(|number| {
                let address = self.address.clone();
                std::thread::spawn(move || {
                    Client::connect(&address).get(&format!("/{number}")).status
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().expect("a client")).collect()
    }

    /// A directory of its own; holds the configuration and is removed with it.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Replaces the configuration and does not reload it. Whoever reads it has the old or the new.
    pub(crate) fn write_config(&self, config: &str) {
        let (new, file) =
            (self.directory.join("subak.toml.new"), self.directory.join("subak.toml"));
        std::fs::write(&new, config).expect("write");
        std::fs::rename(new, file).expect("rename");
    }

    /// Everything logged so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().expect("log").clone()
    }

    /// Nobody reads what it logs as long as this is kept, once the pipe is full.
    pub(crate) fn hold_log(&self) -> MutexGuard<'_, String> {
        self.log.lock().expect("log")
    }

    #[track_caller]
    pub(crate) fn wait_for_log(&self, text: &str) {
        wait_until(&format!("{text:?} is logged"), || self.log().contains(text));
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name: HUP, TERM.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("sh")
            .args(["-c", &format!("kill -{name} {}", self.pid())])
            .status()
            .expect("kill");
        assert!(status.success(), "kill -{name}");
    }

    /// Whether it has ended and waits to be collected.
    pub(crate) fn has_ended(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).expect("proc");
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'))
    }

    /// Waits until it has ended by itself.
    #[track_caller]
    pub(crate) fn wait_for_exit(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("subak has ended", || {
            status = self.child.try_wait().expect("wait");
            status.is_some()
        });
        status.expect("it has ended")
    }

    /// Resident memory, in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("proc");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
        line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
    }

    /// Processor time of all its threads so far.
    pub(crate) fn processor_time(&self) -> Duration {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid())).expect("proc");
        let nanos = |task: std::io::Result<std::fs::DirEntry>| {
            let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        };
        Duration::from_nanos(tasks.filter_map(nanos).sum())
    }

    /// Open descriptors.
    pub(crate) fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid())).expect("proc").count()
    }
}

impl Drop for Subak {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
        let log = self.log();
        if std::thread::panicking() {
            eprintln!("--- what subak logged\n{log}---");
        } else {
            assert!(!log.contains("panicked at"), "--- what subak logged\n{log}---");
        }
    }
}

/// A new directory for one test's files.
pub(crate) fn fresh_directory() -> PathBuf {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("subak-e2e-{}-{number}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&directory).expect("a directory for the test");
    directory
}
