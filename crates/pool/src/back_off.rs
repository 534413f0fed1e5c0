//! Leaving an endpoint out for a while after it refused, or broke requests in a row.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use subak_base::Tick;
use subak_health::{Client, Fault};

use crate::spec::BackOffSpec;

/// One endpoint's back-off. Doubles with every failure after it was over, until a success.
///
/// When its time is over it is half open: one request at a time may [try](BackOff::enter) the endpoint,
/// and what becomes of that one decides. A trial that takes longer than the first length counts as failed,
/// and so the time to the next one doubles. A client whose trial broke tries again only when nobody else
/// has tried in the first length: one client cannot keep an endpoint out by requests that break it.
#[derive(Debug, Default)]
pub(crate) struct BackOff {
    /// The moment it is over, or the present try's time, in ns; 0 = none.
    until: AtomicU64,
    /// When it began, in ns.
    began: AtomicU64,
    /// Failures in a row that each began a new back-off.
    failures: AtomicU32,
    /// Whether a trial is under way.
    has_trial: AtomicBool,
    /// The number of the client whose trial broke last; 0 for none.
    broken_by: AtomicU32,
    /// Whether it is for connections that were not made: one that is made ends it.
    is_for_connecting: AtomicBool,
    /// Why, where more is known than that there was no connection.
    why: Mutex<Option<Arc<str>>>,
}

/// How a request comes to an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entry {
    /// Like any other.
    Open,
    /// As the one that tries whether the endpoint is well again.
    Trial,
}

impl BackOff {
    /// Whether the endpoint is left out at this moment.
    #[inline]
    pub(crate) fn is_active(&self, now: Tick) -> bool {
        let until = self.until.load(Ordering::Relaxed);
        until != 0 && until > now.0
    }

    /// Whether it has begun and no success has ended it, its time over or not.
    pub(crate) fn has_begun(&self) -> bool {
        self.until.load(Ordering::Relaxed) != 0
    }

    /// The moment it is over; zero without one.
    pub(crate) fn until(&self) -> Tick {
        Tick(self.until.load(Ordering::Relaxed))
    }

    /// Leave for a request; none while it lasts and while another request tries the endpoint.
    #[inline]
    pub(crate) fn enter(&self, spec: &BackOffSpec, client: Client, now: Tick) -> Option<Entry> {
        match self.until.load(Ordering::Relaxed) {
            0 => Some(Entry::Open),
            until => self.try_it(until, spec, client, now),
        }
    }

    #[cold]
    fn try_it(&self, until: u64, spec: &BackOffSpec, client: Client, now: Tick) -> Option<Entry> {
        if until > now.0 {
            return None;
        }
        let is_others_turn = now.since(Tick(until)) < spec.initial;
        let number = client.number();
        if number != 0 && number == self.broken_by.load(Ordering::Relaxed) && is_others_turn {
            return None;
        }
        let is_overdue = self.has_trial.load(Ordering::Relaxed);
        let hold = if is_overdue { self.length(spec) } else { spec.initial };
        let (before, next) = (until, now.after(hold).0);
        self.until.compare_exchange(before, next, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        self.has_trial.store(true, Ordering::Relaxed);
        if is_overdue {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        Some(Entry::Trial)
    }

    /// How long the next back-off lasts.
    fn length(&self, spec: &BackOffSpec) -> Duration {
        let doublings = self.failures.load(Ordering::Relaxed).min(20);
        spec.initial.saturating_mul(1 << doublings).min(spec.max)
    }

    /// Notes whose trial broke.
    pub(crate) fn broken_by(&self, client: Client) {
        self.broken_by.store(client.number(), Ordering::Relaxed);
    }

    /// Takes a failure in that speaks against the endpoint, of a request that came as `entry`. While a
    /// back-off is active another failure changes nothing: requests that were on their way already say
    /// nothing new.
    pub(crate) fn failed(
        &self,
        spec: &BackOffSpec,
        (entry, in_connecting): (Entry, bool),
        now: Tick,
    ) {
        let before = self.until.load(Ordering::Relaxed);
        if before > now.0 && entry == Entry::Open {
            return;
        }
        if entry == Entry::Trial {
            self.has_trial.store(false, Ordering::Relaxed);
        }
        let until = now.after(self.length(spec)).0;
        // Of several workers that see the failure at once, one counts it.
        if self.until.compare_exchange(before, until, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            self.began.store(now.0, Ordering::Relaxed);
            self.is_for_connecting.store(in_connecting, Ordering::Relaxed);
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A request that tried the endpoint has ended without saying how it is: another one may try.
    pub(crate) fn release(&self) {
        if self.has_begun() {
            self.has_trial.store(false, Ordering::Relaxed);
            self.until.store(1, Ordering::Relaxed);
        }
    }

    /// Takes in that a request was answered that went out at `since`. Answers whether that ended a
    /// back-off (running or over); a request from before it says nothing.
    #[inline]
    pub(crate) fn succeeded(&self, since: Tick) -> bool {
        self.until.load(Ordering::Relaxed) != 0 && self.end(since)
    }

    /// Takes in that a connection was made for a request that went out at `since`. Answers whether that
    /// ended a back-off.
    pub(crate) fn connected(&self, since: Tick) -> bool {
        self.is_for_connecting.load(Ordering::Relaxed) && self.succeeded(since)
    }

    #[cold]
    fn end(&self, since: Tick) -> bool {
        let is_later = since.0 >= self.began.load(Ordering::Relaxed);
        if is_later {
            self.clear();
        }
        is_later
    }

    /// Ends it, whatever it was for.
    pub(crate) fn clear(&self) {
        self.failures.store(0, Ordering::Relaxed);
        self.has_trial.store(false, Ordering::Relaxed);
        self.broken_by.store(0, Ordering::Relaxed);
        self.until.store(0, Ordering::Relaxed);
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Keeps why the endpoint refused.
    pub(crate) fn note(&self, why: &str) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.into());
    }

    /// What it is for, if it has begun.
    pub(crate) fn fault(&self) -> Option<Fault> {
        self.has_begun().then(|| Fault(self.why()))
    }

    /// Why it refused, where more is known than that it did.
    pub(crate) fn why(&self) -> Option<Arc<str>> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: BackOffSpec =
        BackOffSpec { initial: Duration::from_secs(1), max: Duration::from_secs(30) };

    const REFUSED: (Entry, bool) = (Entry::Open, true);

    #[test]
    fn it_doubles_from_one_to_the_next_and_stops_at_its_maximum() {
        let back_off = BackOff::default();
        let mut now = Tick::from_millis(5);
        for expected in [1, 2, 4, 8, 16, 30, 30] {
            back_off.failed(&SPEC, REFUSED, now);
            assert_eq!(back_off.until(), now.after(Duration::from_secs(expected)));
            assert!(back_off.is_active(now));
            now = back_off.until();
            assert!(!back_off.is_active(now));
        }
    }

    #[test]
    fn failures_while_it_lasts_count_once_and_a_success_ends_it() {
        let back_off = BackOff::default();
        let now = Tick::from_millis(5);
        (0..10).for_each(|_| back_off.failed(&SPEC, REFUSED, now));
        assert_eq!(back_off.until(), now.after(Duration::from_secs(1)));
        assert!(back_off.succeeded(now));
        assert!(!back_off.is_active(now) && !back_off.has_begun());
        assert!(!back_off.succeeded(now));
        back_off.failed(&SPEC, REFUSED, now);
        assert_eq!(back_off.until(), now.after(Duration::from_secs(1)));
    }

    #[test]
    fn when_its_time_is_over_one_request_at_a_time_tries_the_endpoint() {
        let back_off = BackOff::default();
        let mut now = Tick::from_millis(5);
        assert_eq!(back_off.enter(&SPEC, Client::UNKNOWN, now), Some(Entry::Open));
        back_off.failed(&SPEC, REFUSED, now);
        assert_eq!(back_off.enter(&SPEC, Client::UNKNOWN, now), None);
        for expected in [2, 4] {
            now = back_off.until();
            assert_eq!(back_off.enter(&SPEC, Client::UNKNOWN, now), Some(Entry::Trial));
            assert_eq!(back_off.enter(&SPEC, Client::UNKNOWN, now), None, "another one tries it");
            back_off.failed(&SPEC, (Entry::Trial, true), now);
            assert_eq!(back_off.until(), now.after(Duration::from_secs(expected)));
        }
        now = back_off.until();
        assert_eq!(back_off.enter(&SPEC, Client::UNKNOWN, now), Some(Entry::Trial));
        back_off.release();
        assert_eq!(
            back_off.enter(&SPEC, Client::UNKNOWN, now),
            Some(Entry::Trial),
            "the last one found nothing out"
        );
        // One that takes long does not hold the next back for ever.
        now = now.after(SPEC.initial);
        assert_eq!(back_off.enter(&SPEC, Client::UNKNOWN, now), Some(Entry::Trial));
        assert!(back_off.succeeded(now));
        assert_eq!(back_off.enter(&SPEC, Client::UNKNOWN, now), Some(Entry::Open));
        assert_eq!(back_off.enter(&SPEC, Client::UNKNOWN, now), Some(Entry::Open));
    }

    #[test]
    fn a_trial_that_overstays_counts_as_failed() {
        let back_off = BackOff::default();
        let mut now = Tick::from_millis(5);
        back_off.failed(&SPEC, (Entry::Open, false), now);
        now = back_off.until();
        assert_eq!(back_off.enter(&SPEC, Client::UNKNOWN, now), Some(Entry::Trial));
        assert_eq!(back_off.until(), now.after(SPEC.initial));
        for expected in [2, 4, 8, 16, 30, 30] {
            now = back_off.until();
            assert_eq!(back_off.enter(&SPEC, Client::UNKNOWN, now), Some(Entry::Trial));
            assert_eq!(back_off.until(), now.after(Duration::from_secs(expected)));
        }
        assert!(back_off.succeeded(now));
        assert_eq!(back_off.enter(&SPEC, Client::UNKNOWN, now), Some(Entry::Open));
    }

    #[test]
    fn a_client_whose_trial_broke_leaves_the_next_one_to_others() {
        let back_off = BackOff::default();
        let (poison, honest) = (Client::from_number(7), Client::from_number(8));
        back_off.failed(&SPEC, (Entry::Open, false), Tick::from_millis(5));
        let mut now = back_off.until();
        assert_eq!(back_off.enter(&SPEC, poison, now), Some(Entry::Trial));
        back_off.failed(&SPEC, (Entry::Trial, false), now);
        back_off.broken_by(poison);
        now = back_off.until();
        assert_eq!(back_off.enter(&SPEC, poison, now), None);
        assert_eq!(back_off.enter(&SPEC, honest, now), Some(Entry::Trial));
        back_off.release();
        // Where nobody else comes it may try again.
        back_off.failed(&SPEC, (Entry::Open, false), now);
        now = back_off.until().after(SPEC.initial);
        assert_eq!(back_off.enter(&SPEC, poison, now), Some(Entry::Trial));
    }

    #[test]
    fn neither_an_older_request_nor_a_mere_connection_ends_what_broken_requests_began() {
        let back_off = BackOff::default();
        let (before, now) = (Tick::from_millis(5), Tick::from_millis(50));
        back_off.failed(&SPEC, (Entry::Open, false), now);
        assert!(!back_off.succeeded(before), "it went out before");
        assert!(!back_off.connected(now), "it was not for want of connections");
        assert!(back_off.succeeded(now));
        back_off.failed(&SPEC, REFUSED, now);
        assert!(back_off.connected(now));
    }
}
