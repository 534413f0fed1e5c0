//! Whom a connection to an endpoint announces by a header of the PROXY protocol.
//!
//! The header says who the client is, and the endpoint believes it for all that comes on the connection.
//! So a connection is kept for those alone who would be announced by the very same bytes: requests of
//! one client connection. Only pools with `proxy_protocol` pay for this.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use subak_message::proxy_header::{self, Announced, Ends, Tls};
use subak_net::PeerAddress;
use subak_net::tls::TlsFacts;

use crate::key;
use crate::plan::PoolPlan;

/// A header, as it is sent.
pub(crate) type Header = Box<[u8]>;

/// The header of a new connection for this client; none: the pool wants none. A client without an
/// address (by unix socket) is not announced: the connection is our own.
pub(crate) fn header(
    plan: &PoolPlan,
    ends: &key::Ends,
    facts: Option<&TlsFacts>,
) -> Option<Header> {
    let wanted = plan.proxy.as_ref()?;
    let announced = client(ends).map(|ends| {
        let facts = facts.filter(|_| wanted.tls);
        let identity = facts.and_then(|facts| facts.client.as_ref());
        Announced {
            ends,
            alpn: facts.and_then(|facts| facts.alpn).map(str::as_bytes),
            authority: facts.and_then(|facts| facts.server_name.as_deref()).map(str::as_bytes),
            tls: facts.map(|facts| Tls {
                version: Some(facts.version.as_bytes()),
                cipher: Some(facts.cipher.as_bytes()),
                common_name: identity.and_then(|one| common_name(&one.subject)).map(str::as_bytes),
                verified: identity.is_some(),
            }),
            checksum: wanted.checksum,
        }
    });
    let mut header = Vec::new();
    proxy_header::write(&mut header, wanted.version, announced.as_ref());
    Some(header.into())
}

/// Where nobody wanted to know our end when the connection was accepted (before a reload), it is left
/// open: whoever believes the header has to know the client.
fn client(ends: &key::Ends) -> Option<Ends> {
    let PeerAddress::Inet(source) = ends.peer else { return None };
    let anywhere = || match source {
        SocketAddr::V4(_) => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0),
        SocketAddr::V6(_) => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0),
    };
    Some(Ends { source, destination: ends.local.unwrap_or_else(anywhere) })
}

/// The common name of a subject as RFC 4514 writes it; one with escapes in it stays as it is written.
fn common_name(subject: &str) -> Option<&str> {
    let at = if subject.starts_with("CN=") { 3 } else { subject.find(",CN=")? + 4 };
    let rest = &subject[at..];
    let mut is_escaped = false;
    let end = rest.find(|character: char| {
        let is_end = matches!(character, ',' | '+') && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        is_end
    });
    Some(&rest[..end.unwrap_or(rest.len())])
}

#[cfg(test)]
mod tests {
    use super::common_name;

    #[test]
    fn the_common_name_is_found_wherever_it_stands() {
        for (subject, name) in [
            ("CN=alice,O=Example", Some("alice")),
            ("O=Example,CN=alice", Some("alice")),
            ("CN=a\\,b,O=x", Some("a\\,b")),
            ("CN=a\\\\,O=x", Some("a\\\\")),
            ("O=Example", None),
            ("CN=", Some("")),
            ("", None),
        ] {
            assert_eq!(common_name(subject), name, "{subject}");
        }
    }
}
