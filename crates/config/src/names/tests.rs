use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use subak_base::Weight;

use super::{Answers, Found, Resolved};
use crate::model::Config;
use crate::{InMemory, parse_with};

fn config(endpoints: &str) -> Config {
    let text = format!(
        "[listener.web]\nbind = \"127.0.0.1:80\"\npool = \"app\"\n[pool.app]\nendpoints = [{endpoints}]\n"
    );
    let outcome = parse_with(&text, Path::new("subak.toml"), &InMemory::default());
    outcome.config.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics))
}

fn found(address: &str) -> Found {
    let address = address.parse().expect("an address");
    Found { backup: false, address, weight: None, target: None }
}

/// What names of a configuration are answered, by their texts.
fn answers(config: &Config, given: &[(&str, Vec<Found>)]) -> Answers {
    let origin = |text: &str| {
        let names = config.pools.iter().flat_map(|pool| &pool.names);
        let mut origins = names.map(|by_name| by_name.origin.clone());
        origins.find(|origin| origin.to_string() == text).expect("a name of the configuration")
    };
    let each = given.iter().map(|(text, found)| (origin(text), Arc::from(&found[..])));
    Answers(each.collect())
}

fn addresses(resolved: &Resolved) -> Vec<String> {
    resolved.config.pools[0].endpoints.iter().map(|one| one.address.to_string()).collect()
}

#[test]
fn addresses_stand_where_their_name_stands() {
    let config = config(
        "\"10.0.0.1:80\", \"app.internal:8080 weight=3 max_in_flight=7\", \"10.0.0.2:80\", \"b:80\"",
    );
    let answers = answers(
        &config,
        &[
            ("app.internal:8080", vec![found("10.1.0.2:8080"), found("[2001:db8::1]:8080")]),
            ("b:80", vec![found("10.2.0.1:80")]),
        ],
    );
    let resolved = answers.apply(&config, None);
    assert_eq!(
        addresses(&resolved),
        ["10.0.0.1:80", "10.1.0.2:8080", "[2001:db8::1]:8080", "10.0.0.2:80", "10.2.0.1:80"]
    );
    let endpoints = &resolved.config.pools[0].endpoints;
    assert_eq!(endpoints[0].origin, None);
    assert_eq!(&*endpoints[1].name, "10.1.0.2:8080");
    assert_eq!(endpoints[1].origin.as_deref(), Some("app.internal:8080"));
    assert_eq!(endpoints[1].host.as_deref(), Some("app.internal:8080"));
    assert_eq!(endpoints[1].weight, Weight(3));
    assert_eq!(endpoints[1].max_in_flight.map(|cap| cap.get()), Some(7));
    assert_eq!(endpoints[4].host.as_deref(), Some("b"));
    assert_eq!(resolved.oddities, []);
}

#[test]
fn a_service_says_weight_tier_and_host() {
    let config = config("\"srv:_http._tcp.app.internal max_connections=5\"");
    let service = |backup, address: &str, weight| Found {
        backup,
        weight: Some(Weight(weight)),
        target: Some("node.internal".into()),
        ..found(address)
    };
    let given = vec![service(false, "10.0.0.1:80", 7), service(true, "10.0.0.2:8080", 1)];
    let answers = answers(&config, &[("srv:_http._tcp.app.internal", given)]);
    let resolved = answers.apply(&config, None);
    let endpoints = &resolved.config.pools[0].endpoints;
    let told = |index: usize| {
        let one = &endpoints[index];
        (one.weight.0, one.backup, one.host.as_deref(), one.max_connections.map(|cap| cap.get()))
    };
    assert_eq!(told(0), (7, false, Some("node.internal"), Some(5)));
    assert_eq!(told(1), (1, true, Some("node.internal:8080"), Some(5)));
}

#[test]
fn of_two_ways_to_an_address_the_first_counts_and_what_is_written_before_all() {
    let config = config("\"a:80 weight=2\", \"b:80\", \"10.0.0.3:80 weight=9\"");
    let both = |last: &str| vec![found("10.0.0.1:80"), found(last)];
    let answers = answers(&config, &[("a:80", both("10.0.0.3:80")), ("b:80", both("10.0.0.2:80"))]);
    let resolved = answers.apply(&config, None);
    assert_eq!(addresses(&resolved), ["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"]);
    let weights: Vec<_> =
        resolved.config.pools[0].endpoints.iter().map(|one| one.weight.0).collect();
    assert_eq!(weights, [2, 1, 9]);
    let odd: Vec<_> = resolved.oddities.iter().map(|odd| (&*odd.origin, &*odd.what)).collect();
    assert_eq!(
        odd,
        [
            ("a:80", "its 10.0.0.3:80 is already there by 10.0.0.3:80"),
            ("b:80", "its 10.0.0.1:80 is already there by a:80")
        ]
    );
}

#[test]
fn a_pool_keeps_what_it_had_until_its_name_is_answered() {
    let before = config("\"10.0.0.1:80\", \"10.0.0.2:80\"");
    let now = config("\"app:80\"");
    let nothing = Answers::default();
    assert!(addresses(&nothing.apply(&now, None)).is_empty());
    let kept = nothing.apply(&now, Some(&before));
    assert_eq!(addresses(&kept), ["10.0.0.1:80", "10.0.0.2:80"]);
    // And goes on keeping it, however often that is asked.
    assert_eq!(nothing.apply(&now, Some(&kept.config)), kept);
    let answered = answers(&now, &[("app:80", vec![found("10.0.0.3:80")])]);
    assert_eq!(addresses(&answered.apply(&now, Some(&kept.config))), ["10.0.0.3:80"]);
    // One that has something to go on with does not mix in what was taken out of the file.
    let mixed = config("\"10.0.0.9:80\", \"app:80\"");
    assert_eq!(addresses(&nothing.apply(&mixed, Some(&before))), ["10.0.0.9:80"]);
}

proptest! {
    /// Whatever names answer: addresses are unique, written ones are all there, in order.
    #[test]
    fn an_expansion_is_always_a_pool(
        one in prop::collection::vec(0_u8..12, 0..8),
        other in prop::collection::vec(0_u8..12, 0..8),
        is_asked in any::<bool>(),
    ) {
        let config = config("\"10.0.0.1:80\", \"a:80\", \"10.0.0.2:80\", \"b:80\", \"10.0.0.3:80\"");
        let list = |hosts: &[u8]| {
            hosts.iter().map(|host| found(&format!("10.0.0.{host}:80"))).collect::<Vec<_>>()
        };
        let mut given = vec![("a:80", list(&one))];
        if is_asked {
            given.push(("b:80", list(&other)));
        }
        let resolved = answers(&config, &given).apply(&config, None);
        let all = addresses(&resolved);
        let mut unique = all.clone();
        unique.sort();
        unique.dedup();
        prop_assert_eq!(unique.len(), all.len());
        let endpoints = &resolved.config.pools[0].endpoints;
        let written: Vec<_> = endpoints.iter().filter(|one| one.origin.is_none()).collect();
        prop_assert_eq!(written.len(), 3);
        prop_assert!(written.windows(2).all(|pair| pair[0].address < pair[1].address));
        for host in one.iter().chain(if is_asked { &other[..] } else { &[] }) {
            let wanted = format!("10.0.0.{host}:80");
            prop_assert!(all.contains(&wanted));
        }
    }
}
