//! Clients that are known by their address: remembered how long, how many of them, and kept by whom.

use std::time::Duration;

use crate::support::{Client, Endpoint, Setup, Subak, fresh_address};

const STICK: &str = "stick = { table = \"source\" }";

/// Who serves the client of this address.
#[track_caller]
fn by(subak: &Subak, source: &str) -> String {
    let answer = Client::connect_from(source, subak.address()).get("/");
    assert_eq!((answer.status, answer.field("set-cookie")), (200, None));
    answer.text()
}

#[track_caller]
fn assert_stays(subak: &Subak, source: &str, with: &str) {
    for _ in 0..4 {
        assert_eq!(by(subak, source), with, "{source}");
    }
}

#[track_caller]
fn reload(subak: &Subak, setup: &Setup, generation: usize) {
    subak.write_config(&setup.text());
    subak.signal("HUP");
    subak.wait_for_log(&format!("configuration reloaded generation={generation}\n"));
}

#[test]
fn a_client_is_known_by_its_address_on_every_connection() {
    let (a, b) = (Endpoint::named("a"), Endpoint::named("b"));
    let subak = Setup::before(&[&a, &b]).workers(2).pool(STICK).start();
    let homes: Vec<_> = (1..=8).map(|client| by(&subak, &format!("127.0.0.{client}"))).collect();
    assert_eq!(homes, ["a", "b", "a", "b", "a", "b", "a", "b"]);
    for (client, home) in (1..=8).zip(homes) {
        assert_stays(&subak, &format!("127.0.0.{client}"), &home);
    }
}

#[test]
fn whom_a_trusted_proxy_names_is_the_client() {
    let (a, b) = (Endpoint::named("a"), Endpoint::named("b"));
    let subak = Setup::before(&[&a, &b])
        .listener("trusted_proxies = [\"127.0.0.0/8\"]")
        .pool(STICK)
        .start();
    let ask = |client: &str| {
        let mut proxy = subak.client();
        proxy.send(format!("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {client}\r\n\r\n"));
        proxy.answer().text()
    };
    assert_eq!([ask("192.0.2.1"), ask("2001:db8::1")], ["a", "b"]);
    for _ in 0..4 {
        assert_eq!([ask("192.0.2.1"), ask("::ffff:192.0.2.1")], ["a", "a"]);
        assert_eq!(ask("2001:db8::1"), "b");
    }
}

#[test]
fn a_client_is_forgotten_when_it_has_not_asked_for_so_long() {
    let (a, b) = (Endpoint::named("a"), Endpoint::named("b"));
    let subak =
        Setup::before(&[&a, &b]).pool("stick = { table = \"source\", expire = \"2s\" }").start();
    assert_eq!(by(&subak, "127.0.0.1"), "a");
    // Every request begins the time anew: in all it is longer.
    for _ in 0..4 {
        std::thread::sleep(Duration::from_millis(700));
        assert_eq!(by(&subak, "127.0.0.1"), "a");
    }
    std::thread::sleep(Duration::from_millis(2100));
    assert_eq!(by(&subak, "127.0.0.1"), "b", "its turn, as for a new client");
    assert_stays(&subak, "127.0.0.1", "b");
}

#[test]
fn a_full_table_forgets_whom_it_has_not_seen_for_longest() {
    let (a, b) = (Endpoint::named("a"), Endpoint::named("b"));
    let subak =
        Setup::before(&[&a, &b]).pool("stick = { table = \"source\", entries = 16 }").start();
    assert_eq!(by(&subak, "127.0.1.0"), "a");
    assert_stays(&subak, "127.0.1.0", "a");
    let others = (1..=200).map(|client| by(&subak, &format!("127.0.1.{client}")));
    assert_eq!(others.filter(|by| by == "a").count(), 100, "new clients take turns");
    // The last is remembered, the first is not.
    assert_stays(&subak, "127.0.1.200", "a");
    assert_eq!(by(&subak, "127.0.1.0"), "b");
}

#[test]
fn a_draining_endpoint_keeps_its_clients_and_others_lose_them_for_good() {
    let (a, b) = (Endpoint::named("a"), Endpoint::named("b"));
    let address = fresh_address();
    let setup = |state: &str| {
        let endpoints = [format!("{}{state}", a.address()), b.address()];
        Setup::before_addresses(endpoints).bind(&address).pool(STICK)
    };
    let subak = setup("").start();
    assert_eq!(by(&subak, "127.0.0.1"), "a");
    for (generation, state) in [(2, " state=drain"), (3, " weight=0")] {
        reload(&subak, &setup(state), generation);
        assert_stays(&subak, "127.0.0.1", "a");
        assert_eq!(by(&subak, &format!("127.0.1.{generation}")), "b", "{state}: no new clients");
    }
    reload(&subak, &setup(" state=maintenance"), 4);
    assert_stays(&subak, "127.0.0.1", "b");
    reload(&subak, &setup(""), 5);
    assert_stays(&subak, "127.0.0.1", "b");
}

#[test]
fn a_client_whose_endpoint_breaks_off_belongs_to_the_one_that_answered() {
    // Answers well at first, and resets every connection from then on.
    let failing = Endpoint::scripted(|served| {
        served.request();
        match served.number {
            0 => {
                served.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nhome")
            }
            _ => served.reset(),
        }
    });
    let good = Endpoint::named("good");
    let subak = Setup::before(&[&failing, &good]).pool(STICK).start();
    assert_eq!(by(&subak, "127.0.0.1"), "home");
    assert_stays(&subak, "127.0.0.1", "good");
    assert_eq!(failing.requests().len(), 2, "it was asked once more, and not after");
}
