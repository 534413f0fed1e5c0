//! From start to stop: errors that say what to do, scarce descriptors, endpoints that are gone, and an
//! end that cuts nobody off without need.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::http2::{h2_get, prior_knowledge};
use crate::support::{
    Client, Endpoint, Setup, Subak, fresh_address, fresh_directory, ok, wait_until,
};

/// An endpoint that answers "late" when it is released.
fn late() -> (Endpoint, Arc<AtomicBool>) {
    let released = Arc::new(AtomicBool::new(false));
    let waits = released.clone();
    let endpoint = Endpoint::scripted(move |served| {
        while let Some(request) = served.request() {
            if request.line.starts_with("GET /late ") {
                // Whoever waits for it may have been cut off long before.
                while !waits.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            served.send(ok("late"));
        }
    });
    (endpoint, released)
}

const LATE: &str = "GET /late HTTP/1.1\r\nHost: example.com\r\n\r\n";

// Stopping ---------------------------------------------------------------------

#[track_caller]
fn stops_gracefully_by(signal: &str) {
    let (endpoint, released) = late();
    let mut subak = Setup::before(&[&endpoint]).workers(2).start();
    let mut idle = subak.client();
    assert_eq!(idle.get("/").status, 200);
    let mut busy = subak.client();
    busy.send(LATE);
    endpoint.wait_for_requests(2);
    subak.signal(signal);
    idle.assert_ends();
    wait_until("nobody new is let in", || TcpStream::connect(subak.address()).is_err());
    released.store(true, Ordering::SeqCst);
    let answer = busy.answer();
    assert_eq!((answer.status, answer.text().as_str()), (200, "late"));
    busy.assert_ends();
    assert_eq!(subak.wait_for_exit().code(), Some(0));
    wait_until("endpoints are let go", || endpoint.open() == 0);
    assert!(subak.log().contains("stopped"), "{}", subak.log());
}

#[test]
fn sigterm_closes_what_is_idle_and_lets_requests_under_way_finish() {
    stops_gracefully_by("TERM");
}

#[test]
fn sigint_and_sigquit_do_the_same() {
    stops_gracefully_by("INT");
    stops_gracefully_by("QUIT");
}

#[test]
fn what_is_not_done_by_the_shutdown_timeout_is_cut_off() {
    let (endpoint, released) = late();
    let mut subak = Setup::before(&[&endpoint]).top("shutdown_timeout = \"500ms\"").start();
    let mut busy = subak.client();
    busy.send(LATE);
    endpoint.wait_for_requests(1);
    let began = Instant::now();
    subak.signal("TERM");
    assert_eq!(subak.wait_for_exit().code(), Some(0));
    assert!(began.elapsed() >= Duration::from_millis(500), "{:?}", began.elapsed());
    assert!(subak.log().contains("the time to stop is over"), "{}", subak.log());
    busy.assert_ends();
    released.store(true, Ordering::SeqCst);
}

#[test]
fn a_second_signal_ends_at_once() {
    let (endpoint, released) = late();
    let mut subak = Setup::before(&[&endpoint]).top("shutdown_timeout = \"1h\"").start();
    let mut busy = subak.client();
    busy.send(LATE);
    endpoint.wait_for_requests(1);
    subak.signal("TERM");
    subak.wait_for_log("stopping");
    subak.signal("TERM");
    assert_eq!(subak.wait_for_exit().code(), Some(0));
    assert!(subak.log().contains("ended by a second signal"), "{}", subak.log());
    busy.assert_ends();
    released.store(true, Ordering::SeqCst);
}

#[test]
fn a_client_that_has_connected_and_not_yet_asked_is_served_while_stopping() {
    let endpoint = Endpoint::named("x");
    let mut subak = Setup::before(&[&endpoint]).start();
    let mut newcomer = subak.client();
    subak.signal("TERM");
    subak.wait_for_log("stopping");
    assert_eq!(newcomer.get("/").status, 200);
    newcomer.assert_ends();
    assert_eq!(subak.wait_for_exit().code(), Some(0));
}

#[test]
fn http2_streams_under_way_finish_while_stopping_and_idle_connections_are_closed() {
    let (endpoint, released) = late();
    let mut subak = Setup::before(&[&endpoint]).workers(2).start();
    prior_knowledge(&subak, async |send| {
        let slow = tokio::task::spawn_local(h2_get(send.clone(), "http://example.com/late"));
        // It stays open without a request, and must not hold up the end.
        assert_eq!(h2_get(send.clone(), "http://example.com/").await.0.status(), 200);
        endpoint.wait_for_requests(2);
        subak.signal("TERM");
        subak.wait_for_log("stopping");
        released.store(true, Ordering::SeqCst);
        let (answer, body) = slow.await.expect("task");
        assert_eq!((answer.status().as_u16(), body.as_str()), (200, "late"));
    });
    assert_eq!(subak.wait_for_exit().code(), Some(0));
    assert!(!subak.log().contains("cut off"), "{}", subak.log());
}

#[test]
fn a_listener_that_is_full_closes_when_it_must() {
    let endpoint = Endpoint::named("x");
    let address = fresh_address();
    let top = Setup::before(&[&endpoint]).top("max_connections = 2").bind(&address).text();
    let gone = fresh_address();
    let both = top.replace(&format!("{address:?}"), &format!("[{address:?}, {gone:?}]"));
    let mut subak = Subak::start_at(&both, &address);
    let mut inside = [subak.client(), subak.client()];
    inside.iter_mut().for_each(|client| assert_eq!(client.get("/").status, 200));
    let waiting: Vec<_> = (0..10).map(|_| TcpStream::connect(&gone).expect("connect")).collect();
    subak.wait_for_log("accepting pauses");
    subak.write_config(&top);
    subak.signal("HUP");
    wait_until("the removed address is closed", || TcpStream::connect(&gone).is_err());
    let more: Vec<_> = (0..10).map(|_| TcpStream::connect(&address).expect("connect")).collect();
    inside.iter_mut().for_each(|client| assert_eq!(client.get("/").status, 200));
    subak.signal("TERM");
    assert_eq!(subak.wait_for_exit().code(), Some(0));
    drop((waiting, more));
}

#[test]
fn socket_files_are_removed_at_the_end_and_those_of_a_successor_are_not() {
    let (endpoint, released) = late();
    let directory = fresh_directory();
    let path = directory.join("web.sock");
    let address = fresh_address();
    let text = Setup::before(&[&endpoint]).bind(&address).text();
    let text = text.replace(
        &format!("bind = {address:?}"),
        &format!("bind = [{address:?}, \"unix:{}\"]", path.display()),
    );
    let mut subak = Subak::start_at(&text, &address);
    let mut client = Client::connect_unix(&path);
    client.send(LATE);
    endpoint.wait_for_requests(1);
    subak.signal("TERM");
    wait_until("the socket file is removed", || !path.exists());
    let successor = UnixListener::bind(&path).expect("bind in its place");
    released.store(true, Ordering::SeqCst);
    assert_eq!(client.answer().status, 200);
    assert_eq!(subak.wait_for_exit().code(), Some(0));
    assert!(path.metadata().expect("it is there").file_type().is_socket());
    drop(successor);
    let _ = std::fs::remove_dir_all(directory);
}

// Starting ---------------------------------------------------------------------

/// Starts by this configuration, expects that it ends by itself, and gives back what it said.
#[track_caller]
fn not_started(wrapper: &[&str], config: &str, code: i32, expected: &[&str]) -> String {
    let mut subak = Subak::spawn_with(wrapper, config, "127.0.0.1:1");
    let status = subak.wait_for_exit();
    let last = expected.last().copied().unwrap_or("not started");
    subak.wait_for_log(last);
    let log = subak.log();
    assert_eq!(status.code(), Some(code), "{log}");
    assert!(log.contains("not started"), "{log}");
    expected.iter().for_each(|text| assert!(log.contains(text), "{text:?} is not in\n{log}"));
    log
}

fn serving_at(bind: &str) -> String {
    format!("workers = 1\n[listener.web]\nbind = {bind:?}\n[[listener.web.route]]\nrespond = 200\n")
}

#[test]
fn a_port_that_is_taken_is_named_with_the_command_that_finds_the_holder() {
    let holder = TcpListener::bind(fresh_address()).expect("a listener");
    let address = holder.local_addr().expect("its address").to_string();
    let named = format!("cannot listen on {address}: Address already in use");
    not_started(&[], &serving_at(&address), 1, &[&named, "ss -ltnp"]);
}

#[test]
fn a_port_that_another_subak_of_the_same_user_has_is_taken_too() {
    let address = fresh_address();
    let first = Subak::start_at(&serving_at(&address), &address);
    not_started(&[], &serving_at(&address), 1, &["cannot listen on", "ss -ltnp"]);
    assert_eq!(first.get("/").0, 200);
}

#[test]
fn a_port_that_needs_a_right_says_how_to_get_it() {
    let wrapper = ["unshare", "--net", "setpriv", "--bounding-set=-net_bind_service"];
    let may =
        Command::new(wrapper[0]).args(&wrapper[1..]).arg("true").stderr(Stdio::null()).status();
    if !may.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: dropping a right needs `unshare` and `setpriv` (root)");
        return;
    }
    let expected =
        ["cannot listen on 0.0.0.0:80: Permission denied", "cap_net_bind_service", "1023"];
    not_started(&wrapper, &serving_at("0.0.0.0:80"), 1, &expected);
}

#[test]
fn an_address_that_no_interface_has_is_named() {
    let expected = ["cannot listen on 192.0.2.1:8080", "`ip address` lists them"];
    not_started(&[], &serving_at("192.0.2.1:8080"), 1, &expected);
}

#[test]
fn a_socket_path_that_cannot_be_made_or_is_something_else_is_named() {
    let nowhere = "unix:/nonexistent/subak/web.sock";
    not_started(&[], &serving_at(nowhere), 1, &[nowhere, "must exist and be writable"]);
    let directory = fresh_directory();
    let file = directory.join("precious.txt");
    std::fs::write(&file, "precious").expect("write");
    let address = format!("unix:{}", file.display());
    not_started(&[], &serving_at(&address), 1, &[&address]);
    assert_eq!(std::fs::read_to_string(&file).expect("it is still there"), "precious");
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn a_socket_file_that_nobody_listens_on_any_more_is_replaced() {
    let directory = fresh_directory();
    let path = directory.join("web.sock");
    drop(UnixListener::bind(&path).expect("a socket file"));
    assert!(path.exists());
    let subak = Subak::start_at(&serving_at(&format!("unix:{}", path.display())), "127.0.0.1:1");
    assert_eq!(Client::connect_unix(&path).get("/").status, 200);
    drop(subak);
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn errors_of_the_configuration_are_shown_with_their_places() {
    let text =
        serving_at("127.0.0.1:1").replace("workers", "wrokers").replace("respond", "respnod");
    let expected = ["subak.toml:1:", "did you mean", "subak.toml:5:", "^^^"];
    not_started(&[], &text, 2, &expected);
}

#[test]
fn a_certificate_that_is_missing_or_does_not_fit_its_key_is_named() {
    let directory = fresh_directory();
    let make = |name: &str| {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("made");
        std::fs::write(directory.join(format!("{name}.pem")), made.cert.pem()).expect("write");
        let key = made.signing_key.serialize_pem();
        std::fs::write(directory.join(format!("{name}.key")), key).expect("write");
    };
    make("one");
    make("other");
    let tls = |chain: &str, key: &str| {
        let (chain, key) = (directory.join(chain), directory.join(key));
        let tls = format!("tls = {{ certificates = [{{ chain = {chain:?}, key = {key:?} }}] }}\n");
        serving_at("127.0.0.1:1").replace("[[listener", &(tls + "[[listener"))
    };
    not_started(&[], &tls("none.pem", "one.key"), 2, &["none.pem", "there is no file"]);
    not_started(&[], &tls("one.pem", "other.key"), 2, &["one.pem", "other.key"]);
    not_started(&[], &tls("one.key", "one.key"), 2, &["one.key", "been exchanged?"]);
    let chain = std::fs::read_to_string(directory.join("one.pem")).expect("read");
    std::fs::write(directory.join("cut.pem"), &chain[..chain.len() - 30]).expect("write");
    not_started(&[], &tls("cut.pem", "one.key"), 2, &["cut.pem", "is missing", "truncated"]);
    let two = std::fs::read_to_string(directory.join("other.pem")).expect("read") + &chain;
    std::fs::write(directory.join("two.pem"), two).expect("write");
    not_started(&[], &tls("two.pem", "one.key"), 2, &["two.pem", "at place 2"]);
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn a_configuration_that_cannot_be_read_is_named_and_a_full_log_stops_nothing() {
    let serve = |path: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_subak"))
            .args(["serve", "--config", path])
            .stdin(Stdio::null())
            .output()
            .expect("subak");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = serve("/nonexistent/subak.toml");
    assert_eq!(code, Some(1));
    assert!(said.contains("cannot read /nonexistent/subak.toml"), "{said}");
    assert!(said.contains("docs/configuration.md"), "{said}");
    let (code, said) = serve("/");
    assert_eq!(code, Some(1));
    assert!(said.contains("cannot read /: Is a directory"), "{said}");

    let directory = fresh_directory();
    let (file, address) = (directory.join("x.toml"), fresh_address());
    std::fs::write(&file, serving_at(&address)).expect("write");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let mut child = Command::new(env!("CARGO_BIN_EXE_subak"))
        .args(["serve", "--config"])
        .arg(&file)
        .stderr(full)
        .spawn()
        .expect("subak");
    wait_until("it serves", || TcpStream::connect(&address).is_ok());
    assert_eq!(Client::connect(&address).get("/").status, 200);
    child.kill().expect("kill");
    child.wait().expect("wait");
    let _ = std::fs::remove_dir_all(directory);
}

// Scarcity ---------------------------------------------------------------------

/// How many lines of the log say this.
fn said(subak: &Subak, what: &str) -> usize {
    subak.log().lines().filter(|line| line.contains(what)).count()
}

#[test]
fn without_descriptors_accepting_pauses_with_one_line_and_those_who_are_in_are_served() {
    let endpoint = Endpoint::answering_once(ok("x"));
    let address = fresh_address();
    let setup = Setup::before(&[&endpoint]).bind(&address).workers(2);
    let text = setup.text();
    let subak = Subak::spawn_with(&["prlimit", "--nofile=104:104"], &text, &address).ready(&text);
    let mut inside: Vec<_> = (0..5).map(|_| subak.client()).collect();
    inside.iter_mut().for_each(|client| assert_eq!(client.get("/").status, 200));
    // The kernel takes them; Subak takes 30, which leaves descriptors for endpoints.
    let flood: Vec<_> = (0..100).map(|_| TcpStream::connect(&address).expect("connect")).collect();
    subak.wait_for_log("accepting pauses");
    for _ in 0..10 {
        for client in &mut inside {
            // A new connection to the endpoint each time.
            assert_eq!(client.get("/").status, 200);
        }
    }
    assert_eq!(endpoint.accepted(), 55);
    assert!(subak.descriptors() < 104, "{}", subak.descriptors());
    assert_eq!(said(&subak, "accepting pauses"), 1, "{}", subak.log());
    assert!(subak.log().contains("ulimit -n"), "{}", subak.log());
    drop(flood);
    assert_eq!(subak.get("/").0, 200);
    inside.iter_mut().for_each(|client| assert_eq!(client.get("/").status, 200));
}

#[test]
fn many_listeners_and_workers_do_not_eat_the_descriptors_of_endpoints() {
    let endpoint = Endpoint::answering_once(ok("x"));
    let addresses: Vec<_> = (0..20).map(|_| fresh_address()).collect();
    let setup = Setup::before(&[&endpoint]).bind(&addresses[0]).workers(8);
    let first = format!("{:?}", addresses[0]);
    let text = setup.text().replace(&first, &format!("{addresses:?}"));
    let prlimit = ["prlimit", "--nofile=300:300"];
    let subak = Subak::spawn_with(&prlimit, &text, &addresses[0]).ready(&text);
    let mut inside: Vec<_> = (0..5).map(|_| subak.client()).collect();
    inside.iter_mut().for_each(|client| assert_eq!(client.get("/").status, 200));
    let flood: Vec<_> =
        (0..200).map(|_| TcpStream::connect(&addresses[1]).expect("connect")).collect();
    subak.wait_for_log("accepting pauses");
    for _ in 0..5 {
        inside.iter_mut().for_each(|client| assert_eq!(client.get("/").status, 200));
    }
    assert_eq!(said(&subak, "out of file descriptors"), 0, "{}", subak.log());
    drop((flood, subak));
    let said = not_started(&["prlimit", "--nofile=60:60"], &text, 1, &["ulimit -n"]);
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn a_limit_that_shrinks_while_running_is_survived() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    let mut inside = subak.client();
    assert_eq!(inside.get("/").status, 200);
    let limit = |soft: usize| {
        let pid = subak.pid().to_string();
        let nofile = format!("--nofile={soft}:");
        let status = Command::new("prlimit").args(["--pid", &pid, &nofile]).status();
        assert!(status.expect("prlimit").success());
    };
    // No new descriptor can have a number below this.
    limit(3);
    let mut outside = TcpStream::connect(subak.address()).expect("the kernel takes it");
    outside.write_all(b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n").expect("send");
    subak.wait_for_log("out of file descriptors");
    assert_eq!(inside.get("/").status, 200);
    limit(1000);
    let mut outside = Client::on(crate::support::Socket::tcp(outside));
    assert_eq!(outside.answer().status, 200);
    assert_eq!(subak.get("/").0, 200);
}

#[test]
fn max_connections_holds_newcomers_back_and_lets_them_in_when_others_leave() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).top("max_connections = 3").workers(2).start();
    let mut inside: Vec<_> = (0..3).map(|_| subak.client()).collect();
    inside.iter_mut().for_each(|client| assert_eq!(client.get("/").status, 200));
    let mut waiting = subak.client();
    waiting.send("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n");
    subak.wait_for_log("as many client connections as allowed");
    waiting.assert_silent(Duration::from_millis(300));
    inside.pop();
    assert_eq!(waiting.answer().status, 200);
}

// Endpoints --------------------------------------------------------------------

#[test]
fn endpoints_that_all_refuse_are_answered_for_at_once_and_found_again_when_they_return() {
    let addresses = [(); 3].map(|()| fresh_address());
    let alive = Endpoint::named("alive");
    let subak = Setup::before_addresses(addresses.iter().cloned())
        .workers(2)
        .pool("back_off = { initial = \"100ms\", max = \"200ms\" }\nqueue = { outage = \"0s\" }")
        .listener("pool = \"app\"\nroute = [{ path = \"/other\", pool = \"other\" }]")
        .tail(&format!("[pool.other]\nendpoints = [{:?}]", alive.address()))
        .start();
    let mut client = subak.client();
    let mut took = [(); 50].map(|()| {
        let began = Instant::now();
        let answer = client.get("/");
        let took = began.elapsed();
        assert!(matches!(answer.status, 502 | 503), "{}", answer.status);
        assert_eq!(client.get("/other").text(), "alive");
        took
    });
    took.sort_unstable();
    assert!(took[25] < Duration::from_secs(1), "{took:?}");
    let back = addresses.each_ref().map(|address| {
        Endpoint::on_inet(address, |served| {
            while served.request().is_some() {
                served.send(ok("back"));
            }
        })
    });
    wait_until("all of them serve again", || {
        client.get("/");
        back.iter().all(|endpoint| endpoint.requests().len() > 2)
    });
    assert_eq!(client.get("/").text(), "back");
}

#[test]
fn an_endpoint_in_back_off_is_asked_ever_more_rarely() {
    let dead = fresh_address();
    let alive = Endpoint::named("alive");
    let subak = Setup::before_addresses([dead, alive.address()])
        .pool("back_off = { initial = \"10m\", max = \"1h\" }")
        .start();
    let mut client = subak.client();
    (0..200).for_each(|_| assert_eq!(client.get("/").text(), "alive"));
    assert_eq!(said(&subak, "trying another endpoint"), 1, "{}", subak.log());
}
