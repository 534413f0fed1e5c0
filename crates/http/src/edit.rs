//! Changes to header fields: what the configuration says, and what Subak tells endpoints of the client.

use std::io::Write;
use std::net::IpAddr;

use subak_config::{ForwardedHeaders, HeaderEdits, ProxyField, TrustedProxies};
use subak_message::{Fields, Known, RequestHead};

use crate::client_addr::ClientAddr;
use crate::forwarded;

/// The edits that change anything, in order.
pub(crate) fn some_edits<'a>(edits: impl IntoIterator<Item = &'a HeaderEdits>) -> Vec<HeaderEdits> {
    edits.into_iter().filter(|edits| !edits.is_empty()).cloned().collect()
}

/// Applies a request's edits in order; each removes, sets, then adds. To remove or to set a field removes
/// every spelling of its name that CGI-style endpoints read alike.
#[inline]
pub(crate) fn apply_to_request(fields: &mut Fields, edits: &[HeaderEdits]) {
    for edit in edits {
        for name in &edit.remove {
            fields.remove_alike(name.as_str().as_bytes());
        }
        for (name, value) in &edit.set {
            keep_valid(fields.set_alike(name.as_str().as_bytes(), value.as_str().as_bytes()));
        }
        for (name, value) in &edit.add {
            keep_valid(fields.push(name.as_str().as_bytes(), value.as_str().as_bytes()));
        }
    }
}

/// Applies a response's edits in order; each removes, sets, then adds.
#[inline]
pub(crate) fn apply(fields: &mut Fields, edits: &[HeaderEdits]) {
    for edit in edits {
        for name in &edit.remove {
            fields.remove_named(name.as_str().as_bytes());
        }
        for (name, value) in &edit.set {
            keep_valid(fields.set(name.as_str().as_bytes(), value.as_str().as_bytes()));
        }
        for (name, value) in &edit.add {
            keep_valid(fields.push(name.as_str().as_bytes(), value.as_str().as_bytes()));
        }
    }
}

/// Takes out of a response's trailers what its edits remove or set.
pub(crate) fn clean_trailers(trailers: &mut Fields, edits: &[HeaderEdits]) {
    for edit in edits {
        for name in edit.remove.iter().chain(edit.set.iter().map(|(name, _)| name)) {
            trailers.remove_named(name.as_str().as_bytes());
        }
    }
}

/// Tells the endpoint who the client is. What is not believed has been taken out of the head before
/// ([`Trust::clean`](crate::trust::Trust::clean)); what a trusted proxy said is continued.
pub(crate) fn tell_client(
    head: &mut RequestHead,
    client: &ClientAddr,
    trusted: &TrustedProxies,
    say: ForwardedHeaders,
    scratch: &mut Vec<u8>,
) {
    // The proxy has said it in another field than the one that goes on.
    let is_translated = client.ip != client.peer && trusted.field != ProxyField::XForwardedFor;
    if say.x_forwarded {
        scratch.clear();
        for value in head.fields.get_all(Known::XForwardedFor) {
            scratch.extend_from_slice(value);
            scratch.extend_from_slice(b", ");
        }
        if is_translated {
            translate(head, client, trusted, scratch);
        }
        match client.peer {
            Some(ip) => write_ip(scratch, ip),
            None => scratch.extend_from_slice(b"unix"),
        }
        keep_valid(head.fields.set_known(Known::XForwardedFor, scratch));
        if !head.fields.has(Known::XForwardedProto) {
            let scheme = head.scheme.as_str().as_bytes();
            keep_valid(head.fields.push_known(Known::XForwardedProto, scheme));
        }
        if !head.fields.has(Known::XForwardedHost) {
            scratch.clear();
            scratch.extend_from_slice(head.fields.get(Known::Host).unwrap_or_default());
            if !scratch.is_empty() {
                keep_valid(head.fields.push_known(Known::XForwardedHost, scratch));
            }
        }
    }
    if say.forwarded {
        scratch.clear();
        for value in head.fields.get_all(Known::Forwarded) {
            scratch.extend_from_slice(value);
            scratch.extend_from_slice(b", ");
        }
        if scratch.is_empty()
            && let Some(ip) = client.ip.filter(|_| client.ip != client.peer)
        {
            write_named(scratch, ip, &head.fields);
        }
        write_forwarded(scratch, head, client);
        keep_valid(head.fields.set_known(Known::Forwarded, scratch));
    }
}

/// Says in X-Forwarded-* what a trusted proxy has said in another field.
#[cold]
fn translate(
    head: &mut RequestHead,
    client: &ClientAddr,
    trusted: &TrustedProxies,
    list: &mut Vec<u8>,
) {
    // With `also`, the proxies say it twice.
    if list.is_empty()
        && let Some(ip) = client.ip
    {
        write_ip(list, ip);
        list.extend_from_slice(b", ");
    }
    let Some(named) = forwarded::client(&head.fields, trusted) else { return };
    let (scheme, host) = (named.scheme, named.host.map(<[u8]>::to_vec));
    if let Some(scheme) = scheme.filter(|_| !head.fields.has(Known::XForwardedProto)) {
        keep_valid(head.fields.push_known(Known::XForwardedProto, scheme.as_str().as_bytes()));
    }
    if let Some(host) = host.filter(|_| !head.fields.has(Known::XForwardedHost)) {
        keep_valid(head.fields.push_known(Known::XForwardedHost, &host));
    }
}

/// The element of RFC 7239 for a client that a trusted proxy has named in another field.
#[cold]
fn write_named(out: &mut Vec<u8>, ip: IpAddr, fields: &Fields) {
    write_for(out, Some(ip));
    if let Some(scheme) = fields.get(Known::XForwardedProto).and_then(forwarded::scheme_of)
        && fields.count(Known::XForwardedProto) == 1
    {
        out.extend_from_slice(b";proto=");
        out.extend_from_slice(scheme.as_str().as_bytes());
    }
    out.extend_from_slice(b", ");
}

/// Says which beginning of the path was taken off, after what a trusted proxy has taken off before.
pub(crate) fn tell_prefix(fields: &mut Fields, prefix: &str) {
    let before = fields.get(Known::XForwardedPrefix).unwrap_or_default();
    let whole = [before.strip_suffix(b"/").unwrap_or(before), prefix.as_bytes()].concat();
    if !whole.is_empty() {
        keep_valid(fields.set_known(Known::XForwardedPrefix, &whole));
    }
}

/// Our own element of RFC 7239.
fn write_forwarded(out: &mut Vec<u8>, head: &RequestHead, client: &ClientAddr) {
    write_for(out, client.peer);
    if let Some(host) = head.fields.get(Known::Host) {
        out.extend_from_slice(b";host=\"");
        out.extend_from_slice(host);
        out.push(b'"');
    }
    out.extend_from_slice(b";proto=");
    out.extend_from_slice(head.scheme.as_str().as_bytes());
}

/// `for=` with an address; none: somebody behind a unix socket.
fn write_for(out: &mut Vec<u8>, ip: Option<IpAddr>) {
    out.extend_from_slice(b"for=");
    match ip {
        Some(ip @ IpAddr::V4(_)) => write_ip(out, ip),
        Some(ip @ IpAddr::V6(_)) => {
            out.extend_from_slice(b"\"[");
            write_ip(out, ip);
            out.extend_from_slice(b"]\"");
        }
        None => out.extend_from_slice(b"_unix"),
    }
}

/// Writes an address as text. IPv4 by hand: it is in every request.
fn write_ip(out: &mut Vec<u8>, ip: IpAddr) {
    match ip {
        IpAddr::V4(ip) => {
            for (place, octet) in ip.octets().into_iter().enumerate() {
                if place > 0 {
                    out.push(b'.');
                }
                if octet >= 100 {
                    out.push(b'0' + octet / 100);
                }
                if octet >= 10 {
                    out.push(b'0' + octet / 10 % 10);
                }
                out.push(b'0' + octet % 10);
            }
        }
        IpAddr::V6(ip) => {
            let written = write!(out, "{ip}");
            debug_assert!(written.is_ok(), "writing to memory does not fail");
        }
    }
}

/// Configured fields and those made here are valid; a received value that is too long in sum is left
/// out rather than cut.
fn keep_valid(pushed: Result<(), subak_message::BadField>) {
    if let Err(error) = pushed {
        tracing::debug!(%error, "a header field was left out");
    }
}

#[cfg(test)]
mod tests {
    use super::write_ip;
    use std::net::{IpAddr, Ipv4Addr};

    #[test]
    fn addresses_are_written_as_the_standard_library_does() {
        let mut random = subak_base::Rng::new(3);
        for _ in 0..2000 {
            let ip = IpAddr::V4(Ipv4Addr::from(random.next_u64() as u32));
            let mut out = Vec::new();
            write_ip(&mut out, ip);
            assert_eq!(out, ip.to_string().as_bytes());
        }
    }
}
