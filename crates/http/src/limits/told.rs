//! Limits as they are shown: to the Admin API, and to whoever asks what would become of a request.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use subak_base::Tick;
use subak_explain::LimitTold;
use subak_limits::Counts;

use super::{Asked, Bounds, InFlight, Known, RateLimit, prefix, shown};
use crate::failure::Failure;

/// One limit of a listener, of one of its routes, or of its connections. A handle: looking at its keys
/// may take a moment and is for a thread that has one.
#[derive(Clone, Debug)]
pub enum Limit {
    /// Requests in a time.
    Rate(Arc<RateLimit>),
    /// Requests at once.
    InFlight(Arc<InFlight>),
    /// Connections at once.
    Connections(Arc<InFlight>),
}

/// What is limited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LimitKind {
    /// Requests in a time.
    Rate,
    /// Requests at once.
    InFlight,
    /// Connections at once.
    Connections,
}

impl LimitKind {
    /// As it is shown.
    pub fn name(self) -> &'static str {
        match self {
            LimitKind::Rate => "rate",
            LimitKind::InFlight => "in_flight",
            LimitKind::Connections => "connections",
        }
    }
}

/// A limit with the keys that are nearest to it.
#[derive(Clone, PartialEq, Debug)]
pub struct LimitStatus {
    /// Keys that are known at this moment.
    pub keys: usize,
    /// For how many there is room.
    pub places: usize,
    /// The nearest to the limit, the nearest first.
    pub nearest: Vec<LimitedKey>,
}

/// One key of a limit.
#[derive(Clone, PartialEq, Debug)]
pub struct LimitedKey {
    /// Who it is; a hash where that was not noted.
    pub key: String,
    /// Tokens left, or how many more there may be.
    pub left: u32,
    /// Of so many.
    pub most: u32,
    /// Until the bucket is full, in seconds.
    pub full_in_s: Option<f64>,
}

impl Limit {
    /// Its name, unique where the configuration has not given one twice.
    pub fn name(&self) -> &str {
        match self {
            Limit::Rate(limit) => &limit.name,
            Limit::InFlight(limit) | Limit::Connections(limit) => &limit.name,
        }
    }

    /// What it limits.
    pub fn kind(&self) -> LimitKind {
        match self {
            Limit::Rate(_) => LimitKind::Rate,
            Limit::InFlight(_) => LimitKind::InFlight,
            Limit::Connections(_) => LimitKind::Connections,
        }
    }

    /// Who is counted together.
    pub fn key(&self) -> String {
        match self {
            Limit::Rate(limit) => limit.what.key.to_string(),
            Limit::InFlight(limit) | Limit::Connections(limit) => limit.what.key.to_string(),
        }
    }

    /// What it allows, in words.
    pub fn allows(&self) -> String {
        match self {
            Limit::Rate(limit) => format!("{}, burst {}", limit.what.text, limit.what.rate.burst),
            Limit::InFlight(limit) | Limit::Connections(limit) => {
                format!("{} at once", limit.what.most)
            }
        }
    }

    /// Whether nobody is refused.
    pub fn is_dry_run(&self) -> bool {
        match self {
            Limit::Rate(limit) => limit.what.dry_run,
            Limit::InFlight(limit) | Limit::Connections(limit) => limit.what.dry_run,
        }
    }

    /// How many were refused, or would have been.
    pub fn refused(&self) -> u64 {
        self.known().refused.load(Ordering::Relaxed)
    }

    /// How many keys were forgotten too early, or not counted, for want of room.
    pub fn forgotten(&self) -> u64 {
        match self {
            Limit::Rate(limit) => limit.table.evicted(),
            Limit::InFlight(limit) | Limit::Connections(limit) => limit.counts.uncounted(),
        }
    }

    /// The keys nearest to the limit. O(places).
    pub fn status(&self, most: usize, now: Tick) -> LimitStatus {
        match self {
            Limit::Rate(limit) => {
                let (keys, used) = limit.table.emptiest(most, now);
                let burst = limit.what.rate.burst.get();
                let names = limit.known.names.of(keys.iter().map(|(key, _)| *key));
                let told = keys.iter().zip(names).map(|((key, level), name)| LimitedKey {
                    key: name.unwrap_or_else(|| hashed(*key)),
                    left: level.left,
                    most: burst,
                    full_in_s: Some(level.full_in.as_millis() as f64 / 1e3),
                });
                LimitStatus { keys: used, places: limit.table.places(), nearest: told.collect() }
            }
            Limit::InFlight(limit) | Limit::Connections(limit) => {
                let (keys, used) = limit.counts.busiest(most);
                let allowed = limit.what.most.get();
                let names =
                    limit.known.names.of_tags(keys.iter().map(|(tag, _)| *tag), Counts::tag);
                let told = keys.iter().zip(names).map(|((tag, count), name)| LimitedKey {
                    key: name.unwrap_or_else(|| hashed(*tag)),
                    left: allowed.saturating_sub(*count),
                    most: allowed,
                    full_in_s: None,
                });
                LimitStatus { keys: used, places: limit.counts.places(), nearest: told.collect() }
            }
        }
    }

    /// Fills the bucket of a key, given as the client wrote it, as an address, or as [`Limit::status`]
    /// names it. False where there is none that is not full, or what is under way is counted, which
    /// ends by itself.
    pub fn clear(&self, key: &str, now: Tick) -> bool {
        let Limit::Rate(limit) = self else { return false };
        let secret = &limit.known.secret;
        let address = key.split_once('/').map_or(key, |(address, _)| address).parse().ok();
        let hashes = [
            address.map(|address| secret.of_client(prefix(address, &limit.what.key))),
            Some(secret.of_text(key.as_bytes())),
            key.strip_prefix('#').and_then(|hash| u64::from_str_radix(hash, 16).ok()),
            (key == "all").then_some(1),
        ];
        // Not the first that is: a header may have the form of an address.
        let cleared = hashes.into_iter().flatten().filter(|hash| limit.table.clear(*hash, now));
        cleared.count() > 0
    }

    fn known(&self) -> &Known {
        match self {
            Limit::Rate(limit) => &limit.known,
            Limit::InFlight(limit) | Limit::Connections(limit) => &limit.known,
        }
    }
}

fn hashed(key: u64) -> String {
    format!("#{key:016x}")
}

impl Bounds {
    /// What each limit says of a request; the first refusal as what it would be answered.
    pub(crate) fn explain(
        &self,
        asked: &Asked<'_>,
        told: &mut Vec<LimitTold>,
    ) -> Result<(), Failure> {
        let mut refusal = self.fits(asked);
        let each = |limit: &super::LimitKey| {
            let values = super::count(limit, asked).min(super::MOST_VALUES);
            (0..values).map(|nth| Asked { nth, ..*asked })
        };
        for (limit, asked) in
            self.rates.iter().flat_map(|one| each(&one.what.key).map(move |asked| (one, asked)))
        {
            let asked = &asked;
            let hash = limit.known.hash(&limit.what.key, asked);
            let (level, wait) = limit.table.look(hash, asked.now);
            told.push(LimitTold {
                name: limit.name.to_string(),
                kind: LimitKind::Rate.name().to_owned(),
                allows: Limit::Rate(limit.clone()).allows(),
                by: limit.what.key.to_string(),
                key: shown(&limit.what.key, asked),
                left: level.left,
                retry_after_ms: (!wait.is_zero()).then(|| wait.as_millis() as u64 + 1),
                refuses: !wait.is_zero(),
                is_dry_run: limit.what.dry_run,
            });
            if !wait.is_zero() && !limit.what.dry_run && refusal.is_ok() {
                let told = super::Told { limit: limit.clone(), level };
                refusal = Err(Failure::Over(super::Over::Rate { told, wait }));
            }
        }
        for (limit, asked) in
            self.in_flight.iter().flat_map(|one| each(&one.what.key).map(move |asked| (one, asked)))
        {
            let asked = &asked;
            let hash = limit.known.hash(&limit.what.key, asked);
            let left = limit.what.most.get().saturating_sub(limit.counts.of(hash));
            told.push(LimitTold {
                name: limit.name.to_string(),
                kind: LimitKind::InFlight.name().to_owned(),
                allows: Limit::InFlight(limit.clone()).allows(),
                by: limit.what.key.to_string(),
                key: shown(&limit.what.key, asked),
                left,
                retry_after_ms: None,
                refuses: left == 0,
                is_dry_run: limit.what.dry_run,
            });
            if left == 0 && !limit.what.dry_run && refusal.is_ok() {
                refusal = Err(Failure::Over(super::Over::InFlight(limit.clone())));
            }
        }
        let is_too_much = |key: &super::LimitKey, is_dry: bool| {
            !is_dry && super::count(key, asked) > super::MOST_VALUES
        };
        let rates = self.rates.iter().map(|one| (&one.what.key, one.what.dry_run));
        let in_flight = self.in_flight.iter().map(|one| (&one.what.key, one.what.dry_run));
        if refusal.is_ok() && rates.chain(in_flight).any(|(key, is_dry)| is_too_much(key, is_dry)) {
            refusal = Err(Failure::BadHead(super::TOO_MANY));
        }
        refusal
    }

    /// Its limits as handles.
    pub(crate) fn all(&self) -> impl Iterator<Item = Limit> {
        let rates = self.rates().iter().cloned().map(Limit::Rate);
        rates.chain(self.in_flight().iter().cloned().map(Limit::InFlight))
    }
}
