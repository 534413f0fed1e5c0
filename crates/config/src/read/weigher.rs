//! `weigher` of a pool: where endpoints report their resources, and what the reports count for.

use std::time::Duration;

use subak_balance::weigher::{Coefficients, Options, Ppm};

use super::{Reader, View, convert, endpoint, secret};
use crate::defaults;
use crate::diagnostic::Diagnostic;
use crate::keys::Table;
use crate::model::Weigher;
use crate::scalar;
use crate::vocabulary::{WEIGHER, WEIGHER_CAPACITY, WEIGHER_LOAD};

/// Reports that may fail in a row before an endpoint counts as one that has stopped reporting.
const INTERVALS_FRESH: u32 = 3;

pub(super) fn read(
    reader: &mut Reader<'_>,
    view: &View<'_>,
    endpoints: &endpoint::Read,
) -> Option<Weigher> {
    let entry = view.entry("weigher")?;
    let view = View::of(&entry.node, &WEIGHER);
    if let Some(node) = view.node("resource")
        && !view.boolean("resource", true)
    {
        let diagnostic = Diagnostic::error(node.span, "`resource` can only be true");
        reader.push(diagnostic.label("expected true").help("leave `weigher` out"));
    }
    let port_span = view.node("port").map_or(entry.key_span, |node| node.span);
    endpoints.have_ports(reader, port_span);
    let interval = view.duration("interval", defaults::WEIGHER_INTERVAL);
    let timeout = view.duration("timeout", defaults::WEIGHER_TIMEOUT.min(interval));
    reader.at_most(&view, ("timeout", timeout), ("interval", interval));
    let options = options(reader, &view, interval);
    let token = view.node("token_file").and_then(|node| secret::token(reader, node))?;
    let port = convert(view.number("port").unwrap_or(u64::from(defaults::AGENT_PORT)))?;
    Some(Weigher { port, token, interval, timeout, options })
}

fn options(reader: &mut Reader<'_>, view: &View<'_>, interval: Duration) -> Options {
    let default = Options::default();
    let fresh = interval.saturating_mul(INTERVALS_FRESH);
    let hold = view.duration("hold", default.hold.max(fresh));
    if let (Some(node), true) = (view.node("hold"), hold < fresh) {
        let diagnostic = Diagnostic::error(node.span, "`hold` is below three intervals");
        let least = scalar::show_duration(fresh);
        reader.push(diagnostic.label(format!("expected at least {least}")));
    }
    let share = |name, default| view.parts(name, Ppm::ONE.get()).map_or(default, ppm);
    let max_jitter = share("max_jitter", default.max_jitter);
    if let (Some(node), Ppm::ZERO) = (view.node("max_jitter"), max_jitter) {
        let diagnostic = Diagnostic::error(node.span, "no weight would ever change");
        reader.push(diagnostic.label("expected more than 0"));
    }
    Options {
        capacity: coefficients(reader, view, "capacity", &WEIGHER_CAPACITY, default.capacity),
        load: coefficients(reader, view, "load", &WEIGHER_LOAD, default.load),
        band: share("band", default.band),
        max_jitter,
        fresh,
        hold,
    }
}

fn ppm(parts: u32) -> Ppm {
    Ppm::saturating(u64::from(parts))
}

fn coefficients(
    reader: &mut Reader<'_>,
    view: &View<'_>,
    name: &'static str,
    table: &'static Table,
    default: Coefficients,
) -> Coefficients {
    let Some(node) = view.node(name) else { return default };
    let view = view.table(name, table);
    let each = default
        .each()
        .map(|resource, default| view.number(resource.name()).and_then(convert).unwrap_or(default));
    Coefficients::new(each).unwrap_or_else(|| {
        let diagnostic = Diagnostic::error(node.span, "no resource counts");
        reader.push(diagnostic.label("expected one of them above 0"));
        default
    })
}
