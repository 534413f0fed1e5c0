use std::net::IpAddr;
use std::time::Duration;

use subak_base::Weight;

use super::{Data, Record, Target, endpoint, follow, refusal, tiers};

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn record(name: &str, ttl_s: u64, data: Data) -> Record {
    Record { name: name.into(), ttl: Duration::from_secs(ttl_s), data }
}

fn address(name: &str, ttl_s: u64, text: &str) -> Record {
    record(name, ttl_s, Data::Address(ip(text)))
}

fn alias(name: &str, ttl_s: u64, target: &str) -> Record {
    record(name, ttl_s, Data::Alias(target.into()))
}

#[test]
fn aliases_are_followed_in_any_order_and_the_shortest_time_counts() {
    let records = [
        address("c.internal", 60, "10.0.0.1"),
        alias("b.internal", 5, "c.internal"),
        address("c.internal", 50, "10.0.0.2"),
        alias("a.internal", 300, "b.internal"),
    ];
    let answer = follow("a.internal", &records).expect("an end");
    assert_eq!(answer.records, [&records[0], &records[2]]);
    assert_eq!(answer.ttl, Some(Duration::from_secs(5)));
}

#[test]
fn records_of_other_names_are_left_aside() {
    let records = [
        address("evil.example", 60, "10.6.6.6"),
        alias("other.internal", 5, "evil.example"),
        address("a.internal", 60, "10.0.0.1"),
    ];
    let answer = follow("a.internal", &records).expect("an end");
    assert_eq!(answer.records, [&records[2]]);
    let nothing = follow("b.internal", &records).expect("an end");
    assert_eq!((nothing.records.len(), nothing.ttl), (0, None));
}

#[test]
fn aliases_that_go_round_end_with_an_error() {
    let records = [alias("a.internal", 5, "b.internal"), alias("b.internal", 5, "a.internal")];
    assert!(follow("a.internal", &records).expect_err("a circle").contains("do not end"));
    let long: Vec<_> =
        (0..17).map(|n| alias(&format!("n{n}"), 5, &format!("n{}", n + 1))).collect();
    assert!(follow("n0", &long).is_err());
    assert!(follow("n1", &long).is_ok());
}

#[test]
fn addresses_that_no_endpoint_can_have_are_refused() {
    for text in [
        "0.0.0.0",
        "0.1.2.3",
        "255.255.255.255",
        "224.0.0.1",
        "::",
        "ff02::1",
        "fe80::1",
        "::ffff:0.0.0.0",
        "::ffff:224.0.0.1",
    ] {
        assert!(refusal(ip(text)).is_some(), "{text}");
    }
    for text in ["127.0.0.1", "::1", "10.0.0.1", "169.254.1.1", "fd00::1", "::ffff:10.0.0.1"] {
        assert_eq!(refusal(ip(text)), None, "{text}");
    }
}

fn target(priority: u16, weight: u16, host: &str) -> Target {
    Target { priority, weight, port: 8080, host: host.into() }
}

#[test]
fn the_least_priority_is_primary_and_all_others_backup() {
    let dot = target(0, 1, "");
    let portless = Target { port: 0, ..target(0, 1, "x") };
    let given = vec![
        target(20, 5, "c"),
        dot,
        target(10, 5, "b"),
        portless,
        target(30, 5, "d"),
        target(10, 0, "a"),
    ];
    let tiers = tiers(given);
    let told: Vec<_> = tiers.iter().map(|(target, backup)| (&*target.host, *backup)).collect();
    assert_eq!(told, [("a", false), ("b", false), ("c", true), ("d", true)]);
    let light = endpoint(&tiers[0].0, false, ip("::ffff:10.0.0.1"));
    assert_eq!(light.weight, Some(Weight(1)));
    assert_eq!(light.address.to_string(), "10.0.0.1:8080");
    assert_eq!(light.target.as_deref(), Some("a"));
    assert_eq!(endpoint(&tiers[1].0, false, ip("10.0.0.2")).weight, Some(Weight(5)));
    assert_eq!(super::tiers(Vec::new()), []);
}
