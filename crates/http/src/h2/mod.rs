//! HTTP/2 towards clients, on the `h2` crate: a connection is lent as one stream to each exchange.

mod client;
mod serve;

pub(crate) use serve::serve;
