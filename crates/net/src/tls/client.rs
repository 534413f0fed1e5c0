//! TLS towards endpoints: what one pool trusts and shows, and one endpoint with its sessions.
//!
//! An endpoint's certificate has to be signed by an authority that is trusted, be in force, and name the
//! endpoint. Trusted are the authorities of a file, else those of the machine: they are the operator's
//! to keep up to date, which a list built into the program is not (`rustls-native-certs`, which reads
//! what OpenSSL reads, `SSL_CERT_FILE` included).
//!
//! Sessions are kept for each endpoint by itself and shared by all workers: at most
//! [`SESSIONS`] tickets an endpoint. A ticket is of use only where it was given.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustls::ClientConfig;
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{ClientSessionMemoryCache, Resumption};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use subak_certificate::Anybody;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use super::facts::TlsFacts;
use super::failure::TlsFailure;
use super::verify::{Trusted, Verifier};
use super::{CertificateError, Pem};
use crate::connect::within;
use crate::deadline::Deadline;
use crate::stream::Stream;

/// Tickets kept for one endpoint.
const SESSIONS: usize = 8;
/// One line of the log in so long about one endpoint that cannot be reached by TLS.
const COMPLAIN_EVERY: Duration = Duration::from_secs(10);

/// What a pool wants of TLS to its endpoints.
#[derive(Clone, Debug, Default)]
pub struct ClientTlsSpec {
    /// Trusted authorities; none: those of the machine.
    pub authorities: Option<Pem>,
    /// Certificates that authorities have taken back; none: nobody looks.
    pub revoked: Option<Pem>,
    /// What is shown to endpoints that ask for a certificate: chain and key.
    pub certificate: Option<(Pem, Pem)>,
    /// Whatever certificate an endpoint shows is taken.
    pub unverified: bool,
    /// What is offered by ALPN, the preferred first.
    pub protocols: Vec<Vec<u8>>,
}

/// TLS to the endpoints of one pool.
#[derive(Clone)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
}

impl ClientTls {
    /// Reads what is trusted and what is shown.
    ///
    /// # Errors
    /// [`CertificateError`] names the file and what to do.
    pub fn new(spec: &ClientTlsSpec) -> Result<ClientTls, CertificateError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match (&spec.authorities, spec.unverified) {
            (_, true) => Arc::new(Anybody::new(&provider)),
            (authorities, false) => {
                let trusted =
                    authorities.as_ref().map_or_else(Trusted::of_machine, Trusted::of_file);
                Arc::new(Verifier::new(trusted?, spec.revoked.as_ref(), &provider)?)
            }
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| CertificateError {
                path: "TLS".into(),
                problem: format!("no version of TLS can be spoken: {error}"),
            })?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match &spec.certificate {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                let (certificates, private) = own(chain, key)?;
                builder.with_client_auth_cert(certificates, private).map_err(|error| {
                    failed(chain, format!("does not go with {}: {error}", key.path.display()))
                })?
            }
        };
        config.alpn_protocols.clone_from(&spec.protocols);
        Ok(ClientTls { config: Arc::new(config) })
    }

    /// One endpoint, which has to show a certificate for `name`: a host's name or an address.
    ///
    /// # Errors
    /// [`NoServerName`]: no certificate can have such a name.
    pub fn to(&self, name: &str) -> Result<TlsTarget, NoServerName> {
        let name = ServerName::try_from(name.to_owned()).map_err(|_| NoServerName)?;
        let mut config = ClientConfig::clone(&self.config);
        let sessions = Arc::new(ClientSessionMemoryCache::new(SESSIONS));
        config.resumption = Resumption::store(sessions);
        let mut http1 = None;
        if config.alpn_protocols.len() > 1 {
            let mut alone = config.clone();
            alone.alpn_protocols.retain(|protocol| protocol == b"http/1.1");
            http1 = Some(Arc::new(alone).into());
        }
        let connector = Arc::new(config).into();
        Ok(TlsTarget { connector, http1, name, complained: AtomicU64::new(0) })
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("ClientTls")
    }
}

/// That something can be no name in a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoServerName;

impl fmt::Display for NoServerName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("this is neither the name of a host nor an address")
    }
}

impl std::error::Error for NoServerName {}

/// What is offered by ALPN.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Offer {
    /// All that the pool speaks.
    #[default]
    All,
    /// HTTP/1.1 alone.
    Http1,
}

/// One endpoint as it is reached by TLS, with the sessions it has given.
pub struct TlsTarget {
    connector: TlsConnector,
    /// Offers HTTP/1.1 alone, where the other offers more.
    http1: Option<TlsConnector>,
    name: ServerName<'static>,
    /// When it was complained of last, in ticks; 0: never.
    complained: AtomicU64,
}

impl TlsTarget {
    /// Makes a freshly connected stream secure, with `deadline` as the limit the caller has set.
    ///
    /// # Errors
    /// [`TlsFailure`]; nothing of a request has been sent.
    pub async fn secure(
        &self,
        stream: Stream,
        offer: Offer,
        deadline: &Deadline,
    ) -> Result<Stream, TlsFailure> {
        let Some((tcp, None)) = stream.into_tcp() else { return Err(TlsFailure::NoTcp) };
        let connector = match (offer, &self.http1) {
            (Offer::Http1, Some(http1)) => http1,
            _ => &self.connector,
        };
        let handshake = std::pin::pin!(connector.connect(self.name.clone(), tcp));
        match within(handshake, deadline).await {
            Some(Ok(stream)) => {
                let facts = TlsFacts::of_endpoint(stream.get_ref().1);
                Ok(Stream::secured(stream.into(), facts))
            }
            Some(Err(error)) => Err(TlsFailure::of(error)),
            None => Err(TlsFailure::TimedOut),
        }
    }

    /// The same for what asks on the control side, which keeps the time itself.
    ///
    /// # Errors
    /// [`TlsFailure`].
    pub async fn wrap<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> Result<tokio_rustls::client::TlsStream<S>, TlsFailure> {
        self.connector.connect(self.name.clone(), stream).await.map_err(TlsFailure::of)
    }

    /// The name that its certificate has to have.
    pub fn name(&self) -> String {
        self.name.to_str().into_owned()
    }

    /// Whether a line of the log may be written about it now: one in ten seconds.
    pub fn may_complain(&self) -> bool {
        let now = crate::now();
        let last = self.complained.load(Ordering::Relaxed);
        let is_over = last == 0 || now.since(subak_base::Tick(last)) >= COMPLAIN_EVERY;
        // Of two at the same moment one may.
        is_over
            && self
                .complained
                .compare_exchange(last, now.0.max(1), Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

impl fmt::Debug for TlsTarget {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TlsTarget").field("name", &self.name).finish_non_exhaustive()
    }
}

type Own = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn own(chain: &Pem, key: &Pem) -> Result<Own, CertificateError> {
    let certificates = subak_certificate::Certificate::authorities(chain)?;
    Ok((certificates, key.private_key()?))
}

pub(super) fn failed(pem: &Pem, problem: String) -> CertificateError {
    CertificateError { path: pem.path.clone(), problem }
}
