//! Whom a load trusts over TLS.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use subak_certificate::Anybody;

use crate::load::Tls;

/// Whom.
#[derive(Clone, Debug)]
pub enum Trust {
    /// The authorities that this machine knows.
    System,
    /// Those in this PEM file.
    Authorities(Vec<u8>),
    /// Whoever answers: for tests.
    Anybody,
}

/// TLS 1.2 and 1.3 to a server of this name; every connection with a full handshake.
///
/// # Errors
/// No certificate can be read, or the name is none; says which.
pub fn client(trust: &Trust, name: &str) -> Result<Tls, String> {
    let name = ServerName::try_from(name.to_owned())
        .map_err(|_| format!("{name:?} is neither a host name nor an address"))?;
    let provider = Arc::new(default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = match trust {
        Trust::Anybody => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody::new(&provider)))
            .with_no_client_auth(),
        Trust::System => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err("this machine knows no authorities: name a file with --ca".to_owned());
            }
            builder.with_root_certificates(roots).with_no_client_auth()
        }
        Trust::Authorities(pem) => {
            let mut roots = RootCertStore::empty();
            for one in CertificateDer::pem_slice_iter(pem) {
                let one = one.map_err(|error| format!("no certificate: {error}"))?;
                roots.add(one).map_err(|error| format!("no certificate: {error}"))?;
            }
            if roots.is_empty() {
                return Err("the file of authorities has no certificate".to_owned());
            }
            builder.with_root_certificates(roots).with_no_client_auth()
        }
    };
    config.resumption = Resumption::disabled();
    Ok(Tls { config: Arc::new(config), name })
}
