//! TLS handshakes as fast as a few threads can make them: connect, shake hands, take the tickets,
//! say goodbye. No request follows, so that all a balancer does is the handshake.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind};

use crate::connect;
use crate::histogram::Histogram;
use crate::secret::{Certificate, SERVER_NAME};

/// Handshakes under way at once: enough that the balancer never waits for a client.
const THREADS: usize = 8;
/// Longest wait within one handshake.
const WITHIN: Duration = Duration::from_secs(10);

/// What is asked for.
#[derive(Clone, Debug)]
pub struct HandshakePlan<'a> {
    /// Where TLS is served.
    pub target: SocketAddr,
    /// Addresses to connect from, in turn; none: the kernel's choice.
    pub sources: &'a [IpAddr],
    /// Whom to trust.
    pub certificate: &'a Certificate,
    /// Each by the ticket of an earlier one.
    pub resumed: bool,
    /// How long to go on.
    pub time: Duration,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Handshakes {
    /// Handshakes of the kind asked for.
    pub done: u64,
    /// Others: broken, or full where resumed ones were asked for.
    pub failed: u64,
    /// From `connect` to the first ticket.
    pub latency: Histogram,
}

/// Makes handshakes for the time of the plan.
///
/// # Errors
/// The first handshake of a thread fails, or a client cannot be made.
pub fn run(plan: &HandshakePlan<'_>) -> io::Result<Handshakes> {
    let end = Instant::now() + plan.time;
    let parts: Vec<io::Result<Handshakes>> = thread::scope(|scope| {
        let threads: Vec<_> =
            (0..THREADS).map(|index| scope.spawn(move || one_thread(plan, index, end))).collect();
        let ended = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
        };
        threads.into_iter().map(ended).collect()
    });
    let mut all = Handshakes::default();
    for part in parts {
        let part = part?;
        all.done += part.done;
        all.failed += part.failed;
        all.latency.merge(&part.latency);
    }
    Ok(all)
}

fn one_thread(plan: &HandshakePlan<'_>, index: usize, end: Instant) -> io::Result<Handshakes> {
    let config = plan.certificate.client(plan.resumed)?;
    let wanted = if plan.resumed { HandshakeKind::Resumed } else { HandshakeKind::Full };
    let source = plan.sources.get(index % plan.sources.len().max(1)).copied();
    // The first brings the ticket, and says early that nobody serves TLS there.
    shake(plan.target, source, &config)?;
    let mut made = Handshakes::default();
    while Instant::now() < end {
        let start = Instant::now();
        match shake(plan.target, source, &config) {
            Ok(kind) if kind == Some(wanted) => {
                made.done += 1;
                made.latency.record(start.elapsed().as_nanos() as u64);
            }
            _ => made.failed += 1,
        }
    }
    Ok(made)
}

/// One connection, to the first ticket and its end.
fn shake(
    target: SocketAddr,
    source: Option<IpAddr>,
    config: &Arc<ClientConfig>,
) -> io::Result<Option<HandshakeKind>> {
    let mut stream = connect::open(target, source)?;
    stream.set_read_timeout(Some(WITHIN))?;
    stream.set_nodelay(true)?;
    let name = ServerName::try_from(SERVER_NAME).map_err(io::Error::other)?;
    let mut session = ClientConnection::new(config.clone(), name).map_err(io::Error::other)?;
    while session.is_handshaking() {
        if session.complete_io(&mut stream)?.0 == 0 && session.is_handshaking() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    while session.tls13_tickets_received() == 0 {
        match session.read_tls(&mut stream) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        session.process_new_packets().map_err(io::Error::other)?;
    }
    session.send_close_notify();
    session.write_tls(&mut stream)?;
    Ok(session.handshake_kind())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Duration;

    use rustls::ServerConfig;
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};

    use super::*;

    /// Serves handshakes until the listener is closed by the end of the process.
    fn server(certificate: &Certificate) -> SocketAddr {
        let chain = CertificateDer::pem_slice_iter(certificate.chain.as_bytes());
        let chain = chain.collect::<Result<Vec<_>, _>>().expect("a chain");
        let key = PrivateKeyDer::from_pem_slice(certificate.key.as_bytes()).expect("a key");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("a pair");
        config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().expect("a ticketer");
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let address = listener.local_addr().expect("an address");
        thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                let config = config.clone();
                thread::spawn(move || {
                    let mut session = rustls::ServerConnection::new(config).expect("a session");
                    while let Ok((read, _)) = session.complete_io(&mut stream)
                        && read > 0
                    {}
                });
            }
        });
        address
    }

    #[test]
    fn full_and_resumed_handshakes_are_told_apart() {
        let certificate = Certificate::new().expect("a certificate");
        let target = server(&certificate);
        for resumed in [false, true] {
            let time = Duration::from_millis(200);
            let plan =
                HandshakePlan { target, sources: &[], certificate: &certificate, resumed, time };
            let made = run(&plan).expect("handshakes");
            assert!(made.done > 0 && made.latency.count() == made.done, "{made:?}");
            assert_eq!(made.failed, 0, "resumed: {resumed}");
        }
    }

    #[test]
    fn nobody_there_is_an_error_and_not_a_failed_handshake() {
        let certificate = Certificate::new().expect("a certificate");
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let target = listener.local_addr().expect("an address");
        drop(listener);
        let time = Duration::from_millis(50);
        let plan =
            HandshakePlan { target, sources: &[], certificate: &certificate, resumed: true, time };
        run(&plan).expect_err("nobody listens");
    }
}
