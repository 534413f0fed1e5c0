//! `subak ctl` before a Subak that runs: what it shows and sets, and how it ends.

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;

use crate::support::{Admin, Endpoint, Setup, Subak};
use serde_json::Value;

fn command(admin: &Admin, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_subak"));
    command.args(["ctl", "--socket"]).arg(admin.socket()).args(arguments);
    command.stdin(Stdio::null());
    command
}

fn run(admin: &Admin, arguments: &[&str]) -> Output {
    command(admin, arguments).output().expect("subak")
}

/// What it prints; it must end well.
#[track_caller]
fn ctl(admin: &Admin, arguments: &[&str]) -> String {
    let output = run(admin, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// What it says on standard error, ending by this status.
#[track_caller]
fn refused(admin: &Admin, arguments: &[&str], status: i32) -> String {
    let output = run(admin, arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
    assert_eq!(output.stdout, b"", "{arguments:?}");
    said
}

fn two() -> (Vec<Endpoint>, Subak, Admin) {
    let endpoints = [Endpoint::named("one"), Endpoint::named("two")];
    let subak = Setup::before(&endpoints.each_ref()).start();
    let admin = Admin::of(&subak);
    (endpoints.into(), subak, admin)
}

#[test]
fn it_shows_how_many_requests_each_route_took() {
    let one = Endpoint::named("one");
    let subak = Setup::before(&[&one])
        .tail("[[listener.web.route]]\npath = \"/a\"\nrespond = { status = 200 }\n")
        .start();
    let admin = Admin::of(&subak);
    for path in ["/a", "/a", "/b"] {
        assert_eq!(subak.get(path).0, 200);
    }
    let table = ctl(&admin, &["routes"]);
    let row = |n: usize| table.lines().nth(n).map(|line| line.split_whitespace().collect());
    let words = |row: Option<Vec<&str>>| row.expect("a row").join(" ");
    assert_eq!(words(row(1)), "web 1 2 path begins with /a answer 200", "{table}");
    assert_eq!(words(row(2)), "web – 1 everything else pool app", "{table}");
}

#[test]
fn it_shows_what_is_going_on_in_aligned_tables_and_as_json() {
    let (endpoints, subak, admin) = two();
    (0..10).for_each(|_| assert_eq!(subak.get("/").0, 200));
    let status = ctl(&admin, &["status"]);
    assert!(status.contains(subak.address()) && status.contains("round_robin"), "{status}");
    assert!(!status.contains('\x1b'), "no colours in a pipe: {status:?}");
    let listed = ctl(&admin, &["endpoints"]);
    let row = listed.lines().find(|line| line.starts_with(&endpoints[0].address())).expect(&listed);
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words[1..5], ["1", "5", "50.0%", "50.0%"], "{row}");
    let json: Value = serde_json::from_str(&ctl(&admin, &["--json", "status"])).expect("JSON");
    assert_eq!(json["pools"][0]["endpoints"][1]["hits"], 5);
    let durations = &json["pools"][0]["durations"];
    assert_eq!(durations["count"], 10, "{durations}");
    assert!(durations["p99_ms"].as_f64() >= durations["p50_ms"].as_f64(), "{durations}");
    let one = ctl(&admin, &["endpoint", &endpoints[1].address()]);
    assert!(one.contains("hits         5, 0 failed"), "{one}");
    assert!(ctl(&admin, &["metrics"]).contains("subak_"));
    let painted = ctl(&admin, &["--color", "always", "status"]);
    assert!(painted.contains("\x1b["), "{painted:?}");
}

#[test]
fn what_is_set_is_set_and_taken_back_by_name_or_by_its_beginning() {
    let (endpoints, _subak, admin) = two();
    let name = endpoints[0].address();
    let told = |key: &str| admin.endpoint(&name)["weight"][key].clone();
    let said = ctl(&admin, &["set", "app", &name, "--weight", "5"]);
    assert!(said.contains("weight 5"), "{said}");
    assert_eq!(told("operator"), 5);
    // The port alone is missing, and no other name begins like this.
    let beginning = &name[..name.len() - 1];
    let is_unique = !endpoints[1].address().starts_with(beginning);
    if is_unique {
        ctl(&admin, &["maintenance", beginning]);
        assert_eq!(admin.endpoint(&name)["state"], "maintenance");
    }
    ctl(&admin, &["ready", &name]);
    assert_eq!(admin.endpoint(&name)["wanted"]["state"], "ready");
    ctl(&admin, &["reset", &name, "--weight"]);
    assert_eq!(
        (told("operator"), &admin.endpoint(&name)["wanted"]["by"]),
        (Value::Null, &"api".into())
    );
    ctl(&admin, &["reset", &name]);
    assert_eq!(admin.endpoint(&name)["wanted"]["by"], "file");
}

#[test]
fn a_drain_that_waits_tells_what_is_left_and_ends_when_nobody_is() {
    let (release, held) = mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let slow = Endpoint::scripted(move |served| {
        while served.request().is_some() {
            let _ = held.lock().expect("held").recv();
            served.send(crate::support::ok("slow"));
        }
    });
    let subak = Setup::before(&[&slow]).start();
    let admin = Admin::of(&subak);
    let mut client = subak.client();
    client.send("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n");
    slow.wait_for_requests(1);
    let late =
        refused(&admin, &["drain", &slow.address(), "--yes", "--wait", "--timeout", "300ms"], 1);
    assert!(late.contains("1 request"), "{late}");
    let mut waiting = command(&admin, &["drain", &slow.address(), "--wait"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("subak");
    let mut lines = BufReader::new(waiting.stderr.take().expect("stderr")).lines();
    let progress = lines.next().expect("a line").expect("text");
    assert!(progress.starts_with("1 request"), "{progress}");
    assert!(waiting.try_wait().expect("wait").is_none(), "it waits");
    release.send(()).expect("the endpoint");
    assert_eq!(client.answer().text(), "slow");
    let output = waiting.wait_with_output().expect("wait");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("is empty"), "{said}");
}

#[test]
fn what_cannot_be_done_says_why_and_ends_by_the_documented_status() {
    // A socket of its own, which nobody takes over when it is gone.
    let socket = crate::support::fresh_directory().join("admin.sock");
    let endpoints = [Endpoint::named("one"), Endpoint::named("two")];
    let setup = Setup::before(&endpoints.each_ref());
    let subak = setup.top(&format!("admin = {{ socket = {socket:?} }}")).start();
    let admin = Admin::of(&subak);
    let said = refused(&admin, &["ready", "app", "10.9.9.9:1"], 2);
    assert!(said.contains("10.9.9.9:1") && said.contains(&endpoints[0].address()), "{said}");
    let said = refused(&admin, &["ready", "ap", &endpoints[0].address()], 2);
    assert!(said.contains("did you mean \"app\"?"), "{said}");
    refused(&admin, &["set", "app", &endpoints[0].address()], 2);
    let said = refused(&admin, &["get", "/v1/nothing"], 2);
    assert!(said.contains("/v1/nothing"), "{said}");
    let said = refused(&admin, &["--json", "get", "/v1/nothing"], 2);
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert!(said["hint"].is_string(), "{said}");
    drop(subak);
    let said = refused(&admin, &["status"], 1);
    assert!(said.contains("does Subak run?"), "{said}");
}

#[test]
fn by_tcp_it_needs_the_token() {
    let directory = crate::support::fresh_directory();
    let token = directory.join("token");
    std::fs::write(&token, "a-token-of-thirty-two-characters\n").expect("write");
    let endpoint = Endpoint::named("one");
    let address = crate::support::fresh_address();
    let door = format!("admin = {{ tcp = {address:?}, token_file = {token:?} }}");
    let _subak = Setup::before(&[&endpoint]).top(&door).start();
    let ask = |token_file: Option<&std::path::Path>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_subak"));
        command.args(["ctl", "status", "--url", &format!("http://{address}")]);
        if let Some(file) = token_file {
            command.arg("--token-file").arg(file);
        }
        let output = command.output().expect("subak");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    assert_eq!(ask(Some(&token)), (Some(0), String::new()));
    let (status, said) = ask(None);
    assert!(status == Some(2) && said.contains("--token-file"), "{status:?} {said}");
    let other = directory.join("other");
    std::fs::write(&other, "another-token-of-many-characters\n").expect("write");
    let (status, said) = ask(Some(&other));
    assert!(status == Some(2) && said.contains("token"), "{status:?} {said}");
    std::fs::remove_dir_all(&directory).expect("removed");
}
#[test]
fn endpoints_come_and_go_and_the_file_gets_what_was_set() {
    let (endpoints, subak, admin) = two();
    let three = Endpoint::named("three");
    let said = ctl(&admin, &["add", "app", &format!("{} weight=2", three.address())]);
    assert!(said.contains(&three.address()) && said.contains("weight 2"), "{said}");
    let said = refused(&admin, &["add", &three.address()], 2);
    assert!(said.contains("already"), "{said}");
    let said = refused(&admin, &["add", "10.0.0.5:80 wieght=2"], 2);
    assert!(said.contains("wieght"), "{said}");
    ctl(&admin, &["remove", &endpoints[1].address()]);
    ctl(&admin, &["set", &endpoints[0].address(), "--weight", "7"]);
    let answers: Vec<String> = (0..9).map(|_| subak.get("/").1).collect();
    assert!(!answers.contains(&"two".to_owned()), "{answers:?}");

    let changes = ctl(&admin, &["config", "changes"]);
    for word in ["added", "removed", "weight", "3 changes"] {
        assert!(changes.contains(word), "{word}: {changes}");
    }
    let diff = ctl(&admin, &["config", "diff"]);
    assert!(diff.lines().any(|line| line.starts_with('+') && line.contains("weight=7")), "{diff}");
    assert!(ctl(&admin, &["config", "show"]).contains("weight=7"));
    let saved = ctl(&admin, &["config", "save"]);
    assert!(saved.contains("written: ") && saved.contains("subak.toml"), "{saved}");
    assert!(ctl(&admin, &["config", "changes"]).contains("nothing is set by the API"));
    assert!(ctl(&admin, &["config", "diff"]).contains("nothing differs"));
}

#[test]
fn a_configuration_is_read_again_refused_and_rolled_back() {
    let (endpoints, subak, admin) = two();
    assert!(ctl(&admin, &["reload"]).contains("nothing has changed"));
    subak.write_config("[listener.web]\nbind = 7\n");
    let said = refused(&admin, &["reload"], 2);
    assert!(said.contains("subak.toml") && said.contains(":2"), "{said}");
    ctl(&admin, &["set", &endpoints[0].address(), "--weight", "7"]);
    let history = ctl(&admin, &["config", "history"]);
    let current: Vec<&str> = history.lines().filter(|line| line.starts_with('*')).collect();
    assert_eq!(current.len(), 1, "{history}");
    let one = ctl(&admin, &["add", "127.0.0.1:9 weight=0"]);
    assert!(one.contains("127.0.0.1:9"), "{one}");
    let said = ctl(&admin, &["config", "rollback"]);
    assert!(said.contains("is in force"), "{said}");
    assert!(!ctl(&admin, &["endpoints", "app"]).contains("127.0.0.1:9 "), "{said}");
    let events = ctl(&admin, &["events", "-n", "50"]);
    assert!(events.lines().count() > 1, "{events}");
    let json = ctl(&admin, &["--json", "events", "-n", "1"]);
    assert!(serde_json::from_str::<Value>(&json).expect("JSON")["number"].is_number(), "{json}");
    ctl(&admin, &["config", "reset"]);
    assert!(ctl(&admin, &["config", "changes"]).contains("nothing is set by the API"));
}

#[test]
fn the_last_endpoint_that_works_is_not_taken_out_unasked() {
    let (endpoints, subak, admin) = two();
    let [one, two] = [endpoints[0].address(), endpoints[1].address()];
    ctl(&admin, &["drain", &one]);
    for way in [
        &["drain", &two][..],
        &["maintenance", &two],
        &["remove", &two],
        &["set", &two, "--weight", "0"],
    ] {
        let said = refused(&admin, way, 2);
        assert!(said.contains("is the last endpoint of pool app that takes requests"), "{said}");
        assert!(said.contains("--yes"), "{said}");
        assert_eq!(admin.endpoint(&two)["state"], "ready", "{way:?} has changed nothing");
        assert_eq!(subak.get("/").0, 200);
    }
    // What takes nothing can go, and with consent everything can.
    ctl(&admin, &["maintenance", &one]);
    ctl(&admin, &["drain", &two, "--yes"]);
    assert_eq!(admin.endpoint(&two)["state"], "drain");
}

#[test]
fn an_edit_that_the_api_masks_is_told_at_the_reload() {
    let (endpoints, subak, admin) = two();
    let name = endpoints[0].address();
    ctl(&admin, &["set", &name, "--weight", "5"]);
    let text = std::fs::read_to_string(subak.directory().join("subak.toml")).expect("the file");
    subak.write_config(&text.replace(&format!("{name}\""), &format!("{name} weight=3\"")));
    let said = ctl(&admin, &["reload"]);
    let told =
        format!("weight of {name} (pool app) is 3 in the file; 5, set by the API, stays in force");
    assert!(said.contains(&told), "{said}");
    assert!(said.contains(&format!("subak ctl reset app {name} --weight")), "{said}");
    let events = ctl(&admin, &["events"]);
    assert!(events.contains(&told), "{events}");
    assert!(!ctl(&admin, &["reload"]).contains("without effect"), "an edit is told once");
}
