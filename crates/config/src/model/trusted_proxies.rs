//! Proxies whose word about the client is believed.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::headers::HeaderName;

/// `trusted_proxies` of a listener.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TrustedProxies {
    /// Their networks; an IPv4 proxy that arrives v4-mapped counts as IPv4.
    pub networks: Vec<IpNet>,
    /// Whether processes that connect by a unix socket belong to them.
    pub unix: bool,
    /// The field that they write.
    pub field: ProxyField,
    /// Other fields that they write; a `*` at the end of a name stands for any ending.
    pub also: Vec<HeaderName>,
}

impl TrustedProxies {
    /// Whether this address is one of theirs.
    pub fn contains(&self, ip: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&ip))
    }
}

/// The field in which trusted proxies name the client.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum ProxyField {
    /// `X-Forwarded-For`, a list; with `X-Forwarded-Proto` and its like.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239), a list.
    Forwarded,
    /// A field with one address, such as `X-Real-IP`.
    Address(HeaderName),
}

impl ProxyField {
    /// The field's name.
    pub fn name(&self) -> &str {
        match self {
            ProxyField::XForwardedFor => "X-Forwarded-For",
            ProxyField::Forwarded => "Forwarded",
            ProxyField::Address(name) => name.as_str(),
        }
    }
}
