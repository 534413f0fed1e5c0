//! `proxy_protocol` of a listener and of a pool.

use subak_message::proxy_header::Version;

use super::networks::networks;
use super::{Reader, View};
use crate::defaults;
use crate::diagnostic::Diagnostic;
use crate::model::{AcceptProxy, SendProxy};
use crate::tree::Value;
use crate::vocabulary::{ACCEPT_PROXY, SEND_PROXY};

/// Of a listener.
pub(super) fn accepted(reader: &mut Reader<'_>, view: &View<'_>) -> Option<AcceptProxy> {
    let node = view.node("proxy_protocol")?;
    let view = View::of(node, &ACCEPT_PROXY);
    let (from, unix) = networks(reader, view.items("from"));
    if let Some(node) = view.node("from")
        && view.items("from").is_empty()
    {
        let diagnostic = Diagnostic::error(node.span, "nobody's header would be believed");
        reader.push(diagnostic.label("expected networks such as \"10.0.0.0/8\""));
    }
    Some(AcceptProxy {
        from,
        unix,
        optional: view.boolean("optional", false),
        timeout: view.duration("timeout", defaults::PROXY_HEADER_TIMEOUT),
    })
}

/// Of a pool.
pub(super) fn sent(reader: &mut Reader<'_>, view: &View<'_>) -> Option<SendProxy> {
    let node = view.node("proxy_protocol")?;
    let version = |text: Option<&str>| match text {
        Some("v1") => Version::V1,
        _ => Version::V2,
    };
    if let Value::String(text) = &node.value {
        return Some(SendProxy { version: version(Some(text)), tls: true, checksum: false });
    }
    let view = View::of(node, &SEND_PROXY);
    let version = version(view.string("version"));
    if version == Version::V1 {
        for entry in ["tls", "checksum"].iter().filter_map(|name| view.entry(name)) {
            let message = format!("`{}` goes with version 2 only", entry.key);
            reader.push(Diagnostic::error(entry.key_span, message).label("v1 has no place for it"));
        }
    }
    Some(SendProxy {
        version,
        tls: view.boolean("tls", true),
        checksum: view.boolean("checksum", false),
    })
}
