//! Changes by API that race with reloads and with each other end in the state that the rule of
//! precedence gives; and no request fails by any of it, nor by an endpoint that is drained under load.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::admin::{json as read, path};
use crate::support::{Admin, Endpoint, Setup, wait_until};
use serde_json::{Value, json};

/// How long the race goes on.
const RACE: Duration = Duration::from_secs(3);

/// The clients here would not notice when they are asked to connect again, after 10,000 requests.
const FOR_EVER: &str = "limits = { requests_per_connection = \"unlimited\" }";

/// Asks without caring whether it is done: the endpoint may not be there at the moment.
fn tell(admin: &Admin, method: &str, path: &str, body: &str) -> u16 {
    let answer = admin.ask(method, path, body);
    assert!(matches!(answer.status, 200 | 201 | 404 | 409), "{}: {}", answer.status, answer.text());
    answer.status
}

/// Ends what the other threads do when the one that decides ends, also when it panics.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn changes_that_race_with_reloads_end_as_the_rule_says() {
    let endpoints = ["stays", "added", "other", "comes and goes"].map(Endpoint::named);
    let [stays, added, other, comes] = &endpoints;
    let long = Setup::before(&[stays, other, comes]).workers(2).listener(FOR_EVER);
    let short = Setup::before(&[stays, other]).workers(2).listener(FOR_EVER);
    let subak = long.start();
    let short = short.bind(subak.address());
    let admin = || Admin::of(&subak);
    let (over, failed, served) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let goes_on = || !over.load(Ordering::Relaxed);
    let (last_weight, is_added) = std::thread::scope(|scope| {
        let race = Over(&over);
        let weights = scope.spawn(|| {
            let (admin, mut weight) = (admin(), 1);
            while goes_on() {
                weight = weight % 9 + 1;
                let body = json!({ "weight": weight }).to_string();
                assert_eq!(tell(&admin, "PATCH", &path(&stays.address()), &body), 200);
            }
            weight
        });
        let adds = scope.spawn(|| {
            let (admin, mut is_there) = (admin(), false);
            while goes_on() {
                let (method, at, body) = match is_there {
                    true => ("DELETE", path(&added.address()), String::new()),
                    false => {
                        let body = json!({ "endpoint": added.address() }).to_string();
                        ("POST", "/v1/pools/app/endpoints".to_owned(), body)
                    }
                };
                assert!(tell(&admin, method, &at, &body) < 300);
                is_there = !is_there;
            }
            is_there
        });
        scope.spawn(|| {
            let admin = admin();
            while goes_on() {
                tell(&admin, "PATCH", &path(&comes.address()), r#"{"weight": 7}"#);
            }
        });
        scope.spawn(|| {
            let mut is_long = false;
            while goes_on() {
                subak.write_config(&if is_long { long.text() } else { short.text() });
                subak.signal("HUP");
                is_long = !is_long;
            }
        });
        scope.spawn(|| {
            let mut client = subak.client();
            while goes_on() {
                let status = client.get("/").status;
                served.fetch_add(1, Ordering::Relaxed);
                failed.fetch_add(usize::from(status != 200), Ordering::Relaxed);
            }
        });
        std::thread::sleep(RACE);
        drop(race);
        (weights.join().expect("weights"), adds.join().expect("adds"))
    });
    let log = subak.log();
    assert!(log.contains("configuration reloaded generation="), "it was raced with");
    assert!(!log.contains("not reloaded"), "every reload was put in force");
    assert_eq!(failed.load(Ordering::Relaxed), 0, "of {}", served.load(Ordering::Relaxed));

    let admin = admin();
    let reload = || read(&admin.ask("POST", "/v1/config/reload", ""), 200);
    let pool = || -> Vec<(String, Value, Value)> {
        let pool = read(&admin.ask("GET", "/v1/pools/app", ""), 200);
        let list = pool["endpoints"].as_array().expect("a list").clone();
        let one = |one: &Value| {
            let name = one["name"].as_str().expect("a name").to_owned();
            (name, one["weight"]["operator"].clone(), one["source"].clone())
        };
        list.iter().map(one).collect()
    };
    subak.write_config(&short.text());
    reload();
    let mut expected = vec![
        (stays.address(), json!(last_weight), json!("file")),
        (other.address(), Value::Null, json!("file")),
    ];
    let by_api = (added.address(), Value::Null, json!("api"));
    expected.extend(is_added.then(|| by_api.clone()));
    assert_eq!(pool(), expected);
    // What was set on an endpoint that has left is forgotten.
    subak.write_config(&long.text());
    reload();
    expected.insert(2, (comes.address(), Value::Null, json!("file")));
    assert_eq!(pool(), expected);
}

#[test]
fn an_endpoint_is_drained_under_load_and_no_request_fails() {
    let (one, two) = (Endpoint::named("one"), Endpoint::named("two"));
    let subak = Setup::before(&[&one, &two]).workers(2).listener(FOR_EVER).start();
    let admin = Admin::of(&subak);
    let over = AtomicBool::new(false);
    let (served, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let _load = Over(&over);
        for _ in 0..8 {
            scope.spawn(|| {
                let mut client = subak.client();
                while !over.load(Ordering::Relaxed) {
                    let status = client.get("/").status;
                    served.fetch_add(1, Ordering::Relaxed);
                    failed.fetch_add(usize::from(status != 200), Ordering::Relaxed);
                }
            });
        }
        let more = |count: usize| {
            let target = served.load(Ordering::Relaxed) + count;
            wait_until("requests go on", || served.load(Ordering::Relaxed) >= target);
        };
        more(500);
        let begun = Instant::now();
        admin.patch(&two.address(), r#"{"state": "drain"}"#);
        subak.wait_for_log("drained after");
        let took = begun.elapsed();
        let hits = admin.endpoint(&two.address())["hits"].clone();
        more(500);
        assert_eq!(admin.endpoint(&two.address())["hits"], hits, "it takes nothing any more");
        eprintln!("drained in {took:?}");
    });
    assert_eq!(failed.load(Ordering::Relaxed), 0, "of {}", served.load(Ordering::Relaxed));
    let events = read(&admin.ask("GET", "/v1/events", ""), 200);
    let is_it = |event: &&Value| {
        event["text"].as_str().is_some_and(|text| text.starts_with("drained after"))
    };
    let told = events["events"].as_array().expect("a list").iter().find(is_it);
    assert_eq!(told.expect("it is told")["endpoint"], two.address());
}
