//! `subak demo`, with and without a terminal: what a person sees, and that no request fails while
//! endpoints come and go.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A process that does not outlive its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended in order, as it should.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn demo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_subak"));
    command.arg("demo").args(arguments).stdin(Stdio::null());
    command
}

fn text(output: &Output) -> (String, String) {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    (out.into_owned(), err.into_owned())
}

/// The counts of the last line: `75 requests in 3.0 s: a 40, b 20, c 15; none failed.`
fn counts(out: &str) -> (u64, [u64; 3]) {
    let last = out.lines().last().expect("a last line");
    let (sent, rest) = last.split_once(" requests in ").expect(last);
    let (_, rest) = rest.split_once(": ").expect(last);
    let (hits, _) = rest.split_once(';').expect(last);
    let hits = hits.split(", ").zip(["a ", "b ", "c "]).map(|(hit, name)| {
        hit.strip_prefix(name).and_then(|count| count.parse().ok()).expect(last)
    });
    let hits: Vec<u64> = hits.collect();
    (
        sent.trim_start_matches(['\r', '\x1b', '[', 'K']).parse().expect(last),
        [hits[0], hits[1], hits[2]],
    )
}

#[test]
fn without_a_terminal_it_prints_lines_and_no_request_fails_while_an_endpoint_is_away() {
    let options = ["--seconds", "4", "--port", "0", "--requests-per-second", "60"];
    let output = demo(&options).output().expect("subak");
    let (out, err) = text(&output);
    assert_eq!((output.status.code(), err.as_str()), (Some(0), ""), "{out}");
    assert!(out.ends_with("; none failed.\n"), "{out}");
    assert!(!out.contains('\x1b'), "{out}");
    assert!(out.contains("    balance = \"round_robin\"\n"), "{out}");
    let stopped = out.find("c is stopped").expect(&out);
    assert!(out.find("c is back").expect(&out) > stopped, "{out}");
    let (sent, [a, b, c]) = counts(&out);
    assert_eq!(a + b + c, sent, "{out}");
    assert!(sent >= 120, "{out}");
    // Weights 2:1:1, and c was away for a while.
    assert!(a.abs_diff(2 * b) <= 4 && c < b && c > 0, "{out}");
    assert!(out.lines().all(|line| line.chars().count() < 80), "{out}");
}

#[test]
fn by_tls_it_makes_its_own_certificate_and_says_how_to_call_it() {
    let port = TcpListener::bind("127.0.0.1:0").expect("a listener").local_addr();
    let port = port.expect("its address").port().to_string();
    let options = ["--tls", "--seconds", "60", "--port", &port];
    let mut running = Running(demo(&options).stdout(Stdio::piped()).spawn().expect("subak"));
    let mut out = BufReader::new(running.0.stdout.take().expect("stdout"));
    let (mut said, mut line) = (String::new(), String::new());
    while !line.trim_start().starts_with("curl --cacert ") {
        line.clear();
        assert_ne!(out.read_line(&mut line).expect("a line"), 0, "{said}");
        said.push_str(&line);
    }
    let words: Vec<_> = line.split_whitespace().collect();
    let (chain, url) = (words[2], words[3]);
    let curl = |more: &[&str]| {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "-o", "/dev/null", "-w", "%{http_code} %{scheme}"]).args(more).arg(url);
        let output = curl.output().expect("curl");
        (output.status.success(), text(&output).0)
    };
    assert_eq!(curl(&["--cacert", chain]), (true, "200 HTTPS".into()), "{said}");
    assert!(!curl(&[]).0, "nobody else trusts it");
    let directory = Path::new(chain).parent().expect("a directory").to_owned();
    assert!(directory.is_dir());
    let stopped = Command::new("kill").arg(running.0.id().to_string()).status().expect("kill");
    assert!(stopped.success());
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("the rest");
    assert!(rest.ends_with("; none failed.\n"), "{said}{rest}");
    assert!(running.0.wait().expect("its end").success());
    assert!(!directory.exists(), "key and certificate have gone with it");
}

#[test]
fn an_algorithm_that_is_not_known_is_an_error_that_names_one_that_is() {
    let output = demo(&["--port", "0", "--algorithm", "round_robbin"]).output().expect("subak");
    let (_, err) = text(&output);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("round_robin"), "{err}");
}

#[test]
fn a_port_that_is_taken_is_an_error_when_it_was_asked_for() {
    let holder = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let port = holder.local_addr().expect("its address").port().to_string();
    let output = demo(&["--port", &port]).output().expect("subak");
    let (_, err) = text(&output);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("cannot listen on 127.0.0.1") && err.contains("ss -ltnp"), "{err}");
}

/// Reads until `what` has come; gives back everything so far.
fn read_until(from: &mut impl Read, what: &str) -> String {
    let mut seen = Vec::new();
    let mut byte = [0];
    let deadline = Instant::now() + Duration::from_secs(15);
    while !String::from_utf8_lossy(&seen).ends_with(what) {
        assert!(
            Instant::now() < deadline,
            "{what:?} has not come: {}",
            String::from_utf8_lossy(&seen)
        );
        assert_eq!(from.read(&mut byte).expect("output"), 1, "{}", String::from_utf8_lossy(&seen));
        seen.push(byte[0]);
    }
    String::from_utf8_lossy(&seen).into_owned()
}

fn signal(child: &Child, name: &str) {
    let command = format!("kill -{name} {}", child.id());
    assert!(Command::new("sh").args(["-c", &command]).status().expect("sh").success());
}

#[test]
fn a_signal_ends_it_in_order() {
    for name in ["INT", "TERM"] {
        let started = demo(&["--seconds", "3600", "--port", "0"]).stdout(Stdio::piped()).spawn();
        let mut running = Running(started.expect("subak"));
        let child = &mut running.0;
        let mut out = child.stdout.take().expect("stdout");
        read_until(&mut out, "  2 s");
        signal(child, name);
        let mut rest = String::new();
        out.read_to_string(&mut rest).expect("output");
        assert_eq!(child.wait().expect("wait").code(), Some(0), "{rest}");
        assert!(rest.ends_with("; none failed.\n"), "{rest}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_without_a_word() {
    let mut child = demo(&["--seconds", "3600", "--port", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("subak");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("wait");
    assert_eq!((output.status.code(), text(&output).1), (Some(0), String::new()));
}

/// Runs it on a terminal that `script` makes. None, loudly, where there is no `script`.
fn on_a_terminal(options: &str, variables: &[(&str, &str)]) -> Option<Running> {
    let started = Command::new("script")
        .args([
            "-qec",
            // With a shell in between, Ctrl-C would end that one too, and with its own status.
            &format!("exec {} demo --port 0 {options}", env!("CARGO_BIN_EXE_subak")),
            "/dev/null",
        ])
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    if started.is_err() {
        eprintln!("SKIPPED: the demonstration on a terminal needs `script` (bsdutils)");
    }
    started.ok().map(Running)
}

#[test]
fn on_a_terminal_it_is_the_live_view_and_ctrl_c_leaves_the_terminal_as_it_was() {
    let Some(mut running) = on_a_terminal("", &[("LC_ALL", "C.UTF-8")]) else { return };
    let child = &mut running.0;
    let mut out = child.stdout.take().expect("stdout");
    let mut seen = read_until(&mut out, "█");
    child.stdin.as_mut().expect("stdin").write_all(b"\x03").expect("Ctrl-C");
    out.read_to_string(&mut seen).expect("output");
    assert_eq!(child.wait().expect("wait").code(), Some(0), "{seen}");
    assert!(seen.contains("; none failed."), "{seen}");
    assert!(seen.contains("\x1b[38;5;6"), "{seen}");
    // The cursor and the screen: the last word is that they are as they were.
    for (on, off) in [("\x1b[?25h", "\x1b[?25l"), ("\x1b[?1049l", "\x1b[?1049h")] {
        assert!(seen.rfind(on).expect(on) > seen.rfind(off).expect(off), "{seen:?}");
    }
}

#[test]
fn a_terminal_without_colours_or_with_ascii_alone_is_respected() {
    let variables = [("LC_ALL", "C"), ("NO_COLOR", "1")];
    let Some(mut running) = on_a_terminal("--seconds 2", &variables) else { return };
    let child = &mut running.0;
    let mut seen = String::new();
    child.stdout.take().expect("stdout").read_to_string(&mut seen).expect("output in UTF-8");
    assert_eq!(child.wait().expect("wait").code(), Some(0), "{seen}");
    assert!(seen.is_ascii() && seen.contains("####"), "{seen}");
    // Bold and reverse are no colours.
    assert!(!seen.contains("\x1b[38;5;"), "{seen:?}");
}
