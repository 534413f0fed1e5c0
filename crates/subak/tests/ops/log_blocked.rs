//! A log that nobody reads: Subak serves, is asked, reloads and stops all the same.

use std::time::Instant;

use crate::support::{Admin, Client, Endpoint, Scrape, Setup, wait_until};

const REQUESTS: usize = 10_000;

/// Asks what nobody serves, with a long key that a limit on trial has seen before: a line for each.
fn flood(client: &mut Client, requests: usize) {
    let key = "k".repeat(2000);
    let request = format!("GET /nothing HTTP/1.1\r\nHost: example.com\r\nX-Key: {key}\r\n\r\n");
    for _ in 0..requests / 50 {
        client.send(request.repeat(50));
        for _ in 0..50 {
            assert_eq!(client.answer().status, 503);
        }
    }
}

fn dropped(admin: &Admin) -> f64 {
    let answer = admin.ask("GET", "/metrics", "");
    Scrape::parse(&answer.text()).value("subak_log_lines_dropped_total", &[])
}

#[test]
fn a_log_that_nobody_reads_stops_neither_traffic_nor_admin_api_nor_reload_nor_stop() {
    let endpoint = Endpoint::named("x");
    let setup = Setup::before(&[&endpoint])
        .listener(
            "limits = { requests_per_connection = \"unlimited\" }\n\
             rate = { rate = \"1/h\", key = \"header:X-Key\", dry_run = true, name = \"trying\" }",
        )
        .tail("[[listener.web.route]]\npath = \"/nothing\"\npool = \"nobody\"")
        .tail("[pool.nobody]\nendpoints = [{ address = \"127.0.0.1:9\", weight = 0 }]");
    let mut subak = setup.start();
    let admin = Admin::of(&subak);
    let mut client = subak.client();

    let held = subak.hold_log();
    flood(&mut client, REQUESTS);
    assert_eq!(client.get("/").text(), "x");
    assert!(dropped(&admin) > 0.0);
    wait_until("it is a problem", || {
        let problems = admin.status()["problems"].clone();
        problems.as_array().is_some_and(|list| list.iter().any(|one| one["kind"] == "log"))
    });
    let generation = |admin: &Admin| admin.status()["generation"].as_u64();
    let before = generation(&admin);
    subak.write_config(&setup.text().replace("trying", "tried"));
    subak.signal("HUP");
    wait_until("it is reloaded", || generation(&admin) > before);
    assert_eq!(subak.get("/").0, 200);

    drop(held);
    subak.wait_for_log("lines of this log were dropped");
    let longest = subak.log().lines().map(str::len).max();
    assert!(longest < Some(1000), "a line of {longest:?} bytes");

    let held = subak.hold_log();
    flood(&mut client, REQUESTS);
    subak.signal("TERM");
    wait_until("it has stopped, and its log is still not read", || subak.has_ended());
    drop(held);
    assert!(subak.wait_for_exit().success());
}

#[test]
fn a_limit_on_trial_writes_one_short_line_for_a_key_and_second() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint])
        .listener(
            "limits = { requests_per_connection = \"unlimited\" }\n\
             rate = { rate = \"1/h\", key = \"header:X-Key\", dry_run = true, name = \"trying\" }",
        )
        .start();
    let mut client = subak.client();
    let key = "k".repeat(2000);
    let began = Instant::now();
    for _ in 0..200 {
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nX-Key: {key}\r\n\r\n"));
        assert_eq!(client.answer().status, 200);
    }
    subak.wait_for_log("would be refused");
    let seconds = began.elapsed().as_secs() as usize + 2;
    let log = subak.log();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("would be refused")).collect();
    assert!(lines.len() <= seconds, "{} lines in {seconds} s", lines.len());
    assert!(lines.iter().all(|line| line.len() < 600 && line.contains("kkk…")), "{lines:?}");
}
