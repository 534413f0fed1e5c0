//! What runs on a worker: finds the listener a connection arrived at, and serves it.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use subak_base::Tick;
use subak_http as http;
use subak_net::{Accepted, Application, ListenerId, WorkerHandle, now, wake_all};
use subak_pool::Pool;

/// The runtime state of one generation of the configuration. Immutable, published once.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// Counts configurations put in force, from 1.
    pub(crate) generation: u64,
    /// What each listening address does.
    pub(crate) services: HashMap<ListenerId, Arc<http::Service>>,
    /// By name.
    pub(crate) pools: HashMap<String, Arc<Pool>>,
    /// TLS to the endpoints of those that have it.
    pub(crate) endpoint_tls: HashMap<String, Arc<http::PoolTls>>,
}

/// One worker's listeners.
pub(crate) struct Subak {
    listeners: RefCell<HashMap<ListenerId, Rc<http::Listener>>>,
    /// On their way out, but connections may still arrive from their accept queue.
    leaving: RefCell<HashMap<ListenerId, Leaving>>,
    worker: Rc<http::Worker>,
}

/// How long connections of a listener that leaves may be on their way: from the queue of its socket, and
/// from the worker that took them out to this one.
const ON_THEIR_WAY: Duration = Duration::from_secs(10);

/// A listener that no configuration has any more.
struct Leaving {
    listener: Rc<http::Listener>,
    since: Tick,
}

impl Leaving {
    /// Whether it has a connection, or may get one.
    fn may_be_asked(&self) -> bool {
        Rc::strong_count(&self.listener) > 1 || now().since(self.since) < ON_THEIR_WAY
    }
}

impl Application for Subak {
    type Snapshot = Snapshot;
    type Message = http::Message;

    fn start(handle: WorkerHandle<http::Message>, snapshot: Arc<Snapshot>) -> Subak {
        let subak = Subak {
            listeners: RefCell::default(),
            leaving: RefCell::default(),
            worker: http::Worker::start(handle),
        };
        subak.publish(snapshot);
        subak
    }

    fn publish(&self, snapshot: Arc<Snapshot>) {
        let mut listeners = self.listeners.borrow_mut();
        let mut wakes = false;
        for (id, service) in &snapshot.services {
            match listeners.get(id) {
                Some(listener) => wakes |= listener.publish(service.clone()),
                None => {
                    listeners.insert(*id, http::Listener::new(service.clone()));
                }
            }
        }
        let mut leaving = self.leaving.borrow_mut();
        leaving.retain(|_, left| left.may_be_asked());
        let gone = listeners.extract_if(|id, _| !snapshot.services.contains_key(id));
        leaving.extend(gone.map(|(id, listener)| (id, Leaving { listener, since: now() })));
        leaving.values().for_each(|left| left.listener.drain());
        if wakes || !leaving.is_empty() {
            wake_all();
        }
        let used: HashSet<_> = snapshot
            .pools
            .values()
            .flat_map(|pool| pool.endpoints().map(|endpoint| endpoint.id()))
            .collect();
        self.worker.keep_endpoints(|endpoint| used.contains(&endpoint));
    }

    fn accept(&self, accepted: Accepted) {
        let id = accepted.listener;
        let listener = self.listeners.borrow().get(&id).cloned();
        let leaving = || self.leaving.borrow().get(&id).map(|left| left.listener.clone());
        let listener = listener.or_else(leaving);
        if let Some(listener) = listener
            && let Some(served) = http::serve(accepted, listener, self.worker.clone())
        {
            subak_net::spawn(served);
        }
    }

    fn receive(&self, message: http::Message) {
        self.worker.receive(message);
    }

    fn make_room(&self) -> bool {
        self.worker.make_room()
    }

    fn drain(&self) {
        self.listeners.borrow().values().for_each(|listener| listener.drain());
        wake_all();
    }
}
