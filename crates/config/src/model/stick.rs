//! How a client comes back to the endpoint that it was first sent to.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use super::SessionKeys;

/// `stick` of a pool.
#[derive(Clone, PartialEq, Debug)]
pub enum Stick {
    /// By a signed cookie.
    Cookie(StickCookie),
    /// By a table of client addresses.
    Table(StickTable),
}

/// The cookie that names an endpoint.
#[derive(Clone, PartialEq, Debug)]
pub struct StickCookie {
    /// A token (RFC 6265).
    pub name: Arc<str>,
    /// From `/`, visible ASCII without `;`.
    pub path: Arc<str>,
    /// Whether browsers send it back over TLS only.
    pub secure: SecureCookie,
    /// Whether scripts do not see it.
    pub http_only: bool,
    /// Whether it is sent with requests that begin on other sites. Never `None` together with
    /// [`SecureCookie::Never`].
    pub same_site: SameSite,
    /// What signs it; `None`: a key that the process makes up.
    pub keys: Option<SessionKeys>,
}

/// Secure of a cookie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SecureCookie {
    /// Where the client came by TLS.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// SameSite of a cookie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SameSite {
    /// With links from other sites.
    Lax,
    /// With requests from the same site only.
    Strict,
    /// With all.
    None,
}

impl SameSite {
    /// As it stands in Set-Cookie.
    pub const fn as_str(self) -> &'static str {
        match self {
            SameSite::Lax => "Lax",
            SameSite::Strict => "Strict",
            SameSite::None => "None",
        }
    }
}

/// The table of clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StickTable {
    /// How long a client is remembered after its last request.
    pub expire: Duration,
    /// Clients that are remembered at most.
    pub entries: NonZeroUsize,
}
