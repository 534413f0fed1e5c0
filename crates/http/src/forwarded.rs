//! The field `Forwarded` (RFC 7239): whom it names, and elements of our own.
//!
//! ```text
//! Forwarded: for=192.0.2.7;proto=https, for="[2001:db8::2]:47";host="a.example"
//! ```
//!
//! A comma or semicolon within quotes separates nothing. An element that breaks the grammar, or says
//! something twice, names nobody and hides what stands before it.

use std::net::IpAddr;

use subak_config::TrustedProxies;
use subak_message::{Fields, Known, Scheme};

use crate::client_addr::parse_address;

/// What an element says of the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Named<'a> {
    /// Its address.
    pub(crate) ip: IpAddr,
    /// How it came.
    pub(crate) scheme: Option<Scheme>,
    /// The Host it asked for, as written.
    pub(crate) host: Option<&'a [u8]>,
}

/// The last element that does not name a trusted proxy, else the first of all.
pub(crate) fn client<'a>(fields: &'a Fields, trusted: &TrustedProxies) -> Option<Named<'a>> {
    let mut named: Vec<_> = fields
        .get_all(Known::Forwarded)
        .flat_map(|value| split(value, b',').into_iter().map(element))
        .collect();
    let mut client = None;
    while let Some(Some(one)) = named.pop() {
        client = Some(one);
        if !trusted.contains(one.ip) {
            break;
        }
    }
    client
}

/// Whether the last element names nobody on purpose: `for=unknown` or an obfuscated name (RFC 7239, 6).
pub(crate) fn names_nobody(fields: &Fields) -> bool {
    let last = fields.get_all(Known::Forwarded).last();
    let element = last.and_then(|value| split(value, b',').pop());
    let pairs = element.map(|element| split(element, b';')).unwrap_or_default();
    pairs.into_iter().map(<[u8]>::trim_ascii).any(|pair| {
        pair.split_at_checked(4).is_some_and(|(name, value)| {
            let value = bare(value).unwrap_or_default();
            name.eq_ignore_ascii_case(b"for=") && (is_unknown(value) || value.starts_with(b"_"))
        })
    })
}

/// Whether this stands for a client that the proxy does not know.
pub(crate) fn is_unknown(name: &[u8]) -> bool {
    name.trim_ascii().eq_ignore_ascii_case(b"unknown")
}

/// The pieces between separators that do not stand in quotes.
fn split(text: &[u8], separator: u8) -> Vec<&[u8]> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(|byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ => {}
        }
        *byte == separator && !quoted
    })
    .collect()
}

fn element(text: &[u8]) -> Option<Named<'_>> {
    let (mut ip, mut scheme, mut host) = (None, None, None);
    for pair in split(text, b';').into_iter().map(<[u8]>::trim_ascii) {
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (&pair[..equals], bare(&pair[equals + 1..])?);
        if name.iter().any(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-') {
            return None;
        }
        let was_there = if name.eq_ignore_ascii_case(b"for") {
            ip.replace(parse_address(value)?).is_some()
        } else if name.eq_ignore_ascii_case(b"proto") {
            scheme.replace(scheme_of(value)).is_some()
        } else if name.eq_ignore_ascii_case(b"host") {
            host.replace(value).is_some()
        } else {
            false
        };
        if was_there {
            return None;
        }
    }
    Some(Named { ip: ip?, scheme: scheme.flatten(), host })
}

/// A value without its quotes; none for one that has a quote or an escape inside.
fn bare(value: &[u8]) -> Option<&[u8]> {
    let inner = value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    let value = inner.unwrap_or(value);
    (!value.iter().any(|byte| matches!(byte, b'"' | b'\\'))).then_some(value)
}

/// A scheme as proxies write it.
pub(crate) fn scheme_of(value: &[u8]) -> Option<Scheme> {
    [Scheme::Http, Scheme::Https]
        .into_iter()
        .find(|scheme| scheme.as_str().as_bytes().eq_ignore_ascii_case(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(values: &[&str]) -> Option<String> {
        let trusted = TrustedProxies {
            networks: vec!["10.0.0.0/8".parse().expect("a network")],
            ..TrustedProxies::default()
        };
        let mut fields = Fields::new();
        for value in values {
            fields.push_received(b"Forwarded", value.as_bytes()).expect("a field");
        }
        client(&fields, &trusted).map(|one| {
            let host = String::from_utf8_lossy(one.host.unwrap_or(b"-")).into_owned();
            format!("{} {} {host}", one.ip, one.scheme.map_or("-", Scheme::as_str))
        })
    }

    #[test]
    fn the_last_element_that_names_no_proxy_is_the_client() {
        for (values, client) in [
            (
                &["for=6.6.6.6, for=192.0.2.7;proto=HTTPS;host=\"a:1\", For=10.0.0.2"][..],
                "192.0.2.7 https a:1",
            ),
            (&["for=192.0.2.7", "by=x;for=\"[2001:db8::1]:5\""], "2001:db8::1 - -"),
            (&["for=10.0.0.3, for=10.0.0.2"], "10.0.0.3 - -"),
            (&["for=192.0.2.7;proto=ftp"], "192.0.2.7 - -"),
        ] {
            assert_eq!(named(values).as_deref(), Some(client), "{values:?}");
        }
    }

    #[test]
    fn text_in_quotes_makes_no_element() {
        for (values, client) in [
            (&["for=192.0.2.7;by=\"a, for=6.6.6.6;x=b\""][..], Some("192.0.2.7 - -")),
            (&["for=192.0.2.7;by=\"a\\\", for=6.6.6.6\""], None),
            (&["for=192.0.2.7;host=\"a, for=6.6.6.6"], None),
            (&["for=6.6.6.6, for=x, for=10.0.0.2"], Some("10.0.0.2 - -")),
            (&["for=6.6.6.6;for=192.0.2.7"], None),
            (&["for=\"_hidden\""], None),
            (&["for=6.6.6.6;\", for=192.0.2.7"], None),
            (&["for=192.0.2.7;;"], None),
            (&[""], None),
            (&[], None),
        ] {
            assert_eq!(named(values).as_deref(), client, "{values:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_before_the_proxys_own_element_speaks_for_it(
            before in "[ a-z0-9.,;=:\"\\\\\\[\\]]{0,40}(, ?for=6\\.6\\.6\\.6)?[,;\"\\\\ ]{0,4}",
        ) {
            let client = named(&[&format!("{before}, for=192.0.2.7")]);
            proptest::prop_assert!(matches!(client.as_deref(), None | Some("192.0.2.7 - -")), "{client:?}");
        }
    }
}
