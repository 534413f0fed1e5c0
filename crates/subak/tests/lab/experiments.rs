//! `subak lab run`, `list`, `compare`, `report`, `replay` and `whatif`: what they answer, what they
//! leave on disk, and their exit statuses. That the answers are right is for the crates' own tests.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::{failing, lab};

/// Where results go; removed with them.
pub(crate) struct Results(PathBuf);

impl Results {
    pub(crate) fn new() -> Results {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("subak-results-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        Results(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path in UTF-8").to_owned()
    }

    pub(crate) fn file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        fs::write(self.0.join(name), text).expect("write");
        self.path(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).expect(name)
    }

    /// A log whose right answer is known, of this many lines.
    fn log(&self, kind: &str, lines: &str) -> String {
        let log = lab(&["replay", "--example", kind, "--lines", lines]);
        assert!(log.status.success(), "{log:?}");
        self.file(&format!("{kind}-{lines}.json"), log.stdout)
    }

    /// A configuration with a pool of the example's ten endpoints.
    fn configuration(&self, balance: &str) -> String {
        let endpoints: Vec<_> = (1..=10).map(|number| format!("\"10.0.0.{number}:80\"")).collect();
        let endpoints = endpoints.join(", ");
        let text = format!(
            "[listener.web]\nbind = \"127.0.0.1:8080\"\npool = \"app\"\n\n[pool.app]\n\
             balance = \"{balance}\"\nendpoints = [{endpoints}]\n"
        );
        self.file(&format!("{balance}.toml"), text)
    }
}

impl Drop for Results {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a command prints; it has to end well.
#[track_caller]
fn printed(arguments: &[&str]) -> String {
    let output = lab(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    // Progress is for terminals.
    assert!(output.stderr.is_empty(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[track_caller]
fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(arguments)).expect("JSON")
}

#[track_caller]
fn wrong(arguments: &[&str], part: &str) {
    let (status, said) = failing(arguments);
    assert_eq!(status, 2, "{arguments:?}: {said}");
    assert!(said.contains(part), "{arguments:?}: {said}");
}

#[test]
fn a_run_is_kept_compared_and_shown_again() {
    let results = Results::new();
    let slow = results.path("slow");
    let both = ["--algorithms", "round_robin,least_connections", "--seeds", "3"];
    let run = [&["run", "slow-endpoint", "--output", &slow], &both[..]].concat();
    let text = printed(&run);
    let claim = "holds p95 of least_connections < p95 of round_robin";
    let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plain.contains(claim) && plain.ends_with("slow/report.html"), "{text}");

    let measured = json(&[&run[..], &["--json"]].concat());
    assert_eq!(
        serde_json::from_str::<Value>(&results.read("slow/result.json")).ok(),
        Some(measured.clone())
    );
    let [first, second] = [0, 1].map(|index| measured["trials"][index]["runs"].clone());
    assert_eq!(
        (&measured["trials"][0]["algorithm"], first.as_array().map(Vec::len)),
        (&"round_robin".into(), Some(3))
    );
    for (first, second) in
        first.as_array().into_iter().flatten().zip(second.as_array().into_iter().flatten())
    {
        // The same seed, so the same arrivals.
        assert_eq!((&first["seed"], &first["requests"]), (&second["seed"], &second["requests"]));
        assert!(second["p95_ms"].as_f64() < first["p95_ms"].as_f64(), "{first} {second}");
    }

    let (one, other) = (format!("{slow}:round_robin"), format!("{slow}:least_connections"));
    let difference = json(&["compare", &one, &other, "--json"]);
    assert_eq!(difference["verdicts"][0]["word"], "holds", "{difference}");
    let kept = results.path("difference");
    printed(&["compare", &slow, &slow, "--output", &kept]);
    let same: Value = serde_json::from_str(&results.read("difference/report.json")).expect("JSON");
    let words: Vec<_> = (0..2).map(|index| same["verdicts"][index]["word"].clone()).collect();
    assert_eq!(words, ["no_difference", "no_difference"]);

    let page = results.path("page.html");
    assert_eq!(
        printed(&["report", &slow, "--html", &page, "--markdown", "-"]),
        results.read("slow/report.md")
    );
    assert_eq!(results.read("page.html"), results.read("slow/report.html"));
    assert_eq!(printed(&["report", &slow, "--json"]), results.read("slow/report.json"));
    assert!(printed(&["report", &slow]).starts_with("Slow endpoint\n"));

    wrong(
        &["compare", &one, &format!("{slow}:random")],
        "has no random; it has round_robin, least_connections",
    );
    wrong(&["compare", &one, &results.path("nothing")], "nothing");
    wrong(&["report", &results.path("nothing")], "nothing");
    wrong(&["report", &results.file("no.json", "{}")], "not a report");
}

#[test]
fn what_a_scenario_asserts_decides_the_exit_status() {
    let results = Results::new();
    let scenario = |assertion: &str| {
        format!(
            "title = \"Small\"\nquestion = \"Is it?\"\nlasts = \"5s\"\nseeds = 2\n\
             algorithms = [\"round_robin\"]\nassert = [\"{assertion}\"]\n\n[load]\nrate = 50\n\n\
             [[endpoint]]\ncount = 2\nservice = \"constant:10ms\"\n"
        )
    };
    let place = results.path("small");
    let run = |name: &str, text: &str, more: &[&str]| {
        let file = results.file(name, text);
        failing(&[&["run", &*file, "--output", &place, "--json"], more].concat())
    };
    assert_eq!(run("holds.toml", &scenario("failed of each < 1%"), &[]), (0, String::new()));
    assert_eq!(run("fails.toml", &scenario("p50 of round_robin < 5ms"), &[]), (1, String::new()));
    let report: Value = serde_json::from_str(&results.read("small/report.json")).expect("JSON");
    assert_eq!(report["verdicts"][0]["word"], "fails", "{report}");

    fs::remove_dir_all(&place).expect("the result");
    let misspelt = scenario("failed of each < 1%").replace("lasts", "last");
    let (status, said) = run("misspelt.toml", &misspelt, &[]);
    assert!(status == 2 && said.contains("misspelt.toml:3"), "{said}");
    let good = scenario("failed of each < 1%");
    let (status, said) = run("good.toml", &good, &["--algorithms", "round_robbin"]);
    assert!(status == 2 && said.contains("round_robbin"), "{said}");
    assert_eq!(run("good.toml", &good, &["--seeds", "1"]).0, 2);
    wrong(&["run", "slow-endpiont"], "did you mean slow-endpoint?");
    wrong(&["run", &results.path("none.toml")], "none.toml");
    assert!(!PathBuf::from(place).exists(), "who is refused leaves nothing");
}

#[test]
fn a_result_that_was_tampered_with_is_refused_and_a_missing_one_is_asked_for() {
    let results = Results::new();
    let place = &*results.path("run");
    printed(&["run", "slow-endpoint", "--faster", "10", "--seeds", "2", "--output", place]);
    let kept: Value = serde_json::from_str(&results.read("run/result.json")).expect("JSON");
    for times in [0.0, -1.0, 1e300] {
        let mut kept = kept.clone();
        kept["faster"] = times.into();
        results.file("run/result.json", kept.to_string());
        wrong(&["compare", place, place], "times as fast");
    }
    let missing = &*results.path("nobody");
    for command in [&["compare", missing, place][..], &["report", missing]] {
        wrong(command, "a directory that `subak lab run` has written");
    }
}

#[test]
fn where_nothing_can_be_written_nothing_is_measured_and_what_was_there_stays() {
    let results = Results::new();
    let file = &*results.file("taken", "a file");
    let ran = lab(&["run", "slow-endpoint", "--seeds", "2", "--faster", "10", "--output", file]);
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(1), "{said}");
    assert!(said.starts_with("error: cannot make ") && said.contains("taken"), "{said}");

    let log = &*results.log("equal", "3000");
    let place = &*results.path("run");
    printed(&["replay", log, "--algorithms", "random", "--output", place]);
    let before = results.read("run/result.json");
    // No file may have more than four kilobytes, as if the disk were full.
    let full = "trap '' XFSZ; ulimit -f 4; exec \"$@\"";
    let ran = Command::new("bash")
        .args(["-c", full, "full", env!("CARGO_BIN_EXE_subak"), "lab", "replay", log])
        .args(["--algorithms", "first", "--output", place])
        .output()
        .expect("bash");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.code() == Some(1) && said.contains("result.json"), "{said}");
    assert_eq!(results.read("run/result.json"), before);
    assert_eq!(fs::read_dir(place).expect("files").count(), 3, "nothing is left beside them");
}

#[test]
fn every_scenario_is_listed_and_can_be_had_as_a_file() {
    let all = json(&["list", "--json"]);
    let names: Vec<&str> =
        all.as_array().into_iter().flatten().filter_map(|one| one["name"].as_str()).collect();
    let text = printed(&["list"]);
    assert_eq!(
        text.lines().map(|line| line.split(' ').next().unwrap_or_default()).collect::<Vec<_>>(),
        names
    );
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    for name in &names {
        let file = fs::read_to_string(format!("{folder}/{name}.toml")).expect(name);
        assert_eq!(printed(&["list", "--show", name]), file);
    }
    let files = fs::read_dir(folder).expect("scenarios").flatten();
    let files = files.filter(|file| file.path().extension().is_some_and(|end| end == "toml"));
    assert_eq!(files.count(), names.len());
    wrong(&["list", "--show", "flop"], "did you mean flap?");
}

#[test]
fn a_log_is_replayed_and_a_change_of_it_tried() {
    let results = Results::new();
    let log = results.log("slow-endpoint", "10000");
    let place = results.path("finding");
    let few = ["--algorithms", "round_robin,least_connections", "--seeds", "3", "--output", &place];
    let replay = [&["replay", &log], &few[..]].concat();
    let finding = json(&[&replay[..], &["--json"]].concat());
    let said = (&finding["advice"], &finding["recommended"], &finding["made_by"]);
    assert_eq!(said, (&"change".into(), &"least_connections".into(), &"round_robin".into()));
    let text = printed(&replay);
    assert!(text.contains("Change from round_robin to least_connections"), "{text}");
    assert_eq!(printed(&["report", &place, "--markdown", "-"]), results.read("finding/report.md"));
    assert!(results.read("finding/report.html").contains("least_connections"));

    let [busy, idle] = ["round_robin", "least_connections"].map(|name| results.configuration(name));
    let tried = |new: &str, running: &str| {
        let files = ["whatif", "--config", new, "--running", running, "--log", &log];
        json(&[&files[..], &["--seeds", "3", "--output", &place, "--json"]].concat())
    };
    let better = tried(&idle, &busy);
    assert_eq!(better["advice"], "change", "{better}");
    // Against itself, nothing is gained.
    assert_eq!(tried(&busy, &busy)["advice"], "stay");

    let broken = results.file("broken.toml", "[pool.app]\nendpoints = [\"nowhere\"]\n");
    wrong(&["whatif", "--config", &broken, "--log", &log], "broken.toml:2");
    wrong(
        &["whatif", "--config", &idle, "--log", &log, "--made-by", "round_robbin"],
        "round_robbin",
    );
    wrong(&["replay", &log, "--weights", "1,2"], "2 weights for the log's 10 endpoints");
}

#[test]
fn what_if_there_were_more_endpoints_or_fewer() {
    let results = Results::new();
    let log = results.log("slow-endpoint", "20000");
    let place = results.path("finding");
    let ask = |count| {
        let finding = json(&["replay", &log, "--endpoints", count, "--output", &place, "--json"]);
        (finding["advice"].clone(), finding["answer"].as_str().unwrap_or_default().to_owned())
    };
    let (advice, answer) = ask("20");
    assert!(advice == "change" && answer.contains("round_robin over 20 endpoints"), "{answer}");
    let report = results.read("finding/report.md");
    assert!(report.contains("added-10") && report.contains("median endpoint"), "{report}");
    let (advice, answer) = ask("6");
    assert!(advice == "stay" && answer.contains("would be worse"), "{answer}");
    wrong(&["replay", &log, "--endpoints", "0"], "0");
    wrong(&["replay", &log, "--endpoints", "4", "--weights", "1,2"], "--weights");
    let two = ["replay", &log, "--endpoints", "4", "--algorithms", "random,round_robin"];
    wrong(&two, "one algorithm at a time");
}

#[test]
fn a_log_that_cannot_tell_says_so_and_what_is_no_log_is_refused() {
    let results = Results::new();
    let place = results.path("finding");
    let short = results.log("equal", "200");
    let finding = json(&["replay", &short, "--output", &place, "--json"]);
    assert_eq!(finding["advice"], "cannot_tell", "{finding}");
    assert!(
        finding["answer"].as_str().is_some_and(|answer| answer.contains("too short")),
        "{finding}"
    );

    wrong(&["replay", &results.file("empty", ""), "--output", &place], "the log is empty");
    wrong(&["replay", &results.file("letter", "Dear Sir,\n"), "--output", &place], "Dear Sir");
    wrong(&["replay", "--example", "odd"], "there are: ");
    wrong(&["replay"], "LOG");
    let (status, said) = failing(&["replay", &results.path("none.json")]);
    assert!(status == 1 && said.contains("none.json: No such file"), "{said}");
}
