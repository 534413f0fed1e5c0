//! `ip_hash` against nginx's request-long state machine, retries included.

use std::net::IpAddr;

use crate::support::nginx::{Choice, IpHashRequest};
use crate::support::{Pool, client, endpoints, some_of};
use subak_balance::{Algorithm, Key, Table};
use subak_base::{BitSet, Rng};

/// Every retry of one request until nothing is left; how many picks the hash decided.
fn follow_one_request(pool: &mut Pool, client: IpAddr) -> usize {
    let weights = pool.weights();
    let mut expected = IpHashRequest::new(client);
    let mut tried = BitSet::EMPTY;
    let mut by_hash = 0;
    for _ in 0..pool.candidates(&BitSet::EMPTY).len() {
        let tickets = pool.tickets.0.get();
        let picked = pool.pick_for(client, &tried).expect("a candidate is left");
        let eligible = &pool.eligible;
        match expected.choose(&weights, |index| eligible.contains(index)) {
            Choice::Hash(index) => {
                assert_eq!(picked, index, "{client} after {tried:?}");
                assert_eq!(pool.tickets.0.get(), tickets, "{client}: a ticket for nothing");
                by_hash += 1;
            }
            // nginx leaves the rest of the retries to round robin, too.
            Choice::RoundRobin => {
                assert_eq!(pool.tickets.0.get(), tickets + 1, "{client} after {tried:?}");
            }
        }
        tried.insert(picked);
    }
    assert_eq!(pool.pick_for(client, &tried), None);
    by_hash
}

#[test]
fn follows_every_request_to_its_last_retry() {
    let mut by_hash = 0;
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let count = 1 + rng.below(9) as usize;
        let weights: Vec<u16> =
            (0..count).map(|_| [0, 1, 1, 2, 9][rng.below(5) as usize]).collect();
        let mut pool = Pool::new(Algorithm::IpHash, endpoints(&weights));
        pool.set_eligible(some_of(count, 75, &mut rng));
        for _ in 0..100 {
            by_hash += follow_one_request(&mut pool, client(&mut rng));
        }
    }
    assert!(by_hash > 10_000, "the hash decided only {by_hash} picks");
}

#[test]
fn follows_requests_before_the_rebuild_too() {
    // An endpoint has just been left out and the table still names it.
    let mut rng = Rng::new(9);
    let mut pool = Pool::new(Algorithm::IpHash, endpoints(&[3, 1, 2, 1]));
    pool.eligible.remove(2);
    for _ in 0..1_000 {
        follow_one_request(&mut pool, client(&mut rng));
    }
}

#[test]
fn more_endpoints_and_weight_than_any_hash_reaches() {
    let mut rng = Rng::new(10);
    for weights in [vec![1; 10_000], vec![0; 7_000], vec![65_535; 300], {
        let mut sparse = vec![0; 9_000];
        sparse[8_999] = 1;
        sparse[8_000] = 65_535;
        sparse
    }] {
        let mut pool = Pool::new(Algorithm::IpHash, endpoints(&weights));
        let weights = pool.weights();
        let total: u64 = weights.iter().sum();
        for _ in 0..200 {
            let client = client(&mut rng);
            let picked = pool.pick_for(client, &BitSet::EMPTY);
            match IpHashRequest::new(client).choose(&weights, |_| true) {
                Choice::Hash(index) => assert_eq!(picked, Some(index)),
                Choice::RoundRobin => assert_eq!((picked, total), (None, 0)),
            }
        }
    }
}

#[test]
fn the_whole_list_tried_takes_a_bounded_walk() {
    // Everything but one endpoint at its cap: each is passed once for free, and 21 times more.
    let mut rng = Rng::new(11);
    let count = 5_000;
    let mut pool = Pool::new(Algorithm::IpHash, endpoints(&vec![1; count]));
    let others: BitSet = (0..count).filter(|index| *index != 77).collect();
    for _ in 0..100 {
        assert_eq!(pool.pick_for(client(&mut rng), &others), Some(77));
    }
}

#[test]
fn an_ipv4_client_counts_by_its_first_three_octets_however_it_is_written() {
    let mut pool = Pool::new(Algorithm::IpHash, endpoints(&[1; 50]));
    let mut pick = |text: &str| pool.pick_for(text.parse().unwrap(), &BitSet::EMPTY);
    assert_eq!(pick("203.0.113.7"), pick("203.0.113.250"));
    assert_eq!(pick("203.0.113.7"), pick("::ffff:203.0.113.7"));
    assert_ne!(pick("203.0.113.7"), pick("203.0.114.7"));
    assert_ne!(pick("2001:db8::1"), pick("2001:db8::2"));
}

#[test]
fn what_has_no_address_is_served_in_turn() {
    let mut pool = Pool::new(Algorithm::IpHash, endpoints(&[1, 2]));
    for key in [Key::None, Key::Bytes(b"unix:")] {
        let picks: Vec<_> = (0..3).map(|_| pool.pick_with(key, &BitSet::EMPTY).unwrap()).collect();
        assert_eq!(picks, [1, 0, 1]);
    }
}

#[test]
fn the_table_names_the_endpoint_of_every_first_hash() {
    let mut pool = Pool::new(Algorithm::IpHash, endpoints(&[1, 1, 1]));
    pool.set_eligible([1].into_iter().collect());
    let Some(Table::Address { ipv4, ipv6, cycle }) = pool.balancer.table() else {
        panic!("ip_hash has a table")
    };
    assert_eq!((ipv4.len(), ipv6.len(), cycle), (6_271, 6_271, &[1][..]));
    // h = 89 hashes to itself for ever, and falls on 89 mod 3 = 2: 21 misses.
    assert_eq!((ipv4[89], ipv6[89]), (Table::NO_SLOT, Table::NO_SLOT));
    assert!(ipv4.iter().filter(|slot| **slot == 1).count() > 6_200);
}
