//! `subak lab load` and `subak lab endpoint`: what is asked arrives, what is printed is true.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::{
    Authority, Endpoint, Group, Setup, Terminal, fresh_address, fresh_address_v6,
};
use crate::{failing, lab};

/// What `subak lab load … --json` says; the run has to end well.
#[track_caller]
pub(crate) fn loaded(arguments: &[&str]) -> Value {
    let output = lab(&[&["load", "--json"], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// A process of `subak lab endpoint`, which ends with this.
pub(crate) struct Endpoints {
    child: Child,
    url: String,
}

impl Endpoints {
    fn start(options: &[&str]) -> Endpoints {
        Endpoints::at(&fresh_address(), options)
    }

    pub(crate) fn at(address: &str, options: &[&str]) -> Endpoints {
        let mut child = Command::new(env!("CARGO_BIN_EXE_subak"))
            .args(["lab", "endpoint", address])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("subak lab endpoint");
        let mut line = String::new();
        let out = child.stdout.as_mut().expect("its output");
        BufReader::new(out).read_line(&mut line).expect("a line");
        assert!(line.contains("listens on"), "{line}");
        Endpoints { child, url: format!("http://{address}/") }
    }

    /// One of the counters that `/__stats` tells.
    fn counter(&self, name: &str) -> u64 {
        let output = Command::new("curl").args(["-sS", &format!("{}__stats", self.url)]).output();
        let stats: Value = serde_json::from_slice(&output.expect("curl").stdout).expect("JSON");
        stats["endpoints"][0][name].as_u64().unwrap_or_else(|| panic!("{name} in {stats}"))
    }
}

impl Drop for Endpoints {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn so_many_requests_by_so_many_users_as_ab_asks() {
    let endpoints = Endpoints::start(&[]);
    let result = loaded(&[&endpoints.url, "-n", "1000", "-c", "7"]);
    assert_eq!((&result["answered"], &result["failed"]), (&1000.into(), &0.into()));
    assert_eq!((endpoints.counter("hits"), endpoints.counter("connections")), (1000, 9));
    let fresh = loaded(&[&endpoints.url, "-n", "50", "-c", "5", "--no-keep-alive"]);
    assert_eq!((&fresh["answered"], &fresh["connections"]), (&50.into(), &50.into()));
    assert!(fresh["phases_ms"]["connecting"]["max"].as_f64() > Some(0.0), "{fresh}");
}

#[test]
fn a_generator_runs_ahead_of_others_or_says_what_it_lacks() {
    let endpoints = Endpoints::start(&[]);
    let asked = ["load", &*endpoints.url, "-n", "20", "-c", "2", "--json", "--ahead"];
    let output = lab(&asked);
    if output.status.success() {
        let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(result["generator"]["ahead"], true, "{result}");
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("CAP_SYS_NICE") && said.contains("--ahead"), "{said}");
    }
    let usual = loaded(&[&endpoints.url, "-n", "20", "-c", "2"]);
    assert_eq!(usual["generator"]["ahead"], false, "{usual}");
}

#[test]
fn an_endpoint_that_nobody_asks_sleeps() {
    let endpoints = Endpoints::start(&[]);
    loaded(&[&endpoints.url, "-n", "5"]);
    let tasks = format!("/proc/{}/task", endpoints.child.id());
    let sleeps = |stat: &str| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'));
    crate::support::wait_until("all of its threads sleep", || {
        let threads = std::fs::read_dir(&tasks).expect("its threads").flatten();
        let stats = threads.map(|thread| std::fs::read_to_string(thread.path().join("stat")));
        stats.flatten().all(|stat| sleeps(&stat))
    });
}

#[test]
fn an_open_loop_follows_its_stages() {
    let endpoints = Endpoints::start(&[]);
    // 0 to 400/s in 500 ms, then 500 ms of it: 100 + 200.
    let stages = "400:500ms,400:500ms";
    let arguments = ["--rate", "0", "--stages", stages, "--interval", "250ms"];
    let result = loaded(&[&[&*endpoints.url], &arguments[..]].concat());
    assert_eq!(result["answered"], 300, "{result}");
    let moments = result["moments"].as_array().expect("moments");
    let of = |index: usize, key: &str| moments[index][key].as_f64().expect("a number");
    // How even it was depends on the machine; how much was asked for when does not.
    assert!(of(0, "load") < of(1, "load") && of(2, "load") == 400.0, "{moments:?}");
    let sum: f64 = (0..moments.len()).map(|index| of(index, "answered")).sum();
    assert_eq!(sum, 300.0);
}

#[test]
fn users_think_and_their_number_changes() {
    let endpoints = Endpoints::start(&[]);
    let users = ["--users", "4", "--think", "50ms", "--for", "500ms"];
    let result = loaded(&[&[&*endpoints.url], &users[..]].concat());
    // Ten each, if the machine were not there; never more.
    let answered = result["answered"].as_u64().expect("a count");
    assert!((4..=44).contains(&answered), "{answered}");
    assert!(result["phases_ms"]["iteration"]["min"].as_f64() >= Some(50.0), "{result}");
    let ramp = ["--users", "0", "--stages", "20:300ms,0:300ms", "--think", "5ms"];
    let result = loaded(&[&[&*endpoints.url], &ramp[..]].concat());
    let most = result["users_most"].as_u64().expect("users");
    assert!((1..=20).contains(&most), "{result}");
}

#[test]
fn a_stall_is_charged_to_all_who_were_due() {
    // One request at a time, 20 ms each: 50/s. 100/s are due.
    let options = ["--service", "20ms", "--concurrency", "1"];
    let endpoints = Endpoints::start(&options);
    let arguments = ["--rate", "100/s", "--for", "1s"];
    let result = loaded(&[&[&*endpoints.url], &arguments[..]].concat());
    assert_eq!(result["answered"], 100, "what was asked within the second is waited for: {result}");
    let p99 = result["latency_ms"]["p99"].as_f64().expect("p99");
    assert!(p99 > 700.0, "the last was due after 0.99 s and served after 2 s: {p99} ms");
    assert_eq!(endpoints.counter("in_line"), 0);
}

#[test]
fn checks_and_thresholds_decide_the_exit_status() {
    let endpoints = Endpoints::start(&["--name", "first"]);
    let checks = ["--check", "status=200", "--check", "header:x-endpoint=first"];
    let more = ["--check", "body~first", "--check", "body~second"];
    let all = [&[&*endpoints.url, "-n", "20"], &checks[..], &more[..]].concat();
    let result = loaded(&all);
    let passed: Vec<_> = (0..4).map(|index| result["checks"][index]["passed"].clone()).collect();
    assert_eq!(passed, [20, 20, 20, 0]);

    let kept = ["--threshold", "failed<1%", "--threshold", "p95<60s"];
    let output = lab(&[&["load", &*endpoints.url, "-n", "20"], &kept[..]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    // On a machine that is too busy to judge by, a run says so, and then no threshold holds.
    let valid = !String::from_utf8_lossy(&output.stdout).contains("INVALID");
    assert!(output.status.success() == valid && said.contains("failed<1%: holds"), "{output:?}");
    let broken = ["load", &*endpoints.url, "-n", "20", "--threshold", "p50<1us"];
    let (status, said) = failing(&broken);
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("p50<1us: BROKEN"), "{said}");

    let failing_ones = Endpoints::start(&["--fail", "100%"]);
    let (status, said) = failing(&["load", &failing_ones.url, "-n", "5"]);
    assert_eq!(status, 1);
    assert!(said.contains("nothing was answered: 5 status"), "{said}");
}

#[test]
fn what_is_wrong_about_a_command_line_is_said_before_anything_is_asked() {
    for (arguments, part) in [
        (&["load", "ftp://a"][..], "http://"),
        (&["load", "http://127.0.0.1:1", "--users", "0"], "at least one"),
        (&["load", "http://127.0.0.1:1", "--rate", "0"], "positive"),
        (&["load", "http://127.0.0.1:1", "--check", "size=1"], "a check is"),
        (&["load", "http://127.0.0.1:1", "--threshold", "p95"], "p95<200ms"),
        (&["load", "http://127.0.0.1:1", "-H", "A: b\r\nC: d"], "a header"),
        (&["load", "http://127.0.0.1:1", "--source", "::1"], "kind"),
        (&["load", "http://127.0.0.1:1", "--ca", "x.pem"], "https"),
        (&["endpoint", "127.0.0.1:1", "--service", "soon"], "exponential:5ms"),
        (&["endpoint", "127.0.0.1:1", "127.0.0.1:2", "--name", "a"], "single"),
    ] {
        let (status, said) = failing(arguments);
        assert_eq!(status, 2, "{arguments:?}: {said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
}

#[test]
fn a_load_without_a_core_of_its_own_is_not_valid() {
    // 3 % of a core.
    let Some(group) = Group::new() else { return };
    let endpoints = Endpoints::start(&[]);
    let load = format!(
        "exec {} lab load {} --users 8 --for 1s --threshold 'failed<1%'",
        env!("CARGO_BIN_EXE_subak"),
        endpoints.url
    );
    let output = group.shell(&load).output().expect("sh");
    let (text, said) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("INVALID") && text.contains("had no core for"), "{text}");
    assert!(output.status.code() == Some(1) && said.contains("the run is not valid"), "{said}");
}

#[test]
fn clients_come_from_many_addresses() {
    let endpoint = Endpoint::named("a");
    let url = format!("http://{}/", endpoint.address());
    let range = "127.0.1.1-127.0.1.4";
    loaded(&[&url, "-n", "8", "-c", "4", "--source", range, "--no-keep-alive"]);
    let forwarded = ["--forwarded-for", "10.9.0.0/30"];
    loaded(&[&[&*url, "-n", "8", "-c", "4"], &forwarded[..]].concat());
    let named: std::collections::BTreeSet<String> = endpoint
        .requests()
        .iter()
        .filter_map(|request| request.field("x-forwarded-for").map(str::to_owned))
        .collect();
    let all: Vec<_> = named.iter().map(String::as_str).collect();
    assert_eq!(all, ["10.9.0.0", "10.9.0.1", "10.9.0.2", "10.9.0.3"]);
}

#[test]
fn several_targets_are_asked_in_turn_and_by_one_name() {
    let [first, second] = ["a", "b"].map(Endpoint::named);
    let urls = [&first, &second].map(|endpoint| format!("http://{}", endpoint.address()));
    let path = format!("{}/x", urls[0]);
    let result = loaded(&[&path, &urls[1], "--rate", "200/s", "--for", "300ms"]);
    let shares: Vec<_> = (0..2).map(|place| &result["targets"][place]["answered"]).collect();
    assert_eq!(shares, [30, 30], "{result}");
    for endpoint in [&first, &second] {
        let asked = endpoint.requests();
        assert!(asked.len() == 30 && asked.iter().all(|one| one.line.starts_with("GET /x ")));
        assert!(asked.iter().all(|one| one.field("host") == Some(&first.address().to_string())));
    }
    let (status, said) = failing(&["load", &path, &format!("{}/y", urls[1])]);
    assert!(status == 2 && said.contains("the first one's path"), "{said}");
    let (status, said) = failing(&["load", &path, "https://127.0.0.1:1/"]);
    assert!(status == 2 && said.contains("all are http"), "{said}");
    let (status, said) = failing(&["load", &path, &urls[1], "--connect", "127.0.0.1:1"]);
    assert!(status == 2 && said.contains("there are several"), "{said}");
}

#[test]
fn methods_bodies_and_weights_arrive() {
    let endpoint = Endpoint::named("a");
    let url = format!("http://{}/", endpoint.address());
    let requests = ["--request", "1 POST /rare", "--request", "9 PUT /often?x=1"];
    let said = ["--body", "hello", "-H", "X-Tenant: blue"];
    loaded(&[&[&*url, "-n", "60", "-c", "2"], &requests[..], &said[..]].concat());
    let all = endpoint.requests();
    let often = all.iter().filter(|request| request.line.starts_with("PUT /often?x=1 ")).count();
    assert!(all.len() == 60 && (40..60).contains(&often), "{often} of {}", all.len());
    assert!(all.iter().all(|request| request.body == b"hello"));
    assert!(all.iter().all(|request| request.field("x-tenant") == Some("blue")));
}

#[test]
fn the_same_load_by_tls_and_http2_through_the_balancer() {
    let authority = Authority::new();
    authority.sign("site", "app.test", 2020..4000);
    let endpoint = Endpoint::named("a");
    let tls = format!(
        "tls = {{ certificates = [{{ chain = {:?}, key = {:?} }}] }}",
        authority.path("site.pem"),
        authority.path("site.key")
    );
    let subak = Setup::before(&[&endpoint]).listener(&tls).start();
    let (url, ca) = ("https://app.test/", authority.path("ca.pem"));
    let trusted = [url, "--connect", subak.address(), "--ca", &ca, "-n", "60"];
    let first = loaded(&[&trusted[..], &["-c", "3"]].concat());
    assert_eq!((&first["answered"], &first["connections"]), (&60.into(), &3.into()));
    assert!(first["phases_ms"]["tls_handshaking"]["max"].as_f64() > Some(0.0), "{first}");
    let second = loaded(&[&trusted[..], &["-c", "20", "--http2"]].concat());
    assert_eq!((&second["answered"], &second["connections"]), (&60.into(), &1.into()));
    let checked = ["-c", "2", "--http2", "--check", "body~a", "--check", "header:content-length"];
    let third = loaded(&[&trusted[..], &checked[..]].concat());
    assert_eq!(third["checks"][0]["failed"], 0, "{third}");
    let open = [url, "--connect", subak.address(), "--insecure", "--http2"];
    let fourth = loaded(&[&open[..], &["--rate", "200/s", "--for", "300ms"]].concat());
    assert_eq!(fourth["answered"], 60, "{fourth}");

    let stranger = Authority::new();
    let foreign = stranger.path("ca.pem");
    for more in [&["--http2"][..], &[]] {
        let untrusting = ["load", url, "--connect", subak.address(), "--ca", &foreign, "-n", "2"];
        let (status, said) = failing(&[&untrusting[..], more].concat());
        assert_eq!(status, 1);
        assert!(said.contains("nothing was answered: 2 tls"), "{said}");
    }
}

#[test]
fn by_cleartext_http2_and_by_ipv6() {
    let endpoint = Endpoint::named("a");
    let subak = Setup::before(&[&endpoint]).start();
    let url = format!("http://{}/", subak.address());
    let result = loaded(&[&url, "--http2", "-n", "40", "-c", "8"]);
    assert_eq!((&result["answered"], &result["connections"]), (&40.into(), &1.into()));

    let endpoints = Endpoints::at(&fresh_address_v6(), &["--body", "3000"]);
    let result = loaded(&[&endpoints.url, "-n", "40", "--source", "::1"]);
    assert_eq!((&result["answered"], &result["body_bytes"]), (&40.into(), &120_000.into()));
}

#[test]
fn connections_that_the_balancer_ends_after_so_many_requests_fail_none() {
    let endpoint = Endpoint::named("a");
    let limit = "limits = { requests_per_connection = 20 }";
    let subak = Setup::before(&[&endpoint]).listener(limit).start();
    let url = format!("http://{}/", subak.address());
    for more in [&[][..], &["--http2", "--connections", "2"]] {
        let result = loaded(&[&[&*url, "-n", "1000", "-c", "8"], more].concat());
        assert_eq!((&result["answered"], &result["failed"]), (&1000.into(), &0.into()), "{result}");
        // By HTTP/2 a few more come before the goodbye has arrived.
        assert!(result["connections"].as_u64() >= Some(1000 / 30), "{result}");
    }
}

#[test]
fn nothing_of_progress_reaches_a_pipe_and_layouts_are_theirs() {
    let endpoints = Endpoints::start(&[]);
    let plain = lab(&["load", &endpoints.url, "--users", "2", "--for", "300ms"]);
    assert!(plain.status.success() && plain.stderr.is_empty(), "{plain:?}");
    let printed = |arguments: &[&str]| {
        let output = lab(&[&["load", &*endpoints.url, "-n", "30", "-c", "3"], arguments].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let k6 = printed(&["--summary", "k6"]);
    assert!(k6.contains("http_req_tls_handshaking.......: avg=0s"), "{k6}");
    assert!(k6.contains("\n     http_reqs......................: 30 "), "{k6}");
    let ab = printed(&["--summary", "ab"]);
    assert!(ab.contains("Concurrency Level:      3\nTime taken for tests:"), "{ab}");
    let csv = printed(&["--csv"]);
    assert!(csv.starts_with("at_s,took_s,load,") && csv.lines().count() >= 2, "{csv}");
}

#[test]
fn progress_is_drawn_on_a_terminal_and_ctrl_c_ends_it_with_a_summary() {
    let endpoints = Endpoints::start(&[]);
    let shape = "--users 2 --think 20ms --for 60s --interval 100ms";
    let command = format!("lab load {} {shape}", endpoints.url);
    let Some(mut terminal) = Terminal::run(&command, (120, 30), &[]) else { return };
    terminal.wait_for("/s answered  0 failed  p95 ");
    terminal.press("\x03");
    let (status, seen) = terminal.end();
    assert_eq!(status, Some(0), "{seen}");
    let after = seen.rsplit("\r\x1b[K").next().expect("the line is taken away");
    assert!(after.contains("answered"), "{seen}");
}

#[test]
fn a_signal_ends_a_load_with_a_summary() {
    let endpoints = Endpoints::start(&[]);
    let child = Command::new(env!("CARGO_BIN_EXE_subak"))
        .args(["lab", "load", &endpoints.url, "--rate", "50/s", "--for", "60s"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("subak lab load");
    crate::support::wait_until("something is asked", || endpoints.counter("hits") > 2);
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("a signal");
    let output = child.wait_with_output().expect("its output");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("answered"), "{text}");
}

#[test]
fn a_cpu_limit_is_kept_or_refused_with_what_would_help() {
    let options = ["--service", "20ms", "--cpu", "--concurrency", "1", "--cpu-limit", "0.25"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_subak"))
        .args(["lab", "endpoint", &fresh_address()])
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("subak lab endpoint");
    let mut line = String::new();
    let out = child.stdout.as_mut().expect("its output");
    BufReader::new(out).read_line(&mut line).expect("a line");
    let Some((_, address)) = line.trim().split_once(" listens on ") else {
        let said = child.wait_with_output().expect("its errors").stderr;
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("it takes root"), "{said}");
        return eprintln!("SKIPPED: a CPU limit in force, for want of rights: {said}");
    };
    // 20 requests of 20 ms by a quarter of a core: 1.6 s where a whole one takes 0.4 s.
    let result = loaded(&[&format!("http://{address}/"), "-n", "20", "-c", "1"]);
    let seconds = result["seconds"].as_f64().expect("a time");
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("a signal");
    assert!(child.wait().expect("its end").success());
    assert!(seconds > 1.2, "{seconds} s");
}
