//! The declaration and the reader agree: every example is accepted and changes what is read, every
//! default is what holds without the key, every key that is said to be required is missed.

use crate::support::read;
use subak_config::keys::{Key, Rule, Table, Without};
use subak_config::vocabulary::TABLES;
use subak_config::{Config, Severity, render};

/// A configuration in which the table at `path` has these pairs.
fn document(path: &str, pairs: &[(String, String)]) -> String {
    let joined: Vec<String> = pairs.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let inner = joined.join(", ");
    let route = |rest: &str| listener(&format!("bind = \"0.0.0.0:80\", route = [{{ {rest} }}]"));
    let beside = |rest: &str| listener(&format!("bind = \"0.0.0.0:80\", pool = \"app\", {rest}"));
    let pool =
        |rest: &str| format!("{}\npool = {{ app = {{ {rest} }} }}\n", front("pool = \"app\""));
    match path {
        "" => format!("{}\n", joined.join("\n")),
        // Without a key there is no such table.
        "acme" => {
            let rest = listener("bind = \"0.0.0.0:80\", pool = \"app\"");
            format!("acme = {{ {inner} }}\n{rest}")
        }
        "listener.NAME.tls" if inner.contains("acme = ") => {
            let rest = beside(&format!("tls = {{ {inner} }}"));
            format!("acme = {{ accept_terms = true, challenge = \"tls-alpn-01\" }}\n{rest}")
        }
        "admin" | "dns" => {
            let rest = listener("bind = \"0.0.0.0:80\", pool = \"app\"");
            if pairs.is_empty() { rest } else { format!("{path} = {{ {inner} }}\n{rest}") }
        }
        "acme.external_account" | "acme.back_off" => {
            let key = path.rsplit('.').next().expect("a path has a last part");
            let rest = listener("bind = \"0.0.0.0:80\", pool = \"app\"");
            format!("acme = {{ accept_terms = true, {key} = {{ {inner} }} }}\n{rest}")
        }
        "access_log" => {
            let rest = listener("bind = \"0.0.0.0:80\", pool = \"app\"");
            format!("access_log = {{ {inner} }}\n{rest}")
        }
        "listener.NAME" if inner.contains("hsts = ") && !inner.contains("tls = ") => {
            listener(&format!("{inner}, {TLS}"))
        }
        "listener.NAME" => listener(&inner),
        "listener.NAME.hsts" => beside(&format!("{TLS}, hsts = {{ {inner} }}")),
        "listener.NAME.tls.client" => {
            let rest = TLS.trim_end_matches(" }");
            beside(&format!("{rest}, client = {{ {inner} }} }}"))
        }
        "listener.NAME.tls.certificates" => {
            beside(&format!("tls = {{ certificates = [{{ {inner} }}] }}"))
        }
        "request_headers, response_headers" => beside(&format!("request_headers = {{ {inner} }}")),
        "listener.NAME.route" => route(&inner),
        "listener.NAME.limits.in_flight" | "listener.NAME.limits.connections_per_client" => {
            let key = path.rsplit('.').next().expect("a path has a last part");
            beside(&format!("limits = {{ {key} = {{ {inner} }} }}"))
        }
        // No agent can be asked beside a unix socket.
        "pool.NAME" => pool(&inner.replace(", \"unix:/run/app.sock\"", "")),
        "pool.NAME.endpoints" => pool(&format!("endpoints = [{{ {inner} }}]")),
        other => {
            let key = other.rsplit('.').next().expect("a path has a last part");
            if let Some(rest) = other.strip_prefix("listener.NAME.route.") {
                match rest {
                    "header.NAME" => {
                        route(&format!("pool = \"app\", header = {{ X = {{ {inner} }} }}"))
                    }
                    "split.pools" => {
                        route(&format!("split = [{{ {inner} }}, {{ pool = \"next\" }}]"))
                    }
                    "path" | "not" | "rewrite" | "limits" => {
                        route(&format!("pool = \"app\", {key} = {{ {inner} }}"))
                    }
                    _ => route(&format!("{key} = {{ {inner} }}")),
                }
            } else if other.starts_with("listener.NAME.") {
                beside(&format!("{key} = {{ {inner} }}"))
            } else if let Some((outer, _)) = of_pool(other) {
                let of = format!("pool.NAME.{outer}");
                let table = TABLES.iter().find(|table| table.path == of).expect("a table");
                let outer_pairs = complete(table);
                pool(&format!(
                    "endpoints = [\"10.0.0.2:8080\"], {outer} = {{ {outer_pairs}{key} = {{ {inner} }} }}"
                ))
            } else {
                pool(&format!("endpoints = [\"10.0.0.2:8080\"], {key} = {{ {inner} }}"))
            }
        }
    }
}

/// What some keys of a listener go with.
const TLS: &str = "tls = { certificates = [{ chain = \"other.pem\", key = \"other.key\" }] }";

/// Of the path of a table within a pool's table: the names of both.
fn of_pool(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("pool.NAME.")?.split_once('.')
}

/// What a table has to have, as `key = value, …`.
fn complete(table: &Table) -> String {
    let one_of = table.rules.iter().filter_map(|rule| match rule {
        Rule::ExactlyOne(group) | Rule::AtLeastOne(group) => group.first().copied(),
        Rule::AtMostOne(_) => None,
    });
    let required = table.keys.iter().filter(|key| key.without == Without::Required);
    let names = required.map(|key| key.name).chain(one_of);
    names.map(|name| format!("{name} = {}, ", table.key(name).expect("declared").example)).collect()
}

fn front(rest: &str) -> String {
    format!("listener = {{ web = {{ bind = \"0.0.0.0:80\", {rest} }} }}")
}

fn listener(rest: &str) -> String {
    format!(
        "listener = {{ web = {{ {rest} }} }}\npool = {{ app = {{ endpoints = [\"10.0.0.2:8080\"] }}, next = {{ endpoints = [] }} }}\n"
    )
}

/// The pairs a table has to have without `key`, so that it is complete but for it.
fn without(table: &Table, key: &Key) -> Vec<(String, String)> {
    let mut names: Vec<&str> = table
        .keys
        .iter()
        .filter(|other| other.without == Without::Required)
        .map(|other| other.name)
        .collect();
    // What a key goes with: a media type needs something that it is the type of, the table of clients
    // is no cookie. The top level needs its pool. TCP takes a token, see `with`.
    let with = match (table.path, key.name) {
        ("listener.NAME.route.respond", "content_type") => &["body"][..],
        ("listener.NAME.route", "strip_prefix" | "rewrite") => &["pool"],
        ("pool.NAME.health", "server_name") => &["http", "tls"],
        ("pool.NAME.stick", "expire" | "entries") => &["table"],
        ("access_log", "facility" | "tag") => &["syslog"],
        ("admin", "hosts" | "unix_endpoints") => &["tcp", "token_file"],
        ("admin", _) => &["socket"],
        ("", "group") => &["pool", "user"],
        ("", _) => &["pool"],
        _ => &[],
    };
    for rule in table.rules {
        if let Rule::ExactlyOne(group) | Rule::AtLeastOne(group) = rule
            && !with.iter().any(|with| group.contains(with))
        {
            names.extend(group.iter().find(|name| **name != key.name));
        }
    }
    names.extend(with);
    names
        .into_iter()
        .filter(|name| *name != key.name)
        .map(|name| (name.to_string(), table.key(name).expect("declared").example.to_string()))
        .collect()
}

/// The pairs of [`without`], and `key` with a value; keys that exclude it give way.
fn with(table: &Table, key: &Key, value: &str) -> Vec<(String, String)> {
    let excluded = |name: &str| {
        table.rules.iter().any(|rule| match rule {
            Rule::ExactlyOne(group) | Rule::AtMostOne(group) => {
                group.contains(&key.name) && group.contains(&name)
            }
            Rule::AtLeastOne(_) => false,
        })
    };
    let mut pairs = without(table, key);
    pairs.retain(|(name, _)| !excluded(name) && (table.path, &**name) != ("admin", "socket"));
    pairs.push((key.name.to_string(), value.to_string()));
    // What cannot do without another key has it beside it.
    let beside = match (table.path, key.name) {
        ("admin", "tcp") => "token_file",
        ("admin", "token_file") => "tcp",
        _ => return pairs,
    };
    let example = table.key(beside).expect("declared").example;
    pairs.push((beside.to_string(), example.to_string()));
    pairs
}

fn config(text: &str) -> Config {
    let outcome = read(text);
    let shown = render(&outcome.diagnostics, text, "subak.toml".as_ref(), false);
    outcome.config.unwrap_or_else(|| panic!("{text}\n{shown}"))
}

fn every_key() -> impl Iterator<Item = (&'static Table, &'static Key)> {
    TABLES.iter().flat_map(|table| table.keys.iter().map(|key| (*table, key)))
}

#[test]
fn every_example_is_accepted_and_changes_what_is_read() {
    let mut count = 0;
    for (table, key) in every_key() {
        let changed = config(&document(table.path, &with(table, key, key.example)));
        count += 1;
        if key.without != Without::Required && !(table.path.is_empty() && key.name == "pool") {
            let plain = config(&document(table.path, &without(table, key)));
            assert_ne!(changed, plain, "`{}` of {} changes nothing", key.name, table.path);
        }
    }
    assert!(count > 70, "the vocabulary has shrunk to {count} keys");
}

#[test]
fn every_default_is_what_holds_without_the_key() {
    for (table, key) in every_key() {
        let Without::Default(default) = key.without else { continue };
        let said = config(&document(table.path, &with(table, key, default)));
        let unsaid = config(&document(table.path, &without(table, key)));
        assert_eq!(said, unsaid, "`{}` of {} is not {default} by default", key.name, table.path);
    }
}

#[test]
fn every_required_key_is_missed() {
    for (table, key) in every_key().filter(|(_, key)| key.without == Without::Required) {
        let outcome = read(&document(table.path, &without(table, key)));
        assert!(outcome.config.is_none(), "`{}` of {} is not missed", key.name, table.path);
        let lacks = format!("lacks `{}`", key.name);
        assert!(
            outcome
                .diagnostics
                .iter()
                .any(|one| one.severity == Severity::Error && one.message.contains(&lacks)),
            "{:?}",
            outcome.diagnostics
        );
    }
}

#[test]
fn every_table_and_key_has_its_words() {
    for table in TABLES {
        assert!(table.doc.ends_with('.') && !table.what.is_empty(), "{}", table.path);
        for (index, key) in table.keys.iter().enumerate() {
            assert!(key.doc.ends_with('.'), "{} {}", table.path, key.name);
            assert!(
                table.keys[..index].iter().all(|other| other.name != key.name),
                "{} twice",
                key.name
            );
        }
        for rule in table.rules {
            let (Rule::ExactlyOne(names) | Rule::AtLeastOne(names) | Rule::AtMostOne(names)) = rule;
            assert!(names.iter().all(|name| table.key(name).is_some()), "{}", table.path);
        }
    }
}

#[test]
fn the_short_forms_mean_the_same_as_the_tables() {
    let long = "[listener.web]\nbind = [\"0.0.0.0:80\"]\nmin_rate = { rate = \"1KiB\" }\n\
        [[listener.web.route]]\nhost = [\"a\"]\npath = { prefix = \"/x/\" }\nredirect = { to = \"/y\" }\n\
        [[listener.web.route]]\nrespond = { status = 404 }\n\
        [[listener.web.route]]\npool = \"app\"\nhost = \"b\"\n\
        [pool.app]\nbalance = { algorithm = \"round_robin\" }\nback_off = { initial = \"2s\" }\nmax_in_flight = 7\n\
        endpoints = [{ address = \"10.0.0.2:80\", weight = 3, max_connections = 5 }, { address = \"10.0.0.3:80\" }]\n";
    let short = "[listener.web]\nbind = \"0.0.0.0:80\"\nmin_rate = 1024\n\
        [[listener.web.route]]\nhost = \"a\"\npath = \"/x/\"\nredirect = \"/y\"\n\
        [[listener.web.route]]\nrespond = 404\n\
        [[listener.web.route]]\npool = \"app\"\nhost = [\"b\"]\n\
        [pool.app]\nbalance = \"wrr\"\nback_off = \"2s\"\n\
        endpoints = [\"10.0.0.2:80 weight=3 max_in_flight=7 max_connections=5\", \"10.0.0.3:80 max_in_flight=7\"]\n";
    // A route that takes everything would hide the last one.
    let (long, short) = (
        long.replace("respond", "host = \"c\"\nrespond"),
        short.replace("respond", "host = \"c\"\nrespond"),
    );
    let (long, mut short) = (config(&long), config(&short));
    // A pool's own key says also what endpoints get that join it later.
    short.pools[0].caps = long.pools[0].caps;
    assert_eq!(long, short);
}
