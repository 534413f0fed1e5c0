//! Certificates that Subak orders by itself (ACME, RFC 8555).

use std::path::PathBuf;
use std::sync::Arc;

use super::{BackOff, PemFile};

/// `acme`: from whom, and where what comes of it is kept.
#[derive(Clone, PartialEq, Debug)]
pub struct Acme {
    /// The URL of the directory, by HTTPS.
    pub directory: Box<str>,
    /// Whom the authority may write to.
    pub email: Option<Box<str>>,
    /// A directory of Subak's own; processes that name the same one share certificates.
    pub storage: PathBuf,
    /// Whom to trust as the directory instead of the machine's authorities.
    pub ca: Option<PemFile>,
    /// How names are proven, at least one; after a failure the next one's turn comes.
    pub challenges: Vec<AcmeChallenge>,
    /// What kind of private keys are made.
    pub key_type: AcmeKeyType,
    /// The authority's name for a kind of certificate.
    pub profile: Option<Box<str>>,
    /// Who the authority knows us as already.
    pub external_account: Option<ExternalAccount>,
    /// After failures in a row.
    pub back_off: BackOff,
}

/// How it is proven that a name is ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AcmeChallenge {
    /// An answer over plain HTTP, at port 80.
    Http01,
    /// A certificate over TLS, at port 443 (RFC 8737).
    TlsAlpn01,
}

impl AcmeChallenge {
    /// As RFCs and configurations call it.
    pub fn name(self) -> &'static str {
        match self {
            AcmeChallenge::Http01 => "http-01",
            AcmeChallenge::TlsAlpn01 => "tls-alpn-01",
        }
    }
}

/// Kinds of private keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AcmeKeyType {
    /// ECDSA over P-256.
    #[default]
    P256,
    /// ECDSA over P-384.
    P384,
    /// RSA of 2,048 bits.
    Rsa2048,
}

impl AcmeKeyType {
    /// As configurations call it.
    pub fn name(self) -> &'static str {
        match self {
            AcmeKeyType::P256 => "p256",
            AcmeKeyType::P384 => "p384",
            AcmeKeyType::Rsa2048 => "rsa2048",
        }
    }
}

/// What binds an account to one that the authority knows by other means (RFC 8555, 7.3.4).
#[derive(Clone, PartialEq, Eq)]
pub struct ExternalAccount {
    /// The authority's name for it.
    pub id: Box<str>,
    /// Where the key was read, for messages.
    pub path: PathBuf,
    key: Arc<[u8]>,
}

impl ExternalAccount {
    pub(crate) fn new(id: Box<str>, path: PathBuf, key: Arc<[u8]>) -> ExternalAccount {
        ExternalAccount { id, path, key }
    }

    /// The secret itself.
    pub fn secret(&self) -> &[u8] {
        &self.key
    }
}

impl std::fmt::Debug for ExternalAccount {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = out.debug_struct("ExternalAccount");
        shown.field("id", &self.id).field("path", &self.path).finish_non_exhaustive()
    }
}
