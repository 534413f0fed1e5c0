//! Who is a request counted with? Its key, and how people read it.
//!
//! Of several values of one name nobody knows which one the endpoint goes by. So the request is counted
//! by each of them that differs, and has to keep the limit of all.

use std::borrow::Cow;
use std::net::IpAddr;

use subak_config::{LimitKey, parameters};

use super::Asked;

/// Bytes of a key that people are shown.
const SHOWN_BYTES: usize = 256;

/// The different values of one name by which a request is counted. A request with more is refused.
pub(super) const MOST_VALUES: usize = 8;

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

/// A parameter of the query is decoded, as endpoints read it: another spelling is no other key. A request
/// that lacks what the key names goes by its client's address, and without one together with others.
#[inline]
pub(super) fn value<'a>(key: &'a LimitKey, asked: &Asked<'a>) -> Value<'a> {
    let head = asked.head;
    let text = match key {
        LimitKey::All => return Value::All,
        LimitKey::Client { .. } => None,
        LimitKey::Header(name) => {
            let values = head.fields.get_all_named(name.as_bytes()).map(Cow::Borrowed);
            different(values, asked.nth)
        }
        LimitKey::Cookie(name) => {
            different(head.fields.cookies(name.as_bytes()).map(Cow::Borrowed), asked.nth)
        }
        LimitKey::Query(name) => different(parameters(head.query(), name.as_bytes()), asked.nth),
        LimitKey::Path => Some(Cow::Borrowed(head.compared_path())),
        LimitKey::Host => Some(Cow::Borrowed(head.host())),
    };
    match (text, asked.client) {
        (Some(text), _) if !text.is_empty() => Value::Text(text),
        (_, Some(client)) => Value::Client(prefix(client, key)),
        (_, None) => Value::All,
    }
}

/// How many different values a request has of what the key names, at least 1; counts to one more than
/// [`MOST_VALUES`].
#[inline]
pub(super) fn count(key: &LimitKey, asked: &Asked<'_>) -> usize {
    let head = asked.head;
    match key {
        LimitKey::All | LimitKey::Client { .. } | LimitKey::Path | LimitKey::Host => 1,
        LimitKey::Header(name) => {
            count_different(head.fields.get_all_named(name.as_bytes()).map(Cow::Borrowed))
        }
        LimitKey::Cookie(name) => {
            count_different(head.fields.cookies(name.as_bytes()).map(Cow::Borrowed))
        }
        LimitKey::Query(name) => count_different(parameters(head.query(), name.as_bytes())),
    }
}

fn count_different<'a>(mut values: impl Iterator<Item = Cow<'a, [u8]>>) -> usize {
    let Some(first) = values.next() else { return 1 };
    match values.find(|value| *value != first) {
        None => 1,
        Some(second) => count_many(vec![first, second], values),
    }
}

#[cold]
fn count_many<'a>(
    mut known: Vec<Cow<'a, [u8]>>,
    values: impl Iterator<Item = Cow<'a, [u8]>>,
) -> usize {
    for value in values {
        if known.len() <= MOST_VALUES && !known.contains(&value) {
            known.push(value);
        }
    }
    known.len()
}

/// The value at this place among those that differ from all before them.
#[inline]
fn different<'a>(
    mut values: impl Iterator<Item = Cow<'a, [u8]>>,
    place: usize,
) -> Option<Cow<'a, [u8]>> {
    let first = values.next();
    if place == 0 {
        return first;
    }
    let mut known = vec![first?];
    for value in values {
        if !known.contains(&value) {
            if known.len() == place {
                return Some(value);
            }
            known.push(value);
        }
    }
    None
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
