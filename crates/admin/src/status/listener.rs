//! What the status says of a listener: its certificates, routes and counts.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::Serialize;
use subak_telemetry::{Cause, Flood, Turned};

use super::by_status;
use crate::command::{CertificateView, ListenerView, RouteView};
use crate::moment::rfc3339;

#[derive(Serialize, Debug)]
pub(super) struct Listener<'a> {
    name: &'a str,
    addresses: &'a [String],
    tls: bool,
    certificates: Vec<Certificate<'a>>,
    protocols: &'a [&'static str],
    routes: Vec<Route<'a>>,
    connections: usize,
    streams: u64,
    accepted: u64,
    refused: u64,
    turned_away: BTreeMap<&'static str, u64>,
    tls_handshakes_failed: u64,
    requests: BTreeMap<&'static str, u64>,
    /// Those that have happened.
    failures: BTreeMap<&'static str, u64>,
    /// Those that have happened.
    http2_floods: BTreeMap<&'static str, u64>,
}

/// One certificate.
#[derive(Serialize, Debug)]
struct Certificate<'a> {
    source: &'a str,
    names: &'a [String],
    issuer: &'a str,
    serial: &'a str,
    fingerprint: &'a str,
    key: &'static str,
    expires_at: String,
    /// Negative once it has.
    expires_in_s: f64,
    ocsp_stapled: bool,
}

/// One route; without an index, what the listener says itself.
#[derive(Serialize, Debug)]
struct Route<'a> {
    index: Option<usize>,
    #[serde(rename = "match")]
    matches: &'a str,
    action: &'a str,
    hits: u64,
}

pub(super) fn listener(view: &ListenerView) -> Listener<'_> {
    let failures = Cause::ALL.into_iter().zip(view.totals.failures);
    let floods = Flood::ALL.into_iter().zip(view.totals.floods);
    Listener {
        name: &view.name,
        addresses: &view.addresses,
        tls: view.tls,
        certificates: view.certificates.iter().map(certificate).collect(),
        protocols: &view.protocols,
        routes: view.routes.iter().map(route).collect(),
        connections: view.connections,
        streams: view.totals.streams,
        accepted: view.totals.accepted,
        refused: view.totals.refused,
        turned_away: Turned::ALL.iter().map(|why| why.name()).zip(view.totals.turned).collect(),
        tls_handshakes_failed: view.totals.handshakes_failed,
        requests: by_status(view.totals.requests),
        failures: failures
            .filter(|(_, count)| *count > 0)
            .map(|(cause, count)| (cause.name(), count))
            .collect(),
        http2_floods: floods
            .filter(|(_, count)| *count > 0)
            .map(|(flood, count)| (flood.name(), count))
            .collect(),
    }
}

fn certificate(view: &CertificateView) -> Certificate<'_> {
    let now = SystemTime::now();
    let left = match view.expires_at.duration_since(now) {
        Ok(left) => left.as_secs_f64(),
        Err(since) => -since.duration().as_secs_f64(),
    };
    Certificate {
        source: &view.source,
        names: &view.names,
        issuer: &view.issuer,
        serial: &view.serial,
        fingerprint: &view.fingerprint,
        key: view.key,
        expires_at: rfc3339(view.expires_at),
        expires_in_s: left,
        ocsp_stapled: view.is_stapled,
    }
}

fn route(view: &RouteView) -> Route<'_> {
    let RouteView { matches, action, index, hits } = view;
    Route { index: *index, matches, action, hits: *hits }
}
