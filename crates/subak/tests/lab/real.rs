//! `subak lab run --on real`: what is started does its work, is measured, and is gone afterwards. Whether
//! a run counts depends on the machine; what is asserted here is so large that it does not.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::experiments::Results;
use crate::failing;

/// What has not come about in this time does not.
const LIMIT: Duration = Duration::from_secs(60);

/// One after the other: each of them wants both cores.
static TURN: Mutex<()> = Mutex::new(());

/// A running `subak lab run`, and what it may leave behind.
struct Run(
    Child,
    #[expect(dead_code, reason = "held until the run is over")] MutexGuard<'static, ()>,
);

impl Run {
    fn start(arguments: &[&str]) -> Run {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let child = Command::new(env!("CARGO_BIN_EXE_subak"))
            .args(["lab", "run", "--json"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("subak lab run");
        Run(child, turn)
    }

    /// Command lines of processes that serve for it.
    fn processes(&self) -> Vec<String> {
        let id = self.0.id();
        let [_, high, middle, low] = (0x7F40_0000_u32 | (id & 0x003F_FFFF)).to_be_bytes();
        let signs = [format!("subak-lab-{id}-"), format!(" 127.{high}.{middle}.{low}:")];
        let all = fs::read_dir("/proc").expect("/proc").flatten();
        let lines = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
        lines.filter(|line| signs.iter().any(|sign| line.contains(sign))).collect()
    }

    fn directories(&self) -> usize {
        let sign = format!("subak-lab-{}-", self.0.id());
        let all = fs::read_dir(std::env::temp_dir()).expect("a directory").flatten();
        all.filter(|entry| entry.file_name().to_string_lossy().starts_with(&sign)).count()
    }

    #[track_caller]
    fn wait_until(&self, what: &str, condition: impl Fn(&Run) -> bool) {
        let began = Instant::now();
        while !condition(self) {
            assert!(began.elapsed() < LIMIT, "not {what}: {:?}", self.processes());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Its exit status, what it printed and what it complained of; nothing of it is left.
    #[track_caller]
    fn ended(mut self) -> (i32, String, String) {
        let (out, complaints) = (self.0.stdout.take(), self.0.stderr.take());
        let out = out.map_or_else(String::new, text_of);
        let complaints = complaints.map_or_else(String::new, text_of);
        let status = self.0.wait().expect("its end").code().expect("a status");
        self.wait_until("gone", |run| run.processes().is_empty() && run.directories() == 0);
        (status, out, complaints)
    }
}

fn text_of(pipe: impl std::io::Read) -> String {
    std::io::read_to_string(pipe).expect("text")
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn runs<'a>(result: &'a Value, on: &str, algorithm: &str) -> &'a Vec<Value> {
    let all = result["trials"].as_array().expect("trials");
    let found = all.iter().find(|one| one["on"] == on && one["algorithm"] == algorithm);
    found.and_then(|one| one["runs"].as_array()).unwrap_or_else(|| panic!("{on} {algorithm}"))
}

fn hits(run: &Value, endpoint: usize) -> f64 {
    run["hits"][endpoint].as_f64().expect("a count")
}

/// Whether the run is evidence.
fn counts(run: &Value) -> bool {
    run["invalid"].as_array().is_some_and(Vec::is_empty)
}

#[test]
fn a_slow_endpoint_shows_on_real_servers_and_in_the_simulator() {
    let results = Results::new();
    let text = "title = \"Small\"\nquestion = \"Who notices?\"\nlasts = \"2500ms\"\nwarm_up = \"500ms\"\n\
        repetitions = 2\nalgorithms = [\"round_robin\", \"least_connections\"]\n\n[load]\nrate = 150\n\n\
        [[endpoint]]\ncount = 3\nservice = \"exponential:4ms\"\nconcurrency = 8\n\n\
        [[fault]]\nendpoints = [0]\nat = \"500ms\"\nlasts = \"2s\"\nwhat = \"slow:40\"\n";
    let file = results.file("small.toml", text);
    let place = results.path("small");
    let run = Run::start(&[&file, "--on", "both", "--seeds", "3", "--output", &place]);
    let (status, out, said) = run.ended();
    let result: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{status}: {said}"));
    for on in ["sim", "real"] {
        let pairs = runs(&result, on, "round_robin").iter();
        for (slow, quick) in pairs.zip(runs(&result, on, "least_connections")) {
            let p95 = |run: &Value| run["p95_ms"].as_f64().expect("a number");
            // Who is asked less is seen on any machine; latencies where it left the run alone.
            let share = |run: &Value| hits(run, 0) / (hits(run, 0) + hits(run, 1) + hits(run, 2));
            assert!(share(quick) < 0.9 * share(slow), "{on}: {quick} {slow}");
            if [slow, quick].into_iter().all(counts) {
                assert!(p95(quick) < p95(slow), "{on}: {} {}", p95(quick), p95(slow));
            }
            assert_eq!(quick["failures"], Value::Array(Vec::new()));
        }
    }
    let all = result["trials"].as_array().into_iter().flatten();
    let all: Vec<&Value> = all.flat_map(|one| one["runs"].as_array().expect("runs")).collect();
    assert_eq!(all.len(), 2 * 3 + 2 * 2);
    let count = all.into_iter().all(counts);
    let report: Value = serde_json::from_str(&results.read("small/report.json")).expect("JSON");
    let verdicts = report["verdicts"].as_array().expect("verdicts");
    let wrong = verdicts.iter().any(|one| one["word"] == "fails" || one["word"] == "invalid");
    assert_eq!(status, i32::from(wrong || !count), "{verdicts:?}");
    assert!(results.read("small/report.html").contains("Simulator and reality"));
}

#[test]
fn with_the_same_seed_real_servers_get_the_very_requests_of_the_simulator() {
    let results = Results::new();
    let text = "title = \"Keys\"\nquestion = \"Who goes where?\"\nlasts = \"3s\"\nrepetitions = 2\n\
        balancers = 2\nalgorithms = [\"round_robin\", \"ip_hash\", { algorithm = \"hash\", \
        key = \"path\", method = \"maglev\" }]\n\n\
        [load]\nrate = 200\nclients = { people = [90, 40, 20, 10, 5, 1, 1, 1, 1, 1] }\n\
        bursts = { times = 4.0, last = \"200ms\", apart = \"1s\" }\n\
        objects = { count = 50, zipf = 1.2 }\n\n\
        [[endpoint]]\ncount = 4\nservice = \"constant:1ms\"\nconcurrency = 8\n";
    let file = results.file("keys.toml", text);
    let place = results.path("keys");
    let run = Run::start(&[&file, "--on", "both", "--seeds", "2", "--output", &place]);
    let (status, out, said) = run.ended();
    let result: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{status}: {said}"));
    for algorithm in ["round_robin", "ip_hash", "hash (key path, method maglev)"] {
        let [sim, real] = ["sim", "real"].map(|on| runs(&result, on, algorithm));
        assert_eq!((sim.len(), real.len()), (2, 2));
        for (sim, real) in sim.iter().zip(real) {
            assert_eq!(real["failures"], Value::Array(Vec::new()));
            for what in ["seed", "requests", "hits"] {
                assert_eq!(sim[what], real[what], "{algorithm}: {what}");
            }
        }
    }
}

#[test]
fn endpoints_that_drain_are_replaced_under_load_and_nobody_notices() {
    let results = Results::new();
    let text = "title = \"Deploy\"\nquestion = \"Does it fail?\"\nlasts = \"6s\"\nrepetitions = 2\n\
        balancers = 2\nalgorithms = [\"least_connections\"]\n\n[load]\nrate = 100\n\n\
        [pool]\nretry = { attempts = 1 }\n\n\
        [[endpoint]]\ncount = 2\nservice = \"constant:1ms\"\nconcurrency = 8\n\n\
        [[fault]]\nendpoints = [0, 1]\nat = \"500ms\"\nlasts = \"4s\"\nwhat = \"deploy:1s:1s\"\n";
    let file = results.file("deploy.toml", text);
    let (status, out, said) =
        Run::start(&[&file, "--on", "real", "--output", &results.path("deploy")]).ended();
    let result: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{status}: {said}"));
    for run in runs(&result, "real", "least_connections") {
        assert_eq!(run["failures"], Value::Array(Vec::new()));
        // Each is away for two of six seconds, and has half of the rest.
        let share = hits(run, 0) / (hits(run, 0) + hits(run, 1));
        assert!((0.4..0.6).contains(&share), "{run}");
        let steps = run["series"].as_array().expect("steps").iter();
        assert!(steps.map(|one| one["answered"].as_u64().expect("a count")).sum::<u64>() > 400);
    }
}

#[test]
fn attackers_are_refused_and_silent_connections_are_ended_in_time() {
    let results = Results::new();
    // What is held when the attack ends has ten times the limit until the load does.
    let mut text = "title = \"Attacked\"\nquestion = \"What do they get?\"\nlasts = \"4s\"\n\
        repetitions = 2\nalgorithms = [\"round_robin\"]\n\
        assert = [\"refused of each > 99.9%\", \"ended of each > 99.9%\"]\n\n\
        [load]\nrate = 50\n\n\
        [listener]\ntimeouts = { head = \"250ms\", keep_alive = \"250ms\" }\n\n\
        [[endpoint]]\nservice = \"constant:2ms\"\nconcurrency = 8\n"
        .to_owned();
    let kinds = ["ambiguous", "large-heads", "slow-heads", "connections"];
    for what in kinds {
        let when = "at = \"500ms\"\nlasts = \"1s\"\nrate = 30";
        text += &format!("\n[[attack]]\nwhat = \"{what}\"\n{when}\n");
    }
    let file = results.file("attacked.toml", &text);
    let place = results.path("attacked");
    let (status, out, said) = Run::start(&[&file, "--on", "real", "--output", &place]).ended();
    let result: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{status}: {said}"));
    for run in runs(&result, "real", "round_robin") {
        for (place, what) in kinds.iter().enumerate() {
            let of = |key: &str| run["attacked"][place][key].as_u64().expect("a count");
            assert_eq!(run["attacked"][place]["what"], **what);
            // All of them, where the machine had time for the run; most of them anyhow.
            let least = if counts(run) { of("tried") } else { of("tried") / 2 };
            assert!(of("tried") > 0 && of("refused") >= least, "{run}");
        }
    }
    let report: Value = serde_json::from_str(&results.read("attacked/report.json")).expect("JSON");
    let verdicts = report["verdicts"].as_array().expect("verdicts").iter();
    let mut judged =
        verdicts.filter(|one| one["claim"].as_str().is_some_and(|text| text.contains("of each")));
    for verdict in [judged.next(), judged.next()] {
        let verdict = verdict.expect("both are judged");
        // A machine with no time for the run makes it invalid, and no more.
        assert!(verdict["word"] == "holds" || verdict["word"] == "invalid", "{verdict}");
    }
}

#[test]
fn attacks_need_real_servers() {
    let results = Results::new();
    let place = results.path("attacks");
    let (status, said) = failing(&["run", "security", "--output", &place]);
    assert!(status == 2 && said.contains("need real servers"), "{said}");
    assert!(!fs::exists(&place).expect("to look"), "nothing was run");
}

#[test]
fn who_interrupts_a_run_leaves_nothing_behind() {
    let results = Results::new();
    let place = results.path("interrupted");
    let run = Run::start(&["soak", "--on", "real", "--output", &place]);
    // Four endpoints and the balancer.
    run.wait_until("serving", |run| run.processes().len() == 5);
    subak_lab::process::interrupt(run.0.id()).expect("to interrupt");
    let (status, out, said) = run.ended();
    assert_eq!((status, &*out), (1, ""), "{said}");
    assert!(said.contains("stopped"), "{said}");
    assert!(!fs::exists(&place).expect("to look"), "nothing was kept");
}
