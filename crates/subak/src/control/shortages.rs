//! What this machine or the configuration leaves too little of: room for clients, descriptors, ports,
//! a reader of the log. Workers count, and this makes problems of it, some ten times a second.

use std::collections::BTreeMap;
use std::time::Instant;

use subak_config::Config;
use subak_net::Descriptors;
use subak_telemetry::{Cause, Lately, ProblemKind, Problems, Registry};

use crate::logging;

/// What was counted when it was last looked at.
#[derive(Debug, Default)]
pub(super) struct Shortages {
    log: Lately,
    clients: Lately,
    descriptors: Lately,
    memory: Lately,
    listeners: BTreeMap<String, Lately>,
    pools: BTreeMap<String, Lately>,
}

impl Shortages {
    /// Looks at every count.
    pub(super) fn look(
        &mut self,
        config: &Config,
        descriptors: &Descriptors,
        telemetry: &mut Registry,
        problems: &Problems,
    ) {
        let now = Instant::now();
        let note = |is_short: bool, kind: ProblemKind, what: &str, detail: &dyn Fn() -> String| {
            match is_short {
                true => problems.begin(kind, what, detail()),
                false => problems.end(kind, what),
            }
        };
        let dropped = logging::dropped();
        note(self.log.has_grown(dropped, now), ProblemKind::Log, "stderr", &|| {
            format!(
                "the log takes lines too slowly or not at all: {dropped} were dropped so far; see what \
                 reads standard error, or log less (--log)"
            )
        });
        let is_full = self.clients.has_grown(descriptors.found_full(), now);
        note(is_full, ProblemKind::Connections, "process", &|| {
            format!(
                "as many client connections as allowed ({}): newcomers take the place of idle ones, or \
                 wait; raise max_connections, or `ulimit -n` (LimitNOFILE in systemd) when that is what \
                 sets the limit",
                descriptors.most_clients()
            )
        });
        let is_short = self.descriptors.has_grown(descriptors.found_none(), now);
        note(is_short, ProblemKind::Descriptors, "process", &|| {
            "no file descriptor was left for a connection; raise `ulimit -n` (LimitNOFILE in systemd), \
             or lower max_connections"
                .to_owned()
        });
        let names = config.listeners.iter().map(|listener| &listener.name);
        let refused =
            names.map(|name| telemetry.listener(name).failed_for(Cause::OutOfMemory)).sum();
        note(self.memory.has_grown(refused, now), ProblemKind::Memory, "buffers", &|| {
            "clients that take slowly hold as many bytes of responses as `buffers` allows, and new \
             requests are answered 503: give the process more memory or raise `buffers`; \
             timeouts.write_idle and min_rate end slow readers"
                .to_owned()
        });
        let gone = self.listeners.extract_if(.., |name, _| config.listener(name).is_none());
        gone.for_each(|(name, _)| {
            problems.end(ProblemKind::Connections, &format!("listener {name}"))
        });
        for listener in &config.listeners {
            let lately = self.listeners.entry(listener.name.to_string()).or_default();
            let crowded = telemetry.listener(&listener.name).found_full();
            let is_full = lately.has_grown(crowded, now);
            note(
                is_full,
                ProblemKind::Connections,
                &format!("listener {}", listener.name),
                &|| {
                    "as many connections as limits.connections allows: newcomers take the place of idle \
                 ones, or are closed; raise it, or shorten timeouts.keep_alive"
                    .to_owned()
                },
            );
        }
        let gone = self.pools.extract_if(.., |name, _| config.pool(name).is_none());
        gone.for_each(|(name, _)| problems.end(ProblemKind::Ports, &name));
        for pool in &config.pools {
            let lately = self.pools.entry(pool.name.to_string()).or_default();
            let is_short = lately.has_grown(telemetry.pool(&pool.name).no_ports(), now);
            note(is_short, ProblemKind::Ports, &pool.name, &|| {
                "this machine has no port left for connections to endpoints: widen \
                 net.ipv4.ip_local_port_range, keep connections (max_idle, keep_alive), or add \
                 endpoint addresses"
                    .to_owned()
            });
        }
    }
}
