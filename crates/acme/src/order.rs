//! One order, from the account to the certificate (RFC 8555, 7.4).
//!
//! Challenges are laid into the storage, so that whichever process the authority asks can answer; each
//! looks there every [`LOOK`], so the authority is told to ask after [`SETTLE`]. A nonce that is refused
//! costs another try and nothing else. The caller holds the storage's lock and limits the time.

use std::fmt;
use std::time::{Duration, SystemTime};

use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, CertificateIdentifier, ChallengeType, Error,
    ExternalAccountKey, Identifier, NewAccount, NewOrder, Order, OrderStatus, Problem, RetryPolicy,
};
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use subak_config::{Acme, AcmeChallenge};

use crate::certificate::{self, Held};
use crate::due::Window;
use crate::http::Http;
use crate::storage::{self, Lock, Storage};

/// How often every process looks which challenges wait.
pub(crate) const LOOK: Duration = Duration::from_millis(100);
/// After this all of them have looked.
const SETTLE: Duration = Duration::from_millis(500);
/// For the authority to look at challenges, and to make a certificate.
const POLLING: Duration = Duration::from_secs(60);
/// How often a request is sent again whose nonce was refused; the library itself sends it three times.
const NONCES: u32 = 10;

/// Why an order came to nothing.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) detail: String,
    /// The authority wants to hear nothing before.
    pub(crate) not_before: Option<SystemTime>,
}

/// With whom, and for what.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) acme: Acme,
    pub(crate) storage: Storage,
    pub(crate) http: Http,
}

/// Nothing of it is for logs.
impl fmt::Debug for Desk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Desk").field("storage", &self.storage).finish_non_exhaustive()
    }
}

/// An account as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    directory: String,
    email: Option<String>,
    credentials: serde_json::Value,
}

/// Sends it again while the authority refuses nonces.
macro_rules! patiently {
    ($request:expr) => {{
        let mut left = NONCES;
        loop {
            match $request.await {
                Err(Error::Api(problem)) if left > 0 && is(&problem, "badNonce") => left -= 1,
                answer => break answer,
            }
        }
    }};
}

impl Desk {
    /// Orders a certificate for `names` and puts it into the storage.
    pub(crate) async fn order(
        &self,
        lock: &Lock,
        names: &[Box<str>],
        file: &std::path::Path,
        challenge: AcmeChallenge,
        replaces: Option<&CertificateDer<'_>>,
    ) -> Result<Held, Failure> {
        self.http.take_pause();
        let ordered = self.try_order(lock, names, file, challenge, replaces).await;
        ordered.map_err(|detail| Failure { detail, not_before: self.http.take_pause() })
    }

    async fn try_order(
        &self,
        lock: &Lock,
        names: &[Box<str>],
        file: &std::path::Path,
        challenge: AcmeChallenge,
        replaces: Option<&CertificateDer<'_>>,
    ) -> Result<Held, String> {
        self.storage.ask_nothing(lock).map_err(|error| format!("the storage: {error}"))?;
        let account = self.account(lock).await?;
        let identifiers: Vec<_> =
            names.iter().map(|name| Identifier::Dns(name.to_string())).collect();
        let mut order = self.open(&account, &identifiers, replaces).await?;
        if order.state().status == OrderStatus::Pending {
            self.prove(lock, &mut order, challenge).await?;
        }
        let key = certificate::new_key(self.acme.key_type)?;
        let request = certificate::request(names, &key)?;
        patiently!(order.finalize_csr(&request)).map_err(|error| shown(&error))?;
        let policy = polling();
        let chain = patiently!(order.poll_certificate(&policy)).map_err(|error| shown(&error))?;
        let pem = format!("{}{chain}", key.serialize_pem());
        let held = certificate::read(&pem, file, names)
            .map_err(|why| format!("the authority has sent what is of no use: {why}"))?;
        storage::write(file, pem.as_bytes())
            .map_err(|error| format!("cannot keep it in {}: {error}", file.display()))?;
        Ok(held)
    }

    async fn open(
        &self,
        account: &Account,
        identifiers: &[Identifier],
        replaces: Option<&CertificateDer<'_>>,
    ) -> Result<Order, String> {
        let wanted = || match &self.acme.profile {
            Some(profile) => NewOrder::new(identifiers).profile(profile),
            None => NewOrder::new(identifiers),
        };
        let replaced = replaces.and_then(|leaf| CertificateIdentifier::try_from(leaf).ok());
        if let Some(replaced) = replaced {
            let wanted = wanted().replaces(replaced);
            let opened = patiently!(account.new_order(&wanted));
            match opened {
                Ok(order) => return Ok(order),
                // It knows nothing of that, or of the one that goes: then without.
                Err(error) => tracing::debug!("an order that replaces another: {}", shown(&error)),
            }
        }
        let wanted = wanted();
        patiently!(account.new_order(&wanted)).map_err(|error| shown(&error))
    }

    /// Answers the challenges of an order, until it is ready.
    async fn prove(
        &self,
        lock: &Lock,
        order: &mut Order,
        kind: AcmeChallenge,
    ) -> Result<(), String> {
        let wanted = match kind {
            AcmeChallenge::Http01 => ChallengeType::Http01,
            AcmeChallenge::TlsAlpn01 => ChallengeType::TlsAlpn01,
        };
        patiently!(fetch(order)).map_err(|error| shown(&error))?;
        // Twice over the same ones: first all are laid out, then the authority is told.
        for is_laid_out in [false, true] {
            if is_laid_out {
                tokio::time::sleep(SETTLE).await;
            }
            let mut authorizations = order.authorizations();
            while let Some(one) = authorizations.next().await {
                let mut one = one.map_err(|error| shown(&error))?;
                if one.status == AuthorizationStatus::Valid {
                    continue;
                }
                let name = one.identifier().to_string();
                let Some(mut challenge) = one.challenge(wanted.clone()) else {
                    return Err(format!("the authority does not offer {} for {name}", kind.name()));
                };
                if is_laid_out {
                    patiently!(challenge.set_ready()).map_err(|error| shown(&error))?;
                    continue;
                }
                let file = match kind {
                    AcmeChallenge::Http01 => challenge.token.clone(),
                    AcmeChallenge::TlsAlpn01 => name.to_lowercase(),
                };
                let answer = challenge.key_authorization();
                let asked = self.storage.ask(lock, kind, &file, answer.as_str());
                asked.map_err(|error| format!("cannot lay out a challenge: {error}"))?;
            }
        }
        let policy = polling();
        match patiently!(order.poll_ready(&policy)) {
            Ok(OrderStatus::Ready) => Ok(()),
            Ok(_) => Err(refusal(order).await.unwrap_or_else(|| {
                "the authority has refused the order and does not say why".into()
            })),
            Err(Error::Timeout(_)) => Err(format!(
                "the authority has not looked at the challenge within {} s",
                POLLING.as_secs()
            )),
            Err(error) => Err(refusal(order).await.unwrap_or_else(|| shown(&error))),
        }
    }

    /// The account at the directory: the one that is kept, or a new one.
    async fn account(&self, lock: &Lock) -> Result<Account, String> {
        let file = self.storage.account_file(&self.acme.directory);
        if let Some(kept) = self.kept()? {
            match self.known(&kept).await {
                Ok(account) => return self.with_contact(lock, account, kept, &file).await,
                Err(Error::Api(problem)) if is(&problem, "accountDoesNotExist") => {
                    tracing::warn!(directory = %self.acme.directory, "the authority does not know our account any more; another one is made");
                }
                Err(error) => return Err(shown(&error)),
            }
        }
        let contact = self.contact();
        let contact: Vec<_> = contact.iter().map(String::as_str).collect();
        let external = self.acme.external_account.as_ref();
        let external =
            external.map(|known| ExternalAccountKey::new(known.id.to_string(), known.secret()));
        // Configuration takes nothing for a yes but a yes.
        let wanted = NewAccount {
            contact: &contact,
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let directory = self.acme.directory.to_string();
        let made = patiently!(self.builder().create(&wanted, directory.clone(), external.as_ref()));
        let (account, credentials) = made.map_err(|error| shown(&error))?;
        let credentials = serde_json::to_value(credentials).map_err(|error| error.to_string())?;
        let email = self.acme.email.as_deref().map(String::from);
        keep(&file, &Kept { directory, email, credentials })?;
        tracing::info!(directory = %self.acme.directory, account = account.id(), "an account has been made");
        Ok(account)
    }

    fn builder(&self) -> instant_acme::AccountBuilder {
        Account::builder_with_http(Box::new(self.http.clone()))
    }

    fn contact(&self) -> Vec<String> {
        self.acme.email.iter().map(|email| format!("mailto:{email}")).collect()
    }

    fn kept(&self) -> Result<Option<Kept>, String> {
        let file = self.storage.account_file(&self.acme.directory);
        let text = storage::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let Some(text) = text else { return Ok(None) };
        let kept = serde_json::from_str(&text);
        kept.map(Some).map_err(|error| format!("{}: {error}", file.display()))
    }

    async fn known(&self, kept: &Kept) -> Result<Account, Error> {
        let credentials = AccountCredentials::deserialize(&kept.credentials)?;
        self.builder().from_credentials(credentials).await
    }

    /// Tells the authority of another address, where the configuration has one.
    async fn with_contact(
        &self,
        _: &Lock,
        account: Account,
        kept: Kept,
        file: &std::path::Path,
    ) -> Result<Account, String> {
        let email = self.acme.email.as_deref();
        if kept.email.as_deref() == email {
            return Ok(account);
        }
        let contact = self.contact();
        let contact: Vec<_> = contact.iter().map(String::as_str).collect();
        patiently!(account.update_contacts(&contact)).map_err(|error| shown(&error))?;
        keep(file, &Kept { email: email.map(String::from), ..kept })?;
        Ok(account)
    }

    /// When the authority suggests to replace this certificate, and when to ask again. None: it does
    /// not say.
    pub(crate) async fn window(
        &self,
        leaf: &CertificateDer<'_>,
    ) -> Result<Option<(Window, Duration)>, String> {
        let Some(kept) = self.kept()? else { return Ok(None) };
        let account = self.known(&kept).await.map_err(|error| shown(&error))?;
        let Ok(id) = CertificateIdentifier::try_from(leaf) else { return Ok(None) };
        match account.renewal_info(&id).await {
            Ok((info, again)) => {
                let window = info.suggested_window;
                let window = Window { begins: window.start.into(), ends: window.end.into() };
                Ok(Some((window, again)))
            }
            Err(Error::Unsupported(_)) => Ok(None),
            Err(error) => Err(shown(&error)),
        }
    }
}

/// Gets all authorizations of an order, which keeps them.
async fn fetch(order: &mut Order) -> Result<(), Error> {
    let mut authorizations = order.authorizations();
    while let Some(one) = authorizations.next().await {
        one?;
    }
    Ok(())
}

/// What the authority says about the names of an order that it has refused.
async fn refusal(order: &mut Order) -> Option<String> {
    let mut reasons = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut one)) = authorizations.next().await {
        let Ok(state) = patiently!(one.refresh()) else { continue };
        let problems = state.challenges.iter().filter_map(|challenge| challenge.error.as_ref());
        let problems: Vec<_> = problems.map(said).collect();
        let name = state.identifier().to_string();
        reasons.extend(problems.into_iter().map(|problem| format!("{name}: {problem}")));
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

fn keep(file: &std::path::Path, kept: &Kept) -> Result<(), String> {
    let text = serde_json::to_vec_pretty(kept).map_err(|error| error.to_string())?;
    storage::write(file, &text).map_err(|error| format!("{}: {error}", file.display()))
}

fn polling() -> RetryPolicy {
    RetryPolicy::new().initial_delay(LOOK).backoff(1.5).timeout(POLLING)
}

fn is(problem: &Problem, kind: &str) -> bool {
    problem.r#type.as_deref().is_some_and(|name| name.rsplit(':').next() == Some(kind))
}

/// A problem as the authority puts it.
fn said(problem: &Problem) -> String {
    let kind = problem.r#type.as_deref().and_then(|name| name.rsplit(':').next());
    let detail = problem.detail.as_deref().unwrap_or("no further words");
    let mut text = match kind {
        Some(kind) => format!("{detail} ({kind})"),
        None => detail.to_owned(),
    };
    for part in &problem.subproblems {
        text = format!("{text}; {part}");
    }
    text
}

fn shown(error: &Error) -> String {
    match error {
        Error::Api(problem) => said(problem),
        error => error.to_string(),
    }
}
