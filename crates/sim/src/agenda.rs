//! What happens when: a heap for what comes in any order, lines for time limits, which come in order
//! because all of a kind are equally long.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The end of time.
pub(crate) const NEVER: u64 = u64::MAX;

/// Something that will happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Coming {
    /// The work at this place of its list leaves its slot.
    Done(u32),
    /// Its answer has come to the balancer.
    Answered(u32),
    /// This user has thought enough.
    Wakes(u32),
    /// The probe at this place of its list is answered.
    Probed(u32),
}

/// What will happen, the earliest first; of several at one moment, as they were put in.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    /// The moment, the order, the kind and its number, in one word: 64, 30, 2 and 32 bits.
    heap: BinaryHeap<Reverse<u128>>,
    order: u32,
}

/// Orders that there are before they begin anew.
const ORDERS: u32 = 1 << 30;

impl Agenda {
    #[inline]
    pub(crate) fn put(&mut self, at: u64, coming: Coming) {
        let (kind, number) = match coming {
            Coming::Done(number) => (0, number),
            Coming::Answered(number) => (1, number),
            Coming::Wakes(number) => (2, number),
            Coming::Probed(number) => (3, number),
        };
        self.order = (self.order + 1) % ORDERS;
        let low = u64::from(self.order << 2 | kind) << 32 | u64::from(number);
        self.heap.push(Reverse(u128::from(at) << 64 | u128::from(low)));
    }

    /// The moment of the earliest.
    #[inline]
    pub(crate) fn earliest(&self) -> u64 {
        self.heap.peek().map_or(NEVER, |Reverse(word)| (word >> 64) as u64)
    }

    /// How much is still to come.
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    #[inline]
    pub(crate) fn take(&mut self) -> Option<Coming> {
        let Reverse(word) = self.heap.pop()?;
        let number = word as u32;
        Some(match (word >> 32) as u32 & 3 {
            0 => Coming::Done(number),
            1 => Coming::Answered(number),
            2 => Coming::Wakes(number),
            _ => Coming::Probed(number),
        })
    }
}

/// Time limits of one kind. Most are met: what is over is taken out when it comes to the front.
#[derive(Debug)]
pub(crate) struct Limits {
    pub(crate) after: Option<u64>,
    line: VecDeque<Limit>,
}

/// When a flight's patience ends, and what it was at then: another number, and it is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limit {
    pub(crate) at: u64,
    pub(crate) flight: u32,
    pub(crate) mark: u32,
}

impl Limits {
    pub(crate) fn new(after: Option<std::time::Duration>) -> Limits {
        Limits { after: after.map(crate::histogram::nanos), line: VecDeque::new() }
    }

    /// Sets a limit from now on. Answers when the first of the line is due.
    #[inline]
    pub(crate) fn set(
        &mut self,
        now: u64,
        flight: u32,
        mark: u32,
        is_over: impl Fn(&Limit) -> bool,
    ) -> u64 {
        let Some(after) = self.after else { return NEVER };
        while let Some(first) = self.line.front()
            && is_over(first)
        {
            self.line.pop_front();
        }
        self.line.push_back(Limit { at: now.saturating_add(after), flight, mark });
        self.earliest()
    }

    #[inline]
    pub(crate) fn earliest(&self) -> u64 {
        self.line.front().map_or(NEVER, |first| first.at)
    }

    /// The first, if it is due.
    pub(crate) fn take(&mut self, now: u64) -> Option<Limit> {
        self.line.pop_front_if(|first| first.at <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_of_equals_the_one_put_in_first() {
        let mut agenda = Agenda::default();
        assert_eq!((agenda.earliest(), agenda.take()), (NEVER, None));
        agenda.put(5, Coming::Done(1));
        agenda.put(3, Coming::Wakes(u32::MAX));
        agenda.put(5, Coming::Answered(0));
        agenda.put(u64::MAX - 1, Coming::Probed(7));
        assert_eq!(agenda.earliest(), 3);
        let order: Vec<_> = std::iter::from_fn(|| agenda.take()).collect();
        let expected =
            [Coming::Wakes(u32::MAX), Coming::Done(1), Coming::Answered(0), Coming::Probed(7)];
        assert_eq!(order, expected);
    }

    #[test]
    fn limits_that_are_over_do_not_pile_up() {
        let mut limits = Limits::new(Some(std::time::Duration::from_nanos(100)));
        for now in 0..1000 {
            limits.set(now, 0, now as u32, |limit| u64::from(limit.mark) + 10 < now);
        }
        assert!(limits.line.len() <= 11, "{}", limits.line.len());
        assert_eq!(limits.take(limits.earliest() - 1), None);
        assert!(limits.take(limits.earliest()).is_some());
        assert_eq!(Limits::new(None).set(1, 0, 0, |_| false), NEVER);
    }
}
