//! What is a client recognised by? The key of one request, from where the pool's algorithm wants it.
//!
//! Keys are what the client wrote, before anything is added to the request or changed in it. Nothing
//! is decoded: two spellings of one path are two keys. Of a name with several values the key is all of
//! them in their order, with a comma between: which of them the endpoint goes by nobody knows here.

use std::net::SocketAddr;

use subak_balance::{Key, KeySource, five_tuple};
use subak_message::RequestHead;
use subak_net::PeerAddress;
use subak_pool::{Pool, ShadowKeys};

use crate::client_addr::ClientAddr;
use crate::worker::Heads;

/// TCP's number (IANA).
const TCP: u8 = 6;

/// The ends of a client's connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    /// The client's.
    pub(crate) peer: PeerAddress,
    /// Ours; none on a unix socket, and where nobody wants to know.
    pub(crate) local: Option<SocketAddr>,
}

/// The key of a request. What is to be kept of it goes to `kept`, which is cleared first.
pub(crate) fn extract<'a>(
    source: &KeySource,
    request: &RequestHead,
    client: &ClientAddr,
    ends: &Ends,
    kept: &'a mut Vec<u8>,
) -> Key<'a> {
    kept.clear();
    let found = match source {
        KeySource::Source => return client.ip.map_or(Key::None, Key::Address),
        KeySource::Uri => Some(request.forward_target()),
        KeySource::Path => Some(request.path()),
        KeySource::Header(name) => {
            return join(request.fields.get_all_named(name.as_bytes()), kept);
        }
        KeySource::Cookie(name) => return join(request.fields.cookies(name.as_bytes()), kept),
        KeySource::Query(name) => {
            return join(parameters(request.query(), name.as_bytes()), kept);
        }
        KeySource::FiveTuple => {
            let (PeerAddress::Inet(peer), Some(local)) = (ends.peer, ends.local) else {
                return Key::None;
            };
            kept.extend_from_slice(&five_tuple(TCP, peer, local));
            return Key::Bytes(kept);
        }
    };
    let Some(found) = found else { return Key::None };
    kept.extend_from_slice(found);
    Key::Bytes(kept)
}

/// The keys of a request for the shadows of a pool.
#[cold]
pub(crate) fn extract_beside(pool: &Pool, heads: &mut Heads, client: &ClientAddr, ends: &Ends) {
    let Heads { request, shadow_keys, text, .. } = heads;
    collect_beside(pool, request, (client, ends), text, shadow_keys);
}

/// The same into `keys`; `kept` is used on the way.
pub(crate) fn collect_beside(
    pool: &Pool,
    request: &RequestHead,
    (client, ends): (&ClientAddr, &Ends),
    kept: &mut Vec<u8>,
    keys: &mut ShadowKeys,
) {
    keys.clear();
    let own = pool.algorithm().key();
    for source in pool.shadow_keys() {
        match source.filter(|source| Some(*source) != own) {
            None => keys.push_own(),
            Some(source) => keys.push(extract(source, request, client, ends, kept)),
        }
    }
}

/// All values, with a comma between.
#[inline]
fn join<'v, 'a>(values: impl Iterator<Item = &'v [u8]>, kept: &'a mut Vec<u8>) -> Key<'a> {
    let mut is_there = false;
    for value in values {
        if is_there {
            kept.push(b',');
        }
        is_there = true;
        kept.extend_from_slice(value);
    }
    if is_there { Key::Bytes(kept) } else { Key::None }
}

/// The values of the parameters of this name, not decoded.
fn parameters<'a>(query: Option<&'a [u8]>, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let pieces = query.into_iter().flat_map(|query| query.split(|byte| *byte == b'&'));
    pieces.filter_map(move |piece| piece.strip_prefix(name)?.strip_prefix(b"="))
}

#[cfg(test)]
mod tests {
    use super::*;
    use subak_message::h1::parse_request;
    use subak_message::{HeadLimits, PathRules, Scheme};

    const REQUEST: &[u8] = b"GET /a/%62/../c?x=1&tenant=blue&tenant=red&y HTTP/1.1\r\n\
        Host: h\r\nX-Tenant: green\r\nCookie: a=b; id=7\r\nX-Tenant: last\r\n\r\n";

    fn key(source: &KeySource, local: Option<&str>) -> String {
        let mut request = RequestHead::new(Scheme::Http);
        let limits = HeadLimits { max_bytes: 4096, max_fields: 64, path: PathRules::DEFAULT };
        parse_request(REQUEST, &limits, &mut request).unwrap();
        let peer = PeerAddress::Inet("192.0.2.1:1025".parse().unwrap());
        let client = ClientAddr {
            ip: Some([203, 0, 113, 9].into()),
            peer: peer.ip(),
            peer_is_trusted: true,
            is_unreadable: false,
        };
        let ends = Ends { peer, local: local.map(|local| local.parse().unwrap()) };
        let mut kept = b"of the request before".to_vec();
        match extract(source, &request, &client, &ends, &mut kept) {
            Key::None => "none".into(),
            Key::Address(ip) => ip.to_string(),
            Key::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        }
    }

    #[test]
    fn keys_are_what_the_client_wrote() {
        let text = |source| key(&source, None);
        assert_eq!(text(KeySource::Source), "203.0.113.9", "the client, not the proxy before us");
        assert_eq!(text(KeySource::Uri), "/a/%62/../c?x=1&tenant=blue&tenant=red&y");
        assert_eq!(text(KeySource::Path), "/a/%62/../c");
        assert_eq!(text(KeySource::Header("x-tenant".into())), "green,last");
        assert_eq!(text(KeySource::Header("X-None".into())), "none");
        assert_eq!(text(KeySource::Cookie("id".into())), "7");
        assert_eq!(text(KeySource::Cookie("ID".into())), "none");
        assert_eq!(text(KeySource::Query("tenant".into())), "blue,red");
        assert_eq!(text(KeySource::Query("x".into())), "1");
        assert_eq!(text(KeySource::Query("ten".into())), "none");
        assert_eq!(text(KeySource::Query("y".into())), "none");
        assert_eq!(text(KeySource::FiveTuple), "none");
    }

    #[test]
    fn a_connection_is_its_own_key() {
        let one = key(&KeySource::FiveTuple, Some("192.0.2.2:80"));
        assert_eq!(one.chars().next(), Some('\u{6}'));
        assert_ne!(one, key(&KeySource::FiveTuple, Some("192.0.2.2:81")));
    }
}
