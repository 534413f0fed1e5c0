//! Every combination of what can be said of an endpoint, and every path between them.

use std::time::Duration;

use proptest::prelude::*;
use subak_base::Tick;
use subak_health::{
    Admin, Availability, EjectionReason, Fault, Health, Layers, Operational, ProbeFailure,
    ProbeReason, Reason, Source, State,
};

const ADMINS: [Admin; 3] = [Admin::Ready, Admin::Drain, Admin::Maintenance];
const NOW: Tick = Tick::from_millis(10_000);
const FOR_CONSECUTIVE: EjectionReason = EjectionReason::Consecutive(5);

fn probes() -> [Option<(Health, ProbeReason)>; 5] {
    let failed = ProbeReason::Failed { count: 3, last: ProbeFailure::Refused };
    [
        None,
        Some((Health::AssumedUp, ProbeReason::NotProbed)),
        Some((Health::AssumedDown, ProbeReason::NotProbed)),
        Some((Health::Up, ProbeReason::Passed(2))),
        Some((Health::Down, failed)),
    ]
}

fn ejections() -> [Option<(Tick, EjectionReason)>; 3] {
    [None, Some((NOW, FOR_CONSECUTIVE)), Some((Tick(NOW.0 + 1), FOR_CONSECUTIVE))]
}

/// All there is to say of an endpoint at `NOW`.
fn all_layers() -> Vec<Layers> {
    let operational = [
        None,
        Some(Operational::Up),
        Some(Operational::Down),
        Some(Operational::Stopped),
        Some(Operational::Failed),
    ];
    let mut all = Vec::new();
    for file in ADMINS {
        for api in [None, Some(Admin::Ready), Some(Admin::Drain), Some(Admin::Maintenance)] {
            for agent in ADMINS {
                for operational in operational {
                    for probe in probes() {
                        for ejection in ejections() {
                            let layers = Layers {
                                file,
                                api,
                                agent,
                                operational,
                                agent_reason: None,
                                probe: probe.clone(),
                                ejection,
                                back_off: None,
                            };
                            let back_off = Some(Fault::default());
                            all.push(Layers { back_off, ..layers.clone() });
                            all.push(layers);
                        }
                    }
                }
            }
        }
    }
    assert_eq!(all.len(), 3 * 4 * 3 * 5 * 5 * 3 * 2);
    all
}

/// What each layer asks for by itself; the strongest wish is granted.
fn strongest(layers: &Layers) -> State {
    let wanted = layers.api.unwrap_or(layers.file.max(layers.agent));
    let mut wishes = vec![match wanted {
        Admin::Ready => State::Ready,
        Admin::Drain => State::Drain,
        Admin::Maintenance => State::Maintenance,
    }];
    if layers.operational.is_some_and(|said| said != Operational::Up) {
        wishes.push(State::Down);
    }
    if let Some((Health::Down | Health::AssumedDown, _)) = layers.probe {
        wishes.push(State::Down);
    }
    if layers.ejection.is_some_and(|(until, _)| until > NOW) {
        wishes.push(State::Down);
    }
    if layers.back_off.is_some() {
        wishes.push(State::BackOff);
    }
    let strength = |state: &State| match state {
        State::Ready => 0,
        State::BackOff => 1,
        State::Drain => 2,
        State::Down => 3,
        State::Maintenance => 4,
    };
    wishes.into_iter().max_by_key(strength).unwrap()
}

/// Whether this reason can stand for this state of these layers.
fn fits(reason: &Reason, state: State, layers: &Layers) -> bool {
    match reason {
        Reason::Nothing | Reason::EjectionOver => state == State::Ready,
        Reason::NoProbes => state == State::Ready && layers.probe.is_none(),
        Reason::NoAgent => state == State::Ready && layers.operational.is_none(),
        Reason::NoWeight => false,
        Reason::BackOff(_) => state == State::BackOff && layers.back_off.is_some(),
        Reason::Answered => state == State::Ready && layers.back_off.is_none(),
        Reason::Admin { wanted, .. } => match state {
            State::Ready => *wanted == Admin::Ready,
            State::Drain => *wanted == Admin::Drain,
            State::Maintenance => *wanted == Admin::Maintenance,
            State::Down | State::BackOff => false,
        },
        Reason::Agent { said, .. } => {
            Some(*said) == layers.operational
                && (*said == Operational::Up) == (state == State::Ready)
        }
        Reason::Probe(reason) => {
            let (health, said) = layers.probe.as_ref().unwrap();
            said == reason && health.is_up() == (state == State::Ready)
        }
        Reason::Ejected { until, .. } => state == State::Down && *until > NOW,
    }
}

#[test]
fn the_precedence_is_total_and_every_state_has_its_reason() {
    for layers in all_layers() {
        let availability = Availability::new(layers.clone(), NOW);
        let verdict = availability.verdict();
        assert_eq!(verdict.state, strongest(&layers), "{layers:?}");
        assert!(fits(&verdict.reason, verdict.state, &layers), "{verdict:?} of {layers:?}");
        assert_eq!(verdict.is_eligible(), verdict.state == State::Ready);
        assert_eq!(verdict.since, NOW);
        assert_eq!(availability.ramps_since(), None);
    }
}

#[test]
fn of_several_reasons_for_down_the_agent_s_comes_first_then_the_probes() {
    let [.., down] = probes();
    let [.., ejected] = ejections();
    let layers = Layers { probe: down, ejection: ejected, ..Layers::default() };
    let agent = Layers {
        operational: Some(Operational::Failed),
        agent_reason: Some("disk".into()),
        ..layers
    };
    let mut availability = Availability::new(agent, NOW);
    let mut reasons = vec![availability.verdict().reason.to_string()];
    let mut then = |change: fn(&mut Layers)| {
        assert_eq!(availability.change(NOW, change), None, "down it was and is");
        reasons.push(availability.verdict().reason.to_string());
    };
    then(|layers| layers.operational = Some(Operational::Up));
    then(|layers| layers.probe = None);
    let expected = [
        "its agent says fail: disk",
        "3 probes in a row failed: connection refused",
        "ejected: 5 requests in a row failed",
    ];
    assert_eq!(reasons, expected);
}

#[test]
fn what_the_api_says_holds_until_it_is_taken_back() {
    let asked = Layers { operational: Some(Operational::Up), ..Layers::default() };
    let mut availability = Availability::new(asked, NOW);
    let mut change = |change: fn(&mut Layers)| {
        availability.change(NOW, change).map(|transition| transition.to_string())
    };
    let drained = change(|layers| layers.agent = Admin::Drain);
    assert_eq!(drained.unwrap(), "ready to drain: set to drain by its agent");
    let forced = change(|layers| layers.api = Some(Admin::Ready));
    assert_eq!(forced.unwrap(), "drain to ready: set to ready by the API");
    assert_eq!(change(|layers| layers.agent = Admin::Maintenance), None);
    let cleared = change(|layers| layers.api = None);
    assert_eq!(cleared.unwrap(), "ready to maintenance: set to maintenance by its agent");
    let back = change(|layers| layers.agent = Admin::Ready);
    assert_eq!(back.unwrap(), "maintenance to ready: set to ready by its agent");
    let file = change(|layers| layers.file = Admin::Drain);
    assert_eq!(file.unwrap(), "ready to drain: set to drain by the configuration");
    assert_eq!(change(|layers| layers.agent = Admin::Drain), None);
    assert_eq!(change(|layers| layers.agent = Admin::Ready), None, "the file still says drain");
    let file = change(|layers| layers.file = Admin::Ready);
    assert_eq!(file.unwrap(), "drain to ready: set to ready by the configuration");
}

#[test]
fn what_an_agent_said_ends_with_the_agent() {
    type Said = fn(&mut Layers);
    let said: [Said; 2] = [
        |layers| layers.operational = Some(Operational::Failed),
        |layers| {
            (layers.agent, layers.operational) = (Admin::Drain, Some(Operational::Up));
        },
    ];
    for said in said {
        let mut availability = Availability::new(Layers::default(), NOW);
        assert!(availability.change(NOW, said).is_some());
        let gone = availability.change(NOW, |layers| *layers = Layers::default()).unwrap();
        assert_eq!(gone.reason.to_string(), "its agent is not asked any more");
    }
}

#[test]
fn an_ejection_is_over_at_its_own_moment_however_late_one_looks() {
    let mut availability = Availability::new(Layers::default(), Tick(0));
    let until = NOW.after(Duration::from_secs(10));
    let out = availability.change(NOW, |layers| layers.ejection = Some((until, FOR_CONSECUTIVE)));
    let text = "ready to down: ejected: 5 requests in a row failed";
    assert_eq!(out.unwrap().to_string(), text);
    assert_eq!(availability.look(Tick(until.0 - 1)), None);
    let back = availability.look(until.after(Duration::from_secs(1))).unwrap();
    assert_eq!((back.at, back.reason), (until, Reason::EjectionOver));
    assert_eq!(availability.ramps_since(), Some(until), "it has ramped for a second already");
    assert_eq!(availability.layers().ejection, None);

    // Lifted early: over now, not when it would have been.
    let now = Tick::from_millis(60_000);
    let long = now.after(Duration::from_secs(300));
    availability.change(now, |layers| layers.ejection = Some((long, FOR_CONSECUTIVE))).unwrap();
    let now = now.after(Duration::from_secs(1));
    assert_eq!(availability.change(now, |layers| layers.ejection = None).unwrap().at, now);
}

#[test]
fn only_who_comes_back_ramps() {
    let [_, assumed, _, up, down] = probes();
    let mut availability =
        Availability::new(Layers { probe: assumed, ..Layers::default() }, Tick(0));
    assert_eq!(availability.change(NOW, |layers| layers.probe = up.clone()), None);
    assert_eq!(availability.ramps_since(), None, "it was ready all along");
    assert!(availability.change(NOW, |layers| layers.probe = down).is_some());
    assert_eq!(availability.ramps_since(), None);
    let later = NOW.after(Duration::from_secs(5));
    let back = availability.change(later, |layers| layers.probe = up).unwrap();
    assert_eq!(back.to_string(), "down to ready: 2 probes in a row passed");
    assert_eq!(availability.ramps_since(), Some(later));
    assert_eq!(availability.verdict().since, later);
}

#[test]
fn an_endpoint_that_drains_and_falls_takes_no_sticky_sessions_either() {
    let [.., down] = probes();
    let draining = Layers { file: Admin::Drain, ..Layers::default() };
    let mut availability = Availability::new(draining, NOW);
    assert!(availability.verdict().state.serves_sticky());
    availability.change(NOW, |layers| layers.probe = down).unwrap();
    assert!(!availability.verdict().state.serves_sticky());
    assert!(State::Drain.is_probed() && !State::Maintenance.is_probed());
    assert_eq!(availability.layers().admin(), (Admin::Drain, Source::File));
}

proptest! {
    #[test]
    fn there_is_a_transition_exactly_when_the_state_changes_and_it_has_a_reason(
        steps in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
    ) {
        let all = all_layers();
        let mut availability = Availability::new(Layers::default(), NOW);
        for index in steps {
            let layers = index.get(&all).clone();
            let before = availability.verdict().clone();
            let transition = availability.change(NOW, |now| *now = layers.clone());
            let after = availability.verdict().clone();
            prop_assert_eq!(after.state, strongest(&layers));
            if transition.is_none() && after.state == State::Ready {
                prop_assert_eq!(&after.reason, &before.reason, "what made it ready stays");
            } else {
                prop_assert!(fits(&after.reason, after.state, &layers), "{:?} {:?}", after, layers);
            }
            prop_assert_eq!(transition.is_some(), before.state != after.state);
            if let Some(transition) = transition {
                prop_assert_eq!((transition.from, transition.to), (before.state, after.state));
                prop_assert_eq!((&transition.reason, transition.at), (&after.reason, after.since));
                prop_assert_ne!(&transition.reason, &Reason::Nothing);
                prop_assert!(transition.to_string().contains(": "));
            } else {
                prop_assert_eq!(before.since, after.since);
            }
        }
    }
}
