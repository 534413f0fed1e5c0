//! The handshake: from an accepted connection to a secured one, or to why not.
//!
//! The first bytes are read before anything is decided ([`greeting`](super::greeting)): who speaks HTTP
//! in clear is told apart by them, and so are names without a certificate and authorities that come for
//! a challenge. The stream may hold bytes already (behind a PROXY header).

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::time::SystemTime;

use rustls::server::{Accepted, AcceptedAlert};
use tokio_rustls::StartHandshake;

use super::facts::TlsFacts;
use super::greeting::{Greeted, Greeting, Way};
use super::server::ServerTls;
use crate::chunk::ChunkSize;
use crate::stream::Stream;

/// A fatal alert, unrecognized_name (RFC 6066, 3).
const UNRECOGNIZED_NAME: [u8; 7] = [0x15, 3, 3, 0, 2, 2, 112];

/// Why there is no secured connection.
#[derive(Debug)]
pub enum HandshakeError {
    /// The client speaks HTTP in clear. Here is what it has said, to be answered.
    Cleartext(Box<Stream>),
    /// It asks for a name without a certificate, or for none, and those are refused.
    UnknownName(Option<Box<str>>),
    /// An authority has seen what it came for.
    Challenge,
    /// The connection or the handshake has failed.
    Failed(io::Error),
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandshakeError::Cleartext(_) => out.write_str("the client speaks HTTP without TLS"),
            HandshakeError::UnknownName(Some(name)) => write!(out, "no certificate for {name:?}"),
            HandshakeError::UnknownName(None) => out.write_str("the client names no site"),
            HandshakeError::Challenge => out.write_str("an ACME challenge was answered"),
            HandshakeError::Failed(error) => error.fmt(out),
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
        let Some(accepted) = hello(&mut stream).await? else {
            return Err(HandshakeError::Cleartext(Box::new(stream)));
        };
        let hello = accepted.client_hello();
        let way = self.way(&hello);
        let config = match way {
            Way::Refused => {
                let name = hello.server_name().map(Box::from);
                send(&mut stream, &UNRECOGNIZED_NAME).await?;
                return Err(HandshakeError::UnknownName(name));
            }
            Way::Challenge => self.for_challenges().clone(),
            Way::Served => self.config(),
        };
        let (tcp, rest) = stream.into_tcp().ok_or(io::Error::from(io::ErrorKind::Unsupported))?;
        let start = StartHandshake::from_parts(accepted, tcp);
        let secured = start.into_stream_with(config, |connection| {
            // What came behind the hello; an error of it comes up again in the handshake.
            let mut rest = rest.as_ref().map_or(&[][..], |chunk| chunk.filled());
            while !rest.is_empty() && connection.read_tls(&mut rest).is_ok_and(|count| count > 0) {
                let _ = connection.process_new_packets();
            }
        });
        let secured = secured.await?;
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

/// Reads the client's hello; none: it does not speak TLS but, by its first byte, something in clear.
async fn hello(stream: &mut Stream) -> Result<Option<Accepted>, HandshakeError> {
    let mut greeting = Greeting::default();
    loop {
        if stream.buffered().is_empty()
            && poll_fn(|context| stream.poll_fill(context, ChunkSize::Small)).await? == 0
        {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let (count, greeted) = greeting.read(stream.buffered())?;
        stream.consume(count);
        match greeted {
            Greeted::Partly => {}
            Greeted::Cleartext => return Ok(None),
            Greeted::Hello(accepted) => return Ok(Some(*accepted)),
            Greeted::Wrong(error, alert) => {
                tell(stream, *alert).await?;
                return Err(io::Error::new(io::ErrorKind::InvalidData, error).into());
            }
        }
    }
}

fn seconds_since_1970() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

async fn tell(stream: &mut Stream, mut alert: AcceptedAlert) -> io::Result<()> {
    let mut bytes = Vec::new();
    alert.write_all(&mut bytes)?;
    send(stream, &bytes).await
}

async fn send(stream: &mut Stream, bytes: &[u8]) -> io::Result<()> {
    stream.append().extend_from_slice(bytes);
    poll_fn(|context| stream.poll_flush(context)).await
}
