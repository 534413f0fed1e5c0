//! HTTP/2 on either side, gRPC, and WebSocket over either protocol.

#[path = "../support/mod.rs"]
mod support;

mod connections;
mod endpoints;
mod flood_latency;
mod floods;
mod grpc;
mod malformed;
mod probes;
mod requests;
mod stalled;
mod streams;
mod websocket;
