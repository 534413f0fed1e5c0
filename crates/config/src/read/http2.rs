//! `[listener.NAME.http2]`.

use std::num::NonZeroU32;

use super::{View, convert};
use crate::defaults;
use crate::model::Http2;
use crate::vocabulary::HTTP2;

pub(super) fn read(listener: &View<'_>) -> Http2 {
    let view = listener.table("http2", &HTTP2);
    let window = |name, default| view.size(name).and_then(convert).unwrap_or(default);
    let frames = |name, default: NonZeroU32| match view.or_unlimited(name) {
        Some(limit) => limit.and_then(convert),
        None => Some(default),
    };
    Http2 {
        streams: view.number("streams").and_then(convert).unwrap_or(defaults::HTTP2_STREAMS),
        stream_window: window("stream_window", defaults::HTTP2_STREAM_WINDOW),
        connection_window: window("connection_window", defaults::HTTP2_CONNECTION_WINDOW),
        resets: frames("resets", defaults::HTTP2_RESETS),
        control_frames: frames("control_frames", defaults::HTTP2_CONTROL_FRAMES),
        stalled_streams: frames("stalled_streams", defaults::HTTP2_STALLED_STREAMS),
    }
}
