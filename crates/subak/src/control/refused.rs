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
    /// It has errors.
    Wrong(Findings),
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
            NotInForce::Wrong(findings) => out.write_str(findings.rendered.trim_end()),
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

/// What is wrong with a configuration, each with its place.
#[derive(Debug)]
pub(crate) struct Findings {
    /// For people.
    pub(crate) rendered: String,
    /// The first one, in one line.
    pub(crate) brief: String,
    /// As `subak check --json` prints it.
    pub(crate) json: String,
}

impl NotInForce {
    /// Why, in one line.
    pub(crate) fn brief(&self) -> String {
        match self {
            NotInForce::Wrong(findings) => findings.brief.clone(),
            other => other.to_string().lines().next().unwrap_or_default().to_owned(),
        }
    }

    /// What to do.
    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            NotInForce::Unreadable(_) => "whoever runs subak must be able to read the file",
            NotInForce::Wrong(_) => "put the file right; subak check shows each place",
            NotInForce::Service(_) => "put the certificate, its key or the keys file right",
            NotInForce::Bind(_) => "free the address, or listen elsewhere",
            NotInForce::Settle(_) => "put user, group or pid_file right",
            NotInForce::Workers(_) => "give it more threads and descriptors",
        }
    }
}
