//! The Admin API: who may ask, what it says, and that nobody who asks can hurt traffic.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use crate::support::{Admin, Endpoint, Setup, Subak, fresh_address, fresh_directory, wait_until};
use serde_json::{Value, json};

/// The line that gives an instance a socket of this path.
fn socket(path: &std::path::Path) -> String {
    format!("admin = {{ socket = {:?} }}", path.display().to_string())
}

fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).expect("the socket").permissions().mode() & 0o777
}

#[test]
fn the_status_says_what_is_going_on() {
    let one = Endpoint::named("one");
    // Answers the first request, and keeps the second until the test is over.
    let two = Endpoint::scripted(|served| {
        served.request();
        served.send(crate::support::ok("two"));
        served.request();
        served.request();
    });
    let subak = Setup::before(&[&one, &two]).start();
    let admin = Admin::of(&subak);
    for _ in 0..3 {
        assert_eq!(subak.get("/").0, 200);
    }
    let mut held = subak.client();
    held.send("GET /held HTTP/1.1\r\nHost: example.com\r\n\r\n");
    let mut bad = subak.client();
    bad.send("GET / HTTP/1.1\r\n\r\n");
    assert_eq!(bad.answer().status, 400);
    wait_until("the request is with its endpoint", || two.requests().len() == 2);

    let status = admin.status();
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(status["pid"], subak.pid());
    assert_eq!(status["generation"], 1);
    assert_eq!(status["workers"], 1);
    assert_eq!(status["stopping"], false);
    let listener = &status["listeners"][0];
    assert_eq!(listener["name"], "web");
    assert_eq!(listener["addresses"], json!([subak.address()]));
    assert_eq!(listener["accepted"], 5);
    assert_eq!(
        (&listener["requests"]["2xx"], &listener["requests"]["4xx"]),
        (&json!(3), &json!(1))
    );
    assert_eq!(listener["failures"], json!({ "bad_head": 1 }));
    let pool = &status["pools"][0];
    assert_eq!((&pool["name"], &pool["algorithm"]), (&json!("app"), &json!("round_robin")));
    assert_eq!((&pool["eligible"], &pool["because"]), (&json!(2), &json!("primaries are ready")));
    assert_eq!(pool["requests"]["2xx"], 3);
    let hits: Vec<_> = endpoints(&status).map(|endpoint| endpoint["hits"].clone()).collect();
    assert_eq!(hits, [2, 2]);
    let in_flight: Vec<_> =
        endpoints(&status).map(|endpoint| endpoint["in_flight"].clone()).collect();
    assert_eq!(in_flight, [0, 1]);
    for endpoint in endpoints(&status) {
        assert_eq!(endpoint["state"], "ready");
        assert_eq!(endpoint["reason"], "nothing is held against it");
        assert_eq!(endpoint["eligible"], true);
        assert_eq!(endpoint["tier"], "primary");
        assert!(endpoint["state_for_s"].as_f64().is_some_and(|s| (0.0..600.0).contains(&s)));
        let weight = json!({
            "configured": 1, "operator": null, "weigher": 1.0, "agent": 1.0, "slow_start": 1.0,
            "in_force": 1,
        });
        assert_eq!(endpoint["weight"], weight);
    }
    let head = admin.ask("HEAD", "/v1/status", "");
    assert_eq!(head.status, 200);
    let one = admin.endpoint(&one.address());
    assert_eq!(one["identity"], format!("http://{}", one["address"].as_str().expect("text")));
    assert_eq!(one["hits"], 2);
}

#[test]
fn the_status_counts_routes_bytes_and_how_long_answers_took() {
    let endpoint = Endpoint::scripted(|served| {
        while served.request().is_some() {
            std::thread::sleep(std::time::Duration::from_millis(20));
            served.send(crate::support::ok("done"));
        }
    });
    let routes = "[[listener.web.route]]\nhost = \"a.example\"\npath = \"/a\"\npool = \"app\"\n\
        [[listener.web.route]]\npath = \"/b\"\nredirect = { to = \"/c{path}\", status = 307 }\n";
    let setup = Setup::before(&[&endpoint]).tail(routes);
    let subak = setup.start();
    let admin = Admin::of(&subak);
    assert_eq!(endpoints(&admin.status()).next().expect("one")["latency"], Value::Null);
    for path in ["/b/1", "/b/2", "/", "/b/3", "/c"] {
        assert!([200, 307].contains(&subak.get(path).0), "{path}");
    }
    let routes = |status: &Value| {
        let routes = status["listeners"][0]["routes"].as_array().expect("routes").clone();
        let text = |route: &Value| format!("{} {}", route["match"], route["action"]);
        let hits = |route: &Value| route["hits"].as_u64().expect("hits");
        routes.iter().map(|route| (route["index"].as_u64(), text(route), hits(route))).collect()
    };
    let text = |matches: &str, action: &str| format!("{matches:?} {action:?}");
    let expected = [
        (Some(1), text("host a.example, path begins with /a", "pool app"), 0),
        (Some(2), text("path begins with /b", "redirect 307 to /c{path}"), 3),
        (None, text("everything else", "pool app"), 2),
    ];
    let counted: Vec<_> = routes(&admin.status());
    assert_eq!(counted, expected);
    let status = admin.status();
    assert_eq!(status["listeners"][0]["protocols"], json!(["h2", "http/1.1"]));
    let pool = &status["pools"][0];
    assert_eq!(pool["hits"], 2);
    let bytes = |name: &str| pool[name].as_u64().expect("bytes");
    assert!((20..2000).contains(&bytes("bytes_in")), "{pool:#}");
    assert!((20..2000).contains(&bytes("bytes_out")), "{pool:#}");
    let latency = &pool["endpoints"][0]["latency"];
    for quantile in ["p50_ms", "p90_ms", "p99_ms"] {
        let ms = latency[quantile].as_f64().expect("a number");
        assert!((16.0..2000.0).contains(&ms), "{latency}");
    }

    // The routes in another order, one more, and one gone: each keeps its count.
    let more = "[[listener.web.route]]\npath = \"/b\"\nredirect = { to = \"/c{path}\", status = 307 }\n\
        [[listener.web.route]]\npath = \"/d\"\nrespond = { status = 204 }\n";
    let again = Setup::before(&[&endpoint]).bind(subak.address()).tail(more);
    subak.write_config(&again.text());
    subak.signal("HUP");
    subak.wait_for_log("configuration reloaded generation=2\n");
    let expected = [
        (Some(1), text("path begins with /b", "redirect 307 to /c{path}"), 3),
        (Some(2), text("path begins with /d", "answer 204"), 0),
        (None, text("everything else", "pool app"), 2),
    ];
    let counted: Vec<_> = routes(&admin.status());
    assert_eq!(counted, expected);
}

fn endpoints(status: &Value) -> impl Iterator<Item = &Value> {
    status["pools"][0]["endpoints"].as_array().expect("endpoints").iter()
}

#[test]
fn an_endpoint_that_refuses_is_shown_to_be_left_out_and_why_not_served() {
    let dead = crate::support::fresh_address();
    let subak = Setup::before_addresses([dead.clone()]).start();
    let admin = Admin::of(&subak);
    assert_eq!(subak.get("/").0, 502);
    let endpoint = admin.endpoint(&dead);
    assert!(endpoint["failures"].as_u64().is_some_and(|count| count >= 1), "{endpoint:#}");
    assert_eq!(endpoint["state"], "back_off", "{endpoint:#}");
    let why = endpoint["reason"].as_str().expect("a reason");
    assert!(why.starts_with("in back-off: the endpoint cannot be reached: "), "{why}");
    let problems = admin.status()["problems"].to_string();
    assert!(problems.contains(&format!("app {dead}")), "{problems}");
    assert_eq!(admin.status()["listeners"][0]["failures"], json!({ "connect": 1 }));
}

#[test]
fn the_socket_is_for_its_owner_alone_whatever_the_umask() {
    let endpoint = Endpoint::named("one");
    let directory = fresh_directory();
    let path = directory.join("admin.sock");
    let setup = Setup::before(&[&endpoint]).top(&socket(&path));
    let everything = ["sh", "-c", "umask 0; exec \"$@\"", "sh"];
    let address = fresh_address();
    let text = setup.bind(&address).text();
    let mut subak = Subak::spawn_with(&everything, &text, &address).ready(&text);
    assert_eq!(mode(&path), 0o600);
    assert_eq!(*Admin::of(&subak).socket(), path);
    subak.signal("TERM");
    assert!(subak.wait_for_exit().success());
    assert!(!path.exists(), "it goes with its instance");
}

#[test]
fn a_second_instance_starts_and_is_asked_elsewhere_or_not_at_all() {
    let endpoint = Endpoint::named("one");
    let first = Setup::before(&[&endpoint]).start();
    let second = Setup::before(&[&endpoint]).workers(2).start();
    let (of_first, of_second) = (Admin::of(&first), Admin::of(&second));
    assert_ne!(of_first.socket(), of_second.socket());
    assert_eq!(of_first.status()["pid"], first.pid());
    assert_eq!(of_second.status()["pid"], second.pid());

    let directory = fresh_directory();
    let line = socket(&directory.join("admin.sock"));
    let owner = Setup::before(&[&endpoint]).top(&line).start();
    let other = Setup::before(&[&endpoint]).top(&line).start();
    assert!(other.log().contains("there is no Admin API"), "{}", other.log());
    assert_eq!(other.get("/").0, 200, "it serves all the same");
    assert_eq!(Admin::of(&owner).status()["pid"], owner.pid());
    drop(owner);
    other.signal("HUP");
    other.wait_for_log("the Admin API is open");
    assert_eq!(Admin::of(&other).status()["pid"], other.pid(), "a reload tries again");
}

#[test]
fn a_socket_left_behind_is_replaced() {
    let endpoint = Endpoint::named("one");
    let directory = fresh_directory();
    let path = directory.join("admin.sock");
    let setup = Setup::before(&[&endpoint]).top(&socket(&path));
    drop(setup.start());
    assert!(path.exists(), "it was killed and could not remove it");
    let subak = setup.start();
    assert_eq!(Admin::of(&subak).status()["pid"], subak.pid());
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn it_can_be_switched_off_moved_and_switched_on_by_a_reload() {
    let endpoint = Endpoint::named("one");
    let directory = fresh_directory();
    let path = directory.join("admin.sock");
    let address = fresh_address();
    let setup = |line: &str| Setup::before(&[&endpoint]).bind(&address).top(line);
    let subak = setup("admin = false").start();
    assert!(!subak.log().contains("the Admin API is open"), "{}", subak.log());
    let reload = |line: &str, generation: u32| {
        subak.write_config(&setup(line).text());
        subak.signal("HUP");
        subak.wait_for_log(&format!("configuration reloaded generation={generation}\n"));
    };
    reload(&socket(&path), 2);
    assert_eq!(Admin::of(&subak).status()["generation"], 2);
    let moved = directory.join("moved.sock");
    reload(&socket(&moved), 3);
    assert!(!path.exists());
    assert_eq!(Admin::of(&subak).status()["reloads"], 2);
    reload("admin = false", 4);
    assert!(!moved.exists());
    assert_eq!(subak.get("/").0, 200);
}

#[test]
fn what_cannot_be_answered_is_refused_with_a_way_out() {
    let endpoint = Endpoint::named("one");
    let subak = Setup::before(&[&endpoint]).start();
    let admin = Admin::of(&subak);
    let address = endpoint.address();
    let path = crate::support::admin::path(&address);
    let refused = |method: &str, path: &str, body: &str, status: u16| {
        admin.refused((method, path, body), status)
    };
    let (error, hint) = refused("GET", "/v1/stats", "", 404);
    assert!(error.contains("/v1/stats") && hint.contains("/v1/status"), "{error} {hint}");
    refused("POST", "/v1/status", "", 405);
    refused("POST", &path, "", 405);
    let (_, hint) = refused("PATCH", &path, "{\"state\":\"drian\"}", 400);
    assert_eq!(hint, "did you mean \"drain\"?");
    refused("PATCH", &path, "{\"state\":", 400);
    refused("PATCH", &path, &" ".repeat(5000), 413);
    let (error, hint) = refused("GET", "/v1/pools/ap/endpoints/x", "", 404);
    assert_eq!((&*error, &*hint), ("there is no pool \"ap\"", "did you mean \"app\"?"));
    let near = &address[..address.len() - 1];
    let (_, hint) = refused("PATCH", &crate::support::admin::path(near), "{\"weight\":2}", 404);
    assert_eq!(hint, format!("did you mean {address:?}?"));
    assert_eq!(admin.endpoint(&address)["weight"]["in_force"], 1, "nothing was changed");
    let mut client = admin.client();
    client.send("GET /v1/status HTTP/1.1\r\nX: ");
    client.send("x".repeat(64 * 1024));
    assert_eq!(client.answer().status, 431);
}

#[test]
fn readers_that_never_read_hurt_neither_traffic_nor_for_long_other_readers() {
    let endpoint = Endpoint::named("one");
    let subak = Setup::before(&[&endpoint]).start();
    let admin = Admin::of(&subak);
    let ask = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100);
    // As many as are served at a time.
    let mut deaf: Vec<UnixStream> = (0..64)
        .map(|_| {
            let mut stream = UnixStream::connect(admin.socket()).expect("connect");
            stream.set_nonblocking(true).expect("nonblocking");
            let _ = stream.write(ask.as_bytes());
            stream
        })
        .collect();
    let mut client = subak.client();
    for _ in 0..200 {
        assert_eq!(client.get("/").status, 200);
    }
    assert!(subak.resident_kib() < 128 * 1024, "{} KiB", subak.resident_kib());
    // Who takes nothing for ten seconds is cut off, and makes room.
    assert_eq!(admin.status()["pid"], subak.pid());
    deaf.clear();
}
