//! `subak lab load --like`: what an access log says arrives again, and nothing else does.

use std::fs;
use std::io::Write;

use crate::load::loaded;
use crate::support::{Endpoint, Setup, fresh_directory};
use crate::{failing, lab};

/// Method, path and protocol of what was asked, in whose name, without what is no GET; sorted.
fn asked(endpoint: &Endpoint) -> Vec<String> {
    let requests = endpoint.requests();
    let gets = requests.iter().filter(|request| request.line.starts_with("GET "));
    let said = gets.map(|request| {
        format!("{} {}", request.line, request.field("x-forwarded-for").unwrap_or("nobody"))
    });
    let mut said: Vec<String> = said.collect();
    said.sort_unstable();
    said
}

#[test]
fn what_subak_wrote_down_is_asked_again() {
    let (endpoint, other) = (Endpoint::named("a"), Endpoint::named("b"));
    let directory = fresh_directory();
    let log = directory.join("subak.json");
    let top = format!("access_log = {{ path = {log:?}, format = \"json\" }}");
    let mut subak = Setup::before(&[&endpoint]).top(&top).start();
    let url = format!("http://{}/", subak.address());
    let requests = ["--request", "2 GET /a?x=1", "--request", "2 GET /b", "--request", "1 POST /c"];
    loaded(&[&[&*url, "-n", "60", "-c", "3"], &requests[..]].concat());
    // What it holds is written at its end.
    subak.signal("TERM");
    subak.wait_for_exit();

    let gets = asked(&endpoint);
    assert!(gets.len() < 60, "some are posted");
    let url = format!("http://{}/", other.address());
    let output = lab(&["load", &url, "--like", log.to_str().expect("a path"), "--json"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{output:?}");
    let note = format!("note: {} lines are not asked again", 60 - gets.len());
    assert!(said.contains(&note) && said.contains("other methods than GET"), "{said}");
    assert_eq!(asked(&other), gets);
    assert_eq!(other.requests().len(), gets.len());
    let _ = fs::remove_dir_all(directory);
}

/// Requests of these milliseconds, each of its own path, in nginx's words.
fn log_of(path: &str, ms: &[u32]) {
    let mut log = fs::File::create(path).expect("a log");
    for (number, ms) in ms.iter().enumerate() {
        let at = f64::from(*ms) / 1e3 + 1_795_219_200.0;
        let line = format!("10.0.0.{number} {at:.3} \"GET /{number} HTTP/1.1\"");
        writeln!(log, "{line}").expect("to write");
    }
}

const NGINX: &str = "$remote_addr $msec \"$request\"";

#[test]
fn a_log_is_asked_at_its_times_or_faster_and_as_long_as_wanted() {
    let directory = fresh_directory();
    let path = directory.join("nginx.log").display().to_string();
    log_of(&path, &[0, 200, 400, 800]);
    let load = |more: &[&str]| {
        let endpoint = Endpoint::named("a");
        let url = format!("http://{}/", endpoint.address());
        let like = ["--like", &*path, "--format", NGINX, "--interval", "100ms"];
        let result = loaded(&[&[&*url], &like[..], more].concat());
        let mut lines: Vec<_> = endpoint.requests().iter().map(|one| one.line.clone()).collect();
        lines.sort_unstable();
        (result, lines)
    };
    let line = |number| format!("GET /{number} HTTP/1.1");
    let (result, lines) = load(&["--faster", "2"]);
    assert_eq!(lines, [0, 1, 2, 3].map(line));
    let seconds = result["seconds"].as_f64().expect("a time");
    assert!(seconds >= 0.4, "the last is due after 400 ms: {seconds} s");
    let (result, lines) = load(&["--for", "300ms"]);
    assert_eq!((lines, &result["answered"]), ([0, 1].map(line).to_vec(), &2.into()));
    let (result, lines) = load(&["--warm-up", "300ms"]);
    assert_eq!((lines.len(), &result["answered"]), (4, &2.into()), "{result}");
    let _ = fs::remove_dir_all(directory);
}

#[test]
fn a_log_that_cannot_be_asked_again_and_options_that_do_not_go_with_one_are_said() {
    let directory = fresh_directory();
    let name = |name: &str| directory.join(name).display().to_string();
    let (good, empty, odd) = (name("good"), name("empty"), name("odd"));
    log_of(&good, &[0, 100]);
    fs::write(&empty, "").expect("a log");
    fs::write(&odd, "10.0.0.1 \"GET / HTTP/1.1\"\n").expect("a log");
    let url = "http://127.0.0.1:1/";
    for (arguments, part) in [
        (&["--like", &*empty][..], "the log is empty"),
        (&["--like", &odd, "--format", "$remote_addr \"$request\""], "tells when the request was"),
        (&["--like", &odd], "in none of the known formats"),
        (&["--like", "/nowhere"], "/nowhere"),
        (&["--like", &good, "--format", NGINX, "--warm-up", "1s"], "longer than the log"),
        (&["--like", &good, "--rate", "1/s"], "cannot be used with"),
        (&["--like", &good, "--users", "1"], "cannot be used with"),
        (&["--like", &good, "-n", "1"], "cannot be used with"),
        (&["--like", &good, "-X", "POST"], "cannot be used with"),
        (&["--like", &good, "--faster", "0"], "how many times as fast"),
        (&["--faster", "2"], "--like"),
        (&["--format", "json"], "--like"),
    ] {
        let (status, said) = failing(&[&["load", url], arguments].concat());
        assert_eq!(status, 2, "{arguments:?}: {said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
    let (status, said) = failing(&["load", "http://127.0.0.1:1/x", "--like", &good]);
    assert!(status == 2 && said.contains("the log's paths"), "{said}");
    let _ = fs::remove_dir_all(directory);
}
