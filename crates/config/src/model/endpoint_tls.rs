//! TLS to endpoints.

use std::sync::Arc;

use super::PemFile;

/// `tls` of a pool.
#[derive(Clone, PartialEq, Debug)]
pub struct EndpointTls {
    /// Who is trusted; `None`: whom the machine trusts.
    pub ca: Option<PemFile>,
    /// Certificates that were taken back; `None`: nobody looks.
    pub crl: Option<PemFile>,
    /// The name certificates have to have; `None`: the one the endpoint was resolved from, else its
    /// address.
    pub server_name: Option<Arc<str>>,
    /// What is shown to endpoints that ask: chain and key.
    pub certificate: Option<(PemFile, PemFile)>,
    /// Whether certificates are verified.
    pub verify: bool,
}

impl Default for EndpointTls {
    fn default() -> EndpointTls {
        EndpointTls { ca: None, crl: None, server_name: None, certificate: None, verify: true }
    }
}
