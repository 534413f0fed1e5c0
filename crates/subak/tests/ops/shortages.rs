//! Too little room: for clients, for descriptors, for ports. Who waits, who goes, and how it is told.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use crate::support::{
    Admin, Client, Endpoint, Group, Scrape, Setup, Subak, in_a_network_of_its_own, ip, ok,
    wait_until,
};

const GET: &str = "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n";

fn scrape(admin: &Admin) -> Scrape {
    Scrape::parse(&admin.ask("GET", "/metrics", "").text())
}

fn has_problem(admin: &Admin, kind: &str, what: &str) -> bool {
    let status = admin.status();
    let problems = status["problems"].as_array().cloned().unwrap_or_default();
    problems.iter().any(|one| one["kind"] == kind && one["what"] == what)
}

/// Clients that have asked once and are idle from then on.
fn idle_clients(subak: &Subak, count: usize) -> Vec<Client> {
    let mut clients: Vec<_> = (0..count).map(|_| subak.client()).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.get("/").status, 200));
    clients
}

#[test]
fn newcomers_take_the_places_of_idle_clients_the_longest_idle_first() {
    for limit in ["max_connections = 20", ""] {
        let endpoint = Endpoint::named("x");
        let mut setup = Setup::before(&[&endpoint]).top(limit);
        if limit.is_empty() {
            setup = setup.listener("limits = { connections = 20 }");
        }
        let subak = setup.start();
        let admin = Admin::of(&subak);
        let mut idle = idle_clients(&subak, 20);
        // They make room when they have been idle for a second, in the order in which they became so.
        let mut asked_last = idle.split_off(10);
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(300) {
            asked_last.iter_mut().for_each(|client| assert_eq!(client.get("/").status, 200));
        }
        let mut newcomers = Vec::new();
        for _ in 0..10 {
            let mut answered = false;
            wait_until("a newcomer is served", || {
                let mut client = subak.client();
                answered = client.try_send(GET).is_ok()
                    && client.try_answer("GET").is_ok_and(|answer| answer.status == 200);
                if answered {
                    newcomers.push(client);
                }
                answered
            });
        }
        for client in &mut idle {
            client.assert_ends();
        }
        for client in asked_last.iter_mut().chain(&mut newcomers) {
            assert_eq!(client.get("/").status, 200);
        }
        let evicted = [("listener", "web")];
        assert_eq!(scrape(&admin).value("subak_listener_evicted_total", &evicted), 10.0);
        let what = if limit.is_empty() { "listener web" } else { "process" };
        wait_until("it is a problem", || has_problem(&admin, "connections", what));
    }
}

#[test]
fn silent_connections_do_not_take_the_places_of_clients_that_ask() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).top("max_connections = 20").start();
    let mut asking = idle_clients(&subak, 5);
    let mut silent = Vec::new();
    for _ in 0..30 {
        silent.push(subak.client());
        for client in &mut asking {
            assert_eq!(client.get("/").status, 200);
        }
    }
    // Silent ones give way to others when they have been silent for a second.
    wait_until("the first of them has gone", || {
        asking.iter_mut().for_each(|client| assert_eq!(client.get("/").status, 200));
        scrape(&Admin::of(&subak)).value("subak_listener_evicted_total", &[("listener", "web")])
            > 0.0
    });
}

#[test]
fn an_idle_http2_client_makes_room_and_is_told_goodbye() {
    use crate::support::http2::{h2_get, prior_knowledge};
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).top("max_connections = 1").start();
    prior_knowledge(&subak, async |send| {
        assert_eq!(h2_get(send, "http://a.example/").await.1, "x");
        let address = subak.address().to_owned();
        let other = tokio::task::spawn_blocking(move || {
            let mut client = Client::connect(&address);
            client.get("/").status
        });
        assert_eq!(other.await.expect("a client"), 200);
    });
}

#[test]
fn clients_are_served_while_endpoints_hold_all_their_descriptors() {
    let endpoint = Endpoint::scripted(|served| {
        served.request();
        served.read_to_end();
    });
    let setup = Setup::before(&[&endpoint])
        .listener("route = [{ path = \"/here\", respond = 204 }]\npool = \"app\"");
    let text = setup.text();
    let address = setup.address().to_owned();
    // 40 of them are for traffic: 30 for clients, 30 for endpoints.
    let subak = Subak::spawn_with(&["prlimit", "--nofile=104:104"], &text, &address).ready(&text);
    use crate::support::http2::prior_knowledge;
    prior_knowledge(&subak, async |send| {
        let mut asked = Vec::new();
        for _ in 0..60 {
            let mut ready = send.clone().ready().await.expect("ready");
            let request = http::Request::get("http://a.example/").body(()).expect("request");
            asked.push(ready.send_request(request, true).expect("sent"));
        }
        let log = "out of descriptors for endpoints";
        while !subak.log().contains(log) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let client = tokio::task::spawn_blocking(move || {
            (0..5).for_each(|_| assert_eq!(Client::connect(&address).get("/here").status, 204));
        });
        client.await.expect("a client");
    });
    let admin = Admin::of(&subak);
    wait_until("it is a problem", || has_problem(&admin, "descriptors", "process"));
    assert!(endpoint.accepted() <= 30, "{}", endpoint.accepted());
}

#[test]
fn ports_that_run_out_are_no_fault_of_the_endpoints() {
    if !in_a_network_of_its_own("ports_that_run_out_are_no_fault_of_the_endpoints") {
        return;
    }
    ip("link set lo up");
    // Both keep what they are asked for as long as they are asked; of one the ports run out.
    let silent = |served: &mut crate::support::Served| {
        while let Some(request) = served.request() {
            match request.line.contains("/held") {
                true => _ = served.read_to_end(),
                false => served.send(ok("x")),
            }
        }
    };
    let endpoint = Endpoint::scripted(silent);
    let subak = Setup::before(&[&endpoint]).pool("back_off = \"1h\"").start();
    let admin = Admin::of(&subak);
    let clients: Vec<_> = (0..8).map(|_| subak.client()).collect();
    std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", "61000 61003").expect("few ports");
    let mut held = Vec::new();
    for mut client in clients {
        let asked = endpoint.requests().len();
        client.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n");
        let has_failed = || subak.log().contains("no port left");
        wait_until("it is with the endpoint, or answered", || {
            endpoint.requests().len() > asked || has_failed()
        });
        if has_failed() {
            assert_eq!(client.answer().status, 503);
            break;
        }
        held.push(client);
    }
    assert_eq!(held.len(), 4);
    let labels = [("listener", "web"), ("fault", "subak"), ("cause", "no_ports")];
    assert!(scrape(&admin).value("subak_listener_failures_total", &labels) >= 1.0);
    wait_until("it is a problem", || has_problem(&admin, "ports", "app"));
    // The endpoint is none the worse for it: as soon as there is a port it is asked again.
    assert_eq!(admin.endpoint(&endpoint.address())["state"], "ready");
    drop(held);
    std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", "32768 60999").expect("many ports");
    assert_eq!(subak.get("/").0, 200);
}

/// Clients that ask for a large response and take little of it.
const SLOW_READERS: usize = 1000;

#[test]
fn slow_readers_of_large_responses_fit_into_64_mib() {
    const BODY: usize = 64 << 20;
    let Some(group) = Group::with_memory(64 << 20) else { return };
    subak_net::raise_descriptor_limit().expect("descriptors for both ends");
    let large = Endpoint::scripted(|served| {
        while served.request().is_some() {
            served.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY}\r\n\r\n"));
            let piece = vec![b'z'; 1 << 16];
            while served.socket().write_all(&piece).is_ok() {}
        }
    });
    let small = Endpoint::named("small");
    let setup = Setup::before(&[&large])
        .tail("[[listener.web.route]]\npath = \"/small\"\npool = \"small\"")
        .tail(&format!("[pool.small]\nendpoints = [{:?}]", small.address()));
    let text = setup.text();
    let wrapper = group.wrapper();
    let wrapper: Vec<_> = wrapper.iter().map(String::as_str).collect();
    let subak = Subak::spawn_with(&wrapper, &text, setup.address()).ready(&text);
    assert_eq!(subak.get("/small").0, 200);
    let mut readers: Vec<_> = (0..SLOW_READERS)
        .map(|_| {
            let mut client = subak.client();
            client.send(GET);
            client
        })
        .collect();
    let mut most = 0;
    for client in &mut readers {
        assert_eq!(client.head().status, 200);
        most = most.max(subak.resident_kib());
    }
    // Others are served meanwhile, and those who take more get more.
    assert_eq!(subak.get("/small").0, 200);
    for client in readers.iter_mut().step_by(50) {
        let mut piece = vec![0; 2 << 20];
        client.socket().read_exact(&mut piece).expect("more of the response");
        most = most.max(subak.resident_kib());
    }
    assert_eq!(subak.get("/small").0, 200);
    eprintln!("{SLOW_READERS} slow readers: {most} KiB resident");
    assert!(most < 60 << 10, "{most} KiB");
}
