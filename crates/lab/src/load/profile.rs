//! How much load when: a value that changes in stages, and the arrivals that follow from it.
//!
//! A stage goes from the value before it to its own, evenly over its time; a stage without time is a
//! jump. As a rate λ(t), in requests/s, the n-th request is due when ∫λ = n (evenly spaced), or when
//! ∫λ reaches the sum of n exponential draws of mean 1 (a Poisson process, also while λ changes).

use std::time::Duration;

use subak_base::Rng;

/// One part of a [`Profile`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// The value at its end.
    pub to: f64,
    /// How long it takes to get there.
    pub over: Duration,
}

/// A rate in requests per second, or a number of users, over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    start: f64,
    stages: Vec<Stage>,
}

/// How requests of an open loop are spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spacing {
    /// Evenly.
    #[default]
    Even,
    /// By chance, each independent of all others, as those of many clients are.
    Poisson,
}

impl Profile {
    /// The same all the time.
    pub fn constant(value: f64, time: Duration) -> Profile {
        Profile { start: value, stages: vec![Stage { to: value, over: time }] }
    }

    /// From `start` through `stages`.
    pub fn stages(start: f64, stages: Vec<Stage>) -> Profile {
        Profile { start, stages }
    }

    /// How long all stages take.
    pub fn length(&self) -> Duration {
        self.stages.iter().fold(Duration::ZERO, |sum, stage| sum.saturating_add(stage.over))
    }

    /// The value after `elapsed`; before the first stage and after the last its nearer end.
    pub fn at(&self, elapsed: Duration) -> f64 {
        let (mut from, mut left) = (self.start, elapsed);
        for stage in &self.stages {
            if left < stage.over {
                let share = left.as_secs_f64() / stage.over.as_secs_f64();
                return from + (stage.to - from) * share;
            }
            left -= stage.over;
            from = stage.to;
        }
        from
    }

    /// The largest value there is.
    pub fn largest(&self) -> f64 {
        self.stages.iter().fold(self.start, |largest, stage| largest.max(stage.to))
    }

    /// Whether it never changes.
    pub fn is_constant(&self) -> bool {
        self.stages.iter().all(|stage| stage.to == self.start)
    }

    /// The same, after `time` at its first value.
    #[must_use]
    pub(crate) fn after(&self, time: Duration) -> Profile {
        let mut stages = vec![Stage { to: self.start, over: time }];
        stages.extend(&self.stages);
        Profile { start: self.start, stages }
    }

    /// The same for so long; only a profile that is constant changes.
    #[must_use]
    pub fn lasting(mut self, time: Duration) -> Profile {
        if let [only] = &mut self.stages[..]
            && only.to == self.start
        {
            only.over = time;
        }
        self
    }

    /// Whether every value is a number that is not negative.
    pub(crate) fn makes_sense(&self) -> bool {
        let fine = |value: f64| value.is_finite() && value >= 0.0;
        fine(self.start) && self.stages.iter().all(|stage| fine(stage.to))
    }

    /// When the requests of an open loop are due.
    pub fn arrivals(&self, spacing: Spacing, seed: u64) -> Arrivals {
        Arrivals {
            profile: self.clone(),
            stage: 0,
            began_s: 0.0,
            from: self.start,
            before: 0.0,
            next: 0.0,
            spacing,
            rng: Rng::new(seed),
        }
    }
}

/// The times at which requests are due, in nanoseconds from the beginning, ascending.
#[derive(Clone, Debug)]
pub struct Arrivals {
    profile: Profile,
    stage: usize,
    /// When the stage began, and its first value.
    began_s: f64,
    from: f64,
    /// ∫λ up to the stage.
    before: f64,
    /// ∫λ at the next arrival.
    next: f64,
    spacing: Spacing,
    rng: Rng,
}

impl Iterator for Arrivals {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            let stage = self.profile.stages.get(self.stage)?;
            let over_s = stage.over.as_secs_f64();
            let whole = (self.from + stage.to) / 2.0 * over_s;
            let rest = self.next - self.before;
            if rest >= whole {
                (self.before, self.began_s) = (self.before + whole, self.began_s + over_s);
                self.from = stage.to;
                self.stage += 1;
                continue;
            }
            // ∫ from the stage's beginning is a·t + k/2·t² = rest; this form of the root is exact
            // for k = 0 too.
            let slope = (stage.to - self.from) / over_s;
            let root = (self.from * self.from + 2.0 * slope * rest).max(0.0).sqrt();
            let at_s = if rest > 0.0 { 2.0 * rest / (self.from + root) } else { 0.0 };
            self.next += match self.spacing {
                Spacing::Even => 1.0,
                Spacing::Poisson => exponential(&mut self.rng),
            };
            return Some(((self.began_s + at_s) * 1e9) as u64);
        }
    }
}

/// A draw from the exponential distribution of mean 1.
pub(crate) fn exponential(rng: &mut Rng) -> f64 {
    -(1.0 - uniform(rng)).ln()
}

/// A draw from 0 to below 1.
pub(crate) fn uniform(rng: &mut Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn ramp() -> Profile {
        let stage = |to, seconds| Stage { to, over: SECOND * seconds };
        Profile::stages(0.0, vec![stage(100.0, 2), stage(100.0, 1), stage(10.0, 0), stage(0.0, 2)])
    }

    #[test]
    fn a_value_goes_evenly_and_a_stage_without_time_is_a_jump() {
        let ramp = ramp();
        for (at_ms, value) in
            [(0, 0.0), (1000, 50.0), (2500, 100.0), (3000, 10.0), (4000, 5.0), (9000, 0.0)]
        {
            assert!((ramp.at(Duration::from_millis(at_ms)) - value).abs() < 1e-9, "{at_ms} ms");
        }
        assert_eq!((ramp.length(), ramp.largest()), (SECOND * 5, 100.0));
    }

    #[test]
    fn as_many_arrive_as_the_area_says_and_when_it_says() {
        let due: Vec<u64> = ramp().arrivals(Spacing::Even, 1).collect();
        // 100 while it rises, 100 while it stays, 10 while it falls.
        assert_eq!(due.len(), 210);
        assert!(due.is_sorted());
        // Half of the rise's area is below its √½.
        assert!((due[50] as f64 / 1e9 - 2.0_f64.sqrt()).abs() < 1e-6, "{}", due[50]);
        assert_eq!(due[150], 2_500_000_000);
        let steady: Vec<u64> =
            Profile::constant(250.0, SECOND).arrivals(Spacing::Even, 1).collect();
        assert_eq!((steady.len(), steady[1], steady[249]), (250, 4_000_000, 996_000_000));
    }

    #[test]
    fn arrivals_by_chance_keep_the_rate_and_follow_their_seed() {
        let profile = Profile::constant(1000.0, SECOND * 100);
        let due: Vec<u64> = profile.arrivals(Spacing::Poisson, 7).collect();
        // The count's deviation is √100,000 = 316.
        assert!(due.len().abs_diff(100_000) < 1500, "{}", due.len());
        let gaps = due.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6);
        let squares: f64 = gaps.map(|gap| gap * gap).sum();
        // Of an exponential gap of mean 1 ms the second moment is 2 ms².
        assert!((squares / due.len() as f64 - 2.0).abs() < 0.1, "{squares}");
        assert!(profile.arrivals(Spacing::Poisson, 7).eq(due));
    }

    #[test]
    fn without_a_rate_nothing_arrives() {
        assert_eq!(Profile::constant(0.0, SECOND).arrivals(Spacing::Even, 1).next(), None);
    }
}
