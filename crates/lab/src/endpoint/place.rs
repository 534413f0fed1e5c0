//! What happens to requests at an endpoint that takes its time: some are in service, up to its
//! concurrency, the others wait in line, up to a bound, and what is beyond that is refused.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use subak_base::Rng;

use super::condition::{Condition, Fault};
use super::latest::Latest;
use super::service::{LONGEST, Service};
use crate::load::uniform;

/// How an endpoint behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviour {
    /// How long it takes; `None`: no time at all.
    pub service: Option<Service>,
    /// It works for that long (of a core's time) instead of waiting.
    pub works: bool,
    /// Requests in service at once; `None`: all. Work is done by so many threads.
    pub concurrency: Option<usize>,
    /// Requests in line, at most; more are answered 503.
    pub queue: usize,
    /// Bytes of the usual body; `None`: the endpoint's name.
    pub body: Option<usize>,
    /// Share of requests that are answered 500, 0 to 1.
    pub fails: f64,
    /// It keeps the latest objects (by method and target): so many, each served again in that time.
    pub cache: Option<(usize, Service)>,
    /// Whatever is drawn by chance follows from it.
    pub seed: u64,
}

impl Default for Behaviour {
    fn default() -> Behaviour {
        Behaviour {
            service: None,
            works: false,
            concurrency: None,
            queue: 100_000,
            body: None,
            fails: 0.0,
            cache: None,
            seed: 1,
        }
    }
}

impl Behaviour {
    /// Whether every request is answered at once, and well.
    pub(super) fn is_plain(&self) -> bool {
        self.service.is_none() && self.concurrency.is_none() && self.fails <= 0.0
    }
}

/// What an endpoint has seen so far.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) hits: AtomicU64,
    pub(super) connections: AtomicU64,
    pub(super) in_service: AtomicU64,
    pub(super) in_line: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) served_ns: AtomicU64,
    pub(super) served: AtomicU64,
    /// By how much services ended late: the thread has only one pair of hands.
    pub(super) late_ns: AtomicU64,
}

/// A request of a connection. The connection may be gone, and its place another's, when its turn comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Job {
    pub(super) slot: usize,
    pub(super) generation: u64,
    /// What it asks for.
    pub(super) object: u64,
}

/// What is to be done with a request that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Serve it, for so long.
    Serve(Duration),
    Waits,
    Refused,
    /// 500 at once.
    Fails,
}

/// One endpoint's requests.
pub(super) struct Place {
    pub(super) behaviour: Behaviour,
    condition: Condition,
    /// Every request is answered at once, and well.
    plain: bool,
    kept: Option<(Latest, Service)>,
    in_service: usize,
    line: VecDeque<Job>,
    rng: Rng,
}

/// How a service ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Good,
    Failed,
    /// The endpoint's fault instead of the answer.
    Ill(Fault),
}

impl Place {
    pub(super) fn new(behaviour: Behaviour) -> Place {
        let rng = Rng::new(behaviour.seed);
        let kept = behaviour.cache.map(|(most, hit)| (Latest::new(most), hit));
        let (condition, plain) = (Condition::WELL, behaviour.is_plain());
        Place { behaviour, condition, plain, kept, in_service: 0, line: VecDeque::new(), rng }
    }

    /// Whether every request is answered at once, and well.
    pub(super) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Whether it matters what is asked for.
    pub(super) fn keeps(&self) -> bool {
        self.kept.is_some()
    }

    pub(super) fn set(&mut self, condition: Condition) {
        self.condition = condition;
        self.plain = self.behaviour.is_plain() && condition == Condition::WELL;
    }

    /// The fault of its answers now.
    pub(super) fn fault(&self) -> Option<Fault> {
        self.condition.fault
    }

    pub(super) fn arrive(&mut self, job: Job, counters: &Counters) -> Arrival {
        let concurrency = self.behaviour.concurrency.unwrap_or(usize::MAX);
        let arrival = if self.happens(self.condition.failing) {
            counters.failed.fetch_add(1, Ordering::Relaxed);
            Arrival::Fails
        } else if self.in_service < concurrency {
            Arrival::Serve(self.start(job, counters))
        } else if self.line.len() < self.behaviour.queue {
            self.line.push_back(job);
            Arrival::Waits
        } else {
            counters.refused.fetch_add(1, Ordering::Relaxed);
            Arrival::Refused
        };
        counters.in_line.store(self.line.len() as u64, Ordering::Relaxed);
        arrival
    }

    /// One is served: the next in line, with its time, and how the one that ended does.
    pub(super) fn served(
        &mut self,
        job: Job,
        counters: &Counters,
    ) -> (Option<(Job, Duration)>, Ended) {
        self.in_service = self.in_service.saturating_sub(1);
        counters.in_service.store(self.in_service as u64, Ordering::Relaxed);
        counters.served.fetch_add(1, Ordering::Relaxed);
        if let Some((latest, _)) = &mut self.kept {
            latest.keep(job.object);
        }
        let next = self.line.pop_front().map(|job| (job, self.start(job, counters)));
        counters.in_line.store(self.line.len() as u64, Ordering::Relaxed);
        let fails = self.behaviour.fails > 0.0 && uniform(&mut self.rng) < self.behaviour.fails;
        if fails {
            counters.failed.fetch_add(1, Ordering::Relaxed);
        }
        let ended = match fails {
            true => Ended::Failed,
            false if self.happens(self.condition.lossy) => Ended::Ill(Fault::Close),
            false => self.condition.fault.map_or(Ended::Good, Ended::Ill),
        };
        (next, ended)
    }

    /// True so many times of a thousand.
    fn happens(&mut self, per_mille: u32) -> bool {
        per_mille > 0 && self.rng.below(1000) < u64::from(per_mille)
    }

    fn start(&mut self, job: Job, counters: &Counters) -> Duration {
        self.in_service += 1;
        counters.in_service.store(self.in_service as u64, Ordering::Relaxed);
        let kept = self.kept.as_mut();
        let hit = kept.and_then(|(latest, hit)| latest.has(job.object).then_some(*hit));
        let time = hit.or(self.behaviour.service).map(|service| service.draw(&mut self.rng));
        let time = match self.condition.slow {
            1000 => time.unwrap_or_default(),
            slow => time.unwrap_or_default().mul_f64(f64::from(slow) / 1000.0).min(LONGEST),
        };
        counters.served_ns.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_served_the_next_wait_the_others_are_refused() {
        let service = Some(Service::Constant(Duration::from_millis(3)));
        let behaviour =
            Behaviour { service, concurrency: Some(2), queue: 1, ..Behaviour::default() };
        let (mut place, counters) = (Place::new(behaviour), Counters::default());
        let job = |slot| Job { slot, generation: 0, object: 0 };
        let serve = Arrival::Serve(Duration::from_millis(3));
        let arrivals = [0, 1, 2, 3].map(|slot| place.arrive(job(slot), &counters));
        assert_eq!(arrivals, [serve, serve, Arrival::Waits, Arrival::Refused]);
        assert_eq!(counters.in_service.load(Ordering::Relaxed), 2);
        assert_eq!(counters.in_line.load(Ordering::Relaxed), 1);
        let (next, ended) = place.served(job(0), &counters);
        assert_eq!((next.map(|(job, _)| job.slot), ended), (Some(2), Ended::Good));
        assert_eq!(place.served(job(1), &counters), (None, Ended::Good));
        assert_eq!(counters.refused.load(Ordering::Relaxed), 1);
        assert_eq!(counters.served_ns.load(Ordering::Relaxed), 9_000_000);
    }

    #[test]
    fn as_many_fail_as_are_to() {
        let behaviour = Behaviour { fails: 0.25, ..Behaviour::default() };
        let (mut place, counters) = (Place::new(behaviour), Counters::default());
        for slot in 0..4000 {
            let job = Job { slot, generation: 0, object: 0 };
            place.arrive(job, &counters);
            place.served(job, &counters);
        }
        assert!(counters.failed.load(Ordering::Relaxed).abs_diff(1000) < 150, "{counters:?}");
    }

    #[test]
    fn what_is_kept_is_served_quickly_and_a_condition_lasts_until_the_next() {
        let ms = Duration::from_millis;
        let service = Some(Service::Constant(ms(10)));
        let cache = Some((1, Service::Constant(ms(1))));
        let behaviour = Behaviour { service, cache, ..Behaviour::default() };
        let (mut place, counters) = (Place::new(behaviour), Counters::default());
        let job = |object| Job { slot: 0, generation: 0, object };
        let mut takes = |object| {
            let arrival = place.arrive(job(object), &counters);
            (arrival, place.served(job(object), &counters).1)
        };
        let good = |time| (Arrival::Serve(ms(time)), Ended::Good);
        assert_eq!([7, 7, 8, 7].map(&mut takes), [10, 1, 10, 10].map(good));
        place.set(Condition { slow: 3000, lossy: 1000, ..Condition::WELL });
        let arrival = place.arrive(job(9), &counters);
        assert_eq!(arrival, Arrival::Serve(ms(30)));
        assert_eq!(place.served(job(9), &counters).1, Ended::Ill(Fault::Close));
        place.set(Condition { fault: Some(Fault::Reset), ..Condition::WELL });
        place.arrive(job(9), &counters);
        assert_eq!(place.served(job(9), &counters).1, Ended::Ill(Fault::Reset));
        place.set(Condition { failing: 1000, ..Condition::WELL });
        assert_eq!(place.arrive(job(9), &counters), Arrival::Fails);
        place.set(Condition::WELL);
        assert_eq!(place.arrive(job(9), &counters), Arrival::Serve(ms(1)));
        assert_eq!(counters.served.load(Ordering::Relaxed), 6);
    }
}
