//! Everything that is shown to Prometheus: one list, from which the text and docs/metrics.md derive.
//!
//! Names follow Prometheus's conventions: a prefix, base units (seconds, bytes), `_total` for what only
//! grows. `process_…` are the names that every client library gives to the same things.

/// What a metric is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Only grows, until the process (or what it belongs to) begins anew.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by bounds, with a sum.
    Histogram,
}

impl Kind {
    /// As Prometheus writes it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// One metric, with all its series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// What it says, in a sentence.
    pub help: &'static str,
    /// The names of its labels, in order; a histogram has `le` besides.
    pub labels: &'static [&'static str],
}

macro_rules! families {
    ($($id:ident $kind:ident $name:literal [$($label:literal),*] $help:literal)*) => {
        $(
            #[doc = $help]
            pub const $id: Family = Family {
                name: $name,
                kind: Kind::$kind,
                help: $help,
                labels: &[$($label),*],
            };
        )*

        /// Every family, in the order in which they are shown.
        pub const ALL: [&Family; [$($name),*].len()] = [$(&$id),*];
    };
}

families! {
    BUILD_INFO Gauge "subak_build_info" ["version"]
        "Always 1; its label is the version."
    GENERATION Gauge "subak_generation" []
        "Counts configurations put in force since the process began."
    RELOADS Counter "subak_reloads_total" ["result"]
        "Reloads that were asked for: ok, or refused because the configuration is wrong or cannot be put in force."
    WORKERS Gauge "subak_workers" []
        "Threads that serve clients."
    CONNECTIONS Gauge "subak_connections" []
        "Client connections now."
    CONNECTIONS_LIMIT Gauge "subak_connections_limit" []
        "Client connections that there may be: max_connections, or what the limit of open files leaves room for."
    NAME_ADDRESSES Gauge "subak_name_addresses" ["name"]
        "Endpoints that a name stands for."
    NAME_AGE Gauge "subak_name_age_seconds" ["name"]
        "Time since an answer confirmed what the name stands for; absent while there was none."
    NAME_ASKED Counter "subak_name_asked_total" ["name"]
        "Questions for the name."
    NAME_FAILED Counter "subak_name_failed_total" ["name"]
        "Questions for the name that failed, or whose answers lacked something."
    ACME_ENDS Gauge "subak_acme_certificate_end_timestamp_seconds" ["name"]
        "When the certificate for the name that came by ACME expires, in seconds since 1970."
    ACME_NEXT Gauge "subak_acme_next_order_timestamp_seconds" ["name"]
        "When the certificate for the name is ordered next, in seconds since 1970; not there while that is as soon as it can be."
    ACME_PLACEHOLDER Gauge "subak_acme_placeholder" ["name"]
        "1 while clients see a placeholder, because no certificate has been issued yet."
    ACME_ORDERS Counter "subak_acme_orders_total" ["name", "result"]
        "Orders of this process by what became of them: issued or failed."
    PROBLEM Gauge "subak_problem" ["kind", "what"]
        "1 for everything that is wrong now; the status says why and what to do."

    LOG_LINES_DROPPED Counter "subak_log_lines_dropped_total" []
        "Lines of the log on standard error that were dropped because its reader took them too slowly or not at all."
    ACCESS_LOG_LINES Counter "subak_access_log_lines_total" ["log", "result"]
        "Lines of the access log: written, or dropped because it took them too slowly or not at all."
    ACCESS_LOG_BYTES Counter "subak_access_log_bytes_total" ["log"]
        "Bytes that were written to the access log."

    LIMIT_REFUSED Counter "subak_limit_refused_total" ["listener", "limit", "dry_run"]
        "Requests or connections that a limit refused, or in a dry run would have refused."
    LIMIT_FORGOTTEN Counter "subak_limit_forgotten_total" ["listener", "limit"]
        "Keys of a rate limit that were forgotten before their bucket was full, and requests that a limit of what is under way could not count: its entries are too few."

    LISTENER_CONNECTIONS Gauge "subak_listener_connections" ["listener"]
        "Client connections of the listener now."
    LISTENER_STREAMS Gauge "subak_listener_streams" ["listener"]
        "Requests of the listener that have a stream of a client's HTTP/2 connection now."
    LISTENER_ACCEPTED Counter "subak_listener_accepted_total" ["listener"]
        "Client connections that were accepted."
    LISTENER_REFUSED Counter "subak_listener_refused_total" ["listener"]
        "Client connections that were closed at once: the listener had limits.connections of them, and none was idle."
    LISTENER_EVICTED Counter "subak_listener_evicted_total" ["listener"]
        "Idle client connections of the listener that were closed to make room for newcomers."
    LISTENER_TURNED_AWAY Counter "subak_listener_turned_away_total" ["listener", "why"]
        "Client connections that were closed at once: their network may not in (network), their client had limits.connections_per_client of them (per_client), or of the PROXY protocol they came from outside of proxy_protocol.from (proxy_source), began without a header (proxy_absent), or had one that cannot be read (proxy_malformed), came too late (proxy_late) or not to its end (proxy_cut)."
    LISTENER_HANDSHAKES_FAILED Counter "subak_listener_tls_handshakes_failed_total" ["listener"]
        "TLS handshakes that came to nothing."
    CERTIFICATE_EXPIRY Gauge "subak_certificate_expiry_timestamp_seconds" ["listener", "certificate"]
        "When the certificate expires, in seconds since 1970; by the file it was read from."
    LISTENER_REQUESTS Counter "subak_listener_requests_total" ["listener", "status"]
        "Requests, by the first digit of the status they were answered with; none: no answer, or not a whole one."
    LISTENER_FAILURES Counter "subak_listener_failures_total" ["listener", "fault", "cause"]
        "Requests that were not served, by whose fault it was and why."
    LISTENER_FLOODS Counter "subak_listener_http2_floods_total" ["listener", "kind"]
        "HTTP/2 connections that were ended because the client did too much of something, by what it was."

    LISTENER_BYTES Counter "subak_listener_bytes_total" ["listener", "direction"]
        "Bytes of requests that were received (in) and of answers that were sent (out), counted when the request is over; with HTTP/2 the bodies alone."

    POOL_ENDPOINTS Gauge "subak_pool_endpoints" ["pool", "state"]
        "Endpoints of the pool in this state."
    POOL_ELIGIBLE Gauge "subak_pool_eligible_endpoints" ["pool"]
        "Endpoints of the pool that may take new work."
    POOL_WAITING Gauge "subak_pool_waiting_requests" ["pool"]
        "Requests that stand in line because every endpoint is at its cap."
    POOL_REQUESTS Counter "subak_pool_requests_total" ["pool", "status"]
        "Requests given to the pool, by the first digit of the answer's status; none: no endpoint answered, or not to the end."
    POOL_CALLS Counter "subak_pool_grpc_calls_total" ["pool", "code"]
        "gRPC calls given to the pool that ended, by their status; only statuses that have occurred."
    POOL_DURATION Histogram "subak_pool_request_duration_seconds" ["pool"]
        "From the first pick of an endpoint to the end of the answer, waiting in line and retries included, tunnels left out."
    POOL_BYTES Counter "subak_pool_bytes_total" ["pool", "direction"]
        "The same of the requests that were given to the pool."
    POOL_RETRIES Counter "subak_pool_retries_total" ["pool"]
        "Attempts at another endpoint, after one had failed."
    POOL_RETRIES_DENIED Counter "subak_pool_retries_denied_total" ["pool"]
        "Retries that the retry budget denied."
    POOL_RETRY_BUDGET Gauge "subak_pool_retry_budget" ["pool"]
        "Retries that the retry budget would grant now."
    POOL_CIRCUIT Gauge "subak_pool_circuit" ["pool", "state"]
        "1 for the state that the pool's circuit is in, 0 for the others: closed, open, half_open."
    POOL_CIRCUIT_OPENED Counter "subak_pool_circuit_opened_total" ["pool"]
        "How often the pool's circuit has opened."
    POOL_CIRCUIT_REFUSED Counter "subak_pool_circuit_refused_total" ["pool", "why"]
        "Requests that the pool's circuit refused: it was open (open), or as many were under way as circuit.max_in_flight allows (full)."
    POOL_WAITS Counter "subak_pool_waits_total" ["pool"]
        "Requests that had to stand in line."
    POOL_STREAMS Gauge "subak_pool_streams" ["pool"]
        "Requests that have a stream of a shared (HTTP/2) connection to an endpoint now."
    POOL_STREAM_RESETS Counter "subak_pool_stream_resets_total" ["pool"]
        "Streams that endpoints have reset (RST_STREAM)."
    POOL_GOODBYES Counter "subak_pool_goaways_total" ["pool"]
        "Shared connections on which endpoints have said goodbye (GOAWAY)."
    POOL_PROBES Counter "subak_pool_probes_total" ["pool", "kind", "result"]
        "Probes of the pool's endpoints, and questions to their agents: ok, failed, or inconclusive for want of something on this machine."
    POOL_TRANSITIONS Counter "subak_pool_endpoint_transitions_total" ["pool", "to"]
        "Changes of the states of the pool's endpoints, by the state that they led to."
    SHADOW_DECISIONS Counter "subak_pool_shadow_decisions_total" ["pool", "shadow"]
        "Requests that a shadow has decided on beside the pool's algorithm."
    SHADOW_AGREEMENTS Counter "subak_pool_shadow_agreements_total" ["pool", "shadow"]
        "Of those: where both have chosen the same endpoint. Not a forecast: the shadow sees load that the pool's algorithm made."
    SHADOW_REFUSALS Counter "subak_pool_shadow_refusals_total" ["pool", "shadow"]
        "Of those: where the shadow has found nobody."
    SHADOW_STOPPED Gauge "subak_pool_shadow_stopped" ["pool", "shadow"]
        "1 for a shadow that has failed and is asked no more, until a reload."
    SHADOW_IMBALANCE Gauge "subak_pool_shadow_imbalance_ratio" ["pool", "shadow", "of"]
        "The most hits that an eligible endpoint has for its weight, as a multiple of the mean: of what the shadow has chosen, and of what the pool's algorithm has for the same requests."
    SHADOW_HITS Counter "subak_pool_shadow_hits_total" ["pool", "shadow", "endpoint"]
        "How often a shadow has chosen the endpoint, in pools of at most 250."

    ENDPOINT_STATE Gauge "subak_endpoint_state" ["pool", "endpoint", "state"]
        "1 for the state the endpoint is in, 0 for the others."
    ENDPOINT_ELIGIBLE Gauge "subak_endpoint_eligible" ["pool", "endpoint"]
        "1 while the endpoint may take new work."
    ENDPOINT_HITS Counter "subak_endpoint_hits_total" ["pool", "endpoint"]
        "Requests that were given to the endpoint, retries included."
    ENDPOINT_FAILURES Counter "subak_endpoint_failures_total" ["pool", "endpoint"]
        "Requests that failed at the endpoint."
    ENDPOINT_IN_FLIGHT Gauge "subak_endpoint_in_flight_requests" ["pool", "endpoint"]
        "Requests the endpoint is working on."
    ENDPOINT_CONNECTIONS Gauge "subak_endpoint_connections" ["pool", "endpoint"]
        "Connections to the endpoint, idle ones included."
    ENDPOINT_STREAMS Gauge "subak_endpoint_streams" ["pool", "endpoint"]
        "Streams of HTTP/2 connections to the endpoint now."
    ENDPOINT_WEIGHT Gauge "subak_endpoint_weight" ["pool", "endpoint"]
        "The weight in force, relative to the others of the pool."

    ENDPOINT_LATENCY Gauge "subak_endpoint_latency_seconds" ["pool", "endpoint"]
        "What the algorithm takes the endpoint's latency for, where it keeps one."
    ENDPOINT_SESSIONS Gauge "subak_endpoint_sessions" ["pool", "endpoint"]
        "Clients that belong to the endpoint, where the pool keeps a table of them."
    ENDPOINT_CAPACITY Gauge "subak_endpoint_capacity_ratio" ["pool", "endpoint"]
        "C of the weigher: the endpoint's capacity, where the pool's best in everything has 1."
    ENDPOINT_LOAD Gauge "subak_endpoint_load_ratio" ["pool", "endpoint"]
        "L of the weigher: the share of its capacity that the endpoint reports as used."
    ENDPOINT_UTILISATION Gauge "subak_endpoint_utilisation_ratio" ["pool", "endpoint"]
        "U of the weigher: load over capacity; above 1 where a small machine is busy."
    ENDPOINT_CLASS Gauge "subak_endpoint_load_class" ["pool", "endpoint", "class"]
        "1 for the class of the endpoint's reported load, 0 for the others."
    ENDPOINT_FACTOR Gauge "subak_endpoint_weigher_factor_ratio" ["pool", "endpoint"]
        "What the weigher multiplies the endpoint's weight by."
    ENDPOINT_REPORTING Gauge "subak_endpoint_reporting" ["pool", "endpoint"]
        "1 while the weigher gets reports of the endpoint, 0 when they have stopped."
    POOL_IMBALANCE Gauge "subak_pool_imbalance_ratio" ["pool"]
        "The standard deviation of load over capacity among the endpoints that report."

    PROCESS_START Gauge "process_start_time_seconds" []
        "When the process began, in seconds since 1970."
    PROCESS_CPU Counter "process_cpu_seconds_total" []
        "CPU time of the process, user and system."
    PROCESS_RESIDENT Gauge "process_resident_memory_bytes" []
        "Memory of the process that is in RAM."
    PROCESS_OPEN_FDS Gauge "process_open_fds" []
        "Open file descriptors."
    PROCESS_MAX_FDS Gauge "process_max_fds" []
        "The limit of open file descriptors."
}

#[cfg(test)]
mod tests {
    use super::{ALL, Kind};
    use std::collections::BTreeSet;

    fn is_name(text: &str) -> bool {
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        text.chars().all(legal) && !text.starts_with(|c: char| c.is_ascii_digit())
    }

    #[test]
    fn names_follow_the_conventions() {
        let mut names = BTreeSet::new();
        for family in ALL {
            let name = family.name;
            assert!(is_name(name) && names.insert(name), "{name}");
            assert!(name.starts_with("subak_") || name.starts_with("process_"), "{name}");
            assert_eq!(name.ends_with("_total"), family.kind == Kind::Counter, "{name}");
            for taken in ["_bucket", "_sum", "_count", "_info_total", "_ms", "_kb"] {
                assert!(!name.ends_with(taken), "{name}");
            }
            assert!(family.labels.iter().all(|label| is_name(label) && *label != "le"), "{name}");
            assert!(family.help.ends_with('.') && !family.help.contains('\n'), "{name}");
        }
    }
}
