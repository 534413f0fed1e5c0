//! Sockets that listen, and where they come from.
//!
//! Closing one socket of a reuse-port group drops the connections that wait in its own queue. So a
//! listener's sockets are made once, all of them before anything is published, and a reload that
//! keeps the listener keeps them.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::kernel_buffers;
use socket2::{Domain, Protocol, Socket, Type};
use subak_base::Address;

/// Connections the kernel may hold before they are accepted (capped by net.core.somaxconn).
const BACKLOG: i32 = 4096;

/// From one look whether a port has become free to the next.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// One socket that listens, for one worker.
#[derive(Debug)]
pub struct ListenSocket {
    pub(crate) descriptor: OwnedFd,
    pub(crate) unix: bool,
}

/// Why an address could not be bound, with what to do.
#[derive(Debug)]
pub struct BindError {
    /// What was to be bound.
    pub address: Address,
    /// What the system said.
    pub error: io::Error,
}

impl std::fmt::Display for BindError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "cannot listen on {}: {}", self.address, self.error)?;
        match (self.error.raw_os_error(), &self.address) {
            (Some(libc::EADDRINUSE), Address::Inet(address)) => write!(
                out,
                "\n  another process has this port; find it with `ss -ltnp 'sport = :{}'`, stop it or \
                 choose another port",
                address.port()
            ),
            (Some(libc::EADDRINUSE), Address::Unix(path)) => write!(
                out,
                "\n  another process listens there; find it with `ss -lxp | grep {}`",
                path.display()
            ),
            (Some(libc::EACCES | libc::EPERM), Address::Inet(address)) => write!(
                out,
                "\n  ports below 1024 need a right: start as root, or `setcap \
                 cap_net_bind_service=+ep` on the binary, or in a unit of systemd \
                 AmbientCapabilities=CAP_NET_BIND_SERVICE, or choose a port above 1023 instead of {}",
                address.port()
            ),
            (Some(libc::EACCES | libc::EPERM | libc::ENOENT), Address::Unix(path)) => write!(
                out,
                "\n  the directory of {} must exist and be writable for this user",
                path.display()
            ),
            (Some(libc::EADDRNOTAVAIL), _) => write!(
                out,
                "\n  no interface of this machine has that address; `ip address` lists them"
            ),
            (Some(libc::EAFNOSUPPORT), _) => {
                write!(out, "\n  this kernel has no such address family (IPv6 switched off?)")
            }
            (Some(libc::EMFILE | libc::ENFILE), _) => {
                write!(
                    out,
                    "\n  out of file descriptors: raise `ulimit -n` (LimitNOFILE in systemd)"
                )
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for BindError {}

/// The provider of listening sockets: today, by binding.
#[derive(Clone, Copy, Debug)]
pub struct Sockets<'a> {
    /// One socket of every listener for each worker.
    pub workers: usize,
    /// Where this process listens already. Such an address may overlap with a new one: `0.0.0.0:80`
    /// takes over from `127.0.0.1:80`, or stands beside it.
    pub own: &'a [Address],
    /// How long a port that is taken may need to become free. A listener that a reload has removed is
    /// closed by its workers a little after the reload, and the ports of a process that stops are closed
    /// a little after its signal.
    pub patience: Duration,
}

impl Sockets<'_> {
    /// The sockets of one address, one for each worker.
    ///
    /// # Errors
    /// [`BindError`]; then none of them is left open.
    pub fn bind(&self, address: &Address) -> Result<Vec<ListenSocket>, BindError> {
        let bound = match address {
            Address::Inet(inet) => self.bind_inet(*inet),
            Address::Unix(path) => self.bind_unix(path),
        };
        bound.map_err(|error| BindError { address: address.clone(), error })
    }

    fn bind_inet(&self, address: SocketAddr) -> io::Result<Vec<ListenSocket>> {
        // A reuse-port group lets a second process of the same user in without a word. A socket
        // outside the group finds out whether somebody listens there already, unless it is ourselves.
        if !self.own.iter().any(|own| overlaps(own, address)) {
            expect_free(address, self.patience)?;
        }
        (0..self.workers)
            .map(|_| {
                let socket = inet_socket(address, true)?;
                if kernel_buffers::are_small() {
                    // Connections inherit it.
                    socket.set_tcp_notsent_lowat(kernel_buffers::UNSENT)?;
                }
                socket.listen(BACKLOG)?;
                Ok(ListenSocket { descriptor: socket.into(), unix: false })
            })
            .collect()
    }

    fn bind_unix(&self, path: &Path) -> io::Result<Vec<ListenSocket>> {
        remove_stale(path)?;
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.bind(&socket2::SockAddr::unix(path)?)?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        (0..self.workers)
            .map(|_| {
                let socket = socket.try_clone()?;
                Ok(ListenSocket { descriptor: socket.into(), unix: true })
            })
            .collect()
    }
}

/// Waits until nobody listens there.
fn expect_free(address: SocketAddr, patience: Duration) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match inet_socket(address, false) {
            Ok(_) => return Ok(()),
            Err(error)
                if error.kind() != io::ErrorKind::AddrInUse || began.elapsed() >= patience =>
            {
                return Err(error);
            }
            Err(_) => std::thread::sleep(LOOK_AGAIN),
        }
    }
}

/// Whether two addresses compete for the same connections.
fn overlaps(own: &Address, address: SocketAddr) -> bool {
    let Address::Inet(own) = own else { return false };
    own.port() == address.port()
        && own.is_ipv4() == address.is_ipv4()
        && (own.ip() == address.ip() || own.ip().is_unspecified() || address.ip().is_unspecified())
}

fn inet_socket(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if shared {
        socket.set_reuse_port(true)?;
    }
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // Accepted sockets inherit it: one system call less for each of them.
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Removes a socket file that nobody listens on any more; leaves everything else alone.
fn remove_stale(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt;
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !metadata.file_type().is_socket() {
        return Err(io::Error::from_raw_os_error(libc::EADDRINUSE));
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        _ => Err(io::Error::from_raw_os_error(libc::EADDRINUSE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BRIEF: Duration = Duration::from_millis(200);

    #[test]
    fn a_port_that_is_taken_is_reported_even_by_a_process_of_the_same_user() {
        let sockets = Sockets { workers: 2, own: &[], patience: BRIEF };
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let held = sockets.bind(&Address::Inet(free)).unwrap();
        assert_eq!(held.len(), 2);
        let error = sockets.bind(&Address::Inet(free)).unwrap_err();
        assert_eq!(error.error.raw_os_error(), Some(libc::EADDRINUSE));
        assert!(error.to_string().contains("ss -ltnp"), "{error}");
    }

    #[test]
    fn a_port_that_is_about_to_be_closed_is_waited_for() {
        let sockets = Sockets { workers: 1, own: &[], patience: BRIEF };
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let held = sockets.bind(&Address::Inet(free)).unwrap();
        let closing = std::thread::spawn(move || {
            std::thread::sleep(LOOK_AGAIN);
            drop(held);
        });
        sockets.bind(&Address::Inet(free)).unwrap();
        closing.join().unwrap();
    }

    #[test]
    fn an_address_may_overlap_with_those_of_the_process_itself() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let wide = SocketAddr::from(([0; 4], free.port()));
        let _held =
            Sockets { workers: 1, own: &[], patience: BRIEF }.bind(&Address::Inet(free)).unwrap();
        assert!(
            Sockets { workers: 1, own: &[], patience: BRIEF }.bind(&Address::Inet(wide)).is_err()
        );
        let other = Address::Inet(SocketAddr::from(([127, 0, 0, 1], free.port() ^ 1)));
        assert!(
            Sockets { workers: 1, own: &[other], patience: BRIEF }
                .bind(&Address::Inet(wide))
                .is_err()
        );
        Sockets { workers: 1, own: &[Address::Inet(free)], patience: BRIEF }
            .bind(&Address::Inet(wide))
            .unwrap();
    }

    #[test]
    fn a_stale_socket_file_is_replaced_and_a_living_one_is_not() {
        let path = std::env::temp_dir().join(format!("subak-listen-{}.sock", std::process::id()));
        let sockets = Sockets { workers: 1, own: &[], patience: BRIEF };
        let address = Address::Unix(path.clone());
        let held = sockets.bind(&address).unwrap();
        assert!(sockets.bind(&address).is_err());
        drop(held);
        drop(sockets.bind(&address).unwrap());
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "not a socket").unwrap();
        assert!(sockets.bind(&address).is_err());
        std::fs::remove_file(&path).unwrap();
    }
}
