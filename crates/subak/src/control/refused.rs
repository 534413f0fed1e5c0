//! Why a configuration was not put in force.

use std::fmt;

use subak_http::ServiceError;
use subak_net::BindError;

use crate::settle::NotSettled;

/// Why a configuration was not put in force. Then nothing at all has changed.
#[derive(Debug)]
pub(crate) enum NotInForce {
    /// The file cannot be read.
    Unreadable(String),
    /// It has errors, which stand in the text.
    Wrong(String),
    /// A certificate cannot be used.
    Service(ServiceError),
    /// An address cannot be bound.
    Bind(BindError),
    /// It cannot run as it is to: as this user, with this pid file.
    Settle(NotSettled),
    /// Workers cannot be started.
    Workers(std::io::Error),
}

impl fmt::Display for NotInForce {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotInForce::Unreadable(message) => out.write_str(message),
            NotInForce::Wrong(rendered) => out.write_str(rendered.trim_end()),
            NotInForce::Service(error) => error.fmt(out),
            NotInForce::Bind(error) => error.fmt(out),
            NotInForce::Settle(error) => error.fmt(out),
            NotInForce::Workers(error) => write!(
                out,
                "cannot start workers: {error}\n  fewer of them (workers = 1) need fewer threads and \
                 descriptors; see `ulimit -u` and `ulimit -n`"
            ),
        }
    }
}
