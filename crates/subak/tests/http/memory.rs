//! Back-pressure: however large a body and however slow its reader, Subak's memory does not grow.

use std::io::{Read, Write};
use std::time::Duration;

use crate::support::{Endpoint, Served, Setup, Subak, ok};

const SIZE: usize = 200 << 20;
/// What one slow exchange may cost.
const MOST_KIB: u64 = 2 << 10;

/// Answers a GET by `SIZE` bytes, and an upload by a slow reader's thanks.
fn large(served: &mut Served) {
    while let Some(head) = served.head() {
        if head.line.starts_with("GET") {
            served.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n"));
            let piece = vec![b'z'; 1 << 16];
            for _ in 0..SIZE / piece.len() {
                if served.socket().write_all(&piece).is_err() {
                    return;
                }
            }
        } else {
            let ahead = served.take_ahead();
            take_slowly(ahead, served.socket());
            served.send(ok("thanks"));
        }
    }
}

/// Reads `SIZE` bytes, of which some came with the head, and now and then pauses, so that what comes
/// piles up somewhere.
fn take_slowly(ahead: usize, from: &mut impl Read) {
    let mut piece = vec![0; 1 << 20];
    let (mut taken, mut pauses) = (ahead, 0);
    while taken < SIZE {
        let count = from.read(&mut piece).expect("bytes");
        assert!(count > 0, "ended after {taken} bytes");
        taken += count;
        if taken / (4 << 20) > pauses {
            pauses += 1;
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Subak's resident memory at its highest while `exchange` runs, over what it was before.
fn growth_kib(subak: &Subak, exchange: impl FnOnce() + Send) -> u64 {
    // What is allocated once is there before.
    assert_eq!(subak.get("/warm").0, 200);
    let before = subak.resident_kib();
    let mut most = before;
    std::thread::scope(|scope| {
        let exchange = scope.spawn(exchange);
        while !exchange.is_finished() {
            most = most.max(subak.resident_kib());
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    most - before
}

fn start() -> (Endpoint, Endpoint, Subak) {
    let (large, warm) = (Endpoint::scripted(large), Endpoint::named("warm"));
    let subak = Setup::before(&[&large])
        .tail("[[listener.web.route]]\npath = \"/warm\"\npool = \"warm\"\n")
        .tail(&format!("[pool.warm]\nendpoints = [{:?}]\n", warm.address()))
        .start();
    (large, warm, subak)
}

#[test]
fn a_large_answer_to_a_slow_client_costs_no_memory() {
    let (_large, _warm, subak) = start();
    let mut client = subak.client();
    let growth = growth_kib(&subak, move || {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.head().status, 200);
        let ahead = client.take_ahead();
        take_slowly(ahead, client.socket());
    });
    assert!(growth <= MOST_KIB, "{growth} KiB more");
}

#[test]
fn a_large_upload_to_a_slow_endpoint_costs_no_memory() {
    let (_large, _warm, subak) = start();
    let mut client = subak.client();
    let growth = growth_kib(&subak, move || {
        client.send(format!("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {SIZE}\r\n\r\n"));
        let piece = vec![b'z'; 1 << 16];
        for _ in 0..SIZE / piece.len() {
            client.send(&piece);
        }
        assert_eq!(client.answer().text(), "thanks");
    });
    assert!(growth <= MOST_KIB, "{growth} KiB more");
}
