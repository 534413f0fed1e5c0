//! How much of what costs Subak and gives it nothing has a client done on one HTTP/2 connection?
//!
//! A limit holds for ten seconds and has two parts: so many of a kind without any reason, and so many
//! more for each request that was answered and each frame of data that was sent. So a client that is
//! served much may ask for much: windows are updated as they are used up, and who pings for each piece
//! it gets is no attacker. Pure: the clock is asked only when a limit seems to be passed, for what is
//! counted is compared before the time is; so up to twice as many may come within ten seconds.

use std::num::NonZeroU32;
use std::time::Duration;

use subak_base::Tick;
use subak_config::Http2;
use subak_telemetry::Flood;

/// The time that limits are meant for.
const PERIOD: Duration = Duration::from_secs(10);

/// What has been counted in this period, or since nothing was too much.
#[derive(Debug)]
pub(crate) struct Account {
    limits: Http2,
    since: Tick,
    counts: [u32; Flood::ALL.len()],
    answered: u32,
    sent: u32,
}

impl Account {
    /// Nothing yet.
    pub(crate) fn new(limits: Http2, now: Tick) -> Account {
        Account { limits, since: now, counts: [0; Flood::ALL.len()], answered: 0, sent: 0 }
    }

    /// A request was answered completely.
    #[inline]
    pub(crate) fn answered(&mut self) {
        self.answered = self.answered.saturating_add(1);
    }

    /// So many frames of data were given to the client.
    #[inline]
    pub(crate) fn sent(&mut self, frames: u32) {
        self.sent = self.sent.saturating_add(frames);
    }

    /// One more of this. True: that is too much.
    #[inline]
    #[must_use]
    pub(crate) fn is_too_much(&mut self, flood: Flood, now: impl FnOnce() -> Tick) -> bool {
        let count = &mut self.counts[flood as usize];
        *count = count.saturating_add(1);
        *count > self.free(flood) && self.is_above(flood, now())
    }

    #[cold]
    fn is_above(&mut self, flood: Flood, now: Tick) -> bool {
        if now.since(self.since) >= PERIOD {
            *self = Account::new(self.limits, now);
            self.counts[flood as usize] = 1;
        }
        let allowed = u64::from(self.free(flood)) + self.explained(flood);
        u64::from(self.counts[flood as usize]) > allowed
    }

    /// How many there may be without any reason.
    fn free(&self, flood: Flood) -> u32 {
        let of = |limit: Option<NonZeroU32>| limit.map_or(u32::MAX, NonZeroU32::get);
        let (resets, frames) = (of(self.limits.resets), of(self.limits.control_frames));
        match flood {
            Flood::Resets => resets,
            Flood::MadeResets => resets.div_ceil(5),
            Flood::Pings | Flood::Priorities | Flood::Unknown => frames,
            Flood::Settings => frames.div_ceil(10),
            Flood::WindowUpdates => frames.saturating_mul(4),
            Flood::TinyWindows => frames.div_ceil(2),
            // Bounded where they are found, or by time.
            Flood::SmallData
            | Flood::Continuations
            | Flood::HeaderBomb
            | Flood::SlowHead
            | Flood::StalledReader => u32::MAX,
        }
    }

    /// How many more what was served explains.
    fn explained(&self, flood: Flood) -> u64 {
        let (answered, sent) = (u64::from(self.answered), u64::from(self.sent));
        match flood {
            Flood::Resets => answered / 2,
            // Some clients ping for each piece that they get, to measure the way.
            Flood::Pings => answered + sent,
            // Browsers say how urgent each request is, and say so again when that changes.
            Flood::Priorities | Flood::Unknown => 4 * answered,
            // Once for the stream and once for the connection, and again by who updates at halves.
            Flood::WindowUpdates => 2 * answered + 4 * sent,
            // The last piece before a window is full may be of any size.
            Flood::TinyWindows => sent / 8,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Http2 = Http2 {
        streams: 100,
        stream_window: 65_536,
        connection_window: 1 << 20,
        resets: NonZeroU32::new(50),
        control_frames: NonZeroU32::new(100),
        stalled_streams: NonZeroU32::new(16),
    };

    fn at(second: u64) -> Tick {
        Tick::from_millis(second * 1000)
    }

    /// How many of a kind come before it is too much, all in the same second; none: no end.
    fn allowed(account: &mut Account, flood: Flood, second: u64) -> Option<u32> {
        (0..100_000).find(|_| account.is_too_much(flood, || at(second)))
    }

    #[test]
    fn each_kind_has_its_limit_and_what_is_bounded_elsewhere_has_none() {
        for flood in Flood::ALL {
            let limit = match flood {
                Flood::Resets => Some(50),
                Flood::MadeResets => Some(10),
                Flood::Pings | Flood::Priorities | Flood::Unknown => Some(100),
                Flood::Settings => Some(10),
                Flood::WindowUpdates => Some(400),
                Flood::TinyWindows => Some(50),
                _ => None,
            };
            assert_eq!(allowed(&mut Account::new(LIMITS, at(5)), flood, 6), limit, "{flood:?}");
        }
    }

    #[test]
    fn unlimited_is_without_limit() {
        let limits = Http2 { resets: None, control_frames: None, ..LIMITS };
        for flood in Flood::ALL {
            assert_eq!(allowed(&mut Account::new(limits, at(0)), flood, 0), None, "{flood:?}");
        }
    }

    #[test]
    fn what_was_served_explains_more() {
        let served = |flood| {
            let mut account = Account::new(LIMITS, at(0));
            (0..40).for_each(|_| account.answered());
            account.sent(400);
            allowed(&mut account, flood, 1)
        };
        assert_eq!(served(Flood::Resets), Some(50 + 20));
        assert_eq!(served(Flood::Pings), Some(100 + 440));
        assert_eq!(served(Flood::WindowUpdates), Some(400 + 80 + 1600));
        assert_eq!(served(Flood::TinyWindows), Some(50 + 50));
        assert_eq!(served(Flood::Settings), Some(10), "nothing explains those");
        assert_eq!(served(Flood::MadeResets), Some(10));
    }

    #[test]
    fn a_steady_trickle_is_never_too_much_and_a_burst_after_it_is() {
        let mut account = Account::new(LIMITS, at(0));
        for second in 0..1000 {
            for _ in 0..9 {
                assert!(!account.is_too_much(Flood::Pings, || at(second)), "at second {second}");
            }
        }
        assert!(allowed(&mut account, Flood::Pings, 1001).expect("a limit") <= 200);
    }
}
