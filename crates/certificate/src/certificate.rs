//! A certificate chain with its private key, ready to be served.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::about::About;
use crate::error::CertificateError;
use crate::ocsp::OcspResponse;

/// Certificates of a chain; a longer one is a mistake.
const MAX_CHAIN: usize = 16;

/// A file that has been read. May be secret: `Debug` shows its path alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    /// Where it was read, for messages.
    pub path: PathBuf,
    /// Its bytes.
    pub contents: Bytes,
}

impl Pem {
    /// The private key that it holds.
    ///
    /// # Errors
    /// [`CertificateError`].
    pub fn private_key(&self) -> Result<PrivateKeyDer<'static>, CertificateError> {
        PrivateKeyDer::from_pem_slice(&self.contents).map_err(|error| {
            let has = |text: &[u8]| self.contents.windows(text.len()).any(|part| part == text);
            // By its section, or as OpenSSL wrote it before there was one.
            let problem = match has(b"BEGIN ENCRYPTED PRIVATE KEY") || has(b"4,ENCRYPTED") {
                true => "the private key is protected by a passphrase, which nobody could be asked for; \
                         store it without (`openssl pkey -in … -out …`), with mode 600"
                    .to_owned(),
                false => format!("cannot read the private key (PEM): {error}"),
            };
            failed(self, problem)
        })
    }
}

impl fmt::Debug for Pem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Pem").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A certificate that goes with its key.
#[derive(Clone)]
pub struct Certificate {
    key: Arc<CertifiedKey>,
    about: Arc<About>,
    ocsp: Option<OcspResponse>,
}

impl Certificate {
    /// Reads a chain and its key, and the OCSP response to staple if there is one.
    ///
    /// # Errors
    /// [`CertificateError`] names the file and what to do.
    pub fn load(
        chain: &Pem,
        key: &Pem,
        ocsp: Option<&Pem>,
    ) -> Result<Certificate, CertificateError> {
        let certificates = chain_of(chain)?;
        let about = About::of(&certificates[0], chain.path.as_path().into())
            .map_err(|problem| failed(chain, problem))?;
        let private = key.private_key()?;
        let response = ocsp
            .map(|file| {
                OcspResponse::read(&file.contents, about.serial_bytes())
                    .map_err(|error| failed(file, error.to_string()))
            })
            .transpose()?;
        let provider = aws_lc_rs::default_provider();
        let mut certified = CertifiedKey::from_der(certificates, private, &provider).map_err(
            |error| match error {
                rustls::Error::InconsistentKeys(_) => failed(
                    chain,
                    format!(
                        "does not go with {}: that is the key of another certificate",
                        key.path.display()
                    ),
                ),
                error => failed(key, format!("this private key cannot be used: {error}")),
            },
        )?;
        certified.ocsp = response.as_ref().map(|response| response.der().to_vec());
        Ok(Certificate { key: Arc::new(certified), about: Arc::new(about), ocsp: response })
    }

    /// What a handshake needs of it.
    pub fn key(&self) -> &Arc<CertifiedKey> {
        &self.key
    }

    /// What it says.
    pub fn about(&self) -> &Arc<About> {
        &self.about
    }

    /// Whether serving this one in place of `served` would be worse: clients refuse it now, and take
    /// the other. Seconds since 1970.
    pub fn is_worse_than(&self, served: &Certificate, now: i64) -> bool {
        !self.about.validity.holds(now) && served.about.validity.holds(now)
    }

    /// What is stapled.
    pub fn ocsp(&self) -> Option<&OcspResponse> {
        self.ocsp.as_ref()
    }

    /// The same without its OCSP response, because that is not good any more.
    pub fn without_ocsp(&self) -> Certificate {
        let mut key = CertifiedKey::clone(&self.key);
        key.ocsp = None;
        Certificate { key: Arc::new(key), about: self.about.clone(), ocsp: None }
    }

    /// Certificates that are trusted to sign others, from a PEM file with at least one.
    ///
    /// # Errors
    /// [`CertificateError`].
    pub fn authorities(file: &Pem) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&file.contents).collect();
        let read =
            read.map_err(|error| failed(file, format!("cannot read certificates (PEM): {error}")))?;
        if read.is_empty() {
            return Err(failed(file, "holds no certificate; PEM is expected".into()));
        }
        Ok(read)
    }

    /// Lists of revoked certificates from a PEM file with at least one.
    ///
    /// # Errors
    /// [`CertificateError`].
    pub fn revoked(
        file: &Pem,
    ) -> Result<Vec<CertificateRevocationListDer<'static>>, CertificateError> {
        let read: Result<Vec<_>, _> =
            CertificateRevocationListDer::pem_slice_iter(&file.contents).collect();
        let read =
            read.map_err(|error| failed(file, format!("cannot read a list (PEM): {error}")))?;
        if read.is_empty() {
            return Err(failed(
                file,
                "holds no list of revoked certificates; PEM is expected".into(),
            ));
        }
        Ok(read)
    }
}

fn chain_of(file: &Pem) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let chain = Certificate::authorities(file)?;
    if chain.len() > MAX_CHAIN {
        let problem =
            format!("holds {} certificates; a chain has {MAX_CHAIN} at most", chain.len());
        return Err(failed(file, problem));
    }
    Ok(chain)
}

fn failed(file: &Pem, problem: String) -> CertificateError {
    CertificateError { path: file.path.clone(), problem }
}

/// Its key is not shown.
impl fmt::Debug for Certificate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Certificate").field("about", &self.about).finish_non_exhaustive()
    }
}
