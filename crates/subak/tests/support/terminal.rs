//! A program on a terminal, which `script` makes: what it draws, keys, sizes, signals.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use super::wait_until;

/// A running program and its terminal. Killed when dropped.
pub(crate) struct Terminal {
    child: Child,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    /// Runs subak with these arguments on a terminal of this size. None, loudly, without `script`.
    #[track_caller]
    pub(crate) fn run(
        arguments: &str,
        (columns, rows): (u16, u16),
        variables: &[(&str, &str)],
    ) -> Option<Terminal> {
        let program = env!("CARGO_BIN_EXE_subak");
        let command = format!(
            "tty; echo process $$.; stty cols {columns} rows {rows}; exec {program} {arguments}"
        );
        let started = Command::new("script")
            .args(["-qec", &command, "/dev/null"])
            .env("TERM", "xterm-256color")
            .env("LC_ALL", "C.UTF-8")
            .env_remove("NO_COLOR")
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = started else {
            eprintln!("SKIPPED: what is drawn on a terminal needs `script` (bsdutils)");
            return None;
        };
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (mut out, writer) = (child.stdout.take().expect("stdout"), seen.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count) = out.read(&mut bytes) {
                if count == 0 {
                    return;
                }
                writer.lock().expect("output").extend_from_slice(&bytes[..count]);
            }
        });
        Some(Terminal { child, seen })
    }

    /// All that came so far, as it came.
    pub(crate) fn seen(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().expect("output")).into_owned()
    }

    /// Waits until a text is drawn; only what was blank before is drawn in one piece.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        wait_until(&format!("{text:?} is drawn"), || self.seen().contains(text));
    }

    /// Waits until a text is drawn after what was there when `before` characters were.
    #[track_caller]
    pub(crate) fn wait_for_after(&self, before: usize, text: &str) {
        wait_until(&format!("{text:?} is drawn"), || {
            self.seen().get(before..).is_some_and(|rest| rest.contains(text))
        });
    }

    #[track_caller]
    pub(crate) fn press(&mut self, keys: &str) {
        let stdin = self.child.stdin.as_mut().expect("stdin");
        stdin.write_all(keys.as_bytes()).and_then(|()| stdin.flush()).expect("keys");
    }

    /// Gives the window another size, as a person does who pulls at its corner.
    #[track_caller]
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let seen = self.seen();
        let device = seen.lines().next().expect("a device").trim().to_owned();
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let status =
            Command::new("stty").args(["-F", &device, "cols", &columns, "rows", &rows]).status();
        assert!(status.expect("stty").success(), "{device}");
    }

    /// Sends a signal to the program on it.
    #[track_caller]
    pub(crate) fn signal(&self, name: &str) {
        let seen = self.seen();
        let process = seen.split("process ").nth(1).and_then(|rest| rest.split('.').next());
        let command = format!("kill -{name} {}", process.expect("a process"));
        assert!(Command::new("sh").args(["-c", &command]).status().expect("sh").success());
    }

    /// Waits until the program has ended; its exit status and all that came.
    #[track_caller]
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let mut status = None;
        wait_until("the program has ended", || {
            status = self.child.try_wait().expect("wait");
            status.is_some()
        });
        // The reader may be behind by a moment.
        wait_until("all was read", || Arc::strong_count(&self.seen) == 1);
        (status.expect("it has ended").code(), self.seen())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended in order, as it should.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
