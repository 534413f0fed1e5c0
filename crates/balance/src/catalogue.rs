//! Every algorithm there is, by name: configuration, help, conformance and benchmarks read this.

use std::error::Error;
use std::fmt;

pub use crate::rules::Algorithm;
use crate::rules::LISTINGS;

/// What a pool that names no algorithm uses.
pub const DEFAULT: &str = "least_connections";

/// One algorithm of the catalogue.
#[derive(Debug)]
pub struct Listing {
    /// The name.
    pub name: &'static str,
    /// Other names it goes by.
    pub aliases: &'static [&'static str],
    /// One line: what it does.
    pub summary: &'static str,
    /// What share of the picks each endpoint gets.
    pub share: Share,
    /// Whether it compiles to a [`Table`](crate::Table), and so can drive the packet plane.
    pub has_table: bool,
    /// The options it takes.
    pub options: &'static [OptionSpec],
    pub(crate) configure: Configure,
}

/// Makes an algorithm from options by name and value.
type Configure = fn(&[(&str, &str)]) -> Result<Algorithm, OptionError>;

impl Listing {
    /// The algorithm with all its options at their defaults.
    pub fn algorithm(&self) -> Algorithm {
        self.configure(&[]).expect("every option has a default")
    }

    /// The algorithm with these options (name, value); the last of several equal names counts.
    pub fn configure(&self, options: &[(&str, &str)]) -> Result<Algorithm, OptionError> {
        (self.configure)(options)
    }
}

/// The share of picks an algorithm promises to each endpoint, when nothing changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Share {
    /// Exactly by weight over every full cycle of Σw ÷ gcd picks, whatever the load.
    Exact,
    /// By weight over many clients: a client stays where its key puts it.
    ByKey,
    /// Exactly by weight over every full cycle while all are equally loaded; else by load ÷ weight.
    ByLoad,
}

/// An option of an algorithm.
#[derive(Debug)]
pub struct OptionSpec {
    /// The name.
    pub name: &'static str,
    /// One line: what it does.
    pub summary: &'static str,
    /// What it may be set to, the default first.
    pub values: &'static [&'static str],
}

/// An option that could not be set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OptionError {
    /// The algorithm has no option of this name.
    Unknown {
        /// The name given.
        name: String,
    },
    /// The option cannot have this value.
    Value {
        /// The option's name.
        name: &'static str,
        /// The value given.
        value: String,
        /// What it may be.
        allowed: &'static [&'static str],
    },
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionError::Unknown { name } => write!(f, "there is no option {name}"),
            OptionError::Value { name, value, allowed } => {
                write!(f, "{name} cannot be {value:?}; it is one of {}", allowed.join(", "))
            }
        }
    }
}

impl Error for OptionError {}

/// All algorithms, in the order the documentation has them.
pub fn all() -> &'static [Listing] {
    LISTINGS
}

/// The algorithm that goes by this name or alias.
pub fn find(name: &str) -> Option<&'static Listing> {
    LISTINGS.iter().find(|listing| listing.name == name || listing.aliases.contains(&name))
}

/// Every name and alias.
pub fn names() -> impl Iterator<Item = &'static str> {
    LISTINGS
        .iter()
        .flat_map(|listing| [listing.name].into_iter().chain(listing.aliases.iter().copied()))
}

/// A type an option's value is parsed into.
pub(crate) trait OptionValue: Sized + Default {
    const SUMMARY: &'static str;
    /// The default first.
    const VALUES: &'static [&'static str];

    fn parse(value: &str) -> Option<Self>;
}

#[cfg(test)]
mod tests {
    use super::{Algorithm, OptionError, all, find, names};
    use crate::Order;

    #[test]
    fn every_name_finds_its_own_algorithm_and_only_that() {
        let mut seen: Vec<_> = names().collect();
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count, "a name is listed twice");
        for listing in all() {
            for name in [listing.name].iter().chain(listing.aliases) {
                assert!(std::ptr::eq(find(name).unwrap(), listing), "{name}");
            }
            assert_eq!(listing.algorithm().listing().name, listing.name);
        }
        assert!(find("round-robin").is_none());
        assert!(find(super::DEFAULT).is_some());
    }

    #[test]
    fn options_are_parsed_or_refused_with_what_is_allowed() {
        let round_robin = find("wrr").unwrap();
        assert_eq!(round_robin.algorithm(), Algorithm::RoundRobin { order: Order::Smooth });
        assert_eq!(
            round_robin.configure(&[("order", "burst")]),
            Ok(Algorithm::RoundRobin { order: Order::Burst })
        );
        assert_eq!(
            round_robin.configure(&[("order", "bursty")]).unwrap_err().to_string(),
            "order cannot be \"bursty\"; it is one of smooth, burst"
        );
        assert_eq!(
            find("ip_hash").unwrap().configure(&[("order", "burst")]),
            Err(OptionError::Unknown { name: "order".into() })
        );
        for listing in all() {
            for option in listing.options {
                assert_eq!(
                    listing.configure(&[(option.name, option.values[0])]),
                    Ok(listing.algorithm()),
                    "the first value of {} is its default",
                    option.name
                );
            }
        }
    }
}
