//! Metrics: in the format that Prometheus reads, and true.

use std::io::Write;
use std::process::Stdio;

use crate::support::{Admin, Endpoint, Scrape, Setup, wait_until};

#[track_caller]
fn scrape(admin: &Admin) -> Scrape {
    let answer = admin.ask("GET", "/metrics", "");
    assert_eq!(answer.status, 200);
    let kind = answer.field("content-type");
    assert_eq!(kind, Some("text/plain; version=0.0.4; charset=utf-8"));
    Scrape::parse(&answer.text())
}

#[test]
fn a_scrape_keeps_the_rules_of_the_format_and_has_every_documented_family() {
    let endpoint = Endpoint::named("one");
    let subak = Setup::before(&[&endpoint]).workers(2).start();
    assert_eq!(subak.get("/").0, 200);
    let scrape = scrape(&Admin::of(&subak));
    let document = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let document = std::fs::read_to_string(document).expect("docs/metrics.md");
    let documented: std::collections::BTreeMap<&str, &str> = document
        .lines()
        .filter_map(|line| {
            line.strip_prefix("| `subak_")
                .map(|_| line)
                .or_else(|| line.strip_prefix("| `process_").map(|_| line))
        })
        .map(|line| {
            let mut cells = line.split(" | ");
            let name = cells.next().expect("a name").trim_matches(['|', ' ', '`']);
            (name, cells.next().expect("a kind"))
        })
        .collect();
    assert_eq!(scrape.names(), documented);
    assert!(documented.len() > 25);
    assert_eq!(scrape.value("subak_build_info", &[("version", env!("CARGO_PKG_VERSION"))]), 1.0);
    assert_eq!(scrape.value("subak_workers", &[]), 2.0);
    assert!(scrape.value("process_open_fds", &[]) > 5.0);
    assert!(scrape.value("process_resident_memory_bytes", &[]) > 1e6);
}

#[test]
fn requests_are_counted_where_they_end() {
    let one = Endpoint::answering("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    let subak = Setup::before_addresses([one.address(), crate::support::fresh_address()])
        .workers(2)
        .listener("limits = { requests_per_connection = \"unlimited\" }")
        .tail("[[listener.web.route]]\npath = \"/fixed\"\nrespond = { status = 204 }")
        .start();
    let admin = Admin::of(&subak);
    let mut client = subak.client();
    for _ in 0..10 {
        assert_eq!(client.get("/").status, 404);
    }
    client.send("GET /fixed HTTP/1.1\r\nHost: example.com\r\n\r\n");
    assert_eq!(client.answer().status, 204);
    client.send("BAD\r\n\r\n");
    assert_eq!(client.answer().status, 400);
    let scrape = scrape(&admin);
    let requests = |status: &str| {
        scrape.value("subak_listener_requests_total", &[("listener", "web"), ("status", status)])
    };
    assert_eq!(
        ["none", "1xx", "2xx", "3xx", "4xx", "5xx"].map(requests),
        [0., 0., 1., 0., 11., 0.]
    );
    let cause = [("listener", "web"), ("fault", "client"), ("cause", "bad_head")];
    assert_eq!(scrape.value("subak_listener_failures_total", &cause), 1.0);
    assert_eq!(scrape.sum("subak_listener_failures_total", ("listener", "web")), 1.0);
    let pool = [("pool", "app")];
    let of_pool = |status| [("pool", "app"), ("status", status)];
    assert_eq!(scrape.value("subak_pool_requests_total", &of_pool("4xx")), 10.0);
    assert_eq!(scrape.value("subak_pool_request_duration_seconds_count", &pool), 10.0);
    let sum = scrape.value("subak_pool_request_duration_seconds_sum", &pool);
    assert!(sum > 0.0 && sum < 10.0, "{sum}");
    let retries = scrape.value("subak_pool_retries_total", &pool);
    let failures = scrape.sum("subak_endpoint_failures_total", ("pool", "app"));
    assert!(retries >= 1.0 && retries == failures, "{retries} retries, {failures} failures");
    let hits = scrape.sum("subak_endpoint_hits_total", ("pool", "app"));
    assert_eq!(hits, 10.0 + retries);
    let address = one.address();
    let endpoint = [("pool", "app"), ("endpoint", &*address)];
    assert_eq!(scrape.value("subak_endpoint_hits_total", &endpoint), 10.0);
    assert_eq!(scrape.value("subak_listener_accepted_total", &[("listener", "web")]), 1.0);
}

#[test]
fn a_client_that_leaves_and_a_request_nobody_can_serve_are_counted_by_their_cause() {
    let holding = Endpoint::scripted(|served| {
        served.request();
        served.request();
    });
    let subak = Setup::before(&[&holding]).start();
    let admin = Admin::of(&subak);
    let mut client = subak.client();
    client.send("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n");
    wait_until("the request is there", || holding.requests().len() == 1);
    client.socket().reset_on_close();
    drop(client);
    let failures = |fault, cause| {
        let labels = [("listener", "web"), ("fault", fault), ("cause", cause)];
        scrape(&admin).value("subak_listener_failures_total", &labels)
    };
    wait_until("the client's leaving is counted", || failures("client", "client_gone") == 1.0);
    admin.patch(&holding.address(), r#"{"state": "maintenance"}"#);
    wait_until("nobody is left", || subak.get("/").0 == 503);
    assert!(failures("subak", "no_endpoint") >= 1.0);
    let state = |state| {
        let labels = [("pool", "app"), ("state", state)];
        scrape(&admin).value("subak_pool_endpoints", &labels)
    };
    assert_eq!(["ready", "drain", "maintenance", "down"].map(state), [0.0, 0.0, 1.0, 0.0]);
}

#[test]
fn counters_go_on_over_reloads_and_end_with_their_pool() {
    let (one, two) = (Endpoint::named("one"), Endpoint::named("two"));
    let setup = Setup::before(&[&one, &two]);
    let subak = setup.start();
    let admin = Admin::of(&subak);
    for _ in 0..6 {
        assert_eq!(subak.get("/").0, 200);
    }
    let reload = |config: &str, generation: u32| {
        subak.write_config(config);
        subak.signal("HUP");
        subak.wait_for_log(&format!("configuration reloaded generation={generation}\n"));
    };
    let again = || Setup::before(&[&two, &one]).bind(subak.address());
    reload(&again().text(), 2);
    assert_eq!(subak.get("/").0, 200);
    let served = [("pool", "app"), ("status", "2xx")];
    // A client may have its answer a moment before it is counted.
    let count = || scrape(&admin).value("subak_pool_requests_total", &served);
    wait_until("all seven are counted", || count() == 7.0);
    let after = scrape(&admin);
    assert_eq!(after.sum("subak_endpoint_hits_total", ("pool", "app")), 7.0);
    assert_eq!(after.value("subak_generation", &[]), 2.0);
    assert_eq!(after.value("subak_reloads_total", &[("result", "ok")]), 1.0);
    let renamed = again().text().replace("[pool.app]", "[pool.new]").replace("\"app\"", "\"new\"");
    reload(&renamed, 3);
    let after = scrape(&admin);
    assert_eq!(after.sum("subak_pool_requests_total", ("pool", "app")), 0.0);
    assert_eq!(
        after.value("subak_pool_requests_total", &[("pool", "new"), ("status", "2xx")]),
        0.0
    );
    let listener = [("listener", "web"), ("status", "2xx")];
    assert_eq!(after.value("subak_listener_requests_total", &listener), 7.0);
}

#[test]
fn openmetrics_is_for_who_asks_and_promtool_likes_the_text() {
    let one = Endpoint::named("one");
    let subak = Setup::before(&[&one]).pool("health = { http = \"/\", interval = \"1s\" }").start();
    let admin = Admin::of(&subak);
    assert_eq!(subak.get("/").0, 200);
    let accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
    let asking = Admin::of(&subak).with(&format!("Host: localhost\r\nAccept: {accept}\r\n"));
    let answer = asking.ask("GET", "/metrics", "");
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(answer.field("content-type"), Some(kind));
    let text = answer.text();
    assert!(
        text.ends_with("\n# EOF\n") && text.contains("\n# TYPE subak_reloads counter\n"),
        "{text}"
    );
    assert!(text.contains("_bucket{pool=\"app\",le=\"1.0\"} "), "{text}");
    let plain = admin.ask("GET", "/metrics", "");
    assert_eq!(plain.field("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));

    let mut promtool = std::process::Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut promtool) = promtool.stderr(Stdio::piped()).spawn() else {
        eprintln!("SKIPPED: promtool is not installed (Debian: prometheus)");
        return;
    };
    let mut stdin = promtool.stdin.take().expect("a pipe");
    stdin.write_all(plain.text().as_bytes()).expect("promtool reads");
    drop(stdin);
    let output = promtool.wait_with_output().expect("promtool ends");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn probes_and_changes_of_state_are_counted() {
    let one = Endpoint::named("one");
    let dead = crate::support::fresh_address();
    let setup = Setup::before_addresses([one.address(), dead])
        .pool("health = { tcp = true, interval = \"100ms\", fall = 2 }");
    let subak = setup.start();
    let admin = Admin::of(&subak);
    let probes = |result| {
        let labels = [("pool", "app"), ("kind", "probe"), ("result", result)];
        scrape(&admin).value("subak_pool_probes_total", &labels)
    };
    wait_until("both are known", || probes("ok") >= 3.0 && probes("failed") >= 3.0);
    assert_eq!(probes("inconclusive"), 0.0);
    let changes = |to| {
        let labels = [("pool", "app"), ("to", to)];
        scrape(&admin).value("subak_pool_endpoint_transitions_total", &labels)
    };
    assert_eq!((changes("down"), changes("maintenance")), (1.0, 0.0));
    admin.patch(&one.address(), r#"{"state": "maintenance"}"#);
    wait_until("it is counted", || changes("maintenance") == 1.0);
    let before = probes("failed");
    subak.write_config(&setup.text().replace("fall = 2", "fall = 3"));
    subak.signal("HUP");
    subak.wait_for_log("configuration reloaded generation=2\n");
    assert!(probes("failed") >= before && changes("down") == 1.0, "they go on over a reload");
}

#[test]
fn connections_that_are_refused_and_requests_that_wait_are_counted() {
    let (done, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let endpoint = Endpoint::scripted(move |served| {
        while served.request().is_some() {
            held.lock().expect("one connection").recv().expect("the test goes on");
            served.send(crate::support::ok("done"));
        }
    });
    let subak = Setup::before_addresses([format!("{} max_in_flight=1", endpoint.address())])
        .listener("limits = { connections = 2 }")
        .start();
    let admin = Admin::of(&subak);
    let ask = "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n";
    let (mut first, mut second) = (subak.client(), subak.client());
    first.send(ask);
    wait_until("the first is there", || endpoint.requests().len() == 1);
    second.send(ask);
    let of_pool = |name| scrape(&admin).value(name, &[("pool", "app")]);
    wait_until("the second waits", || of_pool("subak_pool_waiting_requests") == 1.0);
    assert_eq!(of_pool("subak_pool_waits_total"), 1.0);
    subak.client().assert_ends();
    let of_listener = |name| scrape(&admin).value(name, &[("listener", "web")]);
    assert_eq!(of_listener("subak_listener_refused_total"), 1.0);
    assert_eq!(of_listener("subak_listener_accepted_total"), 2.0);
    assert_eq!(of_listener("subak_listener_connections"), 2.0);
    for client in [&mut first, &mut second] {
        done.send(()).expect("the endpoint waits");
        assert_eq!(client.answer().text(), "done");
    }
    assert_eq!(of_pool("subak_pool_waiting_requests"), 0.0);
}

#[test]
fn handshakes_that_come_to_nothing_are_counted() {
    let endpoint = Endpoint::named("one");
    let directory = crate::support::fresh_directory();
    crate::support::http2::self_made_certificate(&directory);
    let (chain, key) = (directory.join("site.pem"), directory.join("site.key"));
    let subak = Setup::before(&[&endpoint])
        .listener(&format!("tls = {{ certificates = [{{ chain = {chain:?}, key = {key:?} }}] }}"))
        .start();
    let admin = Admin::of(&subak);
    let mut client = subak.client();
    client.send("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n");
    client.read_to_end();
    let name = "subak_listener_tls_handshakes_failed_total";
    let failed = || scrape(&admin).value(name, &[("listener", "web")]);
    wait_until("it is counted", || failed() == 1.0);
    assert_eq!(admin.status()["listeners"][0]["tls"], true);
}
