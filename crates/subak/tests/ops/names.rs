//! Endpoints by name: what answers do to a pool, and what traffic notices of it (nothing).

use std::time::{Duration, Instant};

use crate::support::{
    Admin, Dns, DnsMood, Endpoint, Load, Record, Scrape, Setup, Subak, fresh_address, ok,
    wait_until,
};
use serde_json::{Value, json};

const NAME: &str = "app.internal";
const SERVICE: &str = "_http._tcp.app.internal";

/// An endpoint at port 8080 of an address of its own, which says its name.
fn endpoint(name: &'static str) -> Endpoint {
    Endpoint::on_inet(&fresh_address(), move |served| {
        while served.request().is_some() {
            served.send(ok(name));
        }
    })
}

fn ip(endpoint: &Endpoint) -> String {
    let address = endpoint.address();
    address.rsplit_once(':').expect("a port").0.trim_matches(['[', ']']).to_owned()
}

/// The name with the addresses of these.
fn records(endpoints: &[&Endpoint]) -> Vec<Record> {
    endpoints.iter().map(|endpoint| Record::address(NAME, 1, &ip(endpoint))).collect()
}

fn setup(dns: &Dns) -> Setup {
    // Clients that stay are not to be parted with by the way.
    let unlimited = "limits = { requests_per_connection = \"unlimited\" }";
    Setup::before_addresses([format!("{NAME}:8080")]).top(&dns.line()).listener(unlimited)
}

/// The addresses of the pool `app`, sorted.
fn addresses(admin: &Admin) -> Vec<String> {
    let status = admin.status();
    let list = status["pools"][0]["endpoints"].as_array().expect("endpoints");
    let mut addresses: Vec<_> =
        list.iter().map(|one| one["address"].as_str().expect("an address").to_owned()).collect();
    addresses.sort();
    addresses
}

#[track_caller]
fn wait_for_endpoints(admin: &Admin, endpoints: &[&Endpoint]) {
    let mut expected: Vec<_> = endpoints.iter().map(|endpoint| endpoint.address()).collect();
    expected.sort();
    wait_until(&format!("the pool has {expected:?}"), || addresses(admin) == expected);
}

/// The problem of kind `dns`, if there is one.
fn problem(admin: &Admin) -> Option<String> {
    let status = admin.status();
    let problems = status["problems"].as_array().expect("problems").clone();
    let dns = problems.into_iter().find(|problem| problem["kind"] == "dns");
    dns.map(|problem| problem["detail"].as_str().expect("a detail").to_owned())
}

#[track_caller]
fn assert_no_failure(load: Load) {
    let failures = load.end();
    assert!(failures.is_empty(), "{}: {:?}", failures.len(), &failures[..failures.len().min(5)]);
}

/// What has happened.
fn events(admin: &Admin) -> Vec<String> {
    let events: Value =
        serde_json::from_str(&admin.ask("GET", "/v1/events", "").text()).expect("JSON");
    let list = events["events"].as_array().expect("events");
    list.iter().map(|event| event["text"].as_str().expect("a text").to_owned()).collect()
}

fn endpoint_of(status: &Value, address: &str) -> Value {
    let list = status["pools"][0]["endpoints"].as_array().expect("endpoints");
    list.iter().find(|one| one["address"] == address).expect("the endpoint").clone()
}

#[test]
fn another_answer_changes_the_pool_without_a_reload_and_fails_no_request() {
    let [one, two, three] = ["one", "two", "three"].map(endpoint);
    let other = Endpoint::named("other");
    let dns = Dns::new(records(&[&one]));
    let more = format!("[pool.other]\nendpoints = [{:?}]\n", other.address());
    let route = "[[listener.web.route]]\nhost = \"other\"\npool = \"other\"\n";
    let subak = setup(&dns).workers(2).tail(route).tail(&more).start();
    let admin = Admin::of(&subak);
    // At start it has waited for the answer: there was no moment without an endpoint.
    assert_eq!(subak.get("/").1, "one");
    let load = Load::begin(subak.address(), 1, 1);
    let before = admin.status();
    let id = endpoint_of(&before, &one.address())["id"].clone();
    assert_eq!(endpoint_of(&before, &one.address())["origin"], format!("{NAME}:8080"));
    for set in [vec![&one, &two], vec![&one, &two, &three], vec![&one, &three]] {
        dns.set(records(&set));
        wait_for_endpoints(&admin, &set);
        load.wait_for(50);
    }
    // Who has stayed is the same as ever; who has left is rid of its connections.
    let after = endpoint_of(&admin.status(), &one.address());
    assert_eq!(after["id"], id);
    assert!(after["hits"].as_u64() > endpoint_of(&before, &one.address())["hits"].as_u64());
    wait_until("its connections are closed", || two.open() == 0);
    let served = two.requests().len();
    load.wait_for(50);
    assert_eq!(two.requests().len(), served, "who has left gets nothing");
    dns.set(records(&[&two]));
    wait_for_endpoints(&admin, &[&two]);
    load.wait_for(50);
    assert_no_failure(load);
    let status = admin.status();
    assert_eq!(status["pools"][0]["endpoints"][0]["source"], "dns");
    let told = events(&admin);
    let changes: Vec<_> = told
        .iter()
        .filter_map(|text| text.strip_prefix("app.internal:8080 stands for other endpoints: "))
        .collect();
    let [one, two, three] = [&one, &two, &three].map(Endpoint::address);
    let expected = [
        format!("came {one}"),
        format!("came {two}"),
        format!("came {three}"),
        format!("left {two}"),
        format!("came {two}; left "),
    ];
    assert_eq!(changes.len(), expected.len(), "{told:?}");
    assert!(changes.iter().zip(&expected).all(|(own, begins)| own.starts_with(begins)), "{told:?}");
    assert!(changes[4].contains(&one) && changes[4].contains(&three), "{told:?}");
    assert_eq!(status["generation"], 5);
    assert_eq!((&status["reloads"], &status["problems"]), (&json!(0), &json!([])));
}

#[test]
fn a_name_is_asked_as_often_as_its_answers_and_the_bounds_say() {
    let one = endpoint("one");
    let quick = Record::address("quick.internal", 0, &ip(&one));
    let slow = Record::address("slow.internal", 3600, "127.255.0.9");
    let dns = Dns::new(vec![quick, slow]);
    let names = ["quick.internal:8080", "slow.internal:8080"].map(str::to_owned);
    let bounds =
        dns.line_with(", families = \"ipv4\"").replace("max_ttl = \"1s\"", "max_ttl = \"2s\"");
    let begun = Instant::now();
    let _subak = Setup::before_addresses(names).top(&bounds).start();
    wait_until("the second answer is due", || dns.asked("slow.internal", "udp") >= 2);
    let took = begun.elapsed();
    // From nine tenths of max_ttl on, never before, however long the answer says that it holds.
    assert!(took >= Duration::from_millis(1800), "asked again after {took:?}");
    // Every 100 to 110 ms and the tick after it, whatever a time to live of 0 says.
    let quick = dns.asked("quick.internal", "udp") as u128;
    assert!(quick <= took.as_millis() / 100 + 2, "asked {quick} times in {took:?}");
    assert!(quick >= 4, "asked {quick} times in {took:?}");
}

#[test]
fn whatever_a_server_does_the_last_good_answer_serves_on() {
    let [one, two] = ["one", "two"].map(endpoint);
    let dns = Dns::new(records(&[&one, &two]));
    let subak = setup(&dns).workers(2).start();
    let admin = Admin::of(&subak);
    let load = Load::paced(subak.address(), 1, 1, Duration::from_millis(1));
    let moods = [
        (DnsMood::Silent, "no DNS server"),
        (DnsMood::Slow(Duration::from_secs(1)), "no DNS server"),
        (DnsMood::Code(2), "Server Failure"),
        (DnsMood::Code(3), "NXDOMAIN"),
        (DnsMood::Code(5), "refused"),
        (DnsMood::WrongId, ""),
        (DnsMood::OtherQuestion, ""),
        (DnsMood::OtherName, ""),
        (DnsMood::Garbage, ""),
        (DnsMood::TruncatedForGood, ""),
    ];
    for (mood, said) in moods {
        dns.be(mood);
        wait_until("the problem is known", || problem(&admin).is_some());
        let detail = problem(&admin).unwrap_or_default();
        eprintln!("{mood:?}: {detail}");
        assert!(detail.to_lowercase().contains(&said.to_lowercase()), "{mood:?}: {detail}");
        wait_for_endpoints(&admin, &[&one, &two]);
        load.wait_for(20);
        dns.be(DnsMood::Good);
        wait_until("it is well again", || problem(&admin).is_none());
    }
    // Records that no endpoint can be, and none at all.
    let impossible = ["0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "ff02::1", "fe80::1"];
    dns.set(impossible.iter().map(|text| Record::address(NAME, 1, text)).collect());
    wait_until("they are refused", || {
        problem(&admin).is_some_and(|detail| detail.contains("cannot be an endpoint's"))
    });
    wait_for_endpoints(&admin, &[&one, &two]);
    dns.set(vec![Record::address("else.internal", 1, "127.0.0.1")]);
    wait_until("the name is gone", || {
        problem(&admin).is_some_and(|detail| detail.contains("NXDOMAIN"))
    });
    wait_for_endpoints(&admin, &[&one, &two]);
    load.wait_for(20);
    assert_no_failure(load);
    let scrape = Scrape::parse(&admin.ask("GET", "/metrics", "").text());
    let label = format!("{NAME}:8080");
    let name = [("name", &*label)];
    assert_eq!(scrape.value("subak_name_addresses", &name), 2.0);
    assert!(scrape.value("subak_name_failed_total", &name) >= 10.0);
    assert!(scrape.value("subak_name_age_seconds", &name) > 0.0);
    let wrong = [("kind", "dns"), ("what", &*label)];
    assert_eq!(scrape.value("subak_problem", &wrong), 1.0);
    assert!(subak.log().contains("problem has ended"));
    let told = events(&admin);
    let is_told = |begins: &str, says: &str| {
        told.iter().any(|text| text.starts_with(begins) && text.contains(says))
    };
    assert!(is_told("problem: dns app.internal:8080: ", "Query Refused"), "{told:?}");
    assert!(is_told("no problem any more: dns app.internal:8080", ""), "{told:?}");
}

#[test]
fn a_name_is_not_added_by_api_and_that_is_said_with_what_to_do() {
    let one = Endpoint::named("one");
    let subak = Setup::before(&[&one]).start();
    let admin = Admin::of(&subak);
    for name in ["app.internal:8080", "srv:_http._tcp.app.internal"] {
        let body = json!({ "endpoint": name }).to_string();
        let answer = admin.ask("POST", "/v1/pools/app/endpoints", &body);
        assert_eq!(answer.status, 422, "{}", answer.text());
        let told: Value = serde_json::from_str(&answer.text()).expect("JSON");
        let told = told["diagnostics"][0].to_string();
        assert!(told.contains("this is a name"), "{told}");
        assert!(
            told.contains("the name to the pool's endpoints in the file, and reload"),
            "{told}"
        );
    }
}

#[test]
fn an_answer_cut_short_is_fetched_by_tcp_and_too_many_addresses_are_bounded() {
    let one = endpoint("one");
    let dns = Dns::new(records(&[&one]));
    dns.be(DnsMood::Truncated);
    let subak = setup(&dns).start();
    let admin = Admin::of(&subak);
    assert_eq!(subak.get("/").1, "one");
    assert!(dns.asked(NAME, "tcp") > 0);
    let many = |count: u32| {
        let address = |number: u32| format!("127.250.{}.{}", number >> 8, number & 255);
        (0..count).map(|number| Record::address(NAME, 1, &address(number))).collect()
    };
    dns.set(many(2000));
    wait_until("so many are used", || addresses(&admin).len() == 1000);
    wait_until("that is said", || {
        problem(&admin).is_some_and(|detail| detail.contains("1000 addresses more"))
    });
    dns.set(records(&[&one]));
    wait_for_endpoints(&admin, &[&one]);
    assert_eq!(subak.get("/").1, "one");
}

#[test]
fn a_name_that_does_not_resolve_at_start_stops_nobody_and_comes_by_itself() {
    let (one, other) = (endpoint("one"), Endpoint::named("other"));
    let dns = Dns::absent(records(&[&one]));
    let more = format!("[pool.other]\nendpoints = [{:?}]\n", other.address());
    let route = "[[listener.web.route]]\npath = \"/other\"\npool = \"other\"\n";
    let subak = setup(&dns).tail(route).tail(&more).start();
    let admin = Admin::of(&subak);
    assert_eq!(subak.get("/other"), (200, "other".to_owned()));
    assert_eq!(subak.get("/").0, 503);
    let detail = problem(&admin).expect("a problem");
    assert!(detail.contains("it has no endpoints until it is answered"), "{detail}");
    let status = admin.status();
    let name = &status["names"][0];
    assert_eq!((&name["addresses"], &name["age_s"]), (&json!([]), &json!(null)));
    assert!(name["failing"].is_string() && name["failed"].as_u64() > Some(0), "{name}");
    dns.appear();
    wait_for_endpoints(&admin, &[&one]);
    assert_eq!(subak.get("/").1, "one");
    wait_until("it is well", || problem(&admin).is_none());
    assert_eq!(admin.status()["reloads"], 0);
}

#[test]
fn a_reload_waits_for_the_first_answer_of_a_new_name() {
    let [one, two] = ["one", "two"].map(endpoint);
    let mut known = records(&[&one]);
    known.push(Record::address("late.internal", 1, &ip(&two)));
    let dns = Dns::new(known);
    let setup = setup(&dns);
    let subak = setup.start();
    let route = "[[listener.web.route]]\npath = \"/late\"\npool = \"late\"\n";
    let text = setup.tail(route).tail("[pool.late]\nendpoints = [\"late.internal:8080\"]\n").text();
    let text = text.replace("400ms", "10s");
    // The time is another one: first without the name, or other servers would be asked.
    let before = text.replace("late.internal:8080", &fresh_address());
    subak.write_config(&before);
    subak.signal("HUP");
    subak.wait_for_log("configuration reloaded generation=2");
    dns.be(DnsMood::Slow(Duration::from_millis(300)));
    subak.write_config(&text);
    subak.signal("HUP");
    subak.wait_for_log("configuration reloaded generation=3");
    assert_eq!(subak.get("/late"), (200, "two".to_owned()));
    assert_eq!(subak.get("/"), (200, "one".to_owned()));
}

#[test]
fn a_reload_to_a_name_that_takes_its_time_keeps_the_former_endpoints() {
    let [old, new] = ["old", "new"].map(endpoint);
    let dns = Dns::new(records(&[&new]));
    dns.be(DnsMood::Silent);
    let unlimited = "limits = { requests_per_connection = \"unlimited\" }";
    let subak = Setup::before(&[&old]).listener(unlimited).start();
    let admin = Admin::of(&subak);
    let load = Load::begin(subak.address(), 1, 1);
    subak.write_config(&setup(&dns).bind(subak.address()).text());
    subak.signal("HUP");
    subak.wait_for_log("configuration reloaded generation=2");
    wait_until("the problem is known", || problem(&admin).is_some());
    load.wait_for(50);
    wait_for_endpoints(&admin, &[&old]);
    dns.be(DnsMood::Good);
    wait_for_endpoints(&admin, &[&new]);
    load.wait_for(50);
    assert_no_failure(load);
    assert_eq!(subak.get("/").1, "new");
}

#[test]
fn aliases_are_followed_and_circles_are_noticed() {
    let one = endpoint("one");
    let chain = vec![
        Record::alias(NAME, 1, "b.internal"),
        Record::alias("b.internal", 1, "c.internal"),
        Record::address("c.internal", 1, &ip(&one)),
    ];
    let dns = Dns::new(chain);
    let subak = setup(&dns).start();
    let admin = Admin::of(&subak);
    assert_eq!(subak.get("/").1, "one");
    dns.set(vec![Record::alias(NAME, 1, "b.internal"), Record::alias("b.internal", 1, NAME)]);
    wait_until("it is noticed", || problem(&admin).is_some());
    assert_eq!(subak.get("/").1, "one");
}

#[test]
fn a_name_of_ipv6_alone_is_served() {
    let six = Endpoint::on_inet(&crate::support::fresh_address_v6(), |served| {
        while served.request().is_some() {
            served.send(ok("six"));
        }
    });
    let dns = Dns::new(vec![Record::address(NAME, 1, "::1")]);
    let name = format!("{NAME}:{}", six.port());
    let subak = Setup::before_addresses([name]).top(&dns.line()).start();
    assert_eq!(subak.get("/").1, "six");
    assert_eq!(problem(&Admin::of(&subak)), None, "no A record is no problem");
}

#[test]
fn a_service_gives_ports_weights_and_tiers_and_what_was_set_by_api_stays() {
    let [light, heavy, spare] = ["light", "heavy", "spare"].map(endpoint);
    let hosts = || {
        let host = |name: &str, one: &Endpoint| Record::address(name, 1, &ip(one));
        vec![host("l.internal", &light), host("h.internal", &heavy), host("s.internal", &spare)]
    };
    let service = |light: u16, heavy: u16| {
        let mut records = hosts();
        records.push(Record::service(SERVICE, (10, light, 8080), "l.internal"));
        records.push(Record::service(SERVICE, (10, heavy, 8080), "h.internal"));
        records.push(Record::service(SERVICE, (20, 5, 8080), "s.internal"));
        records
    };
    let dns = Dns::new(service(1, 3));
    let setup = Setup::before_addresses([format!("srv:{SERVICE}")]);
    let subak = setup.top(&dns.line()).pool("host = \"endpoint\"").start();
    let admin = Admin::of(&subak);
    let count = |count: usize| {
        let answers: Vec<_> = (0..count).map(|_| subak.get("/").1).collect();
        ["light", "heavy", "spare"].map(|name| answers.iter().filter(|one| *one == name).count())
    };
    assert_eq!(count(40), [10, 30, 0]);
    assert_eq!(light.requests()[0].field("host"), Some("l.internal:8080"));
    let told = endpoint_of(&admin.status(), &spare.address());
    assert_eq!(told["tier"], "backup");
    assert_eq!(told["origin"], format!("srv:{SERVICE}"));
    // Other weights: the same endpoints, with what an operator has set.
    admin.patch(&heavy.address(), r#"{"state": "drain"}"#);
    dns.set(service(7, 1));
    wait_until("the weight has changed", || {
        endpoint_of(&admin.status(), &light.address())["weight"]["configured"] == 7
    });
    let told = endpoint_of(&admin.status(), &heavy.address());
    assert_eq!((&told["state"], &told["weight"]["configured"]), (&json!("drain"), &json!(1)));
    assert_eq!(count(10), [10, 0, 0]);
    admin.patch(&heavy.address(), r#"{"state": null}"#);
    assert_eq!(count(80), [70, 10, 0]);
    // Another priority: who was the backup takes it all.
    let mut other = hosts();
    other.push(Record::service(SERVICE, (30, 1, 8080), "l.internal"));
    other.push(Record::service(SERVICE, (20, 5, 8080), "s.internal"));
    dns.set(other);
    wait_until("the tiers have changed", || {
        endpoint_of(&admin.status(), &spare.address())["tier"] == "primary"
    });
    assert_eq!(count(10), [0, 0, 10]);
}

#[test]
fn endpoints_and_probes_are_asked_by_the_name_where_no_other_host_is_given() {
    let one = endpoint("one");
    let dns = Dns::new(records(&[&one]));
    let setup = setup(&dns).pool("host = \"endpoint\"\nhealth = \"/healthz\"");
    let subak: Subak = setup.start();
    wait_until("it is probed", || {
        let requests = one.requests();
        let probe = requests.iter().find(|request| request.line.contains("/healthz"));
        probe.is_some_and(|probe| probe.field("host") == Some("app.internal:8080"))
    });
    assert_eq!(subak.get("/asked").0, 200);
    let requests = one.requests();
    let asked = requests.iter().find(|request| request.line.contains("/asked"));
    assert_eq!(asked.expect("the request").field("host"), Some("app.internal:8080"));
}
