//! Packets or bytes of the last 14 s: a ring of fourteen one-second buckets.
//!
//! A bucket is one 64-bit word and every change to it a pure function from old to new, so that a
//! pool can keep buckets in atomics and the simulator in plain arrays ([`Window`]).
//!
//! | bits | |
//! |---|---|
//! | 63..40 | the second it is about, modulo 2²⁴ (half a year) |
//! | 39..0 | the amount, two's complement, saturating |
//!
//! Amounts can be negative: a dispatch is charged what it is expected to take, and settled by the
//! difference to what it took, which may fall into a later bucket. The sum over the seconds that
//! count is never below zero.

use std::time::Duration;

use subak_base::{Tick, Weight};

/// How many buckets there are.
pub const BUCKETS: usize = 14;

/// How long each of them is.
pub const BUCKET: Duration = Duration::from_secs(1);

const SECOND: u64 = BUCKET.as_nanos() as u64;
const AMOUNT_BITS: u32 = 40;
const AMOUNT_MAX: i64 = (1 << (AMOUNT_BITS - 1)) - 1;
const SECOND_MASK: u64 = (1 << (64 - AMOUNT_BITS)) - 1;

/// Fourteen buckets of one endpoint.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Window([u64; BUCKETS]);

impl Window {
    /// Counts an amount now; negative ones take back what was charged too much.
    pub fn add(&mut self, now: Tick, amount: i64) {
        let bucket = &mut self.0[Window::place(now)];
        *bucket = Window::added(*bucket, now, amount);
    }

    /// The sum over the last 14 s, the second that has begun among them.
    pub fn sum(&self, now: Tick) -> u64 {
        Window::sum_of(self.0, now)
    }

    /// A window in which `sum` is spread evenly over all buckets.
    pub fn filled(now: Tick, sum: u64) -> Window {
        let mut window = Window::default();
        let ages = 0..BUCKETS as u64;
        ages.for_each(|age| {
            let (place, bucket) = Window::fill(now, sum, age);
            window.0[place] = bucket;
        });
        window
    }

    /// The bucket of this moment.
    pub fn place(now: Tick) -> usize {
        (second(now) % BUCKETS as u64) as usize
    }

    /// The bucket of this moment with an amount added, from its old value. A bucket that is still
    /// about an earlier second begins anew.
    #[inline]
    pub fn added(bucket: u64, now: Tick, amount: i64) -> u64 {
        let before =
            if second_of(bucket) == second(now) & SECOND_MASK { amount_of(bucket) } else { 0 };
        pack(second(now), before.saturating_add(amount))
    }

    /// The sum of these buckets over the last 14 s.
    #[inline]
    pub fn sum_of(buckets: impl IntoIterator<Item = u64>, now: Tick) -> u64 {
        let is_recent = |bucket: &u64| age_of(*bucket, now) < BUCKETS as u64;
        let sum: i64 = buckets.into_iter().filter(is_recent).map(amount_of).sum();
        sum.max(0) as u64
    }

    /// The place and the value of the bucket of `age` seconds ago when `sum` is spread evenly over
    /// the time that the buckets are about: of the second that has begun, only as much as has passed.
    /// More would be gone 14 s later all at once.
    pub fn fill(now: Tick, sum: u64, age: u64) -> (usize, u64) {
        let begun = now.0 % SECOND;
        let time = begun + (BUCKETS as u64 - 1) * SECOND;
        // What came since the beginning of the bucket, and of the one after it.
        let since = |nanos: u64| (u128::from(sum) * u128::from(nanos) / u128::from(time)) as u64;
        let amount = match age.checked_sub(1) {
            None => since(begun),
            Some(before) => since(begun + age * SECOND) - since(begun + before * SECOND),
        };
        // In the first seconds of all time there are fewer than 14; they count back past zero.
        let cycle = BUCKETS as u64 * (SECOND_MASK + 1);
        let second = second(now) + cycle - age;
        let amount = i64::try_from(amount).unwrap_or(AMOUNT_MAX);
        ((second % BUCKETS as u64) as usize, pack(second, amount))
    }

    /// What an endpoint that joins or returns starts with: the mean per weight of the others (their
    /// sums and weights) for its own weight. [`fill`](Window::fill) spreads it.
    pub fn joining(others: impl IntoIterator<Item = (u64, Weight)>, weight: Weight) -> u64 {
        let mut total = (0_u128, 0_u128);
        for (sum, weight) in others {
            total = (total.0 + u128::from(sum), total.1 + u128::from(weight.get()));
        }
        let mean = (total.0 * u128::from(weight.get())).checked_div(total.1).unwrap_or(0);
        u64::try_from(mean).unwrap_or(u64::MAX)
    }
}

fn second(now: Tick) -> u64 {
    now.0 / SECOND
}

fn pack(second: u64, amount: i64) -> u64 {
    let amount = amount.clamp(-AMOUNT_MAX, AMOUNT_MAX) as u64;
    (second & SECOND_MASK) << AMOUNT_BITS | amount & ((1 << AMOUNT_BITS) - 1)
}

fn second_of(bucket: u64) -> u64 {
    bucket >> AMOUNT_BITS
}

fn amount_of(bucket: u64) -> i64 {
    (bucket << (64 - AMOUNT_BITS)) as i64 >> (64 - AMOUNT_BITS)
}

/// Seconds since the bucket's own; a bucket that another worker wrote a moment ahead is of now.
fn age_of(bucket: u64, now: Tick) -> u64 {
    let age = second(now).wrapping_sub(second_of(bucket)) & SECOND_MASK;
    if age == SECOND_MASK { 0 } else { age }
}

#[cfg(test)]
mod tests {
    use super::{AMOUNT_MAX, Window, amount_of, pack};
    use proptest::prelude::*;
    use subak_base::{Tick, Weight};

    fn at(seconds: u64) -> Tick {
        Tick::from_millis(seconds * 1000 + 7)
    }

    #[test]
    fn what_came_in_the_last_14_seconds_counts() {
        let mut window = Window::default();
        window.add(at(100), 5);
        window.add(at(100), 2);
        window.add(at(107), 10);
        assert_eq!(window.sum(at(107)), 17);
        assert_eq!(window.sum(at(113)), 17);
        assert_eq!(window.sum(at(114)), 10);
        assert_eq!(window.sum(at(121)), 0);
    }

    #[test]
    fn a_charge_is_taken_back_and_the_sum_is_never_negative() {
        let mut window = Window::default();
        window.add(at(1), 20);
        window.add(at(3), -12);
        assert_eq!(window.sum(at(3)), 8);
        assert_eq!(window.sum(at(15)), 0, "the charge is forgotten before what was taken back");
    }

    #[test]
    fn a_worker_that_is_ahead_is_not_half_a_year_behind() {
        let mut window = Window::default();
        window.add(at(10), 4);
        assert_eq!(window.sum(at(9)), 4);
    }

    #[test]
    fn filled_windows_hold_their_sum_and_lose_it_evenly() {
        for sum in [0, 1, 13, 14, 1_400, 1_405] {
            for now in [0, 3, 500] {
                let window = Window::filled(at(now), sum);
                assert_eq!(window.sum(at(now)), sum);
                let after = window.sum(at(now + 7));
                // 7 ms of the second that had begun and six whole ones are left.
                assert!(after.abs_diff(sum * 6_007 / 13_007) <= 1, "{after} of {sum}");
                assert_eq!(window.sum(at(now + 14)), 0);
            }
        }
    }

    #[test]
    fn who_joins_starts_with_the_mean_for_its_weight() {
        let others = [(300, Weight(1)), (600, Weight(2)), (300, Weight(3))];
        assert_eq!(Window::joining(others, Weight(2)), 400);
        assert_eq!(Window::joining([], Weight(2)), 0);
    }

    #[test]
    fn amounts_saturate() {
        assert_eq!(amount_of(pack(7, i64::MAX)), AMOUNT_MAX);
        assert_eq!(amount_of(pack(7, i64::MIN)), -AMOUNT_MAX);
        let full = pack(7, AMOUNT_MAX);
        assert_eq!(Window::added(full, at(7), AMOUNT_MAX), full);
    }

    proptest! {
        #[test]
        fn equals_a_list_of_everything_that_came(
            events in prop::collection::vec((0_u64..4_000, 0_i64..1_000_000), 1..60),
        ) {
            let (mut window, mut list, mut now) = (Window::default(), Vec::new(), 0);
            for (pause, amount) in events {
                now += pause;
                let tick = Tick::from_millis(now);
                window.add(tick, amount);
                list.push((now / 1000, amount as u64));
                let recent = |came: &&(u64, u64)| came.0 + 14 > now / 1000;
                let expected: u64 = list.iter().filter(recent).map(|came| came.1).sum();
                prop_assert_eq!(window.sum(tick), expected);
            }
        }
    }
}
