//! `new_hash` against the formula, step by step and request by request.

use std::net::IpAddr;

use crate::support::{Pool, client, endpoints, some_of};
use subak_balance::catalogue::{self, OptionValue};
use subak_balance::{Algorithm, Key};
use subak_base::{BitSet, Rng};

fn of_octets(octets: u32) -> Algorithm {
    let options = [("octets", OptionValue::Integer(octets))];
    catalogue::find("new_hash").unwrap().configure("new_hash", &options).unwrap()
}

/// One request that may be tried at several endpoints, as a state machine.
struct Request {
    octets: Vec<u8>,
    hash: u32,
    misses: u32,
    tried: Vec<usize>,
}

impl Request {
    fn new(client: IpAddr, of_ipv4: usize) -> Request {
        let octets = match client.to_canonical() {
            IpAddr::V4(v4) => v4.octets()[..of_ipv4].to_vec(),
            IpAddr::V6(v6) => v6.octets().to_vec(),
        };
        Request { octets, hash: 89, misses: 0, tried: Vec::new() }
    }

    /// The next endpoint; none when round robin is asked.
    fn choose(&mut self, weights: &[u64], eligible: &BitSet) -> Option<usize> {
        let total: u64 = weights.iter().sum();
        if weights.len() < 2 || total == 0 {
            return None;
        }
        while self.misses <= 20 {
            for octet in &self.octets {
                let times33 = u64::from(self.hash) * 33 + u64::from(*octet);
                self.hash = (times33 % (1 << 32)) as u32 ^ (self.hash >> 16);
            }
            let mut slot = u64::from(self.hash) % total;
            let mut index = 0;
            while slot >= weights[index] {
                slot -= weights[index];
                index += 1;
            }
            if eligible.contains(index) && !self.tried.contains(&index) {
                self.tried.push(index);
                return Some(index);
            }
            self.misses += 1;
        }
        None
    }
}

#[test]
fn follows_every_request_to_its_last_retry() {
    let mut by_hash = 0;
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let octets = 3 + rng.below(2) as u32;
        let count = 1 + rng.below(9) as usize;
        let weights: Vec<u16> =
            (0..count).map(|_| [0, 1, 1, 2, 9][rng.below(5) as usize]).collect();
        let mut pool = Pool::new(of_octets(octets), endpoints(&weights));
        pool.set_eligible(some_of(count, 75, &mut rng));
        for _ in 0..100 {
            let client = client(&mut rng);
            let mut request = Request::new(client, octets as usize);
            let mut tried = BitSet::EMPTY;
            for _ in pool.candidates(&BitSet::EMPTY) {
                let tickets = pool.tickets.0.get();
                let picked = pool.pick_for(client, &tried).expect("a candidate is left");
                match request.choose(&pool.weights(), &pool.eligible) {
                    Some(index) => {
                        assert_eq!(picked, index, "{client} after {tried:?}");
                        by_hash += 1;
                    }
                    None => assert_eq!(pool.tickets.0.get(), tickets + 1, "{client}"),
                }
                tried.insert(picked);
            }
            assert_eq!(pool.pick_for(client, &tried), None);
        }
    }
    assert!(by_hash > 10_000, "the hash decided only {by_hash} picks");
}

/// Worked out by hand for 10.1.2.x: 89 → 2947 → 97252 → 3209319.
#[test]
fn the_first_round_by_hand() {
    let mut pool = Pool::new(of_octets(3), endpoints(&[1; 1_000]));
    assert_eq!(pool.pick_for("10.1.2.3".parse().unwrap(), &BitSet::EMPTY), Some(319));
    assert_eq!(pool.pick_for("10.1.2.99".parse().unwrap(), &BitSet::EMPTY), Some(319));
    assert_eq!(pool.pick_for("::ffff:10.1.2.3".parse().unwrap(), &BitSet::EMPTY), Some(319));
    let mut pool = Pool::new(of_octets(4), endpoints(&[1; 1_000]));
    let fourth = (3_209_319_u32 * 33 + 3) ^ (3_209_319 >> 16);
    let expected = Some(fourth as usize % 1_000);
    assert_eq!(pool.pick_for("10.1.2.3".parse().unwrap(), &BitSet::EMPTY), expected);
}

#[test]
fn equal_weights_share_clients_evenly() {
    // The printed algorithm sends everybody to the first of three equal nodes.
    for octets in [3, 4] {
        for weights in [[1, 1, 1], [2, 1, 1]] {
            let mut pool = Pool::new(of_octets(octets), endpoints(&weights));
            let mut rng = Rng::new(2);
            let mut hits = [0_u32; 3];
            for _ in 0..30_000 {
                hits[pool.pick_for(client(&mut rng), &BitSet::EMPTY).unwrap()] += 1;
            }
            let total: u32 = weights.iter().map(|weight| u32::from(*weight)).sum();
            for (hits, weight) in hits.iter().zip(weights) {
                let due = 30_000 * u32::from(weight) / total;
                assert!(hits.abs_diff(due) < due / 10, "{hits} for {due}");
            }
        }
    }
}

#[test]
fn what_has_no_address_is_served_in_turn() {
    let mut pool = Pool::new(of_octets(3), endpoints(&[1, 2]));
    for key in [Key::None, Key::Bytes(b"unix:")] {
        let picks = [(); 3].map(|()| pool.pick_with(key, &BitSet::EMPTY).unwrap());
        assert_eq!(picks, [1, 0, 1]);
    }
}
