//! What a client is recognised by: the key of `hash` and `maglev`, from every source there is.

use std::collections::HashSet;

use crate::support::{Client, Endpoint, Setup, Subak};

/// Subak before three endpoints, by this key.
fn by(algorithm: &str, key: &str) -> (Subak, [Endpoint; 3]) {
    let endpoints = ["a", "b", "c"].map(Endpoint::named);
    let subak = Setup::before(&endpoints.iter().collect::<Vec<_>>())
        .workers(2)
        .listener("request_headers = { set = { X-Tenant = \"everybody\" } }")
        .pool(&format!("balance = {{ algorithm = \"{algorithm}\", key = \"{key}\" }}"))
        .start();
    (subak, endpoints)
}

/// Who answers a request of this path and these fields, on a connection of its own.
#[track_caller]
fn ask(subak: &Subak, path: &str, fields: &str) -> String {
    let mut client = subak.client();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
    let answer = client.answer();
    assert_eq!(answer.status, 200);
    answer.text()
}

/// Requests of one key stay together, those of many keys are spread.
#[track_caller]
fn assert_keyed(subak: &Subak, ask: impl Fn(&Subak, usize, usize) -> String) {
    let mut seen = HashSet::new();
    for key in 0..24 {
        let home = ask(subak, key, 0);
        for other in 1..4 {
            assert_eq!(ask(subak, key, other), home, "key {key}");
        }
        seen.insert(home);
    }
    assert_eq!(seen.len(), 3, "24 keys on {seen:?}");
}

#[test]
fn keys_come_from_paths_headers_cookies_and_queries() {
    for algorithm in ["hash", "maglev"] {
        let (subak, _endpoints) = by(algorithm, "uri");
        assert_keyed(&subak, |subak, key, other| {
            ask(subak, &format!("/x?{key}"), &format!("X-Other: {other}\r\n"))
        });
        let (subak, _endpoints) = by(algorithm, "path");
        assert_keyed(&subak, |subak, key, other| ask(subak, &format!("/{key}?{other}"), ""));
        let (subak, _endpoints) = by(algorithm, "query:id");
        assert_keyed(&subak, |subak, key, other| ask(subak, &format!("/{other}?a=1&id={key}"), ""));
        let (subak, _endpoints) = by(algorithm, "cookie:id");
        assert_keyed(&subak, |subak, key, other| {
            ask(subak, &format!("/{other}"), &format!("Cookie: a={other}; id={key}\r\n"))
        });
        // What the client wrote, not what the listener makes of it.
        let (subak, _endpoints) = by(algorithm, "header:X-Tenant");
        assert_keyed(&subak, |subak, key, other| {
            ask(subak, &format!("/{other}"), &format!("x-tenant: {key}\r\n"))
        });
    }
}

#[test]
fn a_request_without_the_key_is_served_in_turn() {
    let (subak, _endpoints) = by("maglev", "header:X-Tenant");
    let served: Vec<_> = (0..6).map(|_| ask(&subak, "/", "")).collect();
    assert_eq!(served, ["a", "b", "c", "a", "b", "c"]);
}

#[test]
fn by_its_address_a_client_is_one_and_by_its_connection_each_is_another() {
    let (subak, _endpoints) = by("hash", "source");
    assert_keyed(&subak, |subak, key, _| {
        Client::connect_from(&format!("127.0.1.{}", key + 1), subak.address()).get("/").text()
    });
    let (subak, endpoints) = by("hash", "five_tuple");
    let mut seen = HashSet::new();
    for _ in 0..40 {
        let mut client = subak.client();
        let home = client.get("/").text();
        for _ in 0..3 {
            assert_eq!(client.get("/").text(), home, "one connection, one endpoint");
        }
        seen.insert(home);
    }
    assert_eq!(seen.len(), endpoints.len());
}
