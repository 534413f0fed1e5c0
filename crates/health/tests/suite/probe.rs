//! The active check against a slow reading of the whole history, and under a virtual clock.

use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use subak_base::{Rng, Tick};
use subak_health::{
    Health, Obstacle, ProbeFailure, ProbeReason, ProbeResult, ProbeSpec, ProbeState,
};

const PASSED: ProbeResult = ProbeResult::Passed;
const REFUSED: ProbeResult = ProbeResult::Failed(ProbeFailure::Refused);
const UNKNOWN: ProbeResult = ProbeResult::Inconclusive(Obstacle::Descriptors);

fn count(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

/// One probe that ends at once; what it changed.
fn probe(
    state: &mut ProbeState,
    spec: &ProbeSpec,
    result: ProbeResult,
) -> Option<(Health, Health, String)> {
    let now = state.next_due();
    let run = state.started(spec, now);
    let transition = state.finished(spec, run, result, now, 1 << 63)?;
    assert_eq!((transition.at, transition.to), (now, state.health()));
    assert_eq!((transition.at, &transition.reason), (state.since(), state.reason()));
    Some((transition.from, transition.to, transition.reason.to_string()))
}

#[test]
fn the_first_result_decides_at_once() {
    for (assume_up, assumed) in [(true, Health::AssumedUp), (false, Health::AssumedDown)] {
        let spec = ProbeSpec { assume_up, ..ProbeSpec::default() };
        let new = ProbeState::new(&spec, Tick(0), 0);
        assert_eq!((new.health(), new.reason()), (assumed, &ProbeReason::NotProbed));
        assert_eq!(assumed.is_up(), assume_up);

        let reason = "1 probe failed: connection refused".to_owned();
        let down = probe(&mut new.clone(), &spec, REFUSED);
        assert_eq!(down, Some((assumed, Health::Down, reason)));

        let up = probe(&mut new.clone(), &spec, PASSED);
        assert_eq!(up, Some((assumed, Health::Up, "1 probe passed".to_owned())));

        let mut still = new;
        assert_eq!(probe(&mut still, &spec, UNKNOWN), None);
        assert_eq!(still.health(), assumed);
    }
}

#[test]
fn three_failures_in_a_row_take_it_down_and_two_passes_bring_it_back() {
    let spec = ProbeSpec::default();
    let mut state = ProbeState::new(&spec, Tick(0), 0);
    assert!(probe(&mut state, &spec, PASSED).is_some());
    for result in [REFUSED, REFUSED, PASSED, REFUSED, UNKNOWN, REFUSED] {
        assert_eq!(probe(&mut state, &spec, result), None);
    }
    let status = ProbeFailure::Status { got: 503, expected: "200-399".parse().unwrap() };
    let (_, to, reason) = probe(&mut state, &spec, ProbeResult::Failed(status)).unwrap();
    assert_eq!(to, Health::Down);
    assert_eq!(reason, "3 probes in a row failed: status 503 is not in 200-399");
    for result in [PASSED, REFUSED, PASSED] {
        assert_eq!(probe(&mut state, &spec, result), None);
    }
    let up = (Health::Down, Health::Up, "2 probes in a row passed".to_owned());
    assert_eq!(probe(&mut state, &spec, PASSED), Some(up));
}

#[test]
fn the_reason_follows_the_latest_failure_and_the_moment_stays() {
    let spec = ProbeSpec::default();
    let mut state = ProbeState::new(&spec, Tick(0), 0);
    assert!(probe(&mut state, &spec, REFUSED).is_some());
    let since = state.since();
    let malformed = ProbeResult::Failed(ProbeFailure::Malformed);
    assert_eq!(probe(&mut state, &spec, malformed.clone()), None);
    assert_eq!(state.reason().to_string(), "1 probe failed: the answer is not HTTP");
    assert_eq!(state.since(), since);
    // While it is up, a failure that does not turn it is no reason.
    for result in [PASSED, PASSED] {
        probe(&mut state, &spec, result);
    }
    assert_eq!(probe(&mut state, &spec, malformed), None);
    assert_eq!(state.reason(), &ProbeReason::Passed(2));
}

#[test]
fn probes_are_fast_while_the_state_is_about_to_change() {
    let spec = ProbeSpec { jitter_per_mille: 0, ..ProbeSpec::default() };
    let mut state = ProbeState::new(&spec, Tick(0), u64::MAX);
    assert!(state.next_due() < Tick(0).after(spec.fast_interval));
    let mut pause = |result| {
        let before = state.next_due();
        probe(&mut state, &spec, result);
        state.next_due().since(before)
    };
    let (slow, fast) = (spec.interval, spec.fast_interval);
    assert_eq!(pause(UNKNOWN), fast, "nothing known yet");
    assert_eq!(pause(PASSED), slow);
    assert_eq!([REFUSED, REFUSED].map(&mut pause), [fast, fast]);
    assert_eq!(pause(REFUSED), slow, "down, and settled");
    assert_eq!(pause(PASSED), fast);
    assert_eq!(pause(REFUSED), slow, "it was a false hope");
    assert_eq!(pause(UNKNOWN), fast, "nothing was learnt");
    assert_eq!([PASSED, PASSED].map(&mut pause), [fast, slow]);
}

#[test]
fn only_the_latest_run_counts_and_a_lost_one_is_given_up() {
    let spec = ProbeSpec { fall: count(1), ..ProbeSpec::default() };
    let mut state = ProbeState::new(&spec, Tick(0), 0);
    let lost = state.started(&spec, Tick(0));
    assert_eq!(lost.deadline(), Tick::from_millis(1000));
    assert!(!state.is_due(Tick::from_millis(1999)) && state.is_due(Tick::from_millis(2000)));
    let now = state.next_due();
    let run = state.started(&spec, now);
    assert_eq!(state.finished(&spec, lost, REFUSED, now, 0), None);
    assert_eq!(state.health(), Health::AssumedUp);
    assert!(state.finished(&spec, run, PASSED, now, 0).is_some());
    assert_eq!(state.finished(&spec, run, REFUSED, now, 0), None, "twice the same");
    assert_eq!(state.health(), Health::Up);
    assert_eq!(state.last(), Some(&(PASSED, now)));
}

#[test]
fn after_a_reset_nothing_is_known_and_what_was_under_way_does_not_count() {
    let spec = ProbeSpec::default();
    let mut state = ProbeState::new(&spec, Tick(0), 0);
    probe(&mut state, &spec, REFUSED);
    let now = state.next_due();
    let run = state.started(&spec, now);
    let transition = state.reset(&spec, now, 0).unwrap();
    assert_eq!(transition.to_string(), "down to assumed up: not probed yet");
    assert_eq!(state.finished(&spec, run, REFUSED, now, 0), None);
    assert_eq!((state.health(), state.last(), state.next_due()), (Health::AssumedUp, None, now));
    assert_eq!(state.reset(&spec, now, 0), None);
}

#[test]
fn a_shorter_interval_is_in_force_at_once() {
    let spec = ProbeSpec { interval: Duration::from_secs(60), ..ProbeSpec::default() };
    let mut state = ProbeState::new(&spec, Tick(0), 0);
    probe(&mut state, &spec, PASSED);
    let now = Tick::from_millis(1);
    assert!(state.next_due() > Tick::from_millis(50_000));
    let spec = ProbeSpec { jitter_per_mille: 0, ..ProbeSpec::default() };
    state.spec_changed(&spec, now, 0);
    assert_eq!(state.next_due(), now.after(spec.interval));
    assert_eq!(state.health(), Health::Up);
}

#[test]
fn the_defaults_keep_the_times_that_are_documented() {
    let spec = ProbeSpec::default();
    assert_eq!(spec.down_within(), Duration::from_millis(5200));
    assert_eq!(spec.up_within(), Duration::from_millis(4200));
    assert_eq!(spec.first_within(), Duration::from_millis(1500));
}

/// What the state must be after a history, read from its end each time.
fn health_after(history: &[ProbeResult], rise: u32, fall: u32) -> Option<Health> {
    let decided: Vec<bool> = history
        .iter()
        .filter(|result| !matches!(result, ProbeResult::Inconclusive(_)))
        .map(|result| *result == PASSED)
        .collect();
    let state = |passed| if passed { Health::Up } else { Health::Down };
    // The last run that was long enough to decide, or else the first result.
    for end in (1..=decided.len()).rev() {
        let passed = decided[end - 1];
        let run = decided[..end].iter().rev().take_while(|result| **result == passed).count();
        if run >= if passed { rise } else { fall } as usize {
            return Some(state(passed));
        }
    }
    decided.first().map(|passed| state(*passed))
}

proptest! {
    #[test]
    fn rise_and_fall_are_never_early_or_late(
        results in prop::collection::vec(prop::sample::select(vec![0, 0, 0, 1, 1, 1, 2]), 0..60),
        rise in 1_u32..5, fall in 1_u32..5, random in any::<u64>(),
    ) {
        let spec = ProbeSpec { rise: count(rise), fall: count(fall), ..ProbeSpec::default() };
        let mut state = ProbeState::new(&spec, Tick(0), random);
        let mut history = Vec::new();
        for result in results {
            let result = [PASSED, REFUSED, UNKNOWN][result].clone();
            history.push(result.clone());
            let before = state.health();
            let changed = probe(&mut state, &spec, result);
            let expected = health_after(&history, rise, fall).unwrap_or(Health::AssumedUp);
            prop_assert_eq!(state.health(), expected, "{:?}", history);
            prop_assert_eq!(changed.is_some(), before != expected);
        }
    }
}

/// An endpoint that works and fails by turns, under a clock of its own.
struct Endpoint {
    /// Moments at which it turns, ascending; it works before the first.
    turns: Vec<Tick>,
    hangs: bool,
}

impl Endpoint {
    fn random(rng: &mut Rng, end: Duration) -> Endpoint {
        let mut turns = Vec::new();
        let mut at = Duration::ZERO;
        while at < end {
            // Some phases are long, most are shorter than it takes to notice.
            let longest = if rng.below(3) == 0 { 30_000 } else { 2_000 };
            at += Duration::from_millis(rng.below(longest));
            turns.push(Tick(0).after(at));
        }
        Endpoint { turns, hangs: rng.below(2) == 0 }
    }

    fn works(&self, at: Tick) -> bool {
        self.turns.iter().filter(|turn| **turn <= at).count() % 2 == 0
    }

    /// Since when it has been as it is.
    fn since(&self, at: Tick) -> Tick {
        self.turns.iter().rev().find(|turn| **turn <= at).copied().unwrap_or_default()
    }

    /// A probe that began at this moment: its result and its end. It sees what the endpoint is at its
    /// end, as a probe does that waits for its answer.
    fn answer(&self, spec: &ProbeSpec, started: Tick, rng: &mut Rng) -> (ProbeResult, Tick) {
        let took = Duration::from_nanos(rng.below(spec.timeout.as_nanos() as u64));
        if self.works(started.after(took)) {
            return (PASSED, started.after(took));
        }
        match self.hangs {
            true => {
                let late = ProbeFailure::FirstByteTimeout(spec.timeout);
                (ProbeResult::Failed(late), started.after(spec.timeout))
            }
            false => (REFUSED, started.after(took)),
        }
    }
}

fn random_spec(rng: &mut Rng) -> ProbeSpec {
    let mut millis = |least, most| Duration::from_millis(least + rng.below(most - least));
    ProbeSpec {
        interval: millis(100, 3000),
        fast_interval: millis(20, 1000),
        timeout: millis(10, 1500),
        rise: count(1 + rng.below(4) as u32),
        fall: count(1 + rng.below(4) as u32),
        jitter_per_mille: rng.below(501) as u32,
        assume_up: rng.below(2) == 0,
    }
}

/// Runs one seeded life and holds the machine to its times. Answers how often its state could be held
/// against an endpoint that had been the same for long.
fn live(seed: u64) -> u32 {
    let mut rng = Rng::new(seed);
    let spec = random_spec(&mut rng);
    let end = Tick(0).after(Duration::from_secs(300));
    let endpoint = Endpoint::random(&mut rng, Duration::from_secs(300));
    let mut state = ProbeState::new(&spec, Tick(0), rng.next_u64());
    let fast = spec.fast_interval.min(spec.interval);
    let shortest = |period: Duration| period * (1000 - spec.jitter_per_mille) / 1000;
    let mut last_turn: Option<Tick> = None;
    let mut last_start: Option<Tick> = None;
    let mut noticed = 0;
    loop {
        let now = state.next_due();
        if now > end {
            return noticed;
        }
        if let Some(before) = last_start {
            let pause = now.since(before);
            assert!(pause >= shortest(fast), "seed {seed}: {pause:?} between two probes");
        }
        last_start = Some(now);
        let run = state.started(&spec, now);
        let (result, ended) = endpoint.answer(&spec, now, &mut rng);
        let before = state.health();
        let transition = state.finished(&spec, run, result, ended, rng.next_u64());
        if !before.is_known() {
            assert!(state.health().is_known(), "seed {seed}: the first result decides");
            assert!(ended <= Tick(0).after(spec.first_within()), "seed {seed}: at {ended:?}");
        }
        if let Some(transition) = &transition {
            let needed = if transition.to == Health::Up { spec.rise } else { spec.fall };
            if let Some(before) = last_turn {
                // From the probe that decided to the one that decides otherwise.
                let least = shortest(fast) * (needed.get() - 1);
                let pause = ended.since(before);
                assert!(pause >= least, "seed {seed}: {pause:?} between two transitions");
            }
            last_turn = Some(ended);
        }
        // The state before this result held until now: it must not have been wrong for too long.
        let limit = if endpoint.works(ended) { spec.up_within() } else { spec.down_within() };
        if before.is_known() && ended.since(endpoint.since(ended)) > limit {
            let right = before.is_up() == endpoint.works(ended);
            assert!(right, "seed {seed}: still {before} at {ended:?} under {spec:?}");
            noticed += 1;
        }
    }
}

#[test]
fn whatever_an_endpoint_does_it_is_noticed_in_time_and_not_too_often() {
    let noticed: u32 = (0..512).map(live).sum();
    assert!(noticed > 10_000, "{noticed}");
}

/// How late the slowest of many seeds noticed, against what is promised: the promise is kept, and it
/// is not a loose one.
#[test]
fn a_hanging_endpoint_is_down_within_the_time_promised() {
    let spec = ProbeSpec::default();
    let mut latest = Duration::ZERO;
    for seed in 0..2_000 {
        let mut rng = Rng::new(seed);
        let mut state = ProbeState::new(&spec, Tick(0), rng.next_u64());
        let hangs_from = Tick::from_millis(5_000 + rng.below(5_000));
        let endpoint = Endpoint { turns: vec![hangs_from], hangs: true };
        let down = loop {
            let now = state.next_due();
            let run = state.started(&spec, now);
            let (result, ended) = endpoint.answer(&spec, now, &mut rng);
            let transition = state.finished(&spec, run, result, ended, rng.next_u64());
            if let Some(transition) = transition.filter(|change| change.to == Health::Down) {
                break transition.at;
            }
        };
        let took = down.since(hangs_from);
        assert!(took <= spec.down_within(), "seed {seed}: {took:?}");
        latest = latest.max(took);
    }
    assert!(latest > spec.down_within() * 8 / 10, "{latest:?} of {:?}", spec.down_within());
}
