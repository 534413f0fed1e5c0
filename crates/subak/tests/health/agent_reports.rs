//! `subak agent`, the binary: who gets a report and who does not, its command line, its end.

use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Agent, Client, PATIENCE, TOKEN, fresh_address, fresh_directory};
use subak_agent::parse_report;

/// Runs `subak agent` to its end; its status, what it printed and what it logged.
fn agent(options: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_subak"))
        .arg("agent")
        .args(options)
        .stdin(Stdio::null())
        .output()
        .expect("subak");
    let Output { status, stdout, stderr } = output;
    let [out, err] = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (status.code(), out, err)
}

#[test]
fn the_report_is_given_for_the_token_and_for_nothing_else() {
    let agent = Agent::start(&[]);
    let report = agent.report();
    let (capacity, used) = (report.capacity, report.used);
    assert!(capacity.cpu.is_some_and(|millicpus| millicpus > 0), "{report:?}");
    assert!(capacity.memory.is_some_and(|bytes| bytes > 1 << 20), "{report:?}");
    assert!(used.cpu.is_some() && used.memory.is_some_and(|used| used.get() > 0), "{report:?}");
    assert!(report.age < PATIENCE && report.window >= Duration::from_millis(50), "{report:?}");

    let wrong = TOKEN.replace('9', "8");
    for fields in [
        String::new(),
        format!("Authorization: Bearer {wrong}\r\n"),
        format!("Authorization: Bearer {TOKEN}0\r\n"),
        format!("Authorization: Basic {TOKEN}\r\n"),
        format!("X-Authorization: Bearer {TOKEN}\r\n"),
    ] {
        let answer = agent.get("/v1/report", &fields);
        assert_eq!(answer.status, 401, "{fields}");
        assert!(!answer.text().contains("cpu"), "{fields}");
    }
    let right = format!("Authorization: Bearer {TOKEN}\r\n");
    assert_eq!(agent.get("/", &right).status, 404);
    let mut client = Client::connect(&agent.http);
    client.send(format!("DELETE /v1/report HTTP/1.1\r\nHost: a\r\n{right}\r\n"));
    assert_eq!(client.answer().status, 405);
    client.assert_ends();
}

#[test]
fn agent_check_gets_one_line_and_the_end_whatever_it_sends() {
    let agent = Agent::start(&[]);
    for first in [&b""[..], b"agent-send\n", &[0xff; 2000]] {
        let line = agent.check(first);
        let percent = line.strip_suffix("%\n").and_then(|number| number.parse::<u32>().ok());
        assert!(percent.is_some_and(|percent| (1..=100).contains(&percent)), "{line:?}");
    }
}

#[test]
fn who_sends_nothing_is_cut_off_and_others_are_answered_meanwhile() {
    let agent = Agent::start(&[]);
    let began = Instant::now();
    let mut silent = Client::connect(&agent.http);
    let mut slow = Client::connect(&agent.http);
    slow.send("GET /v1/report HTTP/1.1\r\nHo");
    assert!(agent.report().capacity.cpu.is_some());
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    silent.assert_ends();
    slow.assert_ends();
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(4) && took < Duration::from_secs(30), "{took:?}");
    let mut long = Client::connect(&agent.http);
    long.send(format!("GET /{} HTTP/1.1\r\n", "x".repeat(20_000)));
    assert_eq!(long.answer().status, 431);
}

#[test]
fn it_ends_by_a_signal() {
    for signal in ["TERM", "INT"] {
        let mut agent = Agent::start(&[]);
        let kill = format!("kill -{signal} {}", agent.pid());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("sh").success());
        assert_eq!(agent.wait_for_exit().code(), Some(0));
    }
}

#[test]
fn once_prints_a_report() {
    let (status, out, err) =
        agent(&["--once", "--interval", "100ms", "--window", "100ms", "--disk-speed", "500MB/s"]);
    assert_eq!(status, Some(0), "{err}");
    assert_eq!(out.lines().count(), 1, "{out}");
    let report = parse_report(out.as_bytes()).expect("a report");
    assert!(report.used.cpu.is_some(), "{out}");
    assert_eq!(report.capacity.disk, Some(500_000_000), "{out}");
}

#[test]
fn what_is_wrong_with_the_command_line_is_said_with_what_to_do() {
    let directory = fresh_directory();
    let short = directory.join("short");
    std::fs::write(&short, "0123456789\n").expect("write");
    let short = short.to_str().expect("a path in UTF-8");
    let address = fresh_address();
    for (options, says) in [
        (&[][..], "--once"),
        (&["--listen", &address], "--token-file"),
        (&["--token-file", short, "--agent-check", &address], "--listen"),
        (&["--listen", "localhost:1", "--token-file", short], "localhost:1"),
        (&["--listen", &address, "--token-file", "no-such-file"], "no-such-file: No such file"),
        (&["--listen", &address, "--token-file", short], "openssl rand -hex 32"),
        (&["--once", "--interval", "1"], "give it a unit"),
        (&["--once", "--interval", "10ms"], "is below 100ms"),
        (&["--once", "--window", "500ms"], "is shorter than --interval"),
        (&["--once", "--window", "10m"], "more than 500 times --interval"),
        (&["--once", "--disk", "no-such-disk"], "there is no disk no-such-disk"),
        (&["--once", "--interface", "no0"], "there is no network interface no0\n  there is "),
        (&["--once", "--cgroup", "/no/such"], "there is no control group /no/such"),
        (&["--once", "--network-speed", "1Gbps"], "1Gbit/s"),
        (&["--once", "--load", "gpu=1"], "there is no resource gpu"),
        (&["--once", "--listen", &address, "--token-file", short], "cannot be used with"),
    ] {
        let (status, out, err) = agent(options);
        assert_eq!((status, out.as_str()), (Some(2), ""), "{options:?}: {err}");
        assert!(err.contains(says), "{options:?}: {err}");
    }
    std::fs::remove_dir_all(directory).expect("remove");
}

#[test]
fn a_port_that_is_taken_is_named_with_how_to_find_who_has_it() {
    let held = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = held.local_addr().expect("its address").to_string();
    let (status, _, err) = agent(&["--agent-check", &address]);
    assert_eq!(status, Some(1), "{err}");
    assert!(err.contains(&format!("cannot listen on {address}")), "{err}");
    assert!(err.contains("ss -ltnp"), "{err}");
}
