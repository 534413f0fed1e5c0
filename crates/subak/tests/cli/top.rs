//! `subak top` before a Subak that runs: as text and JSON, on a terminal, while `ab` asks.

use std::collections::BTreeMap;
use std::process::{Command, Output, Stdio};

use crate::support::{Admin, Endpoint, Setup, Subak, Terminal, wait_until};
use serde_json::Value;

fn top(admin: &Admin, options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_subak"))
        .args(["top", "--socket"])
        .arg(admin.socket())
        .args(options)
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .output()
        .expect("subak")
}

/// The hits that `subak top --once` shows of each endpoint.
fn hits(admin: &Admin) -> BTreeMap<String, u64> {
    let output = top(admin, &["--once"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, _weight, hits) = (words.next()?, words.next()?, words.next()?);
        let is_endpoint = line.starts_with("  127.");
        is_endpoint.then(|| (name.to_owned(), hits.replace(',', "").parse().expect(line)))
    };
    text.lines().filter_map(row).collect()
}

fn options(admin: &Admin) -> String {
    format!("top --interval 100ms --socket {}", admin.socket().display())
}

/// Three endpoints, and where it is asked.
fn three() -> (Vec<Endpoint>, Subak, Admin) {
    let endpoints = ["one", "two", "three"].map(Endpoint::named);
    let subak = Setup::before(&endpoints.each_ref()).start();
    let admin = Admin::of(&subak);
    (endpoints.into(), subak, admin)
}

#[test]
fn while_ab_asks_top_and_the_api_show_hits_that_rise_to_exactly_a_quarter_each() {
    if Command::new("ab").arg("-V").output().is_err() {
        eprintln!("SKIPPED: hits seen while ab runs (ab is not installed)");
        return;
    }
    let endpoints = ["one", "two", "three", "four"].map(Endpoint::named);
    let subak = Setup::before(&endpoints.each_ref()).workers(2).start();
    let admin = Admin::of(&subak);
    let url = format!("http://{}/", subak.address());
    let mut ab = Command::new("ab");
    ab.args(["-q", "-n", "12000", "-c", "10", &url]);
    let mut ab = ab.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("ab");
    let mut seen: Vec<BTreeMap<String, u64>> = Vec::new();
    while ab.try_wait().expect("wait").is_none() {
        seen.push(hits(&admin));
    }
    assert!(ab.wait().expect("ab").success());
    for pair in seen.windows(2) {
        assert!(pair[0].iter().all(|(name, hits)| *hits <= pair[1][name]), "{pair:?}");
    }
    let rising = seen.iter().filter(|hits| hits.values().all(|hits| (1..3000).contains(hits)));
    assert!(rising.count() > 0, "they were seen on their way: {seen:?}");
    let last = hits(&admin);
    assert_eq!(last.values().copied().collect::<Vec<_>>(), [3000; 4], "{last:?}");
    let told = admin.status()["pools"][0]["endpoints"].clone();
    let told: Vec<_> =
        told.as_array().expect("endpoints").iter().map(|told| &told["hits"]).collect();
    assert_eq!(told, [3000; 4]);
}

#[test]
fn it_is_text_or_json_for_those_who_have_no_terminal() {
    let (_endpoints, subak, admin) = three();
    subak.get("/");
    let text = String::from_utf8(top(&admin, &["--once"]).stdout).expect("UTF-8");
    assert!(text.contains("pool, endpoint") && !text.contains('\x1b'), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let json = top(&admin, &["--once", "--json"]).stdout;
    let json = String::from_utf8(json).expect("UTF-8");
    assert_eq!(json.lines().count(), 1, "{json}");
    let status: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(status["pools"][0]["name"], "app");
    let output = top(&admin, &[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--once"), "{said}");
}

#[test]
fn keys_drain_and_weigh_an_endpoint_after_a_confirmation() {
    let (endpoints, _subak, admin) = three();
    let Some(mut terminal) = Terminal::run(&options(&admin), (80, 24), &[]) else { return };
    let [first, second] = [0, 1].map(|index| endpoints[index].address());
    terminal.wait_for(&second);
    let state = |endpoint: &str| admin.endpoint(endpoint)["state"].clone();
    terminal.press("jd");
    terminal.wait_for(&format!("Drain {first}?"));
    terminal.press("n");
    terminal.wait_for("left as it was");
    assert_eq!(state(&first), "ready", "nothing without a y");
    terminal.press("dy");
    wait_until("it drains", || state(&first) == "drain");
    terminal.press("jw7\ry");
    wait_until("it has its weight", || admin.endpoint(&second)["weight"]["operator"] == 7);
    terminal.press("q");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn whatever_ends_it_the_terminal_is_as_it_was() {
    let (endpoints, _subak, admin) = three();
    for end in ["q", "\x03", "TERM", "HUP"] {
        let Some(mut terminal) = Terminal::run(&options(&admin), (80, 24), &[]) else { return };
        terminal.wait_for(&endpoints[2].address());
        match end.len() {
            1 => terminal.press(end),
            _ => terminal.signal(end),
        }
        let (status, seen) = terminal.end();
        assert_eq!(status, Some(0), "{end:?}");
        for (on, off) in [("\x1b[?25h", "\x1b[?25l"), ("\x1b[?1049l", "\x1b[?1049h")] {
            assert!(seen.rfind(on).expect(on) > seen.rfind(off).expect(off), "{end:?}: {seen:?}");
        }
    }
}

#[test]
fn another_size_is_filled_and_no_colour_is_used_where_none_is_wanted() {
    let (endpoints, _subak, admin) = three();
    let Some(mut terminal) = Terminal::run(&options(&admin), (80, 24), &[("NO_COLOR", "1")]) else {
        return;
    };
    terminal.wait_for(&endpoints[2].address());
    let before = terminal.seen().len();
    terminal.resize(132, 40);
    // The last line is now the fortieth.
    terminal.wait_for_after(before, "\x1b[40;");
    terminal.press("q");
    let (status, seen) = terminal.end();
    assert_eq!(status, Some(0));
    assert!(!seen.contains("\x1b[38;5;"), "{seen:?}");
}

#[test]
fn a_process_that_is_gone_is_said_and_looked_for_until_it_is_back() {
    let endpoint = Endpoint::named("one");
    let directory = crate::support::fresh_directory();
    let socket = directory.join("admin.sock");
    let setup =
        Setup::before(&[&endpoint]).top(&format!("admin = {{ socket = {:?} }}", socket.display()));
    let subak = setup.start();
    let options = options(&Admin::of(&subak));
    let Some(mut terminal) = Terminal::run(&options, (80, 24), &[]) else { return };
    terminal.wait_for(&endpoint.address());
    drop(subak);
    terminal.wait_for("ANSWER");
    let subak = setup.start();
    let before = terminal.seen().len();
    // A message that was drawn over it shows that it was asked again.
    wait_until("it is asked again", || {
        subak.get("/");
        terminal.seen().len() > before
    });
    terminal.press("jd");
    terminal.wait_for("Drain");
    terminal.press("y");
    let admin = Admin::of(&subak);
    wait_until("it drains", || admin.endpoint(&endpoint.address())["state"] == "drain");
    terminal.press("q");
    assert_eq!(terminal.end().0, Some(0));
    std::fs::remove_dir_all(&directory).expect("removed");
}
