//! Connections that began before clients were verified as they are now.

use std::sync::Arc;

use crate::programs::{Files, answering};
use crate::support::http2::{h2_over, run, self_made_certificate, tls};
use crate::support::{Subak, fresh_address};
use http::Request;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const ASK: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// The listener's `tls`, with these keys of `client`; empty: no certificate is asked for.
fn listener(files: &Files, client: &str) -> String {
    let client =
        if client.is_empty() { String::new() } else { format!(", client = {{ {client} }}") };
    format!("tls = {{ certificates = [{}]{client} }}", files.item("site"))
}

fn reload(subak: &Subak, config: &str, generation: u32) {
    subak.write_config(config);
    subak.signal("HUP");
    subak.wait_for_log(&format!("configuration reloaded generation={generation}"));
}

/// The status of the next answer, or none when the connection ends without one.
async fn status(stream: &mut (impl AsyncRead + Unpin)) -> Option<u16> {
    let mut received = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&received);
        let body = text.find("\r\n\r\n").map(|end| received.len() - end - 4);
        let length =
            text.split("content-length: ").nth(1).or(text.split("Content-Length: ").nth(1));
        let length = length.and_then(|rest| rest.split("\r\n").next()?.parse::<usize>().ok());
        if let (Some(body), Some(length)) = (body, length)
            && body >= length
        {
            return text.get(9..12).and_then(|status| status.parse().ok());
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(count @ 1..) => received.extend_from_slice(&piece[..count]),
            Ok(0) | Err(_) => return None,
        }
    }
}

async fn ask(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Option<u16> {
    // It may have been closed.
    let _ = stream.write_all(ASK).await;
    status(stream).await
}

#[test]
fn a_reload_that_asks_for_certificates_serves_nobody_who_has_shown_none() {
    let files = Files::new();
    let site = self_made_certificate(&files.directory);
    files.authority("ca", "clients");
    let address = fresh_address();
    let config = |client: &str| answering(&address, &listener(&files, client));
    let subak = Subak::start_at(&config(""), &address);
    let socket = subak.socket_address();
    let required = format!("ca = {:?}", files.path("ca.pem"));
    run(async {
        let mut idle = tls(socket, site.clone(), &["http/1.1"]).await;
        let mut busy = tls(socket, site.clone(), &["http/1.1"]).await;
        let mut fresh = tls(socket, site.clone(), &["http/1.1"]).await;
        for stream in [&mut idle, &mut busy] {
            assert_eq!(ask(stream).await, Some(200));
        }
        // What changes nothing for clients leaves connections alone.
        reload(&subak, &format!("{}# again\n", config("")), 2);
        assert_eq!(ask(&mut idle).await, Some(200));
        busy.write_all(&ASK[..10]).await.expect("write");
        reload(&subak, &config(&required), 3);
        assert_eq!(status(&mut idle).await, None, "an idle connection is closed");
        // A request sees one configuration: the one in force when it began. No other follows it.
        busy.write_all(&ASK[10..]).await.expect("write");
        assert_eq!(status(&mut busy).await, Some(200));
        assert_ne!(ask(&mut busy).await, Some(200), "the next request is not served");
        assert_ne!(ask(&mut fresh).await, Some(200), "the first request is not served either");
    });
}

#[test]
fn a_reload_that_asks_for_certificates_ends_http2_connections_without() {
    let files = Files::new();
    let site = self_made_certificate(&files.directory);
    files.authority("ca", "clients");
    let address = fresh_address();
    let config = |client: &str| answering(&address, &listener(&files, client));
    let subak = Subak::start_at(&config(""), &address);
    let socket = subak.socket_address();
    let required = format!("ca = {:?}", files.path("ca.pem"));
    run(async {
        let client = async {
            let send = h2_over(tls(socket, site.clone(), &["h2"]).await).await;
            // None: the connection takes no more requests.
            let ask = async || {
                let mut send = send.clone().ready().await.ok()?;
                let request = Request::get("https://localhost/").body(()).expect("a request");
                let (answer, _) = send.send_request(request, true).ok()?;
                Some(answer.await.ok()?.status().as_u16())
            };
            assert_eq!(ask().await, Some(200));
            reload(&subak, &config(&required), 2);
            let first = ask().await;
            assert!(matches!(first, None | Some(421)), "{first:?}");
            while let Some(status) = ask().await {
                assert_eq!(status, 421);
            }
        };
        tokio::task::LocalSet::new().run_until(client).await;
    });
}

#[test]
fn a_certificate_that_was_revoked_serves_no_longer_on_the_connection_it_opened() {
    let files = Files::new();
    let site = self_made_certificate(&files.directory);
    let authority = files.authority("ca", "clients");
    files.client("bob", &authority);
    files.revoke("list.pem", &[], &authority);
    let address = fresh_address();
    let (ca, list) = (files.path("ca.pem"), files.path("list.pem"));
    let client = format!("ca = {ca:?}, crl = {list:?}");
    let subak = Subak::start_at(&answering(&address, &listener(&files, &client)), &address);
    let socket = subak.socket_address();
    run(async {
        let mut roots = RootCertStore::empty();
        roots.add(site).expect("a certificate");
        let chain = vec![CertificateDer::from_pem_file(files.path("bob.pem")).expect("PEM")];
        let key = PrivateKeyDer::from_pem_file(files.path("bob.key")).expect("PEM");
        let config = ClientConfig::builder().with_root_certificates(roots);
        let config = config.with_client_auth_cert(chain, key).expect("a key");
        let name = ServerName::try_from("localhost").expect("a name");
        let stream = TcpStream::connect(socket).await.expect("connect");
        let connector = TlsConnector::from(Arc::new(config));
        let mut bob = connector.connect(name, stream).await.expect("handshake");
        assert_eq!(ask(&mut bob).await, Some(200));
        files.revoke("list.pem", &["bob"], &authority);
        subak.wait_for_log("was read again");
        let answer = ask(&mut bob).await;
        assert!(matches!(answer, None | Some(421)), "{answer:?}");
        assert_eq!(ask(&mut bob).await, None);
    });
}
