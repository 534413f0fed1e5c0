//! Traffic that is shared between pools by weight.

use std::fmt;

use subak_balance::KeySource;

use super::Name;

/// Pools that share the requests of a route, or of a listener.
#[derive(Clone, PartialEq, Debug)]
pub struct Split {
    /// At least one with a weight above 0; pools are unique.
    pub sides: Vec<Side>,
    /// What decides which pool takes a request.
    pub by: SplitBy,
    /// Whether the others take the requests of a pool that has no endpoint for them.
    pub fallback: bool,
}

/// Who shares, in which proportion.
impl fmt::Display for Split {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("split ")?;
        for (place, Side { pool, weight }) in self.sides.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(out, "{comma}{pool} {weight}")?;
        }
        Ok(())
    }
}

/// One pool of a split.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Side {
    /// The pool.
    pub pool: Name,
    /// Its share of the sum of all weights; 0: none.
    pub weight: u32,
}

/// What decides which pool takes a request.
#[derive(Clone, PartialEq, Debug)]
pub enum SplitBy {
    /// Chance, anew for each request.
    Chance,
    /// What the client is recognised by. Without it: chance.
    Key(KeySource),
    /// A cookie of this name, which answers set where there is none.
    Cookie(Box<str>),
}
