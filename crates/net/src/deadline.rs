//! Time limits without a timer per request: one coarse wheel per worker.
//!
//! Setting a limit writes one cell. The wheel finds an entry at the moment it was queued for; if the
//! limit has moved on meanwhile the entry is queued again, else its task is woken. So a request that
//! sets five limits costs five stores, and an entry moves in the wheel about once per limit's length,
//! not once per request. Limits are never early, and late by at most [`STEP`] and what the worker lags
//! behind meanwhile.
//!
//! The wheel knows every task that waits with a limit, so it is also the way to wake them all when a
//! listener or the process drains: see [`wake_all`].

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

/// The wheel's resolution.
const STEP: Duration = Duration::from_millis(100);
/// How far ahead the wheel can queue: 102 s. Later limits are queued again on the way.
const SLOTS: usize = 1024;

/// A time limit of one task. Dropping it forgets the limit.
#[derive(Debug)]
pub struct Deadline {
    entry: Rc<Entry>,
}

#[derive(Debug)]
struct Entry {
    /// The step at which the limit is over; 0 = none.
    due: Cell<u64>,
    /// The step this entry is queued for; 0 = not in the wheel. Queue places that do not agree with
    /// it are leftovers.
    queued: Cell<u64>,
    waker: RefCell<Option<Waker>>,
}

struct Wheel {
    step: Cell<u64>,
    slots: RefCell<Vec<Vec<Rc<Entry>>>>,
}

/// Entries kept for the next limits.
const KEPT: usize = 16 * 1024;

thread_local! {
    /// Entries of limits that are gone. Most are still in the wheel and would stay there until their
    /// step comes: at a thousand limits a second, a hundred thousand of them.
    static FREE: RefCell<Vec<Rc<Entry>>> = const { RefCell::new(Vec::new()) };
    static WHEEL: Wheel = Wheel {
        step: Cell::new(1),
        slots: RefCell::new((0..SLOTS).map(|_| Vec::new()).collect()),
    };
}

impl Deadline {
    /// No limit yet.
    pub fn new() -> Deadline {
        let kept = FREE.with_borrow_mut(Vec::pop);
        let entry = kept.unwrap_or_else(|| {
            Rc::new(Entry { due: Cell::new(0), queued: Cell::new(0), waker: RefCell::new(None) })
        });
        Deadline { entry }
    }

    /// The limit is over `after` from now; replaces an earlier one.
    #[inline]
    pub fn set(&self, after: Duration) {
        WHEEL.with(|wheel| {
            let steps = (after.as_millis() as u64).div_ceil(STEP.as_millis() as u64);
            // One more: the current step is already partly over.
            let due = wheel.step.get().saturating_add(steps).saturating_add(1);
            self.entry.due.set(due);
            let queued = self.entry.queued.get();
            if queued == 0 || due < queued {
                wheel.queue(&self.entry, due);
            }
        });
    }

    /// Another hand on the limit. It belongs to whoever the limit belongs to: when that is dropped, the
    /// alarm is another's.
    pub fn alarm(&self) -> Alarm {
        Alarm(self.entry.clone())
    }

    /// Takes the limit away.
    #[inline]
    pub fn clear(&self) {
        self.entry.due.set(0);
    }

    /// Whether the limit is over. If not, the task is woken when it is, or by [`wake_all`].
    #[inline]
    pub fn expired(&self, context: &Context<'_>) -> bool {
        let due = self.entry.due.get();
        if due != 0 && WHEEL.with(|wheel| wheel.step.get() >= due) {
            return true;
        }
        let mut waker = self.entry.waker.borrow_mut();
        match &*waker {
            Some(known) if known.will_wake(context.waker()) => {}
            _ => *waker = Some(context.waker().clone()),
        }
        false
    }

    /// Waits until the limit is over.
    pub async fn passed(&self) {
        std::future::poll_fn(|context| match self.expired(context) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        })
        .await
    }
}

/// Ends the wait of a task from outside, before its limit is over.
#[derive(Debug)]
pub struct Alarm(Rc<Entry>);

impl Alarm {
    /// The limit is over now.
    pub fn ring(&self) {
        self.0.due.set(1);
        if let Some(waker) = &*self.0.waker.borrow() {
            waker.wake_by_ref();
        }
    }
}

impl Default for Deadline {
    fn default() -> Deadline {
        Deadline::new()
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.entry.due.set(0);
        self.entry.waker.take();
        // At the thread's end there is nobody to keep it for.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            if free.len() < KEPT {
                free.push(self.entry.clone());
            }
        });
    }
}

/// How long this worker has run, to within [`STEP`]. Costs a look at one cell.
#[inline]
pub fn uptime() -> Duration {
    let steps = WHEEL.with(|wheel| wheel.step.get());
    STEP.saturating_mul(u32::try_from(steps).unwrap_or(u32::MAX))
}

/// Wakes every task of this worker that waits with a limit, so that it looks around: its listener or
/// the process may be draining.
pub fn wake_all() {
    let wakers = WHEEL.with(|wheel| {
        let slots = wheel.slots.borrow();
        let entries = slots.iter().flatten();
        entries.filter_map(|entry| entry.waker.borrow().clone()).collect::<Vec<_>>()
    });
    wakers.into_iter().for_each(Waker::wake);
}

/// Turns this worker's wheel for ever; the worker spawns it once.
pub(crate) async fn turn() {
    let mut interval = tokio::time::interval(STEP);
    // A worker that lags behind does not make up for it: limits set in the meantime would be over
    // too early, all at once, just when everything is slow.
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        advance();
    }
}

/// Moves the wheel one step and wakes those whose limit is over.
fn advance() {
    WHEEL.with(|wheel| {
        let step = wheel.step.get() + 1;
        wheel.step.set(step);
        let place = step as usize % SLOTS;
        let mut found = std::mem::take(&mut wheel.slots.borrow_mut()[place]);
        for entry in found.drain(..) {
            if entry.queued.get() != step {
                continue;
            }
            entry.queued.set(0);
            let due = entry.due.get();
            if due > step {
                wheel.queue(&entry, due);
            } else if due != 0 {
                let waker = entry.waker.borrow().clone();
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
        }
        // The slot keeps its room, unless a burst made it large.
        if found.capacity() <= 1024 {
            let mut slots = wheel.slots.borrow_mut();
            if slots[place].is_empty() {
                slots[place] = found;
            }
        }
    });
}

impl Wheel {
    fn queue(&self, entry: &Rc<Entry>, due: u64) {
        let place = due.min(self.step.get() + SLOTS as u64 - 1);
        entry.queued.set(place);
        self.slots.borrow_mut()[place as usize % SLOTS].push(entry.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Count>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counting() -> (Arc<Count>, Waker) {
        let count = Arc::new(Count(AtomicUsize::new(0)));
        (count.clone(), Waker::from(count))
    }

    fn steps(count: u64) -> Duration {
        STEP * count as u32
    }

    #[test]
    fn a_limit_is_never_early_and_at_most_one_step_late() {
        let (woken, waker) = counting();
        let context = Context::from_waker(&waker);
        for length in [0, 1, 5, 1022, 1023, 1024, 5000] {
            let before = woken.0.load(Ordering::Relaxed);
            let deadline = Deadline::new();
            deadline.set(steps(length));
            for _ in 0..length {
                assert!(!deadline.expired(&context), "early: {length}");
                advance();
            }
            assert!(!deadline.expired(&context));
            advance();
            assert!(deadline.expired(&context), "late: {length}");
            assert_eq!(woken.0.load(Ordering::Relaxed), before + 1);
        }
    }

    #[test]
    fn a_limit_that_moves_on_does_not_fire_and_one_that_comes_forward_does() {
        let (woken, waker) = counting();
        let context = Context::from_waker(&waker);
        let deadline = Deadline::new();
        for _ in 0..100 {
            deadline.set(steps(3));
            assert!(!deadline.expired(&context));
            advance();
        }
        assert_eq!(woken.0.load(Ordering::Relaxed), 0);
        deadline.set(steps(500));
        deadline.set(steps(1));
        assert!(!deadline.expired(&context));
        advance();
        advance();
        assert!(deadline.expired(&context));
    }

    #[test]
    fn a_limit_that_is_set_on_a_worker_that_lags_behind_is_not_early() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(tokio::task::LocalSet::new().run_until(async {
            tokio::task::spawn_local(turn());
            tokio::task::yield_now().await;
            // As a worker that was busy, or had no processor, for five steps.
            std::thread::sleep(STEP * 5);
            let began = std::time::Instant::now();
            let deadline = Deadline::new();
            deadline.set(STEP * 2);
            deadline.passed().await;
            assert!(began.elapsed() >= STEP * 2, "after {:?}", began.elapsed());
        }));
    }

    #[test]
    fn a_dropped_limit_wakes_nobody() {
        let (woken, waker) = counting();
        let deadline = Deadline::new();
        deadline.set(steps(2));
        assert!(!deadline.expired(&Context::from_waker(&waker)));
        drop(deadline);
        (0..10).for_each(|_| advance());
        wake_all();
        assert_eq!(woken.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn limits_that_come_and_go_leave_nothing_behind_in_the_wheel() {
        let waker = counting().1;
        let held = || WHEEL.with(|wheel| wheel.slots.borrow().iter().map(Vec::len).sum::<usize>());
        let before = held();
        for round in 0..10_000 {
            let deadline = Deadline::new();
            deadline.set(steps(600));
            assert!(!deadline.expired(&Context::from_waker(&waker)));
            if round % 1000 == 0 {
                advance();
            }
        }
        assert!(held() <= before + 10, "{} entries", held() - before);
    }

    #[test]
    fn all_that_wait_with_a_limit_can_be_woken_at_once() {
        let (woken, waker) = counting();
        let deadlines: Vec<_> = (0..5).map(|_| Deadline::new()).collect();
        for deadline in &deadlines {
            deadline.set(steps(100));
            assert!(!deadline.expired(&Context::from_waker(&waker)));
        }
        wake_all();
        assert_eq!(woken.0.load(Ordering::Relaxed), 5);
    }
}
