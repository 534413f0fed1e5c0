//! An endpoint at work: slots, a queue, perhaps a cache.

use std::collections::VecDeque;

use subak_base::Rng;

use crate::cache::Latest;
use crate::condition::Condition;
use crate::draw::{happens, scaled, service_ns};
use crate::histogram::nanos;
use crate::scenario::{EndpointModel, Service};

/// One endpoint.
#[derive(Debug)]
pub(crate) struct Server<'a> {
    pub(crate) model: &'a EndpointModel,
    pub(crate) condition: Condition,
    /// Counts its deaths: work of an earlier life does not end.
    pub(crate) life: u32,
    pub(crate) free: u32,
    pub(crate) waiting: VecDeque<u32>,
    pub(crate) cache: Option<Latest>,
}

/// A request at an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Work {
    /// The flight, and which attempt of which request it was then.
    pub(crate) flight: u32,
    pub(crate) attempt: u32,
    pub(crate) endpoint: u32,
    pub(crate) life: u32,
    pub(crate) object: u32,
    pub(crate) answer: Answer,
    /// What the trace says of it.
    pub(crate) traced_ns: u64,
    /// Where its chances come from.
    pub(crate) seed: u64,
}

/// How a work ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    Good,
    /// Good, and out of the cache.
    Cached,
    /// A 5xx.
    Error,
    /// Broken off.
    Broken,
}

impl<'a> Server<'a> {
    pub(crate) fn new(model: &'a EndpointModel) -> Server<'a> {
        Server {
            model,
            condition: Condition::WELL,
            life: 0,
            free: model.concurrency.max(1),
            waiting: VecDeque::new(),
            cache: model.cache.as_ref().map(|cache| Latest::new(cache.objects)),
        }
    }

    /// Takes a slot for a work. Answers how long that will take, and sets how it will end.
    #[inline]
    pub(crate) fn begin(&mut self, work: &mut Work) -> u64 {
        self.free -= 1;
        let mut random = Rng::new(work.seed);
        let mut service = &self.model.service;
        work.answer = Answer::Good;
        if let (Some(latest), Some(cache)) = (&mut self.cache, &self.model.cache)
            && latest.has(work.object)
        {
            service = &cache.hit;
            work.answer = Answer::Cached;
        }
        let time = service_ns(service, work.traced_ns, &mut random);
        if happens(self.condition.lossy_per_mille, &mut random) {
            work.answer = Answer::Broken;
        }
        scaled(time, self.condition.slow_per_mille).saturating_add(nanos(self.model.late))
    }

    /// What the answer to a work takes beside.
    #[inline]
    pub(crate) fn delay(&self, work: &Work) -> u64 {
        match &self.model.delay {
            Service::Constant(time) => nanos(*time),
            // Not the stream that its service is drawn from.
            delay => service_ns(delay, 0, &mut Rng::new(work.seed.rotate_left(32))),
        }
    }

    /// A work has come to its end.
    #[inline]
    pub(crate) fn end(&mut self, work: &Work) {
        self.free += 1;
        if let Some(latest) = &mut self.cache {
            latest.keep(work.object);
        }
    }

    /// Loses everything it had.
    pub(crate) fn die(&mut self) -> VecDeque<u32> {
        self.life += 1;
        self.free = self.model.concurrency.max(1);
        self.cache.iter_mut().for_each(Latest::clear);
        std::mem::take(&mut self.waiting)
    }
}
