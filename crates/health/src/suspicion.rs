//! Does a failure speak against its endpoint, or against the request or its client?
//!
//! One client can make requests fail wherever they go: a URL that takes for ever, one that answers 500,
//! one that crashes what handles it. So no failure but a refused connection leaves an endpoint out by
//! itself. Evidence is weighed in three ways:
//!
//! - **Contrast.** The other endpoints must do better: since the row of failures began, they have
//!   completed some requests and failed in at most half of theirs (unless nobody asked them); over the window, the endpoint's share
//!   of failures is at least twice theirs. A request that fails everywhere moves nobody, and neither does
//!   a database that is gone.
//! - **Clients.** Where an endpoint serves several clients, two of them must have failed. Where one
//!   address is all there is (another proxy, a NAT, a test), its word suffices, for one endpoint of the
//!   pool in [`CLIENT_WINDOW`] and while the others fail in at most a sixth of their requests.
//! - **The same request elsewhere.** A request that broke here (reset, closed, garbage before the first
//!   byte of a response) and was answered by another endpoint is proof; one that broke there too is
//!   withdrawn.
//!
//! A timeout is the weakest evidence: it counts in a share of failures only, and only where
//! [`CLIENTS_KEPT`] clients had failures within [`CLIENT_WINDOW`].
//!
//! Nothing here is touched by a request that succeeds. Cost: O(1) a failure, `observe` O(n), some 30 ns
//! an endpoint. Memory: [`SUSPECT_MAX`] bytes an endpoint.

use core::net::IpAddr;
use std::time::Duration;

use subak_base::Tick;

use crate::ejection::EjectionSpec;
use crate::ejections::Sample;
use crate::window::{Counts, Window};

/// Requests in a row that broke before the first byte of a response, after which an endpoint is left out.
pub const BROKEN_IN_A_ROW: u32 = 3;

/// The time within which clients count as several, and in which a client that is alone moves one endpoint.
pub const CLIENT_WINDOW: Duration = Duration::from_secs(10);

/// Clients of an endpoint's failures that are remembered, and that timeouts must come from.
pub const CLIENTS_KEPT: usize = 3;

/// The time over which shares are compared in pools that do not eject.
const WINDOW: Duration = Duration::from_secs(10);

/// Requests the other endpoints must have completed since a row of failures began.
const OTHERS_LEAST: u64 = 3;

/// Bytes an endpoint costs at most.
const SUSPECT_MAX: usize = 512;

const _: () = assert!(size_of::<Member>() <= SUSPECT_MAX);

/// A client as a number, the same for all requests from one address (IPv6: from one /64).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Client(u32);

impl Client {
    /// Nobody knows which: counts as somebody else every time.
    pub const UNKNOWN: Client = Client(0);

    /// The client at this address.
    #[inline]
    pub fn of(ip: IpAddr) -> Client {
        let bits = match ip {
            IpAddr::V4(ip) => u64::from(ip.to_bits()),
            IpAddr::V6(ip) => match ip.to_ipv4_mapped() {
                Some(ip) => u64::from(ip.to_bits()),
                None => (ip.to_bits() >> 64) as u64,
            },
        };
        let mixed = bits.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Client(((mixed >> 32) as u32).max(1))
    }

    /// The client of this number.
    pub fn from_number(number: u32) -> Client {
        Client(number)
    }

    /// Its number; 0 for [`Client::UNKNOWN`].
    pub fn number(self) -> u32 {
        self.0
    }
}

/// What the other endpoints of a pool have done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Others {
    /// Requests they completed.
    pub completed: u64,
    /// Requests that failed there.
    pub failed: u64,
}

/// An endpoint at the moment of a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Scene {
    /// Its counters.
    pub sample: Sample,
    /// What the others have done.
    pub others: Others,
    /// Whether it has answered several clients lately.
    pub is_mixed: bool,
}

/// What is held against the endpoints of one pool.
#[derive(Clone, Debug)]
pub struct Suspects {
    members: Box<[Member]>,
    total: Counts,
    window: Duration,
    /// The endpoint that a client which is alone has moved, and until when it moves no other.
    moved: Option<(usize, Tick)>,
}

#[derive(Clone, Debug, Default)]
struct Member {
    window: Window,
    counts: Counts,
    /// The counters when they were last looked at; none before the first time.
    last: Option<Sample>,
    clients: Clients,
    /// What the others had done when the present row of failures began.
    others_before: Others,
    /// Requests of the present row that broke before the first byte of a response,
    broken: u32,
    /// and that another endpoint has answered.
    confirmed: u32,
}

impl Default for Suspects {
    /// Of a pool without endpoints.
    fn default() -> Suspects {
        Suspects::new(0)
    }
}

impl Suspects {
    /// A pool of `len` endpoints of which nothing is known.
    pub fn new(len: usize) -> Suspects {
        let members = vec![Member::default(); len].into();
        Suspects { members, total: Counts::default(), window: WINDOW, moved: None }
    }

    /// The same pool after a reload: for each endpoint of the new list, its place in the old one.
    pub fn carry(&self, places: &[Option<usize>]) -> Suspects {
        let mut next = Suspects::new(places.len());
        next.window = self.window;
        for (member, place) in next.members.iter_mut().zip(places) {
            let before = place.and_then(|place| self.members.get(place));
            *member = before.cloned().unwrap_or_default();
        }
        next
    }

    /// Takes the counters of all endpoints in.
    pub fn observe(&mut self, samples: &[Sample], spec: Option<&EjectionSpec>, now: Tick) {
        let window = spec.map_or(WINDOW, |spec| spec.window);
        if self.window != window {
            self.window = window;
            self.members.iter_mut().for_each(|member| member.window.clear());
        }
        self.total = Counts::default();
        for (member, sample) in self.members.iter_mut().zip(samples) {
            let fresh = member.fresh(sample);
            member.last = Some(*sample);
            member.window.add(window, now, fresh);
            member.counts = member.window.total();
            self.total.add(member.counts);
        }
    }

    /// A request of this client has just failed here, not by a timeout.
    pub fn failed(&mut self, index: usize, client: Client, scene: &Scene, now: Tick) {
        let Some(member) = self.members.get_mut(index) else { return };
        member.clients.note(client, now);
        if scene.sample.consecutive <= 1 {
            member.others_before = scene.others;
            (member.broken, member.confirmed) = (0, 0);
        }
    }

    /// A request of this client timed out here.
    pub fn late(&mut self, index: usize, client: Client, now: Tick) {
        if let Some(member) = self.members.get_mut(index) {
            member.clients.note(client, now);
        }
    }

    /// The request that has just [failed](Suspects::failed) broke before the first byte of a response.
    /// Answers whether that is enough to leave the endpoint out.
    pub fn broke(&mut self, index: usize, scene: &Scene, now: Tick) -> bool {
        let Some(member) = self.members.get_mut(index) else { return false };
        member.broken = member.broken.saturating_add(1);
        member.broken >= BROKEN_IN_A_ROW && self.row_speaks(index, scene, now)
    }

    /// A request that broke here was answered by another endpoint. Answers whether that is enough to
    /// leave this one out.
    pub fn confirmed(&mut self, index: usize, scene: &Scene) -> bool {
        let Some(member) = self.members.get_mut(index) else { return false };
        // It has answered somebody since.
        if scene.sample.consecutive == 0 {
            return false;
        }
        member.confirmed = member.confirmed.saturating_add(1);
        member.confirmed >= BROKEN_IN_A_ROW
    }

    /// A request that broke here broke at another endpoint too.
    pub fn withdrawn(&mut self, index: usize) {
        if let Some(member) = self.members.get_mut(index) {
            member.broken = member.broken.saturating_sub(1);
        }
    }

    /// Whether the present row of failures speaks against the endpoint. Whoever asks means to leave it
    /// out: a client that is alone has had its word then.
    pub fn row_speaks(&mut self, index: usize, scene: &Scene, now: Tick) -> bool {
        let Some(member) = self.members.get(index) else { return false };
        let before = member.others_before;
        let completed = scene.others.completed.saturating_sub(before.completed);
        let failed = scene.others.failed.saturating_sub(before.failed);
        let least = OTHERS_LEAST.min(u64::from(scene.sample.consecutive.saturating_sub(1)));
        // Where nobody else was asked there is nothing to compare with.
        let is_compared = completed + failed > 0;
        if is_compared && (completed < least || failed > completed) {
            return false;
        }
        let mut own = member.counts;
        own.add(member.fresh(&scene.sample));
        // What the others have done since the last look counts too: there may have been none yet.
        let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let (completed_now, failed_now) = (narrow(completed), narrow(failed));
        let mut others = self.others(index);
        others.add(Counts { completed: completed_now, failed: failed_now, ..Counts::default() });
        if !is_twice_as_bad(own, others) {
            return false;
        }
        let is_clear = failed * 5 <= completed;
        self.clients_agree(index, scene.is_mixed, is_clear, now)
    }

    /// Whether the share of failures in the window speaks against the endpoint: the same as
    /// [`EjectionSpec`] asks for, without timeouts that too few clients have had.
    pub fn share_speaks(
        &mut self,
        index: usize,
        spec: &EjectionSpec,
        is_mixed: bool,
        now: Tick,
    ) -> bool {
        let (Some(member), Some(limit)) = (self.members.get(index), spec.share_per_mille) else {
            return false;
        };
        let mut own = member.counts;
        if member.clients.count(now) < CLIENTS_KEPT {
            own.failed -= own.late.min(own.failed);
            own.late = 0;
        }
        let (failed, requests) = (u64::from(own.failed), own.requests());
        let is_enough = requests >= u64::from(spec.min_requests)
            && failed * 1000 >= u64::from(limit.get()) * requests;
        let others = self.others(index);
        if !is_enough || !is_twice_as_bad(own, others) {
            return false;
        }
        let is_clear = u64::from(others.failed) * 5 <= u64::from(others.completed);
        self.clients_agree(index, is_mixed, is_clear, now)
    }

    /// The window's counts of all but this one.
    fn others(&self, index: usize) -> Counts {
        let mut others = self.total;
        others.subtract(self.members[index].counts);
        others
    }

    /// Whether enough clients had failures here; `is_clear` says that the others do very well.
    fn clients_agree(&mut self, index: usize, is_mixed: bool, is_clear: bool, now: Tick) -> bool {
        if self.members[index].clients.count(now) >= 2 {
            return true;
        }
        let has_moved_another =
            self.moved.is_some_and(|(moved, until)| moved != index && now < until);
        let may = !is_mixed && is_clear && !has_moved_another;
        if may {
            self.moved = Some((index, now.after(CLIENT_WINDOW)));
        }
        may
    }
}

/// Whether an endpoint's share of failures is at least twice that of the others.
fn is_twice_as_bad(own: Counts, others: Counts) -> bool {
    let own_by_theirs = u128::from(own.failed) * u128::from(others.requests());
    let theirs_by_own = u128::from(others.failed) * u128::from(own.requests());
    own_by_theirs >= 2 * theirs_by_own
}

impl Member {
    /// What was counted since the last look; nothing before the first.
    fn fresh(&self, sample: &Sample) -> Counts {
        let Some(last) = self.last else { return Counts::default() };
        sample.since(&last)
    }
}

/// The clients of the latest failures, with the moment of each one's last.
#[derive(Clone, Copy, Debug, Default)]
struct Clients {
    seen: [(Client, Option<Tick>); CLIENTS_KEPT],
    unknown: Option<Tick>,
}

impl Clients {
    fn note(&mut self, client: Client, now: Tick) {
        if client == Client::UNKNOWN {
            self.unknown = Some(now);
            return;
        }
        let known = self.seen.iter().position(|(seen, _)| *seen == client);
        let oldest = || (0..CLIENTS_KEPT).min_by_key(|place| self.seen[*place].1);
        if let Some(place) = known.or_else(oldest) {
            self.seen[place] = (client, Some(now));
        }
    }

    /// How many had failures lately.
    fn count(&self, now: Tick) -> usize {
        let is_recent = |at: Option<Tick>| at.is_some_and(|at| now.since(at) <= CLIENT_WINDOW);
        if is_recent(self.unknown) {
            return CLIENTS_KEPT;
        }
        self.seen.iter().filter(|(_, at)| is_recent(*at)).count()
    }
}
