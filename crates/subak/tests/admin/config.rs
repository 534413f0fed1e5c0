//! The configuration in force, changed by API: endpoints that come and go, what reloads leave of that,
//! what is saved, and the way back.

use crate::support::admin::{json as read, path};
use crate::support::{Admin, Endpoint, Setup, Subak, wait_until};
use serde_json::{Value, json};

/// Endpoints of the pool `app` by name, each with where it comes from.
fn endpoints(admin: &Admin) -> Vec<(String, String)> {
    let pool = read(&admin.ask("GET", "/v1/pools/app", ""), 200);
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let list = pool["endpoints"].as_array().expect("a list");
    list.iter().map(|one| (text(&one["name"]), text(&one["source"]))).collect()
}

fn names(admin: &Admin) -> Vec<String> {
    endpoints(admin).into_iter().map(|(name, _)| name).collect()
}

fn add(admin: &Admin, text: &str) -> Value {
    let body = json!({ "endpoint": text }).to_string();
    read(&admin.ask("POST", "/v1/pools/app/endpoints", &body), 201)
}

fn post(admin: &Admin, path: &str, body: &str) -> Value {
    read(&admin.ask("POST", path, body), 200)
}

fn config(admin: &Admin) -> Value {
    read(&admin.ask("GET", "/v1/config", ""), 200)
}

fn file(subak: &Subak) -> String {
    std::fs::read_to_string(subak.directory().join("subak.toml")).expect("the file")
}

#[test]
fn an_endpoint_that_is_added_serves_survives_reloads_and_goes_when_it_is_removed() {
    let (one, two) = (Endpoint::named("one"), Endpoint::named("two"));
    let setup = Setup::before(&[&one]);
    let subak = setup.start();
    let admin = Admin::of(&subak);
    let told = add(&admin, &format!("{}  weight=3", two.address()));
    assert_eq!((&told["source"], &told["weight"]["configured"]), (&json!("api"), &json!(3)));
    let answers: Vec<String> = (0..4).map(|_| subak.get("/").1).collect();
    assert_eq!(answers.iter().filter(|answer| *answer == "two").count(), 3);
    let changes = &config(&admin)["changes"];
    assert_eq!((&changes[0]["what"], changes.as_array().map(Vec::len)), (&json!("added"), Some(1)));
    assert!(changes[0]["by"].as_str().expect("by").starts_with("uid "), "{changes}");

    let body = json!({ "endpoint": two.address() }).to_string();
    let again = admin.refused(("POST", "/v1/pools/app/endpoints", &body), 409);
    assert!(again.0.contains("already"), "{again:?}");

    subak.signal("HUP");
    subak.wait_for_log("configuration reloaded generation=3\n");
    let both = [(one.address(), "file".to_owned()), (two.address(), "api".to_owned())];
    assert_eq!(endpoints(&admin), both);

    read(&admin.ask("DELETE", &path(&two.address()), ""), 200);
    read(&admin.ask("DELETE", &path(&one.address()), ""), 200);
    assert!(endpoints(&admin).is_empty());
    assert_eq!(subak.get("/").0, 503);
    let post = post(&admin, "/v1/config/reload", "");
    assert_eq!(post["changed"], false);
    assert!(endpoints(&admin).is_empty(), "the file lists it, and it stays away");
    read(&admin.ask("DELETE", "/v1/config/changes", ""), 200);
    assert_eq!(names(&admin), [one.address()]);
    assert_eq!(config(&admin)["differs_from_file"], false);
}

#[test]
fn what_cannot_be_added_is_refused_with_its_place() {
    let one = Endpoint::named("one");
    let subak = Setup::before(&[&one]).start();
    let admin = Admin::of(&subak);
    for text in ["10.0.0.1", "10.0.0.5:80 wieght=2", "app.internal:80", "", "10.0.0.5:80\n[x]"] {
        let body = json!({ "endpoint": text }).to_string();
        let answer = read(&admin.ask("POST", "/v1/pools/app/endpoints", &body), 422);
        assert!(answer["diagnostics"][0]["message"].is_string(), "{text}: {answer}");
    }
    let body = r#"{"endpoint": "10.0.0.5:80"}"#;
    let (error, hint) = admin.refused(("POST", "/v1/pools/ap/endpoints", body), 404);
    assert_eq!((&*error, &*hint), ("there is no pool \"ap\"", "did you mean \"app\"?"));
    let (error, _) = admin.refused(("DELETE", "/v1/pools/app/endpoints/nobody", ""), 404);
    assert!(error.contains("no endpoint \"nobody\""), "{error}");
    assert_eq!(names(&admin), [one.address()]);
}

#[test]
fn an_unchanged_pool_is_not_built_again() {
    let (one, two) = (Endpoint::named("one"), Endpoint::named("two"));
    let other = format!(
        "[pool.other]\nendpoints = [{:?}]\n[[listener.web.route]]\npath = \"/o\"\npool = \"other\"\n",
        two.address()
    );
    let subak = Setup::before(&[&one]).tail(&other).start();
    let admin = Admin::of(&subak);
    let id = |pool: &str| {
        read(&admin.ask("GET", &format!("/v1/pools/{pool}"), ""), 200)["endpoints"][0]["hits"]
            .clone()
    };
    subak.get("/");
    subak.get("/o");
    add(&admin, "127.0.0.1:9 weight=0");
    assert_eq!((id("app"), id("other")), (json!(1), json!(1)));
    assert_eq!(subak.get("/").1, "one");
}

#[test]
fn changes_are_saved_where_they_belong_and_comments_stay() {
    let (one, two, three) =
        (Endpoint::named("one"), Endpoint::named("two"), Endpoint::named("three"));
    let setup = Setup::before(&[&one, &two]).pool("# how it is\nslow_start = \"1ms\" # at once");
    let subak = setup.start();
    let admin = Admin::of(&subak);
    admin.patch(&one.address(), r#"{"weight": 4}"#);
    admin.patch(&two.address(), r#"{"state": "maintenance"}"#);
    add(&admin, &three.address());
    let before = file(&subak);
    let text = admin.ask("GET", "/v1/config/text", "").text();
    let diff = admin.ask("GET", "/v1/config/diff", "").text();
    assert!(diff.contains("(on disk)") && diff.contains(" weight=4\""), "{diff}");
    assert_eq!(file(&subak), before, "nothing is written by looking");

    let saved = post(&admin, "/v1/config/save", "");
    assert_eq!(saved["files"].as_array().map(Vec::len), Some(1), "{saved}");
    let after = file(&subak);
    assert_eq!(after, text, "what is in force is what is saved");
    assert!(after.contains("# how it is\n") && after.contains("# at once\n"), "{after}");
    assert!(after.contains(&format!("{} weight=4\"", one.address())), "{after}");
    assert!(after.contains(&format!("{} state=maintenance\"", two.address())), "{after}");
    assert!(after.contains(&format!("\"{}\"]", three.address())), "{after}");
    let now = config(&admin);
    assert_eq!((&now["changes"], &now["differs_from_file"]), (&json!([]), &json!(false)));
    assert_eq!(admin.endpoint(&one.address())["weight"]["configured"], 4);
    assert_eq!(admin.endpoint(&one.address())["weight"]["operator"], Value::Null);
    assert_eq!(admin.endpoint(&two.address())["state"], "maintenance");
    assert_eq!(endpoints(&admin)[2].1, "file");
    assert_eq!(post(&admin, "/v1/config/reload", "{}")["changed"], false);

    // Somebody edits the file meanwhile.
    admin.patch(&one.address(), r#"{"weight": 9}"#);
    subak.write_config(&format!("{after}\n# by hand\n"));
    assert_eq!(config(&admin)["file_changed_on_disk"], true);
    let (error, hint) = admin.refused(("POST", "/v1/config/save", ""), 409);
    assert!(error.contains("has changed since") && hint.contains("reload"), "{error} {hint}");
    assert!(file(&subak).ends_with("# by hand\n"));
    post(&admin, "/v1/config/reload", "");
    post(&admin, "/v1/config/save", "");
    let last = file(&subak);
    assert!(last.contains(" weight=9\"") && last.ends_with("# by hand\n"), "{last}");
}

#[test]
fn a_wrong_configuration_changes_nothing_and_says_where_it_is_wrong() {
    let one = Endpoint::named("one");
    let subak = Setup::before(&[&one]).start();
    let admin = Admin::of(&subak);
    subak.write_config("[listener.web]\nbind = 7\n");
    let answer = read(&admin.ask("POST", "/v1/config/reload", ""), 422);
    let found = &answer["diagnostics"][1];
    assert_eq!((&found["line"], &found["severity"]), (&json!(2), &json!("error")), "{answer}");
    assert_eq!(subak.get("/").1, "one");
    assert_eq!(admin.status()["generation"], 1);
    let events = read(&admin.ask("GET", "/v1/events?after=0", ""), 200);
    let texts = events["events"].to_string();
    assert!(texts.contains("not reloaded"), "{texts}");
}

#[test]
fn history_tells_who_did_what_and_one_step_leads_back() {
    let (one, two) = (Endpoint::named("one"), Endpoint::named("two"));
    let first = Setup::before(&[&one]);
    let subak = first.start();
    let admin = Admin::of(&subak);
    let bad = Setup::before(&[&two]).bind(subak.address());
    subak.write_config(&bad.text());
    let reloaded = post(&admin, "/v1/config/reload", "");
    assert_eq!((&reloaded["generation"], &reloaded["changed"]), (&json!(2), &json!(true)));
    let diff = reloaded["diff"].as_str().expect("a diff");
    assert!(diff.contains(&format!("-endpoints = [\"{}\"]", one.address())), "{diff}");
    assert_eq!(subak.get("/").1, "two");
    admin.patch(&two.address(), r#"{"weight": 5}"#);

    let back = post(&admin, "/v1/config/rollback", "{}");
    assert_eq!(back["generation"], 3);
    assert_eq!(subak.get("/").1, "one");
    assert_eq!(file(&subak), bad.text(), "the file is left alone");
    assert_eq!(config(&admin)["differs_from_file"], true);
    let diff = admin.ask("GET", "/v1/config/diff", "").text();
    assert!(diff.contains(&format!("+endpoints = [\"{}\"]", one.address())), "{diff}");

    let history = read(&admin.ask("GET", "/v1/config/history", ""), 200);
    let told: Vec<(u64, &str, bool)> = history
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| {
            let cause = one["cause"].as_str().expect("a cause");
            (one["generation"].as_u64().expect("a number"), cause, one["is_current"] == true)
        })
        .collect();
    assert_eq!(told, [(3, "rollback", true), (2, "reload", false), (1, "start", false)]);
    let second = read(&admin.ask("GET", "/v1/config/history/2", ""), 200);
    assert_eq!(second["text"], bad.text());
    assert_eq!(second["diff"].as_str(), reloaded["diff"].as_str());
    assert!(second["by"].as_str().expect("by").starts_with("uid "));
    read(&admin.ask("GET", "/v1/config/history/9", ""), 404);
    let (error, hint) = admin.refused(("POST", "/v1/config/rollback", r#"{"to": 9}"#), 409);
    assert!(error.contains("generation 9") && hint.contains("3"), "{error} {hint}");

    // Saved, it is the file's; and the way is open to any generation.
    post(&admin, "/v1/config/save", "");
    assert_eq!(file(&subak), first.text());
    assert_eq!(config(&admin)["differs_from_file"], false);
    assert_eq!(post(&admin, "/v1/config/reload", "")["changed"], false);
    assert_eq!(subak.get("/").1, "one");
    post(&admin, "/v1/config/rollback", r#"{"to": 2}"#);
    assert_eq!(subak.get("/").1, "two");
}

#[test]
fn what_is_set_on_endpoints_outlives_a_rollback() {
    let (one, two) = (Endpoint::named("one"), Endpoint::named("two"));
    let subak = Setup::before(&[&one, &two]).start();
    let admin = Admin::of(&subak);
    admin.patch(&one.address(), r#"{"weight": 4}"#);
    post(&admin, "/v1/config/save", "");
    add(&admin, "127.0.0.1:9 weight=0");
    admin.patch(&two.address(), r#"{"state": "drain"}"#);
    post(&admin, "/v1/config/rollback", "");
    assert_eq!(names(&admin), [one.address(), two.address()]);
    assert_eq!(admin.endpoint(&two.address())["state"], "drain", "whoever drained it meant it");
    // Before the weight was saved it was set; so it is again.
    post(&admin, "/v1/config/rollback", r#"{"to": 1}"#);
    let weight = &admin.endpoint(&one.address())["weight"];
    assert_eq!((&weight["configured"], &weight["operator"]), (&json!(1), &json!(4)));
    assert_eq!(admin.endpoint(&two.address())["state"], "drain");
}

#[test]
fn a_drain_tells_what_is_left_and_ends_in_maintenance_when_its_time_is_over() {
    let (held, done) = std::sync::mpsc::channel::<()>();
    let done = std::sync::Mutex::new(done);
    let holding = Endpoint::scripted(move |served| {
        if served.request().is_some() {
            done.lock().expect("one connection").recv().expect("the test goes on");
            served.send(crate::support::ok("held"));
        }
    });
    let subak = Setup::before(&[&holding]).start();
    let admin = Admin::of(&subak);
    let mut client = subak.client();
    client.send("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n");
    wait_until("the request is there", || holding.requests().len() == 1);
    let told = admin.patch(&holding.address(), r#"{"state": "drain", "deadline": "2s"}"#);
    let left = told["drain"]["deadline_in_s"].as_f64().expect("a deadline");
    assert!(left > 1.0 && left <= 2.0, "{left}");
    assert_eq!(
        (&told["drain"]["in_flight"], &told["drain"]["is_empty"]),
        (&json!(1), &json!(false))
    );
    held.send(()).expect("the endpoint waits");
    assert_eq!(client.answer().text(), "held");
    subak.wait_for_log("drained after");
    let drain = admin.endpoint(&holding.address())["drain"].clone();
    assert_eq!((&drain["in_flight"], &drain["is_empty"]), (&json!(0), &json!(true)), "{drain}");
    wait_until("its time is over", || admin.endpoint(&holding.address())["state"] == "maintenance");
    let events = read(&admin.ask("GET", "/v1/events", ""), 200)["events"].to_string();
    for text in ["drained after", "its time to drain is over", "set by the API: state drain"] {
        assert!(events.contains(text), "{text}: {events}");
    }
}
