//! nginx's `hash` without `consistent`, pick for pick; and keys as nginx sees them.
//!
//! Of the CRC-32 of the key the bits 16 to 30 are taken; the sum of those over all rounds so far,
//! modulo Σw, is the slot, and the weights are walked in configured order. From the second round on
//! the number of the round stands before the key, in decimal. Σw counts every endpoint. Misses and
//! retries: see [`chain`](crate::chain).
//!
//! An address counts as the text that nginx has in `$remote_addr`, so that `key = "source"` agrees
//! with `hash $remote_addr`.
//!
//! Weights: proportional. Cost: O(log n) for each round.
//! Source: nginx 1.22, checked pick for pick.

use std::net::IpAddr;

use crate::balancer::Recipe;
use crate::crc32::Crc32;
use crate::key::Key;
use crate::shares;

/// Values of the hash of one round: bits 16 to 30 of the CRC-32.
const HASHES: u64 = 1 << 15;

#[derive(Debug)]
pub(crate) struct NginxModulo {
    /// The sum of the weights up to and including each endpoint's.
    ends: Box<[u64]>,
}

impl NginxModulo {
    pub(crate) fn build(recipe: &Recipe<'_>) -> NginxModulo {
        let mut sum = 0;
        let ends = recipe.endpoints.iter().map(|entry| {
            sum += entry.weight.get();
            sum
        });
        NginxModulo { ends: ends.collect() }
    }

    /// How many values of the first round's hash each weight gets.
    pub(crate) fn places(weights: &[u64]) -> Vec<u64> {
        shares::of_hashes(weights, HASHES)
    }

    /// Whether there is nothing to hash over: round robin decides.
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.len() < 2 || self.ends.last().is_none_or(|total| *total == 0)
    }

    /// The endpoints of all rounds. Not for an empty one.
    pub(crate) fn endpoints(&self, key: &NginxKey<'_>) -> impl Iterator<Item = usize> {
        let total = self.ends.last().copied().unwrap_or(1);
        let mut sum = 0;
        (0..u32::MAX).map(move |round| {
            let mut digits = [0; 10];
            let number = if round == 0 { &[][..] } else { decimal(round, &mut digits) };
            let checksum = Crc32::START.update(number).update(key.bytes()).finish();
            sum += u64::from(checksum >> 16) & (HASHES - 1);
            let slot = sum % total;
            self.ends.partition_point(|end| *end <= slot)
        })
    }
}

/// A key as nginx sees it.
pub(crate) enum NginxKey<'a> {
    Bytes(&'a [u8]),
    Text { buffer: [u8; TEXT_MAX], length: usize },
}

/// The longest address: eight groups of four digits and seven colons.
const TEXT_MAX: usize = 39;

impl<'a> NginxKey<'a> {
    /// None of a request without a key.
    #[inline]
    pub(crate) fn of(key: Key<'a>) -> Option<NginxKey<'a>> {
        match key {
            Key::None | Key::Bytes([]) => None,
            Key::Bytes(bytes) => Some(NginxKey::Bytes(bytes)),
            Key::Address(address) => {
                let mut text = Text { buffer: [0; TEXT_MAX], length: 0 };
                match address.to_canonical() {
                    IpAddr::V4(v4) => text.dotted(v4.octets()),
                    IpAddr::V6(v6) => text.grouped(v6.segments()),
                }
                Some(NginxKey::Text { buffer: text.buffer, length: text.length })
            }
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            NginxKey::Bytes(bytes) => bytes,
            NginxKey::Text { buffer, length } => &buffer[..*length],
        }
    }
}

/// The text of an address under way. Not by `Display`, which takes longer than all the rest.
struct Text {
    buffer: [u8; TEXT_MAX],
    length: usize,
}

impl Text {
    #[inline]
    fn push(&mut self, byte: u8) {
        self.buffer[self.length] = byte;
        self.length += 1;
    }

    fn dotted(&mut self, octets: [u8; 4]) {
        for (place, octet) in octets.into_iter().enumerate() {
            if place > 0 {
                self.push(b'.');
            }
            if octet >= 100 {
                self.push(b'0' + octet / 100);
            }
            if octet >= 10 {
                self.push(b'0' + octet / 10 % 10);
            }
            self.push(b'0' + octet % 10);
        }
    }

    /// RFC 5952: lower case, no leading zeros, `::` for the first longest run of zeros.
    fn grouped(&mut self, groups: [u16; 8]) {
        let (start, length) = longest_zeros(&groups);
        let (mut place, mut needs_colon) = (0, false);
        while place < groups.len() {
            if place == start && length > 1 {
                self.push(b':');
                self.push(b':');
                (place, needs_colon) = (place + length, false);
                continue;
            }
            if needs_colon {
                self.push(b':');
            }
            let group = groups[place];
            for shift in [12, 8, 4, 0] {
                if group >> shift > 0 || shift == 0 {
                    self.push(b"0123456789abcdef"[usize::from(group >> shift & 0xF)]);
                }
            }
            (place, needs_colon) = (place + 1, true);
        }
    }
}

/// The first longest run of zeros: where it begins and how long it is.
fn longest_zeros(groups: &[u16; 8]) -> (usize, usize) {
    let (mut longest, mut current) = ((0, 0), (0, 0));
    for (place, group) in groups.iter().enumerate() {
        current = if *group == 0 { (current.0, current.1 + 1) } else { (place + 1, 0) };
        if current.1 > longest.1 {
            longest = current;
        }
    }
    longest
}

/// A number in decimal, at the end of the buffer.
fn decimal(mut number: u32, buffer: &mut [u8; 10]) -> &[u8] {
    let mut start = buffer.len();
    while number > 0 {
        start -= 1;
        buffer[start] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    &buffer[start..]
}

#[cfg(test)]
mod tests {
    use super::{NginxKey, decimal};
    use crate::key::Key;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    use subak_base::Rng;

    fn text(address: IpAddr) -> String {
        let key = NginxKey::of(Key::Address(address)).unwrap();
        String::from_utf8(key.bytes().to_vec()).unwrap()
    }

    #[test]
    fn addresses_are_written_as_everywhere() {
        let mut rng = Rng::new(1);
        for _ in 0..20_000 {
            let word = rng.next_u64();
            let v4 = Ipv4Addr::from(word as u32 & (word >> 32) as u32);
            assert_eq!(text(v4.into()), v4.to_string());
            let groups = [(); 8].map(|()| match rng.below(3) {
                0 => rng.next_u64() as u16,
                1 => rng.below(300) as u16,
                _ => 0,
            });
            let v6 = Ipv6Addr::from(groups);
            // The obsolete IPv4-compatible form is nobody's address.
            if groups[..5] != [0; 5] {
                assert_eq!(text(v6.into()), v6.to_string(), "{groups:?}");
            }
        }
        assert_eq!(text("::ffff:192.0.2.1".parse().unwrap()), "192.0.2.1");
        for whole in
            ["2001:db8:1:2:3:4:5:6", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "1::", "fe80::1"]
        {
            assert_eq!(text(whole.parse().unwrap()), whole);
        }
    }

    #[test]
    fn what_is_no_key_is_none() {
        assert!(NginxKey::of(Key::None).is_none());
        assert!(NginxKey::of(Key::Bytes(b"")).is_none());
        assert_eq!(NginxKey::of(Key::Bytes(b"x")).unwrap().bytes(), b"x");
    }

    #[test]
    fn rounds_are_written_in_decimal() {
        let written = |number| String::from_utf8(decimal(number, &mut [0; 10]).to_vec()).unwrap();
        assert_eq!([1, 20, 4_294_967_295].map(written), ["1", "20", "4294967295"]);
    }
}
