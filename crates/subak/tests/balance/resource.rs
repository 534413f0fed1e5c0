//! The weigher at work: weights follow what the agents of the endpoints report, and what becomes of
//! them when agents are loaded, silent, strangers, or configured away.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::support::{
    Admin, Agent, Endpoint, Group, Scrape, Setup, Subak, TOKEN, fresh_address, fresh_directory, ok,
    wait_until,
};
use serde_json::Value;

/// Endpoints that answer by their names, each on an address of its own, with room for an agent.
struct Pool {
    names: Vec<&'static str>,
    addresses: Vec<String>,
    _endpoints: Vec<Endpoint>,
    directory: PathBuf,
}

impl Pool {
    fn new(names: &[&'static str]) -> Pool {
        let addresses: Vec<_> = names.iter().map(|_| fresh_address()).collect();
        let endpoint = |(name, address): (&&str, &String)| {
            let answer = ok(name);
            Endpoint::on_inet(address, move |served| {
                while served.request().is_some() {
                    served.send(&answer);
                }
            })
        };
        let endpoints = names.iter().zip(&addresses).map(endpoint).collect();
        let directory = fresh_directory();
        Pool { names: names.to_vec(), addresses, _endpoints: endpoints, directory }
    }

    /// A real agent beside this endpoint.
    #[track_caller]
    fn agent(&self, index: usize, options: &[&str]) -> Agent {
        Agent::at(self.addresses[index].replace(":8080", ":9180"), options)
    }

    /// The first so many endpoints, weighed by what is said here besides the ordinary.
    fn weighed(&self, count: usize, token: &str, options: &str) -> Setup {
        let file = self.directory.join("token");
        std::fs::write(&file, token).expect("write the token");
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .expect("a mode");
        self.plain(count).pool(&format!(
            "weigher = {{ resource = true, token_file = {file:?}, interval = \"200ms\", \
             timeout = \"200ms\", {options} }}"
        ))
    }

    fn plain(&self, count: usize) -> Setup {
        Setup::before_addresses(self.addresses[..count].iter().cloned())
            .listener("limits = { requests_per_connection = \"unlimited\" }")
    }

    /// How many of so many requests each endpoint gets.
    #[track_caller]
    fn shares(&self, subak: &Subak, count: usize) -> Vec<usize> {
        let mut client = subak.client();
        let answers: Vec<String> = (0..count).map(|_| client.get("/").text()).collect();
        let of = |name: &&str| answers.iter().filter(|answer| answer == name).count();
        self.names.iter().map(of).collect()
    }

    /// Waits until requests are shared out like this, give or take one.
    #[track_caller]
    fn wait_for_shares(&self, subak: &Subak, expected: &[usize]) {
        let mut shares = Vec::new();
        let mut is_so = || {
            shares = self.shares(subak, expected.iter().sum());
            shares.iter().zip(expected).all(|(share, wanted)| share.abs_diff(*wanted) <= 1)
        };
        wait_until(&format!("requests go {expected:?}"), &mut is_so);
    }

    /// What the weigher knows of this endpoint.
    #[track_caller]
    fn resources(&self, admin: &Admin, index: usize) -> Value {
        admin.endpoint(&self.addresses[index])["resources"].take()
    }

    /// How often this is logged of this endpoint.
    fn said(&self, subak: &Subak, index: usize, text: &str) -> usize {
        let of = format!("endpoint={:?}", self.addresses[index]);
        let log = subak.log();
        log.lines().filter(|line| line.contains(&of) && line.contains(text)).count()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Only what disks can transfer counts as capacity, and only memory, which all agents here share, as
/// load: what agents report differs by their options alone.
const BY_DISK_SPEED: &str = "capacity = { cpu = 0, memory = 0, disk = 1, network = 0 }, \
                             load = { cpu = 0, memory = 1, disk = 0, network = 0 }";
const SLOW: [&str; 2] = ["--disk-speed", "100MB/s"];
const FAST: [&str; 2] = ["--disk-speed", "300MB/s"];

const OVERLOAD: &str = "overload";

/// The heaviest class of an object of them.
fn worst(classes: &Value) -> &str {
    let each = || classes.as_object().into_iter().flatten().filter_map(|(_, class)| class.as_str());
    let heaviest_first = [OVERLOAD, "normal", "free"];
    heaviest_first.into_iter().find(|class| each().any(|one| one == *class)).unwrap_or("none")
}

fn near(value: &Value, expected: f64) -> bool {
    value.as_f64().is_some_and(|value| (value / expected - 1.0).abs() < 0.05)
}

#[test]
fn who_has_three_times_the_capacity_gets_three_times_the_requests_while_it_reports() {
    let pool = Pool::new(&["slow", "fast"]);
    let agents = [pool.agent(0, &SLOW), pool.agent(1, &FAST)];
    let subak = pool.weighed(2, TOKEN, &format!("hold = \"5s\", {BY_DISK_SPEED}")).start();
    pool.wait_for_shares(&subak, &[10, 30]);

    // C, L, U, the factor, the class and σ are shown.
    let admin = Admin::of(&subak);
    let (slow, fast) = (pool.resources(&admin, 0), pool.resources(&admin, 1));
    assert!(near(&slow["factor"], 0.5) && near(&fast["factor"], 1.5), "{slow} {fast}");
    assert_eq!((&slow["reports"], &fast["reports"]), (&"current".into(), &"current".into()));
    assert!(near(&slow["capacity"], 1.0 / 3.0) && fast["capacity"] == 1.0, "{slow} {fast}");
    let load = slow["load"].as_f64().expect("a load");
    assert!(load > 0.0 && load < 1.0 && near(&fast["load"], load), "{slow} {fast}");
    assert!(near(&slow["utilisation"], 3.0 * load), "{slow}");
    assert_eq!(slow["class"], worst(&slow["classes"]), "{slow}");
    let status = admin.status();
    assert!(near(&status["pools"][0]["imbalance"], load), "{status}");
    assert_eq!(status["pools"][0]["endpoints"][1]["resources"]["factor"], fast["factor"]);

    // And counted.
    let scrape = Scrape::parse(&admin.ask("GET", "/metrics", "").text());
    let value = |name: &str, index: usize| {
        scrape.value(name, &[("pool", "app"), ("endpoint", &pool.addresses[index])])
    };
    assert!((value("subak_endpoint_weigher_factor_ratio", 1) - 1.5).abs() < 0.05);
    assert!((value("subak_endpoint_capacity_ratio", 0) - 1.0 / 3.0).abs() < 0.01);
    assert!((value("subak_endpoint_load_ratio", 0) - load).abs() < 0.05);
    assert!((value("subak_endpoint_utilisation_ratio", 0) - 3.0 * load).abs() < 0.15);
    let classes = ["free", "normal", "overload"].map(|class| {
        let labels = [("pool", "app"), ("endpoint", &*pool.addresses[0]), ("class", class)];
        scrape.value("subak_endpoint_load_class", &labels)
    });
    assert_eq!(classes.iter().sum::<f64>(), 1.0, "{classes:?}");
    assert_eq!(value("subak_endpoint_reporting", 0), 1.0);
    assert!((scrape.value("subak_pool_imbalance_ratio", &[("pool", "app")]) - load).abs() < 0.05);

    // An agent that dies: its factor stays for the hold time, then is 1.
    let [_slow, agent] = agents;
    drop(agent);
    subak.wait_for_log("reports no more");
    let held = pool.resources(&admin, 1);
    assert!(held["reports"] == "held" && near(&held["factor"], 1.5), "{held}");
    pool.wait_for_shares(&subak, &[10, 30]);
    assert_eq!(pool.resources(&admin, 1)["reports"], "held");
    pool.wait_for_shares(&subak, &[20, 20]);
    let silent = pool.resources(&admin, 1);
    assert!(silent["reports"] == "silent" && silent["factor"] == 1.0, "{silent}");
    assert!(silent["load"].is_null() && silent["class"].is_null(), "{silent}");
    subak.wait_for_log("does not report, its factor is 1: no connection");
    assert_eq!(pool.said(&subak, 1, "reports no more"), 1, "{}", subak.log());
    assert_eq!(pool.said(&subak, 1, "does not report"), 1, "{}", subak.log());

    // And when it lives again.
    let _fast = pool.agent(1, &FAST);
    subak.wait_for_log("its agent reports again");
    pool.wait_for_shares(&subak, &[10, 30]);
    assert_eq!(pool.said(&subak, 0, "its agent"), 0, "never silent: {}", subak.log());
}

#[test]
fn load_in_a_control_group_moves_requests_away_and_they_come_back() {
    let (Some(one), Some(two)) = (Group::new(), Group::new()) else { return };
    let pool = Pool::new(&["one", "two"]);
    let group = |group: &Group| ["--cgroup".to_owned(), group.name().to_owned()];
    let agent = |index: usize, of: &Group| {
        let options = group(of);
        pool.agent(index, &options.each_ref().map(|option| &**option))
    };
    let _agents = [agent(0, &one), agent(1, &two)];
    let cpu = "{ cpu = 1, memory = 0, disk = 0, network = 0 }";
    let options = format!("capacity = {cpu}, load = {cpu}");
    let subak = pool.weighed(2, TOKEN, &options).start();
    let admin = Admin::of(&subak);
    wait_until("both report", || {
        (0..2).all(|index| pool.resources(&admin, index)["reports"] == "current")
    });
    pool.wait_for_shares(&subak, &[20, 20]);

    let spinning = one.spin();
    // Others may have the processor that this group wants to be busy with.
    let until = Instant::now() + Duration::from_secs(45);
    while pool.shares(&subak, 40)[0] > 6 {
        let loaded = pool.resources(&admin, 0);
        if Instant::now() > until {
            assert_ne!(loaded["class"], OVERLOAD, "{loaded}");
            eprintln!("SKIPPED: others keep the machine busy: {loaded}");
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    wait_until("it is said", || pool.said(&subak, 0, "and is overload") > 0);
    wait_until("it is shown", || {
        let (loaded, idle) = (pool.resources(&admin, 0), pool.resources(&admin, 1));
        (&loaded["class"], &loaded["classes"]["cpu"]) == (&OVERLOAD.into(), &OVERLOAD.into())
            && idle["classes"]["cpu"] == "free"
    });
    assert!(pool.shares(&subak, 40)[0] <= 10);

    drop(spinning);
    pool.wait_for_shares(&subak, &[20, 20]);
    wait_until("it is free", || pool.resources(&admin, 0)["classes"]["cpu"] == "free");
}

#[test]
fn a_reload_keeps_what_is_known_of_who_stays_and_without_a_weigher_nothing_is_left() {
    let pool = Pool::new(&["slow", "fast", "mute"]);
    let agents = [pool.agent(0, &SLOW), pool.agent(1, &FAST)];
    let weighed = |count| pool.weighed(count, TOKEN, &format!("hold = \"1m\", {BY_DISK_SPEED}"));
    let setup = weighed(2);
    let subak = setup.start();
    pool.wait_for_shares(&subak, &[10, 30, 0]);
    drop(agents);
    wait_until("both are held", || {
        (0..2).all(|index| pool.said(&subak, index, "reports no more") == 1)
    });

    // Nobody is there to say it anew.
    let reload = |setup: Setup, generation: usize| {
        subak.write_config(&setup.bind(subak.address()).text());
        subak.signal("HUP");
        subak.wait_for_log(&format!("configuration reloaded generation={generation}"));
    };
    reload(weighed(3), 2);
    pool.wait_for_shares(&subak, &[10, 30, 20]);
    let admin = Admin::of(&subak);
    let held = pool.resources(&admin, 1);
    assert!(held["reports"] == "held" && near(&held["factor"], 1.5), "{held}");
    wait_until("the third is named", || pool.said(&subak, 2, "does not report") == 1);

    reload(pool.plain(3), 3);
    pool.wait_for_shares(&subak, &[20, 20, 20]);
    assert!(pool.resources(&admin, 1).is_null());
    assert_eq!(admin.endpoint(&pool.addresses[1])["weight"]["weigher"], 1.0);
}

#[test]
fn an_agent_with_another_token_is_named_once_and_its_endpoint_serves_on() {
    let pool = Pool::new(&["one", "two"]);
    let _agents = [pool.agent(0, &SLOW), pool.agent(1, &FAST)];
    let subak = pool.weighed(2, &TOKEN.replace('9', "8"), BY_DISK_SPEED).start();
    let text = "does not report, its factor is 1: the agent has another token";
    for index in 0..2 {
        wait_until("it is named", || pool.said(&subak, index, text) == 1);
    }
    pool.wait_for_shares(&subak, &[20, 20]);
    let admin = Admin::of(&subak);
    assert_eq!(pool.resources(&admin, 0)["reports"], "silent");
    assert_eq!(admin.status()["pools"][0]["imbalance"], Value::Null);
    assert_eq!(pool.said(&subak, 0, "its agent"), 1, "{}", subak.log());
}
