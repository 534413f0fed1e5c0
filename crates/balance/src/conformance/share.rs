//! Who gets how much. What is promised depends on the name: see [`Share`].

use subak_base::Rng;

use crate::catalogue::{Share, Traits};
use crate::conformance::{
    Capabilities, Check, Make, PLAIN, Subject, client, ensure, members, serve, serve_key,
};
use crate::key::Key;

pub(super) const CHECKS: &[Check] = &[
    Check {
        promise: "shares by weight",
        applies: |_| true,
        needs: PLAIN,
        run: |traits, make| match traits.share {
            Share::Exact | Share::ByKey | Share::ByLoad => exact_cycles(make),
            Share::ByChance | Share::ByDraw => by_chance(make),
            Share::ByLatency => ties_are_shared(make),
            Share::First => all_to_the_first(make),
        },
    },
    Check {
        promise: "shares by weight, whatever is in flight",
        applies: |traits| matches!(traits.share, Share::Exact | Share::ByChance),
        needs: Capabilities { holds: true, keys: true, ..PLAIN },
        run: |traits, make| unmoved_by_load(traits, make),
    },
    Check {
        promise: "clients are shared by weight, and stay where they are",
        applies: |traits| traits.share == Share::ByKey,
        needs: Capabilities { keys: true, ..PLAIN },
        run: |_, make| clients_by_weight(make),
    },
    Check {
        promise: "what is in flight is as the weights are",
        applies: goes_by_in_flight,
        needs: Capabilities { holds: true, ..PLAIN },
        run: |traits, make| filled_by_weight(traits, make),
    },
    Check {
        promise: "some that are equal share by weight, and the others get nothing",
        applies: |traits| traits.share == Share::ByLoad && goes_by_in_flight(traits),
        needs: Capabilities { holds: true, ..PLAIN },
        run: |_, make| least_loaded_by_weight(make),
    },
];

/// Weights with a 0 among them, and their sum.
const WEIGHTS: [u16; 6] = [3, 1, 0, 2, 5, 1];
const TOTAL: u64 = 12;

/// Requests over which chance evens out.
const MANY: u64 = 30_000;

/// Whether what is in flight decides, alone or with something that is alike everywhere here.
pub(super) fn goes_by_in_flight(traits: &Traits) -> bool {
    matches!(traits.share, Share::ByLoad | Share::ByDraw | Share::ByLatency)
        && !traits.wants.packets
        && !traits.wants.bytes
}

/// One after the other and without a key: each cycle of Σw is exactly by weight.
fn exact_cycles(make: Make<'_>) -> Result<(), String> {
    let mut subject = make(&members(&WEIGHTS));
    let mut hits = [0_u64; 6];
    for cycle in 1..=50 {
        for _ in 0..TOTAL {
            count(&mut hits, serve(subject.as_mut())?)?;
        }
        let due = WEIGHTS.map(|weight| u64::from(weight) * cycle);
        ensure(hits == due, || format!("{hits:?} instead of {due:?}"))?;
    }
    Ok(())
}

fn by_chance(make: Make<'_>) -> Result<(), String> {
    let mut subject = make(&members(&WEIGHTS));
    let mut hits = [0; 6];
    for _ in 0..MANY {
        count(&mut hits, serve(subject.as_mut())?)?;
    }
    near(&hits, &WEIGHTS, 5)
}

/// Equally good for equal weights: nobody is preferred.
fn ties_are_shared(make: Make<'_>) -> Result<(), String> {
    let weights = [2, 2, 0, 2, 2];
    let mut subject = make(&members(&weights));
    let mut hits = [0; 5];
    for _ in 0..MANY {
        count(&mut hits, serve(subject.as_mut())?)?;
    }
    near(&hits, &weights, 5)
}

fn all_to_the_first(make: Make<'_>) -> Result<(), String> {
    let mut subject = make(&members(&[0, 1, 9, 9]));
    for _ in 0..100 {
        // They stay in flight: that does not matter.
        let picked = subject.begin(Key::None, &[]);
        ensure(picked == Some(1), || format!("{picked:?} instead of 1"))?;
    }
    Ok(())
}

fn unmoved_by_load(traits: &Traits, make: Make<'_>) -> Result<(), String> {
    let mut subject = make(&members(&WEIGHTS));
    let mut rng = Rng::new(1);
    let (mut hits, mut in_flight) = ([0; 6], Vec::new());
    let requests = if traits.share == Share::Exact { 50 * TOTAL } else { MANY };
    for _ in 0..requests {
        let picked = subject.begin(client(&mut rng), &[]).ok_or("nobody was picked")?;
        count(&mut hits, picked)?;
        // What is in flight piles up at the first members.
        if picked > 1 || rng.below(4) == 0 {
            subject.end(picked);
        } else {
            in_flight.push(picked);
        }
    }
    let allowed = if traits.share == Share::Exact { 0 } else { 5 };
    near(&hits, &WEIGHTS, allowed)
}

fn clients_by_weight(make: Make<'_>) -> Result<(), String> {
    let mut subject = make(&members(&WEIGHTS));
    let mut rng = Rng::new(2);
    let mut hits = [0; 6];
    for _ in 0..MANY {
        let client = client(&mut rng);
        let first = serve_key(subject.as_mut(), client)?;
        let again = serve_key(subject.as_mut(), client)?;
        ensure(first == again, || format!("{client:?} moved from {first} to {again}"))?;
        count(&mut hits, first)?;
    }
    near(&hits, &WEIGHTS, 10)
}

/// Nothing ends: each member gets in flight what its weight is due of all.
fn filled_by_weight(traits: &Traits, make: Make<'_>) -> Result<(), String> {
    let mut subject = make(&members(&WEIGHTS));
    let mut hits = [0; 6];
    for _ in 0..100 * TOTAL {
        count(&mut hits, subject.begin(Key::None, &[]).ok_or("nobody was picked")?)?;
    }
    let allowed = if traits.share == Share::ByLoad { 0 } else { 5 };
    near(&hits, &WEIGHTS, allowed)
}

/// Members 0, 3 and 4 are equal, the others have more: by weight among those three.
fn least_loaded_by_weight(make: Make<'_>) -> Result<(), String> {
    let mut subject = make(&members(&WEIGHTS));
    fill(subject.as_mut(), 4)?;
    for member in [0, 3, 4] {
        (0..u64::from(WEIGHTS[member])).for_each(|_| subject.end(member));
    }
    let mut hits = [0; 6];
    for _ in 0..MANY {
        count(&mut hits, serve(subject.as_mut())?)?;
    }
    near(&hits, &[3, 0, 0, 2, 5, 0], 5)
}

/// So many rounds of Σw requests that stay in flight.
pub(super) fn fill(subject: &mut dyn Subject, rounds: u64) -> Result<(), String> {
    for _ in 0..rounds * TOTAL {
        subject.begin(Key::None, &[]).ok_or("nobody was picked")?;
    }
    Ok(())
}

fn count(hits: &mut [u64], member: usize) -> Result<(), String> {
    let hits = hits.get_mut(member).ok_or_else(|| format!("{member} is not in the list"))?;
    *hits += 1;
    Ok(())
}

/// Each within so many percent of what its weight is due.
fn near(hits: &[u64], weights: &[u16], percent: u64) -> Result<(), String> {
    let requests: u64 = hits.iter().sum();
    let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
    let due: Vec<u64> =
        weights.iter().map(|weight| requests * u64::from(*weight) / total.max(1)).collect();
    let is_near = |(hits, due): (&u64, &u64)| hits.abs_diff(*due) <= due * percent / 100;
    ensure(hits.iter().zip(&due).all(is_near), || {
        format!("{hits:?} instead of {due:?} within {percent} %")
    })
}
