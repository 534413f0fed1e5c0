//! How a table tells keys apart: hashes that nobody outside can foresee.
//!
//! Who knew the secret could aim at one set of the table and make Subak forget a busy key. Texts are up to
//! whoever writes them, so they take SipHash. Of addresses one has what one is given: two multiplications
//! with secret numbers do, 150 instructions less for each request.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// The secret of one table.
#[derive(Debug)]
pub(super) struct Secret {
    texts: RandomState,
    clients: [u64; 4],
}

impl Default for Secret {
    fn default() -> Secret {
        let texts = RandomState::new();
        Secret { clients: [0u8, 1, 2, 3].map(|number| texts.hash_one(number)), texts }
    }
}

impl Secret {
    /// The hash of an address, or of what counts of it.
    #[inline]
    pub(super) fn of_client(&self, bits: u128) -> u64 {
        let [first, second, third, fourth] = self.clients;
        let (high, low) = ((bits >> 64) as u64, bits as u64);
        let once = folded(low ^ first, high ^ second);
        folded(once ^ third, low ^ fourth)
    }

    /// The hash of a name that a request brings.
    #[inline]
    pub(super) fn of_text(&self, text: &[u8]) -> u64 {
        self.texts.hash_one(text)
    }
}

/// Both halves of a product.
#[inline]
fn folded(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Addresses that differ little, as those of one network or of one attacker do.
    fn neighbours() -> impl Iterator<Item = u128> {
        let v4 = (0..1u128 << 16).map(|low| 0xffff_0a00_0000 | low);
        v4.chain((0..1u128 << 16).map(|subnet| 0x2001_0db8 << 96 | subnet << 64))
    }

    #[test]
    fn neighbours_spread_over_a_table_as_by_chance() {
        let secret = Secret::default();
        let hashes: Vec<u64> = neighbours().map(|bits| secret.of_client(bits)).collect();
        assert_eq!(hashes.iter().collect::<HashSet<_>>().len(), hashes.len());
        // 16 to each place by chance; its deviation is 4: twelve of them nobody ever sees.
        for shift in [0, 13, 26, 39, 51] {
            let mut places = vec![0u32; 1 << 13];
            for hash in &hashes {
                places[(hash >> shift) as usize % (1 << 13)] += 1;
            }
            let most = places.iter().max().copied().unwrap_or(0);
            assert!(most < 16 + 48, "{most} in one place of bits {shift} and up");
        }
    }

    #[test]
    fn two_tables_have_two_secrets() {
        let (one, other) = (Secret::default(), Secret::default());
        let same =
            neighbours().take(1000).filter(|bits| one.of_client(*bits) == other.of_client(*bits));
        assert_eq!(same.count(), 0);
        assert_eq!(one.of_text(b"text"), one.of_text(b"text"));
        assert_ne!(one.of_text(b"text"), other.of_text(b"text"));
    }
}
