//! Who does the proxy before us say the client is? The header of the PROXY protocol at the beginning of
//! a connection, before TLS, from those alone who are believed.
//!
//! The announced ends take the place of the connection's own for everything that follows: routes,
//! algorithms, logs, forwarding headers. Bounds: the time that is configured, and as many bytes as
//! [`subak_message::proxy_header`] reads.

use std::fmt;
use std::task::Poll;

use subak_config::AcceptProxy;
use subak_message::proxy_header::{Progress, ProxyHeaderError, read};
use subak_net::{ChunkSize, Deadline, PeerAddress, Stream};
use subak_telemetry::Turned;

use crate::key::Ends;

/// Why a connection is not served.
#[derive(Debug)]
pub(crate) enum NotAnnounced {
    /// It comes from somebody whose header is not believed.
    NotAllowed,
    /// There is no header.
    Absent,
    /// There is no header, or no end of it, in time.
    TimedOut,
    /// The connection ended before its header.
    Gone,
    /// The header cannot be read.
    Malformed(ProxyHeaderError),
}

impl NotAnnounced {
    /// As it is counted.
    pub(crate) fn turned(&self) -> Turned {
        match self {
            NotAnnounced::NotAllowed => Turned::ProxySource,
            NotAnnounced::Absent => Turned::ProxyAbsent,
            NotAnnounced::TimedOut => Turned::ProxyLate,
            NotAnnounced::Gone => Turned::ProxyCut,
            NotAnnounced::Malformed(_) => Turned::ProxyMalformed,
        }
    }
}

impl fmt::Display for NotAnnounced {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAnnounced::NotAllowed => {
                out.write_str("it comes from outside of proxy_protocol.from")
            }
            NotAnnounced::Absent => out.write_str("it begins without a PROXY header"),
            NotAnnounced::TimedOut => out.write_str("no whole PROXY header came in time"),
            NotAnnounced::Gone => out.write_str("it ended before its PROXY header"),
            NotAnnounced::Malformed(error) => write!(out, "a malformed PROXY header: {error}"),
        }
    }
}

/// Takes the header off the beginning of a connection and puts whom it announces into `ends`. Answers
/// whether the client speaks TLS with the proxy.
///
/// # Errors
/// [`NotAnnounced`]: the connection is to be closed.
pub(crate) async fn announced(
    stream: &mut Stream,
    ends: &mut Ends,
    accept: &AcceptProxy,
    deadline: &Deadline,
) -> Result<bool, NotAnnounced> {
    if !is_believed(ends.peer, accept) {
        return if accept.optional { Ok(false) } else { Err(NotAnnounced::NotAllowed) };
    }
    deadline.set(accept.timeout);
    loop {
        match read(stream.buffered()).map_err(NotAnnounced::Malformed)? {
            Progress::Complete { header, consumed } => {
                let is_tls = header.tlvs.tls().is_some();
                if let Some(announced) = header.ends {
                    ends.peer = PeerAddress::Inet(announced.source);
                    ends.local = Some(announced.destination);
                }
                stream.consume(consumed);
                return Ok(is_tls);
            }
            Progress::Absent if accept.optional => return Ok(false),
            Progress::Absent => return Err(NotAnnounced::Absent),
            Progress::Incomplete => {}
        }
        let received =
            std::future::poll_fn(|context| match stream.poll_fill(context, ChunkSize::Small) {
                Poll::Ready(received) => Poll::Ready(Some(received)),
                Poll::Pending if deadline.expired(context) => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            });
        match received.await {
            Some(Ok(1..)) => {}
            Some(_) => return Err(NotAnnounced::Gone),
            // Who says nothing at all may still be a client that has opened a connection in advance.
            None if accept.optional && stream.buffered().is_empty() => return Ok(false),
            None => return Err(NotAnnounced::TimedOut),
        }
    }
}

fn is_believed(peer: PeerAddress, accept: &AcceptProxy) -> bool {
    match peer.ip() {
        Some(ip) => accept.from.iter().any(|network| network.contains(&ip)),
        None => accept.unix,
    }
}
