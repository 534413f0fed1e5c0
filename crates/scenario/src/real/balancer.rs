//! A Subak before the endpoints of a run, and what its operators say to it.

use std::fmt::Display;
use std::fs;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::process::Process;
use crate::configuration;

/// It answers its operators within this time.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// One balancer.
#[derive(Debug)]
pub(super) struct Balancer {
    pub(super) process: Process,
    socket: PathBuf,
}

impl Balancer {
    /// Starts the `number`-th on a core; what it needs is in `directory`.
    pub(super) fn start(
        binary: &Path,
        configuration: &str,
        listen: SocketAddr,
        core: usize,
        directory: &Path,
        number: usize,
    ) -> io::Result<Balancer> {
        let of_it = |what: &str| directory.join(format!("subak{number}.{what}"));
        // Beside others: nothing in its usual places.
        let (config, socket) = (of_it("toml"), of_it("sock"));
        let admin = toml::Value::String(socket.to_string_lossy().into_owned());
        fs::write(&config, format!("admin = {{ socket = {admin} }}\n{configuration}"))?;
        let mut command = Command::new(binary);
        command.args(["serve", "--log", "warn", "--config"]).arg(&config);
        let process = Process::start(command, listen, core, &of_it("log"))?;
        Ok(Balancer { process, socket })
    }

    /// Sets an endpoint's state, or takes back what was set.
    pub(super) fn set(&self, endpoint: SocketAddr, state: Option<impl Display>) -> io::Result<()> {
        let state = state.map_or("null".to_owned(), |state| format!("\"{state}\""));
        let body = format!("{{\"state\": {state}}}");
        let path = format!("/v1/pools/{}/endpoints/{endpoint}", configuration::POOL);
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(ANSWERS_WITHIN))?;
        let length = body.len();
        let head = format!(
            "PATCH {path} HTTP/1.1\r\nHost: subak\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all((head + &body).as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        match answer.starts_with("HTTP/1.1 200 ") {
            true => Ok(()),
            false => Err(io::Error::other(format!("the balancer refuses {path} {body}: {answer}"))),
        }
    }
}
