//! What HTTP/2 clients may do: `listener.NAME.http2`.

use super::{COUNT, key};
use crate::defaults::{
    MAX_HTTP2_STREAMS, MAX_HTTP2_WINDOW, MIN_HTTP2_CONNECTION_WINDOW,
    MIN_HTTP2_STREAM_WINDOW,
};
use crate::keys::Kind::{Integer, OrUnlimited, Size};
use crate::keys::Table;
use crate::keys::Without::Default;

/// `listener.NAME.http2`.
pub static HTTP2: Table = Table {
    path: "listener.NAME.http2",
    what: "the limits of HTTP/2 clients",
    doc: "Bounds of one client's HTTP/2 connection. A client that passes `resets` or `control_frames` is told ENHANCE_YOUR_CALM and closed: see [http2.md](http2.md).",
    keys: &[
        key("streams", Integer { min: 1, max: MAX_HTTP2_STREAMS as i64 }, Default("100"), "250",
            "Requests that may be under way at once on one connection."),
        key("stream_window", Size { min: MIN_HTTP2_STREAM_WINDOW as u64, max: MAX_HTTP2_WINDOW as u64 }, Default("\"64KiB\""), "\"256KiB\"",
            "Bytes of one request's body that a client may send ahead of the endpoint."),
        key("connection_window", Size { min: MIN_HTTP2_CONNECTION_WINDOW as u64, max: MAX_HTTP2_WINDOW as u64 }, Default("\"1MiB\""), "\"4MiB\"",
            "The same for all requests of a connection together."),
        key("resets", OrUnlimited(&COUNT), Default("500"), "100",
            "Requests in ten seconds that may be reset before they are answered; half of those that were answered come on top. A fifth of it for those that Subak has to reset."),
        key("control_frames", OrUnlimited(&COUNT), Default("500"), "200",
            "Frames of a kind in ten seconds that nothing asks for: PING, PRIORITY, unknown ones; a tenth of it for SETTINGS, four times as many for WINDOW_UPDATE. What answers and their data explain comes on top."),
        key("stalled_streams", OrUnlimited(&COUNT), Default("16"), "32",
            "Responses that may wait for a client that takes nothing of them; each holds a connection to an endpoint. Further requests of the connection wait, and responses beyond the limit end after 5 s without progress."),
    ],
    rules: &[],
};
