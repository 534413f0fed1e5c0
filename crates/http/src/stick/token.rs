//! What a cookie says: a name for an endpoint that only the holder of a key can make or understand.
//!
//! ```text
//! digest = HMAC-SHA-256(key, "subak stick 1" ‖ length of pool ‖ pool ‖ identity)
//! token  = "1" ‖ base64url(digest[0..6]) ‖ base64url(digest[6..24])
//! ```
//!
//! The first 8 characters after the version find the endpoint, the other 24 (144 bits) prove that the
//! token was made with the key. One endpoint of one pool has one token a key, so all of them are worked
//! out when a snapshot is built, and a request costs a binary search and a comparison of 24 bytes,
//! which takes the same time wherever they differ. Nothing is decoded.
//!
//! A token says nothing to whoever has no key: neither an address, nor that two pools have the same
//! endpoint. It is no proof of who a client is: whoever copies it is sent to the same endpoint.

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac::{Context, Key};

use crate::stick::Keys;

/// In everything that is signed, so that a key may serve for something else too.
const CONTEXT: &[u8] = b"subak stick 1";
const VERSION: u8 = b'1';

/// Of a whole token, and of the part that finds the endpoint.
const LENGTH: usize = 33;
const FINDS: usize = 9;

/// Bytes of a digest that are in a token.
const SHOWN: usize = 24;

type Token = [u8; LENGTH];

/// The tokens of the endpoints of one pool, by all keys.
pub(crate) struct Tokens {
    /// By the key that signs, in the order of the pool.
    signed: Box<[Token]>,
    /// By all keys, in the order of the text.
    known: Box<[Known]>,
}

struct Known {
    token: Token,
    index: u32,
}

impl Tokens {
    /// The tokens of a pool whose endpoints have these identities, in order. A few µs each a key.
    pub(crate) fn new(keys: &Keys, pool: &str, identities: &[impl AsRef<str>]) -> Tokens {
        let mut known = Vec::new();
        for key in keys.iter() {
            for (index, identity) in (0..).zip(identities) {
                known.push(Known { token: token(key, pool, identity.as_ref()), index });
            }
        }
        let signed = known.iter().take(identities.len()).map(|known| known.token).collect();
        known.sort_unstable_by_key(|known| known.token);
        Tokens { signed, known: known.into() }
    }

    /// The token that a client of this endpoint is given.
    #[inline]
    pub(crate) fn of(&self, index: usize) -> &[u8] {
        &self.signed[index]
    }

    /// The endpoint that this text names; none for whatever was not made with one of the keys.
    pub(crate) fn read(&self, text: &[u8]) -> Option<usize> {
        let text: &Token = text.try_into().ok()?;
        let finds = &text[..FINDS];
        let start = self.known.partition_point(|known| known.token[..FINDS] < *finds);
        let mut alike =
            self.known[start..].iter().take_while(|known| known.token[..FINDS] == *finds);
        let proven =
            |known: &&Known| verify_slices_are_equal(&known.token[FINDS..], &text[FINDS..]).is_ok();
        alike.find(proven).map(|known| known.index as usize)
    }
}

impl fmt::Debug for Tokens {
    /// Without what clients could choose an endpoint with.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Tokens").field("endpoints", &self.signed.len()).finish_non_exhaustive()
    }
}

fn token(key: &Key, pool: &str, identity: &str) -> Token {
    let mut context = Context::with_key(key);
    context.update(CONTEXT);
    context.update(&(pool.len() as u64).to_be_bytes());
    context.update(pool.as_bytes());
    context.update(identity.as_bytes());
    let digest = context.sign();
    let mut token = [VERSION; LENGTH];
    let (triples, _) = digest.as_ref()[..SHOWN].as_chunks::<3>();
    for (text, triple) in token[1..].chunks_exact_mut(4).zip(triples) {
        text.copy_from_slice(&base64url(*triple));
    }
    token
}

/// 3 bytes as 4 characters that a cookie may have (RFC 4648, 5).
fn base64url([first, second, third]: [u8; 3]) -> [u8; 4] {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits = u32::from_be_bytes([0, first, second, third]);
    [18, 12, 6, 0].map(|shift| ALPHABET[(bits >> shift & 63) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "a key of sixteen";
    const NEW: &str = "another key of more bytes";

    fn identities(count: usize) -> Vec<String> {
        (0..count)
            .map(|number| format!("http://10.0.{}.{}:80", number / 256, number % 256))
            .collect()
    }

    fn tokens(keys: &[&str], pool: &str, count: usize) -> Tokens {
        Tokens::new(&Keys::new(keys), pool, &identities(count))
    }

    #[test]
    fn a_token_is_what_it_always_was() {
        // Worked out by hmac and base64 of Python's standard library.
        let tokens = tokens(&[OLD], "app", 1);
        assert_eq!(std::str::from_utf8(tokens.of(0)).unwrap(), "1_H1ns7tlWfujbs-Yc99cS6-6zz5GdIw-");
    }

    #[test]
    fn every_endpoint_has_a_token_of_its_own_that_names_it() {
        let tokens = tokens(&[NEW, OLD], "app", 2000);
        for index in 0..2000 {
            assert_eq!(tokens.read(tokens.of(index)), Some(index));
        }
    }

    #[test]
    fn whatever_is_changed_in_a_token_it_names_nobody() {
        let tokens = tokens(&[NEW], "app", 50);
        let token = *tokens.signed.first().unwrap();
        for at in 0..LENGTH {
            for byte in 0..=255 {
                let mut changed = token;
                changed[at] = byte;
                assert_eq!(tokens.read(&changed).is_some(), changed == token, "{at} {byte}");
            }
            assert_eq!(tokens.read(&token[..at]), None);
            assert_eq!(tokens.read(&[&token[..], &token[..at + 1]].concat()), None);
            // The start of one and the end of another.
            let other = tokens.of(1);
            let mixed = [&token[..at], &other[at..]].concat();
            assert_eq!(tokens.read(&mixed), (mixed == other).then_some(1));
        }
        assert_eq!(tokens.read(b"http://10.0.0.0:80"), None);
    }

    #[test]
    fn a_token_is_good_for_one_pool_and_its_keys_only() {
        let app = tokens(&[OLD], "app", 3);
        assert_eq!(tokens(&[OLD], "api", 3).read(app.of(2)), None);
        // Neither can the end of a name be taken for the start of an identity.
        assert_eq!(tokens(&[OLD], "apphttp", 3).read(app.of(2)), None);
        assert_eq!(tokens(&[NEW], "app", 3).read(app.of(2)), None);
        assert_eq!(tokens(&[NEW, OLD], "app", 3).read(app.of(2)), Some(2));
    }

    #[test]
    fn the_first_key_signs_and_all_verify() {
        let (old, both) = (tokens(&[OLD], "app", 3), tokens(&[NEW, OLD], "app", 3));
        assert_eq!(both.of(1), tokens(&[NEW], "app", 3).of(1));
        assert_ne!(both.of(1), old.of(1));
        assert_eq!(both.read(old.of(1)), Some(1));
    }

    #[test]
    fn a_token_follows_its_endpoint_to_another_place() {
        let before = tokens(&[OLD], "app", 4);
        let mut list = identities(4);
        list.reverse();
        let turned = Tokens::new(&Keys::new(&[OLD]), "app", &list);
        assert_eq!(turned.read(before.of(0)), Some(3));
        let without = Tokens::new(&Keys::new(&[OLD]), "app", &list[..3]);
        assert_eq!(without.read(before.of(0)), None);
    }
}
