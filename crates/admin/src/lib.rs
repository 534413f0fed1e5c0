//! The Admin API: what is going on, what operators set, metrics.
//!
//! What there is to ask stands in one table (`resource`), described by `openapi.json`.
//!
//! It runs on the control side and never touches the data path: it asks the control side by
//! [`Command`]s, which are carried out between ticks and reloads, one after the other, and shows what
//! it is told. So nobody who asks slowly, reads slowly or asks for ever can hurt traffic; and
//! everything such a client can hold is bounded ([`server`] has the numbers).
//!
//! The door is a unix socket of mode 0600 ([`socket`]), or TCP, where every request needs a token and
//! a Host that no attacker's DNS can point here ([`gate`]).

#![forbid(unsafe_code)]

mod accept;
mod acme;
mod answer;
mod change;
mod command;
mod diff;
mod explain;
mod gate;
mod guards;
mod limits;
mod metrics;
mod moment;
mod patience;
mod places;
mod process;
mod request;
mod resource;
mod routes;
mod server;
mod shown;
mod socket;
mod status;
mod who;
mod wish;
mod writer;

pub use change::Change;
pub use command::{
    AcmeView, CertificateView, Command, ConfigView, EndpointTold, ListenerView, NotChanged, Note,
    Overview, PickLogs, PoolView, RouteView,
};
pub use gate::{Gate, Token};
pub use limits::{KeyView, Keys, LimitView};
pub use moment::rfc3339;
pub use server::Serving;
pub use socket::{Door, NotOpen, Opened, usual_sockets};
pub use wish::{ConfigTold, Done, Files, Happened, NotDone, Past, Version, Wish};
