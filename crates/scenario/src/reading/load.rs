//! The traffic of a scenario: `[load]`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use subak_config::Span;
use subak_sim::{Arrivals, Keys, Pace, Rate, Service, Stage, Trace};
use toml::Spanned;

use super::{Reader, span};
use crate::model::Load;

/// Different clients or objects, at most: real servers are asked for each by name.
const MAX_KEYS: u32 = 100_000;
/// Requests a second.
const MAX_RATE: f64 = 1e7;
/// Users at once, as the load generator has them.
const MAX_USERS: f64 = subak_lab::load::MAX_CONNECTIONS as f64;
/// Requests of a rate in one run: minutes of the simulator.
const MAX_REQUESTS: f64 = 1e9;
/// Of a burst, in an even rate.
const MAX_TIMES: f64 = 1_000.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLoad {
    rate: Option<Amount>,
    users: Option<Amount>,
    log: Option<Spanned<String>>,
    think: Option<Spanned<String>>,
    #[serde(default)]
    even: bool,
    bursts: Option<Spanned<RawBursts>>,
    daily: Option<Spanned<RawDaily>>,
    clients: Option<Spanned<RawKeys>>,
    objects: Option<Spanned<RawKeys>>,
    patience: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a number, or a list of stages { to = …, over = \"…\" }")]
enum Amount {
    Constant(f64),
    Stages(Vec<RawStage>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStage {
    to: f64,
    over: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBursts {
    times: f64,
    last: Spanned<String>,
    apart: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDaily {
    swing: f64,
    period: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a number, { count = …, zipf = … }, or { people = […] }")]
enum RawKeys {
    Count(u32),
    Zipf { count: u32, zipf: f64 },
    Shared { people: Vec<u32> },
}

impl Reader {
    pub(super) fn load(&mut self, raw: Spanned<RawLoad>, lasts: Duration) -> Load {
        let at = span(&raw);
        let raw = raw.into_inner();
        self.is_told_once(&raw, at);
        let arrivals = match (raw.rate, raw.users) {
            (Some(rate), _) => {
                let pace = match &raw.bursts {
                    Some(bursts) => self.bursts(bursts),
                    None if raw.even => Pace::Even,
                    None => Pace::Poisson,
                };
                let rate = match &raw.daily {
                    Some(daily) => self.daily(daily, rate),
                    None => Rate::Stages(self.stages(rate, lasts, MAX_RATE, at)),
                };
                Arrivals::Open { pace, rate }
            }
            (None, Some(users)) => {
                let think = raw.think.as_ref().map_or(Duration::ZERO, |text| self.time(text));
                let stages = self.stages(users, lasts, MAX_USERS, at);
                Arrivals::Users { stages, think: Service::Constant(think) }
            }
            (None, None) => Arrivals::Trace(Arc::new(Trace::default())),
        };
        let mut keys = |keys: Option<Spanned<RawKeys>>, count| match keys {
            Some(keys) => self.keys(keys),
            None => Keys::Uniform { count },
        };
        let (clients, objects) = (keys(raw.clients, 1_000), keys(raw.objects, 1));
        let patience =
            raw.patience.as_ref().map_or(Duration::from_secs(10), |text| self.time(text));
        let log = raw.log.map(|log| PathBuf::from(log.into_inner()));
        let load = Load { arrivals, log, clients, objects, patience };
        let is_of_rate = matches!(load.arrivals, Arrivals::Open { .. });
        if is_of_rate && load.mean(lasts) * lasts.as_secs_f64() > MAX_REQUESTS {
            let said = format!("more than {MAX_REQUESTS} requests in one run would have no end");
            self.wrong(at, said);
        }
        load
    }

    /// Is there one kind of load, and nothing beside it that goes with another?
    fn is_told_once(&mut self, raw: &RawLoad, at: Span) {
        let kinds = [raw.rate.is_some(), raw.users.is_some(), raw.log.is_some()];
        if kinds.into_iter().filter(|is_there| *is_there).count() != 1 {
            self.wrong(at, "a load has either a rate (requests a second), users or a log");
            return;
        }
        let of_rate = |place: Option<Span>| place.filter(|_| raw.rate.is_none());
        let of_many = |place: Option<Span>| place.filter(|_| raw.log.is_some());
        let even = raw.even.then_some(at);
        let (bursts, daily) = (raw.bursts.as_ref().map(span), raw.daily.as_ref().map(span));
        let think = raw.think.as_ref().filter(|_| raw.users.is_none()).map(span);
        for (wrong, key, with) in [
            (of_rate(even), "even", "a rate"),
            (of_rate(bursts), "bursts", "a rate"),
            (of_rate(daily), "daily", "a rate"),
            (even.filter(|_| raw.bursts.is_some()), "even", "a rate without bursts"),
            (think, "think", "users"),
            (
                of_many(raw.clients.as_ref().map(span)),
                "clients",
                "a rate or users: a log has its own",
            ),
            (
                of_many(raw.objects.as_ref().map(span)),
                "objects",
                "a rate or users: a log has its own",
            ),
        ] {
            if let Some(place) = wrong {
                self.wrong(place, format!("`{key}` goes with {with}"));
            }
        }
    }

    fn stages(&mut self, amount: Amount, lasts: Duration, most: f64, at: Span) -> Vec<Stage> {
        let stages = match amount {
            Amount::Constant(to) => {
                vec![Stage { to, lasts: Duration::ZERO }, Stage { to, lasts }]
            }
            Amount::Stages(stages) => {
                let stage =
                    |raw: &RawStage| Stage { to: raw.to, lasts: self.time_in(&raw.over, at) };
                stages.iter().map(stage).collect()
            }
        };
        if !stages.iter().all(|stage| (0.0..=most).contains(&stage.to)) {
            self.wrong(at, format!("it is a number from 0 to {most}"));
        }
        if stages.iter().all(|stage| stage.to == 0.0) {
            self.wrong(at, "nobody asks for anything");
        }
        stages
    }

    /// Bursts so that the rate stays what it is in the mean.
    fn bursts(&mut self, raw: &Spanned<RawBursts>) -> Pace {
        let RawBursts { times, last, apart } = raw.get_ref();
        let (burst, calm) = (self.time(last), self.time(apart));
        let in_bursts = burst.as_secs_f64() / (burst + calm).as_secs_f64().max(1e-9);
        let between = (1.0 - in_bursts * times) / (1.0 - in_bursts);
        if burst.is_zero() || calm.is_zero() {
            self.wrong(span(raw), "bursts and the time between them last");
        } else if !(1.0..=MAX_TIMES).contains(times) {
            self.wrong(span(raw), format!("in a burst comes 1 to {MAX_TIMES} times as much"));
        } else if between < 0.0 {
            let most = 1.0 / in_bursts;
            let said = format!(
                "so much comes in bursts that the rate is more than it is: at most {most:.1} times, or \
                 bursts further apart"
            );
            self.wrong(span(raw), said);
        }
        let per_mille = |factor: f64| (factor * 1_000.0).round() as u32;
        Pace::Bursty {
            calm_per_mille: per_mille(between),
            burst_per_mille: per_mille(*times),
            calm,
            burst,
        }
    }

    fn daily(&mut self, raw: &Spanned<RawDaily>, rate: Amount) -> Rate {
        let RawDaily { swing, period } = raw.get_ref();
        let period = self.time(period);
        if !(0.0..=1.0).contains(swing) || period.is_zero() {
            self.wrong(span(raw), "a day has a swing from 0 to 1, and a period");
        }
        let mean = match rate {
            Amount::Constant(mean) if mean > 0.0 && mean <= MAX_RATE => mean,
            _ => {
                let said = format!("of a day the rate is its mean: a number up to {MAX_RATE}");
                self.wrong(span(raw), said);
                1.0
            }
        };
        Rate::Diurnal { mean, swing_per_mille: (swing * 1_000.0).round() as u32, period }
    }

    fn keys(&mut self, keys: Spanned<RawKeys>) -> Keys {
        let at = span(&keys);
        let (count, keys) = match keys.into_inner() {
            RawKeys::Count(count) | RawKeys::Zipf { count, zipf: 0.0 } => {
                (count, Keys::Uniform { count })
            }
            RawKeys::Zipf { count, zipf: exponent } => {
                if !(0.0..=10.0).contains(&exponent) {
                    self.wrong(at, "zipf is from 0 to 10");
                }
                (count, Keys::Zipf { count, exponent })
            }
            RawKeys::Shared { people } => {
                if people.iter().all(|people| *people == 0) {
                    self.wrong(at, "nobody is behind any of these");
                }
                (people.len() as u32, Keys::Shared { people })
            }
        };
        if !(1..=MAX_KEYS).contains(&count) {
            self.wrong(at, format!("from 1 to {MAX_KEYS}"));
        }
        keys
    }
}
