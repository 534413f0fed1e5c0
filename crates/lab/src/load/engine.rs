//! The generator's loop for HTTP/1.1: the schedule, users, the measured window. What a connection does
//! is in `connection.rs`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use subak_base::Rng;

use super::asked::Questions;
use super::connection::{Slot, State};
use super::plan::{LoadPlan, Shape, Think};
use super::profile::{Profile, exponential, uniform};
use super::recorder::{Recorder, nanos};
use super::report::{Failure, LoadReport};
use super::schedule::Schedule;
use super::timetable::Due;
use super::transport::Secured;
use super::watch::Watching;
use super::{Event, secured};
use crate::epoll::Epoll;
use crate::machine;

/// What the first `recv` of an answer takes: a head, and a small body with it. The rest of a larger one
/// is dropped in the kernel.
const READ_BUFFER: usize = 4096;
/// The same where every byte has to be looked at: TLS, and checks of bodies.
const LOOK_BUFFER: usize = 16 * 1024;
/// What one dropping `recv` may take.
const DROP_AT_ONCE: usize = 256 * 1024;
/// Pause before a user whose request failed asks again, so that a dead target is not hammered.
const PAUSE_NS: u64 = 10_000_000;
/// How often late answers are looked for, and whether to stop.
const LATE_CHECK_NS: u64 = 100_000_000;
/// How often the number of users is brought to what the profile says.
const USERS_CHECK_NS: u64 = 10_000_000;

/// The window: before, within, after it with requests under way, over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Window {
    Before,
    Since(u64),
    Finishing { began_ns: u64, ended_ns: u64, until_ns: u64 },
}

/// Everything a run needs.
pub(super) struct Engine<'a> {
    pub(super) plan: &'a LoadPlan,
    pub(super) secured: Option<Secured>,
    /// Answers are looked at byte by byte: there are checks of bodies.
    pub(super) keeps: bool,
    pub(super) checks_heads: bool,
    origin: Instant,
    pub(super) epoll: Epoll,
    pub(super) slots: Vec<Slot>,
    pub(super) questions: Questions,
    pub(super) next_source: usize,
    pub(super) next_forwarded: usize,
    pub(super) recorder: Recorder,
    /// Whether what ends now is counted, and what starts now.
    pub(super) counting: bool,
    /// When the window begins: what is due earlier is not counted.
    begins_ns: u64,
    asking: bool,
    asked: u64,
    over: u64,
    in_flight: u64,
    /// Users who think or pause, soonest first.
    wakes: BinaryHeap<Reverse<(u64, usize)>>,
    users: usize,
    users_check_ns: u64,
    rng: Rng,
    /// Open loop: what is due next, connections to each target with nothing to do (longest idle first),
    /// and slots without a connection.
    schedule: Option<Schedule>,
    idle: Vec<VecDeque<usize>>,
    free: Vec<usize>,
    /// Open loop: since when a connection is free again, while requests wait for one.
    freed_ns: Option<u64>,
    pub(super) buffer: Box<[u8]>,
    pub(super) dropped: Box<[MaybeUninit<u8>]>,
}

impl<'a> Engine<'a> {
    pub(super) fn new(plan: &'a LoadPlan) -> io::Result<Engine<'a>> {
        let secured = secured(plan, b"http/1.1");
        let keeps = plan.checks.iter().any(super::check::Check::wants_body);
        let size = if keeps || secured.is_some() { LOOK_BUFFER } else { READ_BUFFER };
        Ok(Engine {
            plan,
            secured,
            keeps,
            checks_heads: !plan.checks.is_empty(),
            origin: Instant::now(),
            epoll: Epoll::new()?,
            slots: Vec::new(),
            questions: Questions::new(&plan.requests, &plan.host, plan.new_connections, plan.seed),
            next_source: 0,
            next_forwarded: 0,
            recorder: Recorder::new(plan),
            counting: false,
            begins_ns: 0,
            asking: true,
            asked: 0,
            over: 0,
            in_flight: 0,
            wakes: BinaryHeap::new(),
            users: 0,
            users_check_ns: 0,
            rng: Rng::new(!plan.seed),
            schedule: Schedule::of(plan),
            idle: vec![VecDeque::new(); plan.targets.len()],
            free: Vec::new(),
            freed_ns: None,
            buffer: vec![0; size].into_boxed_slice(),
            dropped: vec![MaybeUninit::uninit(); DROP_AT_ONCE].into_boxed_slice(),
        })
    }

    pub(super) fn run(
        mut self,
        stop: &AtomicBool,
        on: &mut dyn FnMut(Event<'_>),
    ) -> io::Result<LoadReport> {
        machine::exact_timers();
        let mut watching = Watching::begin()?;
        let mut window = Window::Before;
        if self.plan.warm_up.is_zero() {
            window = Window::Since(self.start_counting(on));
        }
        if let Shape::Rate { connections, .. } | Shape::Timetable { connections, .. } =
            self.plan.shape
        {
            for _ in 0..connections {
                let slot = self.new_slot();
                self.connect(slot);
            }
        }
        let first_ns = self.now();
        let warm_until_ns = first_ns.saturating_add(nanos(self.plan.warm_up));
        self.begins_ns = warm_until_ns;
        let mut next_late_check_ns = first_ns + LATE_CHECK_NS;
        loop {
            let mut now_ns = self.now();
            let stopped = stop.load(Ordering::Relaxed);
            if window == Window::Before && (now_ns >= warm_until_ns || stopped) {
                watching = Watching::begin()?;
                now_ns = self.start_counting(on);
                window = Window::Since(now_ns);
            }
            let ends_ns = match window {
                Window::Since(began_ns) => {
                    began_ns.max(warm_until_ns).saturating_add(nanos(self.plan.length()))
                }
                _ => u64::MAX,
            };
            let all = self.plan.requests_in_all.is_some_and(|requests| self.over >= requests);
            if let Window::Since(began_ns) = window
                && (all || now_ns >= ends_ns || stopped)
            {
                // Requests that a stop has cut off are nobody's fault.
                let finishes = self.plan.detail.finish && !all && !stopped;
                let wait_ns = if finishes { nanos(self.plan.answer_within) } else { 0 };
                let until_ns = now_ns.saturating_add(wait_ns);
                window = Window::Finishing { began_ns, ended_ns: now_ns, until_ns };
                if finishes && self.schedule.is_some() {
                    // What was due within the window is asked, even if we woke after its end.
                    self.start_due(first_ns);
                }
                self.asking = false;
                if !finishes {
                    self.in_flight = 0;
                }
                self.counting = finishes;
            }
            if let Window::Finishing { began_ns, ended_ns, until_ns } = window
                && (self.in_flight == 0 || now_ns >= until_ns)
            {
                return self.end(watching, first_ns, began_ns, ended_ns, on);
            }
            if now_ns >= next_late_check_ns {
                self.fail_late(now_ns);
                next_late_check_ns = now_ns + LATE_CHECK_NS;
            }
            let mut wake_ns = next_late_check_ns;
            match window {
                Window::Before => wake_ns = wake_ns.min(warm_until_ns),
                Window::Since(began_ns) => {
                    wake_ns = wake_ns.min(ends_ns);
                    if let Some(end_ns) = self.recorder.interval_ends_ns() {
                        if now_ns >= end_ns {
                            self.end_interval(began_ns, now_ns, on);
                        }
                        wake_ns = wake_ns.min(end_ns.max(now_ns));
                    }
                }
                Window::Finishing { until_ns, .. } => wake_ns = wake_ns.min(until_ns),
            }
            let plan = self.plan;
            let due_ns = match &plan.shape {
                Shape::Users { profile, .. } => self.users_due(profile, now_ns, warm_until_ns),
                Shape::Rate { .. } | Shape::Timetable { .. } => self.start_due(first_ns),
            };
            wake_ns = wake_ns.min(due_ns.unwrap_or(u64::MAX));
            let limit = Duration::from_nanos(wake_ns.saturating_sub(self.now()));
            for index in 0..self.epoll.wait(Some(limit))? {
                self.ready(self.epoll.token(index) as usize);
            }
        }
    }

    /// Opens the measured window and says when that was.
    fn start_counting(&mut self, on: &mut dyn FnMut(Event<'_>)) -> u64 {
        on(Event::Start);
        self.counting = true;
        let now_ns = self.now();
        self.recorder.begin(now_ns);
        for slot in &mut self.slots {
            slot.forget_traffic();
        }
        now_ns
    }

    fn end_interval(&mut self, began_ns: u64, now_ns: u64, on: &mut dyn FnMut(Event<'_>)) {
        let elapsed = Duration::from_nanos(now_ns.saturating_sub(began_ns));
        let load = self.plan.load_at(elapsed);
        if let Some(moment) = self.recorder.end_interval(began_ns, now_ns, load, self.in_flight) {
            on(Event::Moment(moment));
        }
    }

    /// The run is over.
    fn end(
        mut self,
        watching: Watching,
        first_ns: u64,
        began_ns: u64,
        ended_ns: u64,
        on: &mut dyn FnMut(Event<'_>),
    ) -> io::Result<LoadReport> {
        let watch = watching.end()?;
        on(Event::End);
        let now_ns = self.now();
        for slot in 0..self.slots.len() {
            let late = &self.slots[slot];
            if self.counting && late.is_under_way() && late.counted {
                self.recorder.failed(late.target, &late.times, now_ns, Failure::Late);
            }
            self.close(slot);
        }
        self.end_interval(began_ns, now_ns, on);
        let left = |schedule: &mut Schedule| schedule.left(ended_ns.saturating_sub(first_ns));
        let not_started = match self.plan.requests_in_all {
            None => self.schedule.as_mut().map_or(0, left),
            Some(_) => 0,
        };
        let elapsed = Duration::from_nanos(ended_ns - began_ns);
        Ok(self.recorder.report(self.plan, elapsed, not_started, watch))
    }

    /// Open loop: starts the requests that are due, as far as connections are free. Returns when the
    /// next one is due; `None` when only a free connection helps, or no more are to be asked.
    fn start_due(&mut self, first_ns: u64) -> Option<u64> {
        loop {
            if !self.may_ask() {
                return None;
            }
            let now_ns = self.now();
            let due_ns = first_ns + self.schedule.as_mut()?.due_ns()?;
            // What belongs to the window waits for it to be open.
            if due_ns > now_ns || !self.counting && due_ns >= self.begins_ns {
                self.freed_ns = None;
                return Some(due_ns);
            }
            let target = self.asked as usize % self.plan.targets.len();
            let Some(slot) = self.slot_for(target) else {
                if self.counting
                    && let Some(schedule) = &mut self.schedule
                {
                    let behind = schedule.behind(now_ns - first_ns);
                    self.recorder.longest_backlog = self.recorder.longest_backlog.max(behind);
                }
                self.freed_ns.get_or_insert(now_ns);
                return None;
            };
            let said = self.schedule.as_mut().and_then(Schedule::take);
            if self.belongs(due_ns) {
                // Waiting for a connection is the target's doing, starting late ours.
                let could_ns = self.freed_ns.map_or(due_ns, |freed_ns| freed_ns.max(due_ns));
                self.recorder.started(now_ns.saturating_sub(could_ns));
            }
            self.ask(slot, due_ns, now_ns, said);
        }
    }

    /// Closed loop: brings the number of users to what the profile says, and wakes those who have
    /// thought. Returns when the next one has.
    fn users_due(&mut self, profile: &Profile, now_ns: u64, begins_ns: u64) -> Option<u64> {
        if self.asking && now_ns >= self.users_check_ns {
            let elapsed = Duration::from_nanos(now_ns.saturating_sub(begins_ns));
            let wanted = profile.at(elapsed) as usize;
            while self.slots.len() < wanted {
                self.new_slot();
            }
            for user in self.users..wanted {
                self.slots[user].active = true;
                if self.slots[user].rests() {
                    self.ask_again(user);
                }
            }
            for user in wanted..self.users {
                self.slots[user].active = false;
                if self.slots[user].rests() {
                    self.close(user);
                }
            }
            self.users = wanted;
            self.recorder.most_users = self.recorder.most_users.max(wanted as u64);
            self.users_check_ns = now_ns + USERS_CHECK_NS;
        }
        while let Some(Reverse((due_ns, user))) = self.wakes.peek().copied()
            && due_ns <= now_ns
        {
            self.wakes.pop();
            // Another one may have been set since.
            if self.slots[user].wakes_ns == Some(due_ns) {
                self.slots[user].wakes_ns = None;
                if self.slots[user].active {
                    self.ask_again(user);
                }
            }
        }
        let next_ns = self.wakes.peek().map_or(u64::MAX, |Reverse((due_ns, _))| *due_ns);
        let check_ns =
            if profile.is_constant() || !self.asking { u64::MAX } else { self.users_check_ns };
        Some(next_ns.min(check_ns))
    }

    /// One more slot; targets have them in turn.
    fn new_slot(&mut self) -> usize {
        self.slots.push(Slot::new(self.slots.len() % self.plan.targets.len()));
        self.slots.len() - 1
    }

    /// Open loop: a slot for a request to this target, connected or not. Where there may be no more, a
    /// connection to another target that has nothing to do makes room.
    fn slot_for(&mut self, target: usize) -> Option<usize> {
        if let Some(slot) = self.idle[target].pop_front() {
            return Some(slot);
        }
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slots.len() < self.plan.most_connections() => self.new_slot(),
            None => {
                let most_idle = self.idle.iter_mut().max_by_key(|idle| idle.len());
                let slot = most_idle.and_then(VecDeque::pop_front)?;
                self.close(slot);
                slot
            }
        };
        self.slots[slot].target = target;
        Some(slot)
    }

    /// A user's next request, if there is to be one.
    fn ask_again(&mut self, slot: usize) {
        self.slots[slot].wakes_ns = None;
        if self.may_ask() {
            let now_ns = self.now();
            self.ask(slot, now_ns, now_ns, None);
        }
    }

    fn may_ask(&self) -> bool {
        self.asking && self.plan.requests_in_all.is_none_or(|requests| self.asked < requests)
    }

    /// Asks what is said, or else drawn.
    fn ask(&mut self, slot: usize, intended_ns: u64, now_ns: u64, said: Option<Due>) {
        self.asked += 1;
        self.in_flight += 1;
        if self.schedule.is_some() {
            self.recorder.most_users = self.recorder.most_users.max(self.in_flight);
        }
        self.question(slot, intended_ns, now_ns, said);
        match self.slots[slot].state {
            State::Absent => self.connect(slot),
            _ => self.send(slot),
        }
    }

    /// The connection has nothing to do: open loop.
    pub(super) fn rest(&mut self, slot: usize) {
        if self.schedule.is_some() {
            match self.slots[slot].state {
                State::Absent => self.free.push(slot),
                _ => self.idle[self.slots[slot].target].push_back(slot),
            }
            if self.freed_ns.is_some() {
                self.freed_ns = Some(self.now());
            }
        }
    }

    /// A connection ended that had nothing to do.
    pub(super) fn ended_idle(&mut self, slot: usize) {
        if self.schedule.is_some() {
            self.idle[self.slots[slot].target].retain(|idle| *idle != slot);
            self.free.push(slot);
        }
    }

    /// Whether a request that is due then, and starts now, belongs to the window.
    pub(super) fn belongs(&self, due_ns: u64) -> bool {
        self.counting && due_ns >= self.begins_ns
    }

    /// Whether a request that ends now, on this slot, counts.
    pub(super) fn counts(&self, slot: usize) -> bool {
        self.counting && (!self.plan.detail.finish || self.slots[slot].counted)
    }

    /// A request is over; its user thinks, or pauses after a failure.
    pub(super) fn done(&mut self, slot: usize, now_ns: u64, failed: bool) {
        self.over += 1;
        self.in_flight = self.in_flight.saturating_sub(1);
        let Shape::Users { think, .. } = self.plan.shape else { return self.rest(slot) };
        let think_ns = match think {
            Think::None => 0,
            Think::Constant(time) => nanos(time),
            Think::Between(from, to) => {
                let span_ns = nanos(to.saturating_sub(from)) as f64;
                nanos(from) + (uniform(&mut self.rng) * span_ns) as u64
            }
            Think::Exponential(mean) => (exponential(&mut self.rng) * nanos(mean) as f64) as u64,
        };
        if self.counts(slot) {
            let took_ns = now_ns.saturating_sub(self.slots[slot].times.intended);
            self.recorder.iteration(took_ns + think_ns);
        }
        if !self.slots[slot].active {
            return self.close(slot);
        }
        let wait_ns = if failed { think_ns.max(PAUSE_NS) } else { think_ns };
        if wait_ns == 0 {
            return self.ask_again(slot);
        }
        self.slots[slot].wakes_ns = Some(now_ns + wait_ns);
        self.wakes.push(Reverse((now_ns + wait_ns, slot)));
    }

    fn fail_late(&mut self, now_ns: u64) {
        let within_ns = nanos(self.plan.answer_within);
        for slot in 0..self.slots.len() {
            let connection = &self.slots[slot];
            if connection.is_under_way()
                && now_ns.saturating_sub(connection.times.asked) > within_ns
            {
                self.fail(slot, Failure::Late);
            }
        }
    }

    pub(super) fn now(&self) -> u64 {
        nanos(self.origin.elapsed())
    }
}
