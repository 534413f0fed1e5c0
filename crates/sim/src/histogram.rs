//! Times, counted in steps.
//!
//! [`Latency`] counts what came out: steps of 1/128 of the value, so any quantile is right within
//! 0.4 %, in 58 KiB whatever the range. [`Steps`] are a distribution to draw from.

use std::time::Duration;

/// Steps an octave is divided into.
const STEPS: u64 = 1 << STEP_BITS;
const STEP_BITS: u32 = 7;
const LEN: usize = ((64 - STEP_BITS as usize) + 1) << STEP_BITS;

/// Times that were measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Latency {
    counts: Box<[u64]>,
    count: u64,
    total_ns: u128,
    max_ns: u64,
}

impl Default for Latency {
    fn default() -> Latency {
        Latency { counts: vec![0; LEN].into(), count: 0, total_ns: 0, max_ns: 0 }
    }
}

impl Latency {
    /// One more.
    #[inline]
    pub fn add(&mut self, ns: u64) {
        self.counts[place(ns)] += 1;
        self.count += 1;
        self.total_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// All of another's.
    pub fn merge(&mut self, other: &Latency) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
        self.count += other.count;
        self.total_ns += other.total_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        (self.count, self.total_ns, self.max_ns) = (0, 0, 0);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// All of them together, exactly.
    pub fn total_ns(&self) -> u128 {
        self.total_ns
    }

    /// Exactly; zero when there is none.
    pub fn mean(&self) -> Duration {
        let nanos = self.total_ns.checked_div(u128::from(self.count)).unwrap_or(0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The longest, exactly.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max_ns)
    }

    /// So many thousandths are no longer than this: 950 for p95, 999 for p99.9. Zero when there is
    /// none.
    pub fn quantile(&self, per_mille: u32) -> Duration {
        let rank = (u128::from(self.count) * u128::from(per_mille)).div_ceil(1000).max(1);
        let mut seen = 0;
        for (place, count) in self.counts.iter().enumerate() {
            seen += u128::from(*count);
            if seen >= rank {
                return Duration::from_nanos(middle(place).min(self.max_ns));
            }
        }
        self.max()
    }

    /// The steps that anything was counted in: their middle, and how many.
    pub fn steps(&self) -> impl Iterator<Item = (Duration, u64)> {
        let counted = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(|(place, count)| (Duration::from_nanos(middle(place)), *count))
    }
}

#[inline]
fn place(ns: u64) -> usize {
    if ns < STEPS {
        return ns as usize;
    }
    let octave = ns.ilog2() - STEP_BITS;
    (((u64::from(octave) + 1) << STEP_BITS) + (ns >> octave) - STEPS) as usize
}

fn middle(place: usize) -> u64 {
    let (octave, step) = (place as u64 >> STEP_BITS, place as u64 & (STEPS - 1));
    match octave.checked_sub(1) {
        None => step,
        Some(octave) => ((STEPS + step) << octave) + ((1 << octave) >> 1),
    }
}

/// A distribution in steps: so many in each, spread evenly over it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Steps {
    /// From the step before (the first: from its own lower bound) up to here, and how many up to here
    /// in all.
    upper: Box<[(u64, u64)]>,
    least: u64,
}

impl Steps {
    /// Steps from `least` up to each of these, with how many are in it. Bounds that do not rise are
    /// taken as those before; none when nobody is counted.
    pub fn new(least: Duration, steps: &[(Duration, u64)]) -> Option<Steps> {
        let least = nanos(least);
        let (mut bound, mut count) = (least, 0_u64);
        let upper: Box<[(u64, u64)]> = steps
            .iter()
            .map(|(upper, here)| {
                bound = bound.max(nanos(*upper));
                count = count.saturating_add(*here);
                (bound, count)
            })
            .collect();
        (count > 0).then_some(Steps { upper, least })
    }

    /// The value for a word uniform over all 64-bit values.
    pub(crate) fn at(&self, word: u64) -> u64 {
        let total = self.upper.last().map_or(0, |(_, count)| *count);
        let scaled = u128::from(word) * u128::from(total);
        let rank = (scaled >> 64) as u64;
        let index = self.upper.partition_point(|(_, count)| *count <= rank);
        let (from, before) = match index.checked_sub(1) {
            Some(index) => self.upper[index],
            None => (self.least, 0),
        };
        let (to, upto) = self.upper[index];
        // In 2⁻³² of the step.
        let place = (u128::from(rank - before) << 32) + u128::from(scaled as u64 >> 32);
        from + ((u128::from(to - from) * place / u128::from(upto - before)) >> 32) as u64
    }
}

pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use subak_base::Rng;

    #[test]
    fn every_value_is_counted_within_a_256th() {
        let mut rng = Rng::new(3);
        for shift in 0..64 {
            for value in [rng.next_u64() >> shift, u64::MAX >> shift, 1 << (63 - shift)] {
                let found = middle(place(value));
                assert!(found.abs_diff(value) <= value / 256 + 1, "{value}: {found}");
            }
        }
        assert_eq!(place(u64::MAX), LEN - 1);
    }

    #[test]
    fn quantiles_are_those_of_what_was_counted() {
        let mut latency = Latency::default();
        assert_eq!((latency.quantile(500), latency.mean()), (Duration::ZERO, Duration::ZERO));
        (1..=1000).for_each(|millis| latency.add(millis * 1_000_000));
        for (per_mille, millis) in [(500, 500.0), (950, 950.0), (999, 999.0), (1000, 1000.0)] {
            let found = latency.quantile(per_mille).as_secs_f64() * 1e3;
            assert!((found / millis - 1.0).abs() < 0.004, "{per_mille}: {found}");
        }
        assert_eq!(latency.mean(), Duration::from_micros(500_500));
        let mut twice = latency.clone();
        twice.merge(&latency);
        assert_eq!((twice.count(), twice.max()), (2000, Duration::from_secs(1)));
        assert_eq!(twice.steps().map(|(_, count)| count).sum::<u64>(), 2000);
    }

    #[test]
    fn steps_give_back_their_shares() {
        let ms = Duration::from_millis;
        let steps = Steps::new(ms(10), &[(ms(20), 3), (ms(20), 0), (ms(40), 1)]).unwrap();
        assert_eq!(steps.at(0), 10_000_000);
        assert_eq!(steps.at(u64::MAX / 8 * 3), 15_000_000 - 1);
        assert_eq!(steps.at(0xC000_0000_0000_0000), 20_000_000);
        assert_eq!(steps.at(u64::MAX), 40_000_000 - 1);
        assert_eq!(Steps::new(ms(1), &[(ms(2), 0)]), None);
    }
}
