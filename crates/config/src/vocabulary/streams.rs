//! `streams` of a pool.

use super::{key, Duration, Integer, Size};
use crate::defaults::{MAX_STREAM_WINDOW_BYTES, MAX_STREAMS_CONNECTIONS, MAX_STREAMS_PER_CONNECTION, MIN_STREAM_WINDOW_BYTES};
use crate::keys::Table;
use crate::keys::Without::{Absent, Default};

/// `pool.NAME.streams`.
pub static STREAMS: Table = Table {
    path: "pool.NAME.streams",
    what: "a pool's streams",
    doc: "How requests share connections to endpoints that speak HTTP/2. See [http2.md](http2.md).",
    keys: &[
        key("per_connection", Integer { min: 1, max: MAX_STREAMS_PER_CONNECTION as i64 }, Default("100"), "250",
            "Requests at once on one connection; an endpoint may allow fewer. One more opens another connection."),
        key("connections", Integer { min: 1, max: MAX_STREAMS_CONNECTIONS as i64 }, Default("1"), "4",
            "Connections that each worker opens to an endpoint before requests share any."),
        key("window", Size { min: MIN_STREAM_WINDOW_BYTES as u64, max: MAX_STREAM_WINDOW_BYTES as u64 }, Default("\"64KiB\""), "\"256KiB\"",
            "Bytes of each answer that an endpoint may send before the client has taken them; what one stream costs in memory at most, and as much again for its request."),
        key("ping", Duration, Absent("only after a request has timed out"), "\"30s\"",
            "After so long without a byte, an endpoint that has requests is asked for a sign of life; a connection that gives none within `timeouts.connect` is closed."),
    ],
    rules: &[],
};
