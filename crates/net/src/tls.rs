//! TLS towards clients; TLS towards endpoints is in [`client`].

pub mod client;
mod failure;
mod verify;

pub use failure::TlsFailure;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::stream::Stream;

/// Makes streams secure, with one certificate.
#[derive(Clone)]
pub struct TlsAcceptor {
    acceptor: tokio_rustls::TlsAcceptor,
}

/// Why certificate and key cannot be used.
#[derive(Debug)]
pub struct CertificateError {
    /// The file that was being read.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: String,
}

impl fmt::Display for CertificateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.path.display(), self.problem)
    }
}

impl std::error::Error for CertificateError {}

/// A PEM file that has been read. May be secret: `Debug` shows its path alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    /// Where it was read, for messages.
    pub path: PathBuf,
    /// Its bytes.
    pub contents: Bytes,
}

impl TlsAcceptor {
    /// Takes a certificate chain and its key, and offers `protocols` by ALPN.
    ///
    /// # Errors
    /// [`CertificateError`] names the file and what to do.
    pub fn new(
        chain: &Pem,
        key: &Pem,
        protocols: &[&[u8]],
    ) -> Result<TlsAcceptor, CertificateError> {
        let failed =
            |pem: &Pem, problem: String| CertificateError { path: pem.path.clone(), problem };
        let certificates = CertificateDer::pem_slice_iter(&chain.contents)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| failed(chain, format!("cannot read certificates (PEM): {error}")))?;
        if certificates.is_empty() {
            return Err(failed(chain, "holds no certificate; a PEM chain is expected".into()));
        }
        let private = PrivateKeyDer::from_pem_slice(&key.contents)
            .map_err(|error| failed(key, format!("cannot read the private key (PEM): {error}")))?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder.with_no_client_auth().with_single_cert(certificates, private)
            })
            .map_err(|error| {
                failed(chain, format!("does not go with {}: {error}", key.path.display()))
            })?;
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Ok(TlsAcceptor { acceptor: Arc::new(config).into() })
    }

    /// Makes a freshly accepted TCP stream secure. The caller limits the time.
    ///
    /// # Errors
    /// What the handshake reports; `Unsupported` for a stream that is not TCP.
    pub async fn accept(&self, stream: Stream) -> io::Result<Stream> {
        let tcp = stream.into_tcp().ok_or(io::ErrorKind::Unsupported)?;
        Ok(Stream::from(tokio_rustls::TlsStream::from(self.acceptor.accept(tcp).await?)))
    }
}

impl fmt::Debug for Pem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Pem").field("path", &self.path).finish_non_exhaustive()
    }
}

impl fmt::Debug for TlsAcceptor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("TlsAcceptor")
    }
}
