//! The access log says what happened: a line for every request, also for those that went wrong.

use std::path::PathBuf;

use crate::support::http2::{h2_get, prior_knowledge};
use crate::support::{Admin, Endpoint, Setup, Subak, fresh_directory, ok, wait_until};
use serde_json::{Value, json};

/// A setup that logs to a file of its own.
fn logging(endpoints: &[&Endpoint], more: &str) -> (Setup, PathBuf) {
    let path = fresh_directory().join("access.log");
    let log = format!("access_log = {{ path = {path:?}, flush = \"200ms\", {more} }}");
    (Setup::before(endpoints).top(&log), path)
}

/// The first `count` lines; there must be no more.
#[track_caller]
fn lines(path: &PathBuf, count: usize) -> Vec<String> {
    let read = || std::fs::read_to_string(path).unwrap_or_default();
    wait_until("the lines are there", || read().lines().count() >= count);
    let lines: Vec<String> = read().lines().map(String::from).collect();
    assert_eq!(lines.len(), count, "{lines:#?}");
    lines
}

#[track_caller]
fn objects(path: &PathBuf, count: usize) -> Vec<Value> {
    let parse = |line: &String| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
    lines(path, count).iter().map(parse).collect()
}

#[track_caller]
fn says(line: &Value, expected: Value) {
    for (key, value) in expected.as_object().expect("an object") {
        assert_eq!(&line[key], value, "{key} of {line}");
    }
}

#[test]
fn a_line_says_who_asked_what_and_what_became_of_it() {
    let endpoint = Endpoint::answering(ok("hello"));
    let (setup, path) = logging(&[&endpoint], "");
    let subak = setup.start();
    let mut client = subak.client();
    let request =
        "GET /a%20b?c=d HTTP/1.1\r\nHost: Example.com:80\r\nUser-Agent: test/1 \"quoted\"\r\n\r\n";
    client.send(request);
    assert_eq!(client.answer().status, 200);
    client
        .send("POST /b HTTP/1.1\r\nHost: a\r\nReferer: http://x/\r\nContent-Length: 4\r\n\r\nbody");
    assert_eq!(client.answer().status, 200);
    let lines = objects(&path, 2);
    says(
        &lines[0],
        json!({
            "listener": "web", "client": "127.0.0.1", "method": "GET", "scheme": "http",
            "host": "example.com", "path": "/a%20b", "query": "c=d", "protocol": "HTTP/1.1",
            "status": 200, "bytes_in": request.len(), "bytes_out": 43, "route": null, "pool": "app",
            "endpoint": endpoint.address(), "tries": 1, "queue_ms": 0, "end": "ok", "fault": null,
            "user_agent": "test/1 \"quoted\"", "referer": null,
        }),
    );
    says(
        &lines[1],
        json!({ "method": "POST", "query": null, "referer": "http://x/", "connect_ms": 0 }),
    );
    let of = |key: &str| lines[0][key].as_f64().expect(key);
    assert!(of("connect_ms") > 0.0 && of("first_byte_ms") >= of("connect_ms"), "{}", lines[0]);
    assert!(of("total_ms") >= of("first_byte_ms") && of("total_ms") < 5000.0, "{}", lines[0]);
    assert!(lines[0]["client_port"].as_u64() > Some(0), "{}", lines[0]);
    let ids: Vec<_> = lines.iter().map(|line| line["decision"].as_str().expect("an id")).collect();
    assert!(ids[0].len() == 16 && ids[0] != ids[1], "{ids:?}");
    let time = lines[0]["time"].as_str().expect("a time");
    assert!(time.len() == 24 && time.starts_with("20") && time.ends_with('Z'), "{time}");
}

#[test]
fn what_goes_wrong_is_named_with_whose_fault_it_is() {
    let endpoint = Endpoint::scripted(|served| {
        while let Some(request) = served.request() {
            match request.line.split(' ').nth(1) {
                Some("/cut") => {
                    return served.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
                }
                Some("/never") => {
                    served.read_to_end();
                    return;
                }
                _ => served.send(ok("x")),
            }
        }
    });
    let (setup, path) = logging(&[&endpoint], "");
    let setup = setup
        .pool("timeouts = { first_byte = \"300ms\" }\nretry = { attempts = 1 }\nqueue = { outage = \"0s\" }")
        .listener("timeouts = { head = \"300ms\" }\nlimits = { body = 10 }")
        .tail("[[listener.web.route]]\npath = \"/old\"\nredirect = \"/new\"");
    let subak = setup.start();
    let mut seen = 0;
    let mut next = |bytes: &str, expected: Value| {
        let mut client = subak.client();
        client.send(bytes);
        client.read_to_end();
        seen += 1;
        let line = objects(&path, seen).pop().expect("a line");
        says(&line, expected);
    };
    let close = "Host: a\r\nConnection: close\r\n\r\n";
    next(
        &format!("GET / HTTP/1.1\r\n{close}"),
        json!({ "status": 200, "end": "ok", "fault": null, "endpoint": endpoint.address() }),
    );
    next(
        "GET /a b HTTP/1.1\r\n\r\n",
        json!({ "status": 400, "end": "bad_head", "fault": "client", "path": null, "pool": null }),
    );
    next(
        "GET / HTTP/1.1\r\nHos",
        json!({ "status": 408, "end": "client_slow", "fault": "client" }),
    );
    next(
        &format!("GET /cut HTTP/1.1\r\n{close}"),
        json!({ "status": 200, "end": "broken", "fault": "endpoint", "tries": 1 }),
    );
    next(
        &format!("GET /never HTTP/1.1\r\n{close}"),
        json!({ "status": 504, "end": "first_byte_timeout", "first_byte_ms": null }),
    );
    next(
        &format!("TRACE / HTTP/1.1\r\n{close}"),
        json!({ "status": 405, "end": "method_refused", "method": "TRACE" }),
    );
    next(
        "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n",
        json!({ "status": 413, "end": "body_too_large", "pool": "app", "endpoint": null }),
    );
    next(
        &format!("GET /old HTTP/1.1\r\n{close}"),
        json!({ "status": 302, "route": 0, "tries": 0 }),
    );
    let slow = objects(&path, 8);
    assert!(slow[2]["total_ms"].as_f64().expect("a time") >= 250.0, "{}", slow[2]);
    let address = endpoint.address().to_string();
    drop(endpoint);
    crate::support::wait_until("the endpoint's port is closed", || {
        std::net::TcpStream::connect(&address).is_err()
    });
    next(
        &format!("GET / HTTP/1.1\r\n{close}"),
        json!({ "status": 502, "end": "connect", "fault": "endpoint", "pool": "app", "tries": 1 }),
    );
}

#[test]
fn a_client_that_leaves_and_a_tunnel_have_their_lines() {
    let endpoint = Endpoint::scripted(|served| {
        if let Some(request) = served.request() {
            if request.line.starts_with("GET /never ") {
                served.read_to_end();
                return;
            }
            served.send(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
            );
            served.read(4).expect("the client's bytes");
            served.send("and back");
        }
    });
    let (setup, path) = logging(&[&endpoint], "");
    let subak = setup.start();
    let mut client = subak.client();
    client.send("GET /never HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until("the endpoint has it", || endpoint.requests().len() == 1);
    client.socket().reset_on_close();
    drop(client);
    says(&objects(&path, 1)[0], json!({ "status": null, "end": "client_gone", "fault": "client" }));
    let mut client = subak.client();
    let head = "GET /tunnel HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
    client.send(head);
    assert_eq!(client.head().status, 101);
    client.send("ping");
    assert_eq!(client.read(8), b"and back");
    client.read_to_end();
    drop(client);
    let line = objects(&path, 2).pop().expect("a line");
    says(&line, json!({ "status": 101, "end": "ok", "path": "/tunnel" }));
    assert_eq!(line["bytes_in"], head.len() + "ping".len(), "{line}");
}

#[test]
fn every_stream_of_http2_has_a_line() {
    let endpoint = Endpoint::named("hello");
    let (setup, path) = logging(&[&endpoint], "");
    let subak = setup.start();
    prior_knowledge(&subak, async |send| {
        for path in ["one", "two", "three"] {
            let answer = h2_get(send.clone(), &format!("http://a.example/{path}")).await;
            assert_eq!(answer.0.status(), 200);
        }
    });
    let mut paths = Vec::new();
    for line in objects(&path, 3) {
        says(&line, json!({ "protocol": "HTTP/2", "status": 200, "bytes_out": 5, "end": "ok" }));
        paths.push(line["path"].as_str().expect("a path").to_owned());
    }
    paths.sort();
    assert_eq!(paths, ["/one", "/three", "/two"]);
}

#[test]
fn nothing_a_client_sends_breaks_a_line() {
    let endpoint = Endpoint::named("x");
    for format in ["\"json\"", "\"combined\"", "'\"%[req.hdr(X)]\" %r'"] {
        let (setup, path) = logging(&[&endpoint], &format!("format = {format}"));
        let subak = setup.start();
        let mut client = subak.client();
        let nasty: &[u8] = b"GET /%0a\"'{}?\"a=\\%00 HTTP/1.1\r\nHost: a\r\nUser-Agent: x\"\\\xff\xfe\xc3\t{\"status\":1}\r\nX: \"\\\xc2\x85\r\n\r\n";
        client.send(nasty);
        client.answer();
        let written = lines(&path, 1).pop().expect("a line");
        match format {
            "\"json\"" => {
                let line: Value = serde_json::from_str(&written).expect("JSON");
                assert_eq!(line["path"], "/%0a\"'{}");
                assert_eq!(line["user_agent"], "x\"\\\u{fffd}\u{fffd}\u{fffd}\t{\"status\":1}");
            }
            _ => {
                assert!(written.is_ascii(), "{written}");
                assert!(
                    written.contains("\\x22a=\\x5C%00") && written.contains("\\x5C"),
                    "{written}"
                );
            }
        }
    }
}

#[test]
fn the_words_of_nginx_and_haproxy_mean_what_they_mean_there() {
    let endpoint =
        Endpoint::answering("HTTP/1.1 404 Not Found\r\nX-A: b\r\nContent-Length: 3\r\n\r\nabc");
    let (setup, path) = logging(
        &[&endpoint],
        "format = '$remote_addr|$request|$status|$body_bytes_sent|$http_x_t|$sent_http_x_a|%b/%s|%ST|%HQ|%tsc|%[req.hdr(X-T)]|$http_none'",
    );
    let subak = setup.pool("request_headers = { remove = [\"X-T\"] }").start();
    let mut client = subak.client();
    client.send("GET /p?q HTTP/1.1\r\nHost: a\r\nX-T: tenant\r\n\r\n");
    client.answer();
    let expected = format!(
        "127.0.0.1|GET /p?q HTTP/1.1|404|3|tenant|b|app/{}|404|q|--|tenant|-",
        endpoint.address()
    );
    assert_eq!(lines(&path, 1), [expected]);
}

#[test]
fn a_listener_can_have_its_own_several_or_none() {
    let endpoint = Endpoint::named("x");
    let (setup, path) = logging(&[&endpoint], "format = '$uri'");
    let directory = fresh_directory();
    let (errors, all) = (directory.join("errors"), directory.join("all"));
    let two = format!(
        "access_log = [{{ path = {errors:?}, format = '$uri', flush = \"200ms\", statuses = [\"4xx\", \"failure\"] }}, \
         {{ path = {all:?}, format = '$uri', flush = \"200ms\" }}]"
    );
    let (second, third) = (crate::support::fresh_address(), crate::support::fresh_address());
    let subak = setup
        .tail(&format!("[listener.two]\nbind = {second:?}\npool = \"app\"\n{two}"))
        .tail("[[listener.two.route]]\npath = \"/no\"\nrespond = 404")
        .tail(&format!("[listener.three]\nbind = {third:?}\npool = \"app\"\naccess_log = false"))
        .start();
    let get = |address: &str, path: &str| crate::support::Client::connect(address).get(path).status;
    assert_eq!((get(&third, "/3"), get(&second, "/2"), get(&second, "/no")), (200, 200, 404));
    assert_eq!(get(subak.address(), "/1"), 200);
    assert_eq!(lines(&all, 2), ["/2", "/no"]);
    assert_eq!(lines(&errors, 1), ["/no"]);
    assert_eq!(lines(&path, 1), ["/1"]);
}

#[test]
fn a_sample_is_a_share_and_failures_are_always_there() {
    let endpoint = Endpoint::named("x");
    let (setup, path) =
        logging(&[&endpoint], "format = '$status', sample = 0.2, always = [\"4xx\"]");
    let subak = setup.tail("[[listener.web.route]]\npath = \"/no\"\nrespond = 404").start();
    let mut client = subak.client();
    for number in 0..1000 {
        client.get(if number % 50 == 0 { "/no" } else { "/" });
    }
    drop(client);
    assert_eq!(stopped(subak), Some(0), "it ended in order");
    let text = std::fs::read_to_string(&path).expect("the log");
    let of = |status: &str| text.lines().filter(|line| *line == status).count();
    assert_eq!(of("404"), 20);
    assert!((130..270).contains(&of("200")), "{}", of("200"));
}

#[test]
fn bytes_are_counted_for_listener_and_pool() {
    let endpoint = Endpoint::answering(ok("hello"));
    let (setup, path) = logging(&[&endpoint], "");
    let subak = setup.start();
    assert_eq!(subak.get("/").0, 200);
    let line = objects(&path, 1).pop().expect("a line");
    let metrics = Admin::of(&subak).ask("GET", "/metrics", "").text();
    for (direction, key) in [("in", "bytes_in"), ("out", "bytes_out")] {
        let count = &line[key];
        for what in ["listener_bytes_total{listener=\"web\"", "pool_bytes_total{pool=\"app\""] {
            let sample = format!("subak_{what},direction=\"{direction}\"}} {count}\n");
            assert!(metrics.contains(&sample), "{sample}{metrics}");
        }
    }
}

/// Ends it in order.
fn stopped(mut subak: Subak) -> Option<i32> {
    subak.signal("TERM");
    subak.wait_for_exit().code()
}
