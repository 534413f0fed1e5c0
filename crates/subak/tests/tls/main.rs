//! TLS on either side, certificates by ACME, and the PROXY protocol before it.

#[path = "../support/mod.rs"]
mod support;

mod acme;
mod alerts;
mod checked;
mod clients;
mod endpoints;
mod outdated;
mod programs;
mod proxy_protocol;
mod server;
