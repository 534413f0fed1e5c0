//! Endpoints that follow a script, and remember what they were sent.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::message::{Incoming, Message};
use super::{Socket, wait_until};

/// An endpoint: each connection runs the script in a thread of its own and is closed after it.
pub(crate) struct Endpoint {
    address: Place,
    shared: Arc<Shared>,
}

#[derive(Clone)]
enum Place {
    Inet(SocketAddr),
    Unix(PathBuf),
}

#[derive(Default)]
struct Shared {
    stopped: AtomicBool,
    accepted: AtomicUsize,
    ended: AtomicUsize,
    requests: Mutex<Vec<Message>>,
    /// All bytes of each connection, as far as its script has read them.
    received: Mutex<Vec<Vec<u8>>>,
}

/// One connection as its script sees it.
pub(crate) struct Served {
    /// Counts the endpoint's connections, from 0.
    pub(crate) number: usize,
    incoming: Incoming,
    shared: Arc<Shared>,
}

impl Endpoint {
    /// On an IPv4 address of loopback.
    pub(crate) fn scripted(script: impl Fn(&mut Served) + Send + Sync + 'static) -> Endpoint {
        Endpoint::on_inet("127.0.0.1:0", script)
    }

    /// On an IPv6 address of loopback.
    pub(crate) fn scripted_v6(script: impl Fn(&mut Served) + Send + Sync + 'static) -> Endpoint {
        Endpoint::on_inet("[::1]:0", script)
    }

    /// On a unix socket.
    pub(crate) fn scripted_unix(
        path: &Path,
        script: impl Fn(&mut Served) + Send + Sync + 'static,
    ) -> Endpoint {
        let listener = UnixListener::bind(path).expect("bind an endpoint");
        let accept = move || listener.accept().map(|(stream, _)| Socket::unix(stream));
        Endpoint::run(Place::Unix(path.to_owned()), accept, script)
    }

    /// On this address.
    pub(crate) fn on_inet(
        address: &str,
        script: impl Fn(&mut Served) + Send + Sync + 'static,
    ) -> Endpoint {
        Endpoint::on(TcpListener::bind(address).expect("bind an endpoint"), script)
    }

    /// On this socket.
    pub(super) fn on(
        listener: TcpListener,
        script: impl Fn(&mut Served) + Send + Sync + 'static,
    ) -> Endpoint {
        let address = listener.local_addr().expect("its address");
        let accept = move || listener.accept().map(|(stream, _)| Socket::tcp(stream));
        Endpoint::run(Place::Inet(address), accept, script)
    }

    /// Answers every request by these bytes, on connections that stay open.
    pub(crate) fn answering(answer: impl AsRef<[u8]>) -> Endpoint {
        let answer = answer.as_ref().to_vec();
        Endpoint::scripted(move |served| {
            while served.request().is_some() {
                served.send(&answer);
            }
        })
    }

    /// Answers every connection's first request by these bytes and closes it.
    pub(crate) fn answering_once(answer: impl AsRef<[u8]>) -> Endpoint {
        let answer = answer.as_ref().to_vec();
        Endpoint::scripted(move |served| {
            if served.request().is_some() {
                served.send(&answer);
            }
        })
    }

    /// Answers every request by its own name.
    pub(crate) fn named(name: &str) -> Endpoint {
        Endpoint::answering(super::ok(name))
    }

    fn run(
        address: Place,
        accept: impl Fn() -> io::Result<Socket> + Send + 'static,
        script: impl Fn(&mut Served) + Send + Sync + 'static,
    ) -> Endpoint {
        let shared = Arc::new(Shared::default());
        let endpoint = Endpoint { address, shared: shared.clone() };
        let script = Arc::new(script);
        std::thread::spawn(move || {
            while let Ok(socket) = accept() {
                if shared.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let number = shared.accepted.fetch_add(1, Ordering::SeqCst);
                lock(&shared.received).push(Vec::new());
                let incoming = Incoming::new(socket);
                let (script, shared) = (script.clone(), shared.clone());
                std::thread::spawn(move || {
                    let mut served = Served { number, incoming, shared };
                    script(&mut served);
                    served.shared.ended.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        endpoint
    }

    /// As a configuration writes it.
    pub(crate) fn address(&self) -> String {
        match &self.address {
            Place::Inet(address) => address.to_string(),
            Place::Unix(path) => format!("unix:{}", path.display()),
        }
    }

    /// Its port, where it has one.
    pub(crate) fn port(&self) -> u16 {
        match &self.address {
            Place::Inet(address) => address.port(),
            Place::Unix(path) => panic!("{} has no port", path.display()),
        }
    }

    /// Requests read so far, in the order they were complete.
    pub(crate) fn requests(&self) -> Vec<Message> {
        lock(&self.shared.requests).clone()
    }

    /// The only request so far.
    #[track_caller]
    pub(crate) fn request(&self) -> Message {
        let mut requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        requests.remove(0)
    }

    /// All bytes of each connection, as far as they were read.
    pub(crate) fn received(&self) -> Vec<Vec<u8>> {
        lock(&self.shared.received).clone()
    }

    /// Connections accepted so far.
    pub(crate) fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Connections whose script is running.
    pub(crate) fn open(&self) -> usize {
        self.accepted() - self.shared.ended.load(Ordering::SeqCst)
    }

    /// Waits until `count` requests were read completely.
    #[track_caller]
    pub(crate) fn wait_for_requests(&self, count: usize) {
        wait_until("the endpoint has its requests", || lock(&self.shared.requests).len() >= count);
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Only to wake the thread that accepts.
        match &self.address {
            Place::Inet(address) => {
                let _ = TcpStream::connect_timeout(address, Duration::from_secs(1));
            }
            Place::Unix(path) => {
                let _ = UnixStream::connect(path);
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

impl Served {
    /// Reads a whole request; none when there is no more, or none that is whole.
    pub(crate) fn request(&mut self) -> Option<Message> {
        let mut head = self.head()?;
        self.body(&mut head).ok()?;
        lock(&self.shared.requests).push(head.clone());
        Some(head)
    }

    /// Reads a request's head and leaves its body.
    pub(crate) fn head(&mut self) -> Option<Message> {
        let Served { number, incoming, shared } = self;
        incoming.head(&mut |news| lock(&shared.received)[*number].extend_from_slice(news)).ok()?
    }

    /// Reads the body that this head announces.
    pub(crate) fn body(&mut self, head: &mut Message) -> io::Result<()> {
        let Served { number, incoming, shared } = self;
        incoming.body(head, false, &mut |news| {
            lock(&shared.received)[*number].extend_from_slice(news);
        })
    }

    /// Sends bytes. A connection that is gone takes nothing, which tests see elsewhere.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.incoming.socket.write_all(bytes.as_ref());
    }

    /// Exactly the next `count` bytes; none when they do not come.
    pub(crate) fn read(&mut self, count: usize) -> Option<Vec<u8>> {
        let mut bytes = self.incoming.take_up_to(count);
        let had = bytes.len();
        bytes.resize(count, 0);
        self.incoming.socket.read_exact(&mut bytes[had..]).ok()?;
        Some(bytes)
    }

    /// Drops what was read ahead; says how much it was.
    pub(crate) fn take_ahead(&mut self) -> usize {
        self.incoming.take_all().len()
    }

    /// Reads until the other side ends or resets the connection.
    pub(crate) fn read_to_end(&mut self) -> Vec<u8> {
        let Served { number, incoming, shared } = self;
        let mut see = |news: &[u8]| lock(&shared.received)[*number].extend_from_slice(news);
        while matches!(incoming.fill(&mut see), Ok(1..)) {}
        incoming.take_all()
    }

    /// Closes by a reset when the script ends.
    pub(crate) fn reset(&mut self) {
        self.incoming.socket.reset_on_close();
    }

    /// The socket itself, without what was read ahead.
    pub(crate) fn socket(&mut self) -> &mut Socket {
        &mut self.incoming.socket
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
