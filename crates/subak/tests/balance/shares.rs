//! Whole-process promises of the algorithms: exact shares over all workers, the endpoint that nginx
//! would choose, and connections spread over workers.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{
    Client, Endpoint, Setup, Subak, fresh_address, fresh_directory, in_a_network_of_its_own, ip,
    ok, wait_until,
};
use subak_base::Rng;

/// Whether a program is installed; says loudly if not.
fn is_installed(program: &str) -> bool {
    let found =
        Command::new(program).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        eprintln!("SKIPPED: {program} is not installed (scripts/setup.sh test installs it)");
    }
    found.is_ok()
}

/// An endpoint that counts its hits and keeps nothing of them.
fn counted(name: &'static str) -> (Endpoint, Arc<AtomicUsize>) {
    let hits = Arc::new(AtomicUsize::new(0));
    let counter = hits.clone();
    let endpoint = Endpoint::scripted(move |served| {
        while served.head().is_some() {
            counter.fetch_add(1, Ordering::SeqCst);
            served.send(ok(name));
        }
    });
    (endpoint, hits)
}

/// The first number behind `name` in what ab prints.
fn figure(report: &str, name: &str) -> Option<usize> {
    let line = report.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[track_caller]
fn ab_spreads_exactly(workers: usize, order: &str) {
    if !is_installed("ab") {
        return;
    }
    let (endpoints, hits): (Vec<_>, Vec<_>) = ["a", "b", "c", "d"].map(counted).into_iter().unzip();
    let subak = Setup::before(&endpoints.iter().collect::<Vec<_>>())
        .workers(workers)
        .pool(&format!("balance = {{ algorithm = \"round_robin\", order = \"{order}\" }}"))
        .start();
    let url = format!("http://{}/", subak.address());
    let ab = Command::new("ab").args(["-q", "-n", "12000", "-c", "10", &url]).output().expect("ab");
    let report = String::from_utf8_lossy(&ab.stdout);
    assert!(ab.status.success(), "{report}{}", String::from_utf8_lossy(&ab.stderr));
    assert_eq!(figure(&report, "Complete requests:"), Some(12_000), "{report}");
    assert_eq!(figure(&report, "Failed requests:"), Some(0), "{report}");
    assert_eq!(figure(&report, "Non-2xx responses:"), None, "{report}");
    let hits: Vec<_> = hits.iter().map(|hits| hits.load(Ordering::SeqCst)).collect();
    assert_eq!(hits, [3000; 4]);
}

#[test]
fn twelve_thousand_requests_over_four_endpoints_are_three_thousand_each_with_1_worker() {
    ab_spreads_exactly(1, "smooth");
}

#[test]
fn twelve_thousand_requests_over_four_endpoints_are_three_thousand_each_with_2_workers() {
    ab_spreads_exactly(2, "smooth");
}

#[test]
fn twelve_thousand_requests_over_four_endpoints_are_three_thousand_each_with_8_workers() {
    ab_spreads_exactly(8, "smooth");
}

#[test]
fn bursts_are_exact_over_eight_workers_too() {
    ab_spreads_exactly(8, "burst");
}

#[test]
fn thirty_requests_over_ipv6_follow_the_weights_exactly() {
    if !in_a_network_of_its_own("thirty_requests_over_ipv6_follow_the_weights_exactly") {
        return;
    }
    ip("link set lo up");
    for host in 1..=4 {
        ip(&format!("-6 addr add 2345::{host}/128 dev lo nodad"));
    }
    for (first, expected) in [(2, [15, 8, 7]), (3, [18, 6, 6])] {
        let endpoints = [2, 3, 4].map(|host| {
            Endpoint::on_inet(&format!("[2345::{host}]:8{first}"), move |served| {
                while served.request().is_some() {
                    served.send(ok(&host.to_string()));
                }
            })
        });
        let mut addresses = endpoints.iter().map(Endpoint::address).collect::<Vec<_>>();
        addresses[0] += &format!(" weight={first}");
        let subak = Setup::before_addresses(addresses).bind("[2345::1]:80").start();
        let mut answered = HashMap::new();
        for _ in 0..30 {
            let (status, body) = subak.get("/");
            assert_eq!(status, 200);
            *answered.entry(body).or_insert(0) += 1;
        }
        assert_eq!(["2", "3", "4"].map(|host| answered[host]), expected, "{first}:1:1");
        assert_eq!(endpoints.each_ref().map(|endpoint| endpoint.requests().len()), expected);
    }
}

#[test]
fn an_endpoint_of_a_family_that_this_machine_lacks_is_like_one_that_refuses() {
    let this = "an_endpoint_of_a_family_that_this_machine_lacks_is_like_one_that_refuses";
    if !in_a_network_of_its_own(this) {
        return;
    }
    ip("link set lo up");
    std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1").expect("switch IPv6 off");
    let alive = Endpoint::named("alive");
    let subak = Setup::before_addresses(["[::1]:8080".to_owned(), alive.address()]).start();
    for _ in 0..20 {
        assert_eq!(subak.get("/"), (200, "alive".into()));
    }
}

/// A live nginx. Ended when dropped.
struct Nginx {
    child: Child,
}

impl Nginx {
    fn start(listen: &str, servers: &str, directory: &Path) -> Nginx {
        let at = directory.display();
        let config = format!(
            "daemon off;\nmaster_process off;\npid {at}/nginx.pid;\nerror_log {at}/error.log;\n\
             events {{ worker_connections 1000; }}\n\
             http {{\n  access_log off;\n  client_body_temp_path {at}/body;\n  \
             proxy_temp_path {at}/proxy;\n  fastcgi_temp_path {at}/fastcgi;\n  \
             uwsgi_temp_path {at}/uwsgi;\n  scgi_temp_path {at}/scgi;\n  \
             keepalive_requests 1000000;\n  set_real_ip_from 127.0.0.0/8;\n  \
             real_ip_header X-Forwarded-For;\n  \
             upstream app {{ ip_hash; {servers} keepalive 16; }}\n  \
             server {{\n    listen {listen};\n    location / {{\n      proxy_pass http://app;\n      \
             proxy_http_version 1.1;\n      proxy_set_header Connection \"\";\n    }}\n  }}\n}}\n"
        );
        let file = directory.join("nginx.conf");
        std::fs::write(&file, config).expect("write");
        let child = Command::new("nginx")
            .arg("-c")
            .arg(&file)
            .arg("-p")
            .arg(directory)
            .stderr(Stdio::null())
            .spawn()
            .expect("nginx");
        wait_until("nginx listens", || std::net::TcpStream::connect(listen).is_ok());
        Nginx { child }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Half of them IPv4, half IPv6, the same in every run.
fn clients(count: usize) -> Vec<IpAddr> {
    let mut random = Rng::new(20_221);
    let mut client = |index: usize| match index % 2 {
        0 => IpAddr::V4(Ipv4Addr::from((random.next_u64() >> 32) as u32)),
        // Global unicast: a v4-mapped address is meant to differ from nginx.
        _ => {
            let bits = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
            IpAddr::V6(Ipv6Addr::from(0x2 << 124 | bits >> 4))
        }
    };
    (0..count).map(&mut client).collect()
}

/// Which endpoint answers each client, asked on a few connections side by side.
fn landings(address: &str, clients: &[IpAddr]) -> Vec<String> {
    let share = clients.len().div_ceil(4);
    std::thread::scope(|scope| {
        let ask = |clients: &[IpAddr]| {
            let mut connection = Client::connect(address);
            let mut landings = Vec::new();
            for client in clients {
                connection.send(format!(
                    "GET / HTTP/1.1\r\nHost: example.com\r\nX-Forwarded-For: {client}\r\n\r\n"
                ));
                let answer = connection.answer();
                assert_eq!(answer.status, 200, "{client}");
                landings.push(answer.text());
            }
            landings
        };
        let parts: Vec<_> =
            clients.chunks(share).map(|part| scope.spawn(move || ask(part))).collect();
        parts.into_iter().flat_map(|part| part.join().expect("a client")).collect()
    })
}

/// Whether a client's hash leads to this endpoint 21 times in a row, so that round robin is asked.
fn never_leaves(client: IpAddr, weights: [u32; 3], gone: usize) -> bool {
    let octets = match client {
        IpAddr::V4(v4) => v4.octets()[..3].to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    };
    let before: u32 = weights[..gone].iter().sum();
    let slots = before..before + weights[gone];
    let mut hash = 89;
    (0..21).all(|_| {
        hash = octets.iter().fold(hash, |hash, octet| (hash * 113 + u32::from(*octet)) % 6271);
        slots.contains(&(hash % weights.iter().sum::<u32>()))
    })
}

/// Another Subak that answers by its name and can be killed as a whole.
fn killable(name: &str, address: &str) -> Subak {
    let config = format!(
        "workers = 1\n[listener.x]\nbind = {address:?}\nlimits = {{ requests_per_connection = \"unlimited\" }}\n\
         [[listener.x.route]]\nrespond = {{ status = 200, body = {name:?} }}\n"
    );
    Subak::start_at(&config, address)
}

#[test]
fn ten_thousand_clients_land_where_nginx_puts_each_of_them_also_when_endpoints_go_away() {
    if !is_installed("nginx") {
        return;
    }
    let names = ["a", "b", "c"];
    let weights = [3, 1, 2];
    let addresses = names.map(|_| fresh_address());
    let mut endpoints: Vec<_> =
        names.iter().zip(&addresses).map(|(name, address)| Some(killable(name, address))).collect();
    let weighted =
        addresses.iter().zip(weights).map(|(at, weight)| format!("{at} weight={weight}"));
    let servers: String =
        weighted.clone().map(|server| format!("server {server} fail_timeout=1s; ")).collect();
    let directory = fresh_directory();
    let nginx_address = fresh_address();
    let nginx = Nginx::start(&nginx_address, &servers, &directory);
    let subak = Setup::before_addresses(weighted)
        .workers(2)
        .listener("trusted_proxies = [\"127.0.0.0/8\"]")
        .listener("limits = { requests_per_connection = \"unlimited\" }")
        .pool("balance = \"ip_hash\"")
        .start();
    let clients = clients(10_000);
    let some = clients[..100].to_vec();
    let at_first = landings(&nginx_address, &some);
    let mut all_seen = Vec::new();
    for gone in [None, Some(0), Some(2)] {
        if let Some(gone) = gone {
            endpoints[gone] = None;
        }
        let expected = landings(&nginx_address, &clients);
        let found = landings(subak.address(), &clients);
        let mut left = 0;
        for ((client, expected), found) in clients.iter().zip(&expected).zip(&found) {
            match gone.is_some_and(|gone| never_leaves(*client, weights, gone)) {
                // By the round robins of two programs, which were asked different things before.
                true => left += 1,
                false => assert_eq!(found, expected, "{client}, without {gone:?}"),
            }
        }
        assert!(left < 20, "{left} of 10,000 clients were left to round robin");
        let seen = names.map(|name| found.iter().filter(|landing| *landing == name).count());
        all_seen.push(seen);
        if let Some(gone) = gone {
            assert_eq!(seen[gone], 0);
            endpoints[gone] = Some(killable(names[gone], &addresses[gone]));
            for address in [&*nginx_address, subak.address()] {
                wait_until("it is believed to be back", || landings(address, &some) == at_first);
            }
        }
    }
    // A comparison of nothing with nothing would agree too.
    let [a, b, c] = all_seen[0];
    assert!(a > 4500 && b > 1400 && c > 3000, "{all_seen:?}");
    drop(nginx);
    let _ = std::fs::remove_dir_all(directory);
}

/// How often each worker's thread has gone to sleep so far.
fn sleeps(subak: &Subak) -> HashMap<String, u64> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", subak.pid())).expect("proc");
    let read = |task: std::io::Result<std::fs::DirEntry>| {
        let path = task.ok()?.path();
        let name = std::fs::read_to_string(path.join("comm")).ok()?.trim().to_owned();
        let status = std::fs::read_to_string(path.join("status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        Some((name, line.trim().parse().ok()?))
    };
    tasks.filter_map(read).filter(|(name, _)| name.starts_with("worker-")).collect()
}

#[test]
fn sixty_four_long_connections_leave_none_of_eight_workers_idle() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).workers(8).start();
    let mut clients: Vec<_> = (0..64).map(|_| subak.client()).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.get("/").status, 200));
    // Requests one by one on one connection wake the worker that holds it, and hardly any other.
    let mut held: HashMap<String, usize> = HashMap::new();
    for client in &mut clients {
        let before = sleeps(&subak);
        (0..25).for_each(|_| assert_eq!(client.get("/").status, 200));
        let after = sleeps(&subak);
        let woken = |name: &String| after[name] - before[name];
        let holder = after.keys().max_by_key(|name| woken(name)).expect("workers");
        *held.entry(holder.clone()).or_default() += 1;
    }
    assert_eq!(held.len(), 8, "{held:?}");
    assert!(held.values().all(|count| (2..=20).contains(count)), "{held:?}");
}
