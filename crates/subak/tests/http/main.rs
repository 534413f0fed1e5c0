//! HTTP/1.1: messages, connections, routes, limits and what is done about failures.

#[path = "../support/mod.rs"]
mod support;

mod ambiguous;
mod conditions;
mod connections;
mod differential;
mod disconnects;
mod fields;
mod guards;
mod keys;
mod limits;
mod memory;
mod messages;
mod rates;
mod retries;
mod routes;
mod skeleton;
mod split;
