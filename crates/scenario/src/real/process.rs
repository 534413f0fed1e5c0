//! A process of a run: on a core of its own, ended with whoever started it.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use subak_lab::process;

/// It takes connections within this time or not at all.
const STARTS_WITHIN: Duration = Duration::from_secs(30);
/// From one look whether it does to the next.
const LOOKS: Duration = Duration::from_millis(2);

/// Different addresses that only this process uses: 127.64.0.0/10 by its number, and ports that are
/// free.
pub(super) fn addresses(count: usize) -> io::Result<Vec<SocketAddr>> {
    let host = Ipv4Addr::from(0x7F40_0000 | (std::process::id() & 0x003F_FFFF));
    let bound = (0..count).map(|_| TcpListener::bind((host, 0))).collect::<io::Result<Vec<_>>>()?;
    bound.iter().map(TcpListener::local_addr).collect()
}

/// Something that runs and takes connections.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) address: SocketAddr,
    child: Child,
}

impl Process {
    /// Starts `command` on a core and waits until it takes connections; what it complains of goes to
    /// the file `log`.
    pub(super) fn start(
        mut command: Command,
        address: SocketAddr,
        core: usize,
        log: &Path,
    ) -> io::Result<Process> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(log)?);
        // Ctrl-C at a terminal is for whoever started it, who ends it.
        command.process_group(0);
        process::confine(&mut command, core);
        let mut process = Process { address, child: command.spawn()? };
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            let ended = process.child.try_wait()?.is_some();
            if ended || began.elapsed() > STARTS_WITHIN {
                let log = fs::read_to_string(log).unwrap_or_default();
                let what = format!("{command:?} does not take connections:\n{log}");
                return Err(io::Error::other(what));
            }
            thread::sleep(LOOKS);
        }
        Ok(process)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has nothing to lose: no graceful end that waits for connections.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
