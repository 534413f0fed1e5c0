//! Connections to endpoints: one worker's idle ones, and how new ones are made.

mod announce;
mod idle;
mod open;
mod prelude;
mod tls;

use std::sync::Arc;

use subak_net::Stream;
use subak_net::tls::client::TlsTarget;
use subak_pool::ConnectionSlot;

use crate::meter::Meter;

pub(crate) use announce::{Header, header};
pub(crate) use idle::{IdleConnections, sweep_for_ever};
pub(crate) use open::open;
pub use tls::PoolTls;

/// A connection to an endpoint, with its place in the endpoint's books.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) meter: Meter,
    /// How it is secured; none: it is not.
    target: Option<Arc<TlsTarget>>,
    /// Whom it announces; none: nobody.
    header: Option<Header>,
    /// Whether it has carried an exchange before.
    pub(crate) reused: bool,
    /// After the stream, so that it is closed before its place is free.
    slot: ConnectionSlot,
}
