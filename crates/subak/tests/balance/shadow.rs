//! Shadows at work: what other algorithms would have chosen of real traffic, wherever that is shown,
//! and over reloads and changes of health.

use std::process::Command;

use crate::support::{Admin, Endpoint, Scrape, Setup, Subak, wait_until};
use serde_json::Value;

/// What a command of the running binary prints.
#[track_caller]
fn said(admin: &Admin, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_subak"))
        .args(&arguments[..1])
        .arg("--socket")
        .arg(admin.socket())
        .args(&arguments[1..])
        .env("NO_COLOR", "1")
        .env("LC_ALL", "C.UTF-8")
        .output()
        .expect("subak");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn four() -> [Endpoint; 4] {
    ["one", "two", "three", "four"].map(Endpoint::named)
}

/// The shadow at this place of the only pool.
fn shadow(admin: &Admin, place: usize) -> Value {
    admin.status()["pools"][0]["shadows"]["algorithms"][place].take()
}

/// What it has chosen, by endpoint.
fn hits(shadow: &Value) -> Vec<u64> {
    let endpoints = shadow["endpoints"].as_array().into_iter().flatten();
    endpoints.filter_map(|endpoint| endpoint["hits"].as_u64()).collect()
}

fn send(subak: &Subak, requests: usize) {
    let mut client = subak.client();
    (0..requests).for_each(|_| assert_eq!(client.get("/").status, 200));
}

const SHADOWS: &str = r#"
balance = "random"
shadow = ["round_robin", "random", { algorithm = "hash", key = "header:X-Tenant", method = "ring" }]
"#;

#[test]
fn twelve_thousand_requests_would_be_three_thousand_each_and_everybody_is_told() {
    let endpoints = four();
    let subak = Setup::before(&endpoints.each_ref())
        .workers(2)
        .listener("limits = { requests_per_connection = \"unlimited\" }")
        .pool(SHADOWS)
        .start();
    let admin = Admin::of(&subak);
    std::thread::scope(|scope| {
        (0..4).for_each(|_| _ = scope.spawn(|| send(&subak, 3000)));
    });
    let in_turn = shadow(&admin, 0);
    assert_eq!(hits(&in_turn), [3000; 4], "{in_turn}");
    assert_eq!((&in_turn["decisions"], &in_turn["refusals"]), (&12_000.into(), &0.into()));
    assert_eq!(in_turn["imbalance"], 1.0);
    let agreement = in_turn["agreement"].as_f64().expect("a share");
    assert!((0.2..0.3).contains(&agreement), "{in_turn}");
    // The pool's own, drawing by the same words; and one by a key that no request has.
    assert_eq!(shadow(&admin, 1)["agreement"], 1.0);
    assert_eq!(shadow(&admin, 1)["imbalance"], shadow(&admin, 1)["pool_imbalance"]);
    let keyed = shadow(&admin, 2);
    assert_eq!(keyed["name"], "hash key=header:X-Tenant method=ring");
    assert_eq!(hits(&keyed), [3000; 4], "without a key in turn: {keyed}");

    let mut client = subak.client();
    for _ in 0..40 {
        client.send("GET / HTTP/1.1\r\nHost: a\r\nX-Tenant: blue\r\n\r\n");
        assert_eq!(client.answer().status, 200);
    }
    let now = hits(&shadow(&admin, 2));
    assert_eq!(now.iter().filter(|hits| **hits == 3040).count(), 1, "one for one key: {now:?}");

    let scrape = Scrape::parse(&admin.ask("GET", "/metrics", "").text());
    let labels = [("pool", "app"), ("shadow", "round_robin")];
    let value = |name: &str| scrape.value(&format!("subak_pool_shadow_{name}"), &labels);
    assert_eq!(value("decisions_total"), 12_040.0);
    assert_eq!((value("refusals_total"), value("stopped")), (0.0, 0.0));
    assert!((0.2..0.3).contains(&(value("agreements_total") / 12_040.0)));
    assert_eq!(scrape.sum("subak_pool_shadow_hits_total", ("shadow", "round_robin")), 12_040.0);
    let of = |of| [labels[0], labels[1], ("of", of)];
    assert_eq!(scrape.value("subak_pool_shadow_imbalance_ratio", &of("shadow")), 1.0);
    assert!(scrape.value("subak_pool_shadow_imbalance_ratio", &of("pool")) > 1.0);

    let status = said(&admin, &["ctl", "status"]);
    let rows = status.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut rows = rows.filter(|words| words.starts_with(&["app", "round_robin"]));
    assert_eq!(rows.next().expect(&status)[3..6], ["12,040", "0", "1.00"], "{status}");
    assert!(status.contains("agreement is not a forecast"), "{status}");
    let shown = said(&admin, &["ctl", "endpoints", "app"]);
    assert!(shown.contains("agreement is not a forecast"), "{shown}");
    let top = said(&admin, &["top", "--once"]);
    let row = top.lines().find(|line| line.contains("shadow round_robin:")).expect(&top);
    assert!(row.contains("of 12,040; imbalance 1.00, pool's 1."), "{row}");
    // As wide as it is where no terminal says how wide that is.
    assert!(top.lines().all(|line| line.chars().count() <= 100), "{top}");
}

#[test]
fn a_reload_goes_on_counting_and_changes_of_health_reach_shadows() {
    let endpoints = four();
    let with = |shadows: &str, balance: &str| {
        Setup::before(&endpoints.each_ref())
            .pool(&format!("balance = \"{balance}\"\nshadow = {shadows}"))
    };
    let setup = with("[\"round_robin\"]", "least_connections");
    let subak = setup.start();
    let admin = Admin::of(&subak);
    send(&subak, 40);
    assert_eq!(hits(&shadow(&admin, 0)), [10; 4]);
    let reload = |shadows: &str, balance: &str, generation: u64| {
        let text = with(shadows, balance).text();
        let bound = format!("bind = {:?}", subak.address());
        let bind = text.lines().find(|line| line.starts_with("bind")).expect("an address");
        subak.write_config(&text.replace(bind, &bound));
        subak.signal("HUP");
        wait_until("it is in force", || admin.status()["generation"] == generation);
    };
    // What stays goes on; what comes begins.
    reload("[\"first\", \"round_robin\"]", "least_connections", 2);
    send(&subak, 40);
    assert_eq!(hits(&shadow(&admin, 1)), [20; 4]);
    assert_eq!(hits(&shadow(&admin, 0)), [40, 0, 0, 0]);
    // Who drains is nobody's choice any more.
    admin.patch(&endpoints[0].address(), r#"{"state":"drain"}"#);
    send(&subak, 30);
    assert_eq!(hits(&shadow(&admin, 1)), [20, 30, 30, 30]);
    assert_eq!(hits(&shadow(&admin, 0)), [40, 30, 0, 0]);
    assert_eq!(shadow(&admin, 1)["imbalance"], 1.0, "of those that take new work");
    // Agreement with another algorithm is another figure.
    reload("[\"first\", \"round_robin\"]", "round_robin", 3);
    assert_eq!(shadow(&admin, 1)["decisions"], 0);
    assert_eq!(shadow(&admin, 1)["agreement"], Value::Null);
    send(&subak, 9);
    assert_eq!(shadow(&admin, 1)["agreement"], 1.0);
    reload("[]", "round_robin", 4);
    assert_eq!(admin.status()["pools"][0]["shadows"], Value::Null);
}

#[test]
fn explain_tells_what_shadows_would_choose_live_and_by_a_configuration() {
    let endpoints = four();
    let subak = Setup::before(&endpoints.each_ref())
        .pool("balance = \"first\"\nshadow = [\"round_robin\", \"first\"]")
        .start();
    let admin = Admin::of(&subak);
    send(&subak, 2);
    let url = format!("http://{}/", subak.address());
    let explained = said(&admin, &["explain", &url]);
    let expected = format!(
        "shadow    round_robin would choose {}\nshadow    first would choose the same, {}\n",
        endpoints[2].address(),
        endpoints[0].address()
    );
    assert!(explained.contains(&expected), "{explained}");
    assert!(explained.contains("agreement is not a forecast"), "{explained}");
    assert_eq!(shadow(&admin, 0)["decisions"], 2, "asking counts nothing");
    let config = subak.directory().join("subak.toml");
    let config = config.to_str().expect("a path");
    let offline = Command::new(env!("CARGO_BIN_EXE_subak"))
        .args(["explain", "--config", config, "--json", &url])
        .output()
        .expect("subak");
    let told: Value = serde_json::from_slice(&offline.stdout).expect("JSON");
    let picked = &told["pool"]["shadows"][0];
    assert_eq!(
        (&picked["name"], &picked["picked"]),
        (&"round_robin".into(), &endpoints[0].address().into())
    );
}
