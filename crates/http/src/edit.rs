//! Changes to header fields: what the configuration says, and what Subak tells endpoints of the client.

use std::io::Write;
use std::net::IpAddr;

use subak_config::{ForwardedHeaders, HeaderEdits};
use subak_message::{Fields, Known, RequestHead};

use crate::client_addr::ClientAddr;

/// The edits that change anything, in order.
pub(crate) fn some_edits<'a>(edits: impl IntoIterator<Item = &'a HeaderEdits>) -> Vec<HeaderEdits> {
    edits.into_iter().filter(|edits| !edits.is_empty()).cloned().collect()
}

/// Applies edits in order; each removes, sets, then adds.
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

/// Says who the client is. What an untrusted client said of itself goes; what a trusted proxy said is
/// continued.
pub(crate) fn tell_client(
    head: &mut RequestHead,
    client: &ClientAddr,
    say: ForwardedHeaders,
    scratch: &mut Vec<u8>,
) {
    head.fields.remove_claims(client.peer_is_trusted);
    if !client.peer_is_trusted {
        for known in [
            Known::XForwardedFor,
            Known::XForwardedProto,
            Known::XForwardedHost,
            Known::XForwardedPrefix,
            Known::Forwarded,
            Known::XRealIp,
        ] {
            head.fields.remove(known);
        }
    }
    if say.x_forwarded {
        scratch.clear();
        for value in head.fields.get_all(Known::XForwardedFor) {
            scratch.extend_from_slice(value);
            scratch.extend_from_slice(b", ");
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
        write_forwarded(scratch, head, client);
        keep_valid(head.fields.set_known(Known::Forwarded, scratch));
    }
}

/// Says which beginning of the path was taken off, after what a trusted proxy has taken off before.
pub(crate) fn tell_prefix(fields: &mut Fields, prefix: &str) {
    let before = fields.get(Known::XForwardedPrefix).unwrap_or_default();
    let whole = [before.strip_suffix(b"/").unwrap_or(before), prefix.as_bytes()].concat();
    if !whole.is_empty() {
        keep_valid(fields.set_known(Known::XForwardedPrefix, &whole));
    }
}

/// One element of RFC 7239.
fn write_forwarded(out: &mut Vec<u8>, head: &RequestHead, client: &ClientAddr) {
    out.extend_from_slice(b"for=");
    match client.peer {
        Some(ip @ IpAddr::V4(_)) => write_ip(out, ip),
        Some(ip @ IpAddr::V6(_)) => {
            out.extend_from_slice(b"\"[");
            write_ip(out, ip);
            out.extend_from_slice(b"]\"");
        }
        None => out.extend_from_slice(b"_unix"),
    }
    if let Some(host) = head.fields.get(Known::Host) {
        out.extend_from_slice(b";host=\"");
        out.extend_from_slice(host);
        out.push(b'"');
    }
    out.extend_from_slice(b";proto=");
    out.extend_from_slice(head.scheme.as_str().as_bytes());
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
