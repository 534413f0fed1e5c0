//! What a listener allows HTTP/2 clients.

use std::num::NonZeroU32;

/// Bounds of one client's HTTP/2 connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Http2 {
    /// Requests under way at once.
    pub streams: u32,
    /// Bytes a client may send ahead on one stream,
    pub stream_window: u32,
    /// and on all of them together.
    pub connection_window: u32,
    /// Requests in ten seconds that may be reset before they are answered; `None`: any number.
    pub resets: Option<NonZeroU32>,
    /// Frames in ten seconds that ask for nothing and that nothing explains; `None`: any number.
    pub control_frames: Option<NonZeroU32>,
    /// Answers of one connection that may wait for a client that takes nothing; `None`: any number.
    pub stalled_streams: Option<NonZeroU32>,
}
