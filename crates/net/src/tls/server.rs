//! What a listener does with TLS, ready for handshakes.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::server::NoServerSessionStorage;
use subak_certificate::Certificate;

use super::challenges::{self, AcmeChallenges};
use super::client_certificates::ClientCertificates;
use super::store::{CertificateStore, Origin, UnknownName};
use super::suites::{Version, provider};
use super::tickets::TicketKeys;

/// What is wanted of a listener's TLS.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// The first one is the default.
    pub certificates: Vec<Certificate>,
    /// What becomes of names that no certificate is for.
    pub unknown_name: UnknownName,
    /// What is offered by ALPN, the preferred first.
    pub protocols: Vec<&'static [u8]>,
    /// The least version.
    pub min_version: Version,
    /// How often the key of session tickets changes; none: there are no tickets.
    pub tickets: Option<Duration>,
    /// None: clients are not asked for certificates.
    pub client: Option<ClientCertificates>,
}

/// Why a listener cannot speak TLS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsSetupError(pub String);

impl fmt::Display for TlsSetupError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for TlsSetupError {}

/// Numbers the ways of verifying clients over all listeners; 0 stands for none.
static VERIFICATIONS: AtomicU64 = AtomicU64::new(1);

/// What clients are verified by, with a number that no other such value has had.
struct Verified {
    number: u64,
    by: Option<ClientCertificates>,
}

impl Verified {
    /// The same as before where it is the same, else one with a new number.
    fn after(before: Option<&Verified>, by: Option<ClientCertificates>) -> Verified {
        let number = match (before, &by) {
            (_, None) => 0,
            (Some(before), by) if before.by == *by => before.number,
            _ => VERIFICATIONS.fetch_add(1, Ordering::Relaxed),
        };
        Verified { number, by }
    }
}

/// One listener's TLS.
pub struct ServerTls {
    verified: ArcSwap<Verified>,
    config: ArcSwap<ServerConfig>,
    /// For authorities that come for a challenge.
    for_challenges: Arc<ServerConfig>,
    store: Arc<CertificateStore>,
    challenges: Arc<AcmeChallenges>,
    tickets: Option<Arc<TicketKeys>>,
    options: TlsOptions,
}

impl ServerTls {
    /// Prepares handshakes. What `previous` has of the same kind goes on: the keys of tickets (unless
    /// another client could use them to pass for verified), what came from ACME, pending challenges.
    ///
    /// # Errors
    /// [`TlsSetupError`].
    pub fn new(
        options: TlsOptions,
        previous: Option<&ServerTls>,
    ) -> Result<ServerTls, TlsSetupError> {
        let store = CertificateStore::new(options.certificates.clone(), options.unknown_name);
        if let Some(previous) = previous {
            store.set(Origin::Acme, previous.store.of(Origin::Acme));
        }
        let store = Arc::new(store);
        let challenges = previous.map(|previous| previous.challenges.clone()).unwrap_or_default();
        let before = previous.map(|previous| previous.verified.load_full());
        let verified = Verified::after(before.as_deref(), options.client.clone());
        let tickets = match options.tickets {
            None => None,
            Some(period) => {
                let goes_on = |previous: &&ServerTls| previous.options.client == options.client;
                let kept = previous.filter(goes_on).and_then(|previous| previous.tickets.clone());
                let kept = kept.filter(|keys| keys.period() == period);
                Some(kept.map_or_else(|| TicketKeys::new(period).map(Arc::new), Ok)?)
            }
        };
        let config = config(&options, &store, tickets.as_ref())?;
        let for_challenges = for_challenges(&challenges)?;
        let config = ArcSwap::from_pointee(config);
        let verified = ArcSwap::from_pointee(verified);
        Ok(ServerTls { verified, config, for_challenges, store, challenges, tickets, options })
    }

    /// Where certificates are chosen; may be changed while it serves.
    pub fn store(&self) -> &Arc<CertificateStore> {
        &self.store
    }

    /// Challenges of ACME that are pending.
    pub fn challenges(&self) -> &Arc<AcmeChallenges> {
        &self.challenges
    }

    /// Asks this of clients from now on, and lets no ticket of before pass.
    ///
    /// # Errors
    /// [`TlsSetupError`]; then everything is as it was.
    pub fn set_client(&self, client: ClientCertificates) -> Result<(), TlsSetupError> {
        let verified = Verified::after(Some(&self.verified.load()), Some(client.clone()));
        let options = TlsOptions { client: Some(client), ..self.options.clone() };
        let tickets = options.tickets.map(|period| TicketKeys::new(period).map(Arc::new));
        let tickets = tickets.transpose()?;
        self.config.store(Arc::new(config(&options, &self.store, tickets.as_ref())?));
        // Afterwards: a handshake between the two counts as one of before, and is made again.
        self.verified.store(Arc::new(verified));
        Ok(())
    }

    /// The number of the way in which clients are verified now, for [`ServerTls::is_outdated`]. Asked for
    /// before a handshake begins.
    pub fn verification(&self) -> u64 {
        self.verified.load().number
    }

    /// Whether a client that was let in under this number has to show its certificate again: it was asked
    /// for none, or was verified by other authorities or revocation lists.
    #[inline]
    pub fn is_outdated(&self, verification: u64) -> bool {
        let now = self.verified.load().number;
        now != 0 && now != verification
    }

    /// What handshakes go by.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        self.config.load_full()
    }

    /// What they go by when an authority has come for a challenge.
    pub(super) fn for_challenges(&self) -> &Arc<ServerConfig> {
        &self.for_challenges
    }
}

fn config(
    options: &TlsOptions,
    store: &Arc<CertificateStore>,
    tickets: Option<&Arc<TicketKeys>>,
) -> Result<ServerConfig, TlsSetupError> {
    let provider = Arc::new(provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(options.min_version.and_later())
        .map_err(|error| TlsSetupError(error.to_string()))?;
    let builder = match &options.client {
        Some(client) => builder.with_client_cert_verifier(client.verifier(&provider)?),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(store.clone());
    config.alpn_protocols = options.protocols.iter().map(|name| name.to_vec()).collect();
    // A cache of sessions would be behind a lock that all workers share; tickets need none.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    match tickets {
        Some(tickets) => config.ticketer = tickets.clone(),
        None => config.send_tls13_tickets = 0,
    }
    Ok(config)
}

fn for_challenges(challenges: &Arc<AcmeChallenges>) -> Result<Arc<ServerConfig>, TlsSetupError> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider()))
        .with_protocol_versions(Version::Tls12.and_later())
        .map_err(|error| TlsSetupError(error.to_string()))?
        .with_no_client_auth()
        .with_cert_resolver(challenges.clone());
    config.alpn_protocols = vec![challenges::PROTOCOL.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ServerTls").field("options", &self.options).finish_non_exhaustive()
    }
}
