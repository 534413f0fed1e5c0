//! Limits before the real thing: rates, requests and connections at once, sizes, networks, circuits.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::support::http2::{h2_exchange, prior_knowledge};
use crate::support::{
    Admin, Client, End, Endpoint, Mood, Moody, Scrape, Setup, Subak, fresh_address,
    fresh_directory, wait_until,
};
use http::Request;
use serde_json::Value;

const LIMITED: &str = "rate = { rate = \"3/h\", fields = \"always\" }";

fn get_with(client: &mut Client, path: &str, fields: &str) -> crate::support::Answer {
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
    client.answer()
}

fn scrape(admin: &Admin) -> Scrape {
    Scrape::parse(&admin.ask("GET", "/metrics", "").text())
}

fn limits(admin: &Admin) -> Value {
    crate::support::admin::json(&admin.ask("GET", "/v1/limits", ""), 200)
}

#[track_caller]
fn subak(admin: &Admin, command: &[&str], arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_subak"))
        .args(command)
        .arg("--socket")
        .arg(admin.socket())
        .args(arguments)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .expect("subak");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn who_asks_too_much_is_told_when_to_come_back() {
    let endpoint = Endpoint::named("x");
    let setup = Setup::before(&[&endpoint]).listener(LIMITED);
    let running = setup.start();
    let admin = Admin::of(&running);
    let mut client = Client::connect_from("127.0.0.7", running.address());
    for left in [2, 1, 0] {
        let answer = client.get("/");
        assert_eq!(answer.status, 200);
        assert_eq!(answer.field("ratelimit-policy"), Some("\"web.rate.1\";q=3;w=3600"));
        let told = answer.field("ratelimit").expect("what is left").to_owned();
        assert!(told.starts_with(&format!("\"web.rate.1\";r={left};t=")), "{told}");
    }
    let answer = client.get("/");
    assert_eq!((answer.status, answer.field("connection")), (429, None), "it may stay");
    let wait: u64 = answer.field("retry-after").expect("when").parse().expect("seconds");
    assert!((1190..=1200).contains(&wait), "a third of an hour: {wait}");
    assert!(answer.field("ratelimit").expect("nothing").starts_with("\"web.rate.1\";r=0;t="));
    assert!(answer.text().contains("limit web.rate.1 allows 3/h"), "{}", answer.text());
    assert_eq!(running.get("/").0, 200, "another client");
    assert_eq!(endpoint.requests().len(), 4);

    let metrics = scrape(&admin);
    let labels = [("listener", "web"), ("limit", "web.rate.1"), ("dry_run", "false")];
    assert_eq!(metrics.value("subak_limit_refused_total", &labels), 1.0);
    let labels = [("listener", "web"), ("fault", "client"), ("cause", "rate_limited")];
    assert_eq!(metrics.value("subak_listener_failures_total", &labels), 1.0);
    let told = &limits(&admin)[0];
    let nearest = &told["nearest"][0];
    assert_eq!((nearest["key"].as_str(), nearest["left"].as_u64()), (Some("127.0.0.7"), Some(0)));
    assert_eq!((told["keys"].as_u64(), told["refused"].as_u64()), (Some(2), Some(1)));

    let url = format!("http://{}/", running.address());
    let text = subak(&admin, &["explain"], &[&url, "--client", "127.0.0.7"]);
    assert!(text.contains("limit     web.rate.1: 3/h, burst 3 by client"), "{text}");
    assert!(text.contains("refuses, for") && text.contains("answered 429"), "{text}");
    let text = subak(&admin, &["explain"], &[&url, "--client", "127.0.0.9"]);
    assert!(text.contains("3 left") && text.contains("result    to "), "{text}");

    // The same limit after a reload is the same bucket.
    running.write_config(&setup.text().replace("[pool.app]", "# changed\n[pool.app]"));
    running.signal("HUP");
    wait_until("it is reloaded", || admin.status()["reloads"] == 1);
    assert_eq!(client.get("/").status, 429);

    let table = subak(&admin, &["ctl"], &["limits"]);
    assert!(table.contains("web.rate.1") && table.contains("127.0.0.7: 0 of 3 left"), "{table}");
    subak(&admin, &["ctl"], &["limits", "clear", "web.rate.1", "127.0.0.7"]);
    assert_eq!(client.get("/").status, 200);

    running.write_config(&setup.text().replace("3/h", "1/h"));
    running.signal("HUP");
    wait_until("it is reloaded", || admin.status()["reloads"] == 2);
    assert_eq!((client.get("/").status, client.get("/").status), (200, 429), "another limit");
}

#[test]
fn limits_of_a_route_go_by_what_they_are_told_to() {
    let endpoint = Endpoint::named("x");
    let running = Setup::before(&[&endpoint])
        .tail(
            "[[listener.web.route]]\npath = \"/keys\"\nrespond = 204\n\
             rate = [{ rate = \"2/h\", key = \"header:X-Key\", status = 503, name = \"keys\" }, \
                     { rate = \"5/h\", key = \"all\" }]\n\
             [[listener.web.route]]\npath = \"/dry\"\nrespond = 204\n\
             rate = { rate = \"1/h\", dry_run = true, name = \"trying\" }\n",
        )
        .start();
    let admin = Admin::of(&running);
    let mut client = running.client();
    let mut ask = |key: &str| get_with(&mut client, "/keys", key).status;
    assert_eq!([ask("X-Key: a\r\n"), ask("X-Key: a\r\n"), ask("X-Key: a\r\n")], [204, 204, 503]);
    // Without the field the address counts.
    assert_eq!([ask(""), ask(""), ask("")], [204, 204, 503]);
    // What one limit refuses costs the other nothing: four were granted, one is left of five.
    assert_eq!([ask("X-Key: b\r\n"), ask("X-Key: b\r\n")], [204, 429]);
    assert_eq!([ask("X-Key: c\r\n"), ask("X-Key: d\r\n")], [429, 429]);
    let keys = limits(&admin);
    let left = |name: &str| {
        let limit = keys.as_array().expect("limits").iter().find(|one| one["name"] == name);
        limit.expect("a limit")["nearest"][0]["left"].as_u64()
    };
    assert_eq!((left("keys"), left("web.route.1.rate.2")), (Some(0), Some(0)));

    for _ in 0..3 {
        assert_eq!(client.get("/dry").status, 204);
    }
    let labels = [("listener", "web"), ("limit", "trying"), ("dry_run", "true")];
    assert_eq!(scrape(&admin).value("subak_limit_refused_total", &labels), 2.0);
    assert_eq!(client.get("/").status, 200, "another route has no limit");
}

#[test]
fn a_parameter_of_the_query_is_one_key_however_it_is_spelled() {
    let endpoint = Endpoint::named("x");
    let running = Setup::before(&[&endpoint])
        .listener("rate = { rate = \"2/h\", key = \"query:tenant\" }")
        .start();
    let mut client = running.client();
    let mut ask = |query: &str| client.get(&format!("/?{query}")).status;
    assert_eq!([ask("tenant=a%20b"), ask("x=1&tenant=a+b")], [200, 200]);
    assert_eq!([ask("%74enant=a%20b"), ask("tenant=%61%20b")], [429, 429]);
    assert_eq!(ask("tenant=a"), 200, "another one");
}

#[test]
fn streams_of_http_2_count_each() {
    let endpoint = Endpoint::named("x");
    let running = Setup::before(&[&endpoint]).listener("rate = \"3/h\"").start();
    let statuses = prior_knowledge(&running, async |send| {
        let mut statuses = Vec::new();
        for _ in 0..5 {
            let request = Request::get("http://a/").body(()).expect("a request");
            let (answer, _) = h2_exchange(send.clone(), request, None).await;
            if answer.status() == 429 {
                assert!(answer.headers().contains_key("retry-after"));
                assert!(answer.headers().contains_key("ratelimit"));
            }
            statuses.push(answer.status().as_u16());
        }
        statuses
    });
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
}

#[test]
fn requests_under_way_are_counted_until_they_are_over() {
    let endpoint = Moody::new("x");
    endpoint.set(Mood::Hanging);
    let running = Setup::before_addresses([endpoint.address()])
        .listener("limits = { in_flight = [3, { most = 2, key = \"client\" }] }")
        .start();
    let admin = Admin::of(&running);
    let ask = |source: &str| {
        let mut client = Client::connect_from(source, running.address());
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        client
    };
    let mut first = ask("127.0.0.7");
    let mut second = ask("127.0.0.7");
    wait_until("both are under way", || endpoint.hits() == 2);
    assert_eq!(ask("127.0.0.7").answer().status, 429, "the client has two");
    let mut third = ask("127.0.0.8");
    wait_until("it is under way", || endpoint.hits() == 3);
    let refused = ask("127.0.0.9").answer();
    assert_eq!((refused.status, refused.field("retry-after")), (503, Some("1")), "there are three");
    assert_eq!(limits(&admin)[1]["nearest"][0]["key"], "127.0.0.7");
    // A client that leaves gives its place back.
    second.socket().reset_on_close();
    drop(second);
    let url = format!("http://{}/", running.address());
    wait_until("a place is free", || {
        subak(&admin, &["explain"], &[&url, "--client", "127.0.0.7"]).contains("result    to ")
    });
    endpoint.set(Mood::Well);
    assert_eq!((first.answer().status, third.answer().status), (200, 200));
    assert_eq!(ask("127.0.0.7").answer().status, 200);
    wait_until("nothing is under way", || limits(&admin)[0]["keys"] == 0);
}

#[test]
fn connections_of_one_client_and_of_some_networks_are_closed_at_once() {
    let endpoint = Endpoint::named("x");
    let running = Setup::before(&[&endpoint])
        .listener("limits = { connections_per_client = 2 }")
        .listener("allow = [\"127.0.0.0/8\"]\ndeny = [\"127.9.0.0/16\"]")
        .start();
    let admin = Admin::of(&running);
    let closed = |source: &str| {
        let mut client = Client::connect_from(source, running.address());
        _ = client.try_send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        match client.read_to_end() {
            (bytes, End::Closed | End::Reset) => bytes.is_empty(),
        }
    };
    assert!(closed("127.9.0.1"), "its network may not in");
    let mut two = ["127.0.0.7"; 2].map(|source| Client::connect_from(source, running.address()));
    two.iter_mut().for_each(|client| assert_eq!(client.get("/").status, 200));
    assert!(closed("127.0.0.7"), "a third");
    assert_eq!(Client::connect_from("127.0.0.8", running.address()).get("/").status, 200);
    let turned = &admin.status()["listeners"][0]["turned_away"];
    assert_eq!((turned["network"].as_u64(), turned["per_client"].as_u64()), (Some(1), Some(1)));
    drop(two);
    wait_until("there is room again", || {
        let mut client = Client::connect_from("127.0.0.7", running.address());
        let asked = client.try_send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        asked.is_ok() && client.try_answer("GET").is_ok()
    });
    let url = format!("http://{}/", running.address());
    let text = subak(&admin, &["explain"], &[&url, "--client", "127.9.0.1"]);
    assert!(text.contains("closed: its network may not in"), "{text}");
}

#[test]
fn a_route_lets_some_networks_in_and_bounds_what_it_takes() {
    let endpoint = Endpoint::named("x");
    let running = Setup::before(&[&endpoint])
        .listener("trusted_proxies = [\"127.0.0.0/8\"]\nlimits = { body = 100, target = \"1KiB\" }")
        .tail(
            "[[listener.web.route]]\npath = \"/inside\"\nrespond = 204\nallow = [\"10.0.0.0/8\"]\n\
             [[listener.web.route]]\npath = \"/upload\"\npool = \"app\"\nlimits = { body = 1000 }\n\
             [[listener.web.route]]\npath = \"/small\"\nrespond = 204\n\
             limits = { body = 10, target = 20, fields = 3 }\n",
        )
        .start();
    let ask = |request: String| {
        let mut client = running.client();
        client.send(request);
        client.answer().status
    };
    let from = |client: &str| {
        ask(format!("GET /inside HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {client}\r\n\r\n"))
    };
    assert_eq!((from("10.1.2.3"), from("192.0.2.1")), (204, 403), "whom the proxy names counts");
    let post = |path: &str, length: usize| {
        let body = "x".repeat(length);
        ask(format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}"))
    };
    assert_eq!((post("/", 100), post("/", 101)), (200, 413), "the listener's");
    assert_eq!((post("/upload", 1000), post("/upload", 1001)), (200, 413), "the route's");
    assert_eq!((post("/small", 10), post("/small", 11)), (204, 413), "also without a pool");
    let chunked = |length: usize| {
        let body = "x".repeat(length);
        ask(format!(
            "POST /upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"
        ))
    };
    assert_eq!((chunked(1000), chunked(1001)), (200, 413));
    let get =
        |path: &str, fields: &str| ask(format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
    assert_eq!(get(&format!("/small?{}", "x".repeat(13)), ""), 204);
    assert_eq!(get(&format!("/small?{}", "x".repeat(14)), ""), 414);
    assert_eq!(
        (get("/small", "A: 1\r\nB: 2\r\n"), get("/small", "A: 1\r\nB: 2\r\nC: 3\r\n")),
        (204, 431)
    );
    assert_eq!(
        (get(&format!("/{}", "x".repeat(1023)), ""), get(&format!("/{}", "x".repeat(1024)), "")),
        (200, 414)
    );
}

#[test]
fn a_circuit_opens_tries_and_closes() {
    let endpoint = Moody::new("x");
    let running = Setup::before_addresses([endpoint.address()])
        .pool(
            "circuit = { share = 0.5, min_requests = 6, open = \"2s\", trials = 2, max_in_flight = 3 }\n\
             retry = { on = [] }",
        )
        .start();
    let admin = Admin::of(&running);
    let circuit = || admin.status()["pools"][0]["circuit"].clone();
    for _ in 0..3 {
        assert_eq!(running.get("/").0, 200);
    }
    assert_eq!(circuit()["state"], "closed");
    endpoint.set(Mood::Failing);
    for _ in 0..3 {
        assert_eq!(running.get("/").0, 500, "as the endpoint says");
    }
    let hits = endpoint.hits();
    let answer = running.client().get("/");
    assert_eq!((answer.status, answer.field("retry-after")), (503, Some("2")));
    assert_eq!(endpoint.hits(), hits, "nobody was asked");
    assert_eq!(circuit()["state"], "open");
    wait_until("it is a problem", || {
        let problems = admin.status()["problems"].clone();
        problems.as_array().is_some_and(|all| all.iter().any(|one| one["kind"] == "circuit"))
    });
    let url = format!("http://{}/", running.address());
    let text = subak(&admin, &["explain"], &[&url]);
    assert!(text.contains("answered 503: the pool's circuit is open"), "{text}");
    let metrics = scrape(&admin);
    assert_eq!(metrics.value("subak_pool_circuit", &[("pool", "app"), ("state", "open")]), 1.0);
    let refused = [("pool", "app"), ("why", "open")];
    assert_eq!(metrics.value("subak_pool_circuit_refused_total", &refused), 1.0);

    // A trial that fails opens it again.
    wait_until("a trial is made", || running.get("/").0 == 500);
    assert_eq!((running.get("/").0, circuit()["opened"].as_u64()), (503, Some(2)));
    endpoint.set(Mood::Well);
    wait_until("a trial is well", || running.get("/").0 == 200);
    assert_eq!((running.get("/").0, circuit()["state"].as_str()), (200, Some("closed")));
    wait_until("the problem has ended", || admin.status()["problems"] == serde_json::json!([]));

    endpoint.set(Mood::Hanging);
    let hits = endpoint.hits();
    let ask = || {
        let mut client = running.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        client
    };
    let mut held: Vec<Client> = (0..3).map(|_| ask()).collect();
    wait_until("three are under way", || endpoint.hits() == hits + 3);
    assert_eq!(ask().answer().status, 503, "a fourth");
    endpoint.set(Mood::Well);
    held.iter_mut().for_each(|client| assert_eq!(client.answer().status, 200));
    wait_until("nothing is under way", || circuit()["in_flight"] == 0);
}

/// Asks on a connection of its own until it is told to stop, and counts what was granted.
fn hammer(running: &Subak, source: &str, stop: &AtomicBool, granted: &AtomicU64) {
    let mut client = Client::connect_from(source, running.address());
    let requests = "GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(16);
    while !stop.load(Ordering::Relaxed) {
        if client.try_send(&requests).is_err() {
            client = Client::connect_from(source, running.address());
            continue;
        }
        for _ in 0..16 {
            match client.try_answer("GET") {
                Ok(answer) if answer.status < 300 => _ = granted.fetch_add(1, Ordering::Relaxed),
                Ok(_) => {}
                Err(_) => break,
            }
        }
    }
}

#[test]
fn a_rate_is_exact_over_workers() {
    let endpoint = Endpoint::named("x");
    let (rate, burst) = (1000.0, 1000.0);
    let running = Setup::before(&[&endpoint])
        .workers(3)
        .listener("rate = { rate = \"1000/s\", key = \"all\" }")
        .tail("[[listener.web.route]]\npath = \"/\"\nrespond = 204\n")
        .start();
    let (stop, granted) = (AtomicBool::new(false), AtomicU64::new(0));
    let (mut took, mut counted) = (Duration::ZERO, 0);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| hammer(&running, "127.0.0.1", &stop, &granted));
        }
        let deadline = began + Duration::from_secs(20);
        while granted.load(Ordering::Relaxed) < 6000 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        (took, counted) = (began.elapsed(), granted.load(Ordering::Relaxed));
        stop.store(true, Ordering::Relaxed);
    });
    let due = burst + rate * took.as_secs_f64();
    // What was granted and not read when the clock was stopped: 16 of each connection.
    let most_unread = 64.0;
    let counted = counted as f64;
    assert!(counted > due * 0.99 - most_unread && counted < due * 1.01, "{counted} for {due}");
}

#[test]
fn one_client_that_asks_without_end_does_not_hurt_the_others() {
    let endpoint = Endpoint::named("x");
    let running = Setup::before(&[&endpoint])
        .workers(2)
        .listener("rate = { rate = \"100/s\", burst = 20 }")
        .pool("max_in_flight = 4\nqueue = { length = 4, timeout = \"5s\" }")
        .start();
    let (stop, granted) = (AtomicBool::new(false), AtomicU64::new(0));
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| hammer(&running, "127.0.0.66", &stop, &granted));
        }
        let good = |number: usize| {
            let source = format!("127.0.1.{number}");
            let mut client = Client::connect_from(&source, running.address());
            (0..20).map(|_| client.get("/").status).filter(|status| *status != 200).count()
        };
        let refused: usize = (1..=10).map(good).sum();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(refused, 0, "nobody else was refused anything");
    });
    let most = 20.0 + 100.0 * (began.elapsed().as_secs_f64() + 1.0);
    assert!((granted.into_inner() as f64) < most, "and the one got no more than its share");
}

#[test]
fn a_flood_of_keys_is_bounded_in_memory() {
    let endpoint = Endpoint::named("x");
    let running = Setup::before(&[&endpoint])
        .listener("limits = { requests_per_connection = \"unlimited\" }")
        .tail(
            "[[listener.web.route]]\npath = \"/\"\nrespond = 204\n\
             rate = { rate = \"1/h\", key = \"header:X-Key\", entries = 4096 }\n",
        )
        .start();
    let admin = Admin::of(&running);
    let mut client = running.client();
    let mut flood = |from: usize, count: usize| {
        for first in (from..from + count).step_by(64) {
            let keys = first..first + 64;
            let requests: String = keys
                .map(|key| format!("GET / HTTP/1.1\r\nHost: a\r\nX-Key: {key:0200}\r\n\r\n"))
                .collect();
            client.send(requests);
            (0..64).for_each(|_| assert!(matches!(client.answer().status, 204 | 429)));
        }
    };
    flood(0, 8000);
    let before = running.resident_kib();
    flood(100_000, 16_000);
    let after = running.resident_kib();
    assert!(after < before + 4096, "{before} KiB, then {after} KiB");
    let limit = &limits(&admin)[0];
    assert_eq!(
        (limit["places"].as_u64(), limit["nearest"].as_array().map(Vec::len)),
        (Some(4096), Some(20))
    );
    assert!(limit["forgotten"].as_u64() > Some(15_000), "{limit}");
}

/// What a proxy grants of bursts with pauses between them.
fn granted(address: &str) -> Vec<usize> {
    let mut client = Client::connect(address);
    let mut burst = |count: usize| (0..count).filter(|_| client.get("/").status < 300).count();
    let mut all = vec![burst(40)];
    for (pause_ms, count) in [(1000, 12), (500, 12), (2600, 40)] {
        std::thread::sleep(Duration::from_millis(pause_ms));
        all.push(burst(count));
    }
    all
}

/// `limit_req` with `burst=N nodelay` lets N + 1 through at once: the bucket of a `burst` of N + 1.
#[test]
fn rates_are_those_of_nginx() {
    let (directory, address) = (fresh_directory(), fresh_address());
    let path = directory.display();
    let text = format!(
        "daemon off; master_process off; pid {path}/pid; error_log {path}/error.log;\n\
         events {{ worker_connections 256; }}\n\
         http {{ access_log off; client_body_temp_path {path}/a; proxy_temp_path {path}/b;\n\
         fastcgi_temp_path {path}/c; uwsgi_temp_path {path}/d; scgi_temp_path {path}/e;\n\
         limit_req_zone $binary_remote_addr zone=a:1m rate=10r/s; limit_req_status 429;\n\
         server {{ listen {address}; location / {{ limit_req zone=a burst=19 nodelay; try_files /none =204; }} }} }}\n"
    );
    std::fs::write(directory.join("nginx.conf"), text).expect("write");
    let mut command = Command::new("nginx");
    command.env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default()));
    command.arg("-p").arg(&directory).arg("-c").arg(directory.join("nginx.conf"));
    let mut nginx = match command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("SKIPPED: the comparison of rates with nginx: {error}");
            return;
        }
    };
    wait_until("nginx listens", || std::net::TcpStream::connect(&address).is_ok());
    let endpoint = Endpoint::named("x");
    let running = Setup::before(&[&endpoint])
        .listener("rate = { rate = \"10/s\", burst = 20 }")
        .tail("[[listener.web.route]]\npath = \"/\"\nrespond = 204\n")
        .start();
    let (ours, theirs) = std::thread::scope(|scope| {
        let theirs = scope.spawn(|| granted(&address));
        (granted(running.address()), theirs.join())
    });
    let _ = nginx.kill();
    let _ = nginx.wait();
    let _ = std::fs::remove_dir_all(directory);
    let theirs = theirs.expect("answers of nginx");
    eprintln!("granted: {ours:?}, by nginx {theirs:?}");
    // Both run by the clock while the machine does other things: a request or two either way.
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert!(ours.abs_diff(*theirs) <= 3, "{ours} against {theirs}");
    }
}
