//! Every algorithm of the catalogue and its options, as a configuration sets them.

use crate::support::read;
use subak_balance::catalogue::{self, OptionKind, OptionValue};
use subak_balance::{Algorithm, KeySource, Method};
use subak_config::{Outcome, Severity};

fn outcome(balance: &str, endpoints: &str) -> Outcome {
    read(&format!(
        "[listener.web]\nbind = \"0.0.0.0:80\"\npool = \"app\"\n\
         [pool.app]\nbalance = {balance}\nendpoints = [{endpoints}]\n"
    ))
}

fn algorithm(balance: &str) -> Algorithm {
    let outcome = outcome(balance, "\"10.0.0.2:80\"");
    assert!(outcome.diagnostics.is_empty(), "{balance}: {:?}", outcome.diagnostics);
    outcome.config.expect("no errors").pools.remove(0).algorithm
}

#[test]
fn every_name_and_every_option_at_both_its_ends() {
    for listing in catalogue::all() {
        for name in [listing.name].iter().chain(listing.aliases) {
            let expected = listing.configure(name, &[]).expect("defaults");
            assert_eq!(algorithm(&format!("{name:?}")), expected);
            for option in listing.options {
                let values: Vec<OptionValue<'_>> = match option.kind {
                    OptionKind::Words(words) => words.iter().map(|word| (*word).into()).collect(),
                    OptionKind::Text { forms, .. } => {
                        forms.iter().map(|form| (*form).into()).collect()
                    }
                    OptionKind::Integer { min, max } => [min, max].map(OptionValue::Integer).into(),
                    OptionKind::Decimal { min, max } => {
                        [min, max].map(OptionValue::Thousandths).into()
                    }
                };
                for value in values {
                    let Ok(expected) = listing.configure(name, &[(option.name, value)]) else {
                        continue;
                    };
                    let table = format!("{{ algorithm = {name:?}, {} = {value} }}", option.name);
                    assert_eq!(algorithm(&table), expected, "{table}");
                }
            }
        }
    }
}

#[test]
fn a_factor_may_be_a_whole_number_and_an_alias_brings_its_key() {
    let set = algorithm("{ algorithm = \"uri_hash\", method = \"ring\", balance_factor = 2 }");
    let Algorithm::Hash { key, method, balance_factor } = set else { panic!("a hash") };
    assert_eq!((key, method), (KeySource::Uri, Method::Ring));
    assert_eq!(balance_factor.thousandths(), Some(2000));
    let set = algorithm("{ algorithm = \"maglev\", balance_factor = 1.25, key = \"query:id\" }");
    let Algorithm::Maglev { key, balance_factor } = set else { panic!("maglev") };
    assert_eq!((key, balance_factor.thousandths()), (KeySource::Query("id".into()), Some(1250)));
}

#[test]
fn looking_at_more_than_a_thousand_endpoints_is_advised_against() {
    let endpoints: Vec<String> =
        (0..1001).map(|n| format!("\"10.0.{}.{}:80\"", n / 250, n % 250)).collect();
    let all = endpoints.join(", ");
    let dear = outcome("\"least_connections\"", &all);
    let [advice] = &dear.diagnostics[..] else { panic!("{:?}", dear.diagnostics) };
    assert_eq!(advice.severity, Severity::Warning);
    assert!(advice.label.contains("looks at all 1001 endpoints"), "{advice:?}");
    assert!(advice.label.contains("power_of_two"), "{advice:?}");
    assert!(outcome("\"p2c\"", &all).diagnostics.is_empty());
    assert!(outcome("\"least_connections\"", &endpoints[..1000].join(", ")).diagnostics.is_empty());
}

#[test]
fn shadows_take_what_the_pool_s_own_takes_and_are_called_by_what_is_not_at_its_default() {
    let shadows = |list: &str| {
        let outcome = outcome(&format!("\"random\"\nshadow = {list}"), "\"10.0.0.2:80\"");
        assert!(outcome.diagnostics.is_empty(), "{list}: {:?}", outcome.diagnostics);
        outcome.config.expect("no errors").pools.remove(0).shadows
    };
    assert!(shadows("[]").is_empty());
    for listing in catalogue::all() {
        for name in [listing.name].iter().chain(listing.aliases) {
            let found = shadows(&format!("[{name:?}]"));
            assert_eq!(found[0].algorithm, listing.configure(name, &[]).expect("defaults"));
            assert!(found[0].name.starts_with(listing.name), "{found:?}");
        }
    }
    let names = |list: &str| -> Vec<String> {
        shadows(list).iter().map(|shadow| shadow.name.to_string()).collect()
    };
    let list = r#"["random", "p2c", { algorithm = "power_of_two", choices = 3 },
        { algorithm = "hash", balance_factor = 1.5, method = "maglev", key = "header:X-Tenant" }]"#;
    let expected = [
        "random",
        "power_of_two",
        "power_of_two choices=3",
        "hash key=header:X-Tenant method=maglev balance_factor=1.5",
    ];
    assert_eq!(names(list), expected);
    assert_eq!(names(r#"[{ algorithm = "power_of_two", choices = 2 }]"#), ["power_of_two"]);
}
