//! Which pool of a split takes a request? By chance, or by what the client is recognised by.
//!
//! A client stays with its side while weights stay, and as weights change only those move that have
//! to: see [`subak_balance::Split`]. With a cookie the client carries a random number, which is its key;
//! nothing is kept here, and whoever makes one up chooses nothing but the side. The cookie is taken out
//! of the request. Where a pool has no endpoint to give, the others take its requests, unless told
//! otherwise; a client comes back to its side with it.

use std::sync::Arc;

use subak_balance::{Key, KeySource, hash64};
use subak_base::BitSet;
use subak_config::{self as config, SplitBy};
use subak_message::{Fields, Known, RequestHead};

use crate::client_addr::ClientAddr;
use crate::key::{self, Ends};
use crate::plan::PoolPlan;
use crate::stick::client_hash;

/// Hexadecimal digits of a cookie's value.
const DIGITS: usize = 16;

/// The pools of a split, ready to choose from.
#[derive(Debug)]
pub(crate) struct Split {
    sides: Box<[Arc<PoolPlan>]>,
    shares: subak_balance::Split,
    by: By,
    falls_back: bool,
}

#[derive(Debug)]
enum By {
    Chance,
    Key(KeySource),
    Cookie { name: Box<[u8]>, attributes: &'static str },
}

/// A cookie that an answer sets: the client's key for this split.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SplitCookie<'a> {
    name: &'a [u8],
    attributes: &'static str,
    key: u64,
}

impl Split {
    /// A split over these plans, in the order of its sides.
    pub(crate) fn new(split: &config::Split, sides: Vec<Arc<PoolPlan>>, is_tls: bool) -> Split {
        Split {
            sides: sides.into(),
            shares: subak_balance::Split::new(
                split.sides.iter().map(|side| (&*side.pool, side.weight)),
            ),
            by: match &split.by {
                SplitBy::Chance => By::Chance,
                SplitBy::Key(source) => By::Key(source.clone()),
                SplitBy::Cookie(name) => By::Cookie {
                    name: name.as_bytes().into(),
                    attributes: match is_tls {
                        true => "; Path=/; Secure; HttpOnly; SameSite=Lax",
                        false => "; Path=/; HttpOnly; SameSite=Lax",
                    },
                },
            },
            falls_back: split.fallback,
        }
    }

    /// The pool that takes this request, and the cookie that tells the client so when it has none.
    /// `random` is used where nothing recognises the client.
    pub(crate) fn choose(
        &self,
        head: &mut RequestHead,
        (client, ends): (&ClientAddr, &Ends),
        kept: &mut Vec<u8>,
        random: u64,
    ) -> (&Arc<PoolPlan>, Option<SplitCookie<'_>>) {
        let (key, cookie) = match &self.by {
            By::Chance => (random, None),
            By::Key(source) => {
                let key = match key::extract(source, head, client, ends, kept) {
                    Key::None => random,
                    Key::Address(ip) => client_hash(ip),
                    Key::Bytes(bytes) => hash64(bytes, 0),
                };
                (key, None)
            }
            By::Cookie { name, attributes } => {
                let known = head.fields.cookies(name).find_map(read);
                head.fields.remove_cookie(name);
                let cookie = SplitCookie { name, attributes, key: random };
                (known.unwrap_or(random), known.is_none().then_some(cookie))
            }
        };
        (self.side(key), cookie)
    }

    /// The side that takes this key now.
    fn side(&self, key: u64) -> &Arc<PoolPlan> {
        let serves = |side: usize| self.sides[side].pool.has_untried(&BitSet::EMPTY);
        let own = self.shares.pick(key, |_| true).unwrap_or(0);
        let side = match self.falls_back && !serves(own) {
            true => self.shares.pick(key, serves).unwrap_or(own),
            false => own,
        };
        &self.sides[side]
    }

    /// All of them, in the order of the configuration.
    pub(crate) fn sides(&self) -> impl Iterator<Item = &PoolPlan> {
        self.sides.iter().map(|plan| &**plan)
    }
}

impl SplitCookie<'_> {
    /// Puts the cookie into the answer.
    pub(crate) fn set(&self, fields: &mut Fields) {
        let value = format!("={:0DIGITS$x}{}", self.key, self.attributes);
        if let Err(error) =
            fields.push_known(Known::SetCookie, &[self.name, value.as_bytes()].concat())
        {
            tracing::debug!(%error, "the cookie of a split was left out");
        }
    }
}

/// A key as a cookie has it.
fn read(value: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(value).ok().filter(|digits| digits.len() == DIGITS)?;
    let is_ours = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    digits.bytes().all(is_ours).then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::{SplitCookie, read};
    use subak_message::{Fields, Known};

    #[test]
    fn what_was_set_is_read_again_and_nothing_else() {
        for key in [0, 1, 0xab, u64::MAX] {
            let mut fields = Fields::new();
            SplitCookie { name: b"S", attributes: "; Path=/", key }.set(&mut fields);
            let set = fields.get(Known::SetCookie).unwrap();
            let value = set.strip_prefix(b"S=").and_then(|set| set.strip_suffix(b"; Path=/"));
            assert_eq!(value.and_then(read), Some(key));
        }
        for value in [
            "",
            "1",
            "00000000000000001",
            "+000000000000001",
            "000000000000000A",
            "ü00000000000000",
        ] {
            assert_eq!(read(value.as_bytes()), None, "{value}");
        }
    }
}
