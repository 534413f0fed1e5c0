//! A scenario's load as the load generator has it.
//!
//! An open loop is asked, arrival by arrival, what a run of the simulator with the same seed is asked.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use subak_base::Rng;
use subak_lab::load::{
    Detail, Due, LoadPlan, MAX_ADDRESSES, Precedence, Profile, Request, Shape, Sources, Stage,
    Think,
};
use subak_sim::{Arrivals, Asked, Keys, Sees, Service, Trace, client_address};

use super::NotRun;
use crate::model::{Load, Scenario};

/// Steps of a run's series.
const STEPS: u32 = 60;
/// Connections of an open loop: beforehand, and at most.
const CONNECTIONS: usize = 64;
const MOST_CONNECTIONS: usize = 4_000;
/// Requests of one run, at most: all of them are drawn beforehand.
const MOST_REQUESTS: usize = 20_000_000;
/// The weight of the object that is asked for most.
const HEAVIEST: f64 = 1e6;

pub(super) fn plan(
    scenario: &Scenario,
    targets: Vec<SocketAddr>,
    seed: u64,
) -> Result<LoadPlan, NotRun> {
    if scenario.balancers.sees == Sees::All || !scenario.balancers.every.is_zero() {
        let why = "real balancers see their own requests, as they are: what else they could see \
                   (`sees`, `every`) only the simulator tells";
        return Err(NotRun::Unfit(why.to_owned()));
    }
    let [first, ..] = targets[..] else {
        return Err(NotRun::Unfit("there is no balancer".to_owned()));
    };
    let load = &scenario.load;
    let (shape, requests, forwarded) = match &load.arrivals {
        Arrivals::Users { think, .. } if scenario.herds.is_empty() => {
            let think = match think {
                Service::Constant(time) => Think::Constant(*time),
                _ => Think::None,
            };
            let shape = Shape::Users { profile: users(scenario), think };
            (shape, objects(&load.objects), clients(&load.clients, seed))
        }
        Arrivals::Users { .. } => {
            let why = "a herd beside users: real servers have one or the other";
            return Err(NotRun::Unfit(why.to_owned()));
        }
        Arrivals::Open { .. } => timetable(scenario, &Trace::default(), seed)?,
        Arrivals::Trace(trace) => timetable(scenario, trace, seed)?,
    };
    Ok(LoadPlan {
        targets,
        shape,
        requests,
        sources: Sources { forwarded, ..Sources::default() },
        warm_up: scenario.warm_up,
        answer_within: load.patience,
        detail: Detail { every: Some(scenario.lasts / STEPS), finish: true, phases: false },
        precedence: Precedence::AheadIfAllowed,
        seed,
        ..LoadPlan::get(first, "/")
    })
}

/// Every request of an open loop, what is asked for, and in whose names.
fn timetable(
    scenario: &Scenario,
    trace: &Trace,
    seed: u64,
) -> Result<(Shape, Vec<Request>, Vec<IpAddr>), NotRun> {
    let Load { arrivals, clients, objects, .. } = &scenario.load;
    let asked = subak_sim::arrivals(arrivals, &scenario.herds, clients, Some(objects), seed);
    let asked = asked.take_while(|one| one.at < scenario.lasts).take(MOST_REQUESTS + 1);
    let (mut of_clients, mut of_objects) = (Numbers::default(), Numbers::default());
    let due = |one: Asked| Due {
        at: one.at,
        request: of_objects.of(one.object),
        client: of_clients.of(one.client),
    };
    let due: Arc<[Due]> = asked.map(due).collect();
    if due.is_empty() || due.len() > MOST_REQUESTS {
        let why = format!("a run on real servers has 1 to {MOST_REQUESTS} requests");
        return Err(NotRun::Unfit(why));
    }
    let request = |object: &u32| match trace.objects.get(*object as usize) {
        Some(path) => Request::get(&String::from_utf8_lossy(path)),
        None => Request::get(&format!("/o/{object}")),
    };
    let client = |client: &u32| match trace.clients.get(*client as usize) {
        Some(address) => *address,
        None => IpAddr::V4(client_address(*client)),
    };
    let requests = of_objects.used.iter().map(request).collect();
    let forwarded = of_clients.used.iter().map(client).collect();
    let lasts = scenario.lasts - scenario.warm_up;
    let (connections, most) = (CONNECTIONS, MOST_CONNECTIONS);
    Ok((Shape::Timetable { due, lasts, connections, most }, requests, forwarded))
}

/// New numbers, from 0, in the order of first use.
#[derive(Default)]
struct Numbers {
    new: HashMap<u32, u32>,
    used: Vec<u32>,
}

impl Numbers {
    fn of(&mut self, old: u32) -> u32 {
        *self.new.entry(old).or_insert_with(|| {
            self.used.push(old);
            self.used.len() as u32 - 1
        })
    }
}

/// Who the users are: drawn beforehand, because the load generator takes its list in turn.
fn clients(keys: &Keys, seed: u64) -> Vec<IpAddr> {
    let mut sums = Vec::new();
    let mut sum = 0.0;
    for place in 0..count(keys) {
        sum += weight(keys, place);
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

/// What users ask for, by weight.
fn objects(keys: &Keys) -> Vec<Request> {
    let heaviest =
        (0..count(keys)).map(|place| weight(keys, place)).fold(f64::MIN_POSITIVE, f64::max);
    let request = |place: u32| Request {
        weight: match weight(keys, place) {
            0.0 => 0,
            weight => (HEAVIEST * weight / heaviest).round().max(1.0) as u32,
        },
        ..Request::get(&format!("/o/{place}"))
    };
    (0..count(keys)).map(request).collect()
}

fn count(keys: &Keys) -> u32 {
    match keys {
        Keys::Uniform { count } | Keys::Zipf { count, .. } => *count,
        Keys::Shared { people } => people.len() as u32,
    }
}

fn weight(keys: &Keys, place: u32) -> f64 {
    match keys {
        Keys::Uniform { .. } => 1.0,
        Keys::Zipf { exponent, .. } => f64::from(place + 1).powf(-exponent),
        Keys::Shared { people } => {
            people.get(place as usize).map_or(0.0, |people| f64::from(*people))
        }
    }
}

/// How many users there are after the warm-up. The generator spends that at the value that they have at
/// its end.
fn users(scenario: &Scenario) -> Profile {
    let stages = scenario.load.stages();
    let (begin, end) = (scenario.warm_up, scenario.lasts);
    let mut corners = vec![begin, end];
    let mut at = Duration::ZERO;
    for stage in stages {
        at += stage.lasts;
        corners.push(at);
    }
    corners.retain(|corner| (begin..=end).contains(corner));
    corners.sort_unstable();
    corners.dedup();
    let mut parts = Vec::new();
    for pair in corners.windows(2) {
        let (from, until) = (pair[0], pair[1]);
        let (first, last) = ends(stages, from, until);
        parts.push(Stage { to: first, over: Duration::ZERO });
        parts.push(Stage { to: last, over: until - from });
    }
    let start = parts.first().map_or(0.0, |part| part.to);
    Profile::stages(start, parts)
}

/// The number of users at both ends of a time in which no stage ends.
fn ends(stages: &[subak_sim::Stage], from: Duration, until: Duration) -> (f64, f64) {
    let (mut began, mut value) = (Duration::ZERO, 0.0);
    for stage in stages {
        let ended = began + stage.lasts;
        if from < ended {
            let along = |at: Duration| {
                let share = (at.saturating_sub(began)).as_secs_f64() / stage.lasts.as_secs_f64();
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

    use subak_sim::TracedRequest;

    use super::*;
    use crate::{builtin, read};

    fn builtin_scenario(name: &str) -> Scenario {
        let text = builtin::find(name).expect("a scenario").text;
        read(text, Path::new(name)).scenario.expect("no errors")
    }

    fn of(scenario: &Scenario) -> LoadPlan {
        let target = "127.0.0.1:80".parse().expect("an address");
        plan(scenario, vec![target], 3).unwrap_or_else(|why| panic!("{why}"))
    }

    #[test]
    fn users_are_as_many_as_they_are_after_the_warm_up() {
        let plan = of(&builtin_scenario("average-load"));
        let Shape::Users { profile, .. } = plan.shape else { panic!("no users") };
        let at = |ms| profile.at(Duration::from_millis(ms));
        assert_eq!(at(0), 40.0);
        assert_eq!(at(30_000), 100.0);
        assert!((at(155_000) - 50.0).abs() < 1e-6);
        assert_eq!(profile.length(), Duration::from_secs(180));
    }

    #[test]
    fn a_rate_comes_as_in_the_simulator_with_its_herd_and_its_warm_up() {
        let scenario = builtin_scenario("herd");
        let plan = of(&scenario);
        let Shape::Timetable { due, lasts, .. } = plan.shape else { panic!("no timetable") };
        assert_eq!((lasts, plan.warm_up), (Duration::from_secs(45), Duration::from_secs(5)));
        let within = |from_ms, to_ms| {
            let span = Duration::from_millis(from_ms)..Duration::from_millis(to_ms);
            due.iter().filter(|one| span.contains(&one.at)).count()
        };
        // 200 a second, and 2,000 in the half second from 20 s on.
        assert!(within(0, 20_000).abs_diff(4_000) < 5 * 64, "{}", within(0, 20_000));
        assert!(within(20_000, 20_500).abs_diff(2_100) < 50, "{}", within(20_000, 20_500));
        let Load { arrivals, clients, objects, .. } = &scenario.load;
        let simulated = subak_sim::arrivals(arrivals, &scenario.herds, clients, Some(objects), 3);
        for (due, asked) in due.iter().zip(simulated) {
            assert_eq!(due.at, asked.at);
            let address = plan.sources.forwarded[due.client as usize];
            assert_eq!(address, IpAddr::V4(client_address(asked.client)));
        }
    }

    #[test]
    fn a_log_is_asked_again_with_its_clients_and_paths() {
        let mut scenario = builtin_scenario("herd");
        scenario.herds.clear();
        scenario.load.log = Some("access.log".into());
        let request = |ms: u64, client, object| TracedRequest {
            at_ns: ms * 1_000_000,
            client,
            object,
            ..TracedRequest::default()
        };
        let trace = Trace {
            requests: vec![request(0, 1, 0), request(7, 0, 1), request(49_000, 1, 2)],
            clients: vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()],
            objects: [&b"/a?b=c"[..], b"/w%20i", b"/z"].map(Into::into).to_vec(),
        };
        let short = Trace { requests: trace.requests[..2].to_vec(), ..trace.clone() };
        let error = scenario.attach(|_| Ok(short)).expect_err("it ends after 7 ms");
        assert!(error.contains("let it last as long as the log"), "{error}");
        scenario.attach(|_| Ok(trace)).expect("it is long enough");
        let plan = of(&scenario);
        let Shape::Timetable { due, .. } = plan.shape else { panic!("no timetable") };
        let told: Vec<_> = due
            .iter()
            .map(|one| {
                let client = plan.sources.forwarded[one.client as usize].to_string();
                (one.at.as_millis(), client, plan.requests[one.request as usize].path.clone())
            })
            .collect();
        let expected = [
            (0, "2001:db8::1", "/a?b=c"),
            (7, "192.0.2.1", "/w%20i"),
            (49_000, "2001:db8::1", "/z"),
        ];
        assert_eq!(told, expected.map(|(at, client, path)| (at, client.into(), path.into())));
    }

    #[test]
    fn what_only_the_simulator_has_is_refused() {
        let mut stale = builtin_scenario("herd");
        stale.balancers.sees = Sees::All;
        let mut late = builtin_scenario("herd");
        late.balancers.every = Duration::from_secs(1);
        let mut users = builtin_scenario("average-load");
        users.herds = builtin_scenario("herd").herds;
        for scenario in [stale, late, users] {
            let target = "127.0.0.1:80".parse().expect("an address");
            assert!(matches!(plan(&scenario, vec![target], 1), Err(NotRun::Unfit(_))));
        }
    }
}
