//! What is written is what is read: every field of the model from its own key.

use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::read;
use subak_balance::weigher::{Coefficients, Options, PerResource, Ppm};
use subak_balance::{Algorithm, Order};
use subak_base::Weight;
use subak_config::{
    Action, Address, Admin, BackOff, Check, Config, EndpointProtocol, ForwardPath,
    ForwardedHeaders, HeaderEdits, HostForward, HostPattern, LimitKey, ListenerLimits,
    ListenerTimeouts, MinRate, Part, PathPattern, PathPolicy, PoolTimeouts, Protocols, Queue,
    RateFields, Retry, RetryOn, SameSite, SecureCookie, Stick, StickTable, Streams, Variable,
};
use subak_health::{
    Admin as State, AgentSpec, BodyMatch, EjectionSpec, Expect, LatencySpec, OnAllDown, ProbeSpec,
    SlowStart,
};
use subak_message::Method;
use subak_message::grpc::{Code, Codes};

const TEXT: &str = r#"
workers = 3
shutdown_timeout = "11s"
max_connections = 12
user = "subak"
group = "1234"
pid_file = "run/subak.pid"
admin = { tcp = "127.0.0.1:9000", token_file = "admin.token", hosts = ["LB1.internal"] }

[listener.web]
bind = ["10.0.0.1:80", "[::1]:81", "unix:/run/web.sock", "*:82"]
tls = { certificates = [{ chain = "site.pem", key = "site.key" }] }
protocols = ["h2"]
trusted_proxies = ["10.0.0.0/8", "::1", "unix"]
timeouts = { head = "1s", body_idle = "2s", keep_alive = "3s", write_idle = "4s" }
min_rate = { rate = 5, grace = "6s" }
limits = { head = "2k", fields = 7, requests_per_connection = 8, body = 9, connections = 10 }
path = { merge_slashes = false, forward = "normalized" }
allow_trace = true
request_headers = { set = { A = "1" }, add = { B = ["2", "3"] }, remove = ["C"] }
response_headers = { set = { D = "4" } }
forwarded_headers = { x_forwarded = false, forwarded = true }
error_pages = { 404 = "404.html", "5xx" = "error.html", 502 = "502.html" }
pool = "app"

[[listener.web.route]]
host = ["A.example.com", "*.b.example.com"]
path = { exact = "/a//b" }
pool = "app"
request_headers = { set = { E = "5" } }
response_headers = { set = { F = "6" } }
error_pages = { "4xx" = "404.html" }

[[listener.web.route]]
path = "/c/"
redirect = { to = "{scheme}://{host}{path}?{query}", status = 307 }

[[listener.web.route]]
path = { regex = "^/d" }
respond = { status = 418, body = "tea", content_type = "text/x-tea" }

[[listener.web.route]]
path = { prefix = "/e" }
respond = { status = 503, file = "busy.html" }

[listener.plain]
bind = "127.0.0.1:8000"
min_rate = 0
limits = { requests_per_connection = "unlimited" }

[[listener.plain.route]]
respond = 204

[pool.app]
balance = { algorithm = "wrr", order = "burst" }
endpoints = [
    "10.0.0.2:80 weight=0 max_in_flight=21 max_connections=22 backup=true",
    { address = "[::ffff:10.0.0.3]:80", weight = 65535, backup = true, state = "maintenance" },
    "localhost:80 state=drain backup=false",
]
max_in_flight = 23
max_connections = 24
timeouts = { connect = "25s", first_byte = "26s", idle = "27s", keep_alive = "28s", tunnel = "37s" }
keep_alive_connections = 29
protocol = "auto"
streams = { per_connection = 75, connections = 2, window = "76KiB", ping = "77s" }
queue = { length = 30, timeout = "31s" }
retry = { budget = 0.032, min_per_second = 33, attempts = 3, on = ["reset", 502, "503", "502"], body = 34 }
back_off = { initial = "35s", max = "36s" }
health = { http = "/h?deep=1", method = "OPTIONS", host = "h.internal", status = "204,5xx", body = { exact = "ok" }, port = 38, interval = "39s", fast_interval = "400ms", timeout = "41ms", rise = 42, fall = 43, jitter = 0.044, assume = "down" }
agent_check = { port = 45, interval = "46s", timeout = "47ms", jitter = 0.048 }
eject = { consecutive = 49, share = 0.05, latency = { factor = 51, min = "52ms" }, window = "53s", min_requests = 54, base = "55s", max = "56s", max_share = 0.057 }
on_all_down = "backup_only"
slow_start = { over = "58s", from = 0.059 }
stick = { cookie = "C", path = "/c", secure = true, http_only = false, same_site = "none", keys_file = "session.keys" }
weigher = { resource = true, token_file = "agent.token", port = 60, interval = "61s", timeout = "62ms", hold = "63h", band = 0.000064, max_jitter = 0.000065, capacity = { cpu = 66, memory = 67, disk = 68, network = 69 }, load = { cpu = 70, memory = 71, disk = 72, network = 73 } }
pick_log = 74
request_headers = { remove = ["G"] }
response_headers = { remove = ["H"] }
host = "app.internal:8080"
"#;

fn config() -> Config {
    let outcome = read(TEXT);
    // The certificate of the test is for other names.
    let is_expected = |message: &str| {
        message.starts_with("no certificate is for ") || message == "without TLS this is HTTP/1.1"
    };
    let mut messages = outcome.diagnostics.iter().map(|diagnostic| &*diagnostic.message);
    assert!(messages.all(is_expected), "{:?}", outcome.diagnostics);
    outcome.config.expect("a valid configuration")
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn inet(text: &str) -> Address {
    Address::Inet(text.parse::<SocketAddr>().expect("an address"))
}

/// Header changes as text: removed, set, added.
fn edits(edits: &HeaderEdits) -> String {
    let names: Vec<&str> = edits.remove.iter().map(|name| name.as_str()).collect();
    let pairs = |pairs: &[(subak_config::HeaderName, subak_config::HeaderValue)]| -> Vec<String> {
        pairs.iter().map(|(name, value)| format!("{name}={value}")).collect()
    };
    format!("{} {} {}", names.join(","), pairs(&edits.set).join(","), pairs(&edits.add).join(","))
}

#[test]
fn the_process() {
    let config = config();
    assert_eq!(config.workers, NonZeroUsize::new(3));
    assert_eq!(config.shutdown_timeout, seconds(11));
    assert_eq!(config.max_connections, NonZeroUsize::new(12));
    assert_eq!((config.user.as_deref(), config.group.as_deref()), (Some("subak"), Some("1234")));
    assert_eq!(config.pid_file.as_deref(), Some(Path::new("run/subak.pid")));
    let names: Vec<&str> = config.listeners.iter().map(|listener| &*listener.name).collect();
    assert_eq!(names, ["web", "plain"]);
    assert_eq!(config.pool("app"), Some(&config.pools[0]));
    assert_eq!(config.pool("ap"), None);
    assert_eq!(config.listener("plain"), Some(&config.listeners[1]));
}

#[test]
fn a_listener() {
    let config = config();
    let web = &config.listeners[0];
    let expected = [
        inet("10.0.0.1:80"),
        inet("[::1]:81"),
        Address::Unix(PathBuf::from("/run/web.sock")),
        inet("0.0.0.0:82"),
        inet("[::]:82"),
    ];
    assert_eq!(web.bind, expected);
    let certificates = &web.tls.as_ref().expect("TLS").certificates;
    assert_eq!(certificates.len(), 1);
    assert_eq!(certificates[0].chain.path, Path::new("site.pem"));
    assert!(certificates[0].chain.contents.starts_with(b"-----BEGIN CERTIFICATE-----"));
    assert_eq!(certificates[0].key.path, Path::new("site.key"));
    assert!(certificates[0].key.contents.starts_with(b"-----BEGIN PRIVATE KEY-----"));
    assert!(!format!("{config:?}").contains("BEGIN"), "a key is shown");
    assert_eq!(web.protocols, Protocols { http1: false, http2: true });
    let networks: Vec<String> =
        web.trusted_proxies.networks.iter().map(ToString::to_string).collect();
    assert_eq!(
        (networks.join(" "), web.trusted_proxies.unix),
        ("10.0.0.0/8 ::1/128".to_string(), true)
    );
    let timeouts = ListenerTimeouts {
        head: seconds(1),
        body_idle: seconds(2),
        keep_alive: seconds(3),
        write_idle: seconds(4),
    };
    assert_eq!(web.timeouts, timeouts);
    assert_eq!(web.min_rate, Some(MinRate { bytes_per_second: 5, grace: seconds(6) }));
    let limits = ListenerLimits {
        head_bytes: 2048,
        fields: 7,
        requests_per_connection: NonZeroU32::new(8),
        body_bytes: Some(9),
        connections: NonZeroUsize::new(10),
        per_client: None,
        target_bytes: None,
    };
    assert_eq!(web.limits, limits);
    assert_eq!(
        web.path,
        PathPolicy {
            merge_slashes: false,
            encoded_slashes: subak_message::EncodedSlashes::Refuse,
            forward: ForwardPath::Normalized,
        }
    );
    assert!(web.allow_trace);
    assert_eq!(edits(&web.request_headers), "C A=1 B=2,B=3");
    assert_eq!(edits(&web.response_headers), " D=4 ");
    assert_eq!(web.forwarded_headers, ForwardedHeaders { x_forwarded: false, forwarded: true });
    assert_eq!(web.pool.as_deref(), Some("app"));
    assert_eq!(web.error_pages.by_status.len(), 2);
    assert_eq!(web.error_pages.get(502), Some(&web.error_pages.by_status[1].1));
    assert_eq!(web.error_pages.get(500), Some(&web.error_pages.by_class[0].1));
    assert_eq!(
        web.error_pages.get(404).map(|page| page.content_type.as_str()),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(web.error_pages.get(400), None);

    let plain = &config.listeners[1];
    assert_eq!(plain.min_rate, None);
    assert_eq!(plain.limits.requests_per_connection, None);
    assert_eq!(plain.pool, None);
    assert_eq!(plain.protocols, Protocols { http1: true, http2: true });
}

#[test]
fn limits() {
    let text = "[listener.web]\nbind = \"0.0.0.0:80\"\n\
        rate = [\"100/s\", { rate = \"6000/m\", burst = 7, key = \"header:X-Key\", status = 503, \
                  fields = \"always\", dry_run = true, entries = 9, name = \"keys\" }]\n\
        deny = \"192.0.2.0/24\"\n\
        limits = { target = \"2KiB\", in_flight = [5, { most = 6, key = \"client/24/56\" }], \
                   connections_per_client = { most = 8, key = \"client/16/48\", entries = 10 } }\n\
        [[listener.web.route]]\nrespond = 204\nallow = [\"10.0.0.0/8\"]\nrate = \"1/h\"\n\
        limits = { body = \"unlimited\", target = 20, fields = 3, in_flight = 4 }\n\
        [pool.app]\nendpoints = []\ncircuit = { share = 0, consecutive = 4, slow = \"2s\", \
        window = \"20s\", min_requests = 5, open = \"6s\", trials = 7, max_in_flight = 8 }\n";
    let outcome = subak_config::parse(text, Path::new("subak.toml"));
    let config = outcome.config.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics));
    let web = &config.listeners[0];
    let [plain, keys] = &web.rates[..] else { panic!("two rates") };
    assert_eq!((plain.rate.quota.get(), plain.rate.burst.get()), (100, 100));
    assert_eq!((plain.rate.window, &plain.key), (seconds(1), &LimitKey::CLIENT));
    assert_eq!((plain.status, plain.fields, plain.dry_run), (429, RateFields::Refused, false));
    assert_eq!((keys.rate.quota.get(), keys.rate.burst.get()), (6000, 7));
    assert_eq!((keys.rate.window, keys.key.to_string()), (seconds(60), "header:X-Key".into()));
    assert_eq!((keys.status, keys.fields, keys.dry_run), (503, RateFields::Always, true));
    assert_eq!((keys.entries, keys.name.as_deref()), (9, Some("keys")));
    let may = |networks: &Option<subak_limits::Networks>, address: [u8; 4]| {
        networks.as_ref().expect("networks").may(Some(address.into()))
    };
    assert!(!may(&web.access, [192, 0, 2, 1]) && may(&web.access, [192, 0, 3, 1]));
    assert_eq!(web.limits.target_bytes, Some(2048));
    let [all, client] = &web.in_flight[..] else { panic!("two limits") };
    assert_eq!((all.most.get(), &all.key, all.status), (5, &LimitKey::All, 503));
    let prefixes = LimitKey::Client { v4: 24, v6: 56 };
    assert_eq!((client.most.get(), &client.key, client.status), (6, &prefixes, 429));
    let per = web.limits.per_client.expect("a limit");
    assert_eq!((per.most.get(), per.v4, per.v6, per.entries), (8, 16, 48, 10));
    let route = &web.routes[0].limits;
    assert!(!may(&route.access, [192, 0, 3, 1]) && may(&route.access, [10, 0, 3, 1]));
    assert_eq!((route.body_bytes, route.target_bytes), (Some(None), Some(20)));
    assert_eq!((route.fields, route.in_flight[0].most.get()), (Some(3), 4));
    assert_eq!(route.rates[0].rate.window, seconds(3600));
    let circuit = config.pools[0].circuit.as_ref().expect("a circuit");
    assert_eq!((circuit.share_per_mille, circuit.consecutive), (None, NonZeroU32::new(4)));
    assert_eq!((circuit.slow, circuit.window, circuit.least), (Some(seconds(2)), seconds(20), 5));
    assert_eq!((circuit.open, circuit.trials.get()), (seconds(6), 7));
    assert_eq!(circuit.in_flight, NonZeroU32::new(8));

    for (wrong, said) in [
        (
            text.replace("rate = \"1/h\"", "rate = { rate = \"1/h\", name = \"keys\" }"),
            "are called `keys`",
        ),
        (
            text.replace(
                "deny = \"192.0.2.0/24\"",
                "deny = \"10.0.0.0/8\"\nallow = \"10.0.0.0/8\"",
            ),
            "both allowed and denied",
        ),
        (
            text.replace("share = 0, consecutive = 4,", "share = 0,")
                .replace(", max_in_flight = 8", ""),
            "nothing is left",
        ),
        (text.replace("rate = \"1/h\"", "rate = \"2000000/s\""), "are no limit"),
        (
            text.replace("rate = \"1/h\"", "rate = [\"1/s\", \"1/m\", \"1/h\", \"1/d\", \"2/d\"]"),
            "more than 4",
        ),
    ] {
        let outcome = subak_config::parse(&wrong, Path::new("subak.toml"));
        let mut messages = outcome.diagnostics.iter().map(|diagnostic| &diagnostic.message);
        assert!(outcome.config.is_none() && messages.any(|one| one.contains(said)), "{said}");
    }
}

#[test]
fn routes() {
    let config = config();
    let [first, redirect, respond, file] = &config.listeners[0].routes[..] else {
        panic!("four routes")
    };
    let hosts =
        [HostPattern::Exact("a.example.com".into()), HostPattern::Suffix(".b.example.com".into())];
    assert_eq!(first.hosts, hosts);
    assert_eq!(first.path, PathPattern::Exact("/a//b".into()));
    assert_eq!(first.action, Action::Pool("app".into()));
    assert_eq!(edits(&first.request_headers), " E=5 ");
    assert_eq!(edits(&first.response_headers), " F=6 ");
    assert!(first.error_pages.get(499).is_some() && first.error_pages.get(500).is_none());

    assert_eq!(redirect.path, PathPattern::Prefix("/c/".into()));
    let Action::Redirect(to) = &redirect.action else { panic!("{redirect:?}") };
    assert_eq!(to.status, 307);
    let parts = [
        Part::Variable(Variable::Scheme),
        Part::Text("://".into()),
        Part::Variable(Variable::Host),
        Part::Variable(Variable::Path),
        Part::Text("?".into()),
        Part::Variable(Variable::Query),
    ];
    assert_eq!(to.to.parts, parts);

    assert!(matches!(&respond.path, PathPattern::Regex(regex) if regex.as_str() == "^/d"));
    let Action::Respond(tea) = &respond.action else { panic!("{respond:?}") };
    let page = tea.page.as_ref().expect("a body");
    assert_eq!(
        (tea.status, page.content_type.as_str(), &page.body[..]),
        (418, "text/x-tea", &b"tea"[..])
    );
    let Action::Respond(busy) = &file.action else { panic!("{file:?}") };
    let page = busy.page.as_ref().expect("a body");
    assert_eq!((busy.status, &page.body[..]), (503, &b"<p>sorry</p>\n"[..]));
}

#[test]
fn a_pool() {
    let config = config();
    let pool = &config.pools[0];
    assert_eq!(pool.algorithm, Algorithm::RoundRobin { order: Order::Burst });
    let [first, second, third] = &pool.endpoints[..] else { panic!("three endpoints") };
    assert_eq!((&*first.name, &first.address), ("10.0.0.2:80", &inet("10.0.0.2:80")));
    let numbers = |endpoint: &subak_config::Endpoint| {
        let number = |cap: Option<NonZeroU32>| cap.map_or(0, NonZeroU32::get);
        (endpoint.weight, number(endpoint.max_in_flight), number(endpoint.max_connections))
    };
    assert_eq!(numbers(first), (Weight::ZERO, 21, 22));
    assert_eq!((&*second.name, &second.address), ("[::ffff:10.0.0.3]:80", &inet("10.0.0.3:80")));
    assert_eq!(numbers(second), (Weight(65_535), 23, 24));
    assert_eq!((&third.address, numbers(third)), (&inet("127.0.0.1:80"), (Weight::ONE, 23, 24)));
    let timeouts = PoolTimeouts {
        connect: seconds(25),
        first_byte: seconds(26),
        idle: seconds(27),
        keep_alive: seconds(28),
        tunnel: seconds(37),
    };
    assert_eq!(pool.timeouts, timeouts);
    assert_eq!(pool.keep_alive_connections, 29);
    let streams = Streams {
        per_connection: NonZeroU32::new(75).expect("not zero"),
        connections: NonZeroU32::new(2).expect("not zero"),
        window_bytes: 76 * 1024,
        ping: Some(seconds(77)),
    };
    assert_eq!((pool.protocol, pool.streams), (EndpointProtocol::Auto, streams));
    assert_eq!(pool.queue, Queue { length: 30, timeout: seconds(31), outage: seconds(1) });
    let retry = Retry {
        budget_per_mille: 32,
        min_per_second: 33,
        attempts: NonZeroU32::new(3).expect("not zero"),
        on: RetryOn { reset: true, statuses: vec![502, 503], ..RetryOn::default() },
        body_bytes: 34,
    };
    assert_eq!(pool.retry, retry);
    assert_eq!(pool.back_off, BackOff { initial: seconds(35), max: seconds(36) });
    assert_eq!(edits(&pool.request_headers), "G  ");
    assert_eq!(edits(&pool.response_headers), "H  ");
    assert!(
        matches!(&pool.host, HostForward::Literal(host) if host.as_str() == "app.internal:8080")
    );
}

#[test]
fn health_of_a_pool() {
    let config = config();
    let pool = &config.pools[0];
    let states: Vec<_> =
        pool.endpoints.iter().map(|endpoint| (endpoint.backup, endpoint.state)).collect();
    assert_eq!(states, [(true, State::Ready), (true, State::Maintenance), (false, State::Drain)]);
    let health = pool.health.as_ref().expect("checks");
    let Check::Http(http) = &health.check else { panic!("{health:?}") };
    let host = http.host.as_ref().map(|host| host.as_str());
    assert_eq!(
        (http.method, &*http.target, host),
        (Method::Options, "/h?deep=1", Some("h.internal"))
    );
    let expect =
        Expect { status: "204,500-599".parse().unwrap(), body: BodyMatch::exact("ok").ok() };
    assert_eq!(http.expect, expect);
    assert_eq!(health.port, NonZeroU16::new(38));
    let spec = ProbeSpec {
        interval: seconds(39),
        fast_interval: Duration::from_millis(400),
        timeout: Duration::from_millis(41),
        rise: NonZeroU32::new(42).unwrap(),
        fall: NonZeroU32::new(43).unwrap(),
        jitter_per_mille: 44,
        assume_up: false,
    };
    assert_eq!(health.spec, spec);
    let spec = AgentSpec {
        interval: seconds(46),
        timeout: Duration::from_millis(47),
        jitter_per_mille: 48,
    };
    let agent = pool.agent_check.as_ref().expect("agents");
    assert_eq!((agent.port.get(), &agent.spec), (45, &spec));
    let latency = LatencySpec { factor_per_mille: 51_000, min: Duration::from_millis(52) };
    let eject = EjectionSpec {
        consecutive: NonZeroU32::new(49),
        share_per_mille: NonZeroU32::new(50),
        latency: Some(latency),
        window: seconds(53),
        min_requests: 54,
        base: seconds(55),
        max: seconds(56),
        max_share_per_mille: 57,
    };
    assert_eq!(pool.eject, Some(eject));
    assert_eq!(pool.on_all_down, OnAllDown::BackupOnly);
    assert_eq!(pool.slow_start, Some(SlowStart::new(seconds(58), 59)));
    assert_eq!(pool.pick_log, NonZeroUsize::new(74));
}

#[test]
fn stickiness_and_weigher_of_a_pool() {
    let config = config();
    let pool = &config.pools[0];
    let Some(Stick::Cookie(cookie)) = &pool.stick else { panic!("{:?}", pool.stick) };
    assert_eq!((&*cookie.name, &*cookie.path, cookie.http_only), ("C", "/c", false));
    assert_eq!((cookie.secure, cookie.same_site), (SecureCookie::Always, SameSite::None));
    let keys = cookie.keys.as_ref().expect("keys").secrets();
    assert_eq!(
        keys.iter().map(|key| &**key).collect::<Vec<_>>(),
        [&[0, 255].repeat(8), &b"an old key of words"[..]]
    );

    let weigher = pool.weigher.as_ref().expect("a weigher");
    assert_eq!((weigher.port.get(), weigher.token.secret()), (60, "agent.token-0123456789"));
    assert_eq!((weigher.interval, weigher.timeout), (seconds(61), Duration::from_millis(62)));
    let coefficients = |cpu, memory, disk, network| {
        Coefficients::new(PerResource { cpu, memory, disk, network }).expect("not all zero")
    };
    let options = Options {
        capacity: coefficients(66, 67, 68, 69),
        load: coefficients(70, 71, 72, 73),
        band: Ppm::saturating(64),
        max_jitter: Ppm::saturating(65),
        fresh: seconds(183),
        hold: seconds(63 * 3600),
    };
    assert_eq!(weigher.options, options);
    let shown = format!("{config:?}");
    assert!(!shown.contains("0123456789") && !shown.contains("255"), "a secret is shown");
}

#[test]
fn what_is_not_said_fits_what_is() {
    let pool = |lines: &str| {
        let text = format!(
            "[listener.web]\nbind = \"0.0.0.0:80\"\npool = \"app\"\n[pool.app]\n\
             endpoints = [\"10.0.0.2:80\"]\nhost = \"app.internal\"\n{lines}\n"
        );
        let outcome = read(&text);
        assert!(outcome.diagnostics.is_empty(), "{:?}", outcome.diagnostics);
        outcome.config.expect("a valid configuration").pools.remove(0)
    };
    let health = |line: &str| pool(line).health.expect("checks");
    let spec = health("health = { tcp = true, interval = \"200ms\" }").spec;
    let short = Duration::from_millis(200);
    assert_eq!((spec.interval, spec.fast_interval, spec.timeout), (short, short, short));
    let long = health("health = { http = \"/h\" }");
    assert_eq!(health("health = \"/h\""), long);
    let Check::Http(http) = &long.check else { panic!("{long:?}") };
    let host = http.host.as_ref().map(|host| host.as_str());
    assert_eq!((http.method, host), (Method::Get, Some("app.internal")), "the pool's");
    let own = health("health = { http = \"/h\", host = \"endpoint\" }");
    assert!(matches!(own.check, Check::Http(http) if http.host.is_none()));
    assert_eq!(health("health = \"tcp\"").check, Check::Tcp);
    let grpc = |line: &str| match health(line).check {
        Check::Grpc(grpc) => (grpc.service.to_string(), grpc.host.is_some()),
        other => panic!("{other:?}"),
    };
    assert_eq!(grpc("health = { grpc = \"\" }"), (String::new(), true));
    let own = "health = { grpc = \"shop.Cart\", host = \"endpoint\" }";
    assert_eq!(grpc(own), ("shop.Cart".to_owned(), false));
    let codes =
        |names: &[Code]| names.iter().fold(Codes::default(), |codes, code| codes.with(*code));
    let retried =
        pool("retry = { on = [\"reset\", \"grpc:unavailable\", \"grpc:aborted\"] }").retry.on;
    assert_eq!(retried.grpc, codes(&[Code::Unavailable, Code::Aborted]));
    assert!(retried.reset && retried.statuses.is_empty());
    let failures = pool("eject = { grpc = [\"internal\"] }").grpc_failures;
    assert_eq!(failures, codes(&[Code::Internal]));
    assert!(pool("eject = true").grpc_failures.is_empty());
    assert_eq!(pool("agent_check = 9999").agent_check.expect("agents").spec, AgentSpec::default());

    let eject = |line: &str| pool(line).eject;
    assert_eq!(eject("eject = true"), Some(EjectionSpec::default()));
    assert_eq!(eject("eject = {}"), Some(EjectionSpec::default()));
    let usual = EjectionSpec { latency: None, ..EjectionSpec::default() };
    assert_eq!((eject("eject = false"), eject("")), (None, Some(usual)));
    let off = eject("eject = { consecutive = 0, share = 0.0, max = \"2s\" }").expect("ejections");
    assert_eq!((off.consecutive, off.share_per_mille, off.base), (None, None, seconds(2)));
    let long =
        eject("eject = { base = \"1h\", latency = false, share = 0.0001 }").expect("ejections");
    assert_eq!((long.max, long.latency), (seconds(3600), None));
    assert_eq!(long.share_per_mille, NonZeroU32::new(1), "not off");

    let table = StickTable { expire: seconds(1800), entries: NonZeroUsize::new(100_000).unwrap() };
    assert_eq!(pool("stick = { table = \"source\" }").stick, Some(Stick::Table(table)));
    let weigher = "weigher = { resource = true, token_file = \"agent.token\"";
    let options = pool(&format!("{weigher} }}")).weigher.expect("a weigher").options;
    assert_eq!(options, Options::default());
    let slow = pool(&format!("{weigher}, interval = \"1m\" }}")).weigher.expect("a weigher");
    assert_eq!((slow.options.fresh, slow.options.hold), (seconds(180), seconds(180)));
}

#[test]
fn the_admin_api() {
    let admin = |line: &str| {
        let text = format!(
            "{line}\n[listener.web]\nbind = \"0.0.0.0:80\"\npool = \"app\"\n[pool.app]\n\
             endpoints = [\"10.0.0.2:80\"]\n"
        );
        read(&text).config.expect("a valid configuration").admin
    };
    assert_eq!(admin(""), Admin::Socket(None));
    assert_eq!(admin("admin = true"), Admin::Socket(None));
    assert_eq!(admin("admin = false"), Admin::Off);
    let path = Some(PathBuf::from("/run/a.sock"));
    assert_eq!(admin("admin = { socket = \"/run/a.sock\" }"), Admin::Socket(path));
    let Admin::Tcp { address, token, hosts, unix_endpoints } = config().admin else {
        panic!("TCP")
    };
    assert_eq!(address.to_string(), "127.0.0.1:9000");
    assert_eq!(token.secret(), "admin.token-0123456789");
    assert_eq!(hosts, ["lb1.internal"]);
    assert!(!unix_endpoints);
}

#[test]
fn equal_texts_give_equal_configurations_and_a_change_shows() {
    assert_eq!(config(), config());
    let changed = TEXT.replace("weight=0", "weight=1");
    let other = read(&changed).config.expect("a valid configuration");
    assert_eq!(config().listeners, other.listeners);
    assert_ne!(config().pools, other.pools);
}

#[test]
fn named_files_are_relative_to_the_configuration() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics");
    let text = "[listener.web]\nbind = \"0.0.0.0:80\"\nerror_pages = { 5xx = \"page.html\" }\n\
                [[listener.web.route]]\nrespond = 500\n";
    let config = subak_config::parse(text, &directory.join("subak.toml"))
        .config
        .expect("a valid configuration");
    assert!(config.listeners[0].error_pages.get(500).is_some());
    assert!(subak_config::parse(text, Path::new("subak.toml")).config.is_none());
}
