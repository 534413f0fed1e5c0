//! What the connections of one worker share, and one listener as a worker sees it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use subak_access_log::{Captured, Tails};
use subak_base::{DecisionId, EndpointId, Tick};
use subak_message::{RequestHead, ResponseHead};
use subak_net::{Deadline, Spares, WorkerHandle, now};
use subak_pool::ShadowKeys;

use crate::access_log::Story;
use crate::endpoints::{IdleConnections, SharedConnections, sweep_for_ever};
use crate::limits::Held;
use crate::seats::Seats;
use crate::service::Service;

/// Heads kept for reuse: as many as sixteen HTTP/2 clients have requests under way. Some 3 KiB each, for
/// as long as they are needed.
const KEPT_HEADS: usize = 2048;
/// A head that was larger than this gives memory back before it is kept.
const KEPT_BYTES: usize = 4096;
const KEPT_FIELDS: usize = 64;

/// What workers tell each other about connections to endpoints.
#[derive(Clone, Debug)]
pub enum Message {
    /// An endpoint is at its cap: close one idle connection to it.
    CloseOneIdle(EndpointId),
    /// Descriptors ran out: close all idle connections to endpoints.
    CloseIdle,
}

/// One worker's share of the HTTP side.
pub struct Worker {
    pub(crate) handle: WorkerHandle<Message>,
    pub(crate) idle: IdleConnections,
    /// Connections to endpoints that requests share.
    pub(crate) shared: SharedConnections,
    /// The ends of the access logs.
    pub(crate) logs: Tails,
    /// Connections of clients.
    pub(crate) seats: Seats,
    heads: RefCell<Spares<Box<Heads>>>,
}

/// The two heads of an exchange and buffers for values put together; reused.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    pub(crate) request: RequestHead,
    pub(crate) answer: ResponseHead,
    pub(crate) text: Vec<u8>,
    /// What the client is recognised by.
    pub(crate) key: Vec<u8>,
    /// And by the shadows of its pool, where it has some.
    pub(crate) shadow_keys: ShadowKeys,
    /// The name of the decision where this request goes; none where nobody wants to know.
    pub(crate) decision: Option<DecisionId>,
    /// What has happened so far.
    pub(crate) story: Story,
    /// What access logs want of the request.
    pub(crate) captured: Captured,
    /// Its places among what limits count.
    pub(crate) held: Vec<Held>,
}

impl Worker {
    /// A worker without connections; begins to sweep its idle ones.
    pub fn start(handle: WorkerHandle<Message>) -> Rc<Worker> {
        let worker = Worker {
            handle,
            idle: IdleConnections::default(),
            shared: SharedConnections::default(),
            logs: Tails::default(),
            seats: Seats::default(),
            heads: RefCell::new(Spares::new(KEPT_HEADS)),
        };
        let worker = Rc::new(worker);
        subak_net::spawn(sweep_for_ever(worker.clone()));
        subak_net::spawn(hand_lines_over_for_ever(worker.clone()));
        worker
    }

    /// Which worker this is.
    #[inline]
    pub(crate) fn index(&self) -> usize {
        self.handle.worker().0
    }

    /// Hears another worker.
    pub fn receive(&self, message: Message) {
        match message {
            Message::CloseOneIdle(endpoint) => {
                self.idle.close_one(endpoint);
                self.shared.make_room(endpoint);
            }
            Message::CloseIdle => self.close_idle(),
        }
    }

    /// Has the client's connection end that has been idle longest. False when none is idle.
    pub fn make_room(&self) -> bool {
        self.seats.evict(None, self.index())
    }

    /// Closes every connection to endpoints that carries nothing.
    pub(crate) fn close_idle(&self) {
        self.idle.close_all();
        self.shared.close_idle();
    }

    /// Closes idle connections to endpoints that are not in use any more.
    pub fn keep_endpoints(&self, used: impl Fn(EndpointId) -> bool) {
        self.idle.keep(&used);
        self.shared.keep(&used);
    }

    #[inline]
    pub(crate) fn take_heads(&self) -> Box<Heads> {
        self.heads.borrow_mut().take().unwrap_or_default()
    }

    #[inline]
    pub(crate) fn put_heads(&self, mut heads: Box<Heads>) {
        heads.decision = None;
        heads.story = Story::default();
        heads.captured.clear();
        heads.held.clear();
        if heads.request.capacity_bytes() > KEPT_BYTES {
            heads.request.shrink_to(KEPT_BYTES / 2, KEPT_FIELDS);
        }
        if heads.answer.fields.capacity_bytes() > KEPT_BYTES {
            heads.answer.fields.shrink_to(KEPT_BYTES / 2, KEPT_FIELDS);
        }
        self.heads.borrow_mut().put(heads);
    }

    /// Lets go of what has been idle too long.
    pub(crate) fn sweep(&self, now: Tick) {
        self.idle.sweep(now);
        self.shared.sweep(now);
        self.heads.borrow_mut().sweep();
        subak_net::sweep_places();
    }
}

/// Hands lines of access logs over in time, also when no more come.
async fn hand_lines_over_for_ever(worker: Rc<Worker>) {
    let pause = Deadline::new();
    loop {
        pause.set(worker.logs.look(now()));
        pause.passed().await;
    }
}

/// A listener on one worker: its service in force, and whether it is on its way out.
#[derive(Debug)]
pub struct Listener {
    service: RefCell<Rc<InForce>>,
    draining: Cell<bool>,
}

/// A service as one worker holds it. Exchanges count their hold on it here, by a counter of this
/// worker alone: the shared one would travel between cores twice a request.
#[derive(Debug)]
pub(crate) struct InForce(Arc<Service>);

impl std::ops::Deref for InForce {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.0
    }
}

impl Listener {
    /// A listener that serves.
    pub fn new(service: Arc<Service>) -> Rc<Listener> {
        let service = RefCell::new(Rc::new(InForce(service)));
        Rc::new(Listener { service, draining: Cell::new(false) })
    }

    /// Requests from now on are served by this service. Whether clients that are here have to show
    /// their certificates again: idle connections find out when they are woken
    /// ([`subak_net::wake_all`]), others with their next request.
    pub fn publish(&self, service: Arc<Service>) -> bool {
        let before = self.service.replace(Rc::new(InForce(service)));
        let verification = before.tls.as_ref().map_or(0, |tls| tls.verification());
        self.service().is_outdated(verification)
    }

    /// Responses that begin from now on are the last of their connections, and connections without a
    /// request end soon. They find out when they are woken: see [`subak_net::wake_all`].
    pub fn drain(&self) {
        self.draining.set(true);
    }

    /// The service in force; stays the same for whoever holds it.
    #[inline]
    pub(crate) fn service(&self) -> Rc<InForce> {
        self.service.borrow().clone()
    }

    #[inline]
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.get()
    }
}
