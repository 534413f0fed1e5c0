//! What Subak and the other end have agreed on in a handshake: looked at once, kept as small as it gets.

use std::sync::Arc;

use rustls::{
    CipherSuite, ClientConnection, CommonState, HandshakeKind, ProtocolVersion, ServerConnection,
};
use subak_certificate::ClientIdentity;

/// What is known of a connection that is secured.
#[derive(Clone, Debug)]
pub struct TlsFacts {
    /// The version, as it is usually written: `TLSv1.3`.
    pub version: &'static str,
    /// The cipher suite by its registered name: `TLS_AES_128_GCM_SHA256`.
    pub cipher: &'static str,
    /// The name that the client has asked for.
    pub server_name: Option<Box<str>>,
    /// What was agreed on by ALPN.
    pub alpn: Option<&'static str>,
    /// Whether it went on from an earlier session.
    pub resumed: bool,
    /// Who the client is, where it has shown a certificate.
    pub client: Option<Arc<ClientIdentity>>,
}

impl TlsFacts {
    /// Of a client, whose handshake is over.
    pub(super) fn of_client(connection: &ServerConnection) -> TlsFacts {
        let certificate = connection.peer_certificates().and_then(<[_]>::first);
        TlsFacts {
            server_name: connection.server_name().map(Box::from),
            client: certificate.and_then(ClientIdentity::of).map(Arc::new),
            ..TlsFacts::of_either(connection)
        }
    }

    /// Of an endpoint, whose handshake is over.
    pub(super) fn of_endpoint(connection: &ClientConnection) -> TlsFacts {
        TlsFacts::of_either(connection)
    }

    fn of_either(connection: &CommonState) -> TlsFacts {
        let suite = connection.negotiated_cipher_suite().map(|suite| suite.suite());
        TlsFacts {
            version: match connection.protocol_version() {
                Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
                Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
                _ => "TLS",
            },
            cipher: suite.map_or("", name_of),
            server_name: None,
            alpn: match connection.alpn_protocol() {
                Some(b"h2") => Some("h2"),
                Some(b"http/1.1") => Some("http/1.1"),
                _ => None,
            },
            resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
            client: None,
        }
    }
}

/// The registered name: the library calls those of TLS 1.3 `TLS13_…`.
fn name_of(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        suite => suite.as_str().unwrap_or_default(),
    }
}
