//! May this connection stay? Asked once for each, before anything of it is read.

use std::net::IpAddr;
use std::sync::Arc;

use subak_config as config;
use subak_limits::Networks;
use subak_telemetry::Turned;

use super::{Held, InFlight, Limit};

/// Whose connections a listener takes, and how many of one client.
#[derive(Debug)]
pub(crate) struct Gate {
    access: Option<Networks>,
    per_client: Option<Arc<InFlight>>,
}

impl Gate {
    /// None where every connection may stay.
    pub(crate) fn of(listener: &config::Listener, before: &[Limit]) -> Option<Box<Gate>> {
        let per_client = listener.limits.per_client.as_ref().map(|per| {
            let name = format!("{}.connections", listener.name);
            let new = InFlight::of_connections(name, per);
            let same = before.iter().find_map(|limit| match limit {
                Limit::Connections(limit) if limit.is_like(&new) => Some(limit.clone()),
                _ => None,
            });
            same.unwrap_or_else(|| Arc::new(new))
        });
        let access = listener.access.clone();
        let is_any = access.is_some() || per_client.is_some();
        is_any.then(|| Box::new(Gate { access, per_client }))
    }

    /// Whether the client's network may in: nothing of the connection has been read or counted.
    pub(crate) fn admits(&self, client: Option<IpAddr>) -> Result<(), Turned> {
        match &self.access {
            Some(networks) if !networks.may(client) => Err(Turned::Network),
            _ => Ok(()),
        }
    }

    /// A place among the client's connections, where they are counted. Who came by unix socket has no
    /// address and is not.
    pub(crate) fn hold(&self, client: Option<IpAddr>) -> Result<Option<Held>, Turned> {
        let (Some(limit), Some(client)) = (&self.per_client, client) else { return Ok(None) };
        limit.hold(client).map(Some).ok_or(Turned::PerClient)
    }

    /// The limit of connections.
    pub(crate) fn limit(&self) -> Option<Limit> {
        self.per_client.clone().map(Limit::Connections)
    }
}
