//! The pool's latencies in one word.

use subak_base::Tick;

use crate::latency::Latency;

/// What the pool's endpoints took, in units: three numbers of 16 significant bits in one word, each
/// 5 bits of exponent and 16 of mantissa. All 0 until somebody has answered.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Summary {
    pub(crate) best: u64,
    pub(crate) median: u64,
    pub(crate) mean: u64,
}

impl Summary {
    #[inline]
    pub(crate) fn unpack(word: u64) -> Summary {
        let number = |at: u32| (word >> at & 0xFFFF) << (word >> (at + 16) & 0x1F);
        Summary { best: number(42), median: number(21), mean: number(0) }
    }

    fn pack(self) -> u64 {
        let number = |number: u64| {
            let exponent = (64 - number.leading_zeros()).saturating_sub(16);
            u64::from(exponent) << 16 | number >> exponent
        };
        number(self.best) << 42 | number(self.median) << 21 | number(self.mean)
    }

    /// The summary of these cells, from the one before.
    pub(crate) fn over(cells: impl Iterator<Item = u64>, before: u64, now: Tick) -> u64 {
        let median = Summary::unpack(before).median;
        let warm = cells.map(Latency::unpack).filter(|latency| !latency.is_cold());
        let mut times: Vec<(bool, u64)> =
            warm.map(|latency| (!latency.is_fresh(now), latency.time(now, median))).collect();
        if times.is_empty() {
            return 0;
        }
        let best = times.iter().map(|(_, time)| *time).min().unwrap_or(0);
        let mean = times.iter().map(|(_, time)| time).sum::<u64>() / times.len() as u64;
        // The fresh come first.
        times.sort_unstable();
        let fresh = times.iter().take_while(|(is_old, _)| !is_old).count();
        let counted = if fresh > 0 { fresh } else { times.len() };
        let median = times[(counted - 1) / 2].1;
        Summary { best, median, mean }.pack()
    }
}
