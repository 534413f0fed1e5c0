//! The run: the clock jumps to whatever comes first, and what follows from it is done.
//!
//! Of what comes at one moment: ends of work first, then time limits, then the control side, then
//! arrivals. Nothing is allocated for a request once the slabs have grown to what is under way at once,
//! but where it is tried again in a pool of more than 128 endpoints.

mod control;
mod flight;

use std::time::Duration;

use subak_base::{Rng, Tick};
use subak_pool::{EndpointIds, Pool, PoolSpec};

use crate::agenda::{Agenda, Coming, Limits, NEVER};
use crate::arrivals::{Arrivals, Trace};
use crate::arriving::{self, Arriving, Streams};
use crate::condition::changes;
use crate::draw::service_ns;
use crate::event::{Event, Observer, Step, Why};
use crate::front::{Front, Manner};
use crate::histogram::{Latency, nanos};
use crate::outcome::{EndpointOutcome, Moment, Outcome};
use crate::scenario::{Scenario, Service};
use crate::server::{Server, Work};
use crate::slab::Slab;
use crate::source::{Arrival, Line, Who};
use control::Probe;
use flight::{Flight, Wish};

/// Runs the scenario to the end of its last request.
///
/// # Panics
/// When the scenario has not one model for each endpoint, or two endpoints of one address.
pub fn run(scenario: &Scenario) -> Outcome {
    run_with(scenario, &mut ())
}

/// The same, with somebody who looks on.
///
/// # Panics
/// As [`run`].
pub fn run_with(scenario: &Scenario, observer: &mut impl Observer) -> Outcome {
    assert_eq!(scenario.models.len(), scenario.pool.endpoints.len(), "one model for each endpoint");
    // Nobody asks agents here, what a pick log is for is the scenario itself, and for another algorithm
    // there is another run.
    let silent = PoolSpec { agent: None, pick_log: None, ..scenario.pool.clone() };
    let spec = PoolSpec { shadows: Vec::new(), ..silent };
    let build = |_| Pool::build(&spec, &mut EndpointIds::new(), None, Tick(0));
    let pools: Vec<Pool> = (0..scenario.balancers.count.max(1)).map(build).collect();
    let mut engine = Engine::new(scenario, &pools, observer);
    engine.go();
    engine.finish()
}

struct Engine<'a, 'p, O> {
    scenario: &'a Scenario,
    observer: &'a mut O,
    now: u64,
    fronts: Vec<Front<'p>>,
    manner: Manner<'p>,
    pools: &'p [Pool],
    servers: Vec<Server<'a>>,
    flights: Slab<Flight<'p>>,
    works: Slab<Work>,
    probes: Slab<Probe>,
    agenda: Agenda,
    /// When the first time limit, the control side's next step or the next change is due.
    rest: u64,
    line_limits: Limits,
    answer_limits: Limits,
    client_limits: Limits,
    /// Whether the control side has anything to do.
    has_ticks: bool,
    ticks: u64,
    changes: Vec<(u64, usize)>,
    changed: usize,
    arriving: Arriving,
    next: Option<Arrival>,
    users: Vec<User>,
    crowd: Line,
    think: &'a Service,
    trace: Option<&'a Trace>,
    random: Streams,
    /// Something has come free before some line.
    has_news: bool,
    outcome: Outcome,
    moment: Moment,
    moment_latency: Latency,
    moment_ends: u64,
}

/// One user of a closed loop.
#[derive(Clone, Debug)]
struct User {
    is_here: bool,
    client: u32,
    random: Rng,
}

impl<'a, 'p, O: Observer> Engine<'a, 'p, O> {
    fn new(scenario: &'a Scenario, pools: &'p [Pool], observer: &'a mut O) -> Engine<'a, 'p, O> {
        let Scenario { arrivals, herds, clients, objects, seed, .. } = scenario;
        let (mut arriving, random, mut seeds) =
            arriving::begin(arrivals, herds, clients, objects.as_ref(), *seed);
        let fronts = pools.iter().map(|pool| Front::new(pool, seeds.next_u64())).collect();
        let next = arriving.next();
        const AT_ONCE: &Service = &Service::Constant(Duration::ZERO);
        let (crowd, think, trace) = match &scenario.arrivals {
            Arrivals::Users { stages, think } => (Line::of(stages), think, None),
            Arrivals::Trace(trace) => (Line::of(&[]), AT_ONCE, Some(&**trace)),
            Arrivals::Open { .. } => (Line::of(&[]), AT_ONCE, None),
        };
        let endpoints = scenario.models.len();
        let mut engine = Engine {
            scenario,
            observer,
            now: 0,
            fronts,
            manner: Manner::new(scenario.balancers, pools),
            pools,
            servers: scenario.models.iter().map(Server::new).collect(),
            flights: Slab::new(),
            works: Slab::new(),
            probes: Slab::new(),
            agenda: Agenda::default(),
            rest: 0,
            line_limits: Limits::new(scenario.patience.queue),
            answer_limits: Limits::new(scenario.patience.answer),
            client_limits: Limits::new(scenario.patience.client),
            has_ticks: control::is_needed(scenario),
            ticks: 0,
            changes: changes(&scenario.faults),
            changed: 0,
            arriving,
            next,
            users: Vec::new(),
            crowd,
            think,
            trace,
            random,
            has_news: false,
            outcome: Outcome {
                endpoints: vec![EndpointOutcome::default(); endpoints],
                ..Outcome::default()
            },
            moment: Moment { hits: vec![0; endpoints], ..Moment::default() },
            moment_latency: Latency::default(),
            moment_ends: scenario.series.map_or(NEVER, |step| nanos(step).max(1)),
        };
        engine.come_in_force();
        engine
    }

    /// To the end.
    fn go(&mut self) {
        let ends = nanos(self.scenario.duration);
        loop {
            let arrives = match self.next {
                Some(next) if next.at < ends && self.outcome.requests < self.scenario.requests => {
                    next.at
                }
                _ => NEVER,
            };
            let done = self.agenda.earliest();
            if done <= self.rest && done <= arrives {
                if done == NEVER {
                    return;
                }
                self.now = done;
                self.come();
            } else if self.rest <= arrives {
                if arrives == NEVER && self.is_over() {
                    return;
                }
                self.now = self.rest;
                self.come_to_rest();
            } else {
                self.now = arrives;
                self.arrive();
            }
            if self.has_news {
                self.look_at_lines();
            }
        }
    }

    /// Whether nothing can change any more for those who are still under way, when nobody arrives.
    fn is_over(&self) -> bool {
        let is_idle = self.works.len() == 0 && self.agenda.earliest() == NEVER;
        let hangs = self.works.len() == 0
            && self.changed >= self.changes.len()
            && self.probes.len() == self.agenda.len()
            && [&self.line_limits, &self.answer_limits, &self.client_limits]
                .iter()
                .all(|limits| limits.earliest() == NEVER);
        (is_idle && self.flights.len() == 0) || hangs
    }

    /// What comes in any order.
    #[inline]
    fn come(&mut self) {
        match self.agenda.take() {
            Some(Coming::Done(work)) => self.done(work),
            Some(Coming::Answered(work)) => self.deliver(work),
            Some(Coming::Wakes(user)) => self.user_asks(user),
            Some(Coming::Probed(probe)) => self.probed(probe),
            None => {}
        }
    }

    /// What is due of the rest, all of it.
    #[cold]
    fn come_to_rest(&mut self) {
        let now = self.now;
        while let Some(limit) = self.line_limits.take(now) {
            self.line_too_long(limit);
        }
        while let Some(limit) = self.answer_limits.take(now) {
            self.answer_too_late(limit);
        }
        while let Some(limit) = self.client_limits.take(now) {
            self.client_leaves(limit);
        }
        while let Some((_, endpoint)) = self.changes.get(self.changed).filter(|(at, _)| *at <= now)
        {
            let endpoint = *endpoint;
            self.changed += 1;
            self.change(endpoint);
        }
        if self.next_tick() <= now {
            self.tick();
        }
        if self.moment_ends <= now {
            self.end_moment();
        }
        self.plan_rest();
    }

    fn plan_rest(&mut self) {
        let change = self.changes.get(self.changed).map_or(NEVER, |(at, _)| *at);
        self.rest = [
            self.line_limits.earliest(),
            self.answer_limits.earliest(),
            self.client_limits.earliest(),
            change,
            self.next_tick(),
            self.moment_ends,
        ]
        .into_iter()
        .min()
        .unwrap_or(NEVER);
    }

    /// The next arrival is there.
    #[inline]
    fn arrive(&mut self) {
        let Some(arrival) = self.next else { return };
        self.next = self.arriving.next();
        let work = Rng::new(self.random.work.next_u64());
        match arrival.who {
            Who::Anybody => {
                let (client, object) = self.arriving.choose();
                let bytes = self.scenario.exchange.bytes;
                self.request(Wish { work, traced_ns: 0, client, object, bytes, user: u32::MAX });
            }
            Who::Traced(place) => {
                let Some(traced) = self.trace.map(|trace| trace.requests[place as usize]) else {
                    return;
                };
                self.request(Wish {
                    work,
                    client: traced.client,
                    object: traced.object,
                    bytes: traced.bytes,
                    traced_ns: traced.service_ns,
                    user: u32::MAX,
                });
            }
            Who::User(user) => self.user_begins(user),
        }
    }

    /// A user is there, unless it has never left.
    fn user_begins(&mut self, user: u32) {
        while self.users.len() <= user as usize {
            let client = self.arriving.client();
            let seed = self.random.users ^ self.users.len() as u64;
            self.users.push(User { is_here: false, client, random: Rng::new(seed) });
        }
        if !std::mem::replace(&mut self.users[user as usize].is_here, true) {
            self.user_asks(user);
        }
    }

    /// A user asks for the next thing, or leaves.
    fn user_asks(&mut self, user: u32) {
        let is_wanted = self.crowd.at(self.now) >= f64::from(user) + 1.0
            && self.outcome.requests < self.scenario.requests
            && self.now < nanos(self.scenario.duration);
        let this = &mut self.users[user as usize];
        this.is_here = is_wanted;
        if is_wanted {
            let work = Rng::new(this.random.next_u64());
            let client = this.client;
            let object = self.arriving.object_of(client, &mut this.random);
            let bytes = self.scenario.exchange.bytes;
            self.request(Wish { work, traced_ns: 0, client, object, bytes, user });
        }
    }

    /// A user has its answer, and thinks.
    fn user_thinks(&mut self, user: u32) {
        if let Some(this) = self.users.get_mut(user as usize) {
            let time = service_ns(self.think, 0, &mut this.random);
            self.agenda.put(self.now.saturating_add(time), Coming::Wakes(user));
        }
    }

    fn end_moment(&mut self) {
        let Some(step) = self.scenario.series else { return };
        let endpoints = self.servers.len();
        let latency = &self.moment_latency;
        let next = Moment {
            from: Duration::from_nanos(self.moment_ends),
            hits: vec![0; endpoints],
            ..Moment::default()
        };
        self.outcome.series.push(Moment {
            p50: latency.quantile(500),
            p95: latency.quantile(950),
            p99: latency.quantile(990),
            in_flight: (0..endpoints)
                .map(|index| crate::front::in_flight(self.pools, index))
                .collect(),
            ..std::mem::replace(&mut self.moment, next)
        });
        self.moment_latency.clear();
        self.moment_ends = self.moment_ends.saturating_add(nanos(step).max(1));
    }

    /// What is left hangs; the outcome is there.
    fn finish(mut self) -> Outcome {
        if self.flights.len() > 0 {
            let hanging: Vec<u32> = self.all_flights(|_| true);
            for flight in hanging {
                self.flights.get_mut(flight).let_go(self.now);
                self.end(flight, Err(Why::Unfinished));
            }
        }
        if self.moment.arrived + self.moment.answered + self.moment.failed > 0 {
            self.end_moment();
        }
        self.outcome
    }

    #[inline]
    fn note(&mut self, request: u64, step: Step) {
        self.observer.note(Event { at: Tick(self.now), request, step });
    }
}
