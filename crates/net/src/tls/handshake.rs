//! The handshake: from an accepted connection to a secured one, or to why not.
//!
//! The first bytes are read before anything is decided ([`greeting`](super::greeting)): who speaks HTTP
//! in clear is told apart by them, and so are names without a certificate and authorities that come for
//! a challenge. The stream may hold bytes already (behind a PROXY header).

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::SystemTime;

use rustls::server::Accepted;
use rustls::{AlertDescription, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::StartHandshake;
use tokio_rustls::server::TlsStream;

use super::facts::TlsFacts;
use super::greeting::{Greeted, Greeting, Way, fatal};
use super::server::ServerTls;
use crate::chunk::ChunkSize;
use crate::stream::Stream;

/// Why there is no secured connection.
#[derive(Debug)]
pub enum HandshakeError {
    /// The client speaks HTTP in clear. Here is what it has said, to be answered.
    Cleartext(Box<Stream>),
    /// It asks for a name without a certificate, or for none, and those are refused. The client has
    /// been told so on this stream.
    UnknownName(Option<Box<str>>, Box<Stream>),
    /// An authority has seen what it came for.
    Challenge,
    /// The handshake has failed, and the client has been told so on this stream. It is to be closed
    /// as one with unread bytes is, or a reset overtakes the alert.
    Refused(io::Error, Box<Stream>),
    /// The connection has failed.
    Failed(io::Error),
}

impl HandshakeError {
    /// The stream on which the client has been told by an alert.
    pub fn into_told(self) -> Option<Stream> {
        match self {
            HandshakeError::UnknownName(_, stream) | HandshakeError::Refused(_, stream) => {
                Some(*stream)
            }
            _ => None,
        }
    }
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandshakeError::Cleartext(_) => out.write_str("the client speaks HTTP without TLS"),
            HandshakeError::UnknownName(Some(name), _) => {
                write!(out, "no certificate for {name:?}")
            }
            HandshakeError::UnknownName(None, _) => out.write_str("the client names no site"),
            HandshakeError::Challenge => out.write_str("an ACME challenge was answered"),
            HandshakeError::Refused(error, _) | HandshakeError::Failed(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for HandshakeError {}

impl From<io::Error> for HandshakeError {
    fn from(error: io::Error) -> HandshakeError {
        HandshakeError::Failed(error)
    }
}

impl ServerTls {
    /// Makes a freshly accepted TCP stream secure. The caller limits the time.
    ///
    /// # Errors
    /// [`HandshakeError`]; the client has been told by an alert.
    pub async fn accept(&self, mut stream: Stream) -> Result<Stream, HandshakeError> {
        let accepted = match hello(&mut stream).await? {
            Said::Hello(accepted) => accepted,
            Said::Cleartext => return Err(HandshakeError::Cleartext(Box::new(stream))),
            Said::Wrong(error) => return Err(HandshakeError::Refused(error, Box::new(stream))),
        };
        let hello = accepted.client_hello();
        let way = self.way(&hello);
        let config = match way {
            Way::Refused => {
                let name = hello.server_name().map(Box::from);
                send(&mut stream, &fatal(AlertDescription::UnrecognisedName)).await?;
                return Err(HandshakeError::UnknownName(name, Box::new(stream)));
            }
            Way::Challenge => self.for_challenges().clone(),
            Way::Served => self.config(),
        };
        let secured = shake(*accepted, stream, config).await?;
        if way == Way::Challenge {
            return Err(HandshakeError::Challenge);
        }
        let facts = TlsFacts::of_client(secured.get_ref().1);
        // The library asks in full handshakes alone, and gives a session that goes on another ticket.
        if facts.client.as_ref().is_some_and(|client| client.ends_at < seconds_since_1970()) {
            let why = "the client's certificate has expired since its session began";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why).into());
        }
        Ok(Stream::secured(secured.into(), facts))
    }
}

/// The handshake behind the hello.
async fn shake(
    accepted: Accepted,
    stream: Stream,
    config: Arc<ServerConfig>,
) -> Result<TlsStream<TcpStream>, HandshakeError> {
    let (tcp, rest) = stream.into_tcp().ok_or(io::Error::from(io::ErrorKind::Unsupported))?;
    let start = StartHandshake::from_parts(accepted, tcp);
    let mut wrong = None;
    let shaking = start.into_stream_with(config, |connection| {
        // What came behind the hello.
        let mut rest = rest.as_ref().map_or(&[][..], |chunk| chunk.filled());
        while !rest.is_empty() && connection.read_tls(&mut rest).is_ok_and(|count| count > 0) {
            if let Err(error) = connection.process_new_packets() {
                wrong = Some(io::Error::new(io::ErrorKind::InvalidData, error));
                break;
            }
        }
    });
    let mut shaking = shaking.into_fallible();
    let Some(wrong) = wrong else {
        let refused = |(error, tcp)| HandshakeError::Refused(error, Box::new(Stream::from(tcp)));
        return shaking.await.map_err(refused);
    };
    // The library would wait for more bytes before it told the error: it writes the alert first.
    poll_fn(|context| {
        let _ = Pin::new(&mut shaking).poll(context);
        Poll::Ready(())
    })
    .await;
    Err(wrong.into())
}

/// The beginning of a client's connection.
enum Said {
    Hello(Box<Accepted>),
    /// By its first byte, the client does not speak TLS.
    Cleartext,
    /// No hello; the client has been told by an alert.
    Wrong(io::Error),
}

/// Reads the client's hello.
async fn hello(stream: &mut Stream) -> io::Result<Said> {
    let mut greeting = Greeting::default();
    loop {
        if stream.buffered().is_empty()
            && poll_fn(|context| stream.poll_fill(context, ChunkSize::Small)).await? == 0
        {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (count, greeted) = greeting.read(stream.buffered())?;
        stream.consume(count);
        match greeted {
            Greeted::Partly => {}
            Greeted::Cleartext => return Ok(Said::Cleartext),
            Greeted::Hello(accepted) => return Ok(Said::Hello(accepted)),
            Greeted::Wrong(error, alert) => {
                send(stream, &alert).await?;
                return Ok(Said::Wrong(io::Error::new(io::ErrorKind::InvalidData, error)));
            }
        }
    }
}

fn seconds_since_1970() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

async fn send(stream: &mut Stream, bytes: &[u8]) -> io::Result<()> {
    stream.append().extend_from_slice(bytes);
    poll_fn(|context| stream.poll_flush(context)).await
}
