//! What came out of a scenario: one [`Measured`] for each run of each algorithm, kept as JSON.

use serde::{Deserialize, Serialize};

use crate::model::Assault;

/// Where it ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum On {
    /// Under virtual time.
    Sim,
    /// On real processes.
    Real,
}

impl On {
    /// As people read it.
    pub const fn as_str(self) -> &'static str {
        match self {
            On::Sim => "simulator",
            On::Real => "real servers",
        }
    }
}

/// All that came out; `result.json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The scenario's name.
    pub name: String,
    /// Its whole text, so that it can be judged and run again.
    pub scenario: String,
    /// So many times as fast as its text says.
    #[serde(default = "as_it_is")]
    pub faster: f64,
    /// Which Subak.
    pub version: String,
    /// When.
    pub made: String,
    /// The machine, the calibration: name and value.
    pub setup: Vec<(String, String)>,
    /// In the order of the algorithms, the simulator's first.
    pub trials: Vec<Trial>,
}

fn as_it_is() -> f64 {
    1.0
}

/// The runs of one algorithm in one place.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// Where.
    pub on: On,
    /// Its name in the scenario.
    pub algorithm: String,
    /// One for each seed or repetition; those of one place in the list have the same seed.
    pub runs: Vec<Measured>,
}

/// One run. Times are in milliseconds, of requests that were answered well after the warm-up.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Measured {
    /// What was drawn by chance followed from it.
    pub seed: u64,
    /// Requests that arrived.
    pub requests: u64,
    /// Those that were answered well.
    pub answered: u64,
    /// The others, by why.
    pub failures: Vec<(String, u64)>,
    /// Attempts beyond the first; unknown on real servers.
    pub retries: Option<u64>,
    /// Mean.
    pub mean_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 95 % took no longer.
    pub p95_ms: f64,
    /// 99 % took no longer.
    pub p99_ms: f64,
    /// 99.9 % took no longer.
    pub p999_ms: f64,
    /// Requests sent to each endpoint.
    pub hits: Vec<u64>,
    /// Share of each endpoint's slots at work, 0 to 1.
    pub utilisation: Vec<f64>,
    /// CPU time of the balancer per request, in microseconds.
    pub balancer_us: Option<f64>,
    /// Share of its core that the balancer used, 0 to 1.
    pub balancer_busy: Option<f64>,
    /// What came of the attacks, in the scenario's order.
    #[serde(default)]
    pub attacked: Vec<Attacked>,
    /// What happened over time.
    pub series: Vec<Moment>,
    /// Why nothing may be concluded from it; empty when it is valid.
    pub invalid: Vec<String>,
}

/// What came of an attack.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Attacked {
    /// As scenarios name it.
    pub what: String,
    /// Requests or connections.
    pub tried: u64,
    /// Those that were refused, or ended by the balancer.
    pub refused: u64,
    /// The longest that a connection was held, in seconds; of those who only hold connections.
    pub held_s: f64,
}

impl Attacked {
    /// Nothing yet.
    pub(crate) fn of(what: Assault) -> Attacked {
        Attacked { what: what.name().to_owned(), tried: 0, refused: 0, held_s: 0.0 }
    }
}

/// What happened in one step of time.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Moment {
    /// When it began, in seconds.
    pub at_s: f64,
    /// How long it was, in seconds.
    pub took_s: f64,
    /// Requests answered well.
    pub answered: u64,
    /// Requests that failed.
    pub failed: u64,
    /// 95 % took no longer, in milliseconds.
    pub p95_ms: f64,
}

impl Measured {
    /// Requests that failed.
    pub fn failed(&self) -> u64 {
        self.failures.iter().map(|(_, count)| count).sum()
    }

    /// Requests that failed, of all; 0 to 1.
    pub fn failed_share(&self) -> f64 {
        self.failed() as f64 / (self.requests.max(1)) as f64
    }

    /// Jain's index of the hits.
    pub fn jain(&self) -> f64 {
        subak_sim::jain(self.hits.iter().map(|hits| *hits as f64))
    }

    /// Of what attackers asked and must not get, what was refused; 0 to 1.
    pub fn refused_share(&self) -> f64 {
        self.share_of(Assault::is_refused)
    }

    /// Of the connections that attackers opened to hold them, what the balancer ended; 0 to 1.
    pub fn ended_share(&self) -> f64 {
        self.share_of(|what| !what.is_refused())
    }

    /// Of what attackers of some kinds have tried, what was refused or ended; 0 to 1.
    fn share_of(&self, kinds: impl Fn(Assault) -> bool) -> f64 {
        let is_meant = |one: &&Attacked| {
            Assault::ALL.iter().any(|(name, what)| *name == one.what && kinds(*what))
        };
        let meant = self.attacked.iter().filter(is_meant);
        let (tried, refused) =
            meant.fold((0, 0), |(tried, refused), one| (tried + one.tried, refused + one.refused));
        refused as f64 / tried.max(1) as f64
    }

    /// The longest that an attacker has held a connection, in seconds.
    pub fn held_s(&self) -> f64 {
        self.attacked.iter().map(|one| one.held_s).fold(0.0, f64::max)
    }

    /// The most that was answered a second, in any step.
    pub fn peak_rate(&self) -> f64 {
        let rates = self.series.iter().filter(|one| one.took_s > 0.0);
        rates.map(|one| one.answered as f64 / one.took_s).fold(0.0, f64::max)
    }

    /// From the end of the trouble until everything is as it was before for good: no failures, and a
    /// p95 of at most twice that of before. Seconds; none while it does not come back.
    pub fn recovery_s(&self, from_s: f64, until_s: f64) -> Option<f64> {
        let before = self.series.iter().filter(|one| one.at_s + one.took_s <= from_s);
        let before: Vec<f64> = before.map(|one| one.p95_ms).filter(|p95| *p95 > 0.0).collect();
        let usual = before.iter().sum::<f64>() / before.len().max(1) as f64;
        let after = self.series.iter().filter(|one| one.at_s >= until_s);
        let after: Vec<&Moment> = after.collect();
        let well = |one: &&Moment| one.failed == 0 && (usual == 0.0 || one.p95_ms <= 2.0 * usual);
        match after.iter().rposition(|one| !well(one)) {
            None => Some(0.0),
            Some(last) => after.get(last + 1).map(|one| one.at_s - until_s),
        }
    }
}
