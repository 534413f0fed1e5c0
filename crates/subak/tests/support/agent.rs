//! A running `subak agent`.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use subak_agent::{Report, parse_report};

use super::{Answer, Client, PATIENCE, fresh_address, fresh_directory, wait_until};

/// The token of every agent here.
pub(crate) const TOKEN: &str = "an-agents-token-0123456789";

/// An agent with both its listeners; ended when dropped.
pub(crate) struct Agent {
    child: Child,
    directory: PathBuf,
    /// Where it gives reports.
    pub(crate) http: String,
    /// Where it answers agent-check.
    pub(crate) check: String,
}

impl Agent {
    /// Reads ten times a second; `options` come after the usual ones.
    #[track_caller]
    pub(crate) fn start(options: &[&str]) -> Agent {
        Agent::at(fresh_address(), options)
    }

    /// The same, giving reports at this address.
    #[track_caller]
    pub(crate) fn at(http: String, options: &[&str]) -> Agent {
        let (directory, check) = (fresh_directory(), fresh_address());
        let token = directory.join("token");
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&token);
        writeln!(file.expect("a file"), "{TOKEN}").expect("write the token");
        let child = Command::new(env!("CARGO_BIN_EXE_subak"))
            .args(["agent", "--interval", "100ms", "--window", "500ms", "--log", "error"])
            .args(["--listen", &http, "--agent-check", &check, "--token-file"])
            .arg(&token)
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("start subak agent");
        let mut agent = Agent { child, directory, http, check };
        wait_until("the agent listens", || {
            let ended = agent.child.try_wait().expect("wait");
            assert!(ended.is_none(), "not started: {ended:?}");
            TcpStream::connect(&agent.http).is_ok()
        });
        agent
    }

    /// A GET with these fields on a connection of its own.
    #[track_caller]
    pub(crate) fn get(&self, path: &str, fields: &str) -> Answer {
        let mut client = Client::connect(&self.http);
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
        client.answer()
    }

    /// The report, as the balancer understands it.
    #[track_caller]
    pub(crate) fn report(&self) -> Report {
        let answer = self.get("/v1/report", &format!("Authorization: Bearer {TOKEN}\r\n"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        parse_report(answer.text().as_bytes()).expect("a report")
    }

    /// The share of the CPU in use, in ppm.
    #[track_caller]
    pub(crate) fn cpu_ppm(&self) -> u32 {
        self.report().used.cpu.map_or(0, |used| used.get())
    }

    /// What agent-check answers to whoever sends this first.
    #[track_caller]
    pub(crate) fn check(&self, first: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.check).expect("connect");
        stream.set_read_timeout(Some(PATIENCE)).expect("time-out");
        stream.write_all(first).expect("send");
        let mut line = String::new();
        stream.read_to_string(&mut line).expect("an answer and the end");
        line
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has ended by itself.
    #[track_caller]
    pub(crate) fn wait_for_exit(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the agent has ended", || {
            status = self.child.try_wait().expect("wait");
            status.is_some()
        });
        status.expect("it has ended")
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
