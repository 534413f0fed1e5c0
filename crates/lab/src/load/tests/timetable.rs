//! Requests of a timetable arrive at their times, as its entries say.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use super::super::*;
use super::heard;
use crate::trust::{self, Trust};

const MS: Duration = Duration::from_millis(1);

/// Request and client `number` every two milliseconds, each fifth in nobody's name.
fn table(count: u32) -> Arc<[Due]> {
    let due = |number| Due {
        at: MS * 2 * number,
        request: number,
        client: if number % 5 == 4 { NOBODY } else { number },
    };
    (0..count).map(due).collect()
}

fn plan(target: SocketAddr, due: Arc<[Due]>, connections: usize) -> LoadPlan {
    let mut plan = LoadPlan::get(target, "/");
    plan.warm_up = Duration::ZERO;
    plan.requests = (0..due.len()).map(|place| Request::get(&format!("/{place}"))).collect();
    let client = |place: usize| IpAddr::V4(Ipv4Addr::from_bits(0x0A00_0000 + place as u32));
    plan.sources.forwarded = (0..due.len()).map(client).collect();
    plan.detail.finish = true;
    plan.shape = Shape::Timetable { due, lasts: MS * 200, connections, most: connections };
    plan
}

#[test]
fn every_request_arrives_once_in_its_order_and_in_its_name() {
    for (is_secured, is_http2) in [(false, false), (true, false), (false, true), (true, true)] {
        let (target, heard) = heard::listen(is_secured, is_http2);
        // However long one takes, all are asked.
        let mut plan = plan(target, table(100), 1).requests(100);
        if is_secured {
            plan.tls = Some(trust::client(&Trust::Anybody, "127.0.0.1").expect("TLS"));
        }
        if is_http2 {
            plan.protocol = Protocol::Http2 { connections: 1 };
        }
        let report = run(&plan).expect("a report");
        assert_eq!((report.answered, report.ended(), report.not_started), (100, 100, 0));
        assert!(report.elapsed >= MS * 198, "{:?}", report.elapsed);
        let wanted = plan.sources.forwarded.iter().enumerate().map(|(place, client)| {
            (format!("/{place}"), (place % 5 != 4).then(|| client.to_string()))
        });
        // One connection, so that none can overtake another.
        assert_eq!(heard.all(), wanted.collect::<Vec<_>>(), "{is_secured} {is_http2}");
    }
}

#[test]
fn what_is_due_in_the_warm_up_is_asked_and_not_counted() {
    for protocol in [Protocol::Http1, Protocol::Http2 { connections: 1 }] {
        let (target, heard) = heard::listen(false, protocol != Protocol::Http1);
        // Due at 0, 2, … 198 ms; the window is from 60 to 160.
        let plan = LoadPlan { warm_up: MS * 60, protocol, ..plan(target, table(100), 100) };
        let plan = plan.lasting(MS * 100);
        let report = run(&plan).expect("a report");
        assert_eq!((report.ended(), report.lateness.count(), heard.all().len()), (50, 50, 80));
    }
}

#[test]
fn the_load_of_a_moment_is_what_was_due() {
    let target = "127.0.0.1:1".parse().expect("an address");
    let plan = LoadPlan { warm_up: MS * 100, ..plan(target, table(100), 1) };
    // 2 ms between two of them, up to 198 ms.
    assert_eq!((plan.load_at(MS * 50), plan.length()), (500.0, MS * 200));
    assert_eq!(plan.load_at(MS * 400), 200.0);
}
