//! Where in a table is a key? In one of the eight places of the one set that its hash names.
//!
//! A set is small enough to be looked through, and none of its keys can be pushed out by keys of
//! another set. Who does not know the secret of the hash cannot aim at a set.

/// Places of a set.
pub(crate) const WAYS: usize = 8;

/// How many sets hold so many entries, at least one.
pub(crate) fn sets_for(entries: usize) -> usize {
    entries.div_ceil(WAYS).max(1)
}

/// The set of a key among so many. By its low half, because counts tell keys apart by the high bits; no
/// division.
#[inline]
pub(crate) fn set_of(key: u64, sets: usize) -> usize {
    (((key & 0xFFFF_FFFF) * sets as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::{set_of, sets_for};

    #[test]
    fn every_key_has_a_set() {
        for (entries, sets) in [(0, 1), (1, 1), (8, 1), (9, 2), (100_000, 12_500)] {
            assert_eq!(sets_for(entries), sets);
            assert!(set_of(u64::MAX, sets) < sets && set_of(0, sets) == 0);
        }
    }
}
