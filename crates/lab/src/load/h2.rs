//! The generator's loop for HTTP/2, on the h2 library and one thread's runtime: the same plan, the
//! same report. Requests share the plan's connections as streams; what one exchange does is in
//! `exchange.rs`.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use subak_base::Rng;
use tokio::sync::Notify;
use tokio::task::LocalSet;

use super::exchange::{Connections, Exchanged};
use super::plan::{LoadPlan, Shape, Think};
use super::profile::{exponential, uniform};
use super::recorder::{Recorder, Times, nanos};
use super::report::{Failure, LoadReport};
use super::schedule::Schedule;
use super::timetable::Due;
use super::watch::Watching;
use super::{Event, asked::Questions};
use crate::epoll::Timer;
use crate::machine;

/// The most requests of an open loop that are under way at once.
const MOST_IN_FLIGHT: u64 = 100_000;
/// Pause before a user whose request failed asks again.
const PAUSE: Duration = Duration::from_millis(10);
/// How often users, the window and the wish to stop are looked at.
const TICK: Duration = Duration::from_millis(10);

/// What all tasks of a run share.
struct Run {
    plan: LoadPlan,
    origin: Instant,
    connections: Connections,
    questions: RefCell<Questions>,
    recorder: RefCell<Recorder>,
    /// Of an open loop.
    schedule: RefCell<Option<Schedule>>,
    rng: RefCell<Rng>,
    counting: Cell<bool>,
    /// When the window begins: what is due earlier is not counted.
    begins_ns: Cell<u64>,
    asking: Cell<bool>,
    asked: Cell<u64>,
    over: Cell<u64>,
    in_flight: Cell<u64>,
    /// Those among them that belong to the window, by target.
    counted_in_flight: Box<[Cell<u64>]>,
    /// Users wanted now, and those there are.
    users: Cell<usize>,
    alive: RefCell<Vec<bool>>,
    freed: Notify,
    /// The window is to open, and has.
    opens: Notify,
}

/// A request that begins.
struct Begun {
    times: Times,
    /// It belongs to the window.
    counted: bool,
    /// When it could have begun.
    could_ns: u64,
    /// The places of whom it asks, of what, and of whom X-Forwarded-For names.
    target: usize,
    question: usize,
    who: usize,
}

pub(super) fn run(
    plan: &LoadPlan,
    stop: &AtomicBool,
    on: &mut dyn FnMut(Event<'_>),
) -> io::Result<LoadReport> {
    machine::exact_timers();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let run = Rc::new(Run {
        plan: plan.clone(),
        origin: Instant::now(),
        connections: Connections::new(plan),
        questions: RefCell::new(Questions::new(&plan.requests, &plan.host, false, plan.seed)),
        recorder: RefCell::new(Recorder::new(plan)),
        schedule: RefCell::new(Schedule::of(plan)),
        rng: RefCell::new(Rng::new(!plan.seed)),
        counting: Cell::new(false),
        begins_ns: Cell::new(0),
        asking: Cell::new(true),
        asked: Cell::new(0),
        over: Cell::new(0),
        in_flight: Cell::new(0),
        counted_in_flight: plan.targets.iter().map(|_| Cell::new(0)).collect(),
        users: Cell::new(0),
        alive: RefCell::default(),
        freed: Notify::new(),
        opens: Notify::new(),
    });
    let tasks = LocalSet::new();
    let (elapsed, not_started, watch) = tasks.block_on(&runtime, control(&run, stop, on))?;
    drop(tasks);
    let run = Rc::into_inner(run).ok_or_else(|| io::Error::other("a task outlived the run"))?;
    let (received, sent, connections) = run.connections.traffic();
    let mut recorder = run.recorder.into_inner();
    (recorder.received, recorder.sent, recorder.connections) = (received, sent, connections);
    Ok(recorder.report(plan, elapsed, not_started, watch))
}

/// The window and its intervals, and the number of users.
async fn control(
    run: &Rc<Run>,
    stop: &AtomicBool,
    on: &mut dyn FnMut(Event<'_>),
) -> io::Result<(Duration, u64, super::watch::Watch)> {
    let plan = &run.plan;
    let first_ns = run.now();
    let warm_until_ns = first_ns.saturating_add(nanos(plan.warm_up));
    run.begins_ns.set(warm_until_ns);
    let mut watching = Watching::begin()?;
    let mut window = None;
    if plan.warm_up.is_zero() {
        window = Some(run.start_counting(on));
    }
    tokio::task::spawn_local(ask_when_due(run.clone(), first_ns));
    let (began_ns, ended_ns) = loop {
        let mut now_ns = run.now();
        let stopped = stop.load(Ordering::Relaxed);
        if window.is_none() && (now_ns >= warm_until_ns || stopped) {
            watching = Watching::begin()?;
            now_ns = run.start_counting(on);
            window = Some(now_ns);
        }
        let all = plan.requests_in_all.is_some_and(|requests| run.over.get() >= requests);
        if let Some(began_ns) = window {
            let ends_ns = began_ns.saturating_add(nanos(plan.length()));
            if all || now_ns >= ends_ns || stopped {
                break (began_ns, now_ns);
            }
            if run.recorder.borrow().interval_ends_ns().is_some_and(|end_ns| now_ns >= end_ns) {
                run.end_interval(began_ns, now_ns, on);
            }
        }
        if let Shape::Users { profile, .. } = &plan.shape {
            let elapsed = Duration::from_nanos(now_ns.saturating_sub(warm_until_ns));
            run.bring_users_to(profile.at(elapsed) as usize);
        }
        tokio::select! {
            () = tokio::time::sleep(TICK) => {}
            () = run.opens.notified() => {}
            () = run.freed.notified(), if plan.requests_in_all.is_some() => {}
        }
    };
    let until_ns = ended_ns.saturating_add(nanos(plan.answer_within));
    let finishes = plan.detail.finish && !stop.load(Ordering::Relaxed);
    let is_due = || run.next_due().is_some_and(|due_ns| first_ns + due_ns <= ended_ns);
    // What was due within the window is asked, even if we woke after its end.
    while finishes && is_due() && run.has_room() && run.may_ask() && run.now() < until_ns {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    run.asking.set(false);
    if finishes {
        while run.has_counted_in_flight() && run.now() < until_ns {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let now_ns = run.now();
        let mut recorder = run.recorder.borrow_mut();
        for (target, late) in run.counted_in_flight.iter().enumerate() {
            for _ in 0..late.get() {
                recorder.failed(target, &Times::default(), now_ns, Failure::Late);
            }
        }
    }
    run.counting.set(false);
    let watch = watching.end()?;
    on(Event::End);
    run.end_interval(began_ns, run.now(), on);
    let left = |schedule: &mut Schedule| schedule.left(ended_ns.saturating_sub(first_ns));
    let not_started = match plan.requests_in_all {
        None => run.schedule.borrow_mut().as_mut().map_or(0, left),
        Some(_) => 0,
    };
    Ok((Duration::from_nanos(ended_ns - began_ns), not_started, watch))
}

/// Open loop: a task for each request, when it is due.
async fn ask_when_due(run: Rc<Run>, first_ns: u64) {
    let Ok(timer) = Timer::new().and_then(Timer::registered) else { return };
    let mut freed_ns = 0;
    while let Some(due_ns) = run.next_due().map(|due_ns| first_ns + due_ns) {
        loop {
            let now_ns = run.now();
            if due_ns <= now_ns {
                break;
            }
            if timer.get_ref().set(Duration::from_nanos(due_ns - now_ns)).is_err() {
                return;
            }
            match timer.readable().await {
                Ok(mut ready) => ready.clear_ready(),
                Err(_) => return,
            }
        }
        // What belongs to the window waits for it to be open.
        while due_ns >= run.begins_ns.get() && !run.counting.get() && run.asking.get() {
            run.opens.notify_waiters();
            run.opens.notified().await;
        }
        while !run.has_room() {
            run.freed.notified().await;
            freed_ns = run.now();
        }
        if !run.may_ask() {
            return;
        }
        let begun = run.begin(due_ns, due_ns.max(freed_ns), 0);
        let asking = run.clone();
        tokio::task::spawn_local(async move { asking.ask(begun).await });
        // A burst must not keep what it asked from being sent.
        tokio::task::yield_now().await;
    }
}

/// Closed loop: one user, until there are fewer.
async fn user(run: Rc<Run>, index: usize) {
    let Shape::Users { think, .. } = run.plan.shape else { return };
    while index < run.users.get() && run.may_ask() {
        let start_ns = run.now();
        let begun = run.begin(start_ns, start_ns, index);
        let counted = begun.counted;
        let good = run.ask(begun).await;
        let think = run.think(think);
        if run.counting.get() && counted {
            let took_ns = run.now().saturating_sub(start_ns) + nanos(think);
            run.recorder.borrow_mut().iteration(took_ns);
        }
        let wait = if good { think } else { think.max(PAUSE) };
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }
    run.alive.borrow_mut()[index] = false;
}

impl Run {
    fn now(&self) -> u64 {
        nanos(self.origin.elapsed())
    }

    fn start_counting(&self, on: &mut dyn FnMut(Event<'_>)) -> u64 {
        on(Event::Start);
        self.counting.set(true);
        self.connections.forget_traffic();
        let now_ns = self.now();
        self.recorder.borrow_mut().begin(now_ns);
        self.opens.notify_waiters();
        now_ns
    }

    fn end_interval(&self, began_ns: u64, now_ns: u64, on: &mut dyn FnMut(Event<'_>)) {
        let elapsed = Duration::from_nanos(now_ns.saturating_sub(began_ns));
        let load = self.plan.load_at(elapsed);
        let mut recorder = self.recorder.borrow_mut();
        if let Some(moment) = recorder.end_interval(began_ns, now_ns, load, self.in_flight.get()) {
            on(Event::Moment(moment));
        }
    }

    /// When the next request of an open loop is due, from the run's beginning.
    fn next_due(&self) -> Option<u64> {
        self.schedule.borrow_mut().as_mut()?.due_ns()
    }

    fn has_counted_in_flight(&self) -> bool {
        self.counted_in_flight.iter().any(|in_flight| in_flight.get() > 0)
    }

    fn has_room(&self) -> bool {
        self.in_flight.get() < MOST_IN_FLIGHT
    }

    fn may_ask(&self) -> bool {
        let all = self.plan.requests_in_all;
        self.asking.get() && all.is_none_or(|requests| self.asked.get() < requests)
    }

    fn bring_users_to(self: &Rc<Run>, wanted: usize) {
        self.users.set(wanted);
        let mut recorder = self.recorder.borrow_mut();
        recorder.most_users = recorder.most_users.max(wanted as u64);
        let mut alive = self.alive.borrow_mut();
        if alive.len() < wanted {
            alive.resize(wanted, false);
        }
        for (index, alive) in alive.iter_mut().enumerate().take(wanted).filter(|(_, a)| !**a) {
            *alive = true;
            tokio::task::spawn_local(user(self.clone(), index));
        }
    }

    /// The next request begins; of an open loop, or of this user.
    fn begin(&self, intended_ns: u64, could_ns: u64, user: usize) -> Begun {
        let (mut schedule, number) = (self.schedule.borrow_mut(), self.asked.get() as usize);
        let (turn, said) = match schedule.as_mut() {
            Some(schedule) => (number, schedule.take()),
            None => (user, None),
        };
        let clients = self.plan.sources.forwarded.len();
        let (question, who) = match said {
            Some(Due { request, client, .. }) => (request as usize, client as usize),
            None => (self.questions.borrow_mut().next(), turn % clients.max(1)),
        };
        self.asked.set(self.asked.get() + 1);
        self.in_flight.set(self.in_flight.get() + 1);
        let counted = self.counting.get() && intended_ns >= self.begins_ns.get();
        let target = turn % self.plan.targets.len();
        if counted {
            let in_flight = &self.counted_in_flight[target];
            in_flight.set(in_flight.get() + 1);
        }
        let times = Times { intended: intended_ns, ..Times::default() };
        Begun { times, counted, could_ns, target, question, who }
    }

    /// One exchange, written down; whether it was a good one.
    async fn ask(&self, begun: Begun) -> bool {
        let Begun { mut times, counted, could_ns, target, question, who } = begun;
        let now_ns = self.now();
        times.asked = now_ns;
        if self.schedule.borrow().is_some() {
            let mut recorder = self.recorder.borrow_mut();
            recorder.most_users = recorder.most_users.max(self.in_flight.get());
            if counted && self.counting.get() {
                recorder.started(now_ns.saturating_sub(could_ns));
            }
        }
        let exchange =
            self.connections.exchange(&self.plan, target, question, who, &mut times, self.origin);
        let ended = tokio::time::timeout(self.plan.answer_within, exchange).await;
        let Exchanged { answer, end_ns } = match ended {
            Ok(exchanged) => exchanged,
            Err(_) => Exchanged { answer: Err(Failure::Late), end_ns: self.now() },
        };
        self.over.set(self.over.get() + 1);
        self.in_flight.set(self.in_flight.get() - 1);
        if counted {
            let in_flight = &self.counted_in_flight[target];
            in_flight.set(in_flight.get() - 1);
        }
        self.freed.notify_waiters();
        let counts = self.counting.get() && (counted || !self.plan.detail.finish);
        let good = answer.is_ok_and(|answer| (200..300).contains(&answer.status));
        // What nobody counts is forgotten.
        let unconnected = self.connections.unconnected();
        if counts {
            let mut recorder = self.recorder.borrow_mut();
            unconnected.iter().for_each(|error| recorder.unconnected(error));
            match answer {
                Ok(answer) => recorder.answered(target, &times, end_ns, answer),
                Err(kind) => recorder.failed(target, &times, end_ns, kind),
            }
        }
        good
    }

    fn think(&self, think: Think) -> Duration {
        match think {
            Think::None => Duration::ZERO,
            Think::Constant(time) => time,
            Think::Between(from, to) => {
                from + to.saturating_sub(from).mul_f64(uniform(&mut self.rng.borrow_mut()))
            }
            Think::Exponential(mean) => mean.mul_f64(exponential(&mut self.rng.borrow_mut())),
        }
    }
}
