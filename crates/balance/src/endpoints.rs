//! The endpoints of one pool, as a dense list.
//!
//! An index is good for one list only. What survives a change of the list is the identity.

use std::error::Error;
use std::fmt;

use subak_base::Weight;

/// One endpoint, as an algorithm sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Protocol and resolved address. Never the weight: an endpoint stays itself when that changes.
    pub identity: String,
    /// The name as written in the configuration.
    pub name: String,
    /// Relative share of new work; 0 takes no picks.
    pub weight: Weight,
}

impl Entry {
    /// An entry from its three parts.
    pub fn new(identity: impl Into<String>, name: impl Into<String>, weight: Weight) -> Entry {
        Entry { identity: identity.into(), name: name.into(), weight }
    }
}

/// The endpoints of a pool in configured order; the index into this list is what a pick returns.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Endpoints {
    entries: Box<[Entry]>,
    canonical: Box<[u32]>,
}

impl Endpoints {
    /// The list in configured order. Errors when two entries have one identity.
    pub fn new(entries: Vec<Entry>) -> Result<Endpoints, DuplicateIdentity> {
        let mut canonical: Box<[u32]> = (0..entries.len() as u32).collect();
        let identity = |index: u32| entries[index as usize].identity.as_str();
        canonical.sort_by_key(|index| (identity(*index), *index));
        let twins = canonical.windows(2).find(|pair| identity(pair[0]) == identity(pair[1]));
        if let Some(pair) = twins {
            return Err(DuplicateIdentity {
                identity: identity(pair[0]).to_owned(),
                first: pair[0] as usize,
                second: pair[1] as usize,
            });
        }
        Ok(Endpoints { entries: entries.into(), canonical })
    }

    /// How many endpoints the list has, eligible or not.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The endpoint at `index`. Panics when the list has no such index.
    pub fn entry(&self, index: usize) -> &Entry {
        &self.entries[index]
    }

    /// All endpoints in configured order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The indices sorted by identity: the same sequence of endpoints however the list is written.
    pub fn canonical(&self) -> &[u32] {
        &self.canonical
    }

    /// The index of the endpoint with this identity; O(log n).
    pub fn position_of(&self, identity: &str) -> Option<usize> {
        let found = self
            .canonical
            .binary_search_by_key(&identity, |index| &self.entry(*index as usize).identity);
        found.ok().map(|place| self.canonical[place] as usize)
    }
}

/// Two entries of one list are the same endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DuplicateIdentity {
    /// The identity both have.
    pub identity: String,
    /// Index of the entry written first.
    pub first: usize,
    /// Index of the other.
    pub second: usize,
}

impl fmt::Display for DuplicateIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DuplicateIdentity { identity, first, second } = self;
        write!(f, "endpoint {identity} is listed twice, as number {} and {}", first + 1, second + 1)
    }
}

impl Error for DuplicateIdentity {}

#[cfg(test)]
mod tests {
    use super::{Endpoints, Entry};
    use subak_base::Weight;

    fn list(identities: &[&str]) -> Vec<Entry> {
        identities.iter().map(|identity| Entry::new(*identity, "", Weight::ONE)).collect()
    }

    #[test]
    fn canonical_order_does_not_depend_on_the_order_written() {
        let one = Endpoints::new(list(&["b", "c", "a"])).unwrap();
        let other = Endpoints::new(list(&["c", "a", "b"])).unwrap();
        assert_eq!(one.canonical(), [2, 0, 1]);
        assert_eq!(other.canonical(), [1, 2, 0]);
        assert_eq!(one.position_of("c"), Some(1));
        assert_eq!(one.position_of("d"), None);
    }

    #[test]
    fn a_duplicate_names_both_places() {
        let twice = Endpoints::new(list(&["x", "a", "b", "a"])).unwrap_err();
        assert_eq!((twice.identity.as_str(), twice.first, twice.second), ("a", 1, 3));
        assert_eq!(twice.to_string(), "endpoint a is listed twice, as number 2 and 4");
    }
}
