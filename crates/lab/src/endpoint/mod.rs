//! A test endpoint for HTTP/1.1: very cheap, or as slow as it is told to be.
//!
//! One thread serves any number of named endpoints, each with its own address and
//! its own counters. A request costs one `recv` and one `send`; the answers are
//! made when the endpoint starts. So the balancer in front of it, and not the
//! endpoint, is what a load test measures.
//!
//! | asked for | answer |
//! |---|---|
//! | `/64k` (with or without a query) | 200 and a body of 64 KiB |
//! | `/__stats` | what all endpoints of this thread have seen, as JSON; no hit |
//! | `/__health` | 200 at once; no hit |
//! | `PUT /__condition?fault=reset` | what all endpoints have seen; from now on this one has that [`Condition`] |
//! | any other target | 200 and the endpoint's name (or [`Behaviour::body`] bytes) |
//! | `HEAD` | the same head without the body |
//! | `Upgrade` | 101, and from then on a WebSocket that says nothing and reads everything |
//! | what is not HTTP/1.x | 400, and the connection is closed |
//!
//! An endpoint with a [`Behaviour`] takes time: a service time is drawn for each request, so many are
//! in service at once, the others wait in line, first come first served; what is beyond the line is
//! answered 503. Service is a timer, or work of threads that burn a core's time.
//!
//! Every answer names its endpoint in [`NAME_HEADER`]. Bodies of requests
//! (`Content-Length` or chunked) are read and thrown away, `Expect: 100-continue`
//! is granted, pipelined requests are answered in order, HTTP/1.0 and
//! `Connection: close` end the connection.
//!
//! ```
//! use subak_lab::endpoint::{Endpoints, EndpointSpec};
//! # fn main() -> std::io::Result<()> {
//! let any = "127.0.0.1:0".parse().expect("an address");
//! let running = Endpoints::start(vec![EndpointSpec::new("a", any), EndpointSpec::new("b", any)])?;
//! println!("a listens on {}, was hit {} times", running.address(0), running.hits(0));
//! running.stop();
//! # Ok(())
//! # }
//! ```

mod answers;
mod condition;
mod connection;
mod held;
mod latest;
mod place;
mod request;
mod server;
mod service;
mod stats;
mod works;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use crate::machine;

pub use condition::{Condition, Fault};
pub use place::Behaviour;
pub use service::{LONGEST, Service};

use place::Counters;

/// The header every answer names its endpoint in.
pub const NAME_HEADER: &str = "X-Endpoint";
/// Bytes in the body of `/64k`.
pub const LARGE_BODY: usize = 64 * 1024;

/// One endpoint to start.
#[derive(Clone, Debug)]
pub struct EndpointSpec {
    /// Its name, sent with every answer. Visible ASCII.
    pub name: String,
    /// Where it listens; port 0 lets the kernel choose.
    pub address: SocketAddr,
    /// How it behaves.
    pub behaviour: Behaviour,
}

impl EndpointSpec {
    /// An endpoint with this name and address, that answers at once.
    pub fn new(name: impl Into<String>, address: SocketAddr) -> EndpointSpec {
        EndpointSpec { name: name.into(), address, behaviour: Behaviour::default() }
    }

    /// The same, behaving so.
    #[must_use]
    pub fn behaving(self, behaviour: Behaviour) -> EndpointSpec {
        EndpointSpec { behaviour, ..self }
    }
}

/// Running endpoints. Dropping them stops the thread and closes every connection.
#[derive(Debug)]
pub struct Endpoints {
    addresses: Vec<SocketAddr>,
    counters: Arc<[Counters]>,
    /// Closing it wakes the thread, which then ends.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Endpoints {
    /// Binds all addresses and serves them from one new thread.
    ///
    /// # Errors
    /// An address cannot be bound (all are, or none stays), a name is not visible
    /// ASCII, or the thread cannot be started.
    pub fn start(specs: Vec<EndpointSpec>) -> io::Result<Endpoints> {
        Endpoints::start_on(specs, None)
    }

    /// As [`Endpoints::start`], with the thread bound to `cpu`.
    ///
    /// # Errors
    /// As [`Endpoints::start`], or the CPU is not allowed.
    pub fn start_on(specs: Vec<EndpointSpec>, cpu: Option<usize>) -> io::Result<Endpoints> {
        if let Some(spec) = specs.iter().find(|s| !s.name.bytes().all(|b| b.is_ascii_graphic())) {
            let what = format!("endpoint name {:?} is not visible ASCII", spec.name);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let listeners: Vec<TcpListener> = specs
            .iter()
            .map(|spec| {
                TcpListener::bind(spec.address).map_err(|error| {
                    io::Error::new(error.kind(), format!("{}: {error}", spec.address))
                })
            })
            .collect::<io::Result<_>>()?;
        let addresses = listeners.iter().map(TcpListener::local_addr).collect::<io::Result<_>>()?;
        let counters: Arc<[Counters]> = specs.iter().map(|_| Counters::default()).collect();
        let (stop, stopped) = UnixStream::pair()?;
        let server = server::Server::new(specs, listeners, counters.clone(), stopped)?;
        let thread = thread::Builder::new().name("endpoints".to_owned()).spawn(move || {
            if let Some(cpu) = cpu {
                machine::pin_to(cpu)?;
            }
            server.run()
        })?;
        Ok(Endpoints { addresses, counters, stop: Some(stop), thread: Some(thread) })
    }

    /// How many endpoints there are.
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Where the endpoint with this index listens.
    pub fn address(&self, index: usize) -> SocketAddr {
        self.addresses[index]
    }

    /// All addresses, in the order of the specs.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Requests this endpoint has answered.
    pub fn hits(&self, index: usize) -> u64 {
        self.counters[index].hits.load(Ordering::Relaxed)
    }

    /// Requests every endpoint has answered, in the order of the specs.
    pub fn all_hits(&self) -> Vec<u64> {
        (0..self.len()).map(|index| self.hits(index)).collect()
    }

    /// Connections this endpoint has accepted since it started.
    pub fn connections(&self, index: usize) -> u64 {
        self.counters[index].connections.load(Ordering::Relaxed)
    }

    /// Stops the thread and closes all connections and listeners; returns when that
    /// is done. What the endpoints counted is returned: hits in the order of the specs.
    pub fn stop(mut self) -> Vec<u64> {
        self.end();
        self.all_hits()
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && let Ok(Err(error)) = thread.join()
        {
            eprintln!("endpoints: {error}");
        }
    }
}

impl Drop for Endpoints {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests;
