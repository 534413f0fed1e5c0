//! `subak lab endpoint`: an endpoint in a process of its own, where what tests do themselves must not
//! take part in what is measured.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use super::{fresh_address, wait_until};

/// A running test endpoint. Killed when dropped.
pub(crate) struct Lab {
    child: Child,
    address: String,
}

impl Lab {
    /// With these options.
    #[track_caller]
    pub(crate) fn start(options: &[&str]) -> Lab {
        Lab::started(Command::new(env!("CARGO_BIN_EXE_subak")), options)
    }

    /// The same, but it gets what others leave of the processor.
    #[track_caller]
    pub(crate) fn start_last(options: &[&str]) -> Lab {
        let mut command = Command::new("chrt");
        command.args(["--idle", "0", env!("CARGO_BIN_EXE_subak")]);
        Lab::started(command, options)
    }

    #[track_caller]
    fn started(mut command: Command, options: &[&str]) -> Lab {
        let address = fresh_address();
        let child = command
            .args(["lab", "endpoint", &address])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("start a test endpoint");
        let lab = Lab { child, address };
        wait_until("the test endpoint listens", || TcpStream::connect(&lab.address).is_ok());
        lab
    }

    /// As a configuration writes it.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
