//! A process of this run: what it says goes to files, and it ends with the run however that ends.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use subak_lab::process;

use super::World;

/// How long a process may take to end when it is asked to.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// A running process; dropping it ends it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    name: String,
    log: PathBuf,
}

impl Process {
    /// Starts a command.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(world: &World, command: &mut Command, name: &str) -> Result<Process, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let log = world.path(&format!("{name}-{number}.log"));
        let file = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let again = file.try_clone().map_err(|error| error.to_string())?;
        process::end_with_parent(command);
        let child = command
            .stdout(file)
            .stderr(again)
            .spawn()
            .map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))?;
        Ok(Process { child, name: name.to_owned(), log })
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it did.
    ///
    /// # Errors
    /// The system does not say.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, String> {
        self.child.try_wait().map_err(|error| format!("{}: {error}", self.name))
    }

    /// As [`Process::ended`], after waiting for it.
    ///
    /// # Errors
    /// The system does not say.
    pub fn wait(&mut self, at_most: Duration) -> Result<Option<ExitStatus>, String> {
        let deadline = Instant::now() + at_most;
        loop {
            match self.ended()? {
                None if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                ended => return Ok(ended),
            }
        }
    }

    /// Asks it to end, as Ctrl-C would.
    pub fn interrupt(&self) {
        // It may have ended already.
        let _ = process::interrupt(self.id());
    }

    /// Everything it has said.
    pub fn said(&self) -> String {
        fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// Ends it and those that it started at once, as a machine that loses power does.
    pub fn kill(&mut self) {
        for one in process::tree(self.id()).unwrap_or_default() {
            // It may have ended already.
            let _ = process::kill(one);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // What fails here has ended already.
        let _ = process::terminate(self.id());
        if !matches!(self.wait(ENDS_WITHIN), Ok(Some(_))) {
            self.kill();
        }
        // Logs of what went well are of no use, and a long run has thousands.
        let _ = fs::remove_file(&self.log);
    }
}
