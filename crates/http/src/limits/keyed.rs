//! Who is a request counted with? Its key, and how people read it.

use std::borrow::Cow;
use std::net::IpAddr;

use subak_config::{LimitKey, parameters};

use super::Asked;

/// Bytes of a key that people are shown.
const SHOWN_BYTES: usize = 256;

/// Places of a table for this key.
pub(super) fn entries(key: &LimitKey, wanted: usize) -> usize {
    if *key == LimitKey::All { 1 } else { wanted }
}

/// What a request is counted under.
pub(super) enum Value<'a> {
    All,
    Client(u128),
    Text(Cow<'a, [u8]>),
}

/// A parameter of the query is decoded, as endpoints read it: another spelling is no other key. Who lacks
/// what the key names goes by the address, and a process without one together with others.
#[inline]
pub(super) fn value<'a>(key: &'a LimitKey, asked: &Asked<'a>) -> Value<'a> {
    let head = asked.head;
    let text = match key {
        LimitKey::All => return Value::All,
        LimitKey::Client { .. } => None,
        LimitKey::Header(name) => head.fields.get_named(name.as_bytes()).map(Cow::Borrowed),
        LimitKey::Cookie(name) => head.fields.cookies(name.as_bytes()).next().map(Cow::Borrowed),
        LimitKey::Query(name) => parameters(head.query(), name.as_bytes()).next(),
        LimitKey::Path => Some(Cow::Borrowed(head.normal_path())),
        LimitKey::Host => Some(Cow::Borrowed(head.host())),
    };
    match (text, asked.client) {
        (Some(text), _) if !text.is_empty() => Value::Text(text),
        (_, Some(client)) => Value::Client(prefix(client, key)),
        (_, None) => Value::All,
    }
}

/// The bits of an address that tell clients apart. IPv4 keeps clear of IPv6 by the v4-mapped form.
#[inline]
pub(super) fn prefix(client: IpAddr, key: &LimitKey) -> u128 {
    let (v4, v6) = match key {
        LimitKey::Client { v4, v6 } => (*v4, *v6),
        _ => (32, 64),
    };
    let (bits, length) = match client {
        IpAddr::V4(client) => (client.to_ipv6_mapped().to_bits(), 96 + u32::from(v4)),
        IpAddr::V6(client) => (client.to_bits(), u32::from(v6)),
    };
    bits & u128::MAX.checked_shl(128 - length).unwrap_or(0)
}

/// A key, for people: its first [`SHOWN_BYTES`], control characters escaped.
pub(super) fn shown(key: &LimitKey, asked: &Asked<'_>) -> String {
    match value(key, asked) {
        Value::All => "all".to_owned(),
        Value::Client(bits) => shown_client(bits, key),
        Value::Text(text) => {
            let part = &text[..text.len().min(SHOWN_BYTES)];
            let rest = if part.len() < text.len() { "…" } else { "" };
            format!("{}{rest}", part.escape_ascii())
        }
    }
}

pub(super) fn shown_client(bits: u128, key: &LimitKey) -> String {
    let (v4, v6) = match key {
        LimitKey::Client { v4, v6 } => (*v4, *v6),
        _ => (32, 64),
    };
    match IpAddr::from(std::net::Ipv6Addr::from_bits(bits)).to_canonical() {
        IpAddr::V4(address) if v4 == 32 => address.to_string(),
        IpAddr::V4(address) => format!("{address}/{v4}"),
        IpAddr::V6(address) if v6 == 128 => address.to_string(),
        IpAddr::V6(address) => format!("{address}/{v6}"),
    }
}
