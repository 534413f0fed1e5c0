//! `subak lab papers`: the exact counts of two papers by real processes, in a network of their own,
//! and what is computed alone.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Runs the command; its verdicts, by how they begin.
fn papers(arguments: &[&str]) -> Vec<(String, String)> {
    let output = Output::new();
    let ran = Command::new(env!("CARGO_BIN_EXE_subak"))
        .args(["lab", "papers", "--json", "--scale", "0.01", "--output"])
        .arg(&output.0)
        .args(arguments)
        .output()
        .expect("subak");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stdout));
    let report: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    let html = std::fs::read_to_string(output.0.join("report.html")).expect("the report");
    assert!(html.contains("Five papers"), "{html}");
    let verdict = |verdict: &serde_json::Value| {
        (
            verdict["claim"].as_str().expect("a claim").to_owned(),
            verdict["word"].as_str().expect("a word").to_owned(),
        )
    };
    report["verdicts"].as_array().expect("verdicts").iter().map(verdict).collect()
}

#[track_caller]
fn has(verdicts: &[(String, String)], claim: &str, word: &str) {
    let found = verdicts.iter().find(|(whole, _)| whole.contains(claim));
    assert!(found.is_some_and(|(_, found)| found == word), "{claim}: {verdicts:#?}");
}

/// Where results go; removed with them.
struct Output(PathBuf);

impl Output {
    fn new() -> Output {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("subak-papers-{}-{number}", std::process::id());
        Output(std::env::temp_dir().join(name))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether cells can have a network of their own here; says loudly if not.
fn has_network(test: &str) -> bool {
    let tried = Command::new("unshare").args(["--net", "true"]).stderr(Stdio::null()).status();
    let has = tried.is_ok_and(|status| status.success());
    if !has {
        eprintln!("SKIPPED: {test} needs `unshare --net` (root)");
    }
    has
}

#[test]
fn thirty_requests_over_ipv6_go_10_10_10_and_15_8_7_and_18_6_6_by_three_balancers() {
    if has_network("P5's exact counts") {
        let verdicts = papers(&["P5", "--only", "P5/single"]);
        has(&verdicts, "10/10/10, 15/8/7 and 18/6/6", "reproduced");
        has(&verdicts, "lowest response time", "not_run");
    }
}

#[test]
fn twelve_thousand_requests_are_a_quarter_each_by_the_papers_command() {
    if has_network("P2's exact counts") {
        let verdicts = papers(&["P2", "--only", "P2/subak/round_robin/12000#"]);
        has(&verdicts, "exactly 3,000 times in 12,000", "reproduced");
    }
}

#[test]
fn no_ambiguous_request_reaches_one_of_the_servers_that_count() {
    if has_network("P1's ambiguous requests") {
        let verdicts = papers(&["P1", "--only", "P1/security/ambiguous"]);
        has(&verdicts, "ambiguous requests are refused", "reproduced");
        has(&verdicts, "steadier than IP hash under average load", "not_run");
    }
}

#[test]
fn behind_a_proxy_all_are_one_client_unless_it_is_believed() {
    if has_network("P3's clients behind a proxy") {
        let verdicts = papers(&["P3", "--only", "P3/proxy"]);
        has(&verdicts, "behind a proxy all are one client", "holds");
    }
}

#[test]
fn what_hashes_do_is_computed_without_any_process() {
    let verdicts = papers(&["P3", "--only", "P3/visits_computed"]);
    has(&verdicts, "spreads random clients more evenly", "not_reproduced");
    has(&verdicts, "divisible by 3 or 11", "holds");
    has(&verdicts, "algorithm 5 as printed", "holds");
    has(&verdicts, "virtual IP", "not_run");
}

#[test]
fn where_nobody_watches_each_cell_has_a_line_and_says_how_busy_others_were_before_it() {
    let output = Output::new();
    let ran = Command::new(env!("CARGO_BIN_EXE_subak"))
        .args(["lab", "papers", "P3", "--only", "P3/visits_computed", "--scale", "0.01"])
        .arg("--output")
        .arg(&output.0)
        .output()
        .expect("subak");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    let kept = std::fs::read_to_string(output.0.join("cells.jsonl")).expect("results");
    let count = kept.lines().count();
    assert!(count > 0);
    assert_eq!(said.lines().count(), count, "{said}");
    assert!(said.starts_with(&format!("1 of {count}, about ")), "{said}");
    for line in kept.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let share = line["busy_before"].as_f64().expect("a share");
        assert!((0.0..=1.0).contains(&share), "{line}");
    }
    let report = std::fs::read_to_string(output.0.join("report.md")).expect("the report");
    let told = format!("of the CPUs just before a cell (median of {count})");
    assert!(report.contains(&told), "{report}");
}

#[test]
fn two_runs_do_not_share_a_directory() {
    let output = Output::new();
    std::fs::create_dir_all(&output.0).expect("a directory");
    let held = std::fs::File::open(&output.0).expect("a directory");
    held.lock().expect("a lock");
    let ran = Command::new(env!("CARGO_BIN_EXE_subak"))
        .args(["lab", "papers", "P3", "--only", "P3/visits_computed", "--output"])
        .arg(&output.0)
        .output()
        .expect("subak");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(1), "{said}");
    assert!(said.contains("at work in"), "{said}");
}

#[test]
fn a_dry_run_names_every_cell_and_runs_none() {
    let output = Output::new();
    let ran = Command::new(env!("CARGO_BIN_EXE_subak"))
        .args(["lab", "papers", "--dry-run", "--output"])
        .arg(&output.0)
        .output()
        .expect("subak");
    let text = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && !output.0.exists(), "{text}");
    for name in ["P1/stress/subak/round_robin/one#1", "P2/subak/least_packets/12000#5", "together:"]
    {
        assert!(text.contains(name), "{name}: {text}");
    }
}
