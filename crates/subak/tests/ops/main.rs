//! Running it: start, reload, stop, logs, names, services.

#[path = "../support/mod.rs"]
mod support;

mod files;
mod life;
mod log_blocked;
mod log_lines;
mod log_sinks;
mod names;
mod names_server;
mod reload;
mod service_manager;
mod service_unit;
mod service_user;
mod shortages;
mod stop;
