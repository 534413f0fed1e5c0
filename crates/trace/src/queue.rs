//! One endpoint as a queue: first come, first served, so many at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// When its slots are free again.
#[derive(Debug)]
pub(crate) struct Queue {
    free: BinaryHeap<Reverse<u64>>,
}

impl Queue {
    /// With so many slots, at least one.
    pub(crate) fn new(concurrency: u32) -> Queue {
        Queue { free: (0..concurrency.max(1)).map(|_| Reverse(0)).collect() }
    }

    /// When a request is done that comes at `now`, not before the one before it, and takes `service`.
    pub(crate) fn done(&mut self, now: u64, service: u64) -> u64 {
        let Reverse(free) = self.free.pop().unwrap_or(Reverse(0));
        let done = now.max(free).saturating_add(service);
        self.free.push(Reverse(done));
        done
    }
}

#[cfg(test)]
mod tests {
    use super::Queue;

    #[test]
    fn two_slots_serve_two_at_once_and_the_third_waits_for_the_first() {
        let mut queue = Queue::new(2);
        assert_eq!(queue.done(0, 10), 10);
        assert_eq!(queue.done(1, 20), 21);
        assert_eq!(queue.done(2, 5), 15);
        assert_eq!(queue.done(30, 5), 35);
    }
}
