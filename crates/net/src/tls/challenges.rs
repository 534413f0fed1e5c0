//! Certificates by which an ACME authority sees who holds a name (RFC 8737).
//!
//! They are served only to who offers `acme-tls/1` by ALPN, and only while a challenge is pending:
//! else a handshake sees one flag that is not set.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use subak_certificate::Names;

/// What the authority offers by ALPN.
pub(super) const PROTOCOL: &[u8] = b"acme-tls/1";

/// The challenges that are pending, by name.
#[derive(Debug, Default)]
pub struct AcmeChallenges {
    is_pending: AtomicBool,
    by_name: ArcSwap<Names<Option<Arc<CertifiedKey>>>>,
}

impl AcmeChallenges {
    /// Replaces all pending challenges; none: it is over.
    pub fn set(&self, challenges: impl IntoIterator<Item = (Box<str>, Arc<CertifiedKey>)>) {
        let mut names = Names::default();
        for (name, key) in challenges {
            *names.entry(&name) = Some(key);
        }
        let is_pending = !names.is_empty();
        self.by_name.store(Arc::new(names));
        self.is_pending.store(is_pending, Ordering::Release);
    }

    /// Whether this client is an authority that has come for a challenge.
    pub(super) fn are_for(&self, hello: &ClientHello<'_>) -> bool {
        self.is_pending.load(Ordering::Acquire)
            && hello.alpn().is_some_and(|mut offered| offered.any(|one| one == PROTOCOL))
    }
}

impl ResolvesServerCert for AcmeChallenges {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.by_name.load().find(hello.server_name()?).cloned().flatten()
    }
}
