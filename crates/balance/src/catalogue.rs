//! Every algorithm there is, by name: configuration, help, conformance and benchmarks read this.

use std::error::Error;
use std::fmt;

pub use crate::options::{OptionError, OptionKind, OptionSpec, OptionValue, TextProblem};
pub use crate::rules::Algorithm;
use crate::rules::LISTINGS;

/// Endpoints above which an algorithm that looks at all of them for every request is advised
/// against.
const LINEAR_MAX: usize = 1000;

/// What a pool that names no algorithm uses.
pub const DEFAULT: &str = "least_connections";

/// One algorithm of the catalogue.
#[derive(Debug)]
pub struct Listing {
    /// The name.
    pub name: &'static str,
    /// Other names it goes by.
    pub aliases: &'static [&'static str],
    /// Options that go with an alias: the alias, the option, its value.
    pub presets: &'static [(&'static str, &'static str, OptionValue<'static>)],
    /// One line: what it does.
    pub summary: &'static str,
    /// When to choose it.
    pub when: &'static str,
    /// What decides between candidates of equal score, for whoever explains a pick.
    pub ties: &'static str,
    /// The options it takes.
    pub options: &'static [OptionSpec],
    pub(crate) configure: Configure,
}

/// Makes an algorithm from options by name and value.
type Configure = fn(&[(&str, OptionValue<'_>)]) -> Result<Algorithm, OptionError>;

impl Listing {
    /// The algorithm with all its options at their defaults.
    pub fn algorithm(&self) -> Algorithm {
        self.configure(self.name, &[]).expect("every option has a default")
    }

    /// The algorithm that goes by `name`, which is the listing's own or one of its aliases, with
    /// these options (name, value); the last of several equal names counts.
    pub fn configure(
        &self,
        name: &str,
        options: &[(&str, OptionValue<'_>)],
    ) -> Result<Algorithm, OptionError> {
        let presets = self.presets.iter().filter(|(alias, ..)| *alias == name);
        let presets = presets.map(|(_, option, value)| (*option, *value));
        let all: Vec<_> = presets.chain(options.iter().copied()).collect();
        (self.configure)(&all)
    }
}

/// What an algorithm is like, options included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traits {
    /// What share of the picks each endpoint gets.
    pub share: Share,
    /// How the cost of a pick grows with the pool.
    pub cost: Cost,
    /// Whether it compiles to a [`Table`](crate::Table), and so can drive the packet plane.
    pub has_table: bool,
    /// Whether weights may change all the time, as slow start and weighers make them. Not where a
    /// small change moves most clients.
    pub takes_changing_weights: bool,
    /// Whether an endpoint in slow start is sent only some of its keys, by
    /// [`LoadView::ramp`](crate::LoadView::ramp), and keeps its weight.
    pub thins_keys: bool,
    /// Whether the order of the list is of no importance.
    pub ignores_order: bool,
    /// Whether over changes of weights, and of who is eligible, nobody is ever more than 2 picks from
    /// its running share, with nothing in flight and no key.
    pub keeps_pace: bool,
    /// What a pick looks at besides requests in flight.
    pub wants: Wants,
}

impl Traits {
    /// The simplest: by nothing but requests in flight, at any weights.
    pub(crate) const fn of(share: Share, cost: Cost) -> Traits {
        Traits {
            share,
            cost,
            has_table: false,
            takes_changing_weights: true,
            thins_keys: false,
            ignores_order: false,
            keeps_pace: false,
            wants: Wants::NOTHING,
        }
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
    /// By weight over many picks, whatever the load.
    ByChance,
    /// By weight over many picks while nothing is in flight; else by load ÷ weight of those drawn.
    ByDraw,
    /// As far as all answer equally fast, what is in flight is as the weights are.
    ByLatency,
    /// All to the first in the list.
    First,
}

/// How the cost of a pick grows with the number of endpoints n.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cost {
    /// Not at all.
    Constant,
    /// With log n.
    Logarithmic,
    /// With n: all endpoints are looked at.
    Linear,
}

/// What an algorithm looks at besides requests in flight. A pool need not keep anything else.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Wants {
    /// [`LoadView::cell`](crate::LoadView::cell), kept by `on_dispatch` and `on_complete`.
    pub cells: bool,
    /// [`LoadView::summary`](crate::LoadView::summary), made by `summarise`.
    pub summary: bool,
    /// [`LoadView::packets`](crate::LoadView::packets).
    pub packets: bool,
    /// [`LoadView::bytes`](crate::LoadView::bytes).
    pub bytes: bool,
    /// The request's key, from the algorithm's [`KeySource`](crate::KeySource).
    pub key: bool,
}

impl Wants {
    /// Nothing.
    pub const NOTHING: Wants =
        Wants { cells: false, summary: false, packets: false, bytes: false, key: false };
}

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

impl Algorithm {
    /// Whether weights may change all the time, as slow start and weighers make them.
    pub fn takes_changing_weights(&self) -> bool {
        self.traits().takes_changing_weights
    }

    /// What is better avoided on a list of so many endpoints, and how.
    pub fn advice(&self, endpoints: usize) -> Option<String> {
        let traits = self.traits();
        let instead = if traits.wants.key { "maglev without a bound" } else { "power_of_two" };
        let is_dear = traits.cost == Cost::Linear && endpoints > LINEAR_MAX;
        is_dear.then(|| {
            let name = self.listing().name;
            format!("{name} looks at all {endpoints} endpoints for every request: use {instead}")
        })
    }

    /// An error for an algorithm that does not take changing weights.
    pub fn require_changing_weights(&self) -> Result<(), FixedWeights> {
        match self.takes_changing_weights() {
            true => Ok(()),
            false => Err(FixedWeights { name: self.listing().name }),
        }
    }
}

/// Why an algorithm cannot work on a list of endpoints: an error of the configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// The ring of `method = "ring"` would have more than 2²⁰ points.
    RingTooLong {
        /// How many it would have.
        points: u64,
    },
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unfit::RingTooLong { points } = self;
        write!(
            f,
            "a ring has 160 points for each unit of weight and 1048576 at most; these weights need \
             {points}: use smaller weights or method = \"maglev\""
        )
    }
}

impl Error for Unfit {}

/// Slow start or a weigher was asked for where a client's place follows from the sum of all weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FixedWeights {
    /// The algorithm.
    pub name: &'static str,
}

impl fmt::Display for FixedWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name;
        write!(
            f,
            "slow start and weighers change weights all the time, and with {name} one weight \
             edited from 10 to 9 moves two thirds of the clients"
        )
    }
}

impl Error for FixedWeights {}

#[cfg(test)]
mod tests {
    use super::{Algorithm, OptionError, OptionKind, OptionValue, all, find, names};
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
                let configured = listing.configure(name, &[]).unwrap();
                assert_eq!(configured.listing().name, listing.name);
            }
            for (alias, option, _) in listing.presets {
                assert!(listing.aliases.contains(alias), "{alias}");
                assert!(listing.options.iter().any(|spec| spec.name == *option), "{option}");
            }
        }
        assert!(find("round-robin").is_none());
        assert!(find(super::DEFAULT).is_some());
    }

    #[test]
    fn options_are_parsed_or_refused_with_what_is_allowed() {
        let round_robin = find("wrr").unwrap();
        assert_eq!(round_robin.algorithm(), Algorithm::RoundRobin { order: Order::Smooth });
        let burst = [("order", "burst".into())];
        assert_eq!(
            round_robin.configure("wrr", &burst),
            Ok(Algorithm::RoundRobin { order: Order::Burst })
        );
        let refused = |value| round_robin.configure("wrr", &[("order", value)]).unwrap_err();
        assert_eq!(
            refused("bursty".into()).to_string(),
            "order cannot be \"bursty\"; it is \"smooth\" or \"burst\""
        );
        assert_eq!(
            refused(OptionValue::Integer(1)).to_string(),
            "order cannot be 1; it is \"smooth\" or \"burst\""
        );
        assert_eq!(
            find("ip_hash").unwrap().configure("ip_hash", &burst),
            Err(OptionError::Unknown { name: "order".into() })
        );
    }

    #[test]
    fn what_is_said_to_be_the_default_is() {
        for listing in all() {
            for option in listing.options {
                let Some(default) = option.default else { continue };
                let said = listing.configure(listing.name, &[(option.name, default)]);
                assert_eq!(said, Ok(listing.algorithm()), "{} of {}", option.name, listing.name);
                if let OptionKind::Words(words) = option.kind {
                    assert_eq!(default, OptionValue::Text(words[0]), "the default comes first");
                }
            }
        }
    }

    #[test]
    fn an_algorithm_that_cannot_follow_changing_weights_says_why() {
        let ip_hash = find("ip_hash").unwrap().algorithm();
        let error = ip_hash.require_changing_weights().unwrap_err().to_string();
        assert!(error.contains("with ip_hash one weight edited from 10 to 9"), "{error}");
        assert_eq!(find("wrr").unwrap().algorithm().require_changing_weights(), Ok(()));
    }
}
