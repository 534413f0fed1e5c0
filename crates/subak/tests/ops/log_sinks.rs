//! A log that takes nothing hurts nobody but itself: traffic goes on, every line is written or counted
//! as dropped, and the problem is shown until it has ended.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::support::{
    Admin, Endpoint, PATIENCE, Setup, Subak, fresh_address, fresh_directory, uninterrupted,
    wait_until,
};
use serde_json::Value;

const O_NONBLOCK: i32 = 0o4000;

fn setup(endpoint: &Endpoint, log: &str) -> Setup {
    Setup::before(&[endpoint]).top(&format!("access_log = {{ {log}, flush = \"200ms\" }}"))
}

#[track_caller]
fn get(subak: &Subak, paths: impl IntoIterator<Item = String>) -> u64 {
    let mut client = subak.client();
    let mut count = 0;
    for path in paths {
        assert_eq!(client.get(&path).status, 200);
        count += 1;
    }
    count
}

fn numbered(range: std::ops::Range<u64>) -> impl Iterator<Item = String> {
    range.map(|number| format!("/{number}"))
}

/// Lines written and dropped, as the status says.
fn lines(admin: &Admin) -> (u64, u64) {
    let log = &admin.status()["access_logs"][0];
    let count = |key: &str| log[key].as_u64().expect("a count");
    (count("lines_written"), count("lines_dropped"))
}

/// What is said of the log that takes nothing, if anything is.
fn problem(admin: &Admin) -> Option<String> {
    let status = admin.status();
    let problems = status["problems"].as_array().expect("a list").clone();
    let of_logs = problems.into_iter().find(|problem: &Value| problem["kind"] == "access_log");
    of_logs.map(|problem| problem["detail"].as_str().expect("a text").to_owned())
}

/// Waits for a problem, and looks that metrics and log show it too.
#[track_caller]
fn shown(subak: &Subak, admin: &Admin, words: &str) {
    wait_until("the problem is in the status", || {
        problem(admin).is_some_and(|detail| detail.contains(words))
    });
    let metrics = admin.ask("GET", "/metrics", "").text();
    assert!(metrics.contains("subak_problem{kind=\"access_log\","), "{metrics}");
    subak.wait_for_log(words);
}

#[track_caller]
fn ended(subak: &Subak, admin: &Admin) {
    wait_until("the problem has ended", || problem(admin).is_none());
    subak.wait_for_log("problem has ended");
}

/// The paths in a log of format `$uri`.
fn numbers(text: &str) -> Vec<u64> {
    text.lines().map(|line| line[1..].parse().unwrap_or_else(|_| panic!("{line}"))).collect()
}

#[test]
fn a_file_that_was_moved_away_is_opened_again_and_no_line_is_lost() {
    let endpoint = Endpoint::named("x");
    let path = fresh_directory().join("access.log");
    let mut subak = setup(&endpoint, &format!("path = {path:?}, format = '$uri'")).start();
    let moved = |number: u64| path.with_extension(number.to_string());
    for number in 0..3 {
        get(&subak, numbered(number * 100..number * 100 + 100));
        fs::rename(&path, moved(number)).expect("move the log away");
        subak.signal("USR1");
        wait_until("there is a new one", || path.exists());
    }
    get(&subak, numbered(300..400));
    subak.signal("TERM");
    assert!(subak.wait_for_exit().success());
    let all: String = [moved(0), moved(1), moved(2), path.clone()]
        .iter()
        .map(|path| fs::read_to_string(path).expect("a log"))
        .collect();
    assert_eq!(numbers(&all), (0..400).collect::<Vec<_>>());
}

#[test]
fn whoever_was_answered_before_a_stop_has_a_line() {
    let endpoint = Endpoint::named("x");
    let path = fresh_directory().join("access.log");
    let log = format!("path = {path:?}, format = '$uri'");
    let top = format!("access_log = {{ {log}, flush = \"1m\" }}");
    let mut subak = Setup::before(&[&endpoint]).workers(2).top(&top).start();
    for number in 0..20 {
        get(&subak, numbered(number * 10..number * 10 + 10));
    }
    assert!(fs::read_to_string(&path).is_ok_and(|text| text.is_empty()), "all are waiting");
    subak.signal("TERM");
    assert!(subak.wait_for_exit().success());
    let mut found = numbers(&fs::read_to_string(&path).expect("the log"));
    found.sort_unstable();
    assert_eq!(found, (0..200).collect::<Vec<_>>());
}

#[test]
fn a_full_disk_stops_the_log_and_nothing_else() {
    let may = Command::new("unshare").args(["--mount", "true"]).status();
    if !may.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: a_full_disk_… needs `unshare --mount` (root)");
        return;
    }
    let endpoint = Endpoint::named("x");
    let disk = fresh_directory();
    let setup = setup(&endpoint, &format!("path = {:?}, format = '$uri'", disk.join("log")));
    let mount = format!("mount -t tmpfs -o size=256k none {} && exec \"$@\"", disk.display());
    let wrapper = ["unshare", "--mount", "sh", "-c", &mount, "sh"];
    let text = setup.text();
    let address = text.split("bind = \"").nth(1).and_then(|rest| rest.split('"').next());
    let subak = Subak::spawn_with(&wrapper, &text, address.expect("an address")).ready(&text);
    let admin = Admin::of(&subak);
    // The disk as the process sees it.
    let inside = PathBuf::from(format!("/proc/{}/root{}", subak.pid(), disk.display()));
    wait_until("the log is open", || inside.join("log").exists());
    let mut ballast = File::create(inside.join("ballast")).expect("a file on that disk");
    while ballast.write_all(&[0; 4096]).is_ok() {}
    // More than what is left of the log's last page.
    let long = |number: u64| format!("/{number:04000}");
    let mut asked = get(&subak, (0..20).map(long));
    shown(&subak, &admin, "make room on the disk");
    asked += get(&subak, (20..40).map(long));
    drop(ballast);
    fs::remove_file(inside.join("ballast")).expect("make room");
    ended(&subak, &admin);
    wait_until("every line is accounted for", || lines(&admin) == (asked, 0));
    let text = fs::read_to_string(inside.join("log")).expect("the log");
    assert_eq!(numbers(&text), (0..asked).collect::<Vec<_>>(), "no line is torn or missing");
}

fn pipe(directory: &Path) -> PathBuf {
    let path = directory.join("pipe");
    let made = Command::new("mkfifo").arg(&path).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo");
    path
}

fn reader(path: &Path) -> File {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(O_NONBLOCK).open(path).expect("open the pipe")
}

#[test]
fn a_pipe_that_nobody_reads_is_named_and_written_when_somebody_does() {
    let endpoint = Endpoint::named("x");
    let path = pipe(&fresh_directory());
    let subak = setup(&endpoint, &format!("path = {path:?}, format = '$uri'")).start();
    let admin = Admin::of(&subak);
    let mut asked = get(&subak, numbered(0..10));
    shown(&subak, &admin, "start its reader");
    let mut text = String::new();
    let mut first = reader(&path);
    ended(&subak, &admin);
    asked += get(&subak, numbered(10..20));
    wait_until("all is in the pipe", || lines(&admin).0 == asked);
    // Without a writer's end the pipe would end here; it is open, so there is just no more.
    _ = first.read_to_string(&mut text);
    drop(first);
    asked += get(&subak, numbered(20..30));
    shown(&subak, &admin, "start its reader");
    let mut second = reader(&path);
    ended(&subak, &admin);
    wait_until("every line is accounted for", || lines(&admin) == (asked, 0));
    _ = second.read_to_string(&mut text);
    assert_eq!(numbers(&text), (0..30).collect::<Vec<_>>());
}

#[test]
fn a_reader_that_reads_nothing_costs_lines_that_are_counted_and_no_request() {
    let endpoint = Endpoint::named("x");
    let path = pipe(&fresh_directory());
    let mut sleeper = reader(&path);
    let subak = setup(&endpoint, &format!("path = {path:?}, format = '$uri'")).start();
    let admin = Admin::of(&subak);
    // 64 KiB in the pipe and 64 buffers: nearly 5 MiB.
    let long = |number: u64| format!("/{number:07000}");
    let asked = get(&subak, (0..900).map(long));
    wait_until("lines are dropped", || lines(&admin).1 > 0);
    wait_until("the status says why", || {
        problem(&admin).is_some_and(|detail| detail.contains("its reader takes nothing"))
    });
    subak.wait_for_log("problem: ");
    assert_eq!(subak.get("/901").0, 200);
    let asked = asked + 1;
    let mut read = Vec::new();
    let mut chunk = vec![0; 1 << 16];
    wait_until("every line is accounted for", || {
        while let Ok(count @ 1..) = sleeper.read(&mut chunk) {
            read.extend_from_slice(&chunk[..count]);
        }
        let (written, dropped) = lines(&admin);
        written + dropped == asked
    });
    while let Ok(count @ 1..) = sleeper.read(&mut chunk) {
        read.extend_from_slice(&chunk[..count]);
    }
    let found = numbers(&String::from_utf8(read).expect("text"));
    assert_eq!(found.len() as u64, lines(&admin).0, "as many as were said to be written");
    assert!(found.is_sorted(), "in order");
    wait_until("the problem has ended", || problem(&admin).is_none());
}

/// The fields of a line of RFC 5424, and its message.
fn parsed(datagram: &[u8]) -> (Vec<String>, String) {
    let text = std::str::from_utf8(datagram).expect("text");
    let mut parts = text.splitn(8, ' ').map(String::from).collect::<Vec<_>>();
    let message = parts.pop().expect("a message");
    (parts, message)
}

#[test]
fn a_syslog_server_that_goes_and_comes_back_gets_every_line() {
    let endpoint = Endpoint::named("x");
    let path = fresh_directory().join("log");
    let server = UnixDatagram::bind(&path).expect("bind");
    server.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    let log =
        format!("syslog = \"unix:{}\", format = '$uri', facility = \"daemon\"", path.display());
    let subak = setup(&endpoint, &log).start();
    let admin = Admin::of(&subak);
    get(&subak, numbered(0..1));
    let mut room = [0; 2048];
    let mut next = |server: &UnixDatagram| {
        let length = uninterrupted(|| server.recv(&mut room)).expect("a line");
        parsed(&room[..length])
    };
    let (header, message) = next(&server);
    // Facility 3, severity 6.
    assert_eq!(
        (&*header[0], &*header[3], &*header[5], &*header[6]),
        ("<30>1", "subak", "access", "-")
    );
    assert_eq!((&*header[4], &*message), (&*subak.pid().to_string(), "/0"));
    assert!(header[1].ends_with('Z') && header[1].len() == 24, "{header:?}");
    drop(server);
    fs::remove_file(&path).expect("the socket");
    let asked = 1 + get(&subak, numbered(1..20));
    shown(&subak, &admin, "start the syslog server");
    let server = UnixDatagram::bind(&path).expect("bind again");
    server.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    for number in 1..20 {
        assert_eq!(next(&server).1, format!("/{number}"));
    }
    ended(&subak, &admin);
    wait_until("every line is accounted for", || lines(&admin) == (asked, 0));
}

#[test]
fn a_udp_port_that_nobody_listens_at_is_noticed() {
    let endpoint = Endpoint::named("x");
    let address = fresh_address();
    let subak = setup(&endpoint, &format!("syslog = \"udp:{address}\", format = '$uri'")).start();
    let admin = Admin::of(&subak);
    let asked = get(&subak, numbered(0..50));
    shown(&subak, &admin, "is a syslog server listening there?");
    let server = UdpSocket::bind(&address).expect("bind");
    server.set_read_timeout(Some(Duration::from_millis(200))).expect("a time limit");
    let mut room = [0; 2048];
    let mut found = Vec::new();
    wait_until("the lines arrive", || {
        if let Ok(length) = server.recv(&mut room) {
            found.push(parsed(&room[..length]).1);
        }
        found.last().is_some_and(|last| last == "/49")
    });
    ended(&subak, &admin);
    wait_until("every line is accounted for", || lines(&admin) == (asked, 0));
}

#[test]
fn a_log_that_cannot_be_opened_keeps_nobody_from_serving() {
    let endpoint = Endpoint::named("x");
    let directory = fresh_directory().join("logs");
    let path = directory.join("access.log");
    let subak = setup(&endpoint, &format!("path = {path:?}, format = '$uri'")).start();
    let admin = Admin::of(&subak);
    let asked = get(&subak, numbered(0..5));
    shown(&subak, &admin, "make its directory");
    fs::create_dir(&directory).expect("make it");
    ended(&subak, &admin);
    wait_until("every line is accounted for", || lines(&admin) == (asked, 0));
    assert_eq!(numbers(&fs::read_to_string(&path).expect("the log")), [0, 1, 2, 3, 4]);
}

#[test]
fn a_reload_closes_what_is_not_named_any_more_and_opens_what_is_new() {
    let endpoint = Endpoint::named("x");
    let (first, second) = (fresh_directory().join("first"), fresh_directory().join("second"));
    let before = setup(&endpoint, &format!("path = {first:?}, format = '$uri'"));
    let subak = before.start();
    get(&subak, numbered(0..10));
    let after =
        before.text().replace(first.to_str().expect("text"), second.to_str().expect("text"));
    subak.write_config(&after);
    subak.signal("HUP");
    subak.wait_for_log("configuration reloaded");
    get(&subak, numbered(10..20));
    let read = |path: &Path| numbers(&fs::read_to_string(path).unwrap_or_default());
    wait_until("both have their lines", || read(&first).len() + read(&second).len() == 20);
    // A connection may be served by the old one for a moment after the reload; a new one is not.
    assert_eq!((read(&first).len(), read(&second).len()), (10, 10));
    let open = |path: &Path| {
        let descriptors = fs::read_dir(format!("/proc/{}/fd", subak.pid())).expect("descriptors");
        descriptors
            .filter_map(Result::ok)
            .any(|fd| fs::read_link(fd.path()).is_ok_and(|to| to == *path))
    };
    wait_until("the first is closed", || !open(&first));
    assert!(open(&second));
    assert_eq!(Admin::of(&subak).status()["access_logs"].as_array().map(Vec::len), Some(1));
}
