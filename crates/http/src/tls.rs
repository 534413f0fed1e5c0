//! A listener's TLS, from its configuration.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use subak_certificate::{Certificate, CertificateError};
use subak_config as config;
use subak_net::tls::{
    ClientCertificates, Origin, ServerTls, TlsOptions, TlsSetupError, UnknownName, Version,
};

use crate::service::{Service, ServiceError};

/// What a listener does with TLS; none: it does not speak it.
pub(crate) fn listener(
    listener: &config::Listener,
    previous: Option<&Service>,
) -> Result<Option<Arc<ServerTls>>, ServiceError> {
    let Some(tls) = &listener.tls else { return Ok(None) };
    // The same goes on as it is, with what has come from files and from ACME since.
    if let Some(previous) = previous
        && let (Some(known), Some(made_of)) = (&previous.tls, &previous.tls_made_of)
        && *made_of == (tls.clone(), listener.protocols)
    {
        return Ok(Some(known.clone()));
    }
    let failed = |error| ServiceError::Tls { listener: listener.name.to_string(), error };
    let client = match &tls.client {
        None => None,
        Some(client) => Some(
            client_certificates(client)
                .map_err(|error| failed(TlsSetupError(error.to_string())))?,
        ),
    };
    let protocols =
        [(listener.protocols.http2, &b"h2"[..]), (listener.protocols.http1, &b"http/1.1"[..])];
    let spoken = |(spoken, name): (bool, _)| spoken.then_some(name);
    let before = previous.and_then(|service| service.tls.as_deref());
    let options = TlsOptions {
        certificates: certificates(tls, before),
        unknown_name: match tls.unknown_name {
            config::UnknownName::Default => UnknownName::Default,
            config::UnknownName::Refuse => UnknownName::Refuse,
        },
        protocols: protocols.into_iter().filter_map(spoken).collect(),
        min_version: match tls.min_version {
            config::TlsVersion::Tls12 => Version::Tls12,
            config::TlsVersion::Tls13 => Version::Tls13,
        },
        tickets: tls.tickets,
        client,
    };
    let built = ServerTls::new(options, before).map_err(failed)?;
    Ok(Some(Arc::new(built)))
}

/// The certificates to serve. One that clients would refuse today does not replace what was read before
/// from the same file, as long as they take that: whoever looks after the files says so, and tries the
/// new one again.
fn certificates(tls: &config::Tls, before: Option<&ServerTls>) -> Vec<Certificate> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    let served = before.map(|tls| tls.store().of(Origin::Files)).unwrap_or_default();
    let choose = |new: &Certificate| {
        let is_older = |one: &&Certificate| one.about().source == new.about().source;
        match served.iter().find(is_older) {
            Some(older) if new.is_worse_than(older, now) => older.clone(),
            _ => new.clone(),
        }
    };
    tls.certificates.iter().map(|files| choose(&files.loaded)).collect()
}

/// What is asked of clients, from what was in its files.
///
/// # Errors
/// What is wrong with a file.
pub fn client_certificates(
    client: &config::ClientVerification,
) -> Result<ClientCertificates, CertificateError> {
    let revoked = client.crl.as_ref().map(|file| Certificate::revoked(&file.pem())).transpose()?;
    Ok(ClientCertificates {
        authorities: Certificate::authorities(&client.ca.pem())?,
        revoked: revoked.unwrap_or_default(),
        is_required: client.is_required,
    })
}
