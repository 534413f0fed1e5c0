//! The way of a request: to an endpoint, perhaps in line, perhaps to another endpoint, to its end. As
//! Subak's own (`http/src/balance.rs`): what is tried again, what draws on the budget, who may overtake
//! whom.

use subak_base::{BitSet, Rng, Tick};
use subak_pool::{Answered, Lease, Outcome as Settled, Refusal};

use super::Engine;
use crate::agenda::{Coming, Limit};
use crate::draw::happens;
use crate::event::{Observer, Step, Why};
use crate::front::Asker;
use crate::histogram::nanos;
use crate::server::{Answer, Work};

/// What a request wants.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    /// Where the amounts of work come from.
    pub(super) work: Rng,
    /// What a trace says of the work.
    pub(super) traced_ns: u64,
    pub(super) client: u32,
    pub(super) object: u32,
    pub(super) bytes: u32,
    /// Whose it is; `u32::MAX` for nobody's.
    pub(super) user: u32,
}

/// A request under way.
#[derive(Debug)]
pub(super) struct Flight<'p> {
    number: u64,
    arrived: u64,
    wish: Wish,
    balancer: u32,
    attempts: u32,
    dispatches: u32,
    /// Counts what the place was used for: another number, and an attempt, or a wait, is over.
    mark: u32,
    /// The same for whole requests.
    life: u32,
    is_under_way: bool,
    is_in_line: bool,
    tried: BitSet,
    lease: Option<Lease<'p>>,
}

impl<'p> Flight<'p> {
    /// At a place that was never used.
    fn new(wish: Wish) -> Flight<'p> {
        Flight {
            number: 0,
            arrived: 0,
            wish,
            balancer: 0,
            attempts: 0,
            dispatches: 0,
            mark: 0,
            life: 0,
            is_under_way: true,
            is_in_line: false,
            tried: BitSet::EMPTY,
            lease: None,
        }
    }

    /// Whether this endpoint has it.
    pub(super) fn is_at(&self, endpoint: usize) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.index() == endpoint)
    }

    /// It hangs: its slot is given back, and says nothing of the endpoint.
    pub(super) fn let_go(&mut self, now: u64) {
        if let Some(lease) = self.lease.take() {
            lease.settle(Settled::Cancelled, Tick(now));
        }
    }
}

/// What came of a look for an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sent {
    /// It is at an endpoint, in line, or over.
    Away,
    /// All who could are at their caps.
    Saturated,
}

impl<'p, O: Observer> Engine<'_, 'p, O> {
    /// A request begins.
    #[inline]
    pub(super) fn request(&mut self, wish: Wish) {
        let number = self.outcome.requests;
        self.outcome.requests += 1;
        self.moment.arrived += 1;
        let place = self.flights.claim(|| Flight::new(wish.clone()));
        let flight = self.flights.get_mut(place);
        let balancer = (number % self.fronts.len() as u64) as u32;
        let (mark, life) = (flight.mark, flight.life);
        *flight = Flight { number, arrived: self.now, balancer, mark, life, ..Flight::new(wish) };
        if self.client_limits.after.is_some() {
            let flights = &self.flights;
            let is_over = |limit: &Limit| flights.get(limit.flight).life != limit.mark;
            let due = self.client_limits.set(self.now, place, life, is_over);
            self.rest = self.rest.min(due);
        }
        self.send(place, false);
    }

    /// Looks for an endpoint until one has taken the request, or it is over. One that is in turn and
    /// finds all at their caps keeps its place in line.
    pub(super) fn send(&mut self, place: u32, mut in_turn: bool) -> Sent {
        loop {
            let flight = self.flights.get_mut(place);
            let (client, object) = (flight.wish.client, flight.wish.object);
            let asker = Asker { client, object, trace: self.trace };
            let front = &mut self.fronts[flight.balancer as usize];
            match front.acquire(&self.manner, asker, &flight.tried, in_turn, self.now) {
                Ok(lease) => {
                    if std::mem::take(&mut flight.is_in_line) {
                        front.waiting -= 1;
                        flight.mark = flight.mark.wrapping_add(1);
                    }
                    match self.hand_over(place, lease) {
                        Ok(()) => return Sent::Away,
                        Err(why) if self.fail(place, why) => in_turn = false,
                        Err(_) => return Sent::Away,
                    }
                }
                Err(Refusal::NoEndpoint) => {
                    self.end(place, Err(Why::NoEndpoint));
                    return Sent::Away;
                }
                Err(Refusal::Saturated) if in_turn => return Sent::Saturated,
                Err(Refusal::Saturated) => {
                    self.stand_in_line(place);
                    return Sent::Away;
                }
            }
        }
    }

    /// The endpoint gets the request.
    #[inline]
    fn hand_over(&mut self, place: u32, lease: Lease<'p>) -> Result<(), Why> {
        let endpoint = lease.index();
        let flight = self.flights.get_mut(place);
        flight.lease = Some(lease);
        flight.attempts += 1;
        flight.dispatches += 1;
        self.outcome.retries += u64::from(flight.dispatches > 1);
        self.outcome.endpoints[endpoint].hits += 1;
        self.moment.hits[endpoint] += 1;
        let mut work = Work {
            flight: place,
            attempt: flight.mark,
            endpoint: endpoint as u32,
            life: 0,
            object: flight.wish.object,
            answer: Answer::Good,
            traced_ns: flight.wish.traced_ns,
            seed: flight.wish.work.next_u64(),
        };
        let (number, balancer) = (flight.number, flight.balancer);
        self.note(number, Step::Dispatched { balancer, endpoint });
        let server = &mut self.servers[endpoint];
        work.life = server.life;
        if server.condition.is_dead {
            return Err(Why::Refused);
        }
        if self.answer_limits.after.is_some() {
            let flights = &self.flights;
            let is_over = |limit: &Limit| flights.get(limit.flight).mark != limit.mark;
            let due = self.answer_limits.set(self.now, place, work.attempt, is_over);
            self.rest = self.rest.min(due);
        }
        if server.condition.is_silent {
            return Ok(());
        }
        let is_free = server.free > 0;
        let is_full = !is_free && server.waiting.len() >= server.model.queue as usize;
        let failing = server.condition.failing_per_mille;
        if is_full || (failing > 0 && happens(failing, &mut Rng::new(!work.seed))) {
            work.answer = Answer::Error;
            let at = self.now.saturating_add(server.delay(&work));
            let work = self.works.put(work);
            self.agenda.put(at, Coming::Answered(work));
            return Ok(());
        }
        let work = self.works.put(work);
        match is_free {
            true => self.begin(work),
            false => server.waiting.push_back(work),
        }
        Ok(())
    }

    #[inline]
    fn begin(&mut self, place: u32) {
        let work = self.works.get_mut(place);
        let time = self.servers[work.endpoint as usize].begin(work);
        let endpoint = &mut self.outcome.endpoints[work.endpoint as usize];
        endpoint.busy = endpoint.busy.saturating_add(std::time::Duration::from_nanos(time));
        self.agenda.put(self.now.saturating_add(time), Coming::Done(place));
    }

    /// A work has come to its end, unless its endpoint has died since.
    #[inline]
    pub(super) fn done(&mut self, place: u32) {
        let work = *self.works.get(place);
        let server = &mut self.servers[work.endpoint as usize];
        if server.life != work.life {
            self.works.release(place);
            return;
        }
        server.end(&work);
        let delay = server.delay(&work);
        while let server = &mut self.servers[work.endpoint as usize]
            && server.free > 0
            && let Some(next) = server.waiting.pop_front()
        {
            let waits = self.works.get(next);
            let is_over = self.flights.get(waits.flight).mark != waits.attempt;
            match server.model.drops_abandoned && is_over {
                true => self.works.release(next),
                false => self.begin(next),
            }
        }
        match delay {
            0 => self.deliver(place),
            delay => self.agenda.put(self.now.saturating_add(delay), Coming::Answered(place)),
        }
    }

    /// An answer has come, for whoever still waits for it.
    #[inline]
    pub(super) fn deliver(&mut self, place: u32) {
        let work = *self.works.get(place);
        self.works.release(place);
        let flight = self.flights.get_mut(work.flight);
        if flight.mark != work.attempt {
            return;
        }
        let failed = match work.answer {
            Answer::Good | Answer::Cached => None,
            Answer::Error => Some(Why::Error),
            Answer::Broken => Some(Why::Reset),
        };
        match failed {
            None => {
                let endpoint = work.endpoint as usize;
                self.settle(work.flight, None);
                let counts = &mut self.outcome.endpoints[endpoint];
                counts.answered += 1;
                counts.cached += u64::from(work.answer == Answer::Cached);
                self.end(work.flight, Ok(endpoint));
            }
            Some(why) => {
                if self.fail(work.flight, why) {
                    self.send(work.flight, false);
                }
            }
        }
    }

    /// Gives the slot back and tells the pool how it went.
    #[inline]
    fn settle(&mut self, place: u32, failed: Option<Why>) {
        let flight = self.flights.get_mut(place);
        flight.mark = flight.mark.wrapping_add(1);
        let Some(lease) = flight.lease.take() else { return };
        let now = Tick(self.now);
        let front = &mut self.fronts[flight.balancer as usize];
        let answered = |status_failed| {
            let first_byte = front.pool.times_answers().then(|| now.since(lease.since()));
            Settled::Completed(Answered { first_byte, status_failed })
        };
        let settled = match failed {
            None => answered(false),
            Some(Why::Error) => answered(true),
            Some(Why::Refused | Why::Timeout) => Settled::Unreachable,
            Some(Why::Reset) => Settled::Failed,
            Some(_) => Settled::Cancelled,
        };
        if lease.is_counted() {
            let packets = u64::from(self.scenario.exchange.packets);
            lease.count(packets, u64::from(flight.wish.bytes), now);
        }
        lease.settle(settled, now);
        if front.waiting > 0 {
            front.has_news = true;
            self.has_news = true;
        }
    }

    /// An endpoint has failed the request. Whether it is to be tried again; if not, it is over.
    pub(super) fn fail(&mut self, place: u32, why: Why) -> bool {
        let flight = self.flights.get_mut(place);
        let Some(endpoint) = flight.lease.as_ref().map(Lease::index) else { return false };
        let number = flight.number;
        self.outcome.endpoints[endpoint].failed += 1;
        self.note(number, Step::Failed { endpoint, why });
        self.settle(place, Some(why));
        let retry = &self.scenario.retry;
        let flight = self.flights.get_mut(place);
        flight.tried.insert(endpoint);
        let pool = self.fronts[flight.balancer as usize].pool;
        // A refused connection has cost the endpoint nothing.
        let is_free = why == Why::Refused;
        flight.attempts -= u32::from(is_free);
        let is_retried = match why {
            Why::Refused => true,
            Why::Reset => retry.on_reset,
            Why::Timeout => retry.on_timeout,
            Why::Error => retry.on_error,
            _ => false,
        };
        let may = is_retried
            && (is_free || flight.attempts < retry.attempts)
            && pool.has_untried(&flight.tried);
        if may && (is_free || pool.withdraw_retry(Tick(self.now))) {
            return true;
        }
        self.outcome.denied += u64::from(may);
        self.end(place, Err(why));
        false
    }

    /// The request is over.
    #[inline]
    pub(super) fn end(&mut self, place: u32, how: Result<usize, Why>) {
        let flight = self.flights.get_mut(place);
        flight.life = flight.life.wrapping_add(1);
        flight.mark = flight.mark.wrapping_add(1);
        flight.is_under_way = false;
        let (number, arrived, user) = (flight.number, flight.arrived, flight.wish.user);
        if std::mem::take(&mut flight.is_in_line) {
            self.fronts[flight.balancer as usize].waiting -= 1;
        }
        self.flights.release(place);
        self.outcome.ended = Tick(self.now);
        match how {
            Ok(endpoint) => {
                self.outcome.answered += 1;
                self.moment.answered += 1;
                let took = self.now - arrived;
                if arrived >= nanos(self.scenario.warm_up) {
                    self.outcome.latency.add(took);
                }
                if self.scenario.series.is_some() {
                    self.moment_latency.add(took);
                }
                self.note(number, Step::Answered(endpoint));
            }
            Err(why) => {
                self.outcome.failures.add(why);
                self.moment.failed += 1;
                self.note(number, Step::Ended(why));
            }
        }
        if user != u32::MAX {
            self.user_thinks(user);
        }
    }

    fn stand_in_line(&mut self, place: u32) {
        let flight = self.flights.get_mut(place);
        let front = &mut self.fronts[flight.balancer as usize];
        if front.waiting >= front.pool.queue_length() {
            self.end(place, Err(Why::LineFull));
            return;
        }
        front.line.push_back((place, flight.mark));
        front.waiting += 1;
        flight.is_in_line = true;
        let (number, mark) = (flight.number, flight.mark);
        if self.line_limits.after.is_some() {
            let flights = &self.flights;
            let is_over = |limit: &Limit| flights.get(limit.flight).mark != limit.mark;
            let due = self.line_limits.set(self.now, place, mark, is_over);
            self.rest = self.rest.min(due);
        }
        self.note(number, Step::Waits);
    }

    /// Something has come free: those in line look, the first first. One who has tried others before,
    /// and finds nothing, lets the next look.
    pub(super) fn look_at_lines(&mut self) {
        self.has_news = false;
        for balancer in 0..self.fronts.len() {
            if !std::mem::take(&mut self.fronts[balancer].has_news) {
                continue;
            }
            let mut place = 0;
            while let Some((flight, mark)) = self.fronts[balancer].line.get(place).copied() {
                let waits = self.flights.get(flight);
                let has_tried = !waits.tried.is_empty();
                let is_there = waits.mark == mark && waits.is_in_line;
                if is_there && self.send(flight, true) == Sent::Saturated {
                    if !has_tried {
                        break;
                    }
                    place += 1;
                } else {
                    self.fronts[balancer].line.remove(place);
                }
            }
        }
    }

    /// A place in line was held too long.
    pub(super) fn line_too_long(&mut self, limit: Limit) {
        if self.flights.get(limit.flight).mark == limit.mark {
            self.end(limit.flight, Err(Why::LineTimeout));
        }
    }

    /// An endpoint has not answered in time.
    pub(super) fn answer_too_late(&mut self, limit: Limit) {
        if self.flights.get(limit.flight).mark == limit.mark
            && self.fail(limit.flight, Why::Timeout)
        {
            self.send(limit.flight, false);
        }
    }

    /// A client has had enough.
    pub(super) fn client_leaves(&mut self, limit: Limit) {
        if self.flights.get(limit.flight).life == limit.mark {
            self.settle(limit.flight, Some(Why::Abandoned));
            self.end(limit.flight, Err(Why::Abandoned));
        }
    }

    /// The places of all requests under way of which this holds.
    pub(super) fn all_flights(&self, is_meant: impl Fn(&Flight<'p>) -> bool) -> Vec<u32> {
        let places = (0..).zip(self.flights.places());
        let meant = places.filter(|(_, flight)| flight.is_under_way && is_meant(flight));
        meant.map(|(place, _)| place).collect()
    }
}
