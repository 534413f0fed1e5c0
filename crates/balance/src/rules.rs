//! The catalogue's entries: one file each, and one entry each in [`catalogue!`] below.
//!
//! A rule is a compiled algorithm. What all of them share is kept by the [`Balancer`]: the weights
//! and the round-robin [`Rotation`] that breaks full ties and serves requests without a key.
//!
//! [`Balancer`]: crate::Balancer

mod ip_hash;
mod least_connections;
mod round_robin;

use std::fmt::Debug;

use subak_base::{BitSet, Tick, Weight};

use crate::balancer::{Completion, Recipe};
use crate::catalogue::{Listing, OptionError, OptionSpec, OptionValue, Share};
use crate::request::{LoadView, PickRequest};
use crate::rotation::{Order, Rotation};
use crate::table::Table;

/// One compiled algorithm.
pub(crate) trait Rule: Debug + Send + Sync + Sized {
    const NAME: &'static str;
    const ALIASES: &'static [&'static str];
    const SUMMARY: &'static str;
    const SHARE: Share;
    const HAS_TABLE: bool = false;
    /// Whether `on_dispatch` and `on_complete` do anything; if not, nobody need call them.
    const KEEPS_CELLS: bool = false;

    /// The order of the rotation this rule falls back to.
    fn order(_algorithm: &Algorithm) -> Order {
        Order::Smooth
    }

    /// Off the hot path; may allocate.
    fn build(recipe: &Recipe<'_>) -> Self;

    /// The endpoint for this request, or none exactly when no candidate is left. Must not allocate.
    fn pick<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>) -> Option<usize>;

    /// An endpoint's new cell when a request is dispatched to it.
    fn on_dispatch(&self, cell: u64, _now: Tick) -> u64 {
        cell
    }

    /// An endpoint's new cell when a request it had is settled.
    fn on_complete(&self, cell: u64, _completion: &Completion) -> u64 {
        cell
    }

    /// The flat form, exactly when `HAS_TABLE`.
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

    /// The weight of an endpoint; 0 beyond the list.
    pub(crate) fn weight(&self, index: usize) -> u64 {
        self.weights.get(index).map_or(0, |weight| weight.get())
    }

    /// The next endpoint in round robin. Draws a ticket.
    pub(crate) fn next_in_rotation(&self) -> Option<usize> {
        self.rotation.next(self.weights, self.request)
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
            summary: $file::$rule::SUMMARY,
            share: $file::$rule::SHARE,
            has_table: $file::$rule::HAS_TABLE,
            options: &[$($(OptionSpec {
                name: stringify!($option),
                summary: <$value as OptionValue>::SUMMARY,
                values: <$value as OptionValue>::VALUES,
            }),+)?],
            configure: |given| {
                $($(let mut $option = <$value>::default();)+)?
                given.iter().try_for_each(|(name, _value)| match *name {
                    $($(stringify!($option) => {
                        $option = parse(stringify!($option), _value)?;
                        Ok(())
                    })+)?
                    _ => Err(OptionError::Unknown { name: (*name).to_owned() }),
                })?;
                Ok(Algorithm::$rule $({ $($option),+ })?)
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

            pub(crate) fn keeps_cells(&self) -> bool {
                match self {
                    $(Compiled::$rule(_) => $file::$rule::KEEPS_CELLS,)+
                }
            }

            pub(crate) fn on_dispatch(&self, cell: u64, now: Tick) -> u64 {
                match self {
                    $(Compiled::$rule(rule) => rule.on_dispatch(cell, now),)+
                }
            }

            pub(crate) fn on_complete(&self, cell: u64, completion: &Completion) -> u64 {
                match self {
                    $(Compiled::$rule(rule) => rule.on_complete(cell, completion),)+
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
    /// To the endpoint with the fewest requests in flight for its weight.
    least_connections::LeastConnections;
}

fn parse<T: OptionValue>(name: &'static str, value: &str) -> Result<T, OptionError> {
    let refused = || OptionError::Value { name, value: value.to_owned(), allowed: T::VALUES };
    T::parse(value).ok_or_else(refused)
}
