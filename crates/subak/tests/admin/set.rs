//! What operators set: seen in traffic, kept over reloads, gone with the endpoint.

use crate::support::{Admin, Endpoint, Setup, Subak, wait_until};
use serde_json::{Value, json};

/// How many of `count` requests each name answered.
fn shares(subak: &Subak, names: &[&str], count: usize) -> Vec<usize> {
    let mut client = subak.client();
    let answers: Vec<String> = (0..count).map(|_| client.get("/").text()).collect();
    names.iter().map(|name| answers.iter().filter(|answer| answer == name).count()).collect()
}

/// Waits until requests are shared out like this.
#[track_caller]
fn wait_for_shares(subak: &Subak, names: &[&str], expected: &[usize]) {
    let count = expected.iter().sum();
    wait_until(&format!("requests go {expected:?}"), || shares(subak, names, count) == expected);
}

#[track_caller]
fn reload(subak: &Subak, setup: &Setup, generation: u32) {
    subak.write_config(&setup.text());
    subak.signal("HUP");
    subak.wait_for_log(&format!("configuration reloaded generation={generation}\n"));
}

/// What the API has set: the state, and the weight.
fn operator(endpoint: &Value) -> (Value, Value) {
    let wanted = &endpoint["wanted"];
    let state = if wanted["by"] == "api" { wanted["state"].clone() } else { Value::Null };
    (state, endpoint["weight"]["operator"].clone())
}

#[test]
fn an_endpoint_that_drains_takes_nothing_new_and_is_ready_again_when_that_is_taken_back() {
    let (one, two) = (Endpoint::named("one"), Endpoint::named("two"));
    let subak = Setup::before(&[&one, &two]).workers(2).start();
    let admin = Admin::of(&subak);
    assert_eq!(shares(&subak, &["one", "two"], 10), [5, 5]);
    for state in ["drain", "maintenance"] {
        let told = admin.patch(&two.address(), &json!({ "state": state }).to_string());
        assert_eq!(told["state"], state);
        assert_eq!(told["reason"], format!("set to {state} by the API"));
        wait_for_shares(&subak, &["one", "two"], &[10, 0]);
        assert_eq!(admin.endpoint(&two.address())["eligible"], false);
    }
    subak.wait_for_log("set to maintenance by the API");
    let told = admin.patch(&two.address(), r#"{"state": null}"#);
    assert_eq!(told["state"], "ready");
    wait_for_shares(&subak, &["one", "two"], &[5, 5]);
}

#[test]
fn the_answer_to_a_change_is_the_endpoint_after_it() {
    let (one, two) = (Endpoint::named("one"), Endpoint::named("two"));
    let subak = Setup::before(&[&one, &two]).start();
    let admin = Admin::of(&subak);
    // One right after the other, much faster than the control side's rhythm.
    for weight in [3, 5, 2, 7] {
        let told = admin.patch(&one.address(), &json!({ "weight": weight }).to_string());
        assert_eq!(told["weight"]["in_force"], weight);
        let told = admin.put(&one.address(), r#"{"state": "drain"}"#);
        assert_eq!((&told["eligible"], &told["weight"]["operator"]), (&json!(false), &Value::Null));
        let told = admin.put(&one.address(), "{}");
        assert_eq!((&told["eligible"], &told["weight"]["in_force"]), (&json!(true), &json!(1)));
    }
}

#[test]
fn a_request_under_way_on_an_endpoint_that_is_drained_finishes() {
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
    admin.patch(&holding.address(), r#"{"state": "drain"}"#);
    let takes_new = || admin.endpoint(&holding.address())["eligible"] == true;
    wait_until("it takes nothing new", || !takes_new());
    assert_eq!(subak.get("/").0, 503);
    held.send(()).expect("the endpoint waits");
    assert_eq!(client.answer().text(), "held");
}

#[test]
fn a_weight_moves_the_shares_and_keeps_what_was_counted() {
    let (one, two) = (Endpoint::named("one"), Endpoint::named("two"));
    let subak = Setup::before(&[&one, &two]).start();
    let admin = Admin::of(&subak);
    assert_eq!(shares(&subak, &["one", "two"], 10), [5, 5]);
    let told = admin.patch(&one.address(), r#"{"weight": 3}"#);
    let weight = &told["weight"];
    assert_eq!((&weight["configured"], &weight["operator"]), (&json!(1), &json!(3)));
    assert_eq!(told["hits"], 5, "a weight resets nothing");
    wait_for_shares(&subak, &["one", "two"], &[30, 10]);
    admin.patch(&one.address(), r#"{"weight": 0}"#);
    wait_for_shares(&subak, &["one", "two"], &[0, 10]);
    assert_eq!(admin.endpoint(&one.address())["state"], "ready", "a weight is no state");
    admin.patch(&one.address(), r#"{"weight": null}"#);
    wait_for_shares(&subak, &["one", "two"], &[5, 5]);
}

#[test]
fn a_put_takes_back_what_it_does_not_name() {
    let (one, two) = (Endpoint::named("one"), Endpoint::named("two"));
    let subak = Setup::before(&[&one, &two]).start();
    let admin = Admin::of(&subak);
    let told = admin.put(&one.address(), r#"{"state": "drain", "weight": 7}"#);
    assert_eq!(operator(&told), (json!("drain"), json!(7)));
    let told = admin.put(&one.address(), r#"{"weight": 7}"#);
    assert_eq!(operator(&told), (Value::Null, json!(7)));
    let told = admin.put(&one.address(), "{}");
    assert_eq!(operator(&told), (Value::Null, Value::Null));
}

#[test]
fn what_was_set_is_kept_over_reloads_and_dropped_when_the_endpoint_leaves() {
    let endpoints = [Endpoint::named("one"), Endpoint::named("two"), Endpoint::named("three")];
    let [one, two, three] = &endpoints;
    let first = Setup::before(&[one, two, three]);
    let subak = first.start();
    let again = |endpoints: &[&Endpoint]| Setup::before(endpoints).bind(subak.address());
    let admin = Admin::of(&subak);
    admin.patch(&one.address(), r#"{"state": "drain"}"#);
    admin.patch(&two.address(), r#"{"weight": 5}"#);

    // Another order, another algorithm: the same endpoints.
    let changed = again(&[three, two, one]).pool("balance = \"least_connections\"");
    reload(&subak, &changed, 2);
    assert_eq!(operator(&admin.endpoint(&one.address())), (json!("drain"), Value::Null));
    assert_eq!(operator(&admin.endpoint(&two.address())), (Value::Null, json!(5)));

    // A configuration that is wrong changes nothing.
    subak.write_config("[listener.web]\nbind = 7\n");
    subak.signal("HUP");
    subak.wait_for_log("not reloaded");
    assert_eq!(operator(&admin.endpoint(&one.address())), (json!("drain"), Value::Null));
    assert_eq!(admin.status()["reloads_refused"], 1);

    reload(&subak, &again(&[three]), 3);
    let path = crate::support::admin::path(&one.address());
    admin.refused(("GET", &path, ""), 404);
    reload(&subak, &again(&[one, two, three]), 4);
    assert_eq!(operator(&admin.endpoint(&one.address())), (Value::Null, Value::Null));
    assert_eq!(operator(&admin.endpoint(&two.address())), (Value::Null, Value::Null));
    wait_for_shares(&subak, &["one", "two", "three"], &[4, 4, 4]);
}

#[test]
fn endpoints_on_unix_sockets_and_ipv6_can_be_named() {
    let directory = crate::support::fresh_directory();
    let path = directory.join("app%one.sock");
    let unix = Endpoint::scripted_unix(&path, |served| {
        while served.request().is_some() {
            served.send(crate::support::ok("unix"));
        }
    });
    let six = Endpoint::scripted_v6(|served| {
        while served.request().is_some() {
            served.send(crate::support::ok("six"));
        }
    });
    let subak = Setup::before(&[&unix, &six]).start();
    let admin = Admin::of(&subak);
    let told = admin.patch(&unix.address(), r#"{"state": "drain"}"#);
    assert_eq!(told["name"], unix.address());
    wait_for_shares(&subak, &["unix", "six"], &[0, 6]);
    admin.patch(&six.address(), r#"{"state": "maintenance"}"#);
    wait_until("nobody is left", || subak.get("/").0 == 503);
}
