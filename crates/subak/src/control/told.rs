//! What the Admin API is told of the control side, and what it may change there.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use subak_admin::{
    CertificateView, Change, Command, ConfigView, EndpointTold, ListenerView, NotChanged, Note,
    Overview, PoolView, RouteView,
};
use subak_balance::weigher::Weigher;
use subak_base::Address;
use subak_certificate::Certificate;
use subak_config::{Config, Layer};
use subak_http::{Service, Summary};
use subak_net::now;
use subak_net::tls::ServerTls;
use subak_pool::{Endpoint, Pool};

use super::Control;
use super::drains::Drains;
use super::limits;
use crate::logging;

/// What is served, in the order in which it is looked for.
fn certificates(tls: &Arc<ServerTls>) -> Vec<CertificateView> {
    let view = |(_, certificate): (_, Certificate)| {
        let about = certificate.about();
        let expires = u64::try_from(about.validity.to).unwrap_or_default();
        CertificateView {
            source: about.source.display().to_string(),
            names: about.names.iter().map(ToString::to_string).collect(),
            issuer: about.issuer.to_string(),
            serial: about.serial.to_string(),
            fingerprint: about.fingerprint.to_string(),
            key: about.key.name(),
            expires_at: UNIX_EPOCH + Duration::from_secs(expires),
            is_stapled: certificate.ocsp().is_some(),
        }
    };
    tls.store().all().into_iter().map(view).collect()
}

impl Control {
    /// Carries a command out. Whoever gave it may have left.
    pub(crate) fn obey(&mut self, command: Command) {
        match command {
            Command::Look { pool, reply } => _ = reply.send(self.overview(pool.as_deref())),
            Command::Explain { question, reply } => _ = reply.send(self.explain(&question)),
            Command::Picks { search, reply } => _ = reply.send(self.picks(search)),
            Command::Wish { wish, by, reply } => _ = reply.send(self.fulfil(wish, &by)),
            Command::Config { reply } => _ = reply.send(self.told_of_config()),
            Command::History { reply } => _ = reply.send(self.history.told()),
            Command::Events { after, reply } => _ = reply.send(self.events.after(after)),
            Command::Endpoint { pool, endpoint, change, by, reply } => {
                _ = reply.send(self.endpoint(&pool, &endpoint, change, &by));
            }
        }
    }

    /// Everything; of one pool alone, where one is named.
    fn overview(&mut self, only: Option<&str>) -> Overview {
        let now = now();
        let services = self.snapshot.services.values();
        let services: HashMap<_, _> = services.map(|service| (service.name(), service)).collect();
        let listeners = self.config.listeners.iter().filter_map(|listener| {
            let service = services.get(&*listener.name)?;
            Some(ListenerView {
                name: listener.name.to_string(),
                addresses: listener.bind.iter().map(ToString::to_string).collect(),
                tls: service.is_tls(),
                certificates: service.tls().map_or_else(Vec::new, certificates),
                protocols: service.protocols().collect(),
                routes: service.counted_routes().map(route).collect(),
                connections: service.connections(),
                totals: self.telemetry.listener(&listener.name).totals(),
            })
        });
        let listeners = listeners.collect();
        let layer = &self.desired.layer;
        let wanted =
            self.config.pools.iter().filter(|pool| only.is_none_or(|only| *pool.name == *only));
        let pools: Vec<_> = wanted
            .filter_map(|pool| {
                let weigher = self.weighing.of(&pool.name);
                Some(PoolView {
                    status: self.snapshot.pools.get(&*pool.name)?.status(now),
                    notes: notes(self.snapshot.pools.get(&*pool.name)?, layer, &self.drains),
                    totals: self.telemetry.pool(&pool.name).totals(),
                    weighed: weigher.map(|weigher| weigher.weighed().to_vec()),
                    imbalance_ppm: weigher.and_then(Weigher::imbalance_ppm),
                })
            })
            .collect();
        Overview {
            now,
            version: env!("CARGO_PKG_VERSION"),
            generation: self.snapshot.generation,
            reloads: self.reloads,
            reloads_refused: self.reloads_refused,
            workers: self.fleet.workers(),
            connections: self.fleet.connections(),
            stopping: self.stopping,
            access_logs: self.access_logs.totals(),
            most_connections: self.descriptors.most_clients(),
            log_lines_dropped: logging::dropped(),
            problems: self.problems.list(),
            config: ConfigView {
                path: self.path.clone(),
                files: self.desired.loaded.files.iter().map(|(path, _)| path.clone()).collect(),
                loaded_at: self.desired.loaded.at,
                changes: self.desired.layer.len(),
                differs_from_file: self.differs_from_file(),
            },
            names: self.names.told(now),
            limits: limits::views(services_in_order(&self.config, &services)),
            acme: self.told_of_acme(),
            listeners,
            pools,
        }
    }

    fn endpoint(
        &mut self,
        pool: &str,
        endpoint: &str,
        change: Option<Change>,
        by: &Arc<str>,
    ) -> Result<EndpointTold, NotChanged> {
        let Some(found) = self.snapshot.pools.get(pool).cloned() else {
            let known = self.config.pools.iter().map(|pool| pool.name.to_string()).collect();
            return Err(NotChanged::NoPool { known });
        };
        let no_endpoint = || {
            let known = found.spec().endpoints.iter().map(|one| one.name.clone()).collect();
            NotChanged::NoEndpoint { known }
        };
        let index = match change {
            Some(change) => self.set(pool, endpoint, change, by).map_err(|_| no_endpoint())?,
            None => found.find(endpoint).ok_or_else(no_endpoint)?,
        };
        let now = now();
        let status = found.status(now).endpoints.into_iter().nth(index).ok_or_else(no_endpoint)?;
        let weigher = self.weighing.of(found.name());
        let weighed = weigher.and_then(|weigher| weigher.weighed().get(index).copied());
        let note = notes(&found, &self.desired.layer, &self.drains)
            .into_iter()
            .nth(index)
            .ok_or_else(no_endpoint)?;
        Ok(EndpointTold { now, status, note, weighed })
    }
}

/// The services in the order of their listeners.
fn services_in_order<'a>(
    config: &'a Config,
    services: &'a HashMap<&str, &Arc<Service>>,
) -> impl Iterator<Item = &'a Service> {
    let names = config.listeners.iter();
    names.filter_map(|listener| services.get(&*listener.name).map(|service| &***service))
}

fn route((index, summary, hits): (Option<usize>, &Summary, u64)) -> RouteView {
    let Summary { matches, action } = summary.clone();
    RouteView { matches, action, index, hits }
}

/// Of each endpoint, what its pool does not know.
fn notes(pool: &Pool, layer: &Layer, drains: &Drains) -> Vec<Note> {
    let layer = layer.pool(pool.name());
    let added: HashSet<&Address> = layer
        .into_iter()
        .flat_map(|layer| layer.added.iter().map(|added| &added.value.endpoint.address))
        .collect();
    let note = |endpoint: &Arc<Endpoint>| {
        let set = layer.and_then(|layer| layer.set.get(endpoint.address()));
        Note {
            is_added: added.contains(endpoint.address()),
            deadline: set.and_then(|set| set.state.as_ref()?.value.deadline),
            empty_since: drains.empty_since(endpoint.id()),
        }
    };
    pool.endpoints().map(note).collect()
}
