//! To the endpoint with the smallest in flight ÷ weight.
//!
//! Two endpoints are compared by cross multiplication, a₁·w₂ against a₂·w₁, so nothing is rounded.
//! Candidates that are all equal take turns in the compiled [rotation], so an idle or sequential
//! load gets exactly round robin. When only some are equal, the request's random word chooses one
//! of those in proportion to their weights: the next in the rotation would favour whoever follows
//! a busy endpoint in it (50/25/25 among three idle ones of four).
//!
//! Weights: divide the load. Cost: O(n), twice when some are equal.
//! Source: Ma & Chi 2022, algorithm 3; Ramadhan & Wardhana.
//!
//! [rotation]: crate::rotation::Rotation

use std::cmp::Ordering;

use crate::balancer::Recipe;
use crate::catalogue::{Cost, Share, Traits};
use crate::request::LoadView;
use crate::rules::{Algorithm, Pick, Rule};
use crate::score::Score;

#[derive(Debug)]
pub(crate) struct LeastConnections;

impl Rule for LeastConnections {
    const NAME: &'static str = "least_connections";
    const ALIASES: &'static [&'static str] = &["least_conn", "leastconn"];
    const SUMMARY: &'static str =
        "to the endpoint with the fewest requests in flight for its weight";

    fn traits(_: &Algorithm) -> Traits {
        Traits::of(Share::ByLoad, Cost::Linear)
    }

    fn build(_: &Recipe<'_>) -> LeastConnections {
        LeastConnections
    }

    fn pick<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>) -> Option<usize> {
        let load =
            |index| Load { in_flight: pick.load.in_flight(index), weight: pick.weight(index) };
        let mut candidates = pick.candidates();
        let first = candidates.next()?;
        let mut least =
            Found { index: first, load: load(first), equals: 1, weight: pick.weight(first) };
        let mut all = 1;
        // Not a `for`: walking the set from inside is twice as fast.
        candidates.for_each(|index| {
            all += 1;
            let this = load(index);
            match this.compare(least.load) {
                Ordering::Less => {
                    least = Found { index, load: this, equals: 1, weight: this.weight };
                }
                Ordering::Equal => {
                    least.equals += 1;
                    least.weight += this.weight;
                }
                Ordering::Greater => {}
            }
        });
        match least.equals {
            1 => Some(least.index),
            equals if equals == all => pick.next_in_rotation(),
            _ => {
                // Laid end to end in configured order, a weight long each; `point` lies in one.
                let mut point = scale(pick.request.random, least.weight);
                let mut chosen = least.index;
                // Live loads may have changed since the first look: then the last one that is still
                // as little loaded takes the request, at worst the one found first.
                for index in pick.candidates() {
                    let this = load(index);
                    if this.compare(least.load) != Ordering::Greater {
                        chosen = index;
                        if point < this.weight {
                            break;
                        }
                        point -= this.weight;
                    }
                }
                Some(chosen)
            }
        }
    }

    fn score<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>, index: usize) -> Option<Score> {
        Some(Score {
            amount: u128::from(pick.load.in_flight(index)),
            per: u128::from(pick.weight(index)),
            unit: "in flight by weight, fewest first",
        })
    }
}

/// The least loaded endpoint so far and how many, of which weight together, are like it.
struct Found {
    index: usize,
    load: Load,
    equals: usize,
    weight: u64,
}

#[derive(Clone, Copy)]
struct Load {
    in_flight: u32,
    weight: u64,
}

impl Load {
    /// Which has less in flight for its weight. 32 and 16 bits: the products do not overflow.
    fn compare(self, other: Load) -> Ordering {
        (u64::from(self.in_flight) * other.weight).cmp(&(u64::from(other.in_flight) * self.weight))
    }
}

/// A random word as a number below `bound`.
fn scale(random: u64, bound: u64) -> u64 {
    ((u128::from(random) * u128::from(bound)) >> 64) as u64
}
