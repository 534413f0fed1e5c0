//! What is a client recognised by? The source of a key, as configured, and the key of one request.
//!
//! Whoever has the request (HTTP, TCP, the packet plane) extracts the key that the source names:
//! [`Key::Address`] for `source`, [`Key::Bytes`] for all others, [`Key::None`] when the request has
//! nothing of the kind; it is then served in turn.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use crate::options::{OptionKind, OptionValue, Setting, TextProblem};

/// Where the key of a request is found.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum KeySource {
    /// The client's address.
    #[default]
    Source,
    /// Path and query as the client wrote them.
    Uri,
    /// The path as the client wrote it, without the query.
    Path,
    /// The first field of this name.
    Header(Box<str>),
    /// The first cookie of this name.
    Cookie(Box<str>),
    /// The first parameter of this name in the query.
    Query(Box<str>),
    /// Protocol, both addresses and both ports, as [`five_tuple`] writes them.
    FiveTuple,
}

/// What one request is recognised by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key<'a> {
    /// The request has none; algorithms that need one fall back to `round_robin`.
    None,
    /// The client's address.
    Address(IpAddr),
    /// Anything else: a header, a cookie, a path. Empty is as good as none.
    Bytes(&'a [u8]),
}

/// Longest name of a header, cookie or query parameter.
const NAME_MAX: usize = 256;

/// Octets of a five-tuple.
pub const FIVE_TUPLE_OCTETS: usize = 37;

/// The key of a connection: protocol number, source and destination, each address as 16 octets (IPv4
/// as v4-mapped) and its port in network order. The same on every node, whatever the family.
pub fn five_tuple(protocol: u8, from: SocketAddr, to: SocketAddr) -> [u8; FIVE_TUPLE_OCTETS] {
    let mut octets = [0; FIVE_TUPLE_OCTETS];
    octets[0] = protocol;
    for (place, side) in octets[1..].chunks_exact_mut(18).zip([from, to]) {
        let address = match side.ip() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        place[..16].copy_from_slice(&address.octets());
        place[16..].copy_from_slice(&side.port().to_be_bytes());
    }
    octets
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeySource::Source => f.write_str("source"),
            KeySource::Uri => f.write_str("uri"),
            KeySource::Path => f.write_str("path"),
            KeySource::Header(name) => write!(f, "header:{name}"),
            KeySource::Cookie(name) => write!(f, "cookie:{name}"),
            KeySource::Query(name) => write!(f, "query:{name}"),
            KeySource::FiveTuple => f.write_str("five_tuple"),
        }
    }
}

impl KeySource {
    /// The source that a configuration names so.
    pub fn parse(text: &str) -> Option<KeySource> {
        KeySource::from_text(text).ok()
    }
}

impl Setting for KeySource {
    const SUMMARY: &'static str = "what a client is recognised by";
    const KIND: OptionKind = OptionKind::Text {
        forms: &["source", "uri", "path", "header:NAME", "cookie:NAME", "query:NAME", "five_tuple"],
        pattern: "^(source|uri|path|five_tuple|(header|cookie|query):[!#$%&'*+.^_`|~0-9A-Za-z-]+)$",
    };
    const DEFAULT: Option<OptionValue<'static>> = Some(OptionValue::Text("source"));

    fn from_text(text: &str) -> Result<KeySource, Option<TextProblem>> {
        let problem = |message, at| Err(Some(TextProblem { message, at }));
        let Some((kind, name)) = text.split_once(':') else {
            return match text {
                "source" => Ok(KeySource::Source),
                "uri" => Ok(KeySource::Uri),
                "path" => Ok(KeySource::Path),
                "five_tuple" => Ok(KeySource::FiveTuple),
                "header" | "cookie" | "query" => {
                    problem("a colon and a name belong after it", 0..text.len())
                }
                _ => problem("no source of this name", 0..text.len()),
            };
        };
        let source = match kind {
            "header" => KeySource::Header,
            "cookie" => KeySource::Cookie,
            "query" => KeySource::Query,
            "source" | "uri" | "path" | "five_tuple" => {
                return problem("it takes no name", kind.len()..text.len());
            }
            _ => return problem("no source of this name", 0..kind.len()),
        };
        let begin = kind.len() + 1;
        match name.bytes().position(|byte| !is_name_byte(byte)) {
            Some(place) => {
                let letter = name[place..].chars().next().map_or(0, char::len_utf8);
                problem("this cannot be in a name", begin + place..begin + place + letter)
            }
            None if name.is_empty() => problem("a name is missing", 0..text.len()),
            None if name.len() > NAME_MAX => problem("a name this long", begin..text.len()),
            None => Ok(source(name.into())),
        }
    }
}

/// The characters of a token (RFC 9110, section 5.6.2): what fields and cookies are named with.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::{KeySource, five_tuple};
    use crate::options::{OptionKind, Setting};

    #[test]
    fn every_source_reads_back_as_it_is_shown() {
        let OptionKind::Text { forms, .. } = KeySource::KIND else { panic!("a text") };
        for form in forms {
            let text = form.replace("NAME", "X-Tenant_1");
            assert_eq!(KeySource::from_text(&text).unwrap().to_string(), text);
        }
        let default = KeySource::default().to_string();
        assert_eq!(KeySource::from_text(&default), Ok(KeySource::Source));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, message, at) in [
            ("", "no source of this name", 0..0),
            ("hader:X", "no source of this name", 0..5),
            ("header", "a colon and a name belong after it", 0..6),
            ("cookie:", "a name is missing", 0..7),
            ("query:a b", "this cannot be in a name", 7..8),
            ("header:ä", "this cannot be in a name", 7..9),
            ("uri:x", "it takes no name", 3..5),
        ] {
            let problem = KeySource::from_text(text).unwrap_err().unwrap();
            assert_eq!((problem.message, problem.at), (message, at), "{text}");
        }
        assert!(KeySource::from_text(&format!("header:{}", "x".repeat(257))).is_err());
    }

    #[test]
    fn a_five_tuple_is_the_same_in_either_family() {
        let mapped = five_tuple(
            6,
            "[::ffff:192.0.2.1]:1025".parse().unwrap(),
            "[::ffff:192.0.2.2]:80".parse().unwrap(),
        );
        let plain =
            five_tuple(6, "192.0.2.1:1025".parse().unwrap(), "192.0.2.2:80".parse().unwrap());
        assert_eq!(plain, mapped);
        assert_eq!(plain[0], 6);
        assert_eq!(plain[13..19], [192, 0, 2, 1, 4, 1]);
        assert_eq!(plain[31..], [192, 0, 2, 2, 0, 80]);
    }
}
