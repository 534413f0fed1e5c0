//! What a listener says of TLS.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use subak_certificate as certificate;

use super::PemFile;

/// TLS to the clients of a listener.
#[derive(Clone, PartialEq, Debug)]
pub struct Tls {
    /// From files; the first is the default. At least one, or some by ACME.
    pub certificates: Vec<Certificate>,
    /// Names in lower case for which certificates come by ACME: each list is one certificate, with at
    /// least one name.
    pub acme: Vec<Vec<Box<str>>>,
    /// What becomes of a client that asks for a name without a certificate, or for none.
    pub unknown_name: UnknownName,
    /// Who is served.
    pub profile: TlsProfile,
    /// The least version.
    pub min_version: TlsVersion,
    /// How often the key of session tickets changes; `None`: there are no tickets.
    pub tickets: Option<Duration>,
    /// What is asked of clients; `None`: no certificate.
    pub client: Option<ClientVerification>,
}

/// A certificate chain and its private key, read from their files, which go together.
#[derive(Clone)]
pub struct Certificate {
    /// PEM with at least one certificate, the site's own first.
    pub chain: PemFile,
    /// PEM with the private key of the first.
    pub key: PemFile,
    /// An OCSP response about the first, in DER.
    pub ocsp: Option<PemFile>,
    /// What was in them.
    pub loaded: certificate::Certificate,
}

impl PartialEq for Certificate {
    fn eq(&self, other: &Certificate) -> bool {
        (&self.chain, &self.key, &self.ocsp) == (&other.chain, &other.key, &other.ocsp)
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Certificate")
            .field("chain", &self.chain)
            .field("key", &self.key)
            .field("ocsp", &self.ocsp)
            .finish_non_exhaustive()
    }
}

impl PemFile {
    /// The file as those take it that read certificates.
    pub fn pem(&self) -> certificate::Pem {
        certificate::Pem { path: self.path.clone(), contents: self.contents.clone() }
    }
}

impl From<certificate::Pem> for PemFile {
    fn from(pem: certificate::Pem) -> PemFile {
        PemFile { path: pem.path, contents: Bytes::clone(&pem.contents) }
    }
}

/// What becomes of names without a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnknownName {
    /// They get the default certificate.
    Default,
    /// The handshake is refused.
    Refuse,
}

/// A named policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TlsProfile {
    /// TLS 1.3 alone.
    Modern,
    /// TLS 1.2 and 1.3.
    Intermediate,
}

/// A version of TLS.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TlsVersion {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

/// Certificates of clients.
#[derive(Clone, PartialEq, Debug)]
pub struct ClientVerification {
    /// PEM with the authorities that may have signed.
    pub ca: PemFile,
    /// PEM with lists of what has been revoked.
    pub crl: Option<PemFile>,
    /// Whether a client without a certificate is refused.
    pub is_required: bool,
    /// Whether endpoints hear who the client is, in `X-Client-Cert-*`.
    pub headers: bool,
    /// Whether they get the certificate itself, in `Client-Cert` (RFC 9440).
    pub certificate_header: bool,
}
