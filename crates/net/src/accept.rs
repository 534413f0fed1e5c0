//! Accepting connections, and spreading them over the workers.
//!
//! The kernel gives a new connection to one socket of the reuse-port group by a hash: with few
//! long-lived connections that is luck. A worker that accepts therefore hands the socket to another
//! worker when that one holds clearly fewer.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::{TcpStream, UnixStream};

use crate::connect::is_exhausted;
use crate::deadline::Deadline;
use crate::descriptors::Descriptors;
use crate::listen::ListenSocket;
use crate::peer::PeerAddress;
use crate::stream::Stream;
use crate::worker::{ListenerId, WorkerCount};

/// Pause when there is no room or no descriptor for one more client.
const PAUSE: Duration = Duration::from_millis(100);
/// Connections accepted in a row before what is accepted already gets a turn.
const AT_ONCE: usize = 64;
/// A worker with fewer connections than this keeps what it accepts.
const HAND_OVER_FROM: usize = 4;

/// A connection a client has made.
#[derive(Debug)]
pub struct Accepted {
    /// The connection.
    pub stream: Stream,
    /// Who made it.
    pub peer: PeerAddress,
    /// Where it arrived.
    pub listener: ListenerId,
    /// Counts the connection as long as it is kept.
    pub guard: ConnectionGuard,
}

/// One client connection in the books of the process and of its worker.
#[derive(Debug)]
pub struct ConnectionGuard {
    worker: Arc<WorkerCount>,
    descriptors: Arc<Descriptors>,
}

impl ConnectionGuard {
    fn new(worker: Arc<WorkerCount>, descriptors: Arc<Descriptors>) -> ConnectionGuard {
        worker.add();
        descriptors.add();
        ConnectionGuard { worker, descriptors }
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.worker.remove();
        self.descriptors.remove();
    }
}

/// An accepted socket on its way to the worker that will serve it.
#[derive(Debug)]
pub(crate) struct Arrival {
    descriptor: OwnedFd,
    peer: PeerAddress,
    listener: ListenerId,
    guard: ConnectionGuard,
}

impl Arrival {
    /// Registers the socket with this worker.
    pub(crate) fn land(self) -> io::Result<Accepted> {
        let stream = match self.peer {
            PeerAddress::Inet(_) => Stream::from(TcpStream::from_std(self.descriptor.into())?),
            PeerAddress::Unix => Stream::from(UnixStream::from_std(self.descriptor.into())?),
        };
        Ok(Accepted { stream, peer: self.peer, listener: self.listener, guard: self.guard })
    }
}

/// Where a worker puts what it accepts.
pub(crate) trait Landing {
    /// Serves a connection on this worker.
    fn keep(&self, arrival: Arrival);
    /// Gives a connection to worker `other`.
    fn hand_over(&self, other: usize, arrival: Arrival);
    /// The connections each worker holds, and which worker this is.
    fn counts(&self) -> (&[Arc<WorkerCount>], usize);
    /// A random number.
    fn random(&self) -> u64;
    /// Has an idle connection end, to make room for another client. False when there is none.
    fn make_room(&self) -> bool;
    /// The process's books.
    fn descriptors(&self) -> &Arc<Descriptors>;
}

/// Accepts until `closing` resolves; then takes what still waits in the queue, and closes.
pub(crate) async fn accept_loop<L: Landing>(
    socket: ListenSocket,
    listener: ListenerId,
    landing: L,
    closing: Arc<tokio::sync::Notify>,
) {
    // SAFETY: an owned descriptor stays open, and the same, until the `AsyncFd` that owns it is dropped.
    let registered =
        unsafe { AsyncFd::register_with_interest(socket.descriptor, Interest::READABLE) };
    let ready = match registered {
        Ok(ready) => ready,
        Err(error) => {
            tracing::error!(%error, "cannot watch a listening socket; this worker accepts nothing there");
            return;
        }
    };
    let pause = Deadline::new();
    loop {
        let closed = tokio::select! {
            // Closing comes first: while there is no room the socket is always readable.
            biased;
            () = closing.notified() => true,
            guard = ready.readable() => match guard {
                Ok(mut guard) => {
                    let drained = accept_some(&ready, socket.unix, listener, &landing);
                    match drained {
                        Ok(Drained::Yes) => guard.clear_ready(),
                        Ok(Drained::NotYet) => tokio::task::yield_now().await,
                        Err(reason) => {
                            complain(&reason, landing.descriptors());
                            pause.set(PAUSE);
                            pause.passed().await;
                        }
                    }
                    false
                }
                Err(error) => {
                    tracing::error!(%error, "a listening socket failed");
                    return;
                }
            },
        };
        if closed {
            // What the kernel has accepted for us is served, not reset.
            while let Ok(Drained::NotYet) = accept_some(&ready, socket.unix, listener, &landing) {}
            return;
        }
    }
}

/// Why accepting pauses.
enum Pause {
    Full,
    Exhausted(io::Error),
}

/// Whether the queue of a socket is empty.
enum Drained {
    Yes,
    NotYet,
}

/// Accepts, each in the place of an idle connection where there are as many as allowed, until the queue is empty, or so many that others should have their turn.
fn accept_some<L: Landing>(
    ready: &AsyncFd<OwnedFd>,
    unix: bool,
    listener: ListenerId,
    landing: &L,
) -> Result<Drained, Pause> {
    for _ in 0..AT_ONCE {
        if !landing.descriptors().has_room() {
            if !is_waiting(ready.as_raw_fd()) {
                return Ok(Drained::Yes);
            }
            landing.descriptors().note_full();
            // An idle connection that has been told to go does so in this turn: until then there is one
            // more than allowed.
            if !landing.make_room() {
                return Err(Pause::Full);
            }
        }
        match accept(ready.as_raw_fd(), unix) {
            Ok((descriptor, peer)) => place(descriptor, peer, listener, landing),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Drained::Yes),
            Err(error) if is_exhausted(&error) => {
                landing.descriptors().note_none();
                return Err(Pause::Exhausted(error));
            }
            // The client was gone before it was accepted, or a signal came: look at the next.
            Err(_) => {}
        }
    }
    Ok(Drained::NotYet)
}

/// Keeps a connection, or hands it to another worker with clearly fewer.
fn place<L: Landing>(descriptor: OwnedFd, peer: PeerAddress, listener: ListenerId, landing: &L) {
    let (counts, own) = landing.counts();
    let chosen = choose(own, counts.len(), landing.random(), |worker| counts[worker].connections());
    let guard = ConnectionGuard::new(counts[chosen].clone(), landing.descriptors().clone());
    let arrival = Arrival { descriptor, peer, listener, guard };
    match chosen == own {
        true => landing.keep(arrival),
        false => landing.hand_over(chosen, arrival),
    }
}

/// This worker or one other, drawn by `random`: the other if this one holds at least
/// [`HAND_OVER_FROM`] connections and a tenth more than it.
fn choose(own: usize, workers: usize, random: u64, held: impl Fn(usize) -> usize) -> usize {
    let mine = held(own);
    if workers < 2 || mine < HAND_OVER_FROM {
        return own;
    }
    let step = 1 + (random % (workers as u64 - 1)) as usize;
    let other = (own + step) % workers;
    if held(other) * 11 <= mine * 10 { other } else { own }
}

/// One log line when it begins, then one every ten seconds while it lasts, whatever the number of
/// workers and listeners.
fn complain(reason: &Pause, descriptors: &Descriptors) {
    if !descriptors.may_complain(crate::now()) {
        return;
    }
    match reason {
        Pause::Full => tracing::warn!(
            connections = descriptors.clients(),
            limit = descriptors.most_clients(),
            "as many client connections as allowed: accepting pauses; raise max_connections, or \
             `ulimit -n` (LimitNOFILE in systemd) when that is what sets the limit"
        ),
        Pause::Exhausted(error) => tracing::warn!(
            %error,
            connections = descriptors.clients(),
            "out of file descriptors or memory: accepting pauses; raise `ulimit -n` (LimitNOFILE in \
             systemd)"
        ),
    }
}

/// Whether a connection waits to be accepted.
#[cold]
fn is_waiting(descriptor: i32) -> bool {
    let mut asked = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd, for as long as the call lasts, which does not wait.
    unsafe { libc::poll(&mut asked, 1, 0) > 0 }
}

fn accept(descriptor: i32, unix: bool) -> io::Result<(OwnedFd, PeerAddress)> {
    // SAFETY: an all-zero sockaddr_storage is valid.
    let mut storage: libc::sockaddr_storage = unsafe { mem::zeroed() };
    let mut length = mem::size_of_val(&storage) as libc::socklen_t;
    // SAFETY: `storage` and `length` are valid for writes and describe each other.
    let accepted = unsafe {
        libc::accept4(
            descriptor,
            (&raw mut storage).cast(),
            &mut length,
            libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC,
        )
    };
    if accepted < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor; nobody else owns it.
    let accepted = unsafe { OwnedFd::from_raw_fd(accepted) };
    let peer = if unix { PeerAddress::Unix } else { peer_address(&storage)? };
    Ok((accepted, peer))
}

fn peer_address(storage: &libc::sockaddr_storage) -> io::Result<PeerAddress> {
    let address = match i32::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that this is a sockaddr_in, which is smaller than the storage.
            let inet: &libc::sockaddr_in = unsafe { &*(&raw const *storage).cast() };
            let ip = Ipv4Addr::from(u32::from_be(inet.sin_addr.s_addr));
            SocketAddr::new(IpAddr::V4(ip), u16::from_be(inet.sin_port))
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that this is a sockaddr_in6, smaller than the storage.
            let inet: &libc::sockaddr_in6 = unsafe { &*(&raw const *storage).cast() };
            let ip = Ipv6Addr::from(inet.sin6_addr.s6_addr);
            SocketAddr::new(ip.to_canonical(), u16::from_be(inet.sin6_port))
        }
        _ => return Err(io::ErrorKind::Unsupported.into()),
    };
    Ok(PeerAddress::Inet(address))
}

#[cfg(test)]
mod tests {
    use super::choose;

    #[test]
    fn sixty_four_connections_that_all_arrive_at_one_worker_are_spread_over_eight() {
        let mut held = [0usize; 8];
        let mut random = subak_base::Rng::new(1);
        for _ in 0..64 {
            let chosen = choose(0, 8, random.next_u64(), |worker| held[worker]);
            held[chosen] += 1;
        }
        assert!(held.iter().all(|count| *count >= 4), "{held:?}");
    }

    #[test]
    fn a_worker_keeps_what_it_accepts_while_it_has_little_or_no_more_than_the_other() {
        assert_eq!(choose(0, 2, 0, |worker| [3, 0][worker]), 0);
        assert_eq!(choose(0, 2, 0, |worker| [4, 0][worker]), 1);
        assert_eq!(choose(0, 2, 0, |worker| [20, 19][worker]), 0);
        assert_eq!(choose(0, 2, 0, |worker| [22, 20][worker]), 1);
        assert_eq!(choose(0, 1, 0, |_| 1000), 0);
    }
}
