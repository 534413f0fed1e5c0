//! The ejections of one pool: who is out, until when, and why. The formulas are in `ejection.rs`.
//!
//! The data side counts in monotone counters that it keeps anyway (a [`Sample`]); nothing here is
//! touched by a request that succeeds. A request that fails and finds its endpoint's failures in a row
//! at [`Ejections::threshold`] or above calls [`Ejections::failed`], which decides at once. The control
//! side calls [`Ejections::observe`] ten times to once a second, which takes the counters' differences
//! into each endpoint's window, ends what is over and judges shares and latencies. Where several
//! endpoints qualify and there is not room for all, the worst go first.
//!
//! Room is counted among the endpoints that would take work otherwise, as last told by
//! [`Ejections::consider`]: when probes take more of those away, ejections end early, those first that
//! would have ended first. So the promised share holds after every call.
//!
//! Cost: `failed` O(1), but O(n) once per ejection that ends; `observe` O(n), about 30 ns an endpoint
//! (measured at 100 to 10,000); `consider` O(n log n) at worst. Memory: [`MEMBER_MAX`] bytes an
//! endpoint at most.

use std::cmp::Reverse;

use subak_base::{BitSet, Tick};

use crate::ejection::{EjectionReason, EjectionSpec, Standing};
use crate::transition::Transition;
use crate::window::{Counts, Window};

/// One endpoint's counters, read at one moment. All but the second grow for ever. What others say of
/// them is part of it: see [`Suspects`](crate::Suspects).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sample {
    /// Requests that failed.
    pub failed: u64,
    /// Requests that failed since the last that completed.
    pub consecutive: u32,
    /// Requests that completed.
    pub completed: u64,
    /// Responses that have begun and not ended, on which was waited for long: each once.
    pub lingered: u64,
    /// Sum of the latencies of the completed and the lingering ones, in microseconds.
    pub latency_us: u64,
    /// Those of the failed that timed out. They are no part of a row.
    pub late: u64,
    /// Whether the row of failures does not speak against the endpoint,
    pub row_is_doubtful: bool,
    /// and whether the share of failures does not.
    pub share_is_doubtful: bool,
}

impl Sample {
    /// What was counted since an earlier one.
    pub(crate) fn since(&self, earlier: &Sample) -> Counts {
        let difference = |now: u64, before: u64| now.saturating_sub(before);
        let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        Counts {
            completed: narrow(difference(self.completed, earlier.completed)),
            failed: narrow(difference(self.failed, earlier.failed)),
            late: narrow(difference(self.late, earlier.late)),
            lingered: narrow(difference(self.lingered, earlier.lingered)),
            latency_us: difference(self.latency_us, earlier.latency_us),
        }
    }
}

/// An ejection in force.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ejected {
    /// When it ends at the latest.
    pub until: Tick,
    /// What it was for.
    pub reason: EjectionReason,
    /// How often the endpoint has been ejected, less what was forgiven.
    pub count: u32,
}

/// An endpoint that was ejected or came back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EjectionChange {
    /// Its place in the pool.
    pub index: usize,
    /// What changed.
    pub transition: Transition<Standing, EjectionReason>,
}

/// The ejections of one pool.
#[derive(Clone, Debug)]
pub struct Ejections {
    spec: EjectionSpec,
    members: Box<[Member]>,
    considered: BitSet,
    /// How many of the considered may be ejected.
    room: usize,
    /// How many of them are.
    out: usize,
    /// The first moment at which an ejection ends.
    first_end: Tick,
}

/// Bytes an endpoint costs at most.
const MEMBER_MAX: usize = 400;

const _: () = assert!(size_of::<Member>() <= MEMBER_MAX);

#[derive(Clone, Debug, Default)]
struct Member {
    window: Window,
    /// The counters when they were last looked at; none before the first time.
    last: Option<Sample>,
    /// Failures up to here are those of an earlier stay.
    failed_before: u64,
    ejected: Option<Ejected>,
    /// Ejections so far, as of `in_since`.
    count: u32,
    in_since: Tick,
}

impl Ejections {
    /// A pool of `len` endpoints none of which is ejected, all considered.
    pub fn new(spec: EjectionSpec, len: usize) -> Ejections {
        Ejections {
            room: spec.room(len),
            spec,
            members: vec![Member::default(); len].into(),
            considered: BitSet::full(len),
            out: 0,
            first_end: Tick(u64::MAX),
        }
    }

    /// The same pool after a reload: for each endpoint of the new list, its place in the old one.
    /// Whoever stays keeps its window and its ejection. [`Ejections::consider`] follows, and ends the
    /// ejections for which the new pool has no room.
    pub fn carry(&self, spec: EjectionSpec, places: &[Option<usize>]) -> Ejections {
        let mut next = Ejections::new(spec, places.len());
        let same_window = next.spec.window == self.spec.window;
        for (member, place) in next.members.iter_mut().zip(places) {
            let before = place.and_then(|place| self.members.get(place));
            *member = before.cloned().unwrap_or_default();
            if !same_window {
                member.window = Window::default();
            }
        }
        next.recount();
        next
    }

    /// Failures in a row from which on a failing request calls [`Ejections::failed`]; none when it need
    /// not.
    pub fn threshold(&self) -> Option<u32> {
        self.spec.consecutive.map(|count| count.get())
    }

    /// The ejection of this endpoint, if one is in force.
    pub fn ejected(&self, index: usize, now: Tick) -> Option<&Ejected> {
        let ejected = self.members.get(index)?.ejected.as_ref();
        ejected.filter(|ejected| now < ejected.until)
    }

    /// A request has just failed here. Decides on failures in a row; appends what changed.
    pub fn failed(
        &mut self,
        index: usize,
        sample: &Sample,
        now: Tick,
        changes: &mut Vec<EjectionChange>,
    ) {
        if now >= self.first_end {
            self.end_what_is_over(now, changes);
        }
        if let Some(reason) = self.in_a_row(index, sample) {
            self.eject(index, reason, now, changes);
        }
    }

    /// Takes the counters of all endpoints in, ends what is over, judges. Appends what changed.
    pub fn observe(&mut self, samples: &[Sample], now: Tick, changes: &mut Vec<EjectionChange>) {
        self.end_what_is_over(now, changes);
        for (member, sample) in self.members.iter_mut().zip(samples) {
            member.count_in(&self.spec, sample, now);
        }
        let mut found: Vec<_> = self.candidates(samples).collect();
        found.sort_by_key(|(index, severity, _)| (Reverse(*severity), *index));
        for (index, _, reason) in found {
            self.eject(index, reason, now, changes);
        }
    }

    /// Says who would take work if it were not ejected: neither down by its probes or its agent, nor
    /// draining, nor in maintenance. Ends ejections for which there is no room any more.
    pub fn consider(&mut self, set: &BitSet, now: Tick, changes: &mut Vec<EjectionChange>) {
        if self.considered != *set {
            self.considered = set.clone();
            let members = self.members.len();
            self.room = self.spec.room(set.iter().take_while(|index| *index < members).count());
        }
        self.recount();
        self.end_what_is_over(now, changes);
        if self.out <= self.room {
            return;
        }
        let counted = (0..self.members.len()).filter(|index| self.is_counted(*index));
        let mut counted: Vec<_> = counted.collect();
        counted.sort_by_key(|index| self.members[*index].ejected.map(|ejected| ejected.until));
        for index in counted.into_iter().take(self.out - self.room) {
            self.end(index, EjectionReason::Room, now, changes);
        }
        self.recount();
    }

    /// Ends the ejection of this endpoint because somebody says so, and forgives all earlier ones.
    pub fn lift(&mut self, index: usize, now: Tick, changes: &mut Vec<EjectionChange>) {
        if index < self.members.len() {
            self.end(index, EjectionReason::Lifted, now, changes);
            self.members[index].count = 0;
            self.recount();
        }
    }

    /// Whether the endpoint takes up room.
    fn is_counted(&self, index: usize) -> bool {
        self.members[index].ejected.is_some() && self.considered.contains(index)
    }

    fn recount(&mut self) {
        self.out = (0..self.members.len()).filter(|index| self.is_counted(*index)).count();
        let ends = self.members.iter().filter_map(|member| member.ejected);
        self.first_end = ends.map(|ejected| ejected.until).min().unwrap_or(Tick(u64::MAX));
    }

    fn end_what_is_over(&mut self, now: Tick, changes: &mut Vec<EjectionChange>) {
        if now < self.first_end {
            return;
        }
        for index in 0..self.members.len() {
            if self.members[index].ejected.is_some_and(|ejected| now >= ejected.until) {
                self.end(index, EjectionReason::Over, now, changes);
            }
        }
        self.recount();
    }

    fn in_a_row(&self, index: usize, sample: &Sample) -> Option<EjectionReason> {
        let member = self.members.get(index).filter(|_| !sample.row_is_doubtful)?;
        // The counter goes on over an ejection; what failed before it counted already.
        let recent = sample.failed.saturating_sub(member.failed_before);
        let count = u64::from(sample.consecutive).min(recent);
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        (count >= self.threshold()?).then_some(EjectionReason::Consecutive(count))
    }

    /// Who is to be ejected, how bad it is, and why.
    fn candidates(
        &self,
        samples: &[Sample],
    ) -> impl Iterator<Item = (usize, Severity, EjectionReason)> {
        let median = self.spec.latency.and_then(|_| self.median_us());
        let present = (0..self.members.len().min(samples.len())).filter(|index| {
            self.considered.contains(*index) && self.members[*index].ejected.is_none()
        });
        present.filter_map(move |index| {
            let counts = self.members[index].window.total();
            let by_row = || {
                let reason = self.in_a_row(index, &samples[index])?;
                Some((Severity::InARow(samples[index].consecutive), reason))
            };
            let (severity, reason) = by_row()
                .or_else(|| self.by_share(&samples[index], counts))
                .or_else(|| self.by_latency(index, counts, median?))?;
            Some((index, severity, reason))
        })
    }

    fn by_share(&self, sample: &Sample, counts: Counts) -> Option<(Severity, EjectionReason)> {
        if sample.share_is_doubtful {
            return None;
        }
        let limit = u64::from(self.spec.share_per_mille?.get());
        let (failed, requests) = (u64::from(counts.failed), counts.requests());
        if requests == 0 || requests < u64::from(self.spec.min_requests) {
            return None;
        }
        let share = failed * 1000 / requests;
        let reason = EjectionReason::FailureShare { failed, requests };
        // By multiplication: a share just below the limit must not be rounded into it.
        (failed * 1000 >= limit * requests).then_some((Severity::Share(share), reason))
    }

    fn by_latency(
        &self,
        index: usize,
        counts: Counts,
        median_us: u64,
    ) -> Option<(Severity, EjectionReason)> {
        let mean_us = self.mean_us(counts)?;
        let limit_us = self.spec.limit_us(self.spec.latency?, median_us);
        let is_slow = mean_us > limit_us && self.members[index].window.is_mostly_above(limit_us);
        let [mean, median] = [mean_us, median_us].map(std::time::Duration::from_micros);
        is_slow.then_some((Severity::Latency(mean_us), EjectionReason::Latency { mean, median }))
    }

    /// The mean latency, where it is one of enough requests.
    fn mean_us(&self, counts: Counts) -> Option<u64> {
        counts.mean_us().filter(|_| counts.timed() >= self.spec.min_requests)
    }

    /// The lower median of the means of those that are in; none of fewer than two.
    fn median_us(&self) -> Option<u64> {
        let present =
            self.members.iter().enumerate().filter(|(index, member)| {
                self.considered.contains(*index) && member.ejected.is_none()
            });
        let mut means: Vec<u64> =
            present.filter_map(|(_, member)| self.mean_us(member.window.total())).collect();
        if means.len() < 2 {
            return None;
        }
        let middle = (means.len() - 1) / 2;
        Some(*means.select_nth_unstable(middle).1)
    }

    fn eject(
        &mut self,
        index: usize,
        reason: EjectionReason,
        now: Tick,
        changes: &mut Vec<EjectionChange>,
    ) {
        let is_in = self.considered.contains(index) && self.members[index].ejected.is_none();
        if !is_in || self.out >= self.room {
            return;
        }
        let member = &mut self.members[index];
        let forgiven = self.spec.forgiven(now.since(member.in_since));
        member.count = member.count.saturating_sub(forgiven).saturating_add(1);
        let until = now.after(self.spec.length(member.count));
        member.ejected = Some(Ejected { until, reason, count: member.count });
        member.window.clear();
        self.out += 1;
        self.first_end = self.first_end.min(until);
        let (from, to) = (Standing::In, Standing::Ejected { until });
        let transition = Transition { from, to, reason, at: now };
        changes.push(EjectionChange { index, transition });
    }

    /// Ends an ejection; a recount follows.
    fn end(
        &mut self,
        index: usize,
        reason: EjectionReason,
        now: Tick,
        changes: &mut Vec<EjectionChange>,
    ) {
        let member = &mut self.members[index];
        let Some(Ejected { until, .. }) = member.ejected.take() else { return };
        let at = until.min(now);
        member.in_since = at;
        member.failed_before = member.last.map_or(0, |sample| sample.failed);
        let (from, to) = (Standing::Ejected { until }, Standing::In);
        let transition = Transition { from, to, reason, at };
        changes.push(EjectionChange { index, transition });
    }
}

impl Member {
    /// Takes what was counted since the last time into the window. The first time only says where the
    /// counters stand; while the endpoint is ejected, its requests are those of before, and its window,
    /// emptied when it was ejected, stays empty.
    fn count_in(&mut self, spec: &EjectionSpec, sample: &Sample, now: Tick) {
        let last = self.last.replace(*sample);
        let Some(last) = last.filter(|_| self.ejected.is_none()) else { return };
        self.window.add(spec.window, now, sample.since(&last));
    }
}

/// Who goes first where there is not room for all: the larger.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Severity {
    Latency(u64),
    Share(u64),
    InARow(u32),
}
