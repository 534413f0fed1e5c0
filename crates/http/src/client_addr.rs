//! Who is the client? The connection's other end, or whom a trusted proxy names. Resolved once.

use std::net::IpAddr;

use subak_config::{ProxyField, TrustedProxies};
use subak_message::{Known, RequestHead};
use subak_net::PeerAddress;

use crate::forwarded;

/// The client of one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ClientAddr {
    /// Whom algorithms and rules see; none for a process that came by unix socket and names nobody.
    pub(crate) ip: Option<IpAddr>,
    /// The other end of the connection.
    pub(crate) peer: Option<IpAddr>,
    /// Whether what it says about the client is believed.
    pub(crate) peer_is_trusted: bool,
    /// The trusted proxy names the client in a way that cannot be read. A client behind a proxy that
    /// appends to what it was sent can bring that about: the request must not pass for the proxy's own.
    pub(crate) is_unreadable: bool,
}

impl ClientAddr {
    /// Reads the field that trusted proxies write. A list is walked from its end, past trusted proxies,
    /// to the first address that is not one of them. Without the field the proxy is the client itself; a
    /// client that the proxy calls unknown has no address.
    pub(crate) fn resolve(
        peer: PeerAddress,
        trusted: &TrustedProxies,
        head: &RequestHead,
    ) -> ClientAddr {
        let ip = peer.ip();
        let peer_is_trusted = ip.map_or(trusted.unix, |ip| trusted.contains(ip));
        let mut client = ClientAddr { ip, peer: ip, peer_is_trusted, is_unreadable: false };
        if !peer_is_trusted {
            return client;
        }
        let named = match &trusted.field {
            ProxyField::XForwardedFor => {
                let values = head.fields.get_all(Known::XForwardedFor);
                let named = values.flat_map(|value| value.split(|byte| *byte == b','));
                walk(named.map(parse_address).collect(), trusted)
            }
            ProxyField::Forwarded => forwarded::client(&head.fields, trusted).map(|one| one.ip),
            ProxyField::Address(name) => {
                let mut values = head.fields.get_all_named(name.as_str().as_bytes());
                // Of two nobody can say which one the proxy wrote.
                values.next().filter(|_| values.next().is_none()).and_then(parse_address)
            }
        };
        if named.is_some() {
            client.ip = named;
        } else {
            client.settle_unnamed(&trusted.field, head);
        }
        client
    }
}

impl ClientAddr {
    /// The trusted proxy names nobody: it has nobody to name, does not know, or says it unreadably.
    #[cold]
    fn settle_unnamed(&mut self, field: &ProxyField, head: &RequestHead) {
        let (is_there, is_unknown) = match field {
            ProxyField::XForwardedFor => {
                let last = head.fields.get_all(Known::XForwardedFor).last();
                let name = last.and_then(|value| value.rsplit(|byte| *byte == b',').next());
                (last.is_some(), name.is_some_and(forwarded::is_unknown))
            }
            ProxyField::Forwarded => {
                let is_there = head.fields.get_all(Known::Forwarded).next().is_some();
                (is_there, forwarded::names_nobody(&head.fields))
            }
            ProxyField::Address(name) => {
                let mut values = head.fields.get_all_named(name.as_str().as_bytes());
                let first = values.next();
                let is_unknown = first.is_some_and(forwarded::is_unknown);
                (first.is_some(), is_unknown && values.next().is_none())
            }
        };
        if is_there {
            self.ip = None;
            self.is_unreadable = !is_unknown;
        }
    }
}

/// The last address that is not a trusted proxy's, else the first of all. One that cannot be read hides
/// everything before it.
fn walk(mut named: Vec<Option<IpAddr>>, trusted: &TrustedProxies) -> Option<IpAddr> {
    let mut client = None;
    while let Some(Some(ip)) = named.pop() {
        client = Some(ip);
        if !trusted.contains(ip) {
            break;
        }
    }
    client
}

/// An address, with or without brackets and port.
pub(crate) fn parse_address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    let bare = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None if text.matches(':').count() == 1 => text.split_once(':')?.0,
        None => text,
    };
    bare.parse().ok().map(|ip: IpAddr| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use subak_message::Scheme;

    fn resolved(peer: &str, fields: &[(&str, &str)]) -> Option<String> {
        resolved_by(ProxyField::XForwardedFor, peer, fields)
    }

    fn resolved_by(field: ProxyField, peer: &str, fields: &[(&str, &str)]) -> Option<String> {
        let trusted = TrustedProxies {
            networks: vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()],
            field,
            ..TrustedProxies::default()
        };
        let mut head = RequestHead::new(Scheme::Http);
        for (name, value) in fields {
            head.fields.push_received(name.as_bytes(), value.as_bytes()).unwrap();
        }
        let peer = PeerAddress::Inet((peer.parse::<IpAddr>().unwrap(), 1).into());
        ClientAddr::resolve(peer, &trusted, &head).ip.map(|ip| ip.to_string())
    }

    #[test]
    fn a_client_is_not_believed_about_itself() {
        assert_eq!(resolved("192.0.2.1", &[("X-Forwarded-For", "1.2.3.4")]).unwrap(), "192.0.2.1");
    }

    #[test]
    fn the_last_address_that_is_no_trusted_proxy_is_the_client() {
        let chain = [("X-Forwarded-For", "6.6.6.6, 192.0.2.7, 10.1.1.1")];
        assert_eq!(resolved("10.0.0.1", &chain).unwrap(), "192.0.2.7");
        let lines = [("X-Forwarded-For", "6.6.6.6"), ("X-Forwarded-For", "10.1.1.1, 10.2.2.2")];
        assert_eq!(resolved("10.0.0.1", &lines).unwrap(), "6.6.6.6");
        assert_eq!(resolved("10.0.0.1", &[("X-Forwarded-For", "10.9.9.9")]).unwrap(), "10.9.9.9");
        assert_eq!(resolved("10.0.0.1", &[]).unwrap(), "10.0.0.1");
    }

    #[test]
    fn what_cannot_be_read_hides_what_stands_before_it() {
        let chain = [("X-Forwarded-For", "6.6.6.6, nonsense, 10.1.1.1")];
        assert_eq!(resolved("10.0.0.1", &chain).unwrap(), "10.1.1.1");
    }

    #[test]
    fn ports_brackets_and_the_standard_header_are_understood() {
        assert_eq!(
            resolved("10.0.0.1", &[("X-Forwarded-For", "1.2.3.4:5678")]).unwrap(),
            "1.2.3.4"
        );
        assert_eq!(
            resolved("10.0.0.1", &[("X-Forwarded-For", "[2001:db8::1]:5")]).unwrap(),
            "2001:db8::1"
        );
        let element = [
            ("X-Forwarded-For", "6.6.6.6"),
            ("Forwarded", "proto=https;for=\"[2001:db8::2]:47\", for=10.0.0.2"),
        ];
        let forwarded = || ProxyField::Forwarded;
        assert_eq!(resolved_by(forwarded(), "fd00::1", &element).unwrap(), "2001:db8::2");
        assert_eq!(resolved("fd00::1", &element).unwrap(), "6.6.6.6");
        assert_eq!(resolved_by(forwarded(), "192.0.2.1", &element).unwrap(), "192.0.2.1");
        assert_eq!(resolved_by(forwarded(), "10.0.0.1", &element[..1]).unwrap(), "10.0.0.1");
    }

    #[test]
    fn a_field_with_one_address_is_believed_where_there_is_one() {
        let real_ip = || {
            let text = "[listener.a]\nbind = \"0.0.0.0:80\"\npool = \"b\"\ntrusted_proxies = { from = \
                        [\"::1\"], field = \"X-Real-IP\" }\n[pool.b]\nendpoints = [\"10.0.0.2:80\"]\n";
            let parsed = subak_config::parse(text, std::path::Path::new("subak.toml"));
            parsed.config.expect("a configuration").listeners[0].trusted_proxies.field.clone()
        };
        let one = [("X-Forwarded-For", "6.6.6.6"), ("x-real-ip", "192.0.2.7")];
        assert_eq!(resolved_by(real_ip(), "10.0.0.1", &one).unwrap(), "192.0.2.7");
        assert_eq!(resolved_by(real_ip(), "192.0.2.1", &one).unwrap(), "192.0.2.1");
        for wrong in [
            &[("X-Real-IP", "6.6.6.6"), one[1]][..],
            &[("X-Real-IP", "1.1.1.1, 2.2.2.2")],
            &one[..1],
        ] {
            let is_there = wrong.iter().any(|(name, _)| name.eq_ignore_ascii_case("x-real-ip"));
            let expected = (!is_there).then(|| "10.0.0.1".to_owned());
            assert_eq!(resolved_by(real_ip(), "10.0.0.1", wrong), expected);
        }
    }

    #[test]
    fn a_client_never_passes_for_the_proxy_that_names_it() {
        let by = |field: ProxyField, name: &str, value: &str| {
            let trusted = TrustedProxies {
                networks: vec!["10.0.0.0/8".parse().unwrap()],
                field,
                ..TrustedProxies::default()
            };
            let mut head = RequestHead::new(Scheme::Http);
            head.fields.push_received(name.as_bytes(), value.as_bytes()).unwrap();
            let peer = PeerAddress::Inet(([10, 0, 0, 1], 1).into());
            let client = ClientAddr::resolve(peer, &trusted, &head);
            (client.ip.map(|ip| ip.to_string()), client.is_unreadable)
        };
        // What the client sent, and what an honest proxy appends.
        for value in ["for=1.2.3.4;x=\", for=203.0.113.9", "\", for=203.0.113.9", "x", "for=1.2.3"]
        {
            assert_eq!(by(ProxyField::Forwarded, "Forwarded", value), (None, true), "{value}");
        }
        for value in ["for=unknown", "for=1.2.3.4, for=\"_hidden\";proto=http", "FOR=Unknown"] {
            assert_eq!(by(ProxyField::Forwarded, "Forwarded", value), (None, false), "{value}");
        }
        for (value, is_unreadable) in
            [("", true), ("1.2.3.4, x", true), ("6.6.6.6, unknown", false)]
        {
            let client = by(ProxyField::XForwardedFor, "X-Forwarded-For", value);
            assert_eq!(client, (None, is_unreadable), "{value}");
        }
    }
}
