//! Is this certificate the endpoint's? By authorities that are trusted; because it is the very one that
//! is trusted. (A pool that does not want to ask takes [`subak_certificate::Anybody`].) That its owner has
//! the key is verified in any case.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError as Unfit, DigitallySignedStruct, Error, OtherError, RootCertStore,
    SignatureScheme,
};
use subak_certificate::{About, Certificate};

use super::client::failed;
use super::{CertificateError, Pem};

/// Authorities, and where they came from.
pub(super) struct Trusted {
    roots: RootCertStore,
    /// Those of a file, which may be endpoints' own.
    named: Vec<CertificateDer<'static>>,
    source: PathBuf,
}

impl Trusted {
    /// What is in this file.
    pub(super) fn of_file(file: &Pem) -> Result<Trusted, CertificateError> {
        let mut roots = RootCertStore::empty();
        let named = Certificate::authorities(file)?;
        for certificate in &named {
            roots
                .add(certificate.clone())
                .map_err(|error| failed(file, format!("holds what is no authority: {error}")))?;
        }
        Ok(Trusted { roots, named, source: file.path.clone() })
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
        Ok(Trusted { roots, named: Vec::new(), source })
    }
}

/// Verifies what endpoints show: takes what trusted authorities have signed and not taken back.
#[derive(Debug)]
pub(super) struct Verifier {
    authorities: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

impl Verifier {
    pub(super) fn new(
        trusted: Trusted,
        revoked: Option<&Pem>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Verifier, CertificateError> {
        let Trusted { roots, named, source } = trusted;
        let mut builder =
            WebPkiServerVerifier::builder_with_provider(roots.into(), provider.clone());
        if let Some(file) = revoked {
            let lists = Certificate::revoked(file)?;
            // Authorities that have no list there have taken nothing back.
            builder = builder.with_crls(lists).allow_unknown_revocation_status();
        }
        let path = revoked.map_or(source, |file| file.path.clone());
        let built = builder.build();
        let authorities =
            built.map_err(|error| CertificateError { path, problem: error.to_string() })?;
        Ok(Verifier { authorities, named })
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
        if self.named.iter().any(|named| named == end_entity) {
            return itself(end_entity, name, now);
        }
        let verified =
            self.authorities.verify_server_cert(end_entity, intermediates, name, ocsp, now);
        verified.map_err(|error| match error {
            // That of an authority comes up as some other error.
            Error::InvalidCertificate(Unfit::UnknownIssuer | Unfit::Other(_))
                if about(end_entity).is_ok_and(|about| about.is_self_signed) =>
            {
                Unfit::Other(OtherError(Arc::new(SelfSigned))).into()
            }
            // An authority of the same name with another key: a stranger.
            Error::InvalidCertificate(Unfit::BadSignature) => Unfit::UnknownIssuer.into(),
            error => error,
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// That a certificate is signed by itself and by nobody who is trusted.
#[derive(Debug)]
pub(super) struct SelfSigned;

impl fmt::Display for SelfSigned {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("self-signed and not trusted")
    }
}

impl std::error::Error for SelfSigned {}

/// The certificate itself is trusted, whoever has signed it: what is left are its time and its names.
fn itself(
    certificate: &CertificateDer<'_>,
    name: &ServerName<'_>,
    now: UnixTime,
) -> Result<ServerCertVerified, Error> {
    let about = about(certificate).map_err(|_| Error::from(Unfit::BadEncoding))?;
    let at = |seconds: i64| {
        UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
    };
    let (not_before, not_after) = (at(about.validity.from), at(about.validity.to));
    if now < not_before {
        return Err(Unfit::NotValidYetContext { time: now, not_before }.into());
    }
    if now > not_after {
        return Err(Unfit::ExpiredContext { time: now, not_after }.into());
    }
    verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
    Ok(ServerCertVerified::assertion())
}

fn about(certificate: &CertificateDer<'_>) -> Result<About, String> {
    About::of(certificate, Arc::from(Path::new("")))
}
