//! How much when: the part of the command line that says so.

use std::time::Duration;

use clap::Args;
use subak_lab::load::{LoadPlan, Profile, Protocol, Shape as LoadShape, Spacing, Stage, Think};

/// Connections of an open loop that are opened beforehand.
const BEFOREHAND: usize = 16;
/// Requests per second where nothing is said.
const USUAL_RATE: f64 = 100.0;

#[derive(Args, Debug)]
pub(crate) struct Shape {
    /// Open loop: requests that start each second, whether or not earlier ones are answered, such as
    /// 2000/s or 90/m [default: 100/s]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<f64>,
    /// Closed loop: users, each of whom asks, waits for the answer, thinks and asks again
    #[arg(long, value_name = "N", conflicts_with = "rate")]
    users: Option<u32>,
    /// How the rate or the users change: VALUE:DURATION, …
    #[arg(long, value_name = "STAGES", value_delimiter = ',', value_parser = stage)]
    stages: Vec<Stage>,
    /// How long it goes on [default: 10s]
    #[arg(long = "for", id = "for", value_name = "DURATION", value_parser = subak_config::duration)]
    #[arg(conflicts_with = "stages")]
    time: Option<Duration>,
    /// End after exactly this many requests, shared by all users
    #[arg(short = 'n', long, value_name = "N", conflicts_with_all = ["stages", "for", "warm_up"])]
    requests: Option<u64>,
    /// Users of -n, as ab has it
    #[arg(short = 'c', long, value_name = "N", conflicts_with = "users", requires = "requests")]
    concurrency: Option<u32>,
    /// How long a user thinks between an answer and the next request: 1s, 500ms-2s (anything
    /// between), or exponential:1s
    #[arg(long, value_name = "THINK", value_parser = think, conflicts_with = "rate")]
    think: Option<Think>,
    /// Requests of an open loop come by chance (Poisson) instead of evenly
    #[arg(long, conflicts_with = "users")]
    poisson: bool,
    /// Time before what is measured, at the first rate or number of users
    #[arg(long, value_name = "DURATION", value_parser = subak_config::duration)]
    warm_up: Option<Duration>,
    /// Open loop: connections that are opened beforehand; HTTP/2: those that all share [default: 16,
    /// and one to each target]
    #[arg(long, value_name = "N")]
    connections: Option<usize>,
    /// Open loop: the most connections, opened when a request is due and all are busy
    #[arg(long, value_name = "N", default_value_t = 4096)]
    max_connections: usize,
    /// Whatever is drawn by chance follows from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

impl Shape {
    /// Lays it upon a plan.
    pub(crate) fn apply(&self, plan: &mut LoadPlan) -> Result<(), String> {
        plan.seed = self.seed;
        plan.warm_up = self.warm_up.unwrap_or_default();
        plan.requests_in_all = self.requests;
        let open = self.rate.is_some()
            || self.users.is_none() && self.requests.is_none() && self.concurrency.is_none();
        let start = match (open, self.rate, self.users.or(self.concurrency)) {
            (true, rate, _) => rate.unwrap_or(USUAL_RATE),
            (false, _, users) => f64::from(users.unwrap_or(1)),
        };
        let time = match (self.requests, self.time) {
            (Some(_), _) => Duration::MAX,
            (None, time) => time.unwrap_or(Duration::from_secs(10)),
        };
        let profile = match self.stages.is_empty() {
            true => Profile::constant(start, time),
            false => Profile::stages(start, self.stages.clone()),
        };
        if let Protocol::Http2 { connections } = &mut plan.protocol {
            *connections = self.connections.unwrap_or(plan.targets.len());
        }
        plan.shape = match open {
            true => {
                let (connections, most) = self.connections(plan);
                let spacing = if self.poisson { Spacing::Poisson } else { Spacing::Even };
                LoadShape::Rate { profile, spacing, connections, most }
            }
            false if self.poisson => {
                return Err("--poisson says how an open loop asks: it needs --rate".to_owned());
            }
            false => LoadShape::Users { profile, think: self.think.unwrap_or_default() },
        };
        Ok(())
    }

    /// Connections of an open loop: those that are opened beforehand, and the most.
    pub(crate) fn connections(&self, plan: &LoadPlan) -> (usize, usize) {
        let most = self.max_connections;
        let connections = self.connections.unwrap_or(BEFOREHAND.min(most));
        (if plan.new_connections { 0 } else { connections }, most)
    }

    /// How long it goes on, where that is said.
    pub(crate) fn time(&self) -> Option<Duration> {
        self.time
    }
}

/// `2000/s`, `2000`, `60/m`.
fn rate(text: &str) -> Result<f64, String> {
    let (number, seconds) = match text.split_once('/') {
        None => (text, 1.0),
        Some((number, "s")) => (number, 1.0),
        Some((number, "m")) => (number, 60.0),
        Some((_, unit)) => return Err(format!("there is no unit {unit:?}: 2000/s or 60/m")),
    };
    match number.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate >= 0.0 => Ok(rate / seconds),
        _ => Err(format!("{text:?} is no rate: 2000/s or 60/m")),
    }
}

/// `100:5m`.
fn stage(text: &str) -> Result<Stage, String> {
    let (value, over) = text.rsplit_once(':').ok_or("a stage is VALUE:DURATION, as 100:5m")?;
    let over = if over == "0" { Duration::ZERO } else { subak_config::duration(over)? };
    Ok(Stage { to: rate(value)?, over })
}

/// `1s`, `500ms-2s`, `exponential:1s`.
fn think(text: &str) -> Result<Think, String> {
    if let Some(mean) = text.strip_prefix("exponential:") {
        return Ok(Think::Exponential(subak_config::duration(mean)?));
    }
    match text.split_once('-') {
        None => Ok(Think::Constant(subak_config::duration(text)?)),
        Some((from, to)) => {
            let (from, to) = (subak_config::duration(from)?, subak_config::duration(to)?);
            if from > to {
                return Err(format!("{text:?}: the shorter time comes first"));
            }
            Ok(Think::Between(from, to))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_stages_and_times_to_think() {
        assert_eq!((rate("2000/s"), rate("90/m"), rate("0")), (Ok(2000.0), Ok(1.5), Ok(0.0)));
        let second = Duration::from_secs(1);
        assert_eq!(stage("100:5m"), Ok(Stage { to: 100.0, over: second * 300 }));
        assert_eq!(stage("2/s:0"), Ok(Stage { to: 2.0, over: Duration::ZERO }));
        assert_eq!(think("1s"), Ok(Think::Constant(second)));
        assert_eq!(think("1s-2s"), Ok(Think::Between(second, second * 2)));
        assert_eq!(think("exponential:1s"), Ok(Think::Exponential(second)));
        for wrong in ["x", "-1", "1/h", "inf"] {
            rate(wrong).expect_err(wrong);
        }
        stage("100").expect_err("no time");
        think("2s-1s").expect_err("the wrong way round");
    }
}
