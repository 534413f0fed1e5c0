//! A scenario's load, balancers and endpoints in a line each.

use subak_sim::{Arrivals, Keys, Pace, Rate, Sees, Service, Stage};

use crate::model::{Endpoint, Load, Scenario};

/// Whether more is asked at one time than at another.
pub(super) fn varies(load: &Load) -> bool {
    match &load.arrivals {
        Arrivals::Trace(_) => true,
        Arrivals::Open { pace: Pace::Bursty { .. }, .. }
        | Arrivals::Open { rate: Rate::Diurnal { .. }, .. } => true,
        Arrivals::Open { .. } | Arrivals::Users { .. } => {
            let stages = load.stages();
            stages.len() > 2 && stages.iter().any(|stage| !stage.lasts.is_zero())
        }
    }
}

pub(super) fn load(scenario: &Scenario) -> String {
    let load = &scenario.load;
    let lasts = scenario.lasts.as_secs_f64();
    let mut told = match (&load.log, &load.arrivals) {
        (Some(log), _) => format!("as {} has it", log.display()),
        (None, Arrivals::Open { pace, rate }) => {
            let rate = match rate {
                Rate::Steady(rate) => format!("{} requests/s", amount(*rate)),
                Rate::Stages(stages) => format!("{} requests/s", staged(stages)),
                Rate::Diurnal { mean, swing_per_mille, period } => format!(
                    "{} requests/s, {} % more and less by turns of {period:?}",
                    amount(*mean),
                    swing_per_mille / 10
                ),
            };
            match pace {
                Pace::Poisson => format!("{rate}, by chance (Poisson)"),
                Pace::Even => format!("{rate}, evenly spaced"),
                Pace::Bursty { burst_per_mille, calm, burst, .. } => format!(
                    "{rate}, by chance, in bursts of {burst:?} with {} times as many, {calm:?} apart",
                    f64::from(*burst_per_mille) / 1e3
                ),
            }
        }
        (None, Arrivals::Users { stages, think }) => {
            let think = match think {
                Service::Constant(think) => format!(" who think {think:?}"),
                _ => String::new(),
            };
            format!("{} users{think}", staged(stages))
        }
        (None, Arrivals::Trace(_)) => String::new(),
    };
    told += &format!(", for {lasts:.0} s");
    match &load.clients {
        _ if load.log.is_some() => {}
        Keys::Uniform { count } | Keys::Zipf { count, .. } => {
            told += &format!("; {} clients", amount(f64::from(*count)));
        }
        Keys::Shared { people } => {
            let all: f64 = people.iter().map(|people| f64::from(*people)).sum();
            told += &format!("; {} people behind {} addresses", amount(all), people.len());
        }
    }
    told
}

/// The balancers, where they are not one that sees what it does.
pub(super) fn balancers(scenario: &Scenario) -> Option<String> {
    let balancers = scenario.balancers;
    let sees = match balancers.sees {
        Sees::Own => "its own requests",
        Sees::All => "all requests",
    };
    let age = match balancers.every {
        every if every.is_zero() => "as they are".to_owned(),
        every => format!("looking every {every:?}"),
    };
    (balancers != subak_sim::Balancers::default())
        .then(|| format!("{}, by turns; each sees {sees}, {age}", balancers.count))
}

fn staged(stages: &[Stage]) -> String {
    let is_constant = stages.windows(2).all(|pair| pair[0].to == pair[1].to);
    if is_constant {
        return amount(stages.first().map_or(0.0, |stage| stage.to));
    }
    let told = stages.iter().map(|one| format!("{} in {:?}", amount(one.to), one.lasts));
    format!("in stages to {},", told.collect::<Vec<_>>().join(", "))
}

fn amount(value: f64) -> String {
    subak_report::grouped(value, 0)
}

pub(super) fn endpoints(scenario: &Scenario) -> String {
    let mut runs: Vec<(usize, &Endpoint)> = Vec::new();
    for endpoint in &scenario.endpoints {
        match runs.last_mut() {
            Some((count, last)) if *last == endpoint => *count += 1,
            _ => runs.push((1, endpoint)),
        }
    }
    let told = runs.into_iter().map(|(count, endpoint)| {
        let cache = endpoint.cache.map_or(String::new(), |(objects, hit)| {
            format!(", a cache of {objects} objects ({hit:?})")
        });
        format!(
            "{count} of weight {}: {:?}, {} at once{cache}",
            endpoint.weight, endpoint.service, endpoint.concurrency
        )
    });
    told.collect::<Vec<_>>().join("; ")
}
