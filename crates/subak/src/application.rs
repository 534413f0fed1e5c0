//! What runs on a worker: finds the listener a connection arrived at, and serves it.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use subak_http as http;
use subak_net::{Accepted, Application, ListenerId, WorkerHandle, wake_all};
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
    leaving: RefCell<HashMap<ListenerId, Rc<http::Listener>>>,
    worker: Rc<http::Worker>,
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
        leaving.retain(|_, listener| Rc::strong_count(listener) > 1);
        leaving.extend(listeners.extract_if(|id, _| !snapshot.services.contains_key(id)));
        leaving.values().for_each(|listener| listener.drain());
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
        let listener = listener.or_else(|| self.leaving.borrow().get(&id).cloned());
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
