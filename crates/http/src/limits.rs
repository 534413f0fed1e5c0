//! May this request go on? The limits of a listener or of a route: who may, how large, how many in a
//! time, how many at once.
//!
//! A listener or route without limits has none of this, which costs a branch. Each rate costs the hash
//! of its key and one set of its table; a request that a later limit of the same place refuses gets its
//! tokens back. What is under way is held with the request's heads and given back with them, however
//! the request ends. Tables go on over reloads while their limit and its route stay the same.

mod dry_run;
mod gate;
mod keyed;
mod over;
mod secret;
mod told;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use subak_base::Tick;
use subak_config::{self as config, LimitKey, RateFields};
use subak_limits::{Counted, Counts, Level, Names, Networks, RateTable, Refused, Taken};
use subak_message::{BodyLength, Fault, HeadError, RequestHead};
use subak_net::now;

use crate::failure::{ClientFault, Failure};

use dry_run::DryRun;
pub(crate) use gate::Gate;
use keyed::{MOST_VALUES, Value, count, entries, prefix, shown, shown_client, value};
pub(crate) use over::{Over, Told, seconds};
use secret::Secret;
pub use told::{Limit, LimitKind, LimitStatus, LimitedKey};

/// Limits of one kind at one place.
const MOST: usize = config::defaults::MAX_LIMITS;

/// The limits of a listener or of a route.
#[derive(Debug)]
pub(crate) struct Bounds {
    access: Option<Networks>,
    /// Bytes of a body, instead of the listener's.
    body: Option<Option<u64>>,
    target: usize,
    fields: usize,
    rates: Box<[Arc<RateLimit>]>,
    in_flight: Box<[Arc<InFlight>]>,
}

/// What limits look at.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) head: &'a RequestHead,
    pub(crate) client: Option<IpAddr>,
    pub(crate) body: BodyLength,
    pub(crate) now: Tick,
    /// Which of the different values of a key is looked at, from 0.
    pub(crate) nth: usize,
}

/// One rate limit with its buckets.
#[derive(Debug)]
pub struct RateLimit {
    name: Box<str>,
    what: config::RateLimit,
    table: RateTable,
    known: Known,
    /// For the field RateLimit-Policy.
    policy: Box<str>,
}

/// One limit of requests under way, or of connections.
#[derive(Debug)]
pub struct InFlight {
    name: Box<str>,
    what: config::InFlight,
    counts: Counts,
    known: Known,
}

/// Whose keys are in a table, and how many were refused.
#[derive(Debug, Default)]
struct Known {
    secret: Secret,
    names: Names,
    refused: AtomicU64,
    dry_run: DryRun,
}

/// A token of a further value of a key.
type Other = (Arc<RateLimit>, u64, Taken);

/// A key with more different values than a request is counted by.
const TOO_MANY: HeadError = HeadError { fault: Fault::KeyTooOften, offset: 0 };

/// A place among what is under way. Given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    limit: Arc<InFlight>,
    counted: Counted,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.limit.counts.leave(self.counted);
    }
}

impl Bounds {
    /// What a listener asks of every request; its networks are asked of connections. None where
    /// nothing is limited. Limits of `before` go on that would be the same.
    pub(crate) fn of_listener(
        listener: &config::Listener,
        before: &[Limit],
    ) -> Option<Box<Bounds>> {
        let limits = config::RouteLimits {
            target_bytes: listener.limits.target_bytes,
            rates: listener.rates.clone(),
            in_flight: listener.in_flight.clone(),
            ..config::RouteLimits::default()
        };
        Bounds::build(&listener.name, &limits, before)
    }

    /// What one of its routes, by its place from 1, asks beside that.
    pub(crate) fn of_route(
        listener: &config::Listener,
        (number, route): (usize, &config::Route),
        before: &[Limit],
    ) -> Option<Box<Bounds>> {
        Bounds::build(&format!("{}.route.{number}", listener.name), &route.limits, before)
    }

    fn build(place: &str, limits: &config::RouteLimits, before: &[Limit]) -> Option<Box<Bounds>> {
        let config::RouteLimits { access, body_bytes, target_bytes, fields, rates, in_flight } =
            limits;
        let is_any = access.is_some()
            || body_bytes.is_some()
            || target_bytes.is_some()
            || fields.is_some()
            || !rates.is_empty()
            || !in_flight.is_empty();
        if !is_any {
            return None;
        }
        let named = |name: &Option<config::Name>, kind: &str, number: usize| match name {
            Some(name) => name.to_string(),
            None => format!("{place}.{kind}.{}", number + 1),
        };
        let rate = |(number, what): (usize, &config::RateLimit)| {
            let name = named(&what.name, "rate", number);
            let same = before.iter().find_map(|limit| match limit {
                Limit::Rate(one) if *one.name == *name && one.what == *what => Some(one.clone()),
                _ => None,
            });
            same.unwrap_or_else(|| Arc::new(RateLimit::new(name, what)))
        };
        let count = |(number, what): (usize, &config::InFlight)| {
            let name = named(&what.name, "in_flight", number);
            let same = before.iter().find_map(|limit| match limit {
                Limit::InFlight(one) if *one.name == *name && one.what == *what => {
                    Some(one.clone())
                }
                _ => None,
            });
            same.unwrap_or_else(|| Arc::new(InFlight::new(name, what)))
        };
        Some(Box::new(Bounds {
            access: access.clone(),
            body: *body_bytes,
            target: target_bytes.unwrap_or(usize::MAX),
            fields: fields.unwrap_or(usize::MAX),
            rates: rates.iter().take(MOST).enumerate().map(rate).collect(),
            in_flight: in_flight.iter().take(MOST).enumerate().map(count).collect(),
        }))
    }

    /// Bytes of a body that the route allows, where it says so.
    pub(crate) fn body(&self) -> Option<Option<u64>> {
        self.body
    }

    /// Lets a request go on, or not. What it holds while it is under way goes to `held`; what its
    /// answer tells of a rate, to `told`.
    ///
    /// # Errors
    /// Why not; nothing has been taken then.
    #[inline(never)]
    pub(crate) fn enter(
        &self,
        asked: &Asked<'_>,
        held: &mut Vec<Held>,
        told: &mut Option<Told>,
    ) -> Result<(), Failure> {
        // Mostly there is one rate, and room for as many as there may be costs to be made empty.
        match self.rates.len() {
            0 | 1 => self.enter_by::<1>(asked, held, told),
            _ => self.enter_by::<MOST>(asked, held, told),
        }
    }

    /// The same, for at most so many rates.
    #[inline]
    fn enter_by<const RATES: usize>(
        &self,
        asked: &Asked<'_>,
        held: &mut Vec<Held>,
        told: &mut Option<Told>,
    ) -> Result<(), Failure> {
        self.fits(asked)?;
        let mut taken: [Option<(u64, Taken)>; RATES] = [None; RATES];
        // Of keys with several values.
        let mut others = Vec::new();
        for (limit, taken_here) in self.rates.iter().zip(0..) {
            match limit.take(asked) {
                Ok((key, token)) => {
                    taken[taken_here] = Some((key, token));
                    limit.tell(told, token.level);
                }
                Err(_) if limit.what.dry_run => {}
                Err(refused) => {
                    self.give_back(&taken, &others);
                    return Err(limit.over(refused));
                }
            }
            let values = count(&limit.what.key, asked);
            if values > 1
                && let Err(failure) = limit.take_others(asked, values, &mut others)
            {
                self.give_back(&taken, &others);
                return Err(failure);
            }
        }
        let before = held.len();
        for limit in &self.in_flight {
            let values = count(&limit.what.key, asked);
            let entered = match limit.enter(asked) {
                Some(counted) => {
                    held.push(Held { limit: limit.clone(), counted });
                    if values > 1 { limit.enter_others(asked, values, held) } else { Ok(()) }
                }
                None if limit.what.dry_run => Ok(()),
                None => Err(Failure::Over(Over::InFlight(limit.clone()))),
            };
            if let Err(failure) = entered {
                held.truncate(before);
                self.give_back(&taken, &others);
                return Err(failure);
            }
        }
        Ok(())
    }

    /// What is true of a request by itself.
    pub(crate) fn fits(&self, asked: &Asked<'_>) -> Result<(), Failure> {
        let Asked { head, client, body, .. } = *asked;
        if self.access.as_ref().is_some_and(|networks| !networks.may(client)) {
            return Err(Failure::Denied);
        }
        let too_much = |fault| Err(Failure::BadHead(HeadError { fault, offset: 0 }));
        if head.forward_target().len() > self.target {
            return too_much(Fault::TargetTooLong);
        }
        if head.fields.len() > self.fields {
            return too_much(Fault::TooManyFields);
        }
        match (self.body, body) {
            (Some(Some(most)), BodyLength::Known(length)) if length > most => {
                Err(Failure::Client(ClientFault::BodyTooLarge))
            }
            _ => Ok(()),
        }
    }

    fn give_back(&self, taken: &[Option<(u64, Taken)>], others: &[Other]) {
        for (limit, key, taken) in others {
            limit.table.give_back(*key, taken);
        }
        for (limit, taken) in self.rates.iter().zip(taken) {
            if let Some((key, taken)) = taken {
                limit.table.give_back(*key, taken);
            }
        }
    }

    /// Its rates.
    pub(crate) fn rates(&self) -> &[Arc<RateLimit>] {
        &self.rates
    }

    /// Its limits of what is under way.
    pub(crate) fn in_flight(&self) -> &[Arc<InFlight>] {
        &self.in_flight
    }
}

impl Known {
    /// The hash of a request's key.
    #[inline]
    fn hash(&self, key: &LimitKey, asked: &Asked<'_>) -> u64 {
        match value(key, asked) {
            Value::All => 1,
            Value::Client(bits) => self.secret.of_client(bits),
            Value::Text(text) => self.secret.of_text(&text),
        }
    }

    /// Counts a refusal and notes whose it was.
    #[cold]
    fn refuse(&self, hash: u64, name: impl FnOnce() -> String, wanted: impl Fn(u64) -> bool) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.names.note(hash, name, wanted);
    }
}

impl RateLimit {
    fn new(name: String, what: &config::RateLimit) -> RateLimit {
        let (burst, refill) = (what.rate.burst, what.rate.refill());
        RateLimit {
            policy: format!("\"{name}\";q={burst};w={}", seconds(refill).max(1)).into(),
            name: name.into(),
            what: what.clone(),
            table: RateTable::new(what.rate, entries(&what.key, what.entries)),
            known: Known::default(),
        }
    }

    #[inline]
    fn take(&self, asked: &Asked<'_>) -> Result<(u64, Taken), Refused> {
        let hash = self.known.hash(&self.what.key, asked);
        match self.table.take(hash, asked.now) {
            Ok(taken) => {
                if taken.is_half_empty {
                    self.note(hash, asked);
                }
                Ok((hash, taken))
            }
            Err(refused) => {
                self.refuse(hash, asked);
                Err(refused)
            }
        }
    }

    /// Takes a token of each further value of the key. What was taken is in `taken`, whatever comes of it.
    #[cold]
    fn take_others(
        self: &Arc<Self>,
        asked: &Asked<'_>,
        values: usize,
        taken: &mut Vec<Other>,
    ) -> Result<(), Failure> {
        if values > MOST_VALUES && !self.what.dry_run {
            return Err(Failure::BadHead(TOO_MANY));
        }
        for nth in 1..values.min(MOST_VALUES) {
            match self.take(&Asked { nth, ..*asked }) {
                Ok((key, token)) => taken.push((self.clone(), key, token)),
                Err(_) if self.what.dry_run => {}
                Err(refused) => return Err(self.over(refused)),
            }
        }
        Ok(())
    }

    fn over(self: &Arc<Self>, refused: Refused) -> Failure {
        let told = Told { limit: self.clone(), level: refused.level };
        Failure::Over(Over::Rate { told, wait: refused.wait })
    }

    #[cold]
    fn note(&self, hash: u64, asked: &Asked<'_>) {
        let wanted = |key| self.is_used(key, asked.now);
        self.known.names.note(hash, || shown(&self.what.key, asked), wanted);
    }

    #[cold]
    fn refuse(&self, hash: u64, asked: &Asked<'_>) {
        let wanted = |key| self.is_used(key, asked.now);
        self.known.refuse(hash, || shown(&self.what.key, asked), wanted);
        if self.what.dry_run {
            let key = || shown(&self.what.key, asked);
            self.known.dry_run.tell(hash, asked.now, &self.name, key);
        }
    }

    fn is_used(&self, key: u64, now: Tick) -> bool {
        !self.table.look(key, now).0.full_in.is_zero()
    }

    /// Of several rates, the answer tells of the one with least left.
    #[inline]
    fn tell(self: &Arc<Self>, told: &mut Option<Told>, level: Level) {
        if self.what.fields == RateFields::Always
            && told.as_ref().is_none_or(|told| level.left < told.level.left)
        {
            *told = Some(Told { limit: self.clone(), level });
        }
    }
}

impl InFlight {
    fn new(name: String, what: &config::InFlight) -> InFlight {
        InFlight {
            name: name.into(),
            counts: Counts::new(what.most.get(), entries(&what.key, what.entries)),
            what: what.clone(),
            known: Known::default(),
        }
    }

    /// Of connections, by address.
    pub(crate) fn of_connections(name: String, per: &config::ConnectionsPerClient) -> InFlight {
        let what = config::InFlight {
            name: None,
            most: per.most,
            key: LimitKey::Client { v4: per.v4, v6: per.v6 },
            status: 429,
            dry_run: false,
            entries: per.entries,
        };
        InFlight::new(name, &what)
    }

    /// Whether it is the same limit.
    pub(crate) fn is_like(&self, other: &InFlight) -> bool {
        self.name == other.name && self.what == other.what
    }

    #[inline]
    fn enter(&self, asked: &Asked<'_>) -> Option<Counted> {
        let hash = self.known.hash(&self.what.key, asked);
        self.enter_as(hash, || shown(&self.what.key, asked))
    }

    /// A place under each further value of the key.
    #[cold]
    fn enter_others(
        self: &Arc<Self>,
        asked: &Asked<'_>,
        values: usize,
        held: &mut Vec<Held>,
    ) -> Result<(), Failure> {
        if values > MOST_VALUES && !self.what.dry_run {
            return Err(Failure::BadHead(TOO_MANY));
        }
        for nth in 1..values.min(MOST_VALUES) {
            match self.enter(&Asked { nth, ..*asked }) {
                Some(counted) => held.push(Held { limit: self.clone(), counted }),
                None if self.what.dry_run => {}
                None => return Err(Failure::Over(Over::InFlight(self.clone()))),
            }
        }
        Ok(())
    }

    /// A place for a connection of this client.
    pub(crate) fn hold(self: &Arc<Self>, client: IpAddr) -> Option<Held> {
        let bits = prefix(client, &self.what.key);
        let hash = self.known.secret.of_client(bits);
        let counted = self.enter_as(hash, || shown_client(bits, &self.what.key))?;
        Some(Held { limit: self.clone(), counted })
    }

    #[inline]
    fn enter_as(&self, hash: u64, name: impl Fn() -> String) -> Option<Counted> {
        let wanted = |tag: u64| self.counts.of(tag) > 0;
        let counted = self.counts.enter(hash);
        match &counted {
            None => {
                self.known.refuse(hash, &name, wanted);
                if self.what.dry_run {
                    self.known.dry_run.tell(hash, now(), &self.name, name);
                }
            }
            // Once on the way up: whoever looks wants to know who has most.
            Some(counted) if counted.now == self.what.most.get() / 2 + 1 => {
                self.known.names.note(hash, name, wanted);
            }
            Some(_) => {}
        }
        counted
    }
}
