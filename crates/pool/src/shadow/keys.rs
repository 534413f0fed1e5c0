//! What shadows recognise a client by, where that is something else than what the pool's algorithm does.

use std::net::IpAddr;
use std::ops::Range;

use subak_balance::Key;

/// The keys of one request for the shadows of its pool. Used again for the next request: nothing is
/// allocated once it is as large as keys are.
#[derive(Clone, Debug, Default)]
pub struct ShadowKeys {
    bytes: Vec<u8>,
    /// By the shadows' places; for those beyond, the request's own.
    keys: Vec<Kept>,
}

#[derive(Clone, Debug)]
enum Kept {
    /// The request's own.
    Own,
    None,
    Address(IpAddr),
    Bytes(Range<usize>),
}

impl ShadowKeys {
    /// Every shadow has the key that the pool's algorithm has.
    pub const OWN: &'static ShadowKeys = &ShadowKeys { bytes: Vec::new(), keys: Vec::new() };

    /// Forgets the request before.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.keys.clear();
    }

    /// The next shadow has the key that the pool's algorithm has.
    pub fn push_own(&mut self) {
        self.keys.push(Kept::Own);
    }

    /// The next shadow has this key.
    pub fn push(&mut self, key: Key<'_>) {
        self.keys.push(match key {
            Key::None => Kept::None,
            Key::Address(ip) => Kept::Address(ip),
            Key::Bytes(bytes) => {
                let begin = self.bytes.len();
                self.bytes.extend_from_slice(bytes);
                Kept::Bytes(begin..self.bytes.len())
            }
        });
    }

    /// The key of the shadow at this place, of a request that has this key itself.
    pub(super) fn key<'a>(&'a self, place: usize, own: Key<'a>) -> Key<'a> {
        match self.keys.get(place) {
            None | Some(Kept::Own) => own,
            Some(Kept::None) => Key::None,
            Some(Kept::Address(ip)) => Key::Address(*ip),
            Some(Kept::Bytes(range)) => self.bytes.get(range.clone()).map_or(Key::None, Key::Bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shadow_has_its_own_key_and_nothing_of_the_request_before() {
        let (own, ip) = (Key::Bytes(b"own"), IpAddr::from([192, 0, 2, 1]));
        let mut keys = ShadowKeys::default();
        for expected in [[Key::Bytes(b"first"), Key::None], [Key::Address(ip), Key::Bytes(b"x")]] {
            keys.clear();
            keys.push(expected[0]);
            keys.push_own();
            keys.push(expected[1]);
            let told: Vec<Key<'_>> = (0..4).map(|place| keys.key(place, own)).collect();
            assert_eq!(told, [expected[0], own, expected[1], own]);
        }
        assert_eq!(ShadowKeys::OWN.key(0, own), own);
    }
}
