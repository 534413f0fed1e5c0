//! Several targets: who is asked, and what a dead one costs.

use std::net::SocketAddr;
use std::time::Duration;

use super::super::*;
use super::heard;

/// Both ways of asking, by both protocols.
fn loads(targets: [SocketAddr; 2], protocol: Protocol) -> [LoadPlan; 2] {
    let plan = LoadPlan::get(targets[0], "/");
    let plan = LoadPlan { targets: targets.to_vec(), protocol, ..plan };
    [plan.clone().rate(2000.0, 4).requests(100), plan.users(4).requests(100)]
}

const PROTOCOLS: [Protocol; 2] = [Protocol::Http1, Protocol::Http2 { connections: 2 }];

#[test]
fn an_open_loop_asks_in_turn_and_each_user_one_target() {
    for protocol in PROTOCOLS {
        let is_http2 = protocol != Protocol::Http1;
        let [first, second] = [heard::listen(false, is_http2), heard::listen(false, is_http2)];
        let [open, closed] = loads([first.0, second.0], protocol);
        let report = run(&open).expect("a report");
        assert_eq!((first.1.all().len(), second.1.all().len()), (50, 50));
        let of = |target, answered| TargetResult { address: target, answered, failed: 0 };
        assert_eq!(report.targets, [of(first.0, 50), of(second.0, 50)]);
        let report = run(&closed).expect("a report");
        let [one, other] = &report.targets[..] else { panic!("{:?}", report.targets) };
        assert_eq!((one.answered + other.answered, report.failures.total()), (100, 0));
        assert!(one.answered >= 1 && other.answered >= 1, "{one:?} {other:?}");
        let heard = (first.1.all().len() as u64, second.1.all().len() as u64);
        assert_eq!(heard, (50 + one.answered, 50 + other.answered));
    }
}

/// Nobody listens there, and nobody will while this is held.
fn dead() -> (SocketAddr, socket2::Socket) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
    let socket = socket.expect("a socket");
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    socket.bind(&any.into()).expect("a port");
    let address = socket.local_addr().ok().and_then(|address| address.as_socket());
    (address.expect("an address"), socket)
}

#[test]
fn a_dead_target_fails_its_own_requests() {
    for protocol in PROTOCOLS {
        let (target, _) = heard::listen(false, protocol != Protocol::Http1);
        let (dead, _held) = dead();
        let [open, closed] = loads([target, dead], protocol);
        let report = run(&open).expect("a report");
        assert_eq!((report.answered, report.failures.of(Failure::Connect)), (50, 50));
        assert_eq!((report.targets[0].failed, report.targets[1].failed), (0, 50));
        // Those that were opened beforehand were refused too.
        assert!(report.unconnected.values().sum::<u64>() >= 50, "{:?}", report.unconnected);
        let text = summary::text(&report);
        assert!(text.contains(&format!("{dead}: 0 answered, 50 failed\n")), "{text}");
        let report = run(&closed).expect("a report");
        assert_eq!((report.targets[0].failed, report.targets[1].answered), (0, 0));
    }
}

/// One connection for both: it changes sides with each request.
#[test]
fn an_idle_connection_to_another_target_makes_room() {
    let [first, second] = [heard::listen(false, false), heard::listen(false, false)];
    let plan = LoadPlan::get(first.0, "/").rate(500.0, 1).requests(20);
    let plan = LoadPlan { targets: vec![first.0, second.0], ..plan };
    let report = run(&plan).expect("a report");
    assert_eq!((report.answered, first.1.all().len(), second.1.all().len()), (20, 10, 10));
    assert_eq!(report.connections, 20);
}

#[test]
fn a_load_has_a_target_and_http2_a_connection_to_each() {
    let (target, _held) = dead();
    let [plan, _] = loads([target, target], Protocol::Http2 { connections: 1 });
    let plan = LoadPlan { answer_within: Duration::from_secs(1), ..plan };
    run(&plan).expect_err("one connection to two targets");
    run(&LoadPlan { targets: Vec::new(), ..plan }).expect_err("no target");
}
