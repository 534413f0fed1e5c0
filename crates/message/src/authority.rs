//! `host[:port]` as it stands in Host, in an absolute target and in `:authority`.
//!
//! Narrower than RFC 3986 on purpose: no user information, no percent-encoding, none of the
//! punctuation that no name on the network has and that two programs cut in two ways.

use std::net::{Ipv4Addr, Ipv6Addr};

/// A parsed authority, lower-cased for routing.
///
/// It remembers the text it was parsed from: a connection mostly asks for one host again and again,
/// and then reading it is one comparison.
#[derive(Clone, Debug, Default)]
pub struct Authority {
    /// The text last read, empty unless it was valid.
    text: Vec<u8>,
    host: Vec<u8>,
    port: Option<u16>,
}

impl Authority {
    /// The host in lower case, without a trailing dot; an IPv6 address in its brackets.
    pub fn host(&self) -> &[u8] {
        &self.host
    }

    /// The port, if one is written.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    pub(crate) fn capacity_bytes(&self) -> usize {
        self.text.capacity() + self.host.capacity()
    }

    /// Reads `host[:port]`. After false the value must not be used.
    #[inline]
    pub(crate) fn parse(&mut self, text: &[u8]) -> bool {
        (!text.is_empty() && self.text == text) || self.parse_new(text)
    }

    /// Whether `text` names the same host and port; `None` when it is no authority.
    pub(crate) fn names_same(&self, text: &[u8]) -> Option<bool> {
        let (host, port) = split(text)?;
        Some(port == self.port && without_dot(host).eq_ignore_ascii_case(&self.host))
    }

    fn parse_new(&mut self, text: &[u8]) -> bool {
        self.text.clear();
        let Some((host, port)) = split(text) else { return false };
        self.text.extend_from_slice(text);
        self.port = port;
        self.host.clear();
        self.host.extend_from_slice(without_dot(host));
        self.host.make_ascii_lowercase();
        true
    }
}

impl PartialEq for Authority {
    /// The same host and port, however they are spelt.
    fn eq(&self, other: &Authority) -> bool {
        self.host == other.host && self.port == other.port
    }
}

impl Eq for Authority {}

/// The longest name the DNS can hold, with its trailing dot.
const MAX_HOST_BYTES: usize = 254;

fn split(text: &[u8]) -> Option<(&[u8], Option<u16>)> {
    if text.first() == Some(&b'[') {
        let close = memchr::memchr(b']', text)?;
        let address = std::str::from_utf8(&text[1..close]).ok()?;
        address.parse::<Ipv6Addr>().ok()?;
        let port = match &text[close + 1..] {
            [] => None,
            [b':', digits @ ..] => Some(parse_port(digits)?),
            _ => return None,
        };
        return Some((&text[..=close], port));
    }
    let end = text.iter().position(|&byte| !is_name_byte(byte)).unwrap_or(text.len());
    let (host, rest) = text.split_at(end);
    let port = match rest {
        [] => None,
        [b':', digits @ ..] => Some(parse_port(digits)?),
        _ => return None,
    };
    let name = without_dot(host);
    let plausible = host.len() <= MAX_HOST_BYTES
        && name.split(|&byte| byte == b'.').all(|label| !label.is_empty())
        && is_v4_or_name(name);
    plausible.then_some((host, port))
}

fn without_dot(host: &[u8]) -> &[u8] {
    host.strip_suffix(b".").unwrap_or(host)
}

/// Refuses what only looks like an IPv4 address (`127.1`, `0177.0.0.1`, `256.1.1.1`): resolvers
/// disagree on what it means (a name whose last label is a number is no name: WHATWG URL, 3.5).
fn is_v4_or_name(name: &[u8]) -> bool {
    let last = name.rsplit(|&byte| byte == b'.').next().unwrap_or(name);
    if !last.first().is_some_and(u8::is_ascii_digit) || !last.iter().all(u8::is_ascii_digit) {
        return true;
    }
    std::str::from_utf8(name).is_ok_and(|text| text.parse::<Ipv4Addr>().is_ok())
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// One to five digits up to 65535. An empty port, which RFC 3986 allows, is refused.
fn parse_port(digits: &[u8]) -> Option<u16> {
    if digits.is_empty() || digits.len() > 5 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let port = digits.iter().fold(0u32, |port, digit| port * 10 + u32::from(digit - b'0'));
    u16::try_from(port).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<(String, Option<u16>)> {
        let mut authority = Authority::default();
        authority.parse(text.as_bytes()).then(|| {
            (String::from_utf8(authority.host().to_vec()).expect("ascii"), authority.port())
        })
    }

    #[test]
    fn hosts_are_lower_cased_and_ports_split() {
        for (text, host, port) in [
            ("Example.COM", "example.com", None),
            ("example.com.:443", "example.com", Some(443)),
            ("10.0.0.1:8080", "10.0.0.1", Some(8080)),
            ("[2001:DB8::1]:80", "[2001:db8::1]", Some(80)),
            ("[::1]", "[::1]", None),
            ("a_b~c-d", "a_b~c-d", None),
            ("1e100.net", "1e100.net", None),
        ] {
            assert_eq!(parse(text), Some((host.into(), port)), "{text}");
        }
    }

    #[test]
    fn anything_two_programs_could_cut_differently_is_refused() {
        for text in [
            "",
            ".",
            "..",
            ".a",
            "a..",
            ":80",
            "a:",
            "a:b",
            "a:-1",
            "a:65536",
            "a:000080",
            "a:80:80",
            "u@a",
            "u:p@a",
            "a b",
            "a/b",
            "a,b",
            "a%2eb",
            "a?b",
            "a#b",
            "a\\b",
            "::1",
            "[::1",
            "[::1]x",
            "[::1]:",
            "[v1.a]",
            "[fe80::1%25eth0]",
            "[]",
            "é",
            "127.1",
            "256.0.0.1",
            "0177.0.0.1",
            "a\t",
            "(a)",
            "a'",
            "a\"",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
