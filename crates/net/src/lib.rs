//! Workers, streams, buffers, timers, listeners and connectors.
//!
//! One thread per core, each with its own tokio current-thread runtime, its own listening sockets
//! (`SO_REUSEPORT`) and its own timers. Nothing here knows a protocol above TLS. What hot code sees
//! of a socket is [`Stream`]: it owns its receive buffer, writes owned buffers, and names no type of
//! the driver below, so that a ring can take tokio's place without a change above.

mod accept;
mod chunk;
mod clock;
mod connect;
mod counters;
mod cpus;
mod deadline;
mod descriptors;
mod heartbeat;
mod kernel_buffers;
mod listen;
mod peer;
mod place;
mod shared_stream;
mod socket;
mod spares;
mod stream;
pub mod tls;
mod worker;

pub use accept::Accepted;
pub use chunk::{Chunk, ChunkSize, are_scarce, are_used_up, body_chunk, limit_buffers};
pub use clock::now;
pub use connect::{ConnectError, connect};
pub use counters::Counters;
pub use cpus::suitable_workers;
pub use deadline::{Alarm, Deadline, uptime, wake_all};
pub use descriptors::{Allowance, Descriptors, EndpointDescriptor, raise_descriptor_limit};
pub use kernel_buffers::keep_kernel_buffers_small;
pub use listen::{BindError, ListenSocket, Sockets};
pub use peer::PeerAddress;
pub use place::{Placed, place, sweep_places};
pub use shared_stream::SharedStream;
pub use spares::Spares;
pub use stream::Stream;
pub use worker::{
    Application, Fleet, FleetOptions, ListenerId, WorkerHandle, WorkerId, end_turn, spawn,
};
