//! The share of an endpoint that has just come back: it grows from a little to all of its weight.
//!
//! `share(t) = from + (1 − from) · t / over`, linear in the time `t` since it came back, in fixed
//! point: 1,024 is the whole. It never falls, is never 0 (the endpoint would see no request and warm
//! nothing up) and is whole from `over` on. O(1).
//!
//! Two things are the pool's business: a single eligible endpoint takes all, whatever its share, since
//! shares only divide what there is; and who ramps: whoever comes back ([`crate::Availability::ramps_since`]),
//! not everybody at the start of the process, where all would ramp alike and nothing be gained.

use std::time::Duration;

use subak_base::Tick;

/// The whole share.
pub const FULL_SHARE: u32 = 1024;

/// How an endpoint that comes back grows into its weight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlowStart {
    over: Duration,
    from: u32,
}

impl SlowStart {
    /// From `from_per_mille` thousandths of the weight to the whole over this time.
    pub fn new(over: Duration, from_per_mille: u32) -> SlowStart {
        let from = u64::from(from_per_mille) * u64::from(FULL_SHARE) / 1000;
        SlowStart { over, from: from.clamp(1, u64::from(FULL_SHARE)) as u32 }
    }

    /// From a tenth of the weight to the whole over this time.
    pub fn over(over: Duration) -> SlowStart {
        SlowStart::new(over, 100)
    }

    /// The share at a moment of an endpoint that came back at `since`, in 1/[`FULL_SHARE`].
    pub fn share(&self, since: Tick, now: Tick) -> u32 {
        let elapsed = now.since(since).as_nanos();
        let over = self.over.as_nanos();
        if elapsed >= over {
            return FULL_SHARE;
        }
        let grown = u128::from(FULL_SHARE - self.from) * elapsed / over;
        self.from + grown as u32
    }

    /// When an endpoint that came back at `since` has its whole share.
    pub fn ends(&self, since: Tick) -> Tick {
        since.after(self.over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_is_a_straight_line_from_a_tenth_to_the_whole() {
        let ramp = SlowStart::over(Duration::from_secs(30));
        let since = Tick::from_millis(500);
        let share = |seconds| ramp.share(since, since.after(Duration::from_secs(seconds)));
        assert_eq!([0, 10, 15, 20, 30, 31].map(share), [102, 409, 563, 716, 1024, 1024]);
        assert_eq!(ramp.share(since, Tick(0)), 102, "not yet back");
        assert_eq!(ramp.ends(since), Tick::from_millis(30_500));
        assert_eq!(
            SlowStart::new(Duration::from_secs(30), 0).share(since, since),
            1,
            "not nothing"
        );
        assert_eq!(SlowStart::over(Duration::ZERO).share(since, since), FULL_SHARE);
    }

    proptest! {
        #[test]
        fn it_never_falls_and_never_leaves_its_bounds(
            over in any::<u64>(), from in 0_u32..3000, since in any::<u64>(),
            moments in prop::collection::vec(any::<u64>(), 1..20),
        ) {
            let ramp = SlowStart::new(Duration::from_nanos(over), from);
            let mut moments = moments;
            moments.sort_unstable();
            let mut before = 0;
            for now in moments {
                let share = ramp.share(Tick(since), Tick(now));
                prop_assert!(share >= before.max(1) && share <= FULL_SHARE);
                if Tick(now) >= ramp.ends(Tick(since)) && ramp.ends(Tick(since)).0 < u64::MAX {
                    prop_assert_eq!(share, FULL_SHARE);
                }
                before = share;
            }
        }
    }
}
