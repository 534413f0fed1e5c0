//! Does a balancer do what its name says? The judging half of the conformance suite.
//!
//! What is judged is a [`Subject`]: something that picks. The suite's own subject is a
//! [`Balancer`](crate::Balancer) with loads in arrays; a balancer behind a socket is another, with
//! fewer [`Capabilities`], and is judged by those checks that need no more. What it has to keep
//! follows from the [`Traits`] of the name it goes by.
//!
//! ```
//! use subak_balance::conformance::{Capabilities, Member, Subject, Verdict, judge};
//! use subak_balance::{Key, catalogue};
//!
//! /// Sends everything to the first member.
//! struct Lazy;
//! impl Subject for Lazy {
//!     fn begin(&mut self, _: Key<'_>, _: &[usize]) -> Option<usize> {
//!         Some(0)
//!     }
//!     fn end(&mut self, _: usize) {}
//!     fn reload(&mut self, _: &[u16], _: &[bool]) {}
//! }
//!
//! let traits = catalogue::find("round_robin").unwrap().algorithm().traits();
//! let findings = judge(&traits, Capabilities::default(), &|_: &[Member]| Box::new(Lazy));
//! let shares = findings.iter().find(|finding| finding.promise == "shares by weight").unwrap();
//! assert!(matches!(shares.verdict, Verdict::Broken(_)));
//! ```

mod order;
mod picks;
mod share;
mod state;

use crate::catalogue::Traits;
use crate::key::Key;

/// Something that picks: a pool of members, addressed by their place in the list it was made of.
pub trait Subject {
    /// Sends one request; the member that got it, where it stays in flight until [`end`](Subject::end).
    /// `tried` are members that it may not go to.
    fn begin(&mut self, key: Key<'_>, tried: &[usize]) -> Option<usize>;

    /// Ends one request in flight at this member, successfully; every member takes as long as any
    /// other.
    fn end(&mut self, member: usize);

    /// Puts other weights in force, and says of each member whether it may be picked.
    fn reload(&mut self, weights: &[u16], eligible: &[bool]);
}

/// One entry of a list: who it is, whatever its place, and its weight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// The identity.
    pub number: usize,
    /// The weight.
    pub weight: u16,
}

/// What can be done with a subject besides sending requests one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Capabilities {
    /// Requests may stay in flight while others are sent.
    pub holds: bool,
    /// The key of a request can be chosen, and addresses among keys.
    pub keys: bool,
    /// Members may be named that a request must not go to.
    pub tried: bool,
    /// Weights can be changed, and members taken out, while it runs.
    pub reloads: bool,
    /// Two subjects of the same list get the same random numbers.
    pub repeats: bool,
}

impl Capabilities {
    /// Everything.
    pub const ALL: Capabilities =
        Capabilities { holds: true, keys: true, tried: true, reloads: true, repeats: true };

    /// Whether these are enough where `needed` are.
    fn cover(self, needed: Capabilities) -> bool {
        let pairs = [
            (self.holds, needed.holds),
            (self.keys, needed.keys),
            (self.tried, needed.tried),
            (self.reloads, needed.reloads),
            (self.repeats, needed.repeats),
        ];
        pairs.into_iter().all(|(has, needs)| has || !needs)
    }
}

/// Makes a subject of a list of members.
pub type Make<'a> = &'a dyn Fn(&[Member]) -> Box<dyn Subject>;

/// What one check came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What is promised.
    pub promise: &'static str,
    /// Whether it is kept.
    pub verdict: Verdict,
}

/// Whether a promise is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// As far as the check sees.
    Kept,
    /// Not: how.
    Broken(String),
    /// The subject does not let it be seen.
    Unseen,
    /// The name does not promise it.
    NotPromised,
}

/// Judges subjects that `make` makes by all checks.
pub fn judge(traits: &Traits, capabilities: Capabilities, make: Make<'_>) -> Vec<Finding> {
    checks().map(|check| check.judge(traits, capabilities, make)).collect()
}

/// The first promise that is broken, if one is: without the checks that come after it.
pub fn first_broken(
    traits: &Traits,
    capabilities: Capabilities,
    make: Make<'_>,
) -> Option<Finding> {
    let mut findings = checks().map(|check| check.judge(traits, capabilities, make));
    findings.find(|finding| matches!(finding.verdict, Verdict::Broken(_)))
}

/// One promise and how it is seen whether it is kept.
struct Check {
    promise: &'static str,
    /// Whether a name with these traits promises it.
    applies: fn(&Traits) -> bool,
    needs: Capabilities,
    run: fn(&Traits, Make<'_>) -> Result<(), String>,
}

/// What needs nothing but requests.
const PLAIN: Capabilities =
    Capabilities { holds: false, keys: false, tried: false, reloads: false, repeats: false };

fn checks() -> impl Iterator<Item = &'static Check> {
    [picks::CHECKS, share::CHECKS, state::CHECKS, order::CHECKS].into_iter().flatten()
}

impl Check {
    fn judge(&self, traits: &Traits, capabilities: Capabilities, make: Make<'_>) -> Finding {
        let verdict = if !(self.applies)(traits) {
            Verdict::NotPromised
        } else if !capabilities.cover(self.needs) {
            Verdict::Unseen
        } else {
            (self.run)(traits, make).map_or_else(Verdict::Broken, |()| Verdict::Kept)
        };
        Finding { promise: self.promise, verdict }
    }
}

fn ensure(holds: bool, broken: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(broken()) }
}

/// A list of members numbered from 0 with these weights.
fn members(weights: &[u16]) -> Vec<Member> {
    weights.iter().enumerate().map(|(number, weight)| Member { number, weight: *weight }).collect()
}

/// Sends a request without a key and ends it at once.
fn serve(subject: &mut dyn Subject) -> Result<usize, String> {
    serve_key(subject, Key::None)
}

/// Sends a request with a key and ends it at once.
fn serve_key(subject: &mut dyn Subject, key: Key<'_>) -> Result<usize, String> {
    let member = subject.begin(key, &[]).ok_or("nobody was picked")?;
    subject.end(member);
    Ok(member)
}

/// A random client: IPv4 or IPv6.
fn client(rng: &mut subak_base::Rng) -> Key<'static> {
    let word = rng.next_u64();
    Key::Address(if word & 1 == 0 {
        std::net::Ipv4Addr::from((word >> 32) as u32).into()
    } else {
        let rest = rng.next_u64();
        std::net::Ipv6Addr::from(u128::from(word) << 64 | u128::from(rest)).into()
    })
}
