//! The catalogue's entries: one file each, and one entry each in [`catalogue!`] below.
//!
//! A rule is a compiled algorithm. What all of them share is kept by the [`Balancer`]: the weights
//! and the round-robin [`Rotation`] that breaks full ties and serves requests without a key.
//!
//! [`Balancer`]: crate::Balancer

mod first;
mod hash;
mod ip_hash;
mod least_bandwidth;
mod least_connections;
mod least_packets;
mod least_response_time;
mod maglev;
mod new_hash;
mod peak_ewma;
mod power_of_two;
mod random;
mod round_robin;

use std::fmt::Debug;
use std::time::Duration;

use subak_base::{BitSet, Tick, Weight};

use crate::balancer::{Completion, Recipe};
use crate::catalogue::{Listing, Share, Traits, Unfit};
use crate::consistent::BalanceFactor;
use crate::endpoints::Endpoints;
use crate::key::KeySource;
use crate::options::{self, OptionError, OptionSpec, OptionValue, Setting};
use crate::request::{LoadView, PickRequest};
use crate::rotation::{self, Order, Rotation};
use crate::score::Score;
use crate::table::Table;

pub use hash::Method;
pub use least_response_time::Measure;
pub use new_hash::Octets;
pub use power_of_two::Choices;

/// One compiled algorithm.
pub(crate) trait Rule: Debug + Send + Sync + Sized {
    const NAME: &'static str;
    const ALIASES: &'static [&'static str] = &[];
    /// Options that go with an alias: the alias, the option, its value.
    const PRESETS: &'static [(&'static str, &'static str, OptionValue<'static>)] = &[];
    const SUMMARY: &'static str;
    /// When to choose it: ends the sentence "Choose it when …".
    const WHEN: &'static str;
    /// What decides between candidates of equal score.
    const TIES: &'static str = "no two are equal";

    /// What it is like, with these options.
    fn traits(algorithm: &Algorithm) -> Traits;

    /// The order of the rotation this rule falls back to.
    fn order(_algorithm: &Algorithm) -> Order {
        Order::Smooth
    }

    /// Where its key comes from, for one that has a key.
    fn key(_algorithm: &Algorithm) -> Option<&KeySource> {
        None
    }

    /// Whether the options go together.
    fn check_options(_algorithm: &Algorithm) -> Result<(), OptionError> {
        Ok(())
    }

    /// Whether it can work on these endpoints.
    fn check(_algorithm: &Algorithm, _endpoints: &Endpoints) -> Result<(), Unfit> {
        Ok(())
    }

    /// How many equal places each weight has in what is compiled; none where picks go by the weights as
    /// they are.
    fn places(algorithm: &Algorithm, weights: &[u64]) -> Option<Vec<u64>> {
        let goes_by_cycle = matches!(Self::traits(algorithm).share, Share::Exact | Share::ByLoad);
        goes_by_cycle.then(|| rotation::places(weights, Self::order(algorithm)))
    }

    /// Off the hot path; may allocate.
    fn build(recipe: &Recipe<'_>) -> Self;

    /// The endpoint for this request, or none exactly when no candidate is left. Must not allocate.
    fn pick<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>) -> Option<usize>;

    /// What the pick compares of an endpoint that is a candidate. Off the hot path.
    fn score<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>, index: usize) -> Option<Score>;

    /// An endpoint's new cell when a request is dispatched to it.
    fn on_dispatch(&self, cell: u64, _now: Tick) -> u64 {
        cell
    }

    /// An endpoint's new cell when a request it had is settled.
    fn on_complete<L: LoadView + ?Sized>(
        &self,
        cell: u64,
        _index: usize,
        _completion: &Completion,
        _load: &L,
    ) -> u64 {
        cell
    }

    /// What the pool keeps beside the cells, over these endpoints.
    fn summarise<L: LoadView + ?Sized>(
        &self,
        _members: impl Iterator<Item = usize>,
        _load: &L,
        _now: Tick,
    ) -> u64 {
        0
    }

    /// The latency that a cell holds.
    fn latency(&self, _cell: u64, _now: Tick, _summary: u64) -> Option<Duration> {
        None
    }

    /// The flat form, exactly when the traits say so.
    fn table<'a>(&'a self, _rotation: &'a Rotation) -> Option<Table<'a>> {
        None
    }
}

/// One pick on its way: what was compiled, what is asked, and what the load is.
pub(crate) struct Pick<'a, L: ?Sized> {
    pub(crate) rotation: &'a Rotation,
    pub(crate) weights: &'a [Weight],
    pub(crate) load: &'a L,
    pub(crate) request: &'a PickRequest<'a>,
}

impl<L: LoadView + ?Sized> Pick<'_, L> {
    /// All endpoints that may be picked, in configured order.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = usize> {
        candidates(self.weights, self.request)
    }

    /// Whether this endpoint may be picked.
    pub(crate) fn is_candidate(&self, index: usize) -> bool {
        let PickRequest { eligible, tried, .. } = self.request;
        eligible.contains(index) && !tried.contains(index) && self.weight(index) > 0
    }

    /// The weight of an endpoint; 0 beyond the list.
    pub(crate) fn weight(&self, index: usize) -> u64 {
        self.weights.get(index).map_or(0, |weight| weight.get())
    }

    /// The next endpoint in round robin. Draws a ticket.
    pub(crate) fn next_in_rotation(&self) -> Option<usize> {
        self.rotation.next(self.weights, self.request)
    }

    /// How soon it is this endpoint's turn in round robin. Draws a ticket.
    pub(crate) fn turn(&self, index: usize) -> Option<Score> {
        let distance = self.rotation.distance(self.request.tickets.draw(), index)?;
        Some(Score::whole(distance, "picks until its turn, fewest first"))
    }
}

/// All endpoints that may be picked, in configured order.
pub(crate) fn candidates(
    weights: &[Weight],
    request: &PickRequest<'_>,
) -> impl Iterator<Item = usize> {
    let open: (&BitSet, &BitSet) = (request.eligible, request.tried);
    open.0.without(open.1).filter(|index| weights.get(*index).is_some_and(|w| *w > Weight::ZERO))
}

/// Makes, out of one entry per algorithm, the [`Algorithm`] with its options, the [`Listing`]s, and
/// the compiled form that dispatches to the algorithm's file.
macro_rules! catalogue {
    ($(
        $(#[$doc:meta])+
        $file:ident::$rule:ident
        $({ $($(#[$option_doc:meta])+ $option:ident: $value:ty),+ $(,)? })?;
    )+) => {
        /// An algorithm and its options, as configured.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Algorithm {
            $($(#[$doc])+ $rule $({ $($(#[$option_doc])+ $option: $value),+ })?,)+
        }

        impl Algorithm {
            /// The algorithm's place in the catalogue.
            pub fn listing(&self) -> &'static Listing {
                let name = match self {
                    $(Algorithm::$rule { .. } => $file::$rule::NAME,)+
                };
                crate::catalogue::find(name).expect("both are made from the same entry")
            }

            /// What the algorithm is like.
            pub fn traits(&self) -> Traits {
                match self {
                    $(Algorithm::$rule { .. } => $file::$rule::traits(self),)+
                }
            }

            /// Where the key comes from that it hashes; none for one that hashes nothing.
            pub fn key(&self) -> Option<&KeySource> {
                match self {
                    $(Algorithm::$rule { .. } => $file::$rule::key(self),)+
                }
            }

            /// Whether it can work on these endpoints.
            pub fn check(&self, endpoints: &Endpoints) -> Result<(), Unfit> {
                match self {
                    $(Algorithm::$rule { .. } => $file::$rule::check(self, endpoints),)+
                }
            }

            /// How many equal places each weight has in what is compiled from it, if there are any.
            pub(crate) fn places(&self, weights: &[u64]) -> Option<Vec<u64>> {
                match self {
                    $(Algorithm::$rule { .. } => $file::$rule::places(self, weights),)+
                }
            }

            /// The order of the rotation that belongs to it.
            pub(crate) fn order(&self) -> Order {
                match self {
                    $(Algorithm::$rule { .. } => $file::$rule::order(self),)+
                }
            }
        }

        pub(crate) const LISTINGS: &[Listing] = &[$(Listing {
            name: $file::$rule::NAME,
            aliases: $file::$rule::ALIASES,
            presets: $file::$rule::PRESETS,
            summary: $file::$rule::SUMMARY,
            when: $file::$rule::WHEN,
            ties: $file::$rule::TIES,
            options: &[$($(OptionSpec {
                name: stringify!($option),
                summary: <$value as Setting>::SUMMARY,
                kind: <$value as Setting>::KIND,
                default: <$value as Setting>::DEFAULT,
            }),+)?],
            configure: |given| {
                $($(let mut $option = <$value>::default();)+)?
                given.iter().try_for_each(|(name, _value)| match *name {
                    $($(stringify!($option) => {
                        $option = options::read(stringify!($option), *_value)?;
                        Ok(())
                    })+)?
                    _ => Err(OptionError::Unknown { name: (*name).to_owned() }),
                })?;
                let algorithm = Algorithm::$rule $({ $($option),+ })?;
                $file::$rule::check_options(&algorithm)?;
                Ok(algorithm)
            },
        },)+];

        #[derive(Debug)]
        pub(crate) enum Compiled {
            $($rule($file::$rule),)+
        }

        impl Compiled {
            pub(crate) fn build(recipe: &Recipe<'_>) -> Compiled {
                match recipe.algorithm {
                    $(Algorithm::$rule { .. } => Compiled::$rule(Rule::build(recipe)),)+
                }
            }

            #[inline]
            pub(crate) fn pick<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>) -> Option<usize> {
                match self {
                    $(Compiled::$rule(rule) => rule.pick(pick),)+
                }
            }

            pub(crate) fn score<L: LoadView + ?Sized>(
                &self,
                pick: &Pick<'_, L>,
                index: usize,
            ) -> Option<Score> {
                match self {
                    $(Compiled::$rule(rule) => rule.score(pick, index),)+
                }
            }

            #[inline]
            pub(crate) fn on_dispatch(&self, cell: u64, now: Tick) -> u64 {
                match self {
                    $(Compiled::$rule(rule) => rule.on_dispatch(cell, now),)+
                }
            }

            #[inline]
            pub(crate) fn on_complete<L: LoadView + ?Sized>(
                &self,
                cell: u64,
                index: usize,
                completion: &Completion,
                load: &L,
            ) -> u64 {
                match self {
                    $(Compiled::$rule(rule) => rule.on_complete(cell, index, completion, load),)+
                }
            }

            pub(crate) fn summarise<L: LoadView + ?Sized>(
                &self,
                members: impl Iterator<Item = usize>,
                load: &L,
                now: Tick,
            ) -> u64 {
                match self {
                    $(Compiled::$rule(rule) => rule.summarise(members, load, now),)+
                }
            }

            pub(crate) fn latency(&self, cell: u64, now: Tick, summary: u64) -> Option<Duration> {
                match self {
                    $(Compiled::$rule(rule) => rule.latency(cell, now, summary),)+
                }
            }

            pub(crate) fn table<'a>(&'a self, rotation: &'a Rotation) -> Option<Table<'a>> {
                match self {
                    $(Compiled::$rule(rule) => rule.table(rotation),)+
                }
            }
        }
    };
}

catalogue! {
    /// In turn, by weight.
    round_robin::RoundRobin {
        /// How an endpoint's picks lie in the cycle.
        order: Order,
    };
    /// By the client's address, where nginx would send it.
    ip_hash::IpHash;
    /// By the client's address, with the hash of Ma & Chi.
    new_hash::NewHash {
        /// How many octets of an IPv4 address are hashed.
        octets: Octets,
    };
    /// To the endpoint with the fewest requests in flight for its weight.
    least_connections::LeastConnections;
    /// To the endpoint with the smallest response time × (in flight + 1) for its weight.
    least_response_time::LeastResponseTime {
        /// To which byte of an answer its time is taken.
        measure: Measure,
    };
    /// To the endpoint with the fewest packets of late for its weight.
    least_packets::LeastPackets;
    /// To the endpoint with the fewest bytes of late for its weight.
    least_bandwidth::LeastBandwidth;
    /// By chance, in proportion to weight.
    random::Random;
    /// To the less loaded of two drawn by weight.
    power_of_two::PowerOfTwo {
        /// How many are drawn.
        choices: Choices,
    };
    /// Of two drawn by weight, to that with the smaller peak response time × (in flight + 1).
    peak_ewma::PeakEwma;
    /// By a key, with a choice of methods.
    hash::Hash {
        /// What a client is recognised by.
        key: KeySource,
        /// How a key becomes an endpoint.
        method: Method,
        /// How much more than its share an endpoint may have in flight.
        balance_factor: BalanceFactor,
    };
    /// By a key, over a Maglev table.
    maglev::Maglev {
        /// What a client is recognised by.
        key: KeySource,
        /// How much more than its share an endpoint may have in flight.
        balance_factor: BalanceFactor,
    };
    /// To the first in the list that is below its cap.
    first::First;
}
