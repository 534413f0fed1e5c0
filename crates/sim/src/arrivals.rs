//! When do requests come?
//!
//! An open loop sends them whatever becomes of those before: [`Rate`] says how many a second, [`Pace`]
//! how regularly. A closed loop has users, each of whom waits for the answer, thinks, and asks again.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::scenario::Service;

/// When requests come.
#[derive(Clone, PartialEq, Debug)]
pub enum Arrivals {
    /// Whatever becomes of those before.
    Open {
        /// How regularly.
        pace: Pace,
        /// How many.
        rate: Rate,
    },
    /// At the moments of a trace, with its clients and its objects. Ends with it.
    Trace(Arc<Trace>),
    /// Users who wait for each answer.
    Users {
        /// How many, over time; after the last stage they all leave.
        stages: Vec<Stage>,
        /// From an answer to the next request.
        think: Service,
    },
}

impl Arrivals {
    /// Poisson arrivals, so many a second.
    pub fn poisson(per_second: f64) -> Arrivals {
        Arrivals::Open { pace: Pace::Poisson, rate: Rate::Steady(per_second) }
    }
}

/// How regularly requests come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// One has nothing to do with the other.
    Poisson,
    /// At even distances.
    Even,
    /// Poisson at a rate that changes by chance between two: calm and bursts, each exponentially long
    /// (a Markov-modulated Poisson process).
    Bursty {
        /// The rate while it is calm, in thousandths of the nominal.
        calm_per_mille: u32,
        /// The rate in a burst, in thousandths of the nominal.
        burst_per_mille: u32,
        /// Mean time of calm.
        calm: Duration,
        /// Mean time of a burst.
        burst: Duration,
    },
}

/// How many requests come a second.
#[derive(Clone, PartialEq, Debug)]
pub enum Rate {
    /// Always so many.
    Steady(f64),
    /// In stages, each on a straight line from where the one before ended; the first begins at 0.
    /// Nobody comes after the last.
    Stages(Vec<Stage>),
    /// As days have it: a sine around the mean, which it begins at and rises from.
    Diurnal {
        /// A second.
        mean: f64,
        /// The highest above the mean, in thousandths of it; at most 1,000.
        swing_per_mille: u32,
        /// From one highest to the next.
        period: Duration,
    },
}

/// A stretch of time on which something goes on a straight line to a value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stage {
    /// How long.
    pub lasts: Duration,
    /// The value at its end: requests a second, or users.
    pub to: f64,
}

/// More requests at one moment than the arrivals have: a cache has run out, a link was published.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Herd {
    /// When it begins.
    pub at: Duration,
    /// How many.
    pub requests: u32,
    /// Spread evenly over so long.
    pub within: Duration,
}

/// What has been recorded of requests.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trace {
    /// In the order of their arrival.
    pub requests: Vec<TracedRequest>,
    /// The addresses of the clients.
    pub clients: Vec<IpAddr>,
    /// What was asked for, as algorithms see it.
    pub objects: Vec<Box<[u8]>>,
}

/// One request of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TracedRequest {
    /// Since the trace's beginning.
    pub at_ns: u64,
    /// How long an endpoint works on it, for [`Service::AsTraced`].
    pub service_ns: u64,
    /// Among the trace's clients.
    pub client: u32,
    /// Among the trace's objects.
    pub object: u32,
    /// Both ways.
    pub bytes: u32,
}
