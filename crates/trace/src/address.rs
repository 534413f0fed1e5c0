//! Clients of logs as addresses: what balancers look at.

use std::net::{IpAddr, Ipv6Addr};

use subak_balance::hash64;

/// The address that a log wrote so. What is no address, a host's name or a pseudonym, becomes one of
/// fd00::/8 by its hash: the same client is always the same.
pub(crate) fn address(text: &[u8]) -> IpAddr {
    let parsed = std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok());
    parsed.unwrap_or_else(|| {
        let (high, low) = (hash64(text, 0), hash64(text, 1));
        let bits = u128::from(high) << 64 | u128::from(low);
        IpAddr::V6(Ipv6Addr::from_bits(0xFD << 120 | bits >> 8))
    })
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn addresses_are_themselves_and_names_are_always_the_same_one() {
        assert_eq!(address(b"192.0.2.7").to_string(), "192.0.2.7");
        assert_eq!(address(b"2001:db8::7").to_string(), "2001:db8::7");
        assert_eq!(address(b"unix:"), address(b"unix:"));
        assert_ne!(address(b"alice"), address(b"bob"));
        assert!(address(b"alice").to_string().starts_with("fd"));
    }
}
