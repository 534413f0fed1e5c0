//! Reloads and endpoint failures under load: what clients notice (nothing), and what stays behind
//! (nothing).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Client, Endpoint, Load, Setup, Subak, fresh_address, ok, wait_until};

/// Reloads and waits until it is in force; answers with the generation.
#[track_caller]
fn reload(subak: &Subak, config: &str, generation: usize) {
    subak.write_config(config);
    subak.signal("HUP");
    subak.wait_for_log(&format!("configuration reloaded generation={generation}\n"));
}

fn threads(subak: &Subak) -> usize {
    std::fs::read_dir(format!("/proc/{}/task", subak.pid())).expect("proc").count()
}

#[test]
fn a_hundred_reloads_under_load_fail_no_request_and_leave_nothing_behind() {
    let endpoints: Vec<_> = ["a", "b", "c", "d"].map(Endpoint::named).into_iter().collect();
    let slow = Endpoint::named("slow");
    let (stays, comes_and_goes) = (fresh_address(), fresh_address());
    let socket = std::env::temp_dir().join(format!("subak-reload-{}.sock", std::process::id()));
    // Each turn has other weights, other endpoints and, every other time, two listeners more.
    let config = |turn: usize| {
        let chosen =
            endpoints.iter().enumerate().filter(|(index, _)| !(turn + index).is_multiple_of(4));
        let chosen: Vec<_> = chosen
            .map(|(index, endpoint)| {
                format!("{} weight={}", endpoint.address(), 1 + (turn + index) % 3)
            })
            .collect();
        let more = match turn % 2 {
            0 => String::new(),
            _ => format!(
                "[listener.more]\nbind = [{comes_and_goes:?}, \"unix:{}\"]\npool = \"slow\"\n",
                socket.display()
            ),
        };
        format!(
            "workers = 2\n[listener.web]\nbind = {stays:?}\npool = \"app\"\n\
             limits = {{ requests_per_connection = \"unlimited\" }}\n{more}\n\
             [pool.app]\nbalance = \"round_robin\"\nendpoints = {chosen:?}\n\
             timeouts = {{ keep_alive = \"500ms\" }}\n\
             [pool.slow]\nendpoints = [{:?}]\ntimeouts = {{ keep_alive = \"500ms\" }}\n",
            slow.address()
        )
    };
    let subak = Subak::start_at(&config(0), &stays);
    let (descriptors, threads_before) = (subak.descriptors(), threads(&subak));
    let idle = || subak.descriptors() == descriptors && threads(&subak) == threads_before;
    let round = |turns: std::ops::Range<usize>| {
        let load = Load::begin(&stays, 2, 2);
        for turn in turns {
            // Clients of listeners that are about to go: one in the midst of a request, one that has
            // said nothing yet.
            let mut leaving = Vec::new();
            if turn % 2 == 0 && turn > 0 {
                let mut begun = Client::connect(&comes_and_goes);
                begun.send("GET / HTTP/1.1\r\nHost: exa");
                leaving.push((begun, "mple.com\r\n\r\n"));
                let request = "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n";
                leaving.push((Client::connect(&comes_and_goes), request));
                leaving.push((Client::connect_unix(&socket), request));
            }
            reload(&subak, &config(turn), turn + 1);
            for (mut client, rest) in leaving {
                client.send(rest);
                let answer = client.answer();
                assert_eq!((answer.status, answer.text().as_str()), (200, "slow"));
                client.assert_ends();
            }
            load.wait_for(10);
        }
        let failures = load.end();
        assert!(
            failures.is_empty(),
            "{} failed: {:?}",
            failures.len(),
            &failures[..failures.len().min(5)]
        );
    };
    // The first turns fill caches and pools of memory.
    round(1..21);
    wait_until("the process is idle again", idle);
    let resident = subak.resident_kib();
    round(21..101);
    wait_until("the process is idle again", idle);
    wait_until("old endpoints are rid of their connections", || {
        endpoints.iter().chain([&slow]).all(|endpoint| endpoint.open() == 0)
    });
    let grown = subak.resident_kib().saturating_sub(resident);
    assert!(grown < 4096, "{grown} KiB more after 80 reloads, {resident} KiB before");
    assert!(!socket.exists(), "the socket file of a removed listener is removed");
    assert!(std::net::TcpStream::connect(&comes_and_goes).is_err());
}

#[test]
fn endpoints_that_are_removed_lose_their_idle_connections_at_once() {
    let (stays, goes) = (Endpoint::named("stays"), Endpoint::named("goes"));
    let subak = Setup::before(&[&stays, &goes]).workers(2).start();
    (0..20).for_each(|_| assert_eq!(subak.get("/").0, 200));
    assert!(goes.open() > 0 && stays.open() > 0);
    let kept = stays.accepted();
    reload(&subak, &Setup::before(&[&stays]).workers(2).bind(subak.address()).text(), 2);
    wait_until("its connections are closed", || goes.open() == 0);
    (0..20).for_each(|_| assert_eq!(subak.get("/").1, "stays"));
    assert!(stays.accepted() <= kept + 1, "connections of endpoints that stay are kept");
}

#[test]
fn a_request_under_way_at_an_endpoint_that_is_removed_finishes_there() {
    let released = Arc::new(AtomicBool::new(false));
    let waits = released.clone();
    let old = Endpoint::scripted(move |served| {
        while served.request().is_some() {
            wait_until("it may answer", || waits.load(Ordering::SeqCst));
            served.send(ok("old"));
        }
    });
    let new = Endpoint::named("new");
    let subak = Setup::before(&[&old]).start();
    let mut client = subak.client();
    client.send("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n");
    old.wait_for_requests(1);
    reload(&subak, &Setup::before(&[&new]).bind(subak.address()).text(), 2);
    assert_eq!(subak.get("/").1, "new");
    released.store(true, Ordering::SeqCst);
    assert_eq!(client.answer().text(), "old");
    // The listener has stayed, so has the connection, and it serves by what is in force now.
    assert_eq!(client.get("/").text(), "new");
    wait_until("the old connection is closed", || old.open() == 0);
}

#[test]
fn weights_that_change_take_effect_without_starting_the_sequence_over() {
    let endpoints = ["a", "b"].map(Endpoint::named);
    let at = |weight: usize| {
        [format!("{} weight={weight}", endpoints[0].address()), endpoints[1].address()]
    };
    let setup = Setup::before_addresses(at(1));
    let subak = setup.start();
    let mut client = subak.client();
    // One of each ten: were each reload to begin anew, the first would have all of them.
    for turn in 0..10 {
        assert_eq!(client.get("/").status, 200);
        let text = Setup::before_addresses(at(1)).bind(subak.address()).text();
        reload(&subak, &text, turn + 2);
    }
    assert_eq!(endpoints.each_ref().map(|endpoint| endpoint.requests().len()), [5, 5]);
    reload(&subak, &Setup::before_addresses(at(3)).bind(subak.address()).text(), 12);
    (0..40).for_each(|_| assert_eq!(client.get("/").status, 200));
    assert_eq!(endpoints.each_ref().map(|endpoint| endpoint.requests().len()), [35, 15]);
}

#[test]
fn a_bad_file_changes_nothing_and_the_log_says_where_and_why() {
    let endpoint = Endpoint::named("x");
    let setup = Setup::before(&[&endpoint]);
    let subak = setup.start();
    let mut kept = subak.client();
    assert_eq!(kept.get("/").status, 200);
    subak.write_config(&setup.text().replace("round_robin", "round_robbin"));
    subak.signal("HUP");
    subak.wait_for_log("not reloaded, nothing has changed");
    let log = subak.log();
    let line = 1 + setup.text().lines().position(|line| line.contains("round_robin")).expect("it");
    assert!(log.contains(&format!("subak.toml:{line}:")), "{log}");
    assert!(log.contains("^^^") && log.contains("round_robin"), "{log}");
    assert_eq!(kept.get("/").status, 200);
    assert_eq!(subak.get("/").0, 200);

    std::fs::remove_file(subak.directory().join("subak.toml")).expect("remove");
    subak.signal("HUP");
    subak.wait_for_log("cannot read");
    assert_eq!(kept.get("/").status, 200);

    // Nothing of it stands in the way of a good one.
    reload(&subak, &setup.text(), 2);
    assert_eq!(kept.get("/").status, 200);
}

#[test]
fn a_port_that_is_taken_at_reload_changes_nothing_and_is_named() {
    let endpoint = Endpoint::named("x");
    let (first, free) = (fresh_address(), fresh_address());
    let taken = std::net::TcpListener::bind(fresh_address()).expect("a listener");
    let taken_address = taken.local_addr().expect("its address");
    let text = Setup::before(&[&endpoint]).bind(&first).text();
    let subak = Subak::start_at(&text, &first);
    let descriptors = subak.descriptors();
    let both = text.replace(
        &format!("bind = {first:?}"),
        &format!("bind = [{first:?}, {free:?}, \"{taken_address}\"]"),
    );
    subak.write_config(&both);
    subak.signal("HUP");
    subak.wait_for_log(&format!("cannot listen on {taken_address}"));
    // The problem is told before what can be done about it.
    subak.wait_for_log("ss -ltnp");
    assert_eq!(subak.get("/").0, 200);
    assert!(std::net::TcpStream::connect(&free).is_err(), "not even the addresses that were free");
    wait_until("nothing of it stays open", || subak.descriptors() <= descriptors + 2);
    drop(taken);
    // A process that another test is about to start may hold the port a moment longer.
    wait_until("the port is free, and the reload in force", || {
        subak.signal("HUP");
        subak.log().contains("configuration reloaded generation=2\n")
    });
    assert_eq!(Client::connect(&free).get("/").status, 200);
}

#[test]
fn an_address_can_be_widened_to_all_addresses_by_a_reload() {
    let endpoint = Endpoint::named("x");
    let narrow = fresh_address();
    // A port of its own: the wildcard would collide with every other test.
    let port = {
        let probe = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        probe.local_addr().expect("its address").port()
    };
    let narrow = narrow.replace(":8080", &format!(":{port}"));
    let text = Setup::before(&[&endpoint]).bind(&narrow).text();
    let subak = Subak::start_at(&text, &narrow);
    assert_eq!(subak.get("/").0, 200);
    reload(&subak, &text.replace(&narrow, &format!("0.0.0.0:{port}")), 2);
    assert_eq!(subak.get("/").0, 200);
    reload(&subak, &text, 3);
    assert_eq!(subak.get("/").0, 200);
}

#[test]
fn another_number_of_workers_is_left_for_the_next_start_and_the_log_says_so() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).workers(1).start();
    let before = threads(&subak);
    let text = Setup::before(&[&endpoint]).workers(3).bind(subak.address()).text();
    reload(&subak, &text, 2);
    assert!(subak.log().contains("takes effect at the next start"), "{}", subak.log());
    assert_eq!(threads(&subak), before);
}

/// Another Subak, as an endpoint that can be killed with all its connections.
fn killable(address: &str) -> Subak {
    let config = format!(
        "workers = 1\n[listener.x]\nbind = {address:?}\n\
         [[listener.x.route]]\nrespond = {{ status = 200, body = \"alive\" }}\n"
    );
    Subak::start_at(&config, address)
}

#[test]
fn twenty_endpoint_kills_and_restarts_under_load_fail_no_request() {
    let addresses = [(); 3].map(|()| fresh_address());
    let mut endpoints = addresses.each_ref().map(|address| Some(killable(address)));
    let subak = Setup::before_addresses(addresses.iter().cloned())
        .workers(2)
        .listener("limits = { requests_per_connection = \"unlimited\" }")
        .pool("back_off = { initial = \"50ms\", max = \"100ms\" }")
        .start();
    let load = Load::begin(subak.address(), 2, 4);
    load.wait_for(50);
    for turn in 0..20 {
        let dies = turn % 3;
        // Killed, not stopped: what is under way there is cut off.
        endpoints[dies] = None;
        load.wait_for(50);
        endpoints[dies] = Some(killable(&addresses[dies]));
        load.wait_for(50);
    }
    let served = load.served();
    let failures = load.end();
    assert!(failures.is_empty(), "{} of {served} failed: {failures:?}", failures.len());
}
