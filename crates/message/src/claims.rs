//! Who says what of a client? Names by which proxies and delivery networks tell endpoints where a request
//! came from, beside those that Subak itself reads and writes ([`Known`]).
//!
//! Endpoints and their frameworks believe them: the client's address, its certificate, whether it came by
//! TLS, which path it "really" asked for. So they are for whoever is trusted to say so, and for nobody
//! else. Every spelling counts that CGI-style endpoints read alike ([`is_alike`](crate::is_alike)).

use crate::known::Known;
use crate::spelling::folded;

/// Names that are followed by nothing or by `-`: `X-Forwarded-Port`, `-Ssl`, `-Scheme`, `-User` and their
/// like; `X-Client-Cert-Verify`, which Subak itself writes, and `Client-Cert-Chain` (RFC 9440).
const BEGINNINGS: &[&[u8]] = &[b"x-forwarded", b"x-client-cert", b"client-cert"];

/// The known names that say where a request came from.
pub(crate) const KNOWN: u64 = Known::XForwardedFor.bit()
    | Known::XForwardedProto.bit()
    | Known::XForwardedHost.bit()
    | Known::XForwardedPrefix.bit()
    | Known::Forwarded.bit()
    | Known::XRealIp.bit();

/// The others, in lower case, sorted.
const NAMES: &[&str] = &[
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "cf-visitor",
    "client-ip",
    "fastly-client-ip",
    "fastly-ssl",
    "forwarded-for",
    "front-end-https",
    "proxy-client-ip",
    "true-client-ip",
    "wl-proxy-client-ip",
    "x-appengine-user-ip",
    "x-arr-ssl",
    "x-azure-clientip",
    "x-azure-socketip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-envoy-external-address",
    "x-envoy-internal",
    "x-forward-for",
    "x-host",
    "x-original-forwarded-for",
    "x-original-host",
    "x-original-url",
    "x-originating-ip",
    "x-proxyuser-ip",
    "x-real-port",
    "x-remote-addr",
    "x-remote-ip",
    "x-rewrite-url",
    "x-scheme",
    "x-url-scheme",
];

/// Bytes of the longest of [`NAMES`].
const LONGEST: usize = 24;

/// Whether endpoints take a field of this name for what a proxy says of the client.
pub(crate) fn is_claim(name: &[u8]) -> bool {
    if !matches!(
        name.first(),
        Some(b'x' | b'X' | b'c' | b'C' | b'f' | b'F' | b'p' | b'P' | b't' | b'T' | b'w' | b'W')
    ) {
        return false;
    }
    let mut lower = [0; LONGEST];
    let window = &mut lower[..name.len().min(LONGEST)];
    for (to, from) in window.iter_mut().zip(name) {
        *to = folded(*from);
    }
    let begins = |beginning: &&[u8]| {
        let rest = window.strip_prefix(*beginning);
        rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'-')))
    };
    if BEGINNINGS.iter().any(begins) {
        return true;
    }
    name.len() <= LONGEST && NAMES.binary_search_by(|one| one.as_bytes().cmp(window)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_in_any_spelling() {
        assert!(NAMES.is_sorted());
        assert_eq!(NAMES.iter().map(|name| name.len()).max(), Some(LONGEST));
        let begun = [
            "x-forwarded",
            "x-forwarded-port",
            "x-forwarded-preferred-username-of-somebody",
            "x-client-cert-verify",
            "client-cert",
            "client-cert-chain",
        ];
        for name in NAMES.iter().chain(&begun) {
            let spelt = ["_", ".", "~"].map(|mark| name.replace('-', mark));
            for name in spelt.into_iter().chain([name.to_string(), name.to_uppercase()]) {
                assert!(is_claim(name.as_bytes()), "{name}");
            }
        }
    }

    #[test]
    fn others_are_none() {
        for name in [
            "",
            "x",
            "x-forwardedness",
            "x-client-certificate",
            "client-certs",
            "x-request-id",
            "x-tenant",
            "true-client-ip2",
            "accept",
            "xforwarded-for",
            "x-envoy-external-address-x",
        ] {
            assert!(!is_claim(name.as_bytes()), "{name}");
        }
    }
}
