//! HTTP/1.1 and 1.0 at both edges: a connection is lent exclusively to one exchange at a time.

mod body;
mod client;
mod endpoint;
mod serve;

pub(crate) use endpoint::H1Endpoint;
pub(crate) use serve::{linger, serve};
