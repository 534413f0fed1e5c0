//! HTTP/2 on the `h2` crate. Towards clients ([`serve`]) and towards endpoints ([`connection`]): on
//! either side a connection is lent as one stream to each exchange.

mod account;
mod client;
mod complaint;
mod connection;
mod drive;
mod endpoint;
mod fields;
mod head;
mod outgoing;
mod queue;
mod serve;
mod stalls;
mod turn;
mod watched;

pub(crate) use connection::{H2Connection, StreamLease, connect};
pub(crate) use endpoint::H2Endpoint;
pub(crate) use serve::serve;
