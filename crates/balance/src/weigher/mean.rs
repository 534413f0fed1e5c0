//! The factor of an endpoint: C·(1 − L) ÷ the pool's mean of it.
//!
//! Where nobody has room left, all L being 1, that is nothing by nothing; then C ÷ the pool's mean
//! of C, which is the limit as the loads approach 1 together.

use super::{Factor, Ppm};

/// What an endpoint's own value is divided by, as sum and count, so that no mean is rounded.
pub(super) struct PoolMean {
    /// ΣC·(1 − L); below 2⁶⁰ for 2²⁰ endpoints.
    room: u64,
    /// ΣC.
    capacity: u64,
    count: u64,
}

impl PoolMean {
    /// Of the capacity and the load in force of each endpoint that counts.
    pub(super) fn of(each: impl Iterator<Item = (Ppm, Ppm)>) -> PoolMean {
        let none = PoolMean { room: 0, capacity: 0, count: 0 };
        each.fold(none, |sum, (capacity, load)| PoolMean {
            room: sum.room + room(capacity, load),
            capacity: sum.capacity + u64::from(capacity.get()),
            count: sum.count + 1,
        })
    }

    pub(super) fn factor(&self, capacity: Ppm, load: Ppm) -> Factor {
        match self.room {
            0 => Factor::ratio(u64::from(capacity.get()) * self.count, self.capacity),
            total => Factor::ratio(room(capacity, load) * self.count, total),
        }
    }
}

fn room(capacity: Ppm, load: Ppm) -> u64 {
    u64::from(capacity.get()) * u64::from(Ppm::ONE.get() - load.get())
}
