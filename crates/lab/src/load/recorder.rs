//! Where requests that ended are written down.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use super::plan::LoadPlan;
use super::report::{CheckResult, Failure, Failures, LoadReport, Moment, Phases, TargetResult};
use super::watch::Watch;
use crate::histogram::Histogram;

/// Statuses are counted below this.
const STATUSES: usize = 600;
/// The most intervals that are kept: a day of seconds.
const MOST_MOMENTS: usize = 86_400;

/// The times of one request, in nanoseconds from the beginning of the run. The later ones are known
/// only where phases are asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    /// When it was due (open loop) or its user began (closed loop).
    pub(super) intended: u64,
    /// When it did start: lateness of the answer counts from here.
    pub(super) asked: u64,
    /// When its connection was there; as `asked` on one that was kept.
    pub(super) ready: u64,
    /// When all of it was sent.
    pub(super) sent: u64,
    /// When the first byte of the answer came.
    pub(super) first: u64,
    /// How long connecting took, and the TLS handshake: zero on a connection that was kept.
    pub(super) connecting: u64,
    pub(super) tls: u64,
}

/// The interval that is under way.
struct Interval {
    every_ns: u64,
    began_ns: u64,
    latency: Histogram,
    failed: u64,
}

/// Everything counted.
pub(super) struct Recorder {
    answered: u64,
    failures: Failures,
    targets: Vec<TargetResult>,
    /// When the first and the last failed, and when the window began; nanoseconds.
    failed_ns: Option<(u64, u64)>,
    began_ns: u64,
    unconnected: BTreeMap<String, u64>,
    latency: Histogram,
    lateness: Histogram,
    statuses: Box<[u64]>,
    /// Passed and failed.
    checks: Vec<(u64, u64)>,
    bodies: u64,
    pub(super) received: u64,
    pub(super) sent: u64,
    pub(super) connections: u64,
    pub(super) longest_backlog: u64,
    pub(super) most_users: u64,
    phases: Option<Box<Phases>>,
    interval: Option<Interval>,
    moments: Vec<Moment>,
}

/// What is to be known of an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) body: u64,
    /// Checks that did not hold, a bit each.
    pub(super) failed_checks: u32,
}

impl Recorder {
    pub(super) fn new(plan: &LoadPlan) -> Recorder {
        Recorder {
            answered: 0,
            failures: Failures::default(),
            targets: plan.targets.iter().map(|target| TargetResult::new(*target)).collect(),
            failed_ns: None,
            began_ns: 0,
            unconnected: BTreeMap::new(),
            latency: Histogram::new(),
            lateness: Histogram::new(),
            statuses: vec![0; STATUSES].into_boxed_slice(),
            checks: vec![(0, 0); plan.checks.len()],
            bodies: 0,
            received: 0,
            sent: 0,
            connections: 0,
            longest_backlog: 0,
            most_users: 0,
            phases: plan.detail.phases.then(Box::default),
            interval: plan.detail.every.map(|every| Interval {
                every_ns: nanos(every).max(1_000_000),
                began_ns: 0,
                latency: Histogram::new(),
                failed: 0,
            }),
            moments: Vec::new(),
        }
    }

    pub(super) fn has_phases(&self) -> bool {
        self.phases.is_some()
    }

    /// A request has started, so late.
    pub(super) fn started(&mut self, late_ns: u64) {
        self.lateness.record(late_ns);
    }

    /// A whole answer came; `target` is the place of who gave it.
    pub(super) fn answered(&mut self, target: usize, times: &Times, end_ns: u64, answer: Answered) {
        let is_good = (200..300).contains(&answer.status);
        if let Some(count) = self.statuses.get_mut(usize::from(answer.status)) {
            *count += 1;
        }
        self.bodies += answer.body;
        let latency_ns = end_ns.saturating_sub(times.intended);
        if is_good {
            self.answered += 1;
            self.targets[target].answered += 1;
            self.latency.record(latency_ns);
        } else {
            self.fails(target, end_ns, Failure::Status);
        }
        for (index, (passed, failed)) in self.checks.iter_mut().enumerate() {
            *(if answer.failed_checks & (1 << index) == 0 { passed } else { failed }) += 1;
        }
        if let Some(interval) = &mut self.interval {
            match is_good {
                true => interval.latency.record(latency_ns),
                false => interval.failed += 1,
            }
        }
        if let Some(phases) = &mut self.phases {
            let duration_ns = end_ns.saturating_sub(times.ready);
            phases.blocked.record(times.ready.saturating_sub(times.intended));
            phases.connecting.record(times.connecting);
            phases.tls.record(times.tls);
            phases.sending.record(times.sent.saturating_sub(times.ready));
            phases.waiting.record(times.first.saturating_sub(times.sent));
            phases.receiving.record(end_ns.saturating_sub(times.first));
            phases.duration.record(duration_ns);
            if is_good {
                phases.answered.record(duration_ns);
            }
        }
    }

    /// No answer came, or none that is one.
    pub(super) fn failed(&mut self, target: usize, times: &Times, end_ns: u64, kind: Failure) {
        self.fails(target, end_ns, kind);
        if let Some(interval) = &mut self.interval {
            interval.failed += 1;
        }
        if let Some(phases) = &mut self.phases {
            let ready_ns = times.ready.max(times.asked);
            phases.blocked.record(ready_ns.saturating_sub(times.intended));
            phases.connecting.record(times.connecting);
            phases.tls.record(times.tls);
            phases.sending.record(0);
            phases.waiting.record(end_ns.saturating_sub(ready_ns));
            phases.receiving.record(0);
            phases.duration.record(end_ns.saturating_sub(ready_ns));
        }
    }

    fn fails(&mut self, target: usize, end_ns: u64, kind: Failure) {
        self.failures.add(kind);
        self.targets[target].failed += 1;
        let first_ns = self.failed_ns.map_or(end_ns, |(first_ns, _)| first_ns);
        self.failed_ns = Some((first_ns, end_ns));
    }

    /// A connection could not be made.
    pub(super) fn unconnected(&mut self, error: &io::Error) {
        *self.unconnected.entry(error.to_string()).or_default() += 1;
    }

    /// What a user did from one request to the next.
    pub(super) fn iteration(&mut self, took_ns: u64) {
        if let Some(phases) = &mut self.phases {
            phases.iteration.record(took_ns);
        }
    }

    /// The window begins.
    pub(super) fn begin(&mut self, now_ns: u64) {
        (self.received, self.sent, self.connections) = (0, 0, 0);
        self.began_ns = now_ns;
        self.unconnected.clear();
        if let Some(interval) = &mut self.interval {
            interval.began_ns = now_ns;
        }
    }

    /// When the interval under way ends.
    pub(super) fn interval_ends_ns(&self) -> Option<u64> {
        self.interval.as_ref().map(|interval| interval.began_ns + interval.every_ns)
    }

    /// Ends the interval; `load` and `in_flight` are what there is now.
    pub(super) fn end_interval(
        &mut self,
        window_ns: u64,
        now_ns: u64,
        load: f64,
        in_flight: u64,
    ) -> Option<&Moment> {
        let interval = self.interval.as_mut()?;
        let latency = &interval.latency;
        let moment = Moment {
            at: Duration::from_nanos(now_ns.saturating_sub(window_ns)),
            took: Duration::from_nanos(now_ns.saturating_sub(interval.began_ns)),
            load,
            in_flight,
            answered: latency.count(),
            failed: interval.failed,
            mean: latency.mean(),
            p50: latency.quantile(0.5),
            p95: latency.quantile(0.95),
            p99: latency.quantile(0.99),
            max: latency.max(),
        };
        interval.latency.clear();
        interval.failed = 0;
        interval.began_ns = now_ns;
        if self.moments.len() < MOST_MOMENTS {
            self.moments.push(moment);
        }
        self.moments.last()
    }

    pub(super) fn report(
        self,
        plan: &LoadPlan,
        elapsed: Duration,
        not_started: u64,
        watch: Watch,
    ) -> LoadReport {
        let counted = self.statuses.iter().enumerate().filter(|(_, count)| **count > 0);
        let statuses: BTreeMap<u16, u64> =
            counted.map(|(status, count)| (status as u16, *count)).collect();
        let results = plan.checks.iter().zip(&self.checks);
        let checks = results.map(|(check, (passed, failed))| CheckResult {
            name: check.to_string(),
            passed: *passed,
            failed: *failed,
        });
        let since = |ns: u64| Duration::from_nanos(ns.saturating_sub(self.began_ns));
        LoadReport {
            answered: self.answered,
            failures: self.failures,
            targets: self.targets,
            failed_between: self.failed_ns.map(|(first, last)| (since(first), since(last))),
            unconnected: self.unconnected,
            elapsed,
            latency: self.latency,
            longest_backlog: self.longest_backlog,
            not_started,
            lateness: self.lateness,
            statuses,
            checks: checks.collect(),
            received: self.received,
            sent: self.sent,
            bodies: self.bodies,
            connections: self.connections,
            most_users: self.most_users,
            phases: self.phases,
            moments: self.moments,
            watch,
        }
    }
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
