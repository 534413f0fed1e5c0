//! What became of the paper's claims. A verdict is by our generator, which says when it was behind, and
//! by k6 where only that was run; k6 stands beside it where both were.

use subak_report::{Verdict, Word};

use super::security::VERSIONS;
use super::{ALGORITHMS, CAPACITY, LIMITED, NETWORKS};
use crate::figures::not_run;
use crate::results::Results;

pub(crate) fn verdicts(results: &Results) -> Vec<Verdict> {
    vec![
        steadier(results, "average"),
        steadier(results, "stress"),
        one_server(results),
        breakpoint(results),
        few_addresses(results),
        printed(results),
        failover(results),
        robustness(results),
        slow_clients(results),
        security(results),
        ambiguous(results),
        unequal(),
    ]
}

fn number(results: &Results, id: &str, number: &str) -> Option<f64> {
    results.mean(id, number).map(|mean| mean.value)
}

/// Tail and failures of a run.
#[derive(Clone, Copy)]
struct Seen {
    p95_ms: f64,
    failed: f64,
}

fn seen(results: &Results, id: &str) -> Option<Seen> {
    let p95_ms = number(results, id, "http_req_duration.p(95)")?;
    // k6 counts what failed as what passed the question whether it failed.
    let failed = number(results, id, "http_req_failed.passes").unwrap_or(0.0);
    Some(Seen { p95_ms, failed })
}

/// Is the first steadier? A tenth, once each, is taken for chance.
fn judged([turn, hash]: [Seen; 2]) -> Word {
    match () {
        () if turn.p95_ms < hash.p95_ms * 0.9 && turn.failed <= hash.failed => Word::Reproduced,
        () if turn.p95_ms <= hash.p95_ms * 1.1
            && hash.p95_ms <= turn.p95_ms * 1.1
            && turn.failed == hash.failed =>
        {
            Word::NoDifference
        }
        () => Word::NotReproduced,
    }
}

fn said(by: &str, [turn, hash]: [Seen; 2]) -> String {
    format!(
        "{by} p95 of a request {:.1} ms with round robin and {:.1} ms with IP hash, failures {:.0} and \
         {:.0}",
        turn.p95_ms, hash.p95_ms, turn.failed, hash.failed
    )
}

/// Both algorithms, if both were measured.
fn pair(results: &Results, id: impl Fn(&str) -> String) -> Option<[Seen; 2]> {
    let [turn, hash] = ALGORITHMS.map(|algorithm| seen(results, &id(algorithm)));
    Some([turn?, hash?])
}

/// The claim as the paper has it: round robin and IP hash, both from one address.
fn steadier(results: &Results, load: &str) -> Verdict {
    let claim = format!(
        "P1: round robin is steadier than IP hash under {load} load (shorter tail, fewer failures)"
    );
    let by_us = pair(results, |name| format!("P1/{load}/subak/{name}/one/ours"));
    let by_k6 = pair(results, |name| format!("P1/{load}/subak/{name}/one"));
    let Some(first) = by_us.or(by_k6) else {
        return not_run(&claim, results.why_not(&format!("P1/{load}/subak/")));
    };
    let told: Vec<String> = [("by us", by_us), ("by k6", by_k6)]
        .into_iter()
        .filter_map(|(by, pair)| pair.map(|pair| said(by, pair)))
        .collect();
    let because = format!(
        "{}; once each, so that a tenth is taken for chance. Servers take as long as the paper's table 1 \
         says and have no limit of their own: what theirs bear is not in the paper",
        told.join("; ")
    );
    Verdict::new(claim, judged(first), because)
}

/// What is behind the claim: one address is one server by IP hash, and it may not bear all of the load.
fn one_server(results: &Results) -> Verdict {
    let claim = "P1, hidden: from one address IP hash asks one server for all, so what it costs is \
                 whether that one bears it";
    let of = |load: &str| pair(results, |name| format!("P1/{load}/subak/{name}/limited/ours"));
    let (Some(average), Some(stress)) = (of("average"), of("stress")) else {
        let why = [
            results.why_not("P1/average/subak/ip_hash/limited"),
            results.why_not("P1/stress/subak/ip_hash/limited"),
        ];
        return not_run(claim, why.into_iter().max().unwrap_or_default());
    };
    let is_so = judged(stress) == Word::Reproduced;
    let because = format!(
        "servers of {LIMITED} at once, which do {:.0} requests a second each: under average load (some 90 a \
         second) {}; under stress (some 180) {}",
        CAPACITY / 3.0,
        said("", average).trim_start(),
        said("", stress).trim_start(),
    );
    Verdict::new(claim, if is_so { Word::Holds } else { Word::Fails }, because)
}

fn breakpoint(results: &Results) -> Verdict {
    let claim = "P1: round robin is ahead in the breakpoint test";
    let of = |algorithm: &str, from: &str, what: &str| {
        number(results, &format!("P1/breakpoint/subak/{algorithm}/{from}"), what)
    };
    let gave = |algorithm: &str, from: &str| of(algorithm, from, "gave_at_per_s");
    // How far the intended ramp came, and whether that was its end.
    let came = |algorithm: &str, from: &str| match gave(algorithm, from) {
        Some(rate) => Some(format!("{rate:.0} a second, where something gave")),
        None => Some(format!(
            "its end, with {:.0} a second answered",
            of(algorithm, from, "most_per_s")?
        )),
    };
    let [Some(turn), Some(hash)] = ALGORITHMS.map(|name| came(name, "many/ours")) else {
        return not_run(claim, results.why_not("P1/breakpoint/subak/"));
    };
    let by_k6 = match ALGORITHMS.map(|name| of(name, "many", "http_reqs.count")) {
        [Some(turn), Some(hash)] => {
            format!("; k6 asked {turn:.0} and {hash:.0} times before it ended")
        }
        _ => String::new(),
    };
    let one = came("ip_hash", "one/ours").map_or(String::new(), |one| {
        format!("; with IP hash from one address, where one server has it all, to {one}")
    });
    let nobody_gave = ALGORITHMS.iter().all(|name| gave(name, "many/ours").is_none());
    let (word, why) = match nobody_gave {
        true => (Word::NoDifference, "Neither broke"),
        false => (
            Word::NotComparable,
            "Generator, balancer and servers share this machine, so what gives is the machine",
        ),
    };
    Verdict::new(
        claim,
        word,
        format!(
            "by us the intended ramp came with round robin to {turn}; with IP hash from {NETWORKS} \
             networks to {hash}{one}{by_k6}. {why}. Theirs made 4,259 iterations at 6 to 8 requests a \
             second: nothing was near breaking"
        ),
    )
}

fn few_addresses(results: &Results) -> Verdict {
    let claim = "P1: IP hash's weakness is that few client addresses land on few servers";
    let of = |from: &str| {
        let id = format!("P1/average/subak/ip_hash/{from}");
        let by_us = format!("{id}/ours");
        let all = [results.counts(&by_us, "hits"), results.counts(&id, "hits")].concat();
        all.first().map(|hits| hits.to_vec())
    };
    let (Some(one), Some(many)) = (of("one"), of("many")) else {
        return not_run(claim, results.why_not("P1/average/subak/ip_hash/"));
    };
    let reached = |hits: &[u64]| hits.iter().filter(|count| **count > 0).count();
    let word = if reached(&one) == 1 && reached(&many) == 3 {
        Word::Reproduced
    } else {
        Word::NotReproduced
    };
    Verdict::new(
        claim,
        word,
        format!(
            "hits by server from one address {one:?}, as their k6 had it; from {NETWORKS} networks {many:?}"
        ),
    )
}

fn printed(results: &Results) -> Verdict {
    let claim = "P1, hidden: the printed breakpoint script ramps users, not arrivals";
    let id = "P1/breakpoint_as_printed/subak/round_robin";
    let of = |number: &str| results.mean(id, number).map(|mean| mean.value);
    let (Some(users), Some(iterations)) = (of("vus_max.max"), of("iterations.count")) else {
        return not_run(claim, results.why_not(id));
    };
    // Arrivals would have been half of the rate reached, over the time: thousands a second.
    let word = if of("dropped_iterations.count").is_none() { Word::Holds } else { Word::Fails };
    Verdict::new(
        claim,
        word,
        format!(
            "k6 ignores the executor outside of a scenario and ramped users on the way to 20,000 (memory here \
             was enough to prepare {users:.0}): {iterations:.0} iterations until theirs ended (540 of \
             3,600 s, scaled). Their table shows at most 50 users: it is not the printed script either"
        ),
    )
}

fn failover(results: &Results) -> Verdict {
    let claim =
        "P1: fail-over (claimed, no experiment printed): users do not notice that a server dies";
    let mut told = Vec::new();
    let mut lost = 0.0;
    for (by, suffix) in [("by us", "/ours"), ("by k6", "")] {
        for algorithm in ALGORITHMS {
            let id = format!("P1/failover/subak/{algorithm}{suffix}");
            let of = |name: &str| number(results, &id, name);
            if let (Some(failed), Some(all)) = (of("http_req_failed.passes"), of("http_reqs.count"))
            {
                lost += failed;
                told.push(format!("{by}, {algorithm}: {failed:.0} of {all:.0} requests failed"));
            }
        }
    }
    if told.is_empty() {
        return not_run(claim, results.why_not("P1/failover/subak/"));
    }
    let word = if lost == 0.0 { Word::Reproduced } else { Word::NotReproduced };
    let told = told.join("; ");
    let because = format!(
        "a server killed under 100 users, without health checks: {told}. What had reached the server when it \
         died may have been done there and is not asked again"
    );
    Verdict::new(claim, word, because)
}

fn robustness(results: &Results) -> Verdict {
    let claim = "P1: robustness (claimed, no experiment printed): beyond capacity and back, all is well again";
    let mut told = Vec::new();
    let mut all_well = true;
    for algorithm in ALGORITHMS {
        let id = format!("P1/robustness/subak/{algorithm}/ours");
        let of = |name: &str| number(results, &id, name);
        let (Some(failed), Some(all)) = (of("http_req_failed.passes"), of("http_reqs.count"))
        else {
            continue;
        };
        let recovery = of("recovery_s");
        all_well &= recovery.is_some();
        let after = recovery
            .map_or("not within the run".to_owned(), |recovery| format!("after {recovery:.1} s"));
        told.push(format!("{algorithm}: {failed:.0} of {all:.0} failed, all as before {after}"));
    }
    if told.is_empty() {
        return not_run(claim, results.why_not("P1/robustness/subak/"));
    }
    let word = if all_well { Word::Reproduced } else { Word::NotReproduced };
    let because = format!("1.5 times what three servers do, then half of it: {}", told.join("; "));
    Verdict::new(claim, word, because)
}

fn slow_clients(results: &Results) -> Verdict {
    let claim = "P1: security (claimed, no experiment printed): slow clients do not disturb others";
    let id = "P1/security/slow_clients/ours";
    let of = |name: &str| number(results, id, name);
    let (Some(alone), Some(together), Some(failed), Some(slow), Some(cut_off)) =
        (of("p95_alone_ms"), of("p95_together_ms"), of("failed"), of("slow"), of("cut_off"))
    else {
        return not_run(claim, results.why_not("P1/security/slow_clients"));
    };
    let is_so = failed == 0.0 && together <= alone * 1.5 && cut_off == slow;
    let because = format!(
        "p95 of others {alone:.1} ms alone and {together:.1} ms beside {slow:.0} clients that send a byte every \
         half second, {failed:.0} of the others failed, {cut_off:.0} of the slow ones were cut off within 13 s"
    );
    Verdict::new(claim, if is_so { Word::Reproduced } else { Word::NotReproduced }, because)
}

fn security(results: &Results) -> Verdict {
    let claim = "P1: security (claimed, no experiment printed): old versions of TLS are refused";
    let values = VERSIONS.map(|version| results.mean("P1/security/versions", version));
    let [Some(a), Some(b), Some(c), Some(d)] = values else {
        return not_run(claim, results.why_not("P1/security/versions"));
    };
    let values = [a, b, c, d].map(|mean| mean.value > 0.0);
    let word =
        if values == [false, false, true, true] { Word::Reproduced } else { Word::NotReproduced };
    let listed = VERSIONS.iter().zip(values).map(|(version, speaks)| {
        format!("{version} {}", if speaks { "spoken" } else { "refused" })
    });
    Verdict::new(claim, word, listed.collect::<Vec<_>>().join(", "))
}

fn ambiguous(results: &Results) -> Verdict {
    let claim = "P1: security (claimed, no experiment printed): ambiguous requests are refused";
    let id = "P1/security/ambiguous";
    let of = |name: &str| number(results, id, name);
    let (Some(refused), Some(other), Some(reached)) =
        (of("refused"), of("not_refused"), of("reached"))
    else {
        return not_run(claim, results.why_not(id));
    };
    let notes: Vec<&str> =
        results.of(id).iter().flat_map(|one| one.notes.iter().map(String::as_str)).collect();
    let word = if other + reached == 0.0 { Word::Reproduced } else { Word::NotReproduced };
    let mut because = format!(
        "{refused:.0} of {:.0} refused with the status that they must get; {reached:.0} reached a server",
        refused + other
    );
    if !notes.is_empty() {
        because += &format!(": {}", notes.join("; "));
    }
    Verdict::new(claim, word, because)
}

/// Lengths of the runs of tables 1 and 2, round robin and IP hash of each: requests ÷ rate.
pub(super) fn lengths_s() -> [f64; 4] {
    [51_290.0 / 56.925_729, 172_781.0 / 69.609_188, 166_231.0 / 110.778_429, 238_284.0 / 34.517_602]
}

fn unequal() -> Verdict {
    let lengths = lengths_s();
    Verdict::new(
        "P1, hidden: the compared runs are not of one length",
        Word::Holds,
        format!(
            "requests ÷ rate: {:.0} s of round robin against {:.0} s of IP hash (average), {:.0} against \
             {:.0} s (stress), one request of 56 min 54 s among them; 20 and 25 minutes were intended. \
             Averages over them are not comparable",
            lengths[0], lengths[1], lengths[2], lengths[3]
        ),
    )
}

#[cfg(test)]
mod tests {
    use subak_report::Word;

    use super::{ALGORITHMS, breakpoint};
    use crate::cell::Measured;
    use crate::results::{Line, Outcome, Results};

    /// Breakpoints of these algorithms, of which some gave at a rate.
    fn breakpoints(gave: [Option<f64>; 2]) -> Results {
        let mut results = Results::default();
        for (algorithm, gave) in ALGORITHMS.into_iter().zip(gave) {
            let mut measured = Measured::default().number("most_per_s", 19_551.0);
            if let Some(rate) = gave {
                measured = measured.number("gave_at_per_s", rate);
            }
            let id = format!("P1/breakpoint/subak/{algorithm}/many/ours#1");
            results.add(Line {
                id,
                scale: 0.01,
                took_s: 37.0,
                busy_before: None,
                outcome: Outcome::Measured(measured),
            });
        }
        results
    }

    #[test]
    fn a_ramp_that_came_to_its_end_is_a_result() {
        let verdict = breakpoint(&breakpoints([None, None]));
        assert_eq!(verdict.word, Word::NoDifference);
        assert!(verdict.because.contains("its end, with 19551"), "{}", verdict.because);
        let verdict = breakpoint(&breakpoints([Some(6569.0), None]));
        assert_eq!(verdict.word, Word::NotComparable);
        assert!(verdict.because.contains("6569 a second, where"), "{}", verdict.because);
        let verdict = breakpoint(&Results::default());
        assert_eq!(verdict.word, Word::NotRun);
    }

    #[test]
    fn the_papers_runs_have_the_lengths_that_are_told() {
        let verdict = super::unequal();
        for seconds in ["901 s", "2482 s", "1501 against", "6903 s"] {
            assert!(verdict.because.contains(seconds), "{}", verdict.because);
        }
    }
}
