//! What a change keeps: nothing restarts.

use subak_base::Rng;

use crate::conformance::share::goes_by_in_flight;
use crate::conformance::{Capabilities, Check, Make, PLAIN, ensure, members, serve};
use crate::key::Key;

pub(super) const CHECKS: &[Check] = &[
    Check {
        promise: "a reload that changes nothing changes no pick",
        applies: |_| true,
        needs: Capabilities { reloads: true, repeats: true, ..PLAIN },
        run: |_, make| reloads_alone_change_nothing(make),
    },
    Check {
        promise: "through changes nobody is more than 2 picks off its share",
        applies: |traits| traits.keeps_pace,
        needs: Capabilities { reloads: true, ..PLAIN },
        run: |_, make| pace(make),
    },
    Check {
        promise: "a change of weights forgets nothing that is in flight",
        applies: goes_by_in_flight,
        needs: Capabilities { reloads: true, holds: true, ..PLAIN },
        run: |_, make| in_flight_is_remembered(make),
    },
];

fn reloads_alone_change_nothing(make: Make<'_>) -> Result<(), String> {
    let weights = [5, 1, 0, 3, 2];
    let (mut left_alone, mut reloaded) = (make(&members(&weights)), make(&members(&weights)));
    let mut rng = Rng::new(5);
    for pick in 0..100 {
        let (expected, picked) = (serve(left_alone.as_mut())?, serve(reloaded.as_mut())?);
        ensure(picked == expected, || format!("pick {pick}: {picked} for {expected}"))?;
        if rng.below(2) == 0 {
            reloaded.reload(&weights, &[true; 5]);
        }
    }
    Ok(())
}

/// Reloaded every few picks, with other weights and other members eligible.
fn pace(make: Make<'_>) -> Result<(), String> {
    let mut rng = Rng::new(3);
    let draw = |rng: &mut Rng| [(); 4].map(|()| 1 + rng.below(9) as u16);
    let mut subject = make(&members(&draw(&mut rng)));
    const PICK: i64 = 1 << 40;
    let mut owed = [0_i64; 4];
    for _ in 0..150 {
        let weights = draw(&mut rng);
        let mut eligible = [(); 4].map(|()| rng.below(100) < 75);
        eligible[rng.below(4) as usize] = true;
        subject.reload(&weights, &eligible);
        let in_force =
            |member: usize| if eligible[member] { i64::from(weights[member]) } else { 0 };
        let total: i64 = (0..4).map(in_force).sum();
        for _ in 0..rng.below(6) {
            let picked = serve(subject.as_mut())?;
            (0..4).for_each(|member| owed[member] += PICK * in_force(member) / total);
            *owed.get_mut(picked).ok_or("somebody else was picked")? -= PICK;
        }
    }
    let most = owed.iter().map(|owed| owed.abs()).max().unwrap_or(0);
    ensure(most <= 2 * PICK, || format!("{} % of a pick off", most * 100 / PICK))
}

/// Two members, one of them emptied: it is next after a reload, as it would be without.
fn in_flight_is_remembered(make: Make<'_>) -> Result<(), String> {
    let mut subject = make(&members(&[1, 1]));
    let mut in_flight = [0; 2];
    for _ in 0..40 {
        let picked = subject.begin(Key::None, &[]).ok_or("nobody was picked")?;
        *in_flight.get_mut(picked).ok_or("somebody else was picked")? += 1;
    }
    for emptied in [0, 1] {
        (0..in_flight[emptied]).for_each(|_| subject.end(emptied));
        in_flight[emptied] = 0;
        subject.reload(&[1, 1], &[true; 2]);
        while in_flight[emptied] < in_flight[1 - emptied] / 2 {
            let picked = subject.begin(Key::None, &[]);
            ensure(picked == Some(emptied), || {
                format!("{picked:?} instead of {emptied} at {in_flight:?} in flight")
            })?;
            in_flight[emptied] += 1;
        }
    }
    Ok(())
}
