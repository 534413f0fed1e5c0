//! What depends on nothing else: not on time or hidden state, and for some not on the order of the
//! list.

use subak_base::Rng;

use crate::conformance::{
    Capabilities, Check, Make, Member, PLAIN, client, ensure, members, serve_key,
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        promise: "same inputs, same picks",
        applies: |_| true,
        needs: Capabilities { repeats: true, keys: true, tried: true, reloads: true, ..PLAIN },
        run: |_, make| same_inputs_same_picks(make),
    },
    Check {
        promise: "the order of the list is of no importance",
        applies: |traits| traits.ignores_order,
        needs: Capabilities { keys: true, ..PLAIN },
        run: |_, make| order_is_ignored(make),
    },
];

fn same_inputs_same_picks(make: Make<'_>) -> Result<(), String> {
    let weights = [1, 2, 3, 4, 5];
    let log = || {
        let mut rng = Rng::new(4);
        let mut subject = make(&members(&weights));
        let mut log = Vec::new();
        for _ in 0..301 {
            let tried: Vec<usize> = (0..5).filter(|_| rng.below(100) < 20).collect();
            let picked = subject.begin(client(&mut rng), &tried);
            if let Some(member) = picked.filter(|_| rng.below(3) > 0) {
                subject.end(member);
            }
            log.push(picked);
            if rng.below(10) == 0 {
                let eligible: Vec<bool> = weights.iter().map(|_| rng.below(100) < 80).collect();
                subject.reload(&weights, &eligible);
            }
        }
        log
    };
    ensure(log() == log(), || "two runs differ".into())
}

fn order_is_ignored(make: Make<'_>) -> Result<(), String> {
    let list = members(&[3, 1, 0, 2, 5, 1, 7]);
    let mut rng = Rng::new(6);
    for turn in 1..list.len() {
        let mut turned = list.clone();
        turned.rotate_left(turn);
        turned.swap(0, 3);
        let (mut one, mut other) = (make(&list), make(&turned));
        for _ in 0..500 {
            let client = client(&mut rng);
            let first = named(&list, serve_key(one.as_mut(), client)?);
            let second = named(&turned, serve_key(other.as_mut(), client)?);
            ensure(first.is_some() && first == second, || {
                format!("{client:?} goes to {first:?}, and to {second:?} with {turned:?}")
            })?;
        }
    }
    Ok(())
}

/// Who it is that has this place.
fn named(list: &[Member], place: usize) -> Option<usize> {
    list.get(place).map(|member| member.number)
}
