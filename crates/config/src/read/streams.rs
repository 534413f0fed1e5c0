//! `protocol` and `streams` of a pool.

use std::num::NonZeroU32;

use super::{Reader, View, convert};
use crate::defaults;
use crate::diagnostic::Diagnostic;
use crate::model::{EndpointProtocol, Streams};
use crate::scalar;
use crate::vocabulary::STREAMS;

/// `protocol`.
pub(super) fn protocol(reader: &mut Reader<'_>, view: &View<'_>, is_tls: bool) -> EndpointProtocol {
    let protocol = match view.string("protocol") {
        Some("h2") => EndpointProtocol::Http2,
        Some("auto") => EndpointProtocol::Auto,
        _ => EndpointProtocol::Http1,
    };
    if protocol.may_share()
        && let (Some(protocol), Some(proxy)) = (view.node("protocol"), view.entry("proxy_protocol"))
    {
        let message = "a connection that requests share has no one client to tell of";
        let diagnostic = Diagnostic::error(proxy.key_span, message);
        reader.push(
            diagnostic
                .label("goes with `protocol = \"http/1.1\"` only")
                .related(protocol.span, "what is spoken"),
        );
    }
    if let Some(node) = view.node("protocol")
        && protocol == EndpointProtocol::Auto
        && !is_tls
    {
        let warning = Diagnostic::warning(node.span, "without TLS this is HTTP/1.1");
        reader.push(
            warning
                .label("an endpoint chooses in its TLS handshake")
                .help("tls = true, or protocol = \"h2\" for endpoints that speak it in clear"),
        );
    }
    protocol
}

/// `streams`.
pub(super) fn read(view: &View<'_>) -> Streams {
    let table = view.table("streams", &STREAMS);
    let number = |name| table.number(name).and_then(convert::<NonZeroU32>);
    Streams {
        per_connection: number("per_connection").unwrap_or(defaults::STREAMS_PER_CONNECTION),
        connections: number("connections").unwrap_or(NonZeroU32::MIN),
        window_bytes: table
            .size("window")
            .and_then(convert)
            .unwrap_or(defaults::STREAM_WINDOW_BYTES),
        ping: table.string("ping").and_then(|text| scalar::duration(text).ok()),
    }
}
