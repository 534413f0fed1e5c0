//! Who may be picked: never anybody else, and somebody as long as there is one.

use subak_base::Rng;

use crate::conformance::{Capabilities, Check, Make, PLAIN, Subject, client, ensure, members};
use crate::key::Key;

pub(super) const CHECKS: &[Check] = &[
    Check {
        promise: "weight 0 is never picked",
        applies: |_| true,
        needs: PLAIN,
        run: |_, make| weight_zero(make),
    },
    Check {
        promise: "never an ineligible endpoint, and none exactly when none is eligible",
        applies: |_| true,
        needs: Capabilities { reloads: true, ..PLAIN },
        run: |_, make| eligible_only(make),
    },
    Check {
        promise: "retries never repeat a tried endpoint, and reach everyone",
        applies: |_| true,
        needs: Capabilities { tried: true, ..PLAIN },
        run: |_, make| retries(make),
    },
];

/// Up to 12 weights of all kinds, 0 among them.
fn any_weights(rng: &mut Rng) -> Vec<u16> {
    let count = rng.below(13) as usize;
    (0..count).map(|_| [0, 1, 1, 2, 7][rng.below(5) as usize]).collect()
}

fn any_key<'a>(rng: &mut Rng) -> Key<'a> {
    match rng.below(4) {
        0 => Key::None,
        1 => Key::Bytes(b"some key"),
        _ => client(rng),
    }
}

fn weight_zero(make: Make<'_>) -> Result<(), String> {
    let weights = [0, 2, 0, 1, 0];
    let mut subject = make(&members(&weights));
    for _ in 0..200 {
        let picked = subject.begin(Key::None, &[]).ok_or("nobody was picked")?;
        ensure(weights.get(picked).is_some_and(|w| *w > 0), || format!("{picked} was picked"))?;
        // Half of them stay in flight.
        if picked == 1 {
            subject.end(picked);
        }
    }
    let all_zero = make(&members(&[0, 0])).begin(Key::None, &[]);
    ensure(all_zero.is_none(), || format!("{all_zero:?} was picked when all weights are 0"))
}

fn eligible_only(make: Make<'_>) -> Result<(), String> {
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let weights = any_weights(&mut rng);
        let mut subject = make(&members(&weights));
        let mut in_flight = Vec::new();
        for _ in 0..8 {
            let eligible: Vec<bool> = weights.iter().map(|_| rng.below(100) < 60).collect();
            subject.reload(&weights, &eligible);
            let candidates: Vec<usize> = (0..weights.len())
                .filter(|member| weights[*member] > 0 && eligible[*member])
                .collect();
            for _ in 0..5 {
                let picked = subject.begin(any_key(&mut rng), &[]);
                let is_right = match picked {
                    Some(member) => candidates.contains(&member),
                    None => candidates.is_empty(),
                };
                ensure(is_right, || format!("seed {seed}: {picked:?} out of {candidates:?}"))?;
                in_flight.extend(picked);
                if rng.below(2) == 0 && !in_flight.is_empty() {
                    subject.end(in_flight.swap_remove(rng.below(in_flight.len() as u64) as usize));
                }
            }
        }
    }
    Ok(())
}

fn retries(make: Make<'_>) -> Result<(), String> {
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let weights = any_weights(&mut rng);
        let mut subject = make(&members(&weights));
        // Some are in flight already.
        for _ in 0..rng.below(20) {
            subject.begin(any_key(&mut rng), &[]);
        }
        let key = any_key(&mut rng);
        let all = weights.iter().filter(|weight| **weight > 0).count();
        follow(subject.as_mut(), key, all).map_err(|broken| format!("seed {seed}: {broken}"))?;
    }
    Ok(())
}

/// One request that every member refuses.
fn follow(subject: &mut dyn Subject, key: Key<'_>, all: usize) -> Result<(), String> {
    let mut tried = Vec::new();
    for _ in 0..all {
        match subject.begin(key, &tried) {
            Some(member) if !tried.contains(&member) => {
                subject.end(member);
                tried.push(member);
            }
            other => return Err(format!("{other:?} after {tried:?}")),
        }
    }
    match subject.begin(key, &tried) {
        None => Ok(()),
        Some(member) => Err(format!("{member} when all were tried")),
    }
}
