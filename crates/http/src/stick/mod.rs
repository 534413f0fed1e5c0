//! Stickiness: which endpoint does a client belong to, and how is that remembered?
//!
//! Two ways, one a pool. With a [cookie](cookie) the client carries the name of its endpoint, signed:
//! good over restarts and for every Subak that has the [key](keys), nothing is kept here. With a table
//! the pool remembers endpoints by the client's address: nothing is sent, but a restart forgets.
//!
//! Either way the pool decides whether the client may stay. See docs/stickiness.md.

mod cookie;
mod keys;
mod token;

use std::net::IpAddr;

use subak_access_log::Sticking;
use subak_balance::hash64;
use subak_base::{BitSet, Tick};
use subak_config::{self as config, SecureCookie};
use subak_message::Fields;
use subak_pool::{Lease, Pool};

use cookie::{Claim, CookieStick};
use keys::Keys;
pub(crate) use keys::NoRandomness;
use token::Tokens;

/// How the clients of a pool are recognised.
#[derive(Debug)]
pub(crate) enum Stick {
    /// By a cookie.
    Cookie(CookieStick),
    /// By their address, in the pool's table.
    Source,
}

/// What one request says of where its client belongs.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Visit {
    claim: Option<Claim>,
    /// What the client is known by in the pool's table.
    pub(crate) client: Option<u64>,
}

/// A cookie that an answer sets, and the endpoint it names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewCookie<'a> {
    stick: &'a CookieStick,
    index: usize,
}

impl Stick {
    /// How the clients of this pool are recognised where they come by TLS, or do not; none: they are
    /// not.
    ///
    /// # Errors
    /// [`NoRandomness`], where a key of our own is needed.
    pub(crate) fn build(
        pool: &config::Pool,
        built: &Pool,
        is_tls: bool,
    ) -> Result<Option<Stick>, NoRandomness> {
        let cookie = match &pool.stick {
            None => return Ok(None),
            Some(config::Stick::Table(_)) => return Ok(Some(Stick::Source)),
            Some(config::Stick::Cookie(cookie)) => cookie,
        };
        let keys = match &cookie.keys {
            Some(keys) => Keys::new(keys.secrets()),
            None => Keys::of_this_process()?,
        };
        let identities: Vec<&str> = built.endpoints().map(|endpoint| endpoint.identity()).collect();
        let tokens = Tokens::new(&keys, built.name(), &identities);
        Ok(Some(Stick::Cookie(CookieStick::new(&cookie.name, &attributes(cookie, is_tls), tokens))))
    }

    /// Looks who comes; takes out of the request what is none of the endpoint's business.
    pub(crate) fn visit(&self, fields: &mut Fields, client: Option<IpAddr>) -> Visit {
        match self {
            Stick::Cookie(stick) => Visit { claim: stick.take(fields), client: None },
            Stick::Source => Visit { claim: None, client: client.map(client_hash) },
        }
    }

    /// Whether a request went where its client belongs; none where nobody can know.
    pub(crate) fn stuck(&self, visit: &Visit, lease: &Lease<'_>) -> Option<Sticking> {
        match (self, visit.claim) {
            (Stick::Source, _) => None,
            (_, None) => Some(Sticking::New),
            (_, Some(claim)) if claim.index == lease.index() => Some(Sticking::Kept),
            _ => Some(Sticking::Moved),
        }
    }

    /// The cookie that an answer by the endpoint of this lease sets: where the client has none, or not
    /// the right one. It names the endpoint that answers. Only a client whose own endpoint may keep it,
    /// and was just full, is not moved.
    pub(crate) fn new_cookie(
        &self,
        visit: &Visit,
        (pool, lease): (&Pool, &Lease<'_>),
        tried: &BitSet,
        now: Tick,
    ) -> Option<NewCookie<'_>> {
        let Stick::Cookie(stick) = self else { return None };
        let stays = |claim: &Claim| {
            claim.index == lease.index()
                || !tried.contains(claim.index) && pool.may_stay(claim.index, now)
        };
        match visit.claim.filter(stays) {
            Some(Claim { is_current: true, .. }) => None,
            Some(Claim { index, is_current: false }) => Some(NewCookie { stick, index }),
            None => Some(NewCookie { stick, index: lease.index() }),
        }
    }
}

impl Visit {
    /// The endpoint that the client says it belongs to.
    pub(crate) fn home(&self) -> Option<usize> {
        self.claim.map(|claim| claim.index)
    }
}

impl NewCookie<'_> {
    /// Puts the cookie into the answer.
    pub(crate) fn set(&self, fields: &mut Fields) {
        self.stick.give(fields, self.index);
    }
}

/// What follows the value of a cookie.
fn attributes(cookie: &config::StickCookie, is_tls: bool) -> String {
    let is_secure = match cookie.secure {
        SecureCookie::Auto => is_tls,
        SecureCookie::Always => true,
        SecureCookie::Never => false,
    };
    let secure = if is_secure { "; Secure" } else { "" };
    let http_only = if cookie.http_only { "; HttpOnly" } else { "" };
    format!("; Path={}{secure}{http_only}; SameSite={}", cookie.path, cookie.same_site.as_str())
}

/// What a client is known by in a pool's table. An IPv4 client that arrives v4-mapped is the same one.
/// Everybody may know this hash: whoever makes a collision shares the endpoint of somebody else.
pub(crate) fn client_hash(client: IpAddr) -> u64 {
    match client.to_canonical() {
        IpAddr::V4(ip) => hash64(&ip.octets(), 0),
        IpAddr::V6(ip) => hash64(&ip.octets(), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::client_hash;

    #[test]
    fn a_client_is_the_same_by_either_family() {
        let of = |ip: &str| client_hash(ip.parse().unwrap());
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8::2"));
    }
}
