//! One request, as a client of its own sends it.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::endpoint::NAME_HEADER;

/// A request that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(10);
/// Clients that take turns. Each has a network of its own, so that algorithms that look at the
/// client's address tell them apart.
const CLIENTS: u64 = 250;

/// Where clients go, and how.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) listen: SocketAddr,
    /// None: in cleartext.
    pub(super) tls: Option<TlsConnector>,
}

/// Sends a GET and answers with the name of the endpoint that served it, or with what went wrong.
pub(super) async fn ask(way: Way, number: u64) -> Result<String, String> {
    match tokio::time::timeout(PATIENCE, exchange(&way, number)).await {
        Ok(Ok(answer)) => read_name(&answer),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {PATIENCE:?}")),
    }
}

async fn exchange(way: &Way, number: u64) -> std::io::Result<String> {
    let client = 1 + (number % CLIENTS) as u8;
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((Ipv4Addr::new(127, 77, client, 1), 0)))?;
    let stream = socket.connect(way.listen).await?;
    match &way.tls {
        None => send(stream, way.listen, number).await,
        Some(tls) => {
            let name = ServerName::from(way.listen.ip());
            send(tls.connect(name, stream).await?, way.listen, number).await
        }
    }
}

async fn send(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    listen: SocketAddr,
    number: u64,
) -> std::io::Result<String> {
    let request = format!("GET /{number} HTTP/1.1\r\nHost: {listen}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// The endpoint an answer names; what stands there instead when it is no 200.
fn read_name(answer: &str) -> Result<String, String> {
    let mut lines = answer.lines();
    let status = lines.next().unwrap_or("an empty answer");
    if !status.starts_with("HTTP/1.1 200 ") {
        return Err(status.to_owned());
    }
    let fields = lines.take_while(|line| !line.is_empty()).filter_map(|line| line.split_once(": "));
    let name =
        fields.filter(|(name, _)| name.eq_ignore_ascii_case(NAME_HEADER)).map(|(_, value)| value);
    name.last().map(str::to_owned).ok_or_else(|| format!("an answer without {NAME_HEADER}"))
}
