//! The run: arrivals in order, completions in a heap, the clock at whichever comes first.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

use subak_balance::{Balancer, Completion, Key, LoadView, PickRequest, Recipe, Tickets};
use subak_base::{BitSet, Rng, Tick};

use crate::chance::{exponential, service};
use crate::scenario::{EndpointModel, Scenario};

/// From one summary of the pool to the next, for algorithms that want one.
const SUMMARY: Duration = Duration::from_millis(100);

/// One line of a run's log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// When it happened.
    pub at: Tick,
    /// The request's number, from 0.
    pub request: u64,
    /// What happened.
    pub step: Step,
}

/// What happened to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// It arrived and was sent to the endpoint at this index.
    Dispatched(usize),
    /// It arrived and no endpoint could take it.
    Refused,
    /// The endpoint at this index answered it.
    Completed(usize),
}

/// What a run came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Summary {
    /// Requests sent to each endpoint.
    pub hits: Vec<u64>,
    /// Requests that no endpoint could take.
    pub refused: u64,
    /// How many completed requests the times are about: those after the warm-up.
    pub measured: u64,
    /// Their times from arrival to completion, added up.
    pub total_time: Duration,
}

impl Summary {
    /// Mean time from arrival to completion; zero when nothing was measured.
    pub fn mean_time(&self) -> Duration {
        let nanos = self.total_time.as_nanos().checked_div(u128::from(self.measured));
        Duration::from_nanos(nanos.unwrap_or(0) as u64)
    }
}

/// Runs the scenario to the completion of its last request; every event goes to `log`, in order.
///
/// Panics when the scenario has not one model for each endpoint.
pub fn run(scenario: &Scenario, mut log: impl FnMut(Event)) -> Summary {
    assert_eq!(scenario.models.len(), scenario.endpoints.len(), "one model for each endpoint");
    let eligible = BitSet::full(scenario.endpoints.len());
    let balancer = Balancer::build(Recipe {
        algorithm: &scenario.algorithm,
        endpoints: &scenario.endpoints,
        eligible: &eligible,
        previous: None,
    });
    // One stream for each purpose, so that what one draws does not change the others.
    let mut seeds = Rng::new(scenario.seed);
    let [mut gaps, mut clients, mut picks, mut work] = [(); 4].map(|()| Rng::new(seeds.next_u64()));

    let tickets = Counter(Cell::new(0));
    let mut pool = Pool::new(&scenario.models);
    let mut summary = Summary {
        hits: vec![0; scenario.models.len()],
        refused: 0,
        measured: 0,
        total_time: Duration::ZERO,
    };
    let mut now = Tick(0);
    for number in 0..scenario.requests {
        now = now.after(Duration::from_nanos(exponential(scenario.gap, &mut gaps)));
        while let Some(done) = pool.complete_before(now, &balancer) {
            summary.settle(&done, scenario.warm_up, &mut log);
        }
        pool.summarise_until(now, &balancer);
        let client = Rng::new(clients.below(u64::from(scenario.clients))).next_u64() as u32;
        let request = PickRequest {
            tickets: &tickets,
            random: picks.next_u64(),
            now,
            key: Key::Address(Ipv4Addr::from(client).into()),
            eligible: &eligible,
            tried: &BitSet::EMPTY,
        };
        let mut work = Rng::new(work.next_u64());
        let step = match balancer.pick(&pool, &request) {
            Some(endpoint) => {
                let time = service(scenario.models[endpoint].service, &mut work);
                pool.dispatch(endpoint, Work { request: number, arrived: now, time }, &balancer);
                summary.hits[endpoint] += 1;
                Step::Dispatched(endpoint)
            }
            None => {
                summary.refused += 1;
                Step::Refused
            }
        };
        log(Event { at: now, request: number, step });
    }
    while let Some(done) = pool.complete_before(Tick(u64::MAX), &balancer) {
        summary.settle(&done, scenario.warm_up, &mut log);
    }
    summary
}

impl Summary {
    fn settle(&mut self, done: &Done, warm_up: u64, log: &mut impl FnMut(Event)) {
        log(Event { at: done.at, request: done.request, step: Step::Completed(done.endpoint) });
        if done.request >= warm_up {
            self.measured += 1;
            self.total_time += done.at.since(done.arrived);
        }
    }
}

struct Counter(Cell<u64>);

impl Tickets for Counter {
    fn draw(&self) -> u64 {
        self.0.replace(self.0.get() + 1)
    }
}

/// A request on its way through an endpoint.
#[derive(Clone, Copy)]
struct Work {
    request: u64,
    arrived: Tick,
    /// Nanoseconds of service.
    time: u64,
}

/// A request being served; the earliest to end first, of several the one that came first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Done {
    at: Tick,
    request: u64,
    arrived: Tick,
    endpoint: usize,
}

/// The endpoints at work.
struct Pool {
    endpoints: Vec<Endpoint>,
    serving: BinaryHeap<Reverse<Done>>,
    summary: u64,
    next_summary: Tick,
}

struct Endpoint {
    free: u32,
    in_flight: u32,
    cell: u64,
    waiting: VecDeque<Work>,
}

impl LoadView for Pool {
    fn in_flight(&self, index: usize) -> u32 {
        self.endpoints[index].in_flight
    }

    fn cell(&self, index: usize) -> u64 {
        self.endpoints[index].cell
    }

    fn summary(&self) -> u64 {
        self.summary
    }
}

impl Pool {
    fn new(models: &[EndpointModel]) -> Pool {
        let endpoint = |model: &EndpointModel| {
            let waiting = VecDeque::new();
            Endpoint { free: model.concurrency.max(1), in_flight: 0, cell: 0, waiting }
        };
        let (summary, next_summary) = (0, Tick(0));
        let endpoints = models.iter().map(endpoint).collect();
        Pool { endpoints, serving: BinaryHeap::new(), summary, next_summary }
    }

    /// What a pool does about ten times a second. Several that would have been due since the last
    /// request come to the same as one: nobody picked in between.
    fn summarise_until(&mut self, now: Tick, balancer: &Balancer) {
        if balancer.wants().summary && self.next_summary <= now {
            self.summary = balancer.summarise(self, now);
            self.next_summary = now.after(SUMMARY);
        }
    }

    fn dispatch(&mut self, endpoint: usize, work: Work, balancer: &Balancer) {
        let cell = self.endpoints[endpoint].cell;
        self.endpoints[endpoint].cell = balancer.on_dispatch(cell, work.arrived);
        self.endpoints[endpoint].in_flight += 1;
        self.endpoints[endpoint].waiting.push_back(work);
        self.serve_next(endpoint, work.arrived);
    }

    /// The next request to be completed, if that is not after `until`.
    fn complete_before(&mut self, until: Tick, balancer: &Balancer) -> Option<Done> {
        let Reverse(done) = *self.serving.peek().filter(|Reverse(done)| done.at <= until)?;
        self.serving.pop();
        let elapsed = done.at.since(done.arrived);
        let (now, first_byte) = (done.at, Some(elapsed));
        let completion = Completion { now, elapsed, first_byte, failed: false };
        let cell = self.endpoints[done.endpoint].cell;
        let cell = balancer.on_complete(cell, done.endpoint, &completion, self);
        self.endpoints[done.endpoint].cell = cell;
        self.endpoints[done.endpoint].free += 1;
        self.endpoints[done.endpoint].in_flight -= 1;
        self.serve_next(done.endpoint, done.at);
        Some(done)
    }

    fn serve_next(&mut self, index: usize, now: Tick) {
        let endpoint = &mut self.endpoints[index];
        if endpoint.free == 0 {
            return;
        }
        let Some(Work { request, arrived, time }) = endpoint.waiting.pop_front() else { return };
        endpoint.free -= 1;
        let at = now.after(Duration::from_nanos(time));
        self.serving.push(Reverse(Done { at, request, arrived, endpoint: index }));
    }
}
