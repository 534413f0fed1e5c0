//! How a probe reaches its endpoint: by TLS or in clear, behind a header of the PROXY protocol or not,
//! and which HTTP is spoken then.
//!
//! The header announces nobody: `LOCAL` in version 2, `UNKNOWN` in version 1. The endpoint takes the
//! connection for Subak's own, which it is.

use std::sync::Arc;

use subak_message::proxy_header::{self, Version};
use subak_net::tls::client::TlsTarget;

/// Which HTTP an HTTP probe speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Spoken {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2, in clear by prior knowledge.
    Http2,
    /// What TLS has agreed on; HTTP/1.1 in clear.
    Agreed,
}

/// How a probe reaches its endpoint.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// Which header of the PROXY protocol comes first; none: none does.
    pub proxy: Option<Version>,
    /// How it is secured; none: in clear.
    pub tls: Option<Arc<TlsTarget>>,
    /// What is spoken then, if it is HTTP.
    pub http: Spoken,
}

impl Way {
    /// What is sent before anything else.
    pub(crate) fn header(&self) -> Vec<u8> {
        let mut header = Vec::new();
        if let Some(version) = self.proxy {
            proxy_header::write(&mut header, version, None);
        }
        header
    }
}
