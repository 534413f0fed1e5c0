//! Certificates that clients show: who may have signed them, and who has been shut out since.

use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

use super::server::TlsSetupError;

/// What is asked of clients.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientCertificates {
    /// Who may have signed.
    pub authorities: Vec<CertificateDer<'static>>,
    /// What has been revoked; an authority without a list has revoked nothing.
    pub revoked: Vec<CertificateRevocationListDer<'static>>,
    /// Whether a client without a certificate is refused.
    pub is_required: bool,
}

impl ClientCertificates {
    pub(super) fn verifier(
        &self,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ClientCertVerifier>, TlsSetupError> {
        let mut roots = RootCertStore::empty();
        for authority in &self.authorities {
            roots.add(authority.clone()).map_err(|error| {
                TlsSetupError(format!("client.ca holds what is no authority: {error}"))
            })?;
        }
        let mut builder =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                .with_crls(self.revoked.iter().cloned())
                .allow_unknown_revocation_status();
        if !self.is_required {
            builder = builder.allow_unauthenticated();
        }
        builder.build().map_err(|error| {
            TlsSetupError(format!("client certificates cannot be verified: {error}"))
        })
    }
}
