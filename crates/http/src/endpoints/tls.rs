//! TLS to the endpoints of one pool: which name each has to have, and the sessions each has given.
//!
//! Built with a snapshot and shared by listeners, workers and probes; what stays the same over a reload
//! keeps its sessions.

use std::collections::HashMap;
use std::sync::Arc;

use subak_base::Address;
use subak_certificate::{CertificateError, Pem};
use subak_config as config;
use subak_net::tls::client::{ClientTls, ClientTlsSpec, TlsTarget};

/// TLS to the endpoints of one pool.
#[derive(Debug)]
pub struct PoolTls {
    wanted: config::EndpointTls,
    protocols: Vec<&'static [u8]>,
    client: ClientTls,
    targets: HashMap<Address, (String, Arc<TlsTarget>)>,
}

impl PoolTls {
    /// For these endpoints, offering these protocols by ALPN. What `previous` has for the same is taken
    /// over.
    ///
    /// # Errors
    /// [`CertificateError`] names the file that cannot be used, and what to do.
    pub fn build(
        wanted: &config::EndpointTls,
        protocols: &[&'static [u8]],
        endpoints: &[config::Endpoint],
        previous: Option<&PoolTls>,
    ) -> Result<PoolTls, CertificateError> {
        let previous = previous
            .filter(|previous| previous.wanted == *wanted && previous.protocols == protocols);
        let client = match previous {
            Some(previous) => previous.client.clone(),
            None => ClientTls::new(&spec(wanted, protocols))?,
        };
        let mut targets = HashMap::new();
        for endpoint in endpoints {
            let name = name_of(wanted, endpoint);
            let known = previous.and_then(|previous| previous.targets.get(&endpoint.address));
            let target = match known {
                Some((known, target)) if *known == name => target.clone(),
                // What no certificate can name is not reached: a handshake would fail as well.
                _ => match client.to(&name) {
                    Ok(target) => Arc::new(target),
                    Err(error) => {
                        tracing::error!(endpoint = %endpoint.name, name, "no TLS: {error}");
                        continue;
                    }
                },
            };
            targets.insert(endpoint.address.clone(), (name, target));
        }
        let wanted = wanted.clone();
        Ok(PoolTls { wanted, protocols: protocols.to_vec(), client, targets })
    }

    /// How the endpoint at this address is reached.
    #[inline]
    pub fn target(&self, endpoint: &Address) -> Option<&Arc<TlsTarget>> {
        self.targets.get(endpoint).map(|(_, target)| target)
    }
}

/// The name an endpoint's certificate has to have: the configured one, else the one it was resolved
/// from, else its address.
fn name_of(wanted: &config::EndpointTls, endpoint: &config::Endpoint) -> String {
    if let Some(name) = &wanted.server_name {
        return name.to_string();
    }
    match (&endpoint.host, &endpoint.address) {
        (Some(host), _) => match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name.to_owned(),
            _ => host.to_string(),
        },
        (None, Address::Inet(address)) => address.ip().to_string(),
        (None, Address::Unix(_)) => "localhost".to_owned(),
    }
}

fn spec(wanted: &config::EndpointTls, protocols: &[&'static [u8]]) -> ClientTlsSpec {
    let owned =
        |file: &config::PemFile| Pem { path: file.path.clone(), contents: file.contents.clone() };
    ClientTlsSpec {
        authorities: wanted.ca.as_ref().map(owned),
        revoked: wanted.crl.as_ref().map(owned),
        certificate: wanted.certificate.as_ref().map(|(chain, key)| (owned(chain), owned(key))),
        unverified: !wanted.verify,
        protocols: protocols.iter().map(|name| name.to_vec()).collect(),
    }
}
