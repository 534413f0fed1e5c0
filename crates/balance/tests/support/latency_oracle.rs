//! What the latency algorithms promise, in floating point and without packing: slow and obvious.

/// One endpoint, with times in nanoseconds and moments in seconds.
#[derive(Clone, Default, Debug)]
pub(crate) struct Oracle {
    time: Option<f64>,
    answers: f64,
    failures: f64,
    unanswered: f64,
    since: f64,
}

/// What is known of the pool.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct PoolOracle {
    best: Option<f64>,
    median: Option<f64>,
    mean: Option<f64>,
}

fn half_to(seconds: f64) -> f64 {
    (-seconds / 10.0).exp2()
}

impl Oracle {
    pub(crate) fn dispatched(&mut self, now: f64) {
        if self.time.is_none() {
            self.unanswered =
                (self.unanswered / ((now - self.since) / 10.0).floor().exp2()).floor();
            self.unanswered += 1.0;
            self.since = now;
        }
    }

    pub(crate) fn answered(&mut self, took: f64, now: f64, is_peak: bool) {
        let aged = 1.0 - half_to(now - self.since);
        let part = match self.time {
            None => 1.0,
            Some(time) if is_peak => {
                if took >= time {
                    1.0
                } else {
                    aged
                }
            }
            Some(_) => aged.max(1.0 / (self.answers + 1.0).min(16.0)),
        };
        let before = self.time.unwrap_or(took);
        self.time = Some(before + (took - before) * part);
        self.answers += 1.0;
        self.failures = (self.failures - 1.0).max(0.0);
        self.since = now;
    }

    pub(crate) fn failed(&mut self, elapsed: f64, now: f64, is_peak: bool, pool: PoolOracle) {
        let took = elapsed.max(pool.mean.unwrap_or(0.0));
        let forgotten = ((now - self.since) / 10.0).floor();
        let failures = (self.failures - forgotten).max(0.0) + 1.0;
        let before = self.time;
        self.answered(took, now, is_peak);
        self.time = self.time.map(|time| time.max(before.unwrap_or(0.0)));
        self.failures = failures.min(7.0);
    }

    /// t at this moment.
    pub(crate) fn time(&self, now: f64, pool: PoolOracle) -> Option<f64> {
        let time = self.time?;
        let median = pool.median.unwrap_or(time);
        Some(median + (time - median) * half_to(now - self.since))
    }

    /// What is compared.
    pub(crate) fn score(&self, in_flight: f64, weight: f64, now: f64, pool: PoolOracle) -> f64 {
        let load = match self.time(now, pool) {
            None => {
                let halvings = ((now - self.since) / 10.0).floor();
                let unanswered = (self.unanswered / halvings.exp2()).floor().max(in_flight);
                pool.best.unwrap_or(32.0) * (1.0 + 16.0 * unanswered)
            }
            Some(time) => {
                let doubled = (self.failures.exp2() * half_to(now - self.since)).max(1.0);
                time * (in_flight + 1.0) * doubled
            }
        };
        load / weight
    }
}

impl PoolOracle {
    pub(crate) fn of(endpoints: &[Oracle], now: f64, before: PoolOracle) -> PoolOracle {
        let warm: Vec<&Oracle> = endpoints.iter().filter(|one| one.time.is_some()).collect();
        let sorted = |among: &[&Oracle]| {
            let mut times: Vec<f64> =
                among.iter().filter_map(|one| one.time(now, before)).collect();
            times.sort_by(f64::total_cmp);
            times
        };
        let all = sorted(&warm);
        if all.is_empty() {
            return PoolOracle::default();
        }
        let fresh: Vec<&Oracle> =
            warm.iter().copied().filter(|one| now - one.since < 10.0).collect();
        let counted = if fresh.is_empty() { all.clone() } else { sorted(&fresh) };
        PoolOracle {
            best: Some(all[0]),
            median: Some(counted[(counted.len() - 1) / 2]),
            mean: Some(all.iter().sum::<f64>() / all.len() as f64),
        }
    }

    /// Before there is a summary: the best of these.
    pub(crate) fn or_best_of<'a>(self, candidates: impl Iterator<Item = &'a Oracle>) -> PoolOracle {
        let best = candidates.filter_map(|one| one.time).reduce(f64::min);
        PoolOracle { best: self.best.or(best), ..self }
    }
}
