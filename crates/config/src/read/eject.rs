//! `eject` and `slow_start` of a pool: who is left out because of its answers, and how one comes back.

use std::num::NonZeroU32;

use subak_health::{EjectionSpec, LatencySpec, SlowStart};
use subak_message::grpc::Codes;

use super::{Reader, View, convert, pool};
use crate::diagnostic::Diagnostic;
use crate::scalar;
use crate::tree::{Node, Value};
use crate::vocabulary::{EJECT, EJECT_LATENCY, SLOW_START};

/// `eject`.
pub(super) fn read(reader: &mut Reader<'_>, view: &View<'_>) -> Option<EjectionSpec> {
    let Some(node) = view.node("eject") else {
        // Without a word of it nobody is ejected for being slow: what is slow differs too much.
        return Some(EjectionSpec { latency: None, ..EjectionSpec::default() });
    };
    match &node.value {
        Value::Boolean(true) => Some(EjectionSpec::default()),
        Value::Table(_) => Some(spec(reader, node)),
        _ => None,
    }
}

/// How gRPC calls end that count as failures: `eject.grpc`.
pub(super) fn grpc_failures(reader: &mut Reader<'_>, view: &View<'_>) -> Codes {
    let mut failures = Codes::default();
    for item in view.table("eject", &EJECT).items("grpc") {
        let Value::String(name) = &item.value else { continue };
        if let Some(code) = reader.take(item, pool::grpc_code(name, 0)) {
            failures = failures.with(code);
        }
    }
    failures
}

/// `slow_start`.
pub(super) fn slow_start(reader: &mut Reader<'_>, view: &View<'_>) -> Option<SlowStart> {
    let node = view.node("slow_start")?;
    if let Value::String(text) = &node.value {
        return scalar::duration(text).ok().map(SlowStart::over);
    }
    let table = View::of(node, &SLOW_START);
    let over = scalar::duration(table.string("over")?).ok()?;
    let Some(from) = table.node("from") else { return Some(SlowStart::over(over)) };
    let per_mille = table.parts("from", 1000)?;
    if per_mille == 0 {
        let diagnostic = Diagnostic::error(from.span, "an endpoint without a share stays cold");
        reader.push(diagnostic.label("expected more than 0"));
    }
    Some(SlowStart::new(over, per_mille))
}

fn spec(reader: &mut Reader<'_>, node: &Node) -> EjectionSpec {
    let view = View::of(node, &EJECT);
    let default = EjectionSpec::default();
    let max = view.duration("max", default.max);
    let base = view.duration("base", default.base.min(max));
    // Who asks for a long first ejection and says nothing of the longest means at least that one.
    let max = if view.node("max").is_some() { max } else { max.max(base) };
    reader.at_most(&view, ("base", base), ("max", max));
    let consecutive = view.number("consecutive").and_then(convert::<u32>);
    let min_requests = view.number("min_requests").and_then(convert);
    let spec = EjectionSpec {
        consecutive: consecutive.map_or(default.consecutive, NonZeroU32::new),
        share_per_mille: view.parts("share", 1000).map_or(default.share_per_mille, NonZeroU32::new),
        latency: latency(&view, default.latency),
        window: view.duration("window", default.window),
        min_requests: min_requests.unwrap_or(default.min_requests),
        base,
        max,
        max_share_per_mille: view.parts("max_share", 1000).unwrap_or(default.max_share_per_mille),
    };
    if (spec.consecutive, spec.share_per_mille, spec.latency) == (None, None, None) {
        let diagnostic = Diagnostic::error(node.span, "nothing is left that ejects an endpoint");
        reader.push(
            diagnostic
                .label("expected one of `consecutive`, `share` and `latency`")
                .help("to eject nobody: eject = false"),
        );
    }
    if let (Some(node), 0) = (view.node("max_share"), spec.max_share_per_mille) {
        let diagnostic = Diagnostic::error(node.span, "there is room for no ejection");
        let help = "to eject nobody: eject = false";
        reader.push(diagnostic.label("expected more than 0").help(help));
    }
    spec
}

fn latency(view: &View<'_>, default: Option<LatencySpec>) -> Option<LatencySpec> {
    if !view.boolean("latency", true) {
        return None;
    }
    let table = view.table("latency", &EJECT_LATENCY);
    default.map(|default| LatencySpec {
        factor_per_mille: table.parts("factor", 1000).unwrap_or(default.factor_per_mille),
        min: table.duration("min", default.min),
    })
}
