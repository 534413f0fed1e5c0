//! Every candidate on every part of the log: the runs, on all cores.
//!
//! Seed i replays the i-th of as many parts of the log as there are seeds: of a short log all of it,
//! each time with other chances. All candidates see the same parts, arrivals, keys and amounts of work,
//! so differences are taken part by part.
//!
//! Where a key has its place is luck, and the clients and addresses of another day have other luck: an
//! algorithm that goes by keys, and did not make the log, meets the endpoints in another order in each
//! seed. So nobody gains by the one slow endpoint having got no key of this log.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use subak_balance::Algorithm;
use subak_sim::{
    Arrivals, Cache, EndpointModel, Fault, Outcome, Scenario, Service, Steps, Trace, Trouble, run,
};

use crate::candidate::Candidate;
use crate::fit::{EndpointFit, Fit};
use crate::log::{Log, UNKNOWN};
use crate::objects::Part;
use crate::places::{self, KeyOf};
use crate::sample::Sample;
use crate::traced::traced;

/// Requests of one run.
pub(crate) const MOST_REPLAYED: usize = 200_000;

/// Of a part's time at its beginning, what is not measured: endpoints and caches start empty.
const WARM_UP: u64 = 10;

/// Steps of a series over time.
const STEPS: u64 = 60;

/// Steps that a distribution is drawn from.
const SERVICE_STEPS: usize = 2_000;

/// The thousandths of the latencies that are told.
pub(crate) const TOLD: [u32; 4] = [500, 950, 990, 999];

/// What one run of a candidate came to.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Run {
    /// [`TOLD`], in nanoseconds.
    pub(crate) latency: [u64; 4],
    /// Of all requests.
    pub(crate) failed: f64,
    pub(crate) hits: Vec<u64>,
    pub(crate) jain: f64,
    /// Answers from endpoints' caches, of all requests.
    pub(crate) cached: f64,
    pub(crate) retries: u64,
    /// Seconds since the part began, and the busiest endpoint's requests in an even share of all.
    pub(crate) imbalance: Vec<(f64, f64)>,
}

/// The parts of the log that are replayed, one for each seed.
pub(crate) fn parts(requests: usize, seeds: usize) -> Vec<Range<usize>> {
    let length = requests.min(MOST_REPLAYED);
    let part = |seed| {
        let begin = (requests - length) * seed / (seeds - 1).max(1);
        begin..begin + length
    };
    (0..seeds).map(part).collect()
}

/// The latencies that the log itself has in a part, as a replay of it would tell them.
pub(crate) fn logged(log: &Log, part: &Range<usize>) -> Run {
    let requests = &log.requests[part.clone()];
    let (first, lasts) = extent(requests);
    let warm = first + lasts / WARM_UP;
    let mut hits = vec![0; log.endpoints.len()];
    let (mut times, mut failed) = (Vec::new(), 0);
    let mut steps = vec![vec![0_u64; hits.len()]; STEPS as usize];
    for request in requests {
        let endpoint = usize::from(request.endpoint);
        hits[endpoint] += 1;
        let step = (request.arrived - first) * STEPS / (lasts + 1);
        steps[step as usize][endpoint] += 1;
        failed += u64::from(request.has_failed);
        if request.arrived >= warm && request.latency != UNKNOWN && !request.has_failed {
            times.push(request.reached - request.arrived + request.latency);
        }
    }
    let sample = Sample::new(times);
    let step_s = lasts as f64 / 1e9 / STEPS as f64;
    let imbalance = steps.iter().enumerate().map(|(step, hits)| (step as f64 * step_s, most(hits)));
    Run {
        latency: TOLD.map(|share| sample.quantile(u64::from(share))),
        failed: failed as f64 / requests.len().max(1) as f64,
        jain: subak_sim::jain(hits.iter().map(|hits| *hits as f64)),
        hits,
        cached: 0.0,
        retries: 0,
        imbalance: imbalance.collect(),
    }
}

fn extent(requests: &[crate::log::Request]) -> (u64, u64) {
    let first = requests.first().map_or(0, |request| request.arrived);
    let last = requests.last().map_or(0, |request| request.arrived);
    (first, last - first)
}

/// The busiest one's share, in an even share of all.
fn most(hits: &[u64]) -> f64 {
    let (most, sum) = (hits.iter().max().copied().unwrap_or(0), hits.iter().sum::<u64>());
    if sum == 0 { 1.0 } else { most as f64 * hits.len() as f64 / sum as f64 }
}

/// A pool that is tried, and the models of its endpoints.
pub(crate) struct Subject<'a> {
    pub(crate) candidate: &'a Candidate,
    models: Vec<EndpointModel>,
    faults: Vec<Fault>,
    key: Part,
    /// Endpoints that the log knows nothing of, which work like one it knows.
    pub(crate) strangers: Vec<String>,
    /// Keys get other places in each seed.
    deals_anew: bool,
}

/// Do keys keep the places they have by the endpoints' names, or get others in each seed?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Places {
    Kept,
    DealtAnew,
}

impl<'a> Subject<'a> {
    /// Errors where the log has no key of that kind.
    pub(crate) fn new(
        candidate: &'a Candidate,
        log: &Log,
        fit: &Fit,
        places: Places,
    ) -> Result<Subject<'a>, String> {
        let key = places::key_of(&candidate.pool.algorithm).map_err(|key| {
            format!("{} looks at {key}, which this log does not have", candidate.name)
        })?;
        let typical = typical(fit);
        let mut strangers = Vec::new();
        let mut models = Vec::new();
        let mut faults = Vec::new();
        for (place, endpoint) in candidate.pool.endpoints.iter().enumerate() {
            let address = endpoint.address.to_string();
            let is_it = |name: &String| *name == endpoint.name || *name == address;
            let own = log.endpoints.iter().position(is_it).map(|index| &fit.endpoints[index]);
            if own.is_none() {
                strangers.push(endpoint.name.clone());
            }
            let own = own.unwrap_or(typical);
            models.push(model(own, fit));
            if own.failed_per_mille > 0 {
                let trouble = Trouble::Failing { per_mille: own.failed_per_mille };
                let (from, until) = (Duration::ZERO, Duration::MAX);
                faults.push(Fault { endpoints: vec![place], from, until, trouble });
            }
        }
        let deals_anew = key.is_some() && places == Places::DealtAnew;
        let key = match key {
            Some(KeyOf::Object(part)) => part,
            _ => Part::Uri,
        };
        Ok(Subject { candidate, models, faults, key, strangers, deals_anew })
    }

    fn run(&self, parts: &HashMap<(Part, usize), Arc<Trace>>, seed: usize) -> Run {
        let trace = parts[&(self.key, seed)].clone();
        let lasts = Duration::from_nanos(trace.requests.last().map_or(0, |last| last.at_ns));
        let step = (lasts / STEPS as u32).max(Duration::from_nanos(1));
        // The endpoint at a place is the one so many places on: its weight, its work, its faults.
        let count = self.models.len();
        let turn = if self.deals_anew { seed % count.max(1) } else { 0 };
        let (mut pool, mut models) = (self.candidate.pool.clone(), self.models.clone());
        models.rotate_left(turn);
        for (place, endpoint) in pool.endpoints.iter_mut().enumerate() {
            endpoint.weight = self.candidate.pool.endpoints[(place + turn) % count].weight;
        }
        let place_of = |endpoint: &usize| (endpoint + count - turn) % count;
        let faults = self.faults.iter().map(|fault| Fault {
            endpoints: fault.endpoints.iter().map(place_of).collect(),
            ..fault.clone()
        });
        let scenario = Scenario {
            patience: self.candidate.patience,
            retry: self.candidate.retry,
            faults: faults.collect(),
            warm_up: lasts / WARM_UP as u32,
            series: Some(step),
            seed: seed as u64,
            ..Scenario::new(pool, models, Arrivals::Trace(trace))
        };
        let mut told = told(&run(&scenario), lasts);
        told.hits.rotate_right(turn);
        told
    }
}

fn told(outcome: &Outcome, lasts: Duration) -> Run {
    let cached: u64 = outcome.endpoints.iter().map(|endpoint| endpoint.cached).sum();
    // Not the last step, which is not a whole one.
    let last = lasts - lasts / STEPS as u32;
    let during = outcome.series.iter().filter(|moment| moment.from < last && moment.arrived > 0);
    Run {
        latency: TOLD.map(|share| outcome.latency.quantile(share).as_nanos() as u64),
        failed: outcome.failed_share(),
        hits: outcome.hits(),
        jain: outcome.jain(),
        cached: cached as f64 / outcome.requests.max(1) as f64,
        retries: outcome.retries,
        imbalance: during.map(|moment| (moment.from.as_secs_f64(), most(&moment.hits))).collect(),
    }
}

/// The endpoint in the middle, by the mean of its service.
fn typical(fit: &Fit) -> &EndpointFit {
    let mut order: Vec<_> = fit.endpoints.iter().collect();
    order.sort_by_key(|endpoint| endpoint.service.mean());
    order[order.len() / 2]
}

fn model(endpoint: &EndpointFit, fit: &Fit) -> EndpointModel {
    let mut model = EndpointModel::new(endpoint.concurrency, service(&endpoint.service));
    model.cache = match (&fit.cache, &endpoint.hit) {
        (Some(cache), Some(hit)) => Some(Cache { objects: cache.objects, hit: service(hit) }),
        _ => None,
    };
    model
}

fn service(sample: &Sample) -> Service {
    let nanos = Duration::from_nanos;
    let (least, steps) = sample.steps(SERVICE_STEPS);
    let steps: Vec<_> = steps.into_iter().map(|(upper, count)| (nanos(upper), count)).collect();
    match Steps::new(nanos(least), &steps) {
        Some(steps) => Service::Histogram(Arc::new(steps)),
        None => Service::Constant(nanos(sample.mean())),
    }
}

/// All subjects on all parts; the answer has a row for each subject and a column for each part, whoever
/// came first. `done` hears how many runs are over.
pub(crate) fn run_all(
    log: &Log,
    subjects: &[Subject<'_>],
    parts: &[Range<usize>],
    done: &(dyn Fn(usize) + Sync),
) -> Vec<Vec<Run>> {
    let mut traces = HashMap::new();
    for subject in subjects {
        for (seed, part) in parts.iter().enumerate() {
            let trace = || Arc::new(traced(log, part.clone(), subject.key));
            // Of a short log all parts are the whole.
            let first = parts.iter().position(|other| other == part).unwrap_or(seed);
            let shared = traces.entry((subject.key, first)).or_insert_with(trace).clone();
            traces.insert((subject.key, seed), shared);
        }
    }
    let count = subjects.len() * parts.len();
    let next = AtomicUsize::new(0);
    let over = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Run>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(result) = results.get(number) else { return };
            let run = subjects[number / parts.len()].run(&traces, number % parts.len());
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(run);
            done(over.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(count.max(1));
    thread::scope(|scope| (0..threads).for_each(|_| _ = scope.spawn(work)));
    let runs: Vec<Run> = results
        .into_iter()
        .filter_map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect();
    runs.chunks(parts.len()).map(<[Run]>::to_vec).collect()
}

/// The name of an algorithm, for sorting by how simple it is: what looks at least comes first.
pub(crate) fn simplicity(algorithm: &Algorithm) -> usize {
    const ORDER: [&str; 8] = [
        "round_robin",
        "least_connections",
        "power_of_two",
        "random",
        "maglev",
        "hash",
        "peak_ewma",
        "least_response_time",
    ];
    let name = algorithm.listing().name;
    ORDER.iter().position(|one| *one == name).unwrap_or(ORDER.len())
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn a_long_log_is_covered_and_a_short_one_is_taken_whole() {
        assert_eq!(parts(1000, 3), [0..1000, 0..1000, 0..1000]);
        let long = parts(1_000_000, 5);
        assert_eq!(long[0], 0..200_000);
        assert_eq!(long[4], 800_000..1_000_000);
        assert!(long.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!(parts(300_000, 1).first(), Some(&(0..200_000)));
    }
}
