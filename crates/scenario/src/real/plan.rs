//! A scenario's load as the load generator has it.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use subak_base::Rng;
use subak_lab::load::{
    Detail, LoadPlan, MAX_ADDRESSES, Precedence, Profile, Request, Shape as Wanted, Sources,
    Spacing, Stage, Think,
};

use subak_sim::client_address;

use crate::model::{self, Keys, Scenario, Shape};

/// Steps of a run's series.
const STEPS: u32 = 60;
/// Connections of an open loop, at most.
const MOST_CONNECTIONS: usize = 4_000;
/// The weight of the object that is asked for most.
const HEAVIEST: f64 = 1e6;

pub(super) fn plan(scenario: &Scenario, target: SocketAddr, seed: u64) -> LoadPlan {
    let profile = profile(scenario);
    let shape = match &scenario.load.shape {
        Shape::Rate { even, .. } => Wanted::Rate {
            profile,
            spacing: if *even { Spacing::Even } else { Spacing::Poisson },
            connections: 64,
            most: MOST_CONNECTIONS,
        },
        Shape::Users { think, .. } => Wanted::Users { profile, think: Think::Constant(*think) },
    };
    LoadPlan {
        shape,
        sources: Sources { forwarded: clients(scenario.load.clients, seed), ..Sources::default() },
        warm_up: scenario.warm_up,
        answer_within: scenario.load.patience,
        requests: scenario.load.objects.map_or_else(|| vec![Request::get("/o/0")], objects),
        detail: Detail { every: Some(scenario.lasts / STEPS), finish: true, phases: false },
        precedence: Precedence::AheadIfAllowed,
        seed,
        ..LoadPlan::get(target, "/o/0")
    }
}

/// Who asks: drawn beforehand, because the load generator takes its list in turn.
fn clients(keys: Keys, seed: u64) -> Vec<IpAddr> {
    let mut sums = Vec::new();
    let mut sum = 0.0;
    for rank in 0..keys.count {
        sum += f64::from(rank + 1).powf(-keys.zipf);
        sums.push(sum);
    }
    let mut rng = Rng::new(seed ^ 0x636C_6965_6E74_7321);
    let mut client = || {
        let at = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 * sum;
        let place = sums.partition_point(|upto| *upto <= at).min(sums.len().saturating_sub(1));
        IpAddr::V4(client_address(place as u32))
    };
    (0..MAX_ADDRESSES).map(|_| client()).collect()
}

fn objects(keys: Keys) -> Vec<Request> {
    let request = |rank: u32| Request {
        weight: (HEAVIEST * f64::from(rank + 1).powf(-keys.zipf)).round().max(1.0) as u32,
        ..Request::get(&format!("/o/{rank}"))
    };
    (0..keys.count).map(request).collect()
}

/// What comes after the warm-up, herds laid upon it. The generator spends the warm-up at the value that
/// the load has at its end.
fn profile(scenario: &Scenario) -> Profile {
    let stages = scenario.load.shape.stages();
    let herds = &scenario.herds;
    let (begin, end) = (scenario.warm_up, scenario.lasts);
    let mut corners = vec![begin, end];
    let mut at = Duration::ZERO;
    for stage in stages {
        at += stage.over;
        corners.push(at);
    }
    corners.extend(herds.iter().flat_map(|herd| [herd.at, herd.at + herd.within]));
    corners.retain(|corner| (begin..=end).contains(corner));
    corners.sort_unstable();
    corners.dedup();
    let herds_at = |from: Duration| {
        let now = herds.iter().filter(|herd| (herd.at..herd.at + herd.within).contains(&from));
        now.map(|herd| f64::from(herd.requests) / herd.within.as_secs_f64()).sum::<f64>()
    };
    let mut parts = Vec::new();
    for pair in corners.windows(2) {
        let (from, until) = (pair[0], pair[1]);
        let extra = herds_at(from);
        let (first, last) = ends(stages, from, until);
        parts.push(Stage { to: first + extra, over: Duration::ZERO });
        parts.push(Stage { to: last + extra, over: until - from });
    }
    let start = parts.first().map_or(0.0, |part| part.to);
    Profile::stages(start, parts)
}

/// The load's values at both ends of a time in which no stage ends.
fn ends(stages: &[model::Stage], from: Duration, until: Duration) -> (f64, f64) {
    let (mut began, mut value) = (Duration::ZERO, 0.0);
    for stage in stages {
        let ended = began + stage.over;
        if from < ended {
            let along = |at: Duration| {
                let share = (at.saturating_sub(began)).as_secs_f64() / stage.over.as_secs_f64();
                value + (stage.to - value) * share.min(1.0)
            };
            return (along(from), along(until));
        }
        (began, value) = (ended, stage.to);
    }
    (0.0, 0.0)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{builtin, read};

    #[test]
    fn a_profile_is_what_comes_after_the_warm_up_with_herds_upon_it() {
        let read = |name: &str| {
            let text = builtin::find(name).expect("a scenario").text;
            read(text, Path::new(name)).scenario.expect("no errors")
        };
        let herd = profile(&read("herd"));
        let at = |profile: &Profile, ms| profile.at(Duration::from_millis(ms));
        // 5 s of warm-up, so the herd of second 20 comes at 15.
        assert_eq!(at(&herd, 0), 200.0);
        assert_eq!(at(&herd, 15_250), 4200.0);
        assert_eq!(at(&herd, 16_000), 200.0);
        assert_eq!(herd.length(), Duration::from_secs(45));
        let load = profile(&read("average-load"));
        assert_eq!(at(&load, 0), 40.0);
        assert_eq!(at(&load, 30_000), 100.0);
        assert!((at(&load, 155_000) - 50.0).abs() < 1e-6);
        assert_eq!(load.length(), Duration::from_secs(180));
    }
}
