//! HTTP/2 and TLS clients: one thread with a runtime of its own, and a deadline on all of it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use h2::client::SendRequest;
use http::{Request, Response};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::{PATIENCE, Subak};

/// Runs a client that needs a runtime, with a deadline.
pub(crate) fn run<T>(client: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let limited = async { tokio::time::timeout(PATIENCE, client).await };
    runtime.expect("runtime").block_on(limited).expect("in time")
}

/// A key pair for localhost on disk, and what clients have to trust.
pub(crate) fn self_made_certificate(directory: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("certificate");
    std::fs::write(directory.join("site.pem"), made.cert.pem()).expect("write");
    std::fs::write(directory.join("site.key"), made.signing_key.serialize_pem()).expect("write");
    made.cert.der().clone()
}

pub(crate) async fn tls(
    address: SocketAddr,
    trusted: CertificateDer<'static>,
    protocols: &[&str],
) -> TlsStream<TcpStream> {
    tls_on(TcpStream::connect(address).await.expect("connect"), trusted, protocols).await
}

/// The same on a connection that is there already.
pub(crate) async fn tls_on(
    stream: TcpStream,
    trusted: CertificateDer<'static>,
    protocols: &[&str],
) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted).expect("a certificate");
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let name = ServerName::try_from("localhost").expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("handshake")
}

pub(crate) async fn h2_over(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
) -> SendRequest<Bytes> {
    let mut builder = h2::client::Builder::new();
    // Room for other streams while one is not read.
    builder.initial_connection_window_size(16 << 20);
    let (send, connection) = builder.handshake(stream).await.expect("handshake");
    tokio::task::spawn_local(connection);
    send
}

pub(crate) async fn h2_get(send: SendRequest<Bytes>, uri: &str) -> (Response<()>, String) {
    h2_exchange(send, Request::get(uri).body(()).expect("request"), None).await
}

pub(crate) async fn h2_exchange(
    send: SendRequest<Bytes>,
    request: Request<()>,
    body: Option<Bytes>,
) -> (Response<()>, String) {
    let mut send = send.ready().await.expect("ready");
    let (answer, mut stream) = send.send_request(request, body.is_none()).expect("request");
    if let Some(body) = body {
        stream.send_data(body, true).expect("body");
    }
    let (parts, mut body) = answer.await.expect("answer").into_parts();
    let mut text = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.expect("data");
        body.flow_control().release_capacity(data.len()).expect("capacity");
        text.extend_from_slice(&data);
    }
    (Response::from_parts(parts, ()), String::from_utf8(text).expect("text"))
}

/// Runs an HTTP/2 client against Subak in cleartext.
pub(crate) fn prior_knowledge<T>(
    subak: &Subak,
    client: impl AsyncFnOnce(SendRequest<Bytes>) -> T,
) -> T {
    let address = subak.socket_address();
    run(async {
        let local = tokio::task::LocalSet::new();
        local
            .run_until(async {
                let stream = TcpStream::connect(address).await.expect("connect");
                client(h2_over(stream).await).await
            })
            .await
    })
}
