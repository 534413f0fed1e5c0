//! Waiting in line, first come first served.
//!
//! The lock is taken only while somebody waits. A freed slot notifies the first in line; whoever
//! leaves the line, served or not, has the next look too, because more than one slot may have come
//! free; whoever has no use for the slot tells those behind. A newcomer who joins an empty line must
//! look once more for a slot: it may have come free just before.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

/// A line of tasks that wait for a slot.
#[derive(Debug, Default)]
pub struct WaitQueue {
    waiting: AtomicUsize,
    line: Mutex<VecDeque<Arc<Place>>>,
}

#[derive(Debug)]
struct Place {
    notified: AtomicBool,
    waker: Mutex<Waker>,
}

/// A place in a line. Dropping it leaves the line, and the next in line may look for a slot.
#[derive(Debug)]
pub struct Waiter<'q> {
    queue: &'q WaitQueue,
    place: Arc<Place>,
}

impl WaitQueue {
    /// How many wait.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Joins the line, unless `limit` wait already.
    pub fn join(&self, limit: usize) -> Option<Waiter<'_>> {
        let mut line = self.lock();
        if line.len() >= limit {
            return None;
        }
        let place =
            Place { notified: AtomicBool::new(false), waker: Mutex::new(Waker::noop().clone()) };
        let place = Arc::new(place);
        line.push_back(place.clone());
        self.waiting.store(line.len(), Ordering::SeqCst);
        Some(Waiter { queue: self, place })
    }

    /// Says that a slot came free. Costs one load while nobody waits.
    #[inline]
    pub fn notify(&self) {
        if self.waiting() > 0 {
            self.notify_first();
        }
    }

    #[cold]
    fn notify_first(&self) {
        let line = self.lock();
        WaitQueue::notify_one_of(line.iter());
    }

    /// Notifies the first of these that is not notified yet. The line is locked: whoever leaves it
    /// has either been found here or finds its notice.
    fn notify_one_of<'p>(mut places: impl Iterator<Item = &'p Arc<Place>>) {
        if let Some(place) = places.find(|place| !place.notified.swap(true, Ordering::AcqRel)) {
            lock(&place.waker).wake_by_ref();
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Place>>> {
        lock(&self.line)
    }
}

impl Waiter<'_> {
    /// Whether nobody stands before this one.
    pub fn is_first(&self) -> bool {
        self.queue.lock().front().is_some_and(|first| Arc::ptr_eq(first, &self.place))
    }

    /// Ready when this one was notified since the last time.
    pub fn poll_notified(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.place.notified.swap(false, Ordering::Acquire) {
            return Poll::Ready(());
        }
        lock(&self.place.waker).clone_from(context.waker());
        // It may have come between the look and the waker.
        match self.place.notified.swap(false, Ordering::Acquire) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// Tells the next behind this one, who may have a use for what this one has none for.
    pub fn pass_on(&self) {
        let line = self.queue.lock();
        let behind = line.iter().skip_while(|place| !Arc::ptr_eq(place, &self.place)).skip(1);
        WaitQueue::notify_one_of(behind);
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut line = self.queue.lock();
        line.retain(|place| !Arc::ptr_eq(place, &self.place));
        self.queue.waiting.store(line.len(), Ordering::SeqCst);
        // With a slot in hand or not: more may be free than this one was told of, and a look that
        // finds nothing costs little.
        WaitQueue::notify_one_of(line.iter());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notified(waiter: &mut Waiter<'_>) -> bool {
        waiter.poll_notified(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn the_first_who_came_is_served_first_and_passes_the_word_on() {
        let queue = WaitQueue::default();
        let mut first = queue.join(10).unwrap();
        let mut second = queue.join(10).unwrap();
        assert!(first.is_first() && !second.is_first());
        queue.notify();
        assert!(!notified(&mut second));
        assert!(notified(&mut first));
        drop(first);
        assert!(second.is_first());
        assert!(notified(&mut second));
        drop(second);
        assert_eq!(queue.waiting(), 0);
    }

    #[test]
    fn a_notice_is_not_lost_with_the_one_it_was_meant_for() {
        let queue = WaitQueue::default();
        let gives_up = queue.join(10).unwrap();
        let mut stays = queue.join(10).unwrap();
        queue.notify();
        drop(gives_up);
        assert!(notified(&mut stays));
    }

    #[test]
    fn who_has_no_use_for_a_slot_tells_the_next_behind() {
        let queue = WaitQueue::default();
        let mut first = queue.join(10).unwrap();
        let mut second = queue.join(10).unwrap();
        let mut third = queue.join(10).unwrap();
        queue.notify();
        assert!(notified(&mut first));
        first.pass_on();
        assert!(notified(&mut second));
        assert!(!notified(&mut third) && !notified(&mut first));
        second.pass_on();
        assert!(notified(&mut third));
        third.pass_on();
        assert!(!notified(&mut first) && !notified(&mut second));
    }

    #[test]
    fn whoever_leaves_without_a_slot_has_the_next_look_again() {
        let queue = WaitQueue::default();
        let mut first = queue.join(10).unwrap();
        let mut second = queue.join(10).unwrap();
        queue.notify();
        assert!(notified(&mut first), "it looks, and finds nothing for itself");
        drop(first);
        assert!(notified(&mut second));
    }

    #[test]
    fn the_line_is_bounded() {
        let queue = WaitQueue::default();
        let one = queue.join(1);
        assert!(one.is_some());
        assert!(queue.join(1).is_none());
        drop(one);
        assert!(queue.join(1).is_some());
        assert!(queue.join(0).is_none());
    }
}
