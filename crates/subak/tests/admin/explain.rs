//! `subak explain`, by a configuration and of what runs: the whole text, the JSON, the errors.

use std::process::Command;

use crate::support::{Admin, Endpoint, Setup, Subak, admin, wait_until};
use serde_json::{Value, json};

/// Exit status, standard output, standard error.
fn explain(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_subak"))
        .arg("explain")
        .args(arguments)
        .env("NO_COLOR", "1")
        .output()
        .expect("subak explain");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().expect("an exit status"), text(&output.stdout), text(&output.stderr))
}

/// The same of this process; it goes well.
#[track_caller]
fn explain_live(subak: &Subak, arguments: &[&str]) -> String {
    let admin = Admin::of(subak);
    let socket = admin.socket().to_str().expect("a path").to_owned();
    let (status, text, error) = explain(&[&["--socket", &socket], arguments].concat());
    assert_eq!((status, &*error), (0, ""), "{text}");
    text
}

/// A configuration in a directory of its own.
fn file(text: &str) -> String {
    let path = crate::support::fresh_directory().join("subak.toml");
    std::fs::write(&path, text).expect("written");
    path.to_str().expect("a path").to_owned()
}

const SHOP: &str = r#"
[listener.web]
bind = "0.0.0.0:8080"
pool = "app"

[[listener.web.route]]
host = "api.example.com"
path = { prefix = "/v2/" }
pool = "api"

[[listener.web.route]]
path = "/old"
redirect = "https://{host}/new"

[pool.app]
balance = "round_robin"
endpoints = ["10.0.0.2:80", "10.0.0.3:80 weight=2", "10.0.0.4:80 state=drain", "10.0.0.5:80 backup=true"]
request_headers = { set = { X-Env = "prod" } }

[pool.api]
balance = { algorithm = "hash", key = "header:X-Tenant", method = "maglev" }
endpoints = ["10.0.1.2:80", "10.0.1.3:80", "10.0.1.4:80 weight=0"]
"#;

#[test]
fn a_configuration_says_where_a_request_would_go_and_why() {
    let path = file(SHOP);
    let (status, text, error) =
        explain(&["--config", &path, "http://shop.example.com:8080/v2/x", "--client", "192.0.2.7"]);
    assert_eq!((status, &*error), (0, ""));
    let expected = "\
GET http://shop.example.com:8080/v2/x from 192.0.2.7

listener  web: it listens at this port
route     1         came close      fails: host api.example.com, path begins with /v2/ -> pool api
route     2         does not match  fails: path begins with /old -> redirect 302 to https://shop.example.com/new
route     own pool  takes it        everything -> pool app
change    request: X-Env is set to prod
pool      app: round_robin; primaries are ready
ticket    the next is 0; another request may take it first

     endpoint     weight  in flight  score
     10.0.0.2:80       1          0      1
  >  10.0.0.3:80       2          0      0
     10.0.0.4:80       1          0         drain: set to drain by the configuration
     10.0.0.5:80       1          0         a backup, and primaries are ready

score     picks until its turn, fewest first
ties      no two are equal
result    to 10.0.0.3:80

From the configuration alone: every endpoint is taken to be ready unless it says otherwise, and nothing to be under way. Ask the process that serves (without --config) how it is now.
";
    assert_eq!(text, expected);
}

#[test]
fn a_key_decides_and_is_told() {
    let path = file(SHOP);
    let ask = |tenant: &str| {
        let header = format!("X-Tenant: {tenant}");
        let url = "http://api.example.com:8080/v2/x";
        let (status, text, error) = explain(&["--config", &path, url, "-H", &header, "--json"]);
        assert_eq!((status, &*error), (0, ""));
        serde_json::from_str::<Value>(&text).expect("JSON")
    };
    let told = ask("blue");
    assert_eq!(told["pool"]["key"], json!({ "source": "header:X-Tenant", "value": "blue" }));
    assert_eq!(told["pool"]["by"], "algorithm");
    assert_eq!(told["is_live"], false);
    assert_eq!(told["routes"][0]["verdict"], "taken");
    assert_eq!(told["routes"][2]["verdict"], "late");
    assert_eq!(told["pool"]["candidates"][2]["excluded"], "its weight is 0");
    let picked = |told: &Value| told["pool"]["picked"].as_str().expect("an endpoint").to_owned();
    assert_eq!(told["outcome"], json!({ "is": "sent", "endpoint": picked(&told) }));
    assert_eq!(picked(&ask("blue")), picked(&told));
    let others: Vec<_> = (0..20).map(|number| picked(&ask(&number.to_string()))).collect();
    assert!(others.iter().any(|other| *other != picked(&told)), "{others:?}");
}

#[test]
fn what_is_answered_here_is_told_with_its_reason() {
    let path = file(SHOP);
    let result = |more: &[&str]| {
        let (status, text, error) = explain(&[&["--config", &path], more].concat());
        assert_eq!((status, &*error), (0, ""));
        let result = text.lines().find(|line| line.starts_with("result")).expect("a result");
        result.to_owned()
    };
    let url = "http://shop.example.com:8080";
    let old = format!("{url}/old");
    assert_eq!(result(&[&old]), "result    answered 302: the route sends the client elsewhere");
    let refused = result(&["-X", "CONNECT", url]);
    assert!(refused.starts_with("result    answered 4"), "{refused}");
}

#[test]
fn what_cannot_be_asked_says_why_and_what_to_do() {
    let path = file(SHOP);
    let wrong = |more: &[&str]| {
        let (status, text, error) = explain(&[&["--config", &path], more].concat());
        assert_eq!((status, &*text), (2, ""), "{error}");
        error
    };
    let error = wrong(&["http://shop.example.com:81/"]);
    assert!(error.contains("no listener takes http at shop.example.com, port 81"), "{error}");
    assert!(error.contains("web (http at 0.0.0.0:8080)"), "{error}");
    assert!(wrong(&["ftp://shop.example.com/"]).contains("neither http nor https"));
    assert!(wrong(&["http://a:8080/", "--client", "me"]).contains("no address"));
    assert!(wrong(&["http://a:8080/", "-H", "nonsense"]).contains("Name: value"));
    assert!(wrong(&["http://a:8080/", "--listener", "x"]).contains("no listener \"x\""));
    assert!(wrong(&["--recent", "http://a/"]).contains("error"));
    let (status, _, error) = explain(&["--socket", "/nowhere/at.sock", "http://a/"]);
    assert_eq!(status, 1, "{error}");
}

#[test]
fn what_runs_is_explained_as_it_is_and_nothing_changes_by_it() {
    let (one, two) = (Endpoint::named("one"), Endpoint::named("two"));
    let subak = Setup::before(&[&one, &two]).start();
    let url = format!("http://{}/", subak.address());
    let picked = || {
        let told: Value = serde_json::from_str(&explain_live(&subak, &[&url, "--json"])).unwrap();
        assert_eq!((&told["is_live"], &told["generation"]), (&json!(true), &json!(1)));
        told["pool"]["picked"].as_str().expect("an endpoint").to_owned()
    };
    let mut client = subak.client();
    let name = |address: &str| if address == one.address() { "one" } else { "two" };
    for _ in 0..4 {
        let explained = picked();
        assert_eq!(picked(), explained, "asking changes nothing");
        assert_eq!(client.get("/").text(), name(&explained));
    }
    Admin::of(&subak).patch(&one.address(), r#"{"state": "maintenance"}"#);
    wait_until("one is out", || picked() == two.address());
    let text = explain_live(&subak, &[&url]);
    assert!(text.contains("maintenance: set to maintenance by the API"), "{text}");
    assert!(text.contains(&format!("result    to {}", two.address())), "{text}");
}

#[test]
fn the_latest_picks_tell_which_endpoint_fails_which_client() {
    let good = Endpoint::named("good");
    let gone = crate::support::fresh_address();
    let setup = Setup::before_addresses([good.address(), gone.clone()])
        .listener("decision_header = \"X-Subak-Decision\"\ntrusted_proxies = [\"127.0.0.0/8\"]")
        .pool(
            "balance = { algorithm = \"hash\", key = \"source\" }\npick_log = 100\n\
             retry = { attempts = 1, on = [] }\nback_off = { initial = \"1ms\", max = \"1ms\" }",
        );
    let subak = setup.start();
    let mut client = subak.client();
    let mut ask = |number: u8| {
        let fields = format!("X-Forwarded-For: 192.0.2.{number}\r\n");
        client.send(format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
        let answer = client.answer_to("GET");
        let id = answer.field("x-subak-decision").expect("an id").to_owned();
        (answer.status, id)
    };
    let answers: Vec<_> = (1..=20).map(&mut ask).collect();
    let unlucky = answers.iter().position(|(status, _)| *status == 502).expect("a 502");
    let (_, id) = &answers[unlucky];
    let from = format!("192.0.2.{}", unlucky + 1);

    let listed = explain_live(&subak, &["--recent", "--from", &from]);
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines.len() == 2 && lines[0].starts_with("decision"), "{listed}");
    let is_told = [&**id, &*from, &*gone, "algorithm", "cannot be reached"];
    assert!(is_told.iter().all(|part| lines[1].contains(part)), "{listed}");

    let text = explain_live(&subak, &["--id", id]);
    for part in [&*format!("client    {from}"), "replayed  the same", "cannot be reached", &gone] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let all: Value = serde_json::from_str(&explain_live(&subak, &["--recent", "--json"])).unwrap();
    let picks = all["picks"].as_array().expect("picks");
    assert_eq!(picks.len(), 20);
    assert!(picks.iter().all(|pick| pick["replays"] == true), "{all:#}");
    let status = |endpoint: &str| {
        let of = picks.iter().filter(|pick| pick["endpoint"] == endpoint);
        of.map(|pick| pick["status"].clone()).collect::<Vec<_>>()
    };
    assert!(status(&good.address()).iter().all(|status| *status == 200), "{all:#}");
    assert!(status(&gone).iter().all(Value::is_null) && !status(&gone).is_empty(), "{all:#}");

    // Names are those of then, after a reload too.
    subak.write_config(&setup.text().replace(&gone, "127.0.0.1:9"));
    subak.signal("HUP");
    subak.wait_for_log("configuration reloaded generation=2");
    assert!(explain_live(&subak, &["--id", id]).contains(&gone));
}

#[test]
fn who_has_no_log_is_told_how_to_have_one() {
    let one = Endpoint::named("one");
    let subak = Setup::before(&[&one]).start();
    let socket = Admin::of(&subak).socket().to_str().expect("a path").to_owned();
    let (status, text, error) = explain(&["--socket", &socket, "--recent"]);
    assert_eq!((status, &*text), (2, ""));
    assert!(error.contains("`subak ctl picks app 1000`"), "{error}");
    assert!(error.contains("under [pool.app]: pick_log = 1000"), "{error}");
    let (status, _, error) = explain(&["--socket", &socket, "--recent", "--pool", "ap"]);
    assert_eq!(status, 2);
    assert!(error.contains("there is no pool \"ap\"") && error.contains("\"app\""), "{error}");
}

#[test]
fn a_log_is_switched_on_and_off_while_it_runs() {
    let (one, two) = (Endpoint::named("one"), Endpoint::named("two"));
    let subak = Setup::before(&[&one, &two]).workers(2).start();
    let api = Admin::of(&subak);
    let picks = || admin::json(&api.ask("GET", "/v1/picks?pool=app&n=100", ""), 200);
    let keep = |body: &str| admin::json(&api.ask("PATCH", "/v1/pools/app", body), 200);
    let mut client = subak.client();
    client.get("/before");
    assert_eq!(picks()["pools_without_log"], json!(["app"]));
    keep(r#"{"pick_log": 8}"#);
    for _ in 0..20 {
        assert_eq!(client.get("/").status, 200);
    }
    let told = picks();
    assert_eq!(told["pools_with_log"], json!(["app"]));
    let kept = told["picks"].as_array().expect("picks");
    assert_eq!(kept.len(), 8, "{told:#}");
    for pair in kept.windows(2) {
        assert_ne!(pair[0]["endpoint"], pair[1]["endpoint"], "they take turns: {told:#}");
    }
    let listed = explain_live(&subak, &["--recent"]);
    assert_eq!(listed.lines().count(), 9, "{listed}");
    assert!(listed.contains(&one.address()) && listed.contains(&two.address()), "{listed}");
    // A smaller one keeps the latest; none forgets them.
    keep(r#"{"pick_log": 3}"#);
    let fewer = picks();
    let (fewer, latest) = (fewer["picks"].as_array().expect("picks"), &kept[..3]);
    assert_eq!(fewer.len(), 3);
    let tickets =
        |picks: &[Value]| picks.iter().map(|one| one["ticket"].clone()).collect::<Vec<_>>();
    assert_eq!(tickets(fewer), tickets(latest));
    keep(r#"{"pick_log": null}"#);
    assert_eq!(picks()["pools_without_log"], json!(["app"]));
}

#[test]
fn the_api_refuses_what_is_no_question() {
    let one = Endpoint::named("one");
    let subak = Setup::before(&[&one]).start();
    let api = Admin::of(&subak);
    for (body, status) in [("", 400), ("{}", 400), (r#"{"url": "ftp://a/"}"#, 422)] {
        api.refused(("POST", "/v1/explain", body), status);
    }
    api.refused(("GET", "/v1/explain", ""), 405);
    api.refused(("GET", "/v1/picks?n=0", ""), 400);
    api.refused(("GET", "/v1/picks?pool=none", ""), 404);
    let url = format!("http://{}/", subak.address());
    let told =
        admin::json(&api.ask("POST", "/v1/explain", &json!({ "url": url }).to_string()), 200);
    assert_eq!(told["outcome"], json!({ "is": "sent", "endpoint": one.address() }));
    let picks = admin::json(&api.ask("GET", "/v1/picks", ""), 200);
    let nothing = json!({ "picks": [], "pools_with_log": [], "pools_without_log": ["app"] });
    assert_eq!(picks, nothing);
}
