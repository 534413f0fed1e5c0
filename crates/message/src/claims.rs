//! Who says what of a client? Names by which proxies and delivery networks tell endpoints where a request
//! came from, beside those that Subak itself reads and writes ([`Known`](crate::Known)).
//!
//! Endpoints and their frameworks believe them: the client's address, whether it came by TLS, which path
//! it "really" asked for. So they are for whoever is trusted to say so, and for nobody else. `_` counts
//! as `-`, because CGI and its heirs read both alike.

/// Whatever begins so: `-Port`, `-Ssl`, `-Scheme`, `-Server`, `-Client-Cert`, `-User` and their like.
const BEGINNING: &[u8] = b"x-forwarded";

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
        *to = if *from == b'_' { b'-' } else { from.to_ascii_lowercase() };
    }
    let rest = window.strip_prefix(BEGINNING);
    if rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'-'))) {
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
        let begun =
            ["x-forwarded", "x-forwarded-port", "x-forwarded-preferred-username-of-somebody"];
        for name in NAMES.iter().chain(&begun) {
            for name in [name.to_string(), name.to_uppercase(), name.replace('-', "_")] {
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
            "x-client-cert-subject",
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
