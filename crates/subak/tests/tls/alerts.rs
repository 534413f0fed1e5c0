//! Alerts: the last words to a client that breaks the protocol. They arrive, and then the connection
//! ends without a reset, whatever the client has sent behind.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rcgen::PKCS_ECDSA_P256_SHA256;
use tokio_rustls::rustls::crypto::aws_lc_rs::{default_provider, sign};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{
    AlertDescription, ClientConfig, ClientConnection, Error, RootCertStore,
    SupportedProtocolVersion,
};

use crate::programs::{Files, answering, certificate};
use crate::support::{Authority, Subak, fresh_address};

const HANDSHAKE: u8 = 0x16;
const APPLICATION_DATA: u8 = 0x17;

/// A site for `a.example`, and clients that trust it.
struct Site {
    authority: Authority,
    address: String,
    _subak: Subak,
}

impl Site {
    /// With `more` in the listener's `tls`.
    fn start(more: &str) -> Site {
        let authority = Authority::new();
        authority.sign("site", "a.example", 2020..4000);
        let (chain, key) = (authority.path("site.pem"), authority.path("site.key"));
        let address = fresh_address();
        let tls =
            format!("tls = {{ certificates = [{{ chain = {chain:?}, key = {key:?} }}]{more} }}");
        let subak = Subak::start_at(&answering(&address, &tls), &address);
        Site { authority, address, _subak: subak }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        stream
    }

    /// A client of this version, which shows `certificate` when it is asked for one.
    fn client(
        &self,
        version: &'static SupportedProtocolVersion,
        certificate: Option<CertifiedKey>,
    ) -> ClientConnection {
        let mut roots = RootCertStore::empty();
        let ca =
            CertificateDer::from_pem_file(self.authority.path("ca.pem")).expect("a certificate");
        roots.add(ca).expect("an authority");
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[version])
            .expect("a version")
            .with_root_certificates(roots);
        let config = match certificate {
            Some(key) => builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(key))),
            None => builder.with_no_client_auth(),
        };
        ClientConnection::new(Arc::new(config), "a.example".try_into().expect("a name"))
            .expect("a client")
    }

    /// Everything that Subak says to these bytes.
    fn told(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        stream.write_all(bytes).expect("to send");
        to_the_end(&mut stream)
    }
}

/// Reads until the other end closes; a reset is a failure.
fn to_the_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut told = Vec::new();
    stream.read_to_end(&mut told).expect("an end, and no reset");
    told
}

fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).expect("a record");
    [&[kind, 3, 3][..], &length.to_be_bytes(), body].concat()
}

/// A Finished as nobody can expect it.
fn finished() -> Vec<u8> {
    record(HANDSHAKE, &[&[20, 0, 0, 12][..], &[7; 12]].concat())
}

/// The first bytes of a client.
fn hello(client: &mut ClientConnection) -> Vec<u8> {
    let mut hello = Vec::new();
    client.write_tls(&mut hello).expect("a hello");
    hello
}

fn fatal(alert: AlertDescription) -> [u8; 7] {
    [0x15, 3, 3, 0, 2, 2, alert.into()]
}

#[test]
fn a_first_message_that_is_no_hello_is_told_why_and_the_connection_ends() {
    let site = Site::start("");
    let hello_of_tls_1_1 = {
        let mut hello = vec![3, 2];
        hello.extend([9; 32]);
        // No session, one cipher (ECDHE-ECDSA-AES128-SHA), no compression.
        hello.extend([0, 0, 2, 0xC0, 0x09, 1, 0]);
        // The extension signature_algorithms: ECDSA with SHA-256.
        hello.extend([0, 8, 0, 13, 0, 4, 0, 2, 4, 3]);
        let length = u8::try_from(hello.len()).expect("short");
        record(HANDSHAKE, &[&[1, 0, 0, length][..], &hello].concat())
    };
    let no_signatures = {
        let mut hello = vec![3, 3];
        hello.extend([9; 32]);
        // No session, one cipher (ECDHE-ECDSA-AES128-GCM-SHA256), no compression, no extension.
        hello.extend([0, 0, 2, 0xC0, 0x2B, 1, 0]);
        let length = u8::try_from(hello.len()).expect("short");
        record(HANDSHAKE, &[&[1, 0, 0, length][..], &hello].concat())
    };
    let oversized = [&[HANDSHAKE, 3, 1, 0x40, 1][..], &[1; 300]].concat();
    let cases: [(&str, Vec<u8>, AlertDescription); 12] = [
        ("an unknown type", record(0x18, b"hello"), AlertDescription::UnexpectedMessage),
        ("type 0", record(0, b"hello"), AlertDescription::UnexpectedMessage),
        ("data", record(APPLICATION_DATA, b"GET /"), AlertDescription::UnexpectedMessage),
        ("a change of ciphers", record(0x14, &[1]), AlertDescription::UnexpectedMessage),
        ("SSL 2", vec![0x80, 0x2E, 1, 3, 1, 0, 0], AlertDescription::UnexpectedMessage),
        ("Finished", finished(), AlertDescription::UnexpectedMessage),
        ("no bytes", record(HANDSHAKE, b""), AlertDescription::UnexpectedMessage),
        ("version 4", vec![HANDSHAKE, 4, 3, 0, 1, 1], AlertDescription::ProtocolVersion),
        ("TLS 1.1", hello_of_tls_1_1, AlertDescription::ProtocolVersion),
        ("no signatures", no_signatures, AlertDescription::MissingExtension),
        ("16,385 bytes", oversized, AlertDescription::RecordOverflow),
        (
            "half a hello and data",
            [record(HANDSHAKE, &[1, 0, 1, 0]), record(HANDSHAKE, b""), vec![0; 20]].concat(),
            AlertDescription::UnexpectedMessage,
        ),
    ];
    for (what, bytes, alert) in cases {
        assert_eq!(site.told(&bytes), fatal(alert), "{what}");
        // More than was read must not turn the end into a reset that overtakes the alert.
        let more = [bytes, vec![0; 50_000]].concat();
        assert_eq!(site.told(&more), fatal(alert), "{what}, and more behind it");
    }
    let clear = site.told(b"GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n");
    assert!(clear.starts_with(b"HTTP/1.1 400 "), "{}", String::from_utf8_lossy(&clear));
}

#[test]
fn a_message_out_of_order_is_told_wherever_it_comes() {
    let site = Site::start("");
    let unexpected = fatal(AlertDescription::UnexpectedMessage);
    // Behind the hello, in one piece with it.
    let hello = hello(&mut site.client(&TLS12, None));
    let told = site.told(&[&hello[..], &finished()].concat());
    assert!(told.ends_with(&unexpected), "{told:?}");
    // When the server has said its part: ServerHelloDone is its last.
    let mut stream = site.connect();
    stream.write_all(&hello).expect("to send");
    let (mut flight, mut bytes) = (Vec::new(), [0; 4096]);
    while !flight.ends_with(&[14, 0, 0, 0]) {
        let count = stream.read(&mut bytes).expect("the server's part");
        assert!(count > 0, "{flight:?}");
        flight.extend_from_slice(&bytes[..count]);
    }
    stream.write_all(&finished()).expect("to send");
    assert_eq!(to_the_end(&mut stream), unexpected);
}

/// Reads until the server tells an error.
fn alert(client: &mut ClientConnection, stream: &mut TcpStream) -> AlertDescription {
    loop {
        if client.wants_write() {
            client.write_tls(stream).expect("to send");
        }
        let count = client.read_tls(stream).expect("an alert");
        match client.process_new_packets() {
            Ok(_) => assert!(count > 0, "closed without an alert"),
            Err(Error::AlertReceived(alert)) => return alert,
            Err(error) => panic!("{error}"),
        }
    }
}

/// As far as a request and its response.
fn served(client: &mut ClientConnection, stream: &mut TcpStream) {
    let mut tls = tokio_rustls::rustls::Stream::new(client, stream);
    tls.write_all(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n").expect("to send");
    let (mut response, mut bytes) = (Vec::new(), [0; 4096]);
    while !response.ends_with(b"hello\n") {
        match tls.read(&mut bytes) {
            Ok(count) => response.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => panic!("{error}: {}", String::from_utf8_lossy(&response)),
        }
    }
}

#[test]
fn records_that_cannot_be_read_are_told_when_data_flows_already() {
    let site = Site::start("");
    for version in [&TLS12, &TLS13] {
        // The library tells a record of more than 18,432 bytes by decode_error.
        let oversized = vec![APPLICATION_DATA, 3, 3, 0x48, 1];
        let cases = [
            (record(APPLICATION_DATA, &[5; 64]), AlertDescription::BadRecordMac),
            (oversized, AlertDescription::DecodeError),
            (record(0x40, b"x"), AlertDescription::DecodeError),
        ];
        for (bytes, expected) in cases {
            let (mut client, mut stream) = (site.client(version, None), site.connect());
            served(&mut client, &mut stream);
            stream.write_all(&bytes).expect("to send");
            assert_eq!(alert(&mut client, &mut stream), expected, "{version:?} {bytes:?}");
        }
    }
}

#[test]
fn a_renegotiation_is_refused_at_once() {
    let site = Site::start("");
    let mut child = Command::new("timeout")
        .args(["20", "openssl", "s_client", "-tls1_2", "-connect", &site.address])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl");
    let mut stdin = child.stdin.take().expect("stdin");
    stdin.write_all(b"R\n").expect("a renegotiation");
    // It stays open: what ends the program is the alert, and not the end of its input.
    let output = child.wait_with_output().expect("openssl");
    drop(stdin);
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("RENEGOTIATING") && said.contains("no renegotiation"), "{said}");
    assert_ne!(output.status.code(), Some(124), "it waited for the alert: {said}");
}

#[test]
fn a_client_that_does_not_hold_the_key_of_its_certificate_is_told_so() {
    let files = Files::new();
    let authority = files.authority("ca", "clients");
    files.client("alice", &authority);
    let (_, other_key) = certificate(&["mallory"], &PKCS_ECDSA_P256_SHA256);
    let site = Site::start(&format!(", client = {{ ca = {:?} }}", files.text("ca.pem")));
    for version in [&TLS12, &TLS13] {
        let alice = CertificateDer::from_pem_file(files.path("alice.pem")).expect("a certificate");
        let key = PrivateKeyDer::from_pem_slice(other_key.as_bytes()).expect("a key");
        let key = sign::any_supported_type(&key).expect("a key");
        let forged = CertifiedKey::new(vec![alice], key);
        let (mut client, mut stream) = (site.client(version, Some(forged)), site.connect());
        let told = alert(&mut client, &mut stream);
        assert_eq!(told, AlertDescription::DecryptError, "{version:?}");
    }
}
