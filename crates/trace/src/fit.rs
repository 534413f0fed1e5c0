//! How do these endpoints work? A model of each, out of what the log tells.
//!
//! A logged latency is service and queueing together. What a request that found less than an
//! endpoint's slots at work took is service alone, first come, first served; so:
//!
//! 1. The mean latency by how many a request found tells the number of slots c: it is flat below c and
//!    rises by s ÷ c for each one more, which is fitted by least squares.
//! 2. The latencies of those that found fewer than c are the service times.
//! 3. Where the same thing is served faster by an endpoint that has served it lately, the endpoint has
//!    a cache (see `cache`).
//! 4. The log's own arrivals go through that model, to the endpoints they went to. If quantiles do not
//!    come out as logged, the model is no good, and nothing is said.

use std::fmt;

use subak_base::Rng;

use crate::cache::{self, CacheFit};
use crate::in_flight::{self, NOBODY_KNOWS};
use crate::log::{Log, NOWHERE, UNKNOWN};
use crate::queue::Queue;
use crate::recency;
use crate::sample::Sample;

/// Requests a log must have.
pub(crate) const FEWEST_REQUESTS: usize = 2_000;
/// For how long, in seconds.
const SHORTEST_S: u64 = 5;
/// Requests that an endpoint must have had while it was not full.
const FEWEST_IDLE: usize = 50;
/// Thousandths of the requests that must have a duration.
const KNOWN_PER_MILLE: usize = 900;
/// How far the replayed log's figures may be from the log's, in thousandths.
const TOLERANCE_PER_MILLE: [u64; FIGURES] = [150, 150, 200, 200, 200];
/// And in any case so far, in nanoseconds, where the log tells whole milliseconds.
const COARSE_NS: u64 = 1_000_000;
/// Above this many found at work, requests are taken together.
const MOST_FOUND: usize = 1024;
/// How much better, in variances, a model with a queue must be than one without.
const EVIDENCE: f64 = 10.0;

/// The quantiles by which a replay is held against its log, in thousandths.
pub(crate) const QUANTILES: [u64; 3] = [500, 950, 990];

/// What a replay is held against its log by: the quantiles, and the means of requests that found few
/// at work (the lower half of each endpoint's) and many (the upper tenth). Without these, logged
/// latencies would pass for service times and replay perfectly.
pub(crate) const FIGURES: usize = 5;
pub(crate) const FIGURE_NAMES: [&str; FIGURES] =
    ["p50", "p95", "p99", "mean with few others there", "mean with many others there"];

/// The model.
#[derive(Clone, Debug)]
pub(crate) struct Fit {
    pub(crate) endpoints: Vec<EndpointFit>,
    pub(crate) cache: Option<CacheFit>,
    /// The log replayed to the endpoints it went to.
    pub(crate) check: Check,
}

/// How one endpoint works.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct EndpointFit {
    pub(crate) requests: usize,
    /// Requests at once.
    pub(crate) concurrency: u32,
    /// Nobody had to wait: it may be more.
    pub(crate) is_at_least: bool,
    /// Of a request that it had not in its cache.
    pub(crate) service: Sample,
    /// Of one that it had.
    pub(crate) hit: Option<Sample>,
    /// It had too few requests of its own: its times are those of all.
    pub(crate) is_borrowed: bool,
    pub(crate) failed_per_mille: u32,
}

/// Figures of the log, and what came out of the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Check {
    pub(crate) logged: [u64; FIGURES],
    pub(crate) replayed: [u64; FIGURES],
    pub(crate) is_coarse: bool,
}

/// Why a log cannot tell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CannotTell(pub(crate) String);

impl fmt::Display for CannotTell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Check {
    /// What is too far off, if anything.
    pub(crate) fn misses(&self) -> Option<String> {
        let off = |place: usize| {
            let (logged, replayed) = (self.logged[place], self.replayed[place]);
            let tolerance = logged * TOLERANCE_PER_MILLE[place] / 1000;
            let tolerance = tolerance.max(if self.is_coarse { COARSE_NS } else { 0 });
            logged.abs_diff(replayed) > tolerance
        };
        let place = (0..FIGURES).find(|place| off(*place))?;
        let name = FIGURE_NAMES[place];
        let [logged, replayed] = [self.logged[place], self.replayed[place]].map(shown);
        let tolerance = TOLERANCE_PER_MILLE[place] / 10;
        Some(format!(
            "its {name} is {logged}, the replay's {replayed}: more than {tolerance} % off"
        ))
    }

    /// How far off it is at the worst, in thousandths.
    pub(crate) fn error_per_mille(&self) -> u64 {
        let error =
            |(logged, replayed): (&u64, &u64)| logged.abs_diff(*replayed) * 1000 / logged.max(&1);
        self.logged.iter().zip(&self.replayed).map(error).max().unwrap_or(0)
    }
}

/// A time for people.
pub(crate) fn shown(nanos: u64) -> String {
    match nanos {
        0..1_000_000 => format!("{:.0} µs", nanos as f64 / 1e3),
        1_000_000..100_000_000 => format!("{:.2} ms", nanos as f64 / 1e6),
        100_000_000..10_000_000_000 => format!("{:.0} ms", nanos as f64 / 1e6),
        _ => format!("{:.1} s", nanos as f64 / 1e9),
    }
}

/// Fits the model, or says why the log does not tell enough.
pub(crate) fn fit(log: &Log) -> Result<Fit, CannotTell> {
    enough(log)?;
    let found = in_flight::found(log);
    let order = in_flight::by_reaching(log);
    let mut slots = slots(log, &found);
    refine(log, &order, &found, &mut slots);
    // Those that did not wait: what they took is service.
    let mut idle: Vec<u32> = Vec::new();
    for index in &order {
        let (request, found) = (&log.requests[*index as usize], found[*index as usize]);
        let (slots, _) = slots[usize::from(request.endpoint)];
        if found != NOBODY_KNOWS && found < slots && !request.has_failed {
            idle.push(*index);
        }
    }
    let distances = if log.uris.len() > 1 { recency::distances(log, &order) } else { Vec::new() };
    let cache = cache::fit(log, &idle, &distances);
    let is_hit = |index: u32| match &cache {
        Some(cache) => distances[index as usize] < cache.objects,
        None => false,
    };
    let endpoints = services(log, &idle, &slots, is_hit)?;
    let check = replayed(log, &order, &found, &endpoints, is_hit);
    Ok(Fit { endpoints, cache, check })
}

/// Whether the log has what a fit needs.
fn enough(log: &Log) -> Result<(), CannotTell> {
    let refused = |why: String| Err(CannotTell(why));
    let count = log.requests.len();
    let named = log.requests.iter().filter(|request| request.endpoint != NOWHERE).count();
    if named < count || log.endpoints.is_empty() {
        return refused(
            "the log does not say which endpoint answered (nginx: $upstream_addr; HAProxy: %s; \
             Subak: endpoint)"
                .into(),
        );
    }
    if log.endpoints.len() < 2 {
        let one = &log.endpoints[0];
        return refused(format!("only one endpoint answered ({one}): there is nothing to balance"));
    }
    let known = log.requests.iter().filter(|request| request.latency != UNKNOWN).count();
    if known * 1000 < count * KNOWN_PER_MILLE {
        return refused(format!(
            "only {known} of {count} requests say how long they took (nginx: \
             $upstream_response_time; HAProxy: %Ta; Subak: total_ms)"
        ));
    }
    let first = log.requests.first().map_or(0, |request| request.arrived);
    let last = log.requests.last().map_or(0, |request| request.arrived);
    if count < FEWEST_REQUESTS || last - first < SHORTEST_S * 1_000_000_000 {
        return refused(format!(
            "it is too short: {count} requests in {}; {FEWEST_REQUESTS} in {SHORTEST_S} s are the \
             least",
            shown(last - first)
        ));
    }
    Ok(())
}

/// For each endpoint how many requests it works on at once, and whether that is only a lower bound.
fn slots(log: &Log, found: &[u32]) -> Vec<(u32, bool)> {
    let mut by_found = vec![vec![(0_u64, 0_f64); MOST_FOUND]; log.endpoints.len()];
    let mut squares = vec![0_f64; log.endpoints.len()];
    for (request, found) in log.requests.iter().zip(found) {
        if *found == NOBODY_KNOWS || request.has_failed {
            continue;
        }
        let endpoint = usize::from(request.endpoint);
        let latency = request.latency as f64;
        let (count, sum) = &mut by_found[endpoint][(*found as usize).min(MOST_FOUND - 1)];
        *count += 1;
        *sum += latency;
        squares[endpoint] += latency * latency;
    }
    by_found.iter().zip(squares).map(|(by_found, squares)| slots_of(by_found, squares)).collect()
}

fn slots_of(by_found: &[(u64, f64)], squares: f64) -> (u32, bool) {
    let most = by_found.iter().rposition(|(count, _)| *count > 0).unwrap_or(0);
    let (count, sum) =
        by_found.iter().fold((0, 0.0), |(count, sum), here| (count + here.0, sum + here.1));
    if count == 0 {
        return (1, true);
    }
    let mean = sum / count as f64;
    let variance = (squares / count as f64 - mean * mean).max(1.0);
    // The best mean service time for so many slots, and how badly it fits.
    let misfit = |slots: usize| {
        let shape = |found: usize| {
            let waiting = (found + 1).saturating_sub(slots);
            1.0 + waiting as f64 / slots as f64
        };
        let (mut dot, mut norm) = (0.0, 0.0);
        for (found, (count, sum)) in by_found[..=most].iter().enumerate() {
            dot += sum * shape(found);
            norm += *count as f64 * shape(found) * shape(found);
        }
        let service = dot / norm;
        let error = |(found, (count, sum)): (usize, &(u64, f64))| match count {
            0 => 0.0,
            count => {
                let off = sum / *count as f64 - service * shape(found);
                *count as f64 * off * off
            }
        };
        by_found[..=most].iter().enumerate().map(error).sum::<f64>()
    };
    let without_queue = misfit(most + 1);
    let mut best = (without_queue - EVIDENCE * variance, most + 1);
    for slots in 1..=most {
        let misfit = misfit(slots);
        if misfit < best.0 {
            best = (misfit, slots);
        }
    }
    (best.1 as u32, best.1 == most + 1)
}

/// The service times of each endpoint, of those requests that did not wait.
fn services(
    log: &Log,
    idle: &[u32],
    slots: &[(u32, bool)],
    is_hit: impl Fn(u32) -> bool,
) -> Result<Vec<EndpointFit>, CannotTell> {
    let mut times = vec![[Vec::new(), Vec::new()]; log.endpoints.len()];
    let mut of_all = [Vec::new(), Vec::new()];
    for index in idle {
        let request = &log.requests[*index as usize];
        let kind = usize::from(is_hit(*index));
        times[usize::from(request.endpoint)][kind].push(request.latency);
        of_all[kind].push(request.latency);
    }
    let has_cache = !of_all[1].is_empty();
    let of_all = of_all.map(Sample::new);
    let mut totals = vec![(0_usize, 0_u64); log.endpoints.len()];
    for request in &log.requests {
        let (count, failed) = &mut totals[usize::from(request.endpoint)];
        *count += 1;
        *failed += u64::from(request.has_failed);
    }
    let mut fits = Vec::new();
    for (endpoint, [misses, hits]) in times.into_iter().enumerate() {
        let (requests, failed) = totals[endpoint];
        let has_few = misses.len() + hits.len() < FEWEST_IDLE;
        if has_few && requests * 20 > log.requests.len() {
            let name = &log.endpoints[endpoint];
            let idle = misses.len() + hits.len();
            return Err(CannotTell(format!(
                "{name} was hardly ever below its limit: {idle} of its {requests} requests did not \
                 have to wait, and only these tell how long its work takes"
            )));
        }
        let choose = |own: Vec<u64>, all: &Sample| match own.len() < FEWEST_IDLE {
            true => all.clone(),
            false => Sample::new(own),
        };
        let (concurrency, is_at_least) = slots[endpoint];
        fits.push(EndpointFit {
            requests,
            concurrency,
            is_at_least,
            service: choose(misses, &of_all[0]),
            hit: has_cache.then(|| choose(hits, &of_all[1])),
            is_borrowed: has_few,
            failed_per_mille: ((failed * 1000 + requests as u64 / 2) / (requests as u64).max(1))
                as u32,
        });
    }
    Ok(fits)
}

/// Looks near each endpoint's number of slots for one that replays its log better. The line of mean
/// latencies is exact only for exponential service; this asks the queue itself.
fn refine(log: &Log, order: &[u32], found: &[u32], slots: &mut [(u32, bool)]) {
    let of = by_endpoint(log, order);
    for (endpoint, (slots, is_at_least)) in slots.iter_mut().enumerate() {
        if *is_at_least {
            continue;
        }
        let first = *slots;
        let near = [first, first - 1, first + 1, first / 2, first * 3 / 4, first * 5 / 4];
        let mut best = (u64::MAX, first);
        for concurrency in near.into_iter().filter(|concurrency| *concurrency > 0) {
            let is_idle = |index: &&u32| {
                let index = **index as usize;
                found[index] < concurrency && !log.requests[index].has_failed
            };
            let idle = of[endpoint].iter().filter(is_idle);
            let times = idle.map(|index| log.requests[*index as usize].latency).collect();
            let service = Sample::new(times);
            if service.len() < FEWEST_IDLE {
                continue;
            }
            let draw = |_, random: &mut Rng| service.draw(random);
            let queue = (concurrency, endpoint as u64);
            let mut tally = Tally::default();
            run(log, &of[endpoint], found, queue, draw, &mut tally);
            let error = tally.check(false).error_per_mille();
            if error < best.0 {
                best = (error, concurrency);
            }
        }
        *slots = best.1;
    }
}

/// The same requests, by endpoint.
fn by_endpoint(log: &Log, order: &[u32]) -> Vec<Vec<u32>> {
    let mut of: Vec<Vec<u32>> = vec![Vec::new(); log.endpoints.len()];
    order.iter().for_each(|index| {
        of[usize::from(log.requests[*index as usize].endpoint)].push(*index);
    });
    of
}

/// The log's arrivals, at the endpoints they went to, through the model.
fn replayed(
    log: &Log,
    order: &[u32],
    found: &[u32],
    endpoints: &[EndpointFit],
    is_hit: impl Fn(u32) -> bool,
) -> Check {
    let mut tally = Tally::default();
    let of = by_endpoint(log, order);
    for (number, endpoint) in endpoints.iter().enumerate() {
        let draw = |index, random: &mut Rng| match &endpoint.hit {
            Some(hit) if is_hit(index) => hit.draw(random),
            _ => endpoint.service.draw(random),
        };
        let queue = (endpoint.concurrency, number as u64);
        run(log, &of[number], found, queue, draw, &mut tally);
    }
    tally.check(log.is_coarse)
}

/// Latencies as logged and as replayed, with where each stands among its endpoint's: whether it found
/// few at work, or many.
#[derive(Default)]
struct Tally(Vec<(u64, u64, Crowd)>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Crowd {
    Few,
    Some,
    Many,
}

impl Tally {
    fn check(&self, is_coarse: bool) -> Check {
        let figures = |which: fn(&(u64, u64, Crowd)) -> u64| {
            let sample = Sample::new(self.0.iter().map(which).collect());
            let [p50, p95, p99] = QUANTILES.map(|quantile| sample.quantile(quantile));
            let mean = |crowd| {
                let those = self.0.iter().filter(|one| one.2 == crowd);
                Sample::new(those.map(which).collect()).mean()
            };
            [p50, p95, p99, mean(Crowd::Few), mean(Crowd::Many)]
        };
        Check { logged: figures(|one| one.0), replayed: figures(|one| one.1), is_coarse }
    }
}

/// One endpoint's requests through a queue.
fn run(
    log: &Log,
    requests: &[u32],
    found: &[u32],
    queue: (u32, u64),
    service: impl Fn(u32, &mut Rng) -> u64,
    tally: &mut Tally,
) {
    let (concurrency, seed) = queue;
    let is_counted = |index: &&u32| {
        found[**index as usize] != NOBODY_KNOWS && !log.requests[**index as usize].has_failed
    };
    let crowds = requests.iter().filter(is_counted).map(|index| found[*index as usize].into());
    let crowds = Sample::new(crowds.collect());
    let (few, many) = (crowds.quantile(500), crowds.quantile(900));
    let mut queue = Queue::new(concurrency);
    let mut random = Rng::new(seed);
    for index in requests.iter().filter(is_counted) {
        let request = &log.requests[*index as usize];
        let service = service(*index, &mut random);
        let replayed = queue.done(request.reached, service) - request.reached;
        let crowd = match u64::from(found[*index as usize]) {
            found if found <= few => Crowd::Few,
            found if found >= many => Crowd::Many,
            _ => Crowd::Some,
        };
        tally.0.push((request.latency, replayed, crowd));
    }
}

#[cfg(test)]
mod tests;
