//! Other people's programs: found where they are, run within a time, their words kept.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::World;
use super::process::Process;

/// Where a command is: in PATH, where Debian keeps what an ordinary user's PATH leaves out, or where
/// `go install` puts it.
pub fn find(command: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    let of_go = std::env::var_os("HOME").map(|home| PathBuf::from(home).join("go/bin"));
    let mut places = std::env::split_paths(&path).chain(usual).chain(of_go);
    places.find_map(|place| Some(place.join(command)).filter(|file| file.is_file()))
}

/// What a program said.
#[derive(Clone, Debug)]
pub struct Said {
    /// Standard output and standard error.
    pub text: String,
    /// Whether it ended well.
    pub is_well: bool,
}

impl World {
    /// Runs a command to its end; what it said. It is asked to end (SIGINT, as by Ctrl-C) when it
    /// takes longer than `at_most`, and ended when it does not listen.
    ///
    /// # Errors
    /// It cannot be started, or did not end.
    pub fn say(&self, command: &mut Command, at_most: Duration) -> Result<Said, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null());
        let mut process = Process::start(self, command, "tool")?;
        let deadline = Instant::now() + at_most;
        let status = loop {
            if let Some(status) = process.ended()? {
                break status;
            }
            if Instant::now() > deadline {
                process.interrupt();
                match process.wait(Duration::from_secs(60))? {
                    Some(status) => break status,
                    None => return Err(format!("{name} did not end")),
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        Ok(Said { text: process.said(), is_well: status.success() })
    }
}
