//! The life of a request: head, route, acquire, connect, forward, finish.
//!
//! One data path for every protocol. What is in the middle ([`life`], [`balance`], [`attempt`],
//! [`forward`]) sees a head, a body of data and trailers, a client side and an endpoint side; it does
//! not know which HTTP version is spoken on either. The versions are modules at the edges ([`h1`], [`h2`]) that implement
//! [`exchange::ClientSide`] and [`exchange::EndpointSide`].
//!
//! A [`Service`] is what one listener does, compiled from the configuration and immutable. A [`Worker`]
//! is what connections of one thread share: idle connections to endpoints and reusable buffers.

#![forbid(unsafe_code)]

mod access_log;
mod acme;
mod announced;
mod answer;
mod attempt;
mod balance;
mod client_addr;
mod decision;
mod edit;
mod endpoints;
mod evidence;
mod exchange;
mod explain;
mod failure;
mod forward;
mod forwarded;
mod guard;
mod h1;
mod h2;
mod identity;
mod key;
mod life;
mod limits;
mod line;
mod linger;
mod meter;
mod pace;
mod plan;
mod pools;
mod replay;
mod rewrite;
mod route;
mod seats;
mod serve;
mod service;
mod split;
mod stick;
mod tls;
mod trust;
mod websocket;
mod worker;

pub use access_log::Logging;
pub use acme::AcmeAnswers;
pub use endpoints::PoolTls;
pub use explain::Circumstances;
pub use limits::{Limit, LimitKind, LimitStatus, LimitedKey};
pub use plan::PoolPlan;
pub use pools::{endpoint_tls, pool_spec, pools};
pub use route::Summary;
pub use serve::serve;
pub use service::{Service, ServiceError};
pub use tls::client_certificates;
pub use worker::{Listener, Message, Worker};
