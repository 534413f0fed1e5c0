//! What the strings of a scenario mean: `10s`, `exponential:5ms`, `slow:10`, `deploy:5s:2s`.

use std::time::Duration;

use subak_sim::Trouble;

use crate::model::{Assault, Service};

/// Words for distributions, with what each wants.
const SERVICES: &str = "constant:5ms, exponential:5ms, lognormal:5ms:0.8 (median, sigma) or pareto:2ms:2.5 (least, alpha)";
/// Words for what goes wrong.
const TROUBLES: &str = "slow:10, dead, silent, flapping:1s:4s (down, up), lossy:0.1, failing:0.5 or deploy:5s:2s (drain, away)";

/// `250ms`, `1m30s`, and `0s`, which configurations do not have.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    if text == "0s" { Ok(Duration::ZERO) } else { subak_config::duration(text) }
}

pub(crate) fn service(text: &str) -> Result<Service, String> {
    let parts: Vec<&str> = text.split(':').map(str::trim).collect();
    let time = |text: &str| match duration(text)? {
        Duration::ZERO => Err("a service takes some time".to_owned()),
        time => Ok(time),
    };
    match parts[..] {
        ["constant", at] => Ok(Service::Constant(time(at)?)),
        ["exponential", mean] => Ok(Service::Exponential(time(mean)?)),
        ["lognormal", median, sigma] => {
            Ok(Service::LogNormal(time(median)?, number(sigma, 0.01, 5.0)?))
        }
        ["pareto", least, alpha] => Ok(Service::Pareto(time(least)?, number(alpha, 1.01, 100.0)?)),
        _ => Err(format!("no distribution: {SERVICES}")),
    }
}

pub(crate) fn trouble(text: &str) -> Result<Trouble, String> {
    let parts: Vec<&str> = text.split(':').map(str::trim).collect();
    let per_mille = |text: &str, most| Ok::<u32, String>((number(text, 0.001, most)? * 1e3) as u32);
    match parts[..] {
        ["slow", factor] => Ok(Trouble::Slow { per_mille: per_mille(factor, 1e5)? }),
        ["dead"] => Ok(Trouble::Dead),
        ["silent"] => Ok(Trouble::Silent),
        ["flapping", down, up] => match (duration(down)?, duration(up)?) {
            (Duration::ZERO, _) | (_, Duration::ZERO) => {
                Err("who flaps is down for some time, and up for some".to_owned())
            }
            (down, up) => Ok(Trouble::Flapping { down, up }),
        },
        ["deploy", drain, away] => match (duration(drain)?, duration(away)?) {
            (_, Duration::ZERO) => Err("a deploy takes some time away".to_owned()),
            (drain, away) => Ok(Trouble::Deploy { drain, away }),
        },
        ["lossy", share] => Ok(Trouble::Lossy { per_mille: per_mille(share, 1.0)? }),
        ["failing", share] => Ok(Trouble::Failing { per_mille: per_mille(share, 1.0)? }),
        _ => Err(format!("nothing that can go wrong: {TROUBLES}")),
    }
}

pub(crate) fn assault(text: &str) -> Result<Assault, String> {
    let found = Assault::ALL.iter().find(|(name, _)| *name == text);
    found.map(|(_, what)| *what).ok_or_else(|| {
        let names = Assault::ALL.map(|(name, _)| name).join(", ");
        format!("no attack: {names}")
    })
}

pub(crate) fn number(text: &str, least: f64, most: f64) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("{text:?} is no number from {least} to {most}")),
    }
}
