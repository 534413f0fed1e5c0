//! Certificates that come by ACME, as the status and Prometheus see them.

use std::borrow::Cow;
use std::time::SystemTime;

use serde::Serialize;
use subak_telemetry::{Exposition, families};

use crate::command::AcmeView;
use crate::moment::rfc3339;

/// A certificate that is wanted by ACME.
#[derive(Serialize, Debug)]
pub(crate) struct Brief<'a> {
    names: &'a [String],
    state: &'static str,
    issuer: Option<&'a str>,
    begins_at: Option<String>,
    ends_at: Option<String>,
    next_order_at: Option<String>,
    by_authority: bool,
    failures: u32,
    problem: Option<&'a str>,
    waits: bool,
    file: Cow<'a, str>,
    issued: u64,
    failed: u64,
}

/// One of them, to be shown.
pub(crate) fn brief(view: &AcmeView) -> Brief<'_> {
    Brief {
        names: &view.names,
        state: view.state,
        issuer: view.issuer.as_deref(),
        begins_at: view.life.map(|(begins, _)| rfc3339(begins)),
        ends_at: view.life.map(|(_, ends)| rfc3339(ends)),
        next_order_at: view.next_order.map(rfc3339),
        by_authority: view.by_authority,
        failures: view.failures,
        problem: view.problem.as_deref(),
        waits: view.waits,
        file: view.file.to_string_lossy(),
        issued: view.issued,
        failed: view.failed,
    }
}

/// What Prometheus reads of them.
pub(crate) fn metrics(text: &mut Exposition, certificates: &[AcmeView]) {
    let named = || certificates.iter().map(|one| (one, one.names.first().map_or("", |name| name)));
    let since_1970 = |moment: SystemTime| {
        moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
    };
    let mut ends = text.family(&families::ACME_ENDS);
    for (one, name) in named() {
        if let Some((_, end)) = one.life {
            ends.number(&[name], since_1970(end));
        }
    }
    let mut next = text.family(&families::ACME_NEXT);
    for (one, name) in named() {
        if let Some(moment) = one.next_order {
            next.number(&[name], since_1970(moment));
        }
    }
    let mut placeholders = text.family(&families::ACME_PLACEHOLDER);
    for (one, name) in named() {
        placeholders.count(&[name], u64::from(one.state == "placeholder"));
    }
    let mut orders = text.family(&families::ACME_ORDERS);
    for (one, name) in named() {
        orders.count(&[name, "issued"], one.issued);
        orders.count(&[name, "failed"], one.failed);
    }
}
