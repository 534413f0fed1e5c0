//! Which route takes a request? By the table that is compiled from a configuration, and by reading
//! what was asked for condition by condition, as the documentation has it: both must say the same.
//! What a request has is known before it is written down, so nothing here parses one.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use subak_access_log::Sinks;
use subak_config as config;
use subak_message::h1::{Progress, parse_request};
use subak_message::{RequestHead, Scheme};
use subak_telemetry::{Problems, Registry};

use crate::{Logging, Service};

/// As they are written in a request, and the host that is meant; none: HTTP/1.0 without one.
const HOSTS: [(&str, &str); 5] = [
    ("a.test", "a.test"),
    ("A.Test:8080", "a.test"),
    ("b.a.test.", "b.a.test"),
    ("xa.test", "xa.test"),
    ("", ""),
];
const HOST_PATTERNS: [&str; 4] = ["a.test", "b.a.test", "*.a.test", "*.test"];
/// As they are written, and as routes compare them.
const PATHS: [(&str, &str); 8] = [
    ("/", "/"),
    ("/a", "/a"),
    ("/a/", "/a/"),
    ("/x/../a/b", "/a/b"),
    ("/%61b", "/ab"),
    ("//a", "/a"),
    ("/a%3fb", "/a%3Fb"),
    ("/a;x=y/b", "/a/b"),
];
const METHODS: [&str; 3] = ["GET", "POST", "PURGE"];
/// As they come, and whom they are taken for.
const CLIENTS: [(Option<&str>, Option<&str>); 6] = [
    (None, None),
    (Some("10.1.2.3"), Some("10.1.2.3")),
    (Some("::ffff:10.1.2.3"), Some("10.1.2.3")),
    (Some("192.0.2.7"), Some("192.0.2.7")),
    (Some("192.0.2.8"), Some("192.0.2.8")),
    (Some("2001:db8::7"), Some("2001:db8::7")),
];
const NETWORKS: [&str; 5] = ["10.0.0.0/8", "192.0.2.7", "192.0.2.6/31", "2001:db8::/32", "unix"];
const NAMES: [&str; 2] = ["X-A", "X-B"];
const VALUES: [&str; 5] = ["", "a", "ab", "ba", "b-a"];
/// In a query anything can be said.
const QUERY_VALUES: [&str; 6] = ["", "a", "ab", "b a", "a&b=+", "%61"];
const WANTED: [&str; 4] = ["a", "b", "ab", "b a"];

/// What a route asks of a request, or refuses in one.
#[derive(Clone, Debug, Default)]
struct Asked {
    host: Vec<&'static str>,
    path: Option<(&'static str, &'static str)>,
    method: Vec<&'static str>,
    client: Vec<&'static str>,
    header: Values,
    cookie: Values,
    query: Values,
}

/// Patterns, any of which will do, by names, each of which has to be met.
type Values = Vec<(&'static str, Vec<Pattern>)>;

#[derive(Clone, Debug)]
enum Pattern {
    /// All of these tests by one value.
    Tests(Vec<(&'static str, &'static str)>),
    Present,
    Absent,
}

#[derive(Clone, Debug)]
struct Drawn {
    asks: Asked,
    refuses: Asked,
}

/// A request, by what it has.
#[derive(Clone, Debug)]
struct Request {
    host: (&'static str, &'static str),
    path: (&'static str, &'static str),
    method: &'static str,
    client: (Option<&'static str>, Option<&'static str>),
    header: Vec<(&'static str, &'static str)>,
    cookie: Vec<(&'static str, &'static str)>,
    query: Vec<(&'static str, &'static str)>,
    /// Written the other way: names in lower case, every byte of the query encoded, each cookie in a
    /// field of its own.
    is_odd: bool,
}

/// Nothing most of the time, or few routes would take anything.
fn seldom<T: Clone + std::fmt::Debug + 'static>(
    all: &'static [T],
) -> impl Strategy<Value = Vec<T>> {
    prop_oneof![3 => Just(Vec::new()), 1 => subsequence(all.to_vec(), 1..=2)]
}

fn pattern() -> impl Strategy<Value = Pattern> {
    let kind = select(&["exact", "prefix", "suffix", "contains", "regex"][..]);
    let tests = vec((kind, select(&WANTED[..])), 1..=2).prop_map(|mut tests| {
        tests.dedup_by_key(|(kind, _)| *kind);
        Pattern::Tests(tests)
    });
    prop_oneof![4 => tests, 1 => Just(Pattern::Present), 1 => Just(Pattern::Absent)]
}

fn values() -> impl Strategy<Value = Values> {
    (seldom(&NAMES), vec(vec(pattern(), 1..=2), 2))
        .prop_map(|(names, patterns)| names.into_iter().zip(patterns).collect())
}

fn asked() -> impl Strategy<Value = Asked> {
    let path = select(
        &[("prefix", "/a"), ("prefix", "/a/"), ("exact", "/a"), ("regex", "b$"), ("regex", "^/a")]
            [..],
    );
    let path = prop::option::weighted(0.4, path);
    let first = (seldom(&HOST_PATTERNS), path, seldom(&METHODS), seldom(&NETWORKS));
    (first, values(), values(), values()).prop_map(
        |((host, path, method, client), header, cookie, query)| Asked {
            host,
            path,
            method,
            client,
            header,
            cookie,
            query,
        },
    )
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let refuses = prop_oneof![2 => Just(Asked::default()), 1 => asked()];
    (asked(), refuses).prop_map(|(asks, refuses)| Drawn { asks, refuses })
}

fn request() -> impl Strategy<Value = Request> {
    let pairs = |values: &'static [&str]| vec((select(&NAMES[..]), select(values)), 0..=3);
    let line = (select(&HOSTS[..]), select(&PATHS[..]), select(&METHODS[..]), select(&CLIENTS[..]));
    let rest = (pairs(&VALUES), pairs(&VALUES), pairs(&QUERY_VALUES), any::<bool>());
    (line, rest).prop_map(|((host, path, method, client), (header, cookie, query, is_odd))| {
        Request { host, path, method, client, header, cookie, query, is_odd }
    })
}

impl Asked {
    /// Its keys, as a file has them.
    fn write(&self) -> Vec<String> {
        let mut keys = Vec::new();
        for (key, texts) in
            [("host", &self.host), ("method", &self.method), ("client", &self.client)]
        {
            if !texts.is_empty() {
                keys.push(format!("{key} = {texts:?}"));
            }
        }
        if let Some((kind, text)) = self.path {
            keys.push(format!("path = {{ {kind} = {text:?} }}"));
        }
        for (key, values) in
            [("header", &self.header), ("cookie", &self.cookie), ("query", &self.query)]
        {
            let pattern = |pattern: &Pattern| match pattern {
                Pattern::Tests(tests) => {
                    let tests = tests.iter().map(|(kind, text)| format!("{kind} = {text:?}"));
                    format!("{{ {} }}", tests.collect::<Vec<_>>().join(", "))
                }
                Pattern::Present => "{ present = true }".to_owned(),
                Pattern::Absent => "{ present = false }".to_owned(),
            };
            let list =
                |patterns: &[Pattern]| patterns.iter().map(pattern).collect::<Vec<_>>().join(", ");
            let named = values.iter().map(|(name, all)| format!("{name} = [{}]", list(all)));
            if !values.is_empty() {
                keys.push(format!("{key} = {{ {} }}", named.collect::<Vec<_>>().join(", ")));
            }
        }
        keys
    }

    /// Of each condition, whether it is met; by all values of a name if it is `negated`, else by one.
    fn met(&self, request: &Request, negated: bool) -> Vec<bool> {
        let mut met = Vec::new();
        if !self.host.is_empty() {
            met.push(self.host.iter().any(|pattern| match pattern.strip_prefix('*') {
                Some(end) => request.host.1.ends_with(end) && request.host.1 != end,
                None => request.host.1 == *pattern,
            }));
        }
        if let Some((kind, text)) = self.path {
            met.push(is_met(kind, text, request.path.1));
        }
        if !self.method.is_empty() {
            met.push(self.method.contains(&request.method));
        }
        if !self.client.is_empty() {
            met.push(self.client.iter().any(|network| is_within(network, request.client.1)));
        }
        for (values, pairs) in [
            (&self.header, &request.header),
            (&self.cookie, &request.cookie),
            (&self.query, &request.query),
        ] {
            for (name, patterns) in values {
                let of_name = |pair: &&(&str, &str)| pair.0 == *name;
                let found: Vec<&str> = pairs.iter().filter(of_name).map(|pair| pair.1).collect();
                let fits = |value: &&str| {
                    patterns.iter().any(|pattern| match pattern {
                        Pattern::Present => true,
                        Pattern::Absent => false,
                        Pattern::Tests(tests) => {
                            tests.iter().all(|(kind, text)| is_met(kind, text, value))
                        }
                    })
                };
                met.push(match (found.is_empty(), negated) {
                    (true, _) => patterns.iter().any(|one| matches!(one, Pattern::Absent)),
                    (false, false) => found.iter().any(fits),
                    (false, true) => found.iter().all(fits),
                });
            }
        }
        met
    }
}

fn is_met(kind: &str, text: &str, value: &str) -> bool {
    match kind {
        "exact" => value == text,
        "prefix" => value.starts_with(text),
        "suffix" => value.ends_with(text),
        "contains" => value.contains(text),
        "regex" => match (text.strip_prefix('^'), text.strip_suffix('$')) {
            (Some(start), _) => value.starts_with(start),
            (_, Some(end)) => value.ends_with(end),
            _ => value.contains(text),
        },
        _ => unreachable!("{kind}"),
    }
}

/// Bit by bit.
fn is_within(network: &str, client: Option<&str>) -> bool {
    let Some(client) = client else { return network == "unix" };
    let bits = |text: &str| match text.parse() {
        Ok(IpAddr::V4(ip)) => format!("4{:032b}", ip.to_bits()),
        Ok(IpAddr::V6(ip)) => format!("6{:0128b}", ip.to_bits()),
        Err(_) => String::new(),
    };
    let (start, client) = (network.split('/').next().map(bits), bits(client));
    let start = start.filter(|bits| !bits.is_empty());
    let length = network.split('/').nth(1).map(|length| length.parse::<usize>().expect("a length"));
    start.is_some_and(|bits| client.starts_with(&bits[..length.map_or(bits.len(), |one| one + 1)]))
}

impl Drawn {
    fn write(&self) -> String {
        let mut text = "[[listener.web.route]]\nrespond = 404\n".to_owned();
        text += &self.asks.write().join("\n");
        let refuses = self.refuses.write();
        if !refuses.is_empty() {
            write!(text, "\nnot = {{ {} }}", refuses.join(", ")).expect("writing to memory");
        }
        text + "\n"
    }

    fn takes(&self, request: &Request) -> bool {
        let is_asked = self.asks.met(request, false).iter().all(|met| *met);
        is_asked && self.refuses.met(request, true).iter().all(|met| !met)
    }
}

impl Request {
    fn write(&self) -> String {
        let encoded = |text: &str| -> String {
            let byte = |byte: u8| match byte {
                _ if self.is_odd => format!("%{byte:02x}"),
                b' ' => "+".to_owned(),
                b'&' | b'=' | b'+' | b'%' => format!("%{byte:02X}"),
                _ => char::from(byte).to_string(),
            };
            text.bytes().map(byte).collect()
        };
        let pair = |(name, value): &(&str, &str)| match value.is_empty() && self.is_odd {
            true => encoded(name),
            false => format!("{}={}", encoded(name), encoded(value)),
        };
        let query: Vec<String> = self.query.iter().map(pair).collect();
        let mark = if query.is_empty() { "" } else { "?" };
        let (method, path, query) = (self.method, self.path.0, query.join("&"));
        let mut text = match self.host.0 {
            "" => format!("{method} {path}{mark}{query} HTTP/1.0\r\n"),
            host => format!("{method} {path}{mark}{query} HTTP/1.1\r\nHost: {host}\r\n"),
        };
        for (name, value) in &self.header {
            let name = if self.is_odd { name.to_ascii_lowercase() } else { (*name).to_owned() };
            write!(text, "{name}: {value}\r\n").expect("writing to memory");
        }
        let cookies: Vec<String> =
            self.cookie.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let fields = if self.is_odd { cookies } else { vec![cookies.join("; ")] };
        for field in fields.iter().filter(|field| !field.is_empty()) {
            write!(text, "Cookie: {field}\r\n").expect("writing to memory");
        }
        text + "\r\n"
    }
}

/// None: a route can never take anything, and the configuration is refused.
fn compiled(routes: &[Drawn]) -> Option<Service> {
    let mut text = "[listener.web]\nbind = \"0.0.0.0:80\"\n".to_owned();
    text.extend(routes.iter().map(Drawn::write));
    let outcome = config::parse(&text, Path::new("subak.toml"));
    let problems = format!("{:?}\n{text}", outcome.diagnostics);
    let Some(config) = outcome.config else {
        assert!(problems.contains("this route can never match"), "{problems}");
        return None;
    };
    let mut sinks = Sinks::new(Problems::default());
    let counted = (&mut Registry::new(1), &mut Logging { sinks: &mut sinks, generation: 0 });
    let none = (&HashMap::new(), &HashMap::new());
    Some(Service::build(&config.listeners[0], &config, none, None, counted).expect("a service"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn the_first_route_whose_conditions_all_hold_takes_a_request(
        drawn in vec(drawn(), 1..8),
        requests in vec(request(), 30),
    ) {
        let mut routes = Vec::new();
        for route in drawn {
            routes.push(route);
            if compiled(&routes).is_none() {
                let last = routes.pop().expect("it was just put there");
                let taken = |request: &&Request| {
                    last.takes(request) && !routes.iter().any(|route| route.takes(request))
                };
                prop_assert!(requests.iter().find(taken).is_none(), "{last:?} was refused");
            }
        }
        let service = compiled(&routes).expect("it was tried");
        for request in &requests {
            let text = request.write();
            let mut head = RequestHead::new(Scheme::Http);
            let parsed = parse_request(text.as_bytes(), &service.head_limits, &mut head);
            prop_assert!(matches!(parsed, Ok(Progress::Complete { .. })), "{parsed:?}\n{text}");
            let client = request.client.0.map(|client| client.parse().expect("an address"));
            let found = service.route(&head, client).and_then(|route| service.place_of(route));
            let expected = routes.iter().position(|route| route.takes(request));
            prop_assert_eq!(found, expected, "{}", text);
            for (route, drawn) in service.all_routes().0.iter().zip(&routes) {
                let told = route.tell(&head, client);
                prop_assert_eq!(told.iter().all(|(_, holds)| *holds), drawn.takes(request));
            }
        }
    }
}
