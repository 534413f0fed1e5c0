//! HTTP/2 towards clients, on the `h2` crate: a connection is lent as one stream to each exchange.

mod account;
mod client;
mod head;
mod serve;
mod watched;

pub(crate) use serve::serve;
