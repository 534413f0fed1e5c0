//! Times that were seen, to draw from and to compare by their quantiles.

use subak_base::Rng;

/// Times, sorted.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Sample(Box<[u64]>);

impl Sample {
    pub(crate) fn new(mut times: Vec<u64>) -> Sample {
        times.sort_unstable();
        Sample(times.into())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// So many thousandths are no longer than this; 0 when there is none.
    pub(crate) fn quantile(&self, per_mille: u64) -> u64 {
        let rank = (self.0.len() as u64 * per_mille).div_ceil(1000).max(1) as usize;
        self.0.get(rank - 1).copied().unwrap_or(0)
    }

    pub(crate) fn mean(&self) -> u64 {
        let sum: u128 = self.0.iter().map(|time| u128::from(*time)).sum();
        (sum / self.0.len().max(1) as u128) as u64
    }

    /// One of them.
    pub(crate) fn draw(&self, random: &mut Rng) -> u64 {
        self.0.get(random.below(self.0.len() as u64) as usize).copied().unwrap_or(0)
    }

    /// At most `most` steps with equally many times in each: upper bounds, and how many.
    pub(crate) fn steps(&self, most: usize) -> (u64, Vec<(u64, u64)>) {
        let least = self.0.first().copied().unwrap_or(0);
        let count = self.0.len();
        let steps = count.min(most);
        let mut before = 0;
        let mut out = Vec::with_capacity(steps);
        for step in 1..=steps {
            let upto = count * step / steps;
            out.push((self.0[upto - 1], (upto - before) as u64));
            before = upto;
        }
        (least, out)
    }
}

#[cfg(test)]
mod tests {
    use super::Sample;
    use subak_base::Rng;

    #[test]
    fn quantiles_mean_and_steps() {
        let sample = Sample::new((1..=1000).rev().collect());
        assert_eq!(
            [500, 950, 999, 1000].map(|share| sample.quantile(share)),
            [500, 950, 999, 1000]
        );
        assert_eq!(sample.mean(), 500);
        assert_eq!(sample.steps(4), (1, vec![(250, 250), (500, 250), (750, 250), (1000, 250)]));
        assert_eq!(Sample::default().quantile(500), 0);
        let mut random = Rng::new(1);
        assert!((0..100).all(|_| (1..=1000).contains(&sample.draw(&mut random))));
    }
}
