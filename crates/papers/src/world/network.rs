//! A network of this run's own, where every address of IPv4 is this machine's: the papers' own addresses can
//! be bound, and clients can come from anywhere.
//!
//! It is a network namespace. It exists as long as a process is in it, so nothing is left of it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// By these every address of IPv4 is this machine's, and the papers' addresses of IPv6: there a route
/// alone does not let a server bind.
const ADDRESSES: [&[&str]; 6] = [
    &["link", "set", "lo", "up"],
    &["route", "add", "local", "0.0.0.0/0", "dev", "lo"],
    &["-6", "addr", "add", "2345::2/64", "dev", "lo", "nodad"],
    &["-6", "addr", "add", "2345::3/64", "dev", "lo", "nodad"],
    &["-6", "addr", "add", "2345::4/64", "dev", "lo", "nodad"],
    &["-6", "addr", "add", "2345::5/64", "dev", "lo", "nodad"],
];

/// How to come into such a network.
#[derive(Debug)]
pub struct Network {
    options: &'static [&'static str],
}

impl Network {
    /// How this process may make one; none where it may not.
    pub fn possible() -> Option<Network> {
        // Who is not root may be where the kernel lets users make namespaces.
        let ways: [&[&str]; 2] = [&["--net"], &["--net", "--user", "--map-root-user"]];
        let works = |options: &&[&str]| {
            let tried = Command::new("unshare")
                .args(*options)
                .args(["ip", "link", "set", "lo", "up"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            tried.is_ok_and(|status| status.success())
        };
        ways.into_iter().find(works).map(|options| Network { options })
    }

    /// The command that runs a program in a new one.
    pub fn enter(&self, program: &Path) -> Command {
        let mut command = Command::new("unshare");
        command.args(self.options).arg(program);
        command
    }

    /// Sets up the network that this process is in.
    ///
    /// # Errors
    /// `ip` is not there or refuses.
    pub fn set_up() -> Result<(), String> {
        for arguments in ADDRESSES {
            let status = Command::new("ip").args(arguments).status();
            match status {
                Ok(status) if status.success() => {}
                Ok(_) => return Err(format!("ip {} was refused", arguments.join(" "))),
                Err(error) => return Err(format!("ip: {error}")),
            }
        }
        // 100,000 connections one after the other, each from a port of its own.
        let range = "/proc/sys/net/ipv4/ip_local_port_range";
        fs::write(range, "1024 65535").map_err(|error| format!("{range}: {error}"))
    }
}
