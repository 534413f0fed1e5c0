//! What end-to-end tests need: the real binary on addresses of its own, endpoints that follow a
//! script, and clients that send exactly the bytes they are told to.
//!
//! Plain threads and blocking sockets with a deadline on everything: a test fails, it never hangs.
//! Tests wait for conditions ([`wait_until`]), never for time to pass.
#![allow(dead_code, reason = "each program of tests uses its own part")]
#![allow(unused_imports, reason = "each program of tests uses its own part")]

pub(crate) mod admin;
mod agent;
mod authority;
mod client;
mod deaf;
mod dns;
mod endpoint;
pub(crate) mod frames;
mod group;
pub(crate) mod http2;
pub(crate) mod http2_endpoint;
mod lab;
mod load;
mod message;
mod moody;
pub(crate) mod network;
mod nginx;
mod prometheus;
mod socket;
mod subak;
mod terminal;

pub(crate) use admin::Admin;
pub(crate) use agent::{Agent, TOKEN};
pub(crate) use authority::Authority;
pub(crate) use client::{Answer, Client, End};
pub(crate) use deaf::Deaf;
pub(crate) use dns::{Dns, DnsMood, Record};
pub(crate) use endpoint::{Endpoint, Served};
pub(crate) use group::Group;
pub(crate) use lab::Lab;
pub(crate) use load::Load;
pub(crate) use message::{Framing, Message};
pub(crate) use moody::{Mood, Moody};
pub(crate) use network::{Beyond, Counted, in_a_network_of_its_own, ip};
pub(crate) use nginx::Nginx;
pub(crate) use prometheus::Scrape;
pub(crate) use socket::{Socket, uninterrupted};
pub(crate) use subak::{Setup, Subak, fresh_address, fresh_address_v6, fresh_directory};
pub(crate) use terminal::Terminal;

use std::time::{Duration, Instant};

/// How long anything may take that is expected to happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// Waits until `condition` holds; fails the test with `what` when it does not in time.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A 200 with this body, as bytes.
pub(crate) fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}
