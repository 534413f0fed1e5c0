//! How do weights follow what the endpoints say of their own load? The weigher `resource`.
//!
//! Every endpoint reports, for CPU, memory, disk and network, what it has (capacity P) and what
//! share of that is in use (utilisation U). From the reports of a pool the weigher makes one
//! [`Factor`] for each endpoint, a layer of its weight:
//!
//! | | formula | unit |
//! |---|---|---|
//! | capacity | C = ΣK·P ÷ ΣK, each P divided by the pool's largest, so that units cancel | ppm |
//! | load | L = Σλ·U ÷ Σλ | ppm |
//! | jitter | d = \|ΔL\| ÷ Δt, from one report to the next | ppm a second |
//! | factor | C·(1 − L) ÷ the pool's mean of it, within 1/64..64 | 1/1024 |
//! | utilisation | U = L ÷ C; can be above one | ppm |
//! | imbalance | σ = the standard deviation of U over the pool | ppm |
//! | class | free, normal or overload: the worst of the resources, see [`Class`] | |
//!
//! **Jitter.** The load *in force*, which the factor is made of, follows the reported load with
//! hysteresis: it rests until the two are further apart than [`Options::band`], then it moves, by no
//! more than [`Options::max_jitter`] a second, until it has arrived. So noise changes no weight, a
//! jump changes it in steps, and a lasting change is followed to the end.
//!
//! **Not reported.** A resource counts in C only when every endpoint that reports states its
//! capacity (else whoever does not state it would count as having none), and in an endpoint's L when
//! that endpoint reports its use; K and λ are divided by the sum of those that count. An endpoint
//! that stops reporting is [held](Standing::Held) at its last factor, and after [`Options::hold`] is
//! [silent](Standing::Silent) with factor 1. Where all loads are 1, the factor is C ÷ the pool's
//! mean of C, which is the limit as they approach 1 together.
//!
//! Whole numbers only, halves rounded up. Cost: O(n) an update, no allocation.
//! Source: Ma & Chi 2022, equations 1 to 8 and table 3. The paper leaves the units of P and the way
//! from a share to a whole weight open; equation 5 divides by ΣC, which makes a weight of less than
//! one at any pool size, so here the mean takes its place.

mod capacity;
mod class;
mod load;
mod mean;
mod ppm;
mod resource;
mod spread;

use std::time::Duration;

use subak_base::Tick;

use crate::weights::Factor;

pub use class::Class;
pub use ppm::Ppm;
pub use resource::{Coefficients, PerResource, Resource};

use capacity::Scale;
use load::LoadInForce;
use mean::PoolMean;
use spread::Spread;

/// How reports become factors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// K: what each resource counts for in the capacity.
    pub capacity: Coefficients,
    /// λ: what each resource counts for in the load.
    pub load: Coefficients,
    /// How far the reported load may be from the load in force before that one moves.
    pub band: Ppm,
    /// How far the load in force moves in a second, at most.
    pub max_jitter: Ppm,
    /// A report that is older is a sign that the endpoint has stopped reporting: a few times the
    /// interval at which it is asked.
    pub fresh: Duration,
    /// How old the last report may get before the factor returns to 1.
    pub hold: Duration,
}

impl Default for Options {
    /// CPU counts most, as it limits most services; a report a second.
    fn default() -> Options {
        Options {
            capacity: Coefficients::DEFAULT,
            load: Coefficients::DEFAULT,
            band: Ppm::saturating(20_000),
            max_jitter: Ppm::saturating(250_000),
            fresh: Duration::from_secs(3),
            hold: Duration::from_secs(30),
        }
    }
}

/// What an endpoint says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// When it was measured, on the clock of whoever weighs.
    pub at: Tick,
    /// P: what it has, in any unit that is the same for the whole pool. Zero counts as not stated.
    pub capacity: PerResource<Option<u64>>,
    /// U: the share of it in use.
    pub used: PerResource<Option<Ppm>>,
}

/// Whether an endpoint's factor follows its reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It reports.
    Current,
    /// It has stopped reporting; the last factor stays for a while.
    Held,
    /// It has not reported for long, or never: factor 1.
    Silent,
}

/// One endpoint, weighed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Weighed {
    /// Whether the factor follows its reports.
    pub standing: Standing,
    /// The layer of its weight.
    pub factor: Factor,
    /// What the factor was made of; none exactly when it is silent.
    pub measured: Option<Measured>,
}

impl Weighed {
    const SILENT: Weighed =
        Weighed { standing: Standing::Silent, factor: Factor::NEUTRAL, measured: None };
}

/// What an endpoint's factor was made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Measured {
    /// C, where the pool's best in everything has 1.
    pub capacity: Ppm,
    /// L, as last reported.
    pub load: Ppm,
    /// L, as it counts in the factor.
    pub load_in_force: Ppm,
    /// d, from the last report but one to the last; 0 after the first.
    pub jitter_ppm_per_second: u64,
    /// U = L ÷ C, of the reported load.
    pub utilisation_ppm: u64,
    /// The worst of `classes`.
    pub class: Class,
    /// The class of each resource that is reported.
    pub classes: PerResource<Option<Class>>,
}

/// The weigher of one pool: the last reports, the loads in force, the factors made of them.
#[derive(Clone, Debug)]
pub struct Weigher {
    options: Options,
    known: Vec<Option<Known>>,
    weighed: Vec<Weighed>,
    imbalance_ppm: Option<u64>,
}

/// What is remembered of an endpoint that reports.
#[derive(Clone, Copy, Debug)]
struct Known {
    report: Report,
    load: LoadInForce,
}

impl Weigher {
    /// A weigher of this many endpoints, none of which has reported yet.
    pub fn new(options: Options, endpoints: usize) -> Weigher {
        Weigher {
            options,
            known: vec![None; endpoints],
            weighed: vec![Weighed::SILENT; endpoints],
            imbalance_ppm: None,
        }
    }

    /// A weigher of another list of endpoints with other options, for a reload. `previous[i]` is the
    /// place in this one of what is endpoint `i` there: what is known of it goes along.
    pub fn reshaped(&self, options: Options, previous: &[Option<usize>]) -> Weigher {
        let mut weigher = Weigher::new(options, previous.len());
        for (index, place) in previous.iter().enumerate() {
            let Some(place) = *place else { continue };
            weigher.known[index] = self.known.get(place).copied().flatten();
            weigher.weighed[index] = self.weighed.get(place).copied().unwrap_or(Weighed::SILENT);
        }
        weigher.imbalance_ppm = self.imbalance_ppm;
        weigher
    }

    /// Takes the latest report of each endpoint, in configured order, and weighs the pool anew.
    ///
    /// A report that was taken before (or is older) is no new one. Endpoints past the end of
    /// `reports` have none. Same reports at the same moments, same factors.
    pub fn update(&mut self, reports: &[Option<Report>], now: Tick) -> &[Weighed] {
        for (index, known) in self.known.iter_mut().enumerate() {
            if let Some(report) = reports.get(index).copied().flatten() {
                take(known, report, &self.options);
            }
            known.take_if(|known| now.since(known.report.at) > self.options.hold);
        }
        self.weigh(now);
        &self.weighed
    }

    /// Every endpoint as of the last update, in configured order.
    pub fn weighed(&self) -> &[Weighed] {
        &self.weighed
    }

    /// σ of U over the endpoints that are not silent, in ppm; none when all are.
    pub fn imbalance_ppm(&self) -> Option<u64> {
        self.imbalance_ppm
    }

    fn weigh(&mut self, now: Tick) {
        let coefficients = &self.options.capacity;
        let scale = Scale::of(self.known.iter().flatten().map(|known| &known.report.capacity));
        let share = |known: &Known| scale.share(&known.report.capacity, coefficients);
        let each = self.known.iter().flatten();
        let mean = PoolMean::of(each.map(|known| (share(known), known.load.in_force)));
        let mut spread = Spread::default();
        for (known, weighed) in self.known.iter().zip(&mut self.weighed) {
            let Some(known) = known else {
                *weighed = Weighed::SILENT;
                continue;
            };
            let capacity = share(known);
            let measured = measured(known, capacity);
            spread.add(measured.utilisation_ppm);
            let held = now.since(known.report.at) > self.options.fresh;
            let factor = match weighed.measured {
                Some(_) if held => weighed.factor,
                _ => mean.factor(capacity, known.load.in_force),
            };
            let standing = if held { Standing::Held } else { Standing::Current };
            *weighed = Weighed { standing, factor, measured: Some(measured) };
        }
        self.imbalance_ppm = spread.deviation();
    }
}

/// Takes a report over, unless it is no news or says nothing of any load that counts.
fn take(known: &mut Option<Known>, report: Report, options: &Options) {
    let Some(load) = options.load.mean(&report.used) else { return };
    match known {
        None => *known = Some(Known { report, load: LoadInForce::new(load) }),
        Some(known) if report.at > known.report.at => {
            known.load.follow(load, report.at.since(known.report.at), options);
            known.report = report;
        }
        Some(_) => {}
    }
}

fn measured(known: &Known, capacity: Ppm) -> Measured {
    let classes = known.report.used.map(|resource, used| Some(Class::of(resource, used?)));
    let load = known.load.reported;
    Measured {
        capacity,
        load,
        load_in_force: known.load.in_force,
        jitter_ppm_per_second: known.load.jitter_ppm_per_second,
        utilisation_ppm: rounded(
            u64::from(load.get()) * u64::from(Ppm::ONE.get()),
            u64::from(capacity.get()),
        ),
        class: classes.iter().filter_map(|(_, class)| *class).max().unwrap_or(Class::Free),
        classes,
    }
}

/// `part ÷ whole` with halves rounded up; the whole is not zero.
fn rounded(part: u64, whole: u64) -> u64 {
    part / whole + u64::from(part % whole >= whole.div_ceil(2))
}
