//! Does every worker still turn? Each is asked by a message, and answers from its own loop.
//!
//! A worker that is stuck in a task, or whose thread does not run, does not answer. Who is asked has at
//! most one question before it, and a process that nobody watches asks none: it costs nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The control side's book of questions and answers.
#[derive(Debug)]
pub(crate) struct Heartbeats {
    asked: AtomicU64,
    answered: Vec<Arc<AtomicU64>>,
}

impl Heartbeats {
    pub(crate) fn new(workers: usize) -> Heartbeats {
        let answered = (0..workers).map(|_| Arc::default()).collect();
        Heartbeats { asked: AtomicU64::new(0), answered }
    }

    /// Where a worker puts the number of the last question it has answered.
    pub(crate) fn of(&self, worker: usize) -> Arc<AtomicU64> {
        self.answered[worker].clone()
    }

    /// The number of the next question; `None` while somebody has not answered the last one.
    pub(crate) fn next(&self) -> Option<u64> {
        self.silent().next().is_none().then(|| self.asked.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Workers that have not answered the last question.
    pub(crate) fn silent(&self) -> impl Iterator<Item = usize> {
        let asked = self.asked.load(Ordering::Relaxed);
        let late = move |answered: &Arc<AtomicU64>| answered.load(Ordering::Relaxed) < asked;
        self.answered.iter().enumerate().filter(move |(_, one)| late(one)).map(|(index, _)| index)
    }
}

#[cfg(test)]
mod tests {
    use super::Heartbeats;
    use std::sync::atomic::Ordering;

    #[test]
    fn nobody_is_asked_again_before_everybody_has_answered() {
        let heartbeats = Heartbeats::new(2);
        assert_eq!(heartbeats.silent().count(), 0);
        assert_eq!(heartbeats.next(), Some(1));
        assert_eq!(heartbeats.next(), None);
        heartbeats.of(1).store(1, Ordering::Relaxed);
        assert_eq!(heartbeats.silent().collect::<Vec<_>>(), [0]);
        assert_eq!(heartbeats.next(), None);
        heartbeats.of(0).store(1, Ordering::Relaxed);
        assert_eq!(heartbeats.silent().count(), 0);
        assert_eq!(heartbeats.next(), Some(2));
    }
}
