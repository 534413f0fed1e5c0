//! A certificate chain with its private key, ready to be served.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::about::About;
use crate::error::CertificateError;
use crate::ocsp::OcspResponse;
use crate::pem_fault::{Wanted, pem_fault};

/// Certificates of a chain; a longer one is a mistake.
const MAX_CHAIN: usize = 16;
/// What editors on Windows put before a text.
const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

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
        PrivateKeyDer::from_pem_slice(&self.contents)
            .map_err(|error| self.unreadable(Wanted::PrivateKey, &error))
    }

    /// Why it does not hold what is wanted; `error` is all that the parser knows.
    fn unreadable(&self, wanted: Wanted, error: &pem::Error) -> CertificateError {
        let fault = pem_fault(&self.contents, wanted);
        failed(self, fault.unwrap_or_else(|| format!("cannot be read as PEM: {error}")))
    }

    /// Every section of one kind; there is one at least.
    fn all<T: PemObject>(&self, wanted: Wanted) -> Result<Vec<T>, CertificateError> {
        // Of a file with this mark the first section would be passed over.
        if self.contents.starts_with(BYTE_ORDER_MARK) {
            return Err(self.unreadable(wanted, &pem::Error::NoItemsFound));
        }
        let read: Result<Vec<T>, _> = T::pem_slice_iter(&self.contents).collect();
        match read {
            Ok(read) if read.is_empty() => Err(self.unreadable(wanted, &pem::Error::NoItemsFound)),
            read => read.map_err(|error| self.unreadable(wanted, &error)),
        }
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
        let made = CertifiedKey::from_der(certificates.clone(), private, &provider);
        let mut certified = made.map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => failed(chain, another_key(&certificates, key)),
            error => failed(
                key,
                format!(
                    "this private key cannot be used: {error}; `openssl pkey -in FILE -noout -text` \
                     says what it is, if it is whole"
                ),
            ),
        })?;
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
        file.all(Wanted::Certificate)
    }

    /// Lists of revoked certificates from a PEM file with at least one.
    ///
    /// # Errors
    /// [`CertificateError`].
    pub fn revoked(
        file: &Pem,
    ) -> Result<Vec<CertificateRevocationListDer<'static>>, CertificateError> {
        file.all(Wanted::RevocationList)
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

/// What to say of a chain whose first certificate is not that of the key.
#[cold]
fn another_key(chain: &[CertificateDer<'static>], key: &Pem) -> String {
    let provider = aws_lc_rs::default_provider();
    let fits = |certificate: &CertificateDer<'static>| {
        let chain = vec![certificate.clone()];
        let private = key.private_key();
        private.is_ok_and(|private| CertifiedKey::from_der(chain, private, &provider).is_ok())
    };
    let key = key.path.display();
    match chain.iter().skip(1).position(fits) {
        Some(place) => format!(
            "begins with another certificate than that of {key}, which is the one at place {}; the \
             site's own certificate comes first, then those that signed it",
            place + 2
        ),
        None => format!(
            "does not go with {key}: that is the key of another certificate; both have the same \
             public key (`openssl x509 -in CHAIN -noout -pubkey`, `openssl pkey -in KEY -pubout`)"
        ),
    }
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
