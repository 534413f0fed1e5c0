//! The weigher in floating point and without thrift: all endpoints from their whole history, formula
//! by formula.

use subak_balance::weigher::{Options, PerResource, Report, Resource, Standing, Weighed, Weigher};
use subak_base::Tick;

/// What is known of an endpoint, in ones and not in millionths.
#[derive(Clone)]
struct Known {
    report: Report,
    load: f64,
    in_force: f64,
    jitter: f64,
    moving: bool,
    factor: Option<f64>,
}

pub(crate) struct Oracle {
    options: Options,
    known: Vec<Option<Known>>,
    expected: Vec<Option<Expected>>,
    deviation: Option<f64>,
}

struct Expected {
    standing: Standing,
    capacity: f64,
    known: Known,
    factor: f64,
}

const MILLION: f64 = 1e6;

/// Σ coefficient · value ÷ Σ coefficient over the values that are known, to a whole millionth.
fn mean(coefficients: &PerResource<u32>, values: &dyn Fn(Resource) -> Option<f64>) -> Option<f64> {
    let known: Vec<_> = Resource::ALL
        .into_iter()
        .filter_map(|resource| Some((f64::from(*coefficients.get(resource)), values(resource)?)))
        .collect();
    let sum: f64 = known.iter().map(|(coefficient, _)| coefficient).sum();
    let mean = known.iter().map(|(coefficient, value)| coefficient * value).sum::<f64>() / sum;
    (sum > 0.0).then(|| whole(mean * MILLION) / MILLION)
}

fn whole(value: f64) -> f64 {
    // A half that is not quite one in binary is one.
    (value + 0.5 + 1e-7).floor()
}

fn millionths(used: u32) -> f64 {
    f64::from(used) / MILLION
}

impl Oracle {
    pub(crate) fn new(options: Options, endpoints: usize) -> Oracle {
        let expected = (0..endpoints).map(|_| None).collect();
        Oracle { options, known: vec![None; endpoints], expected, deviation: None }
    }

    pub(crate) fn update(&mut self, reports: &[Option<Report>], now: Tick) {
        for (known, report) in self.known.iter_mut().zip(reports) {
            if let Some(report) = report {
                take(&self.options, known, *report);
            }
            let age = known.as_ref().map(|known| now.since(known.report.at));
            if age.is_some_and(|age| age > self.options.hold) {
                *known = None;
            }
        }
        let capacities = self.capacities();
        let room = |index: usize, known: &Known| capacities[index] * (1.0 - known.in_force);
        let present: Vec<_> = self
            .known
            .iter()
            .enumerate()
            .filter_map(|(index, known)| Some((index, known.clone()?)))
            .collect();
        let count = present.len() as f64;
        let rooms: f64 = present.iter().map(|(index, known)| room(*index, known)).sum();
        let all: f64 = present.iter().map(|(index, _)| capacities[*index]).sum();
        self.expected = self.known.iter().map(|_| None).collect();
        for (index, known) in &present {
            let held = now.since(known.report.at) > self.options.fresh;
            let ratio = if rooms < 1e-12 {
                capacities[*index] / (all / count)
            } else {
                room(*index, known) / (rooms / count)
            };
            let fresh = (ratio * 1024.0).clamp(16.0, 65_536.0);
            let factor = if held { known.factor.unwrap_or(fresh) } else { fresh };
            self.known[*index].as_mut().expect("present").factor = Some(factor);
            self.expected[*index] = Some(Expected {
                standing: if held { Standing::Held } else { Standing::Current },
                capacity: capacities[*index],
                known: known.clone(),
                factor,
            });
        }
        let used: Vec<f64> =
            present.iter().map(|(index, known)| known.load / capacities[*index]).collect();
        let average = used.iter().sum::<f64>() / count;
        let variance = used.iter().map(|used| (used - average).powi(2)).sum::<f64>() / count;
        self.deviation = (count > 0.0).then(|| variance.sqrt());
    }

    /// C of each endpoint; of what is not known, none is asked for.
    fn capacities(&self) -> Vec<f64> {
        let stated = |report: &Report, resource| {
            report.capacity.get(resource).filter(|capacity| *capacity > 0).map(|p| p as f64)
        };
        let largest = |resource| {
            let all: Option<Vec<f64>> =
                self.known.iter().flatten().map(|known| stated(&known.report, resource)).collect();
            all.map(|all| all.into_iter().fold(0.0, f64::max))
        };
        let capacity = |known: &Known| {
            let share = |resource| {
                let share = stated(&known.report, resource)? / largest(resource)?;
                Some(whole(share * MILLION) / MILLION)
            };
            mean(self.options.capacity.each(), &share).unwrap_or(1.0).max(1.0 / MILLION)
        };
        self.known.iter().map(|known| known.as_ref().map_or(0.0, capacity)).collect()
    }

    /// What differs, if anything.
    pub(crate) fn compare(&self, weigher: &Weigher) -> Result<(), String> {
        for (index, (expected, weighed)) in self.expected.iter().zip(weigher.weighed()).enumerate()
        {
            compare(expected.as_ref(), weighed).map_err(|what| format!("{index}: {what}"))?;
        }
        match (self.deviation, weigher.imbalance_ppm()) {
            (None, None) => Ok(()),
            (Some(expected), Some(found)) => {
                // Each utilisation is rounded to a millionth, and the square root amplifies nothing.
                near("σ", expected * MILLION, found as f64, 2.0 + expected)
            }
            other => Err(format!("σ {other:?}")),
        }
    }
}

fn take(options: &Options, known: &mut Option<Known>, report: Report) {
    let used = |resource| report.used.get(resource).map(|used| millionths(used.get()));
    let Some(load) = mean(options.load.each(), &used) else { return };
    let Some(before) = known else {
        let first =
            Known { report, load, in_force: load, jitter: 0.0, moving: false, factor: None };
        *known = Some(first);
        return;
    };
    let seconds = report.at.since(before.report.at).as_secs_f64();
    before.jitter = (load - before.load).abs() / seconds;
    before.load = load;
    before.report = report;
    let gap = (load - before.in_force).abs();
    before.moving |= gap > millionths(options.band.get()) + 1e-9;
    if before.moving {
        let reach = (millionths(options.max_jitter.get()) * seconds * MILLION + 1e-6).floor();
        let step = (reach.max(1.0) / MILLION).min(gap);
        before.in_force += step * (load - before.in_force).signum();
        before.in_force = whole(before.in_force * MILLION) / MILLION;
        before.moving = (before.in_force - load).abs() > 1e-9;
    }
}

fn compare(expected: Option<&Expected>, weighed: &Weighed) -> Result<(), String> {
    let (Some(expected), Some(measured)) = (expected, weighed.measured) else {
        let silent = weighed.standing == Standing::Silent && weighed.measured.is_none();
        let neutral = weighed.factor.get() == 1024;
        return if expected.is_none() && silent && neutral {
            Ok(())
        } else {
            Err(format!("known or not: {weighed:?}"))
        };
    };
    if expected.standing != weighed.standing {
        return Err(format!("{:?}, {:?} expected", weighed.standing, expected.standing));
    }
    let known = &expected.known;
    let ppm = |ones: f64| ones * MILLION;
    near("C", ppm(expected.capacity), f64::from(measured.capacity.get()), 0.5)?;
    near("L", ppm(known.load), f64::from(measured.load.get()), 0.5)?;
    near("L in force", ppm(known.in_force), f64::from(measured.load_in_force.get()), 0.5)?;
    near("d", ppm(known.jitter), measured.jitter_ppm_per_second as f64, 1.5)?;
    let used = known.load / expected.capacity;
    near("U", ppm(used), measured.utilisation_ppm as f64, 0.51 + used * 1e-6)?;
    near("factor", expected.factor, f64::from(weighed.factor.get()), 0.51)
}

fn near(what: &str, expected: f64, found: f64, by: f64) -> Result<(), String> {
    if (expected - found).abs() <= by {
        Ok(())
    } else {
        Err(format!("{what}: {found} instead of {expected}"))
    }
}
