//! What the rounds say: tables for people, JSON for machines, promises judged.

use std::fmt::Write;
use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::balancer::Kind;
use crate::case::{self, Against, Ask, Busy, Case, Most};
use crate::figures::{IdleSample, Sample, Spread};

/// Everything that was measured.
pub(crate) struct Results {
    kinds: Vec<Kind>,
    versions: Vec<String>,
    rounds: usize,
    window: Duration,
    cases: Vec<Measured>,
}

/// One case: for each balancer its samples, by round.
struct Measured {
    case: Case,
    figures: Figures,
}

enum Figures {
    Requests(Vec<Vec<Sample>>),
    Idle(Vec<Vec<IdleSample>>),
}

/// Subak, by one algorithm, beside one of the others in one case.
struct Ratio {
    other: Kind,
    cost: Spread,
    /// Of the medians: single rounds' 99th percentiles scatter too much for pairs.
    p99: f64,
}

/// Whether a promise is kept.
#[derive(Debug, PartialEq)]
enum Verdict {
    Kept,
    Missed(String),
    NotJudged(String),
}

impl Results {
    pub(crate) fn new(
        kinds: &[Kind],
        versions: Vec<String>,
        rounds: usize,
        window: Duration,
    ) -> Results {
        Results { kinds: kinds.to_vec(), versions, rounds, window, cases: Vec::new() }
    }

    /// Adds a case with requests.
    pub(crate) fn add(&mut self, case: Case, rounds: Vec<Vec<Sample>>) {
        self.cases.push(Measured { case, figures: Figures::Requests(rounds) });
    }

    /// Adds an idle case.
    pub(crate) fn add_idle(&mut self, case: Case, rounds: Vec<Vec<IdleSample>>) {
        self.cases.push(Measured { case, figures: Figures::Idle(rounds) });
    }

    /// Where Subak is among the balancers: once for each algorithm.
    fn subaks(&self) -> impl Iterator<Item = usize> {
        (0..self.kinds.len()).filter(|index| self.kinds[*index].is_subak())
    }

    /// The cheapest of the balancers that `among` takes, by median cost.
    fn cheapest(&self, samples: &[Vec<Sample>], among: impl Fn(Kind) -> bool) -> Option<usize> {
        let cost = |index: &usize| median(&samples[*index], Sample::cpu_us);
        (0..self.kinds.len())
            .filter(|index| among(self.kinds[*index]))
            .min_by(|left, right| cost(left).total_cmp(&cost(right)))
    }

    /// What a silent connection costs the better of the others that kept all of them; `None` when
    /// none did.
    fn smallest(&self, samples: &[Vec<IdleSample>]) -> Option<f64> {
        (0..self.kinds.len())
            .filter(|index| !self.kinds[*index].is_subak())
            .filter(|index| samples[*index].iter().all(|sample| sample.alive >= sample.opened))
            .map(|index| median(&samples[index], |sample| sample.private_dirty))
            .min_by(f64::total_cmp)
    }

    fn ratio(
        &self,
        samples: &[Vec<Sample>],
        subak: usize,
        among: impl Fn(Kind) -> bool,
    ) -> Option<Ratio> {
        let subak = &samples[subak];
        let other = self.cheapest(samples, among)?;
        let costs = |samples: &[Sample]| samples.iter().map(Sample::cpu_us).collect::<Vec<_>>();
        Some(Ratio {
            other: self.kinds[other],
            cost: Spread::of_ratios(&costs(subak), &costs(&samples[other]))?,
            p99: median(subak, |s| s.p99_us) / median(&samples[other], |s| s.p99_us),
        })
    }

    /// On what Subak, as this balancer, promises in a case.
    fn verdict(&self, measured: &Measured, subak: usize) -> Option<Verdict> {
        match &measured.figures {
            Figures::Requests(samples) => {
                let promise = measured.case.promise?;
                let among = |kind: Kind| match promise.against {
                    Against::Better => !kind.is_subak(),
                    Against::Nginx => kind.is_nginx(),
                };
                let ratio = self.ratio(samples, subak, among)?;
                let doubts: Vec<String> = (0..self.kinds.len())
                    .filter(|index| *index == subak || among(self.kinds[*index]))
                    .filter_map(|index| {
                        let doubt = doubt(&measured.case, samples, index)?;
                        Some(format!("{}: {doubt}", self.kinds[index]))
                    })
                    .collect();
                if !doubts.is_empty() {
                    return Some(Verdict::NotJudged(doubts.join(", ")));
                }
                let mut missed = Vec::new();
                if ratio.cost.median > promise.cost {
                    missed.push(format!("CPU {:.2} > {:.2}", ratio.cost.median, promise.cost));
                }
                if ratio.p99 > promise.p99 {
                    missed.push(format!("p99 {:.2} > {:.2}", ratio.p99, promise.p99));
                }
                Some(if missed.is_empty() {
                    Verdict::Kept
                } else {
                    Verdict::Missed(missed.join(", "))
                })
            }
            Figures::Idle(samples) => {
                let bytes = median(&samples[subak], |s| s.private_dirty);
                let Ask::Idle { most, .. } = measured.case.ask else { return None };
                let most = match most {
                    Most::Bytes(bytes) => bytes,
                    Most::Better => self.smallest(samples)?,
                };
                Some(if samples[subak].iter().any(|sample| sample.alive < sample.opened) {
                    Verdict::NotJudged("connections were closed".to_owned())
                } else if bytes > most {
                    Verdict::Missed(format!("{bytes:.0} B > {most:.0} B"))
                } else {
                    Verdict::Kept
                })
            }
        }
    }
}

/// Why a balancer's figures do not count in a case; `None` when they do.
fn doubt(case: &Case, samples: &[Vec<Sample>], index: usize) -> Option<String> {
    let failed: u64 = samples[index].iter().map(|sample| sample.failed).sum();
    if failed > 0 {
        return Some(format!("had {failed} failures"));
    }
    let others = median(&samples[index], |sample| sample.core_busy - sample.utilisation);
    if others > case::OTHERS {
        return Some(format!("other work took {:.0} % of its core", others * 100.0));
    }
    let busy = |samples: &Vec<Sample>| median(samples, |sample| sample.utilisation);
    let mine = busy(&samples[index]);
    match case.busy {
        Busy::Saturated if mine < case::SATURATED => {
            Some(format!("only {:.1} % busy", mine * 100.0))
        }
        Busy::Alike => {
            let spread = Spread::of(samples.iter().map(busy))?;
            (spread.max - spread.min > case::NEAR).then(|| {
                format!("{:.0} % busy, others up to {:.0} %", mine * 100.0, spread.max * 100.0)
            })
        }
        Busy::Saturated | Busy::Any => match case.ask {
            Ask::Rate { per_second, .. } => {
                let reached = median(&samples[index], |sample| sample.per_second);
                (reached < per_second * case::RATE_KEPT)
                    .then(|| format!("reached only {reached:.0} requests/s"))
            }
            _ => None,
        },
    }
}

fn median<T>(samples: &[T], figure: impl Fn(&T) -> f64) -> f64 {
    Spread::of(samples.iter().map(figure)).map_or(f64::NAN, |spread| spread.median)
}

/// Whether every promise of the measured cases was judged and kept.
pub(crate) fn promises_kept(results: &Results) -> bool {
    results
        .cases
        .iter()
        .flat_map(|case| results.subaks().filter_map(|subak| results.verdict(case, subak)))
        .all(|verdict| verdict == Verdict::Kept)
}

/// The tables, in Markdown.
pub(crate) fn markdown(results: &Results) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_markdown(results, &mut text);
    text
}

fn write_markdown(results: &Results, out: &mut String) -> std::fmt::Result {
    writeln!(out, "{} · {} rounds of {:?}\n", machine(), results.rounds, results.window)?;
    for (kind, version) in results.kinds.iter().zip(&results.versions) {
        writeln!(out, "- {kind}: {version}")?;
    }
    for measured in &results.cases {
        writeln!(out, "\n### {}: {}\n", measured.case.name, measured.case.about)?;
        match &measured.figures {
            Figures::Requests(samples) => requests_table(results, &measured.case, samples, out)?,
            Figures::Idle(samples) => idle_table(results, samples, out)?,
        }
    }
    if results.subaks().next().is_some() {
        writeln!(out, "\n### Subak's cost and tail as a share of theirs\n")?;
        ratio_table(results, out)?;
    }
    Ok(())
}

fn requests_table(
    results: &Results,
    case: &Case,
    samples: &[Vec<Sample>],
    out: &mut String,
) -> std::fmt::Result {
    out.push_str(
        "| balancer | CPU µs/request | user + system | requests/s | p50 µs | p99 µs | utilisation | load's core | failed | |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (index, kind) in results.kinds.iter().enumerate() {
        let of = |figure: fn(&Sample) -> f64| Spread::of(samples[index].iter().map(figure));
        let (Some(cpu), Some(rate), Some(p99)) =
            (of(Sample::cpu_us), of(|s| s.per_second), of(|s| s.p99_us))
        else {
            continue;
        };
        let middle = |figure: fn(&Sample) -> f64| median(&samples[index], figure);
        writeln!(
            out,
            "| {kind} | {:.2} ({:.2}–{:.2}) | {:.2} + {:.2} | {:.0} ({:.0}–{:.0}) | {:.0} | {:.0} ({:.0}–{:.0}) | {:.1} % | {:.0} % | {} | {} |",
            cpu.median,
            cpu.min,
            cpu.max,
            middle(|s| s.user_us),
            middle(|s| s.system_us),
            rate.median,
            rate.min,
            rate.max,
            middle(|s| s.p50_us),
            p99.median,
            p99.min,
            p99.max,
            middle(|s| s.utilisation) * 100.0,
            middle(|s| s.load_core_busy) * 100.0,
            samples[index].iter().map(|sample| sample.failed).sum::<u64>(),
            doubt(case, samples, index)
                .map_or(String::new(), |why| format!("does not count: {why}")),
        )?;
    }
    Ok(())
}

fn idle_table(
    results: &Results,
    samples: &[Vec<IdleSample>],
    out: &mut String,
) -> std::fmt::Result {
    out.push_str(
        "| balancer | its own memory, B/connection | proportional share, B/connection | kernel objects, B/connection (both ends) | before the first, KiB | alive |\n\
         |---|---|---|---|---|---|\n",
    );
    for (index, kind) in results.kinds.iter().enumerate() {
        let Some(own) = Spread::of(samples[index].iter().map(|s| s.private_dirty)) else {
            continue;
        };
        let middle = |figure: fn(&IdleSample) -> f64| median(&samples[index], figure);
        writeln!(
            out,
            "| {kind} | {:.0} ({:.0}–{:.0}) | {:.0} | {:.0} | {:.0} | {:.0} |",
            own.median,
            own.min,
            own.max,
            middle(|s| s.proportional),
            middle(|s| s.kernel_slab),
            middle(|s| s.baseline) / 1024.0,
            middle(|s| s.alive as f64),
        )?;
    }
    Ok(())
}

fn ratio_table(results: &Results, out: &mut String) -> std::fmt::Result {
    out.push_str(
        "| case | CPU / nginx | CPU / HAProxy | CPU / the better | p99 / the better's | promise | |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for measured in &results.cases {
        for subak in results.subaks() {
            ratio_row(results, measured, subak, out)?;
        }
    }
    Ok(())
}

fn ratio_row(
    results: &Results,
    measured: &Measured,
    subak: usize,
    out: &mut String,
) -> std::fmt::Result {
    let spread = |ratio: Option<Ratio>| {
        ratio.map_or("–".to_owned(), |Ratio { cost, .. }| {
            format!("{:.2} ({:.2}–{:.2})", cost.median, cost.min, cost.max)
        })
    };
    let verdict = match results.verdict(measured, subak) {
        None => String::new(),
        Some(Verdict::Kept) => "kept".to_owned(),
        Some(Verdict::Missed(why)) => format!("**missed**: {why}"),
        Some(Verdict::NotJudged(why)) => format!("not judged: {why}"),
    };
    let case = measured.case.name;
    let name = match results.kinds[subak] {
        Kind::SubakBy(algorithm) => format!("{case}, {algorithm}"),
        _ => case.to_owned(),
    };
    match &measured.figures {
        Figures::Requests(samples) => {
            let promise = measured.case.promise.map_or("reported only".to_owned(), |promise| {
                let whose = match promise.against {
                    Against::Better => "the better",
                    Against::Nginx => "nginx",
                };
                format!("CPU ≤ {:.2} × {whose}, p99 ≤ {:.2} ×", promise.cost, promise.p99)
            });
            let better = results.ratio(samples, subak, |kind| !kind.is_subak());
            let p99 = better.as_ref().map_or("–".to_owned(), |ratio| format!("{:.2}", ratio.p99));
            let whose =
                better.as_ref().map_or(String::new(), |ratio| format!(" ({})", ratio.other));
            writeln!(
                out,
                "| {name} | {} | {} | {}{whose} | {p99} | {promise} | {verdict} |",
                spread(results.ratio(samples, subak, Kind::is_nginx)),
                spread(results.ratio(samples, subak, Kind::is_haproxy)),
                spread(better),
            )
        }
        Figures::Idle(_) => {
            let most = match measured.case.ask {
                Ask::Idle { most: Most::Bytes(bytes), .. } => format!("{:.0} KiB", bytes / 1024.0),
                _ => "the better".to_owned(),
            };
            writeln!(out, "| {name} | – | – | – | – | ≤ {most} of its own | {verdict} |")
        }
    }
}

/// Everything, for machines; `seconds` is the time of the measurement (Unix).
pub(crate) fn json(results: &Results, seconds: u64) -> Value {
    let cases: Vec<Value> = results
        .cases
        .iter()
        .map(|measured| {
            let rounds: Vec<Value> = match &measured.figures {
                Figures::Requests(samples) => {
                    samples.iter().map(|s| s.iter().map(|s| s.to_json()).collect()).collect()
                }
                Figures::Idle(samples) => {
                    samples.iter().map(|s| s.iter().map(|s| s.to_json()).collect()).collect()
                }
            };
            let subaks: serde_json::Map<String, Value> = results
                .subaks()
                .map(|subak| (results.kinds[subak].to_string(), judged(results, measured, subak)))
                .collect();
            let balancers: serde_json::Map<String, Value> =
                results.kinds.iter().map(Kind::to_string).zip(rounds).collect();
            json!({
                "case": measured.case.name, "about": measured.case.about,
                "rounds": balancers, "subak": subaks,
            })
        })
        .collect();
    let versions: serde_json::Map<String, Value> = results
        .kinds
        .iter()
        .map(Kind::to_string)
        .zip(results.versions.iter().map(|v| json!(v)))
        .collect();
    json!({
        "unix_time": seconds, "machine": machine(), "versions": versions,
        "rounds": results.rounds, "seconds": results.window.as_secs_f64(), "cases": cases,
    })
}

/// Subak's share of what the others cost in a case, and whether its promise is kept.
fn judged(results: &Results, measured: &Measured, subak: usize) -> Value {
    let verdict = results.verdict(measured, subak).map(|verdict| match verdict {
        Verdict::Kept => "kept".to_owned(),
        Verdict::Missed(why) => format!("missed: {why}"),
        Verdict::NotJudged(why) => format!("not judged: {why}"),
    });
    let to = match &measured.figures {
        Figures::Requests(samples) => json!({
            "nginx": ratio_json(results.ratio(samples, subak, Kind::is_nginx)),
            "haproxy": ratio_json(results.ratio(samples, subak, Kind::is_haproxy)),
            "better": ratio_json(results.ratio(samples, subak, |kind| !kind.is_subak())),
        }),
        Figures::Idle(_) => Value::Null,
    };
    json!({ "to": to, "promise": verdict })
}

fn ratio_json(ratio: Option<Ratio>) -> Value {
    ratio.map_or(Value::Null, |ratio| {
        json!({ "other": ratio.other.to_string(), "cpu": ratio.cost.to_json(), "p99": ratio.p99 })
    })
}

/// CPU model, number of CPUs and kernel.
fn machine() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown CPU", |(_, name)| name.trim())
        .to_owned();
    let count = cpus.lines().filter(|line| line.starts_with("processor")).count();
    format!("{model}, {count} CPUs, Linux {}", read("/proc/sys/kernel/osrelease").trim())
}

#[cfg(test)]
mod tests;
