//! Connections that asked once and then keep silent: what does each cost the far side?

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use crate::connect;
use crate::secret::SERVER_NAME;

/// Longest wait for one answer while the connections are opened.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// What a connection speaks.
#[derive(Clone, Debug)]
pub enum Speaks {
    /// HTTP/1.1 in cleartext.
    Http1,
    /// HTTP/1.1 over TLS.
    Tls(Arc<ClientConfig>),
    /// HTTP/2 by prior knowledge.
    Http2,
    /// A WebSocket over HTTP/1.1 in cleartext, opened and never used.
    WebSocket,
}

/// Open connections, each of which has had one answer. Dropping closes them.
#[derive(Debug)]
pub struct IdleConnections {
    streams: Vec<TcpStream>,
}

impl IdleConnections {
    /// Opens `count` connections to `target`, one after the other, from `sources` in
    /// turn (none: the kernel's choice). Each sends `GET path` and reads the answer.
    ///
    /// # Errors
    /// A connection or answer fails, or is not 2xx with a `Content-Length` (of a WebSocket: 101;
    /// in HTTP/2: 200); the message says which. The descriptor limit must allow `count` more.
    pub fn open(
        target: SocketAddr,
        sources: &[IpAddr],
        count: usize,
        (speaks, path): (&Speaks, &str),
    ) -> io::Result<IdleConnections> {
        let mut streams = Vec::with_capacity(count);
        for index in 0..count {
            let source = sources.get(index % sources.len().max(1)).copied();
            let stream = ask_once(target, source, speaks, path).map_err(|error| {
                io::Error::new(
                    error.kind(),
                    format!("connection {} of {count}: {error}", index + 1),
                )
            })?;
            streams.push(stream);
        }
        Ok(IdleConnections { streams })
    }

    /// How many of them the other side has not closed.
    pub fn alive(&self) -> usize {
        let open = |stream: &&TcpStream| {
            stream.set_nonblocking(true).is_ok()
                && matches!(stream.peek(&mut [0]), Err(e) if e.kind() == ErrorKind::WouldBlock)
        };
        self.streams.iter().filter(open).count()
    }
}

/// One connection that has had its answer. What TLS knew of it is dropped: silence needs no keys.
fn ask_once(
    target: SocketAddr,
    source: Option<IpAddr>,
    speaks: &Speaks,
    path: &str,
) -> io::Result<TcpStream> {
    let mut stream = connect::open(target, source)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {target}\r\n\r\n");
    match speaks {
        Speaks::Http1 => ask(&mut stream, request.as_bytes(), whole_answer)?,
        Speaks::Tls(config) => {
            let name = ServerName::try_from(SERVER_NAME).map_err(io::Error::other)?;
            let session = ClientConnection::new(config.clone(), name).map_err(io::Error::other)?;
            let mut secured = rustls::StreamOwned::new(session, stream);
            ask(&mut secured, request.as_bytes(), whole_answer)?;
            stream = secured.sock;
        }
        Speaks::Http2 => {
            ask(&mut stream, &http2::request(path, &target.to_string()), http2::answered)?;
            stream.write_all(http2::SETTINGS_TAKEN)?;
        }
        Speaks::WebSocket => {
            let request = format!(
                "GET {path} HTTP/1.1\r\nHost: {target}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            );
            ask(&mut stream, request.as_bytes(), switched)?;
        }
    }
    Ok(stream)
}

/// Sends a request and reads until `whole` says that the answer is there, and good.
fn ask(
    stream: &mut (impl Read + Write),
    request: &[u8],
    whole: fn(&[u8]) -> Option<bool>,
) -> io::Result<()> {
    stream.write_all(request)?;
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match whole(&answer) {
            Some(true) => return Ok(()),
            Some(false) => {
                return Err(io::Error::other("the answer is not a good one with a length"));
            }
            None => {}
        }
        match stream.read(&mut buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => answer.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn whole_answer(bytes: &[u8]) -> Option<bool> {
    crate::load::whole_answer(bytes)
}

/// Whether the head of a 101 is there.
fn switched(bytes: &[u8]) -> Option<bool> {
    memchr::memmem::find(bytes, b"\r\n\r\n").map(|_| bytes.starts_with(b"HTTP/1.1 101 "))
}

/// The few frames of HTTP/2 that one request needs.
mod http2 {
    const HEADERS: u8 = 1;
    const END_STREAM: u8 = 1;
    const END_HEADERS: u8 = 4;

    /// The answer to the other side's settings.
    pub(super) const SETTINGS_TAKEN: &[u8] = &[0, 0, 0, 4, 1, 0, 0, 0, 0];

    /// The preface, no settings, and a GET on stream 1. `path` and `authority` are under 127 bytes.
    pub(super) fn request(path: &str, authority: &str) -> Vec<u8> {
        let mut block = vec![0x82, 0x86, 0x04, path.len() as u8];
        block.extend_from_slice(path.as_bytes());
        block.extend_from_slice(&[0x01, authority.len() as u8]);
        block.extend_from_slice(authority.as_bytes());
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
        let flags = END_STREAM | END_HEADERS;
        bytes.extend_from_slice(&[0, 0, block.len() as u8, HEADERS, flags, 0, 0, 0, 1]);
        bytes.extend_from_slice(&block);
        bytes
    }

    /// Whether stream 1 has ended, and with status 200.
    pub(super) fn answered(mut bytes: &[u8]) -> Option<bool> {
        let mut good = false;
        loop {
            let (head, rest) = bytes.split_at_checked(9)?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let (payload, rest) = rest.split_at_checked(length)?;
            bytes = rest;
            if head[8] != 1 || head[3] > HEADERS {
                continue;
            }
            if head[3] == HEADERS {
                // Behind a change of the table's size, which takes up to three bytes here.
                good |= payload.iter().take(4).any(|byte| *byte == 0x88);
            }
            if head[4] & END_STREAM != 0 {
                return Some(good);
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn an_answer_ends_with_its_stream_and_no_sooner() {
            let mut bytes = SETTINGS_TAKEN.to_vec();
            bytes.extend_from_slice(&[0, 0, 2, HEADERS, END_HEADERS, 0, 0, 0, 1, 0x20, 0x88]);
            assert_eq!(answered(&bytes), None);
            bytes.extend_from_slice(&[0, 0, 1, 0, END_STREAM, 0, 0, 0, 1]);
            assert_eq!(answered(&bytes), None);
            bytes.push(b'x');
            assert_eq!(answered(&bytes), Some(true));
            let refused = [0, 0, 1, HEADERS, END_HEADERS | END_STREAM, 0, 0, 0, 1, 0x8d];
            assert_eq!(answered(&refused), Some(false));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::{EndpointSpec, Endpoints};
    use std::time::Instant;

    #[test]
    fn they_stay_until_the_other_side_ends_them() {
        let any = "127.0.0.1:0".parse().expect("an address");
        let endpoints = Endpoints::start(vec![EndpointSpec::new("a", any)]).expect("an endpoint");
        let sources: Vec<IpAddr> =
            ["127.0.0.2", "127.0.0.3"].map(|ip| ip.parse().expect("an address")).to_vec();
        let idle = IdleConnections::open(endpoints.address(0), &sources, 50, (&Speaks::Http1, "/"))
            .expect("to open");
        assert_eq!((idle.alive(), endpoints.hits(0), endpoints.connections(0)), (50, 50, 50));
        let from: Vec<IpAddr> =
            idle.streams.iter().map(|s| s.local_addr().expect("an address").ip()).collect();
        assert_eq!(from[..4], [sources[0], sources[1], sources[0], sources[1]]);
        endpoints.stop();
        let start = Instant::now();
        while idle.alive() > 0 {
            assert!(start.elapsed() < Duration::from_secs(20), "{} left", idle.alive());
        }
    }

    #[test]
    fn a_websocket_is_opened_and_stays() {
        let any = "127.0.0.1:0".parse().expect("an address");
        let endpoints = Endpoints::start(vec![EndpointSpec::new("a", any)]).expect("an endpoint");
        let mut idle =
            IdleConnections::open(endpoints.address(0), &[], 2, (&Speaks::WebSocket, "/ws"))
                .expect("to open");
        // What a WebSocket says is no request.
        idle.streams[0].write_all(b"\x89\x80\0\0\0\0GET / HTTP/1.1\r\n\r\n").expect("sent");
        IdleConnections::open(endpoints.address(0), &[], 1, (&Speaks::Http1, "/")).expect("served");
        assert_eq!((idle.alive(), endpoints.hits(0)), (2, 3));
    }

    #[test]
    fn nobody_there_is_an_error_that_says_which() {
        let any = "127.0.0.1:0".parse().expect("an address");
        let endpoints = Endpoints::start(vec![EndpointSpec::new("a", any)]).expect("an endpoint");
        let address = endpoints.address(0);
        endpoints.stop();
        let error = IdleConnections::open(address, &[], 3, (&Speaks::Http1, "/"))
            .expect_err("nobody listens");
        assert!(error.to_string().starts_with("connection 1 of 3: "), "{error}");
    }
}
