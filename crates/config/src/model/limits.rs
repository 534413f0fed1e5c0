//! How much is too much, as configured.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use subak_limits::{Networks, Rate};

use super::Name;

/// Who is counted together.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum LimitKey {
    /// Everybody.
    All,
    /// Clients whose addresses begin alike, by so many bits.
    Client {
        /// Of IPv4.
        v4: u8,
        /// Of IPv6.
        v6: u8,
    },
    /// Requests with the same first field of this name.
    Header(Arc<str>),
    /// With the same first cookie of this name.
    Cookie(Arc<str>),
    /// With the same first parameter of this name.
    Query(Arc<str>),
    /// For the same normalised path.
    Path,
    /// For the same host.
    Host,
}

impl LimitKey {
    /// One address, or one network of a household or server with IPv6.
    pub const CLIENT: LimitKey = LimitKey::Client { v4: 32, v6: 64 };
}

/// As it is written.
impl fmt::Display for LimitKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LimitKey::All => out.write_str("all"),
            key if *key == LimitKey::CLIENT => out.write_str("client"),
            LimitKey::Client { v4, v6 } => write!(out, "client/{v4}/{v6}"),
            LimitKey::Header(name) => write!(out, "header:{name}"),
            LimitKey::Cookie(name) => write!(out, "cookie:{name}"),
            LimitKey::Query(name) => write!(out, "query:{name}"),
            LimitKey::Path => out.write_str("path"),
            LimitKey::Host => out.write_str("host"),
        }
    }
}

/// Which answers say how much is left.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RateFields {
    /// Those to refused requests.
    Refused,
    /// All.
    Always,
    /// None.
    Never,
}

/// How many requests in a time.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RateLimit {
    /// `None`: one is made.
    pub name: Option<Name>,
    /// How many.
    pub rate: Rate,
    /// The same as it is written.
    pub text: Arc<str>,
    /// Of whom.
    pub key: LimitKey,
    /// What a refused request is answered.
    pub status: u16,
    /// Which answers tell of it.
    pub fields: RateFields,
    /// Whether nobody is refused.
    pub dry_run: bool,
    /// Keys that are told apart.
    pub entries: usize,
}

/// How many requests at once.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct InFlight {
    /// `None`: one is made.
    pub name: Option<Name>,
    /// So many.
    pub most: NonZeroU32,
    /// Of whom.
    pub key: LimitKey,
    /// What one more is answered.
    pub status: u16,
    /// Whether nobody is refused.
    pub dry_run: bool,
    /// Keys that are told apart.
    pub entries: usize,
}

/// How many connections of one client at once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ConnectionsPerClient {
    /// So many.
    pub most: NonZeroU32,
    /// Bits of an IPv4 address that tell clients apart,
    pub v4: u8,
    /// and of an IPv6 address.
    pub v6: u8,
    /// Clients that are told apart.
    pub entries: usize,
}

/// Bounds on the requests of one route, and who may make them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RouteLimits {
    /// Who may; `None`: everybody.
    pub access: Option<Networks>,
    /// Bytes of a body; `None`: as the listener has it; `Some(None)`: without a limit.
    pub body_bytes: Option<Option<u64>>,
    /// Bytes of path and query; `None`: what fits into a head.
    pub target_bytes: Option<usize>,
    /// Fields of a head; `None`: as the listener has it.
    pub fields: Option<usize>,
    /// All of these have to be kept.
    pub rates: Vec<RateLimit>,
    /// And all of these.
    pub in_flight: Vec<InFlight>,
}
