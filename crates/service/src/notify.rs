//! What the service manager is told: systemd's notification socket.
//!
//! Datagrams of `KEY=value` lines to the socket that NOTIFY_SOCKET names (sd_notify(3)). Our own few
//! lines, because they must never wait: a manager that does not read must not stop the control side.
//! What cannot be sent at once is lost, and the next message says the same again.

use std::fmt::Write as _;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// One message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Told<'a> {
    /// It serves, and by the newest configuration.
    Ready,
    /// It is about to take a configuration over.
    Reloading,
    /// It is ending, and needs at most so long.
    Stopping(Duration),
    /// How it is, in a line for people.
    Status(&'a str),
    /// It is alive.
    Alive,
}

/// The way to the service manager that started this process.
#[derive(Debug)]
pub struct Notifier {
    socket: UnixDatagram,
    manager: SocketAddr,
    watchdog: Option<Duration>,
}

impl Notifier {
    /// `None` where no service manager asked to be told.
    pub fn from_environment() -> Option<Notifier> {
        let name = std::env::var_os("NOTIFY_SOCKET")?;
        let manager = address(name.as_bytes())?;
        let socket = UnixDatagram::unbound().ok()?;
        socket.set_nonblocking(true).ok()?;
        Some(Notifier { socket, manager, watchdog: watchdog() })
    }

    /// How often it has to be said that this process is alive; `None`: nobody waits for it.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Tells, or does not: it never waits.
    pub fn tell(&self, told: &Told<'_>) {
        let _ = self.socket.send_to_addr(text(told).as_bytes(), &self.manager);
    }
}

/// A path, or after `@` a name without a file.
fn address(name: &[u8]) -> Option<SocketAddr> {
    match name {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest).ok(),
        [b'/', ..] => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name)).ok(),
        _ => None,
    }
}

/// WATCHDOG_USEC, unless WATCHDOG_PID names another process.
fn watchdog() -> Option<Duration> {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    if number("WATCHDOG_PID").is_some_and(|pid| pid != u64::from(std::process::id())) {
        return None;
    }
    number("WATCHDOG_USEC").filter(|time| *time > 0).map(Duration::from_micros)
}

fn text(told: &Told<'_>) -> String {
    match told {
        Told::Ready => "READY=1".to_owned(),
        Told::Reloading => {
            let now = clock_gettime(ClockId::Monotonic);
            let micros = now.tv_sec.saturating_mul(1_000_000) + now.tv_nsec / 1000;
            format!("RELOADING=1\nMONOTONIC_USEC={micros}")
        }
        Told::Stopping(limit) => {
            format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={}", limit.as_micros())
        }
        Told::Status(line) => {
            let mut text = String::from("STATUS=");
            // A second line would be a second message.
            let _ = write!(text, "{}", line.replace(['\n', '\r'], " "));
            text
        }
        Told::Alive => "WATCHDOG=1".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Told, address, text};
    use std::os::linux::net::SocketAddrExt;
    use std::path::Path;
    use std::time::Duration;

    #[test]
    fn messages_are_what_sd_notify_describes() {
        assert_eq!(text(&Told::Ready), "READY=1");
        assert_eq!(text(&Told::Alive), "WATCHDOG=1");
        let stopping = Told::Stopping(Duration::from_secs(30));
        assert_eq!(text(&stopping), "STOPPING=1\nEXTEND_TIMEOUT_USEC=30000000");
        assert_eq!(text(&Told::Status("two\nREADY=1")), "STATUS=two READY=1");
        let reloading = text(&Told::Reloading);
        let time = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
        assert!(time.parse::<u64>().unwrap() > 0);
    }

    #[test]
    fn a_socket_is_a_path_or_a_name() {
        let path = address(b"/run/notify").unwrap();
        assert_eq!(path.as_pathname(), Some(Path::new("/run/notify")));
        assert_eq!(address(b"@/org/notify").unwrap().as_abstract_name(), Some(&b"/org/notify"[..]));
        assert!(address(b"").is_none());
        assert!(address(b"vsock:2:1234").is_none());
    }
}
