//! Is this certificate the endpoint's? By authorities that are trusted; or, where a pool wants that,
//! not asked at all.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::client::failed;
use super::{CertificateError, Pem};

/// Every certificate of a PEM file; there is one at least.
pub(super) fn certificates(file: &Pem) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&file.contents).collect();
    let read =
        read.map_err(|error| failed(file, format!("cannot read certificates (PEM): {error}")))?;
    match read.is_empty() {
        true => Err(failed(file, "holds no certificate; PEM is expected".into())),
        false => Ok(read),
    }
}

/// Authorities, and where they came from.
pub(super) struct Trusted {
    roots: RootCertStore,
    source: PathBuf,
}

impl Trusted {
    /// What is in this file.
    pub(super) fn of_file(file: &Pem) -> Result<Trusted, CertificateError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(file)? {
            roots
                .add(certificate)
                .map_err(|error| failed(file, format!("holds what is no authority: {error}")))?;
        }
        Ok(Trusted { roots, source: file.path.clone() })
    }

    /// What this machine trusts.
    pub(super) fn of_machine() -> Result<Trusted, CertificateError> {
        let source = PathBuf::from("the machine's certificates");
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            let why = found.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
            let problem = format!(
                "this machine trusts nobody{why}; install them (Debian: ca-certificates), or name \
                 `ca` in the pool's `tls`"
            );
            return Err(CertificateError { path: source, problem });
        }
        Ok(Trusted { roots, source })
    }
}

/// Verifies by trusted authorities.
#[derive(Debug)]
pub(super) struct Verifier {
    inner: Arc<WebPkiServerVerifier>,
}

impl Verifier {
    pub(super) fn new(
        trusted: Trusted,
        revoked: Option<&Pem>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Verifier, CertificateError> {
        let Trusted { roots, source } = trusted;
        let mut builder =
            WebPkiServerVerifier::builder_with_provider(roots.into(), provider.clone());
        if let Some(file) = revoked {
            let lists: Result<Vec<_>, _> =
                CertificateRevocationListDer::pem_slice_iter(&file.contents).collect();
            let lists = lists.map_err(|error| {
                failed(file, format!("cannot read lists of revoked certificates (PEM): {error}"))
            })?;
            // Authorities that have no list there have taken nothing back.
            builder = builder.with_crls(lists).allow_unknown_revocation_status();
        }
        let path = revoked.map_or(source, |file| file.path.clone());
        let built = builder.build();
        let inner = built.map_err(|error| CertificateError { path, problem: error.to_string() })?;
        Ok(Verifier { inner })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.inner.verify_server_cert(end_entity, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Takes every certificate; that its owner has the key is still verified.
#[derive(Debug)]
pub(super) struct Anything {
    algorithms: WebPkiSupportedAlgorithms,
}

impl Anything {
    pub(super) fn new(provider: &Arc<CryptoProvider>) -> Anything {
        Anything { algorithms: provider.signature_verification_algorithms }
    }
}

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
