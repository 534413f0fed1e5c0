//! One probe: a question, a limit, and what came of it.
//!
//! | check | passes when |
//! |---|---|
//! | TCP | the endpoint's system takes a connection. Whether its program still works is not seen |
//! | HTTP | an answer of a wanted status, and with a wanted body if there is one, has come in time |
//! | gRPC | `grpc.health.v1.Health/Check` says SERVING |
//!
//! By TLS a handshake comes first, and the endpoint's certificate has to be good: for a TCP probe that
//! is all there is.
//!
//! The limit is for the whole probe, and one timer keeps it.

use std::time::Duration;

use subak_base::Address;
use subak_health::{ProbeFailure, ProbeResult};

use crate::answer::Answer;
use crate::connection::{Connection, First};
use crate::grpc::GrpcCheck;
use crate::http2;
use crate::miss::Miss;
use crate::request::HttpCheck;
use crate::way::{Spoken, Way};

/// What an endpoint is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Check {
    /// Whether it takes a connection.
    Tcp,
    /// Whether it answers a request as wanted.
    Http(HttpCheck),
    /// Whether it says by gRPC that it serves.
    Grpc(GrpcCheck),
}

/// The same machine at another port; a unix socket has none and stays.
pub fn with_port(address: &Address, port: u16) -> Address {
    match address {
        Address::Inet(inet) => {
            let mut inet = *inet;
            inet.set_port(port);
            Address::Inet(inet)
        }
        Address::Unix(_) => address.clone(),
    }
}

/// Makes one probe by this way. It takes no longer than `limit`.
pub async fn check(address: &Address, what: &Check, way: &Way, limit: Duration) -> ProbeResult {
    let mut phase = Phase::Connecting;
    match tokio::time::timeout(limit, ask(address, what, way, &mut phase)).await {
        Ok(Ok(())) => ProbeResult::Passed,
        Ok(Err(miss)) => miss.into(),
        Err(_) => ProbeResult::Failed(phase.over(limit)),
    }
}

async fn ask(address: &Address, what: &Check, way: &Way, phase: &mut Phase) -> Result<(), Miss> {
    let connection = Connection::open(address, First::Us).await;
    let mut connection = connection.map_err(|error| Miss::of(&error))?;
    let mut header = way.header();
    if let Some(target) = &way.tls {
        *phase = Phase::Securing;
        connection.send(&std::mem::take(&mut header)).await.map_err(|error| Miss::of(&error))?;
        connection = connection.secure(target).await?;
    }
    let scheme = if way.tls.is_some() { "https" } else { "http" };
    match what {
        Check::Tcp => Ok(()),
        Check::Http(http) if is_http2(way, &connection) => {
            connection.send(&header).await.map_err(|error| Miss::of(&error))?;
            match connection {
                Connection::Tcp(stream) => http2::ask(http, stream, scheme, address, phase).await,
                Connection::Unix(stream) => http2::ask(http, stream, scheme, address, phase).await,
                Connection::Tls(stream) => http2::ask(http, stream, scheme, address, phase).await,
            }
        }
        Check::Http(http) => {
            *phase = Phase::Waiting;
            // Together with the request, in one packet.
            let request = [header, http.bytes(address)].concat();
            connection.send(&request).await.map_err(|error| Miss::of(&error))?;
            Ok(answer_on(connection, http, phase).await?)
        }
        Check::Grpc(grpc) => {
            connection.send(&header).await.map_err(|error| Miss::of(&error))?;
            match connection {
                Connection::Tcp(stream) => grpc.ask(stream, scheme, address, phase).await,
                Connection::Unix(stream) => grpc.ask(stream, scheme, address, phase).await,
                Connection::Tls(stream) => grpc.ask(stream, scheme, address, phase).await,
            }
        }
    }
}

fn is_http2(way: &Way, connection: &Connection) -> bool {
    match way.http {
        Spoken::Http1 => false,
        Spoken::Http2 => true,
        Spoken::Agreed => connection.agreed_on_http2(),
    }
}

async fn answer_on(
    mut connection: Connection,
    http: &HttpCheck,
    phase: &mut Phase,
) -> Result<(), Miss> {
    let mut answer = Answer::new(http);
    loop {
        let received = connection.receive(answer.buffer()).await;
        if received.map_err(|error| Miss::of(&error))? == 0 {
            return Ok(answer.closed()?);
        }
        *phase = Phase::Reading;
        if let Some(verdict) = answer.received() {
            return Ok(verdict?);
        }
    }
}

/// How far a question has come, which says what it means that its time is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Connecting,
    Securing,
    Waiting,
    Reading,
}

impl Phase {
    pub(crate) fn over(self, limit: Duration) -> ProbeFailure {
        match self {
            Phase::Connecting => ProbeFailure::ConnectTimeout(limit),
            Phase::Securing => ProbeFailure::Tls(format!("not over within {limit:?}").into()),
            Phase::Waiting => ProbeFailure::FirstByteTimeout(limit),
            Phase::Reading => ProbeFailure::AnswerTimeout(limit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_port_is_another_address_of_the_same_machine() {
        let address = |text: &str| Address::inet(text.parse().expect("an address"));
        assert_eq!(with_port(&address("10.0.0.2:80"), 81), address("10.0.0.2:81"));
        assert_eq!(with_port(&address("[::1]:80"), 81), address("[::1]:81"));
        let unix = Address::Unix("/run/app.sock".into());
        assert_eq!(with_port(&unix, 81), unix);
    }
}
