//! A server that writes down what it hears, by all that the generator speaks.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;

use bytes::Bytes;
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Path, and X-Forwarded-For.
pub(super) type Asked = (String, Option<String>);

/// What was asked so far, in the order in which it came.
#[derive(Clone, Default)]
pub(super) struct Heard(Arc<Mutex<Vec<Asked>>>);

impl Heard {
    pub(super) fn all(&self) -> Vec<Asked> {
        self.0.lock().expect("what was heard").clone()
    }

    fn add(&self, path: &str, forwarded: Option<&str>) {
        let asked = (path.to_owned(), forwarded.map(str::to_owned));
        self.0.lock().expect("what was heard").push(asked);
    }
}

/// Answers everything with 200 at once, for as long as the test runs.
pub(super) fn listen(is_secured: bool, is_http2: bool) -> (SocketAddr, Heard) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("to listen");
    listener.set_nonblocking(true).expect("to listen");
    let address = listener.local_addr().expect("an address");
    let heard = Heard::default();
    let hears = heard.clone();
    let acceptor = acceptor(if is_http2 { b"h2" } else { b"http/1.1" });
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async move {
            let listener = TcpListener::from_std(listener).expect("to listen");
            while let Ok((stream, _)) = listener.accept().await {
                let (hears, acceptor) = (hears.clone(), acceptor.clone());
                tokio::spawn(async move {
                    if !is_secured {
                        serve(stream, is_http2, &hears).await;
                    } else if let Ok(stream) = acceptor.accept(stream).await {
                        serve(stream, is_http2, &hears).await;
                    }
                });
            }
        });
    });
    (address, heard)
}

fn acceptor(protocol: &[u8]) -> TlsAcceptor {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into());
    let mut config = config.expect("a certificate and its key");
    config.alpn_protocols = vec![protocol.to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(stream: S, is_http2: bool, heard: &Heard) {
    // What breaks a connection ends it.
    match is_http2 {
        true => drop(serve_http2(stream, heard).await),
        false => drop(serve_http1(stream, heard).await),
    }
}

/// Requests without bodies, which come one after the other and each at once.
async fn serve_http1<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    heard: &Heard,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    loop {
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        let text = String::from_utf8_lossy(&head);
        let path = text.split(' ').nth(1).unwrap_or_default();
        let field = |line: &'_ str| line.strip_prefix("X-Forwarded-For: ").map(str::to_owned);
        heard.add(path, text.lines().find_map(field).as_deref());
        head.clear();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await?;
    }
}

async fn serve_http2<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    heard: &Heard,
) -> Result<(), h2::Error> {
    let mut connection = h2::server::handshake(stream).await?;
    while let Some(asked) = connection.accept().await {
        let (request, mut respond): (_, h2::server::SendResponse<Bytes>) = asked?;
        let forwarded = request.headers().get("x-forwarded-for");
        heard.add(request.uri().path(), forwarded.and_then(|value| value.to_str().ok()));
        respond.send_response(http::Response::new(()), true)?;
    }
    Ok(())
}
