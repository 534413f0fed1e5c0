//! What every entry of the catalogue promises, checked by a loop over the catalogue; and the proof
//! that the checks notice: balancers broken on purpose must fail them.

use crate::support::subject::InProcess;
use crate::support::{Fault, Pool, algorithms, endpoints};
use subak_balance::catalogue::Share;
use subak_balance::conformance::{Capabilities, Finding, Member, Verdict, first_broken, judge};
use subak_balance::{Algorithm, Completion, Table};
use subak_base::Tick;

#[test]
fn every_entry_keeps_its_promises() {
    for algorithm in algorithms() {
        let traits = algorithm.traits();
        let make = |members: &[Member]| boxed(&algorithm, members, Fault::None);
        for Finding { promise, verdict } in judge(&traits, Capabilities::ALL, &make) {
            let is_kept = matches!(verdict, Verdict::Kept | Verdict::NotPromised);
            assert!(is_kept, "{algorithm:?}: {promise}: {verdict:?}");
        }
    }
}

#[test]
fn no_fault_passes_unnoticed() {
    let mut noticed = 0;
    for algorithm in algorithms() {
        let traits = algorithm.traits();
        for fault in faults(&algorithm) {
            let make = |members: &[Member]| boxed(&algorithm, members, fault);
            let broken = first_broken(&traits, Capabilities::ALL, &make);
            assert!(broken.is_some(), "{algorithm:?}: no check notices {fault:?}");
            noticed += 1;
        }
    }
    assert!(noticed >= 150, "only {noticed} broken balancers were judged");
}

/// A black box that only answers requests one after the other is judged by what can be seen of it.
#[test]
fn a_black_box_is_judged_by_what_can_be_seen() {
    let round_robin = algorithms().remove(0);
    let make = |members: &[Member]| boxed(&round_robin, members, Fault::WeightIgnored);
    let findings = judge(&round_robin.traits(), Capabilities::default(), &make);
    let verdicts = |wanted: fn(&Verdict) -> bool| {
        findings.iter().filter(|finding| wanted(&finding.verdict)).count()
    };
    assert_eq!(verdicts(|verdict| matches!(verdict, Verdict::Broken(_))), 1, "{findings:?}");
    assert!(verdicts(|verdict| *verdict == Verdict::Unseen) > 3, "{findings:?}");
}

fn boxed(
    algorithm: &Algorithm,
    members: &[Member],
    fault: Fault,
) -> Box<dyn subak_balance::conformance::Subject> {
    Box::new(InProcess::new(algorithm, members, fault))
}

/// The faults that make a difference to an algorithm.
fn faults(algorithm: &Algorithm) -> Vec<Fault> {
    let share = algorithm.traits().share;
    let by_load = matches!(share, Share::ByLoad | Share::ByDraw | Share::ByLatency);
    let by_in_flight =
        by_load && !algorithm.traits().wants.packets && !algorithm.traits().wants.bytes;
    let mut faults =
        vec![Fault::ZeroIsOne, Fault::TriedIgnored, Fault::EligibleIgnored, Fault::HiddenState];
    // The first of the list is the first of equals.
    if share != Share::First {
        faults.extend([Fault::WeightIgnored, Fault::FirstOnTie]);
    }
    // There is nothing to forget where only chance or the list decides.
    if !matches!(share, Share::First | Share::ByChance) {
        faults.push(Fault::RestartOnRebuild);
    }
    if share == Share::ByKey {
        faults.push(Fault::KeyIgnored);
    }
    if by_in_flight {
        faults.push(Fault::BusierKept);
    }
    faults
}

#[test]
fn the_flat_table_is_what_is_picked() {
    for algorithm in algorithms() {
        let mut pool = Pool::new(algorithm.clone(), endpoints(&[4, 0, 1, 2]));
        pool.set_eligible([0, 2, 3].into_iter().collect());
        let table = pool.balancer.table();
        assert_eq!(table.is_some(), algorithm.traits().has_table, "{algorithm:?}");
        match table {
            None => {}
            Some(Table::Sequence { prefix, cycle }) => {
                let expected: Vec<usize> =
                    prefix.iter().chain(cycle).chain(cycle).map(|index| *index as usize).collect();
                assert_eq!(pool.picks(expected.len()), expected);
            }
            Some(Table::Address { ipv4, ipv6, .. }) => {
                assert_eq!(ipv4.len(), ipv6.len());
                assert_eq!(named_in(ipv4), [0, 2, 3]);
                assert_eq!(named_in(ipv6), [0, 2, 3]);
            }
            Some(Table::Slots { slots, .. }) => {
                assert_eq!(named_in(slots), [0, 2, 3]);
                let slots = slots.to_vec();
                for number in 0..1000_u32 {
                    let key = number.to_be_bytes();
                    let slot = subak_balance::hash64(&key, 0) % slots.len() as u64;
                    let picked =
                        pool.pick_with(subak_balance::Key::Bytes(&key), &subak_base::BitSet::EMPTY);
                    assert_eq!(picked, Some(slots[slot as usize] as usize));
                }
            }
        }
    }
}

/// The endpoints that a table names.
fn named_in(slots: &[u32]) -> Vec<u32> {
    let mut named = slots.to_vec();
    named.sort_unstable();
    named.dedup();
    named.retain(|slot| *slot != Table::NO_SLOT);
    named
}

#[test]
fn cells_are_kept_or_left_alone() {
    for algorithm in algorithms() {
        let pool = Pool::new(algorithm.clone(), endpoints(&[1, 1]));
        let elapsed = std::time::Duration::from_millis(3);
        let now = Tick::from_millis(9);
        let completion = Completion { now, elapsed, first_byte: Some(elapsed), failed: false };
        let changes = [0, 1 << 27, u64::MAX].into_iter().any(|cell| {
            pool.balancer.on_dispatch(cell, Tick::from_millis(6)) != cell
                || pool.balancer.on_complete(cell, 0, &completion, &pool.loads) != cell
        });
        assert_eq!(changes, pool.balancer.keeps_cells(), "{algorithm:?}");
        assert_eq!(pool.balancer.wants(), algorithm.traits().wants);
    }
}
