//! The load that counts: follows the reported one with hysteresis and at a bounded rate.
//!
//! A band around the load in force, and not around each report: else a load that creeps would never
//! be followed. Once it moves it goes all the way, so that what remains is the error of one report
//! and not of the band.

use std::time::Duration;

use super::{Options, Ppm};

/// One endpoint's load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LoadInForce {
    pub(super) reported: Ppm,
    pub(super) in_force: Ppm,
    /// d between the last two reports.
    pub(super) jitter_ppm_per_second: u64,
    moving: bool,
}

impl LoadInForce {
    /// The first report is taken as it is.
    pub(super) fn new(load: Ppm) -> LoadInForce {
        LoadInForce { reported: load, in_force: load, jitter_ppm_per_second: 0, moving: false }
    }

    /// A report, `elapsed` after the one before.
    pub(super) fn follow(&mut self, load: Ppm, elapsed: Duration, options: &Options) {
        let nanos = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX).max(1);
        let change = u64::from(load.distance(self.reported).get());
        self.jitter_ppm_per_second = change * NANOS_PER_SECOND / nanos;
        self.reported = load;

        let gap = load.distance(self.in_force);
        self.moving |= gap > options.band;
        if !self.moving {
            return;
        }
        let rate = u128::from(options.max_jitter.get());
        let reach = rate * u128::from(nanos) / u128::from(NANOS_PER_SECOND);
        // However short the time and slow the rate, it gets there.
        let step = reach.clamp(1, u128::from(gap.get()).max(1)) as u32;
        let (now, target) = (self.in_force.get(), load.get());
        let next =
            if now < target { now + step.min(target - now) } else { now - step.min(now - target) };
        self.in_force = Ppm::saturating(u64::from(next));
        self.moving = self.in_force != load;
    }
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn options(band: u64, max_jitter: u64) -> Options {
        Options {
            band: Ppm::saturating(band),
            max_jitter: Ppm::saturating(max_jitter),
            ..Options::default()
        }
    }

    fn follow(load: &mut LoadInForce, parts: u64, options: &Options) -> u32 {
        load.follow(Ppm::saturating(parts), Duration::from_secs(1), options);
        load.in_force.get()
    }

    #[test]
    fn noise_within_the_band_moves_nothing_and_a_creeping_load_is_followed() {
        let options = options(20_000, 1_000_000);
        let mut load = LoadInForce::new(Ppm::saturating(500_000));
        for wobble in [510_000, 490_000, 520_000, 480_000, 500_000] {
            assert_eq!(follow(&mut load, wobble, &options), 500_000);
        }
        let crept: Vec<_> =
            (1..=6).map(|step| follow(&mut load, 500_000 + 8_000 * step, &options)).collect();
        assert_eq!(crept, [500_000, 500_000, 524_000, 524_000, 524_000, 548_000]);
    }

    #[test]
    fn a_jump_is_followed_in_steps_to_the_end() {
        let options = options(20_000, 250_000);
        let mut load = LoadInForce::new(Ppm::ZERO);
        let up: Vec<_> = (0..5).map(|_| follow(&mut load, 990_000, &options)).collect();
        assert_eq!(up, [250_000, 500_000, 750_000, 990_000, 990_000]);
        let down: Vec<_> = (0..5).map(|_| follow(&mut load, 0, &options)).collect();
        assert_eq!(down, [740_000, 490_000, 240_000, 0, 0]);
        assert_eq!(load.jitter_ppm_per_second, 0);
    }

    #[test]
    fn jitter_is_change_by_time() {
        let mut load = LoadInForce::new(Ppm::saturating(200_000));
        load.follow(Ppm::saturating(500_000), Duration::from_millis(500), &Options::default());
        assert_eq!(load.jitter_ppm_per_second, 600_000);
        load.follow(Ppm::saturating(400_000), Duration::from_secs(4), &Options::default());
        assert_eq!(load.jitter_ppm_per_second, 25_000);
    }

    #[test]
    fn even_a_rate_of_nothing_gets_there() {
        let options = options(0, 0);
        let mut load = LoadInForce::new(Ppm::ZERO);
        assert_eq!((0..3).map(|_| follow(&mut load, 3, &options)).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(follow(&mut load, 3, &options), 3);
    }
}
