//! "Did you mean": the nearest known word, or our word for a foreign one.

/// The candidate nearest to `word`, if it is near enough to be a slip of the fingers: at most a
/// third of its length away, counted in insertions, deletions, replacements and swaps.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_ascii_lowercase().replace('-', "_");
    // Nobody mistypes a page of text; this keeps the table below small.
    if word.len() > 40 {
        return None;
    }
    candidates
        .into_iter()
        .map(|candidate| {
            (distance(&word, &candidate.to_ascii_lowercase().replace('-', "_")), candidate)
        })
        .filter(|(distance, candidate)| *distance <= word.len().max(candidate.len()).div_ceil(3))
        .filter(|(distance, candidate)| *distance < candidate.len())
        .filter(|(_, candidate)| !is_opposite(&word, candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Beginnings that turn a word into its opposite.
const OPPOSITES: [&str; 7] = ["un", "dis", "non", "not", "no", "in", "de"];

/// Whether one of two words is the opposite of the other, or a slip away from it: `undrain` and `drain`.
/// A suggestion must not have somebody do the contrary of what was meant.
pub fn is_opposite(word: &str, candidate: &str) -> bool {
    let plain = |word: &str| word.to_ascii_lowercase().replace('-', "_");
    let (word, candidate) = (plain(word), plain(candidate));
    let negates = |long: &str, short: &str| {
        OPPOSITES.iter().any(|prefix| {
            let rest = long.strip_prefix(prefix).map(|rest| rest.trim_start_matches('_'));
            !short.starts_with(prefix)
                && rest.is_some_and(|rest| rest.len() > 2 && distance(rest, short) <= 1)
        })
    };
    negates(&word, &candidate) || negates(&candidate, &word)
}

/// Optimal string alignment distance (Boytsov 2011, restricted Damerau-Levenshtein), over bytes.
fn distance(one: &str, other: &str) -> usize {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut before: Vec<usize> = vec![0; other.len() + 1];
    let mut previous: Vec<usize> = (0..=other.len()).collect();
    for i in 1..=one.len() {
        let mut current = vec![i; other.len() + 1];
        for j in 1..=other.len() {
            let replaced = previous[j - 1] + usize::from(one[i - 1] != other[j - 1]);
            current[j] = replaced.min(previous[j] + 1).min(current[j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                current[j] = current[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut previous, current);
    }
    previous[other.len()]
}

/// Words of other balancers for keys of ours, nearest meaning first; the first that is a key where
/// the word was found is suggested.
const FOREIGN: &[(&[&str], &[&str])] = &[
    (&["rate_limit", "limit_req", "ratelimit"], &["rate"]),
    (&["limit_conn"], &["connections_per_client"]),
    (&["circuit_breaker", "circuit_breakers"], &["circuit"]),
    (
        &[
            "upstream",
            "upstreams",
            "backend",
            "backends",
            "cluster",
            "clusters",
            "farm",
            "proxy_pass",
            "target_group",
            "default_backend",
            "use_backend",
            "pools",
        ],
        &["pool"],
    ),
    (
        &[
            "server",
            "servers",
            "peer",
            "peers",
            "member",
            "members",
            "node",
            "nodes",
            "target",
            "targets",
            "host",
            "hosts",
            "upstream",
            "upstreams",
            "backend",
            "backends",
            "endpoint",
        ],
        &["endpoints", "listener"],
    ),
    (
        &[
            "frontend",
            "frontends",
            "entrypoint",
            "entrypoints",
            "virtual_server",
            "http",
            "listen",
            "listeners",
        ],
        &["listener", "bind"],
    ),
    (
        &["listen", "listens", "addr", "address", "addresses", "port", "socket"],
        &["bind", "address"],
    ),
    (&["location", "locations", "rule", "rules", "routes", "acl"], &["route"]),
    (&["server_name", "server_names", "domain", "domains", "hostname", "vhost"], &["host"]),
    (&["uri", "url", "location"], &["path"]),
    (
        &[
            "lb",
            "lb_policy",
            "lb_method",
            "algorithm",
            "policy",
            "method",
            "load_balancing",
            "load_balancer",
            "strategy",
        ],
        &["balance", "algorithm"],
    ),
    (&["uid", "run_as", "username"], &["user"]),
    (&["gid"], &["group"]),
    (&["pid", "pidfile"], &["pid_file"]),
    (&["worker_processes", "worker_threads", "threads", "nbthread", "nproc"], &["workers"]),
    (
        &[
            "maxconn",
            "max_conns",
            "max_conn",
            "worker_connections",
            "connection_limit",
            "connections",
        ],
        &["max_connections", "connections"],
    ),
    (
        &["max_requests", "max_concurrent_requests", "concurrency", "max_concurrency"],
        &["max_in_flight"],
    ),
    (
        &["keepalive", "keepalive_connections", "pool_max_conn", "max_idle"],
        &["keep_alive_connections", "keep_alive"],
    ),
    (
        &["keepalive_timeout", "http_keep_alive", "timeout_http_keep_alive", "idle_timeout"],
        &["keep_alive", "timeouts"],
    ),
    (
        &[
            "timeout",
            "proxy_read_timeout",
            "proxy_connect_timeout",
            "proxy_send_timeout",
            "client_header_timeout",
            "client_body_timeout",
            "send_timeout",
        ],
        &["timeouts"],
    ),
    (&["read_timeout", "response", "ttfb", "first_byte_timeout"], &["first_byte"]),
    (&["client_max_body_size", "max_body", "max_body_size", "body_limit"], &["limits", "body"]),
    (&["large_client_header_buffers", "header_limit"], &["limits", "head"]),
    (&["keepalive_requests"], &["limits", "requests_per_connection"]),
    (&["retries", "proxy_next_upstream", "redispatch", "retry_on", "max_retries"], &["retry"]),
    (&["tries", "count", "limit"], &["attempts", "length"]),
    (&["retry_on", "when", "conditions", "proxy_next_upstream"], &["on"]),
    (&["set_real_ip_from", "real_ip", "trusted", "trust"], &["trusted_proxies"]),
    (
        &["ssl", "https", "certificate", "certificates", "ssl_certificate", "crt"],
        &["tls", "certificates"],
    ),
    (&["cert", "crt", "certificate", "fullchain"], &["chain"]),
    (&["private_key", "ssl_certificate_key"], &["key"]),
    (&["alpn", "http_version"], &["protocols"]),
    (&["h2", "max_concurrent_streams", "http2_max_concurrent_streams"], &["http2", "streams"]),
    (&["ssl_protocols", "ssl_min_ver", "version", "min_tls_version"], &["min_version"]),
    (&["ssl_ciphers", "ciphers", "ciphersuites", "policy"], &["profile"]),
    (&["ssl_session_tickets", "session_tickets", "ssl_session_timeout"], &["tickets"]),
    (&["ssl_stapling_file", "stapling", "ocsp_response"], &["ocsp"]),
    (&["ssl_client_certificate", "client_ca", "ca_file", "mtls", "verify"], &["client", "ca"]),
    (&["ssl_verify_client", "required"], &["mode"]),
    (&["ssl_crl", "crl_file"], &["crl"]),
    (&["ssl_reject_handshake", "strict_sni"], &["unknown_name"]),
    (&["strict_transport_security"], &["hsts"]),
    (&["https_redirect", "force_https", "redirect_scheme", "ssl_redirect"], &["redirect_to_https"]),
    (
        &["proxy_set_header", "set_header", "headers", "header", "http_request"],
        &["request_headers", "set"],
    ),
    (&["add_header", "http_response", "headers_out"], &["response_headers", "add"]),
    (&["errorfile", "error_page", "errors"], &["error_pages"]),
    (&["return", "rewrite", "redirects"], &["redirect", "respond"]),
    (&["code", "status_code"], &["status"]),
    (&["backoff", "ejection_time"], &["back_off"]),
    (&["nbsrv", "maxqueue", "pending"], &["queue"]),
    (&["weights", "ratio", "priority"], &["weight"]),
    (&["graceful_timeout", "hard_stop_after", "grace"], &["shutdown_timeout"]),
    (
        &[
            "check",
            "checks",
            "health_check",
            "health_checks",
            "healthcheck",
            "healthchecks",
            "httpchk",
            "option_httpchk",
            "probe",
            "probes",
            "active_health",
        ],
        &["health"],
    ),
    (
        &["ejection", "outlier", "outlier_detection", "passive_health", "observe", "max_fails"],
        &["eject", "consecutive"],
    ),
    (&["agent", "agent_port", "agent_addr"], &["agent_check", "port"]),
    (&["agent_inter", "inter", "period", "every", "check_interval"], &["interval"]),
    (&["fastinter", "fast_inter", "downinter"], &["fast_interval"]),
    (&["healthy_threshold", "passes", "success_threshold"], &["rise"]),
    (&["unhealthy_threshold", "fails", "max_fails", "failure_threshold"], &["fall"]),
    (&["uri", "url", "path", "request"], &["http"]),
    (&["expect", "expected_status", "expected_statuses", "match"], &["status", "body"]),
    (&["string", "rstring", "expected_body"], &["body", "contains"]),
    (&["slowstart", "warmup", "warm_up", "ramp", "slow_start_duration"], &["slow_start"]),
    (&["duration", "time", "window"], &["over"]),
    (
        &["sticky", "stickiness", "persistence", "affinity", "session_affinity", "stick_table"],
        &["stick"],
    ),
    (&["samesite"], &["same_site"]),
    (&["httponly"], &["http_only"]),
    (&["secret", "secrets", "key", "keys", "key_file"], &["keys_file"]),
    (&["ttl", "max_age", "expires", "timeout"], &["expire"]),
    (&["size", "max_entries", "limit"], &["entries"]),
    (&["token", "password", "bearer", "secret"], &["token_file"]),
    (&["base_ejection_time", "ejection_time", "duration", "time"], &["base"]),
    (&["max_ejection_percent", "max_ejected"], &["max_share"]),
    (&["max_ejection_time"], &["max"]),
    (&["request_volume", "minimum_requests"], &["min_requests"]),
    (&["fallback", "panic", "fail_open"], &["on_all_down"]),
    (&["status", "enabled", "disabled", "down", "drain", "maintenance", "mode"], &["state"]),
    (
        &["api", "stats", "dashboard", "management", "metrics", "prometheus", "stub_status"],
        &["admin"],
    ),
    (&["unix", "path", "sock"], &["socket"]),
    (&["listen", "address", "bind", "addr"], &["tcp"]),
];

/// Our word for a foreign one, among the keys allowed here.
pub(crate) fn foreign<'a>(word: &str, keys: &[&'a str]) -> Option<&'a str> {
    let word = word.to_ascii_lowercase().replace('-', "_");
    FOREIGN
        .iter()
        .filter(|(words, _)| words.contains(&&*word))
        .flat_map(|(_, ours)| ours.iter())
        .find_map(|our| keys.iter().find(|key| *key == our).copied())
}

/// Words that a later version is going to know: the word, the beginning of the paths of the tables
/// it is about, and what it is about.
const LATER: &[(&str, &str, &str)] = &[
    ("compression", "", "compression"),
    ("discovery", "", "discovery"),
    ("http3", "", "HTTP/3"),
    ("log", "", "log settings"),
    ("mirror", "", "mirroring"),
    ("protocol", "pool.", "HTTP/2 to endpoints"),
    ("shadow", "", "shadow algorithms"),
    ("stream", "", "TCP and UDP"),
    ("tcp", "", "TCP and UDP"),
    ("udp", "", "TCP and UDP"),
    ("vip", "", "virtual addresses"),
    ("vrrp", "", "virtual addresses"),
];

/// What a word is about that this version does not know yet.
pub(crate) fn later(word: &str, table_path: &str) -> Option<&'static str> {
    LATER
        .iter()
        .find(|(later, path, _)| *later == word && table_path.starts_with(path))
        .map(|(_, _, about)| *about)
}

#[cfg(test)]
mod tests {
    use super::{distance, foreign, is_opposite, nearest};

    #[test]
    fn counts_slips() {
        for (one, other, expected) in [
            ("", "", 0),
            ("bind", "bind", 0),
            ("bnid", "bind", 1),
            ("bin", "bind", 1),
            ("bindd", "bind", 1),
            ("bund", "bind", 1),
            ("timeout", "timeouts", 1),
            ("abc", "xyz", 3),
            ("", "abc", 3),
        ] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
            assert_eq!(distance(other, one), expected, "{other} {one}");
        }
    }

    #[test]
    fn the_opposite_is_never_suggested() {
        for (word, candidate) in [
            ("undrain", "drain"),
            ("undrian", "drain"),
            ("disable", "able"),
            ("drain", "undrain"),
            ("no-verify", "verify"),
            ("inactive", "active"),
        ] {
            assert!(is_opposite(word, candidate), "{word} {candidate}");
            assert_eq!(nearest(word, [candidate]), None);
        }
        for (word, candidate) in [("drian", "drain"), ("intreval", "interval"), ("denny", "deny")] {
            assert_eq!(nearest(word, [candidate]), Some(candidate));
        }
    }

    #[test]
    fn finds_the_nearest_and_nothing_far() {
        let keys = ["bind", "pool", "route", "timeouts", "trusted_proxies"];
        assert_eq!(nearest("bnd", keys), Some("bind"));
        assert_eq!(nearest("timeout", keys), Some("timeouts"));
        assert_eq!(nearest("trusted-proxy", keys), Some("trusted_proxies"));
        assert_eq!(nearest("zzzzzz", keys), None);
        assert_eq!(nearest("x", keys), None);
        assert_eq!(nearest(&"bind".repeat(1000), keys), None);
    }

    #[test]
    fn knows_foreign_words_where_they_make_sense() {
        assert_eq!(foreign("upstream", &["listener", "pool"]), Some("pool"));
        assert_eq!(foreign("server", &["endpoints", "balance"]), Some("endpoints"));
        assert_eq!(foreign("server", &["listener", "pool"]), Some("listener"));
        assert_eq!(foreign("listen", &["bind", "pool"]), Some("bind"));
        assert_eq!(foreign("upstream", &["status"]), None);
    }
}
