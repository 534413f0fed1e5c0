//! Connections that asked once and then keep silent: what does each cost the far side?

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use crate::connect;

/// Longest wait for one answer while the connections are opened.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

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
    /// A connection or answer fails, or is not 2xx with a `Content-Length`; the
    /// message says which. The descriptor limit must allow `count` more.
    pub fn open(
        target: SocketAddr,
        sources: &[IpAddr],
        count: usize,
        path: &str,
    ) -> io::Result<IdleConnections> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {target}\r\n\r\n");
        let mut streams = Vec::with_capacity(count);
        for index in 0..count {
            let source = sources.get(index % sources.len().max(1)).copied();
            let stream = ask_once(target, source, request.as_bytes()).map_err(|error| {
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

fn ask_once(target: SocketAddr, source: Option<IpAddr>, request: &[u8]) -> io::Result<TcpStream> {
    let mut stream = connect::open(target, source, true)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.write_all(request)?;
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match crate::load::whole_answer(&answer) {
            Some(true) => return Ok(stream),
            Some(false) => return Err(io::Error::other("the answer is not a 2xx with a length")),
            None => {}
        }
        match stream.read(&mut buffer)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => answer.extend_from_slice(&buffer[..count]),
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
        let idle = IdleConnections::open(endpoints.address(0), &sources, 50, "/").expect("to open");
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
    fn nobody_there_is_an_error_that_says_which() {
        let any = "127.0.0.1:0".parse().expect("an address");
        let endpoints = Endpoints::start(vec![EndpointSpec::new("a", any)]).expect("an endpoint");
        let address = endpoints.address(0);
        endpoints.stop();
        let error = IdleConnections::open(address, &[], 3, "/").expect_err("nobody listens");
        assert!(error.to_string().starts_with("connection 1 of 3: "), "{error}");
    }
}
