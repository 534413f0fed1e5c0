//! `least_packets` and `least_bandwidth`: an obvious oracle on every small case, and steady traffic
//! through the fourteen buckets.

use std::time::Duration;

use crate::support::{Pool, endpoints};
use subak_balance::{Algorithm, Key, Window};
use subak_base::{BitSet, Rng, Tick};

const BOTH: [Algorithm; 2] = [Algorithm::LeastPackets, Algorithm::LeastBandwidth];

/// Shows these sums.
fn show(pool: &mut Pool, sums: &[u64]) {
    let now = pool.loads.now;
    let windows: Vec<Window> = sums.iter().map(|sum| Window::filled(now, *sum)).collect();
    // The other one says the opposite: it must not be looked at.
    let others: Vec<Window> = sums.iter().map(|sum| Window::filled(now, 100 - sum)).collect();
    let is_packets = pool.algorithm == Algorithm::LeastPackets;
    (pool.loads.packets, pool.loads.bytes) =
        if is_packets { (windows, others) } else { (others, windows) };
}

#[test]
fn every_small_case() {
    for algorithm in BOTH {
        for code in 0..4_u64.pow(3) * 5_u64.pow(3) * 8 {
            let digit = |place: u32, base: u64| code / 5_u64.pow(place.min(3)) / base % 5;
            let sums = [digit(0, 1), digit(1, 1), digit(2, 1)];
            let rest = code / 125;
            let weights = [rest % 4, rest / 4 % 4, rest / 16 % 4];
            let tried: BitSet = (0..3).filter(|index| ((rest / 64) >> index) & 1 == 1).collect();
            let mut pool = Pool::new(algorithm.clone(), endpoints(&weights.map(|w| w as u16)));
            show(&mut pool, &sums);
            // Weights are 1, 2 or 3: in sixths, that is a whole number.
            let sixths = |index: &usize| sums[*index] * 6 / weights[*index];
            let candidates = pool.candidates(&tried);
            let least = candidates.iter().map(sixths).min();
            let tickets = pool.tickets.0.get();

            let picked = pool.pick_with(Key::None, &tried);

            assert_eq!(picked.as_ref().map(sixths), least, "{sums:?} {weights:?} {tried:?}");
            let equals = candidates.iter().filter(|index| Some(sixths(index)) == least).count();
            let is_full_tie = equals > 1 && equals == candidates.len();
            assert_eq!(pool.tickets.0.get() - tickets, u64::from(is_full_tie));
        }
    }
}

#[test]
fn those_tied_are_chosen_by_weight() {
    for algorithm in BOTH {
        let mut pool = Pool::new(algorithm, endpoints(&[1, 2, 1, 1]));
        show(&mut pool, &[10, 20, 10, 30]);
        let mut hits = [0_u32; 4];
        pool.picks(20_000).into_iter().for_each(|index| hits[index] += 1);
        assert!(hits[1].abs_diff(10_000) < 400 && hits[0].abs_diff(5_000) < 300, "{hits:?}");
        assert_eq!(hits[3], 0);
    }
}

/// Exchanges of 4 to 40 packets, 500 a second, each 20 ms long. A dispatch is charged the running
/// mean of its endpoint and put right when it ends.
struct Steady {
    pool: Pool,
    weights: [u64; 4],
    means: [i64; 4],
    rng: Rng,
    ends: std::collections::VecDeque<(Tick, usize, i64, i64)>,
}

const PER_SECOND: u64 = 500;

impl Steady {
    fn charge(&mut self, index: usize, amount: i64) {
        let loads = &mut self.pool.loads;
        loads.packets[index].add(loads.now, amount);
        loads.bytes[index].add(loads.now, amount * 1_000);
    }

    /// One second; the requests that each endpoint got.
    fn second(&mut self) -> [u64; 4] {
        let mut hits = [0; 4];
        for _ in 0..PER_SECOND {
            let now = self.pool.loads.now.after(Duration::from_secs(1) / PER_SECOND as u32);
            self.pool.loads.now = now;
            while let Some((_, index, charged, took)) =
                self.ends.front().copied().filter(|(end, ..)| *end <= now)
            {
                self.ends.pop_front();
                self.charge(index, took - charged);
                self.means[index] += (took - self.means[index]) / 8;
            }
            let picked = self.pool.pick().expect("one is eligible");
            hits[picked] += 1;
            let (charged, took) = (self.means[picked], 4 + self.rng.below(37) as i64);
            self.charge(picked, charged);
            self.ends.push_back((now.after(Duration::from_millis(20)), picked, charged, took));
        }
        hits
    }

    fn set_eligible(&mut self, members: &[usize]) {
        self.pool.set_eligible(members.iter().copied().collect());
    }

    /// What a pool does when an endpoint joins or returns.
    fn join(&mut self, index: usize, members: &[usize]) {
        let loads = &mut self.pool.loads;
        let entries = &self.pool.endpoints;
        let joining = |windows: &[Window]| {
            let others = members.iter().filter(|other| **other != index);
            let sums = others.map(|i| (windows[*i].sum(loads.now), entries.entry(*i).weight));
            Window::filled(loads.now, Window::joining(sums, entries.entry(index).weight))
        };
        let (packets, bytes) = (joining(&loads.packets), joining(&loads.bytes));
        (loads.packets[index], loads.bytes[index]) = (packets, bytes);
        self.set_eligible(members);
    }

    /// So many seconds, in each of which everyone got what it was due, within a factor of two.
    fn is_fair_for(&mut self, seconds: u32) {
        for second in 0..seconds {
            let eligible = self.pool.eligible.clone();
            let total: u64 = eligible.iter().map(|index| self.weights[index]).sum();
            let hits = self.second();
            for index in eligible.iter() {
                let due = PER_SECOND * self.weights[index] / total;
                let is_fair = hits[index] <= 2 * due && hits[index] >= due / 2;
                assert!(is_fair, "second {second}: {hits:?}, {due} due to {index}");
            }
        }
    }
}

#[test]
fn under_steady_load_everyone_is_within_twice_its_share_in_every_second() {
    for algorithm in BOTH {
        let weights = [2, 1, 1, 1];
        let pool = Pool::new(algorithm, endpoints(&weights.map(|w| w as u16)));
        let (rng, ends) = (Rng::new(8), Default::default());
        let mut steady = Steady { pool, weights, means: [20; 4], rng, ends };
        steady.set_eligible(&[0, 1, 2]);
        steady.is_fair_for(40);
        // One joins, one goes and returns.
        steady.join(3, &[0, 1, 2, 3]);
        steady.is_fair_for(30);
        steady.set_eligible(&[0, 2, 3]);
        steady.is_fair_for(20);
        steady.join(1, &[0, 1, 2, 3]);
        steady.is_fair_for(30);
    }
}

/// What the mean is good for: with nothing on its account the one that joins gets everything.
#[test]
fn without_the_mean_who_joins_would_get_everything() {
    let weights = [1; 4];
    let pool = Pool::new(Algorithm::LeastPackets, endpoints(&[1; 4]));
    let (rng, ends) = (Rng::new(8), Default::default());
    let mut steady = Steady { pool, weights, means: [20; 4], rng, ends };
    steady.set_eligible(&[0, 1, 2]);
    for _ in 0..20 {
        steady.second();
    }
    steady.set_eligible(&[0, 1, 2, 3]);
    assert_eq!(steady.second(), [0, 0, 0, PER_SECOND]);
}
