//! A client that sends the bytes it is told to, and reads answers to their ends.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::ops::Deref;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use super::message::{Incoming, Message};
use super::{PATIENCE, Socket};

/// A connection to Subak.
#[derive(Debug)]
pub(crate) struct Client {
    incoming: Incoming,
}

/// An answer that was read to its end.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    message: Message,
}

impl Deref for Answer {
    type Target = Message;

    fn deref(&self) -> &Message {
        &self.message
    }
}

/// How a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// In order: nothing more will be sent.
    Closed,
    /// By a reset.
    Reset,
}

impl Client {
    #[track_caller]
    pub(crate) fn connect(address: &str) -> Client {
        let address: SocketAddr = address.parse().expect("an address");
        let stream = TcpStream::connect_timeout(&address, PATIENCE).expect("connect to Subak");
        Client::on(Socket::tcp(stream))
    }

    /// As a client whose address is `source`.
    #[track_caller]
    pub(crate) fn connect_from(source: &str, address: &str) -> Client {
        let address: SocketAddr = address.parse().expect("an address");
        let source: IpAddr = source.parse().expect("a source address");
        let socket = socket2::Socket::new(
            socket2::Domain::for_address(address),
            socket2::Type::STREAM,
            None,
        )
        .expect("socket");
        socket.bind(&SocketAddr::from((source, 0)).into()).expect("bind to the source address");
        socket.connect(&address.into()).expect("connect to Subak");
        Client::on(Socket::tcp(socket.into()))
    }

    #[track_caller]
    pub(crate) fn connect_unix(path: &Path) -> Client {
        Client::on(Socket::unix(UnixStream::connect(path).expect("connect to Subak")))
    }

    pub(crate) fn on(socket: Socket) -> Client {
        Client { incoming: Incoming::new(socket) }
    }

    /// The socket itself, without what was read ahead.
    pub(crate) fn socket(&mut self) -> &mut Socket {
        &mut self.incoming.socket
    }

    #[track_caller]
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.incoming.socket.write_all(bytes.as_ref()).expect("send to Subak");
    }

    /// Sends what the other side may not want any more.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.incoming.socket.write_all(bytes.as_ref())
    }

    /// Sends a GET and reads its answer.
    #[track_caller]
    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: example.com\r\n\r\n"));
        self.answer()
    }

    /// The next final answer; interim ones are skipped.
    #[track_caller]
    pub(crate) fn answer(&mut self) -> Answer {
        self.try_answer("GET").expect("a whole answer")
    }

    /// The next final answer to this method.
    #[track_caller]
    pub(crate) fn answer_to(&mut self, method: &str) -> Answer {
        self.try_answer(method).expect("a whole answer")
    }

    pub(crate) fn try_answer(&mut self, method: &str) -> io::Result<Answer> {
        loop {
            let mut answer = self.try_head()?;
            if answer.status != 101 && answer.status < 200 {
                continue;
            }
            let bodiless = method == "HEAD" || matches!(answer.status, 101 | 204 | 304);
            if !bodiless {
                self.incoming.body(&mut answer.message, true, &mut |_| {})?;
            }
            return Ok(answer);
        }
    }

    /// The next head alone, interim or not.
    #[track_caller]
    pub(crate) fn head(&mut self) -> Answer {
        self.try_head().expect("the head of an answer")
    }

    pub(crate) fn try_head(&mut self) -> io::Result<Answer> {
        let message = self.incoming.head(&mut |_| {})?;
        let message = message.ok_or_else(|| io::Error::from(ErrorKind::UnexpectedEof))?;
        let status = message.line.split(' ').nth(1).and_then(|status| status.parse().ok());
        match status {
            Some(status) if message.line.starts_with("HTTP/1.1 ") => Ok(Answer { status, message }),
            _ => Err(io::Error::other(format!("status line {:?}", message.line))),
        }
    }

    /// Exactly the next `count` bytes.
    #[track_caller]
    pub(crate) fn read(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = self.incoming.take_all();
        let had = bytes.len();
        assert!(had <= count, "{had} bytes instead of {count}: {bytes:?}");
        bytes.resize(count, 0);
        self.incoming.socket.read_exact(&mut bytes[had..]).expect("bytes from Subak");
        bytes
    }

    /// Drops what was read ahead; says how much it was.
    pub(crate) fn take_ahead(&mut self) -> usize {
        self.incoming.take_all().len()
    }

    /// Everything until the connection ends, and how it does.
    #[track_caller]
    pub(crate) fn read_to_end(&mut self) -> (Vec<u8>, End) {
        let end = loop {
            match self.incoming.fill(&mut |_| {}) {
                Ok(0) => break End::Closed,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break End::Reset,
                Err(error) => panic!("the connection did not end: {error}"),
            }
        };
        (self.incoming.take_all(), end)
    }

    /// Asserts that the connection ends without another byte.
    #[track_caller]
    pub(crate) fn assert_ends(&mut self) {
        let (rest, _) = self.read_to_end();
        assert!(rest.is_empty(), "more came: {:?}", String::from_utf8_lossy(&rest));
    }

    /// Asserts that the connection stays open and silent for a moment.
    #[track_caller]
    pub(crate) fn assert_silent(&mut self, moment: Duration) {
        self.incoming.socket.set_read_timeout(moment);
        let began = Instant::now();
        match self.incoming.fill(&mut |_| {}) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            other => panic!("{other:?} after {:?}, expected silence", began.elapsed()),
        }
        self.incoming.socket.set_read_timeout(PATIENCE);
    }
}
