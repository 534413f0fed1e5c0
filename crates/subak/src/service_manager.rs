//! What the service manager (systemd) hears: that it serves, that it takes a configuration over, how
//! it is, and, where a watchdog waits for it, that every worker and the control side still turn.
//!
//! The watchdog hears of life only after all workers have answered from their own loops: a balancer of
//! which one worker hangs loses a share of its clients, and is better started anew.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use subak_service::{Notifier, Told};

use crate::control::Control;

/// From one line about how it is to the next.
const STATUS_PAUSE: Duration = Duration::from_secs(5);
/// Beyond `shutdown_timeout`, what a stop may take.
const STOP_MARGIN: Duration = Duration::from_secs(10);

/// The service manager, if there is one that wants to hear.
pub(crate) struct ServiceManager(Option<Listening>);

struct Listening {
    notifier: Notifier,
    /// When the last line about how it is was told.
    status_told: Instant,
    /// Workers are asked this often; `None`: no watchdog.
    ask_every: Option<Duration>,
    asked: Instant,
    is_waiting: bool,
    /// Whether the log has been told of workers that do not answer.
    has_complained: bool,
}

impl ServiceManager {
    /// By NOTIFY_SOCKET and WATCHDOG_USEC.
    pub(crate) fn from_environment() -> ServiceManager {
        ServiceManager(Notifier::from_environment().map(|notifier| {
            let now = Instant::now();
            let ask_every = notifier.watchdog().map(|limit| limit / 2);
            Listening {
                notifier,
                status_told: now,
                ask_every,
                asked: now,
                is_waiting: false,
                has_complained: false,
            }
        }))
    }

    /// It serves, by the newest configuration that is right.
    pub(crate) fn ready(&mut self, control: &Control) {
        if let Some(listening) = &mut self.0 {
            listening.notifier.tell(&Told::Ready);
            listening.tell_status(control);
        }
    }

    /// It is about to read its configuration again.
    pub(crate) fn reloading(&self) {
        if let Some(listening) = &self.0 {
            listening.notifier.tell(&Told::Reloading);
        }
    }

    /// It ends within this time.
    pub(crate) fn stopping(&self, limit: Duration) {
        if let Some(listening) = &self.0 {
            listening.notifier.tell(&Told::Stopping(limit.saturating_add(STOP_MARGIN)));
        }
    }

    /// Called at every turn of the control side.
    pub(crate) fn attend(&mut self, control: &Control) {
        let Some(listening) = &mut self.0 else { return };
        if listening.status_told.elapsed() >= STATUS_PAUSE {
            listening.tell_status(control);
        }
        listening.feed_watchdog(control);
    }
}

impl Listening {
    fn tell_status(&mut self, control: &Control) {
        self.status_told = Instant::now();
        self.notifier.tell(&Told::Status(&status(control)));
    }

    fn feed_watchdog(&mut self, control: &Control) {
        let Some(every) = self.ask_every else { return };
        if self.is_waiting {
            let silent: Vec<_> = control.silent_workers().map(|worker| worker.0).collect();
            if silent.is_empty() {
                self.notifier.tell(&Told::Alive);
                self.is_waiting = false;
                self.has_complained = false;
            } else if !self.has_complained && self.asked.elapsed() >= every {
                self.has_complained = true;
                tracing::error!(workers = ?silent, "workers do not answer; the watchdog is not told that all is well");
            }
        } else if self.asked.elapsed() >= every {
            control.ask_alive();
            self.asked = Instant::now();
            self.is_waiting = true;
        }
    }
}

/// A line for `systemctl status`.
fn status(control: &Control) -> String {
    let mut line =
        format!("generation {}, {} connections", control.generation(), control.connections());
    let problems = control.problems().list();
    if let Some(first) = problems.first() {
        // Writing to a String cannot fail.
        let _ = write!(
            line,
            "; {} problems, the first: {} {}",
            problems.len(),
            first.kind.name(),
            first.what
        );
    }
    line
}
