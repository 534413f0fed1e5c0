//! Backups, what happens when all are down, and what people want of endpoints.

use std::time::Duration;

use crate::support::{Load, Mood, Moody, Setup, Subak, fresh_address, wait_until};

const HEALTH: &str = "health = { http = \"/healthz\", interval = \"200ms\", fast_interval = \"100ms\", \
                      timeout = \"200ms\", rise = 1, fall = 1 }";

/// A table of one endpoint.
fn with(endpoint: &Moody, options: &str) -> String {
    let comma = if options.is_empty() { "" } else { ", " };
    format!("{{ address = {:?}{comma}{options} }}", endpoint.address())
}

#[track_caller]
fn reload(subak: &Subak, config: &str, generation: usize) {
    subak.write_config(config);
    subak.signal("HUP");
    subak.wait_for_log(&format!("configuration reloaded generation={generation}\n"));
}

/// A pool of these tables, with these lines.
fn pool<const N: usize>(endpoints: [String; N], lines: &str) -> Setup {
    Setup::before_tables(endpoints).pool(HEALTH).pool(lines)
}

#[test]
fn a_backup_stands_in_while_no_primary_is_ready_and_gives_back() {
    let (a, b, backup) = (Moody::new("a"), Moody::new("b"), Moody::new("backup"));
    let endpoints = [with(&a, ""), with(&b, ""), with(&backup, "backup = true")];
    let subak = pool(endpoints, "").start();
    let load = Load::paced(subak.address(), 1, 1, Duration::from_millis(10));
    load.wait_for(20);
    assert_eq!(backup.hits(), 0);

    a.set(Mood::Sick);
    wait_until("b has everything", || subak.log().contains("ready to down"));
    load.wait_for(20);
    assert_eq!(backup.hits(), 0, "one primary is left");

    b.set(Mood::Sick);
    subak.wait_for_log("no primary is ready, backups stand in");
    load.wait_for(20);
    let hits = a.hits() + b.hits();
    load.wait_for(20);
    assert_eq!(a.hits() + b.hits(), hits);
    assert!(backup.hits() >= 20);

    a.set(Mood::Well);
    subak.wait_for_log("primaries are ready");
    load.wait_for(20);
    let hits = backup.hits();
    load.wait_for(20);
    assert_eq!(backup.hits(), hits);
    assert_eq!(load.end(), Vec::<String>::new());
}

#[test]
fn when_all_are_down_they_are_tried_all_the_same() {
    let (a, b) = (Moody::new("a"), Moody::new("b"));
    let subak = pool([with(&a, ""), with(&b, "")], "").start();
    a.set(Mood::Sick);
    b.set(Mood::Sick);
    subak.wait_for_log("no endpoint is ready, those that are down are tried");
    let hits = (a.hits(), b.hits());
    (0..10).for_each(|_| assert_eq!(subak.get("/").0, 200));
    assert_eq!((a.hits() - hits.0, b.hits() - hits.1), (5, 5));
}

#[test]
fn when_all_are_down_requests_are_refused_if_that_is_wanted() {
    let (a, b) = (Moody::new("a"), Moody::new("b"));
    let endpoints = [with(&a, ""), with(&b, "")];
    let subak = pool(endpoints, "on_all_down = \"fail_closed\"").start();
    a.set(Mood::Sick);
    b.set(Mood::Sick);
    wait_until("both are down", || subak.log().matches("ready to down").count() == 2);
    wait_until("requests are refused", || subak.get("/").0 == 503);
    let hits = a.hits() + b.hits();
    (0..10).for_each(|_| assert_eq!(subak.get("/").0, 503));
    assert_eq!(a.hits() + b.hits(), hits);
    b.set(Mood::Well);
    wait_until("one serves again", || subak.get("/") == (200, "b".into()));
}

#[test]
fn when_all_are_down_backups_alone_are_tried_if_that_is_wanted() {
    let (a, sorry) = (Moody::new("a"), Moody::new("sorry"));
    let endpoints = [with(&a, ""), with(&sorry, "backup = true")];
    let subak = pool(endpoints, "on_all_down = \"backup_only\"").start();
    a.set(Mood::Sick);
    sorry.set(Mood::Sick);
    subak.wait_for_log("no endpoint is ready, backups that are down are tried");
    (0..10).for_each(|_| assert_eq!(subak.get("/"), (200, "sorry".into())));
}

#[test]
fn an_endpoint_set_to_drain_or_maintenance_in_the_file_takes_no_new_work_and_finishes() {
    let (a, b) = (Moody::new("a"), Moody::new("b"));
    let address = fresh_address();
    let setup = |state: &str| pool([with(&a, state), with(&b, "")], "").bind(&address);
    let subak = setup("").start();
    wait_until("both are probed", || a.probes() >= 2 && b.probes() >= 2);
    for (turn, state) in ["drain", "maintenance"].into_iter().enumerate() {
        // A request that is under way when the state changes.
        a.set(Mood::Slow(Duration::from_millis(1500)));
        let mut under_way = Vec::new();
        let hits = a.hits();
        while a.hits() == hits {
            let before = (a.hits(), b.hits());
            let mut client = subak.client();
            client.send("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n");
            wait_until("it has arrived", || (a.hits(), b.hits()) != before);
            under_way.push(client);
        }
        let state = format!("state = {state:?}");
        reload(&subak, &setup(&state).text(), 2 + 2 * turn);
        let hits = a.hits();
        (0..10).for_each(|_| assert_eq!(subak.get("/"), (200, "b".into())));
        assert_eq!(a.hits(), hits);
        for mut client in under_way {
            assert_eq!(client.answer().status, 200, "{state}");
        }
        a.set(Mood::Well);
        reload(&subak, &setup("").text(), 3 + 2 * turn);
        wait_until("it has its part again", || a.hits() > hits || subak.get("/").1 == "a");
    }
}

#[test]
fn nobody_asks_an_endpoint_in_maintenance_how_it_is() {
    let (a, b) = (Moody::new("a"), Moody::new("b"));
    let endpoints = [with(&a, "state = \"maintenance\""), with(&b, "")];
    let subak = pool(endpoints, "").start();
    wait_until("the other is probed", || b.probes() >= 5);
    assert_eq!(a.probes(), 0);
    (0..10).for_each(|_| assert_eq!(subak.get("/"), (200, "b".into())));
}
