//! Maglev tables: alike on every node, even, and hardly changed when somebody goes or comes.

use crate::support::{Pool, endpoints};
use subak_balance::{
    Algorithm, BalanceFactor, Balancer, Endpoints, Entry, KeySource, Recipe, Table,
};
use subak_base::{BitSet, Rng, Weight};

const MAGLEV: Algorithm =
    Algorithm::Maglev { key: KeySource::Source, balance_factor: BalanceFactor::UNBOUND };

/// Endpoints as they are named in production, the weight of each by its number.
fn list(numbers: impl IntoIterator<Item = usize>, weight: impl Fn(usize) -> u16) -> Endpoints {
    let entry = |number: usize| {
        let name = format!("10.0.{}.{}:8080", number / 256, number % 256);
        Entry::new(format!("http://{name}"), name, Weight(weight(number)))
    };
    Endpoints::new(numbers.into_iter().map(entry).collect()).unwrap()
}

/// The number of the endpoint of every slot.
fn table(endpoints: &Endpoints, eligible: &BitSet) -> Vec<String> {
    let recipe = Recipe { algorithm: &MAGLEV, endpoints, eligible, previous: None };
    let balancer = Balancer::build(recipe);
    let Some(Table::Slots { slots, .. }) = balancer.table() else { panic!("a table of slots") };
    slots.iter().map(|index| endpoints.entry(*index as usize).name.clone()).collect()
}

fn whole_table(endpoints: &Endpoints) -> Vec<String> {
    table(endpoints, &BitSet::full(endpoints.len()))
}

#[test]
fn lists_in_different_order_give_identical_tables() {
    let weight = |number: usize| 1 + (number % 3) as u16;
    let straight = whole_table(&list(0..60, weight));
    let mut rng = Rng::new(1);
    for _ in 0..3 {
        let mut numbers: Vec<usize> = (0..60).collect();
        (1..60).for_each(|last| numbers.swap(last, rng.below(last as u64 + 1) as usize));
        assert!(whole_table(&list(numbers, weight)) == straight);
    }
}

/// The table is frozen: another version that has it otherwise would move every client.
#[test]
fn the_table_is_the_same_in_every_version() {
    let slots = whole_table(&list(0..5, |_| 1));
    let digest =
        slots.iter().fold(0, |digest, name| subak_balance::hash64(name.as_bytes(), digest));
    assert_eq!((slots.len(), digest), (65_537, DIGEST));
}

const DIGEST: u64 = 6_599_105_832_108_889_971;

fn slots_of(table: &[String], endpoints: &Endpoints) -> Vec<usize> {
    let mut counts = std::collections::HashMap::new();
    table.iter().for_each(|name| *counts.entry(name.as_str()).or_insert(0) += 1);
    endpoints.iter().map(|entry| counts.get(entry.name.as_str()).copied().unwrap_or(0)).collect()
}

#[test]
fn equal_weights_differ_by_one_slot_at_most() {
    for count in [1, 2, 3, 7, 100, 655, 656, 1_000] {
        let endpoints = list(0..count, |_| 3);
        let slots = slots_of(&whole_table(&endpoints), &endpoints);
        let (least, most) = (slots.iter().min().unwrap(), slots.iter().max().unwrap());
        assert!(most - least <= 1, "{count} endpoints have {least} to {most} slots");
    }
}

#[test]
fn slots_are_as_weights_are_to_one() {
    let weights = [0, 1, 2, 5, 65_535, 300];
    let endpoints = list(0..weights.len(), |number| weights[number]);
    let slots = slots_of(&whole_table(&endpoints), &endpoints);
    let total: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
    for (weight, slots) in weights.iter().zip(slots) {
        let due = f64::from(*weight) * 65_537.0 / total;
        assert!((slots as f64 - due).abs() <= 3.0, "{slots} for {due}");
        assert_eq!(*weight == 0, slots == 0);
    }
}

/// How many of a million clients change their endpoint, of those that need not.
fn moved(before: &[String], after: &[String], concerned: &str) -> f64 {
    let mut rng = Rng::new(2);
    let (mut others, mut moved) = (0, 0);
    for _ in 0..1_000_000 {
        let client = (rng.next_u64() as u32).to_be_bytes();
        let slot = (subak_balance::hash64(&client, 0) % before.len() as u64) as usize;
        // Whoever is with the one that goes, or goes to the one that comes, has to move.
        if before[slot] != concerned && after[slot] != concerned {
            others += 1;
            moved += u32::from(before[slot] != after[slot]);
        }
    }
    f64::from(moved) / f64::from(others)
}

#[test]
fn of_a_million_clients_one_endpoint_of_100_moves_at_most_1_percent_of_the_others() {
    let whole = list(0..100, |_| 1);
    let full = whole_table(&whole);
    for gone in [0, 17, 50, 99] {
        let name = whole.entry(gone).name.clone();
        let fewer = list((0..100).filter(|number| *number != gone), |_| 1);
        let without = whole_table(&fewer);
        let (removed, added) = (moved(&full, &without, &name), moved(&without, &full, &name));
        assert!(removed <= 0.01, "{name} removed: {:.3} % moved", removed * 100.0);
        assert!(added <= 0.01, "{name} added: {:.3} % moved", added * 100.0);
        // One that is out for a while is the same as one that is not in the list.
        let eligible = (0..100).filter(|index| *index != gone).collect();
        assert!(table(&whole, &eligible) == without);
    }
}

#[test]
fn a_retry_and_one_just_left_out_walk_on_in_the_table() {
    let mut pool = Pool::new(MAGLEV, endpoints(&[1, 2, 1, 3]));
    let mut rng = Rng::new(3);
    for _ in 0..2_000 {
        let client = crate::support::client(&mut rng);
        let Some(Table::Slots { slots, .. }) = pool.balancer.table() else { panic!("slots") };
        let octets = match client {
            std::net::IpAddr::V4(v4) => v4.octets().to_vec(),
            std::net::IpAddr::V6(v6) => v6.octets().to_vec(),
        };
        let start = (subak_balance::hash64(&octets, 0) % slots.len() as u64) as usize;
        let mut walk: Vec<usize> = Vec::new();
        for index in slots[start..].iter().chain(slots).map(|index| *index as usize) {
            if !walk.contains(&index) {
                walk.push(index);
            }
        }
        let mut tried = BitSet::EMPTY;
        for expected in walk {
            assert_eq!(pool.pick_for(client, &tried), Some(expected));
            tried.insert(expected);
        }
    }
}

#[test]
fn ten_thousand_endpoints_have_a_hundred_slots_each() {
    let endpoints = list(0..10_000, |_| 1);
    let slots = slots_of(&whole_table(&endpoints), &endpoints);
    assert_eq!(slots.iter().sum::<usize>(), 1_048_583);
    assert!(slots.iter().all(|slots| (104..=105).contains(slots)));
}

#[test]
fn whoever_of_100_goes_moves_at_most_1_percent_of_the_others_slots() {
    let whole = list(0..100, |_| 1);
    let full = whole_table(&whole);
    let mut most = 0;
    for gone in 0..100 {
        let name = &whole.entry(gone).name;
        let without = whole_table(&list((0..100).filter(|number| *number != gone), |_| 1));
        let kept = full.iter().zip(&without).filter(|(before, _)| *before != name);
        let (others, moved) = kept.fold((0, 0), |(others, moved), (before, after)| {
            (others + 1, moved + u32::from(before != after))
        });
        assert!(moved * 100 <= others, "{name}: {moved} of {others}");
        most = most.max(moved);
    }
    assert!(most > 0, "a table that moves nobody is too good to be true");
}
