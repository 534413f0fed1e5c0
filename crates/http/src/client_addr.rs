//! Who is the client? The connection's other end, or whom a trusted proxy names. Resolved once.

use std::net::IpAddr;

use subak_config::TrustedProxies;
use subak_message::{Known, RequestHead};
use subak_net::PeerAddress;

/// The client of one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ClientAddr {
    /// Whom algorithms and rules see; none for a process that came by unix socket and names nobody.
    pub(crate) ip: Option<IpAddr>,
    /// The other end of the connection.
    pub(crate) peer: Option<IpAddr>,
    /// Whether what it says about the client is believed.
    pub(crate) peer_is_trusted: bool,
}

impl ClientAddr {
    /// Walks X-Forwarded-For (else Forwarded) from its end, past trusted proxies, to the first
    /// address that is not one of them.
    pub(crate) fn resolve(
        peer: PeerAddress,
        trusted: &TrustedProxies,
        head: &RequestHead,
    ) -> ClientAddr {
        let ip = peer.ip();
        let is_trusted = |ip: IpAddr| trusted.networks.iter().any(|network| network.contains(&ip));
        let peer_is_trusted = ip.map_or(trusted.unix, is_trusted);
        let mut client = ClientAddr { ip, peer: ip, peer_is_trusted };
        if !peer_is_trusted {
            return client;
        }
        let fields = &head.fields;
        let by_x = fields.has(Known::XForwardedFor);
        let known = if by_x { Known::XForwardedFor } else { Known::Forwarded };
        let mut named: Vec<&[u8]> =
            fields.get_all(known).flat_map(|value| value.split(|byte| *byte == b',')).collect();
        while let Some(last) = named.pop() {
            // What cannot be read hides everything before it.
            let last = last.trim_ascii();
            let ip = if by_x { parse_address(last) } else { parse_forwarded(last) };
            let Some(ip) = ip else { break };
            client.ip = Some(ip);
            if !is_trusted(ip) {
                break;
            }
        }
        client
    }
}

/// An address, with or without brackets and port.
fn parse_address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let bare = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None if text.matches(':').count() == 1 => text.split_once(':')?.0,
        None => text,
    };
    bare.parse().ok().map(|ip: IpAddr| ip.to_canonical())
}

/// The `for` of one element of Forwarded (RFC 7239).
fn parse_forwarded(element: &[u8]) -> Option<IpAddr> {
    let pairs = element.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let mut values = pairs.filter_map(|pair| {
        let (name, value) = pair.split_at_checked(4)?;
        name.eq_ignore_ascii_case(b"for=").then_some(value)
    });
    let value = values.next()?;
    let value =
        value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(value);
    parse_address(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use subak_message::Scheme;

    fn resolved(peer: &str, fields: &[(&str, &str)]) -> Option<String> {
        let trusted = TrustedProxies {
            networks: vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()],
            unix: false,
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
        let element = [("Forwarded", "proto=https;for=\"[2001:db8::2]:47\", for=10.0.0.2")];
        assert_eq!(resolved("fd00::1", &element).unwrap(), "2001:db8::2");
    }
}
