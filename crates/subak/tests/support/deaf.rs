//! An address that answers no SYN, until it is told to: a socket whose queue is full.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use super::endpoint::{Endpoint, Served};
use super::socket::Socket;

/// Who connects to it waits, neither accepted nor refused.
pub(crate) struct Deaf {
    listener: TcpListener,
    address: SocketAddr,
    /// They fill the queue.
    waiting: Vec<TcpStream>,
}

impl Deaf {
    #[track_caller]
    pub(crate) fn new() -> Deaf {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let socket = socket.expect("socket");
        let any: SocketAddr = "127.0.0.1:0".parse().expect("address");
        socket.bind(&any.into()).expect("bind");
        socket.listen(0).expect("listen");
        let listener = TcpListener::from(socket);
        let address = listener.local_addr().expect("its address");
        let mut waiting = Vec::new();
        while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
            waiting.push(stream);
            assert!(waiting.len() < 100, "its queue does not fill");
        }
        Deaf { listener, address, waiting }
    }

    /// As a configuration writes it.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Connections that somebody is opening to it, by the kernel's table.
    pub(crate) fn attempts(&self) -> usize {
        const SYN_SENT: &str = "02";
        let table = std::fs::read_to_string("/proc/net/tcp").expect("the kernel's table");
        let port = format!(":{:04X}", self.address.port());
        let is_attempt = |line: &&str| {
            let mut words = line.split_whitespace().skip(2);
            words.next().is_some_and(|remote| remote.ends_with(&port))
                && words.next() == Some(SYN_SENT)
        };
        table.lines().filter(is_attempt).count()
    }

    /// Listens from now on, as an endpoint with this script.
    pub(crate) fn hear(self, script: impl Fn(&mut Served) + Send + Sync + 'static) -> Endpoint {
        let Deaf { listener, waiting, .. } = self;
        for stream in waiting {
            drop(stream);
            listener.accept().expect("the queue holds them");
        }
        Endpoint::on(listener, script)
    }
}
