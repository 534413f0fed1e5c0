//! `dns`: how names are resolved.

use std::net::SocketAddr;

use super::{Reader, View};
use crate::address;
use crate::defaults;
use crate::diagnostic::Diagnostic;
use crate::model::{Dns, Families};
use crate::vocabulary::DNS;

pub(super) fn read(reader: &mut Reader<'_>, root: &View<'_>) -> Dns {
    let view = root.table("dns", &DNS);
    let mut servers: Vec<SocketAddr> = Vec::new();
    for item in view.items("servers") {
        servers.extend(reader.text(item, address::dns_server));
    }
    if let Some(node) = view.node("servers")
        && servers.len() > defaults::MAX_DNS_SERVERS
    {
        let message = format!("there are at most {} DNS servers", defaults::MAX_DNS_SERVERS);
        reader.push(Diagnostic::error(node.span, message));
    }
    let max_ttl = view.duration("max_ttl", defaults::DNS_MAX_TTL);
    let min_ttl = view.duration("min_ttl", defaults::DNS_MIN_TTL.min(max_ttl));
    let max_ttl = if view.node("max_ttl").is_some() { max_ttl } else { max_ttl.max(min_ttl) };
    reader.at_most(&view, ("min_ttl", min_ttl), ("max_ttl", max_ttl));
    let negative_ttl = view.duration("negative_ttl", defaults::DNS_NEGATIVE_TTL.max(min_ttl));
    reader.at_most(&view, ("min_ttl", min_ttl), ("negative_ttl", negative_ttl));
    Dns {
        servers,
        families: match view.string("families") {
            Some("ipv4") => Families::Ipv4,
            Some("ipv6") => Families::Ipv6,
            _ => Families::Both,
        },
        timeout: view.duration("timeout", defaults::DNS_TIMEOUT),
        min_ttl,
        max_ttl,
        negative_ttl,
    }
}
