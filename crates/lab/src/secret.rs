//! The certificate every balancer is measured with, and clients that trust it.
//!
//! One key type (ECDSA P-256), one curve (X25519), one cipher (TLS 1.3 with AES-128-GCM): a client
//! that offers nothing else makes all balancers do the same cryptography.

use std::io;
use std::sync::Arc;

use rcgen::{CertificateParams, CertifiedKey, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::client::{ClientSessionMemoryCache, Resumption};
use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider, kx_group};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

/// Whom the certificate is for.
pub const SERVER_NAME: &str = "bench.test";
/// Sessions a client keeps: one for each thread that makes handshakes would do.
const SESSIONS: usize = 256;

/// A certificate that signs itself, with its key.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// PEM.
    pub chain: String,
    /// PEM, PKCS #8.
    pub key: String,
    der: CertificateDer<'static>,
}

impl Certificate {
    /// A new one for [`SERVER_NAME`].
    ///
    /// # Errors
    /// The cryptographic library cannot make it.
    pub fn new() -> io::Result<Certificate> {
        let made = || {
            let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
            let cert = CertificateParams::new(vec![SERVER_NAME.to_owned()])?.self_signed(&key)?;
            Ok(CertifiedKey { cert, signing_key: key })
        };
        let made = made().map_err(|error: rcgen::Error| io::Error::other(error))?;
        Ok(Certificate {
            chain: made.cert.pem(),
            key: made.signing_key.serialize_pem(),
            der: made.cert.der().clone(),
        })
    }

    /// A client that trusts it and nothing else. With `resumes` it keeps and uses tickets.
    ///
    /// # Errors
    /// The TLS library refuses the certificate.
    pub fn client(&self, resumes: bool) -> io::Result<Arc<ClientConfig>> {
        let mut provider = default_provider();
        provider.cipher_suites = vec![cipher_suite::TLS13_AES_128_GCM_SHA256];
        provider.kx_groups = vec![kx_group::X25519];
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).map_err(io::Error::other)?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.resumption = match resumes {
            true => Resumption::store(Arc::new(ClientSessionMemoryCache::new(SESSIONS))),
            false => Resumption::disabled(),
        };
        Ok(Arc::new(config))
    }
}
