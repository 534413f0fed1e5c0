//! Words of nginx and HAProxy whose place here is another table: what to write instead.

/// Words, the tables in which they are written by mistake, and the advice.
type Advice = (&'static [&'static str], &'static [&'static str], &'static str);

const TOP: &str = "";
const LISTENER: &str = "listener.NAME";
const ROUTE: &str = "listener.NAME.route";
const POOL: &str = "pool.NAME";
const ENDPOINT: &str = "pool.NAME.endpoints";

#[rustfmt::skip] // One word a line.
const ADVICE: &[Advice] = &[
    (&["server_name", "server_names", "domain", "domains", "vhost"], &[TOP, LISTENER],
        "routes take hosts: `host = [\"example.com\"]` in [[listener.NAME.route]]"),
    (&["location", "locations", "use_backend", "acl"], &[TOP],
        "routes are in listeners: [[listener.NAME.route]] with `path` and `pool`"),
    (&["server"], &[LISTENER],
        "a listener is one place to listen at; other names at the same place are routes with `host`"),
    (&["proxy_pass"], &[TOP],
        "`pool = \"NAME\"` of a listener or route says where requests go; its endpoints are in [pool.NAME]"),
    (&["root", "alias", "index", "try_files", "autoindex", "fastcgi_pass"], &[TOP, LISTENER, ROUTE],
        "Subak serves no files and runs no programs; a `pool` goes to a server that does, and `respond` answers a fixed text"),
    (&["proxy_read_timeout", "timeout_server", "proxy_send_timeout"], &[TOP, LISTENER, ROUTE, POOL],
        "the pool says so: timeouts = { first_byte = \"60s\", idle = \"60s\" }"),
    (&["proxy_read_timeout", "timeout_server"], &["pool.NAME.timeouts"],
        "`first_byte` is until the answer begins, `idle` between two pieces of it"),
    (&["proxy_connect_timeout", "timeout_connect"], &[TOP, LISTENER, ROUTE, POOL],
        "the pool says so: timeouts = { connect = \"3s\" }"),
    (&["proxy_connect_timeout", "timeout_connect"], &["pool.NAME.timeouts"],
        "did you mean `connect`?"),
    (&["client_header_timeout", "timeout_http_request"], &[TOP, LISTENER],
        "the listener says so: timeouts = { head = \"10s\" }"),
    (&["client_body_timeout", "timeout_client"], &[TOP, LISTENER],
        "the listener says so: timeouts = { body_idle = \"60s\", write_idle = \"60s\" }"),
    (&["send_timeout"], &[TOP, LISTENER],
        "the listener says so: timeouts = { write_idle = \"60s\" }"),
    (&["max_fails", "fail_timeout"], &[TOP, POOL, ENDPOINT],
        "the pool says when failures put an endpoint out: eject = { consecutive = 3, base = \"10s\" }"),
    (&["least_conn", "leastconn"], &[TOP, POOL],
        "the algorithm is a value: balance = \"least_connections\""),
    (&["ip_hash"], &[TOP, POOL],
        "the algorithm is a value: balance = \"ip_hash\""),
    (&["ring_hash", "ketama", "consistent_hash", "hash"], &[TOP, POOL],
        "the algorithm is a value: balance = { algorithm = \"hash\", key = \"source\", method = \"maglev\" }"),
    (&["roundrobin"], &[TOP, POOL],
        "the algorithm is a value: balance = \"round_robin\""),
    (&["option", "httpchk"], &[TOP, POOL],
        "the pool says how its endpoints are checked: health = { http = \"/healthz\" }"),
    (&["check", "inter", "fastinter"], &[POOL, ENDPOINT],
        "the pool says how its endpoints are checked: health = { http = \"/\", interval = \"2s\", rise = 2, fall = 3 }"),
    (&["balance"], &[TOP, LISTENER, ROUTE],
        "the pool says so: balance = \"least_connections\" in [pool.NAME]"),
    (&["encoded_slashes", "merge_slashes"], &[TOP, ROUTE],
        "the listener says so: path = { encoded_slashes = \"keep\", merge_slashes = false }"),
];

/// What to write instead of a word that is no key of the table at `path`.
pub(crate) fn advice(word: &str, path: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase().replace(['-', ' '], "_");
    let found =
        ADVICE.iter().find(|(words, places, _)| words.contains(&&*word) && places.contains(&path));
    found.map(|(.., help)| *help)
}

#[cfg(test)]
mod tests {
    use super::{ADVICE, advice};
    use crate::vocabulary::TABLES;

    #[test]
    fn advice_is_given_for_unknown_keys_of_known_tables() {
        for (words, places, _) in ADVICE {
            for place in *places {
                let table = TABLES.iter().find(|table| table.path == *place);
                let table = table.unwrap_or_else(|| panic!("no table {place}"));
                for word in *words {
                    assert!(table.key(word).is_none(), "{word} is a key of {place}");
                }
            }
        }
        assert!(advice("Server-Name", "listener.NAME").is_some_and(|help| help.contains("host")));
        assert_eq!(advice("server_name", "pool.NAME"), None);
    }
}
