//! What endpoints have seen, as `/__stats` tells it.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::place::Counters;

/// The whole answer.
pub(super) fn answer(names: &[String], counters: &[Counters]) -> Vec<u8> {
    let endpoints: Vec<Value> =
        names.iter().zip(counters).map(|(name, counters)| one(name, counters)).collect();
    let body = format!("{:#}\n", json!({ "endpoints": endpoints }));
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n\
                Content-Length: ";
    format!("{head}{}\r\n\r\n{body}", body.len()).into_bytes()
}

fn one(name: &str, counters: &Counters) -> Value {
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    json!({
        "name": name,
        "hits": of(&counters.hits),
        "connections": of(&counters.connections),
        "in_service": of(&counters.in_service),
        "in_line": of(&counters.in_line),
        "refused": of(&counters.refused),
        "failed": of(&counters.failed),
        "served": of(&counters.served),
        "service_seconds": of(&counters.served_ns) as f64 / 1e9,
        "late_seconds": of(&counters.late_ns) as f64 / 1e9,
    })
}
