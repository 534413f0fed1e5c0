//! The Admin API: what is going on, what operators set, metrics.
//!
//! | request | answer |
//! |---|---|
//! | `GET /v1/status` | everything, as JSON |
//! | `GET /v1/pools/{pool}/endpoints/{endpoint}` | one endpoint |
//! | `PATCH` of that, `{"state": …, "weight": …}` | sets what is named; null takes it back |
//! | `PUT` of that | sets what is named and takes the rest back |
//! | `POST /v1/explain` | where a request would go, and why |
//! | `GET /v1/picks` | where the latest requests went |
//! | `GET /metrics` | the text that Prometheus reads |
//!
//! It runs on the control side and never touches the data path: it asks the control side by
//! [`Command`]s, which are carried out between ticks and reloads, one after the other, and shows what
//! it is told. So nobody who asks slowly, reads slowly or asks for ever can hurt traffic; and
//! everything such a client can hold is bounded ([`server`] has the numbers).
//!
//! The door is a unix socket of mode 0600 ([`socket`]), or TCP, where every request needs a token and
//! a Host that no attacker's DNS can point here ([`gate`]).

#![forbid(unsafe_code)]

mod answer;
mod change;
mod command;
mod explain;
mod gate;
mod metrics;
mod moment;
mod patience;
mod places;
mod process;
mod resource;
mod server;
mod socket;
mod status;
mod who;

pub use change::Change;
pub use command::{
    Command, ConfigView, EndpointTold, ListenerView, NameView, NotChanged, Overview, PickLogs,
    PoolView,
};
pub use gate::{Gate, Token};
pub use moment::rfc3339;
pub use server::Serving;
pub use socket::{Door, NotOpen, Opened, usual_sockets};
