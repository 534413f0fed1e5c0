//! Workers: one thread per core, each with its own runtime, sockets and timers.
//!
//! What runs on a worker never leaves it. The control side holds a [`Fleet`] and speaks to workers by
//! messages; what connections are served with is an [`Application`], made anew on every worker, so it
//! can be built of `Rc` and `Cell`.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use subak_base::Rng;
use tokio::sync::{Notify, mpsc};

use crate::accept::{Accepted, Arrival, Landing, accept_loop};
use crate::cpus;
use crate::deadline;
use crate::descriptors::Descriptors;
use crate::heartbeat::Heartbeats;
use crate::listen::ListenSocket;

/// A listening address, stable over reloads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ListenerId(pub u32);

/// The place of a worker in its fleet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkerId(pub usize);

/// What a worker does with connections. Lives on one worker's thread.
pub trait Application: 'static {
    /// The published state that connections are served from.
    type Snapshot: Send + Sync + 'static;
    /// What one worker can tell the others.
    type Message: Clone + Send + 'static;

    /// Builds the application on its worker.
    fn start(handle: WorkerHandle<Self::Message>, snapshot: Arc<Self::Snapshot>) -> Self;
    /// Takes a newer snapshot over.
    fn publish(&self, snapshot: Arc<Self::Snapshot>);
    /// Serves a connection; it spawns what it needs.
    fn accept(&self, accepted: Accepted);
    /// Hears another worker.
    fn receive(&self, message: Self::Message);
    /// Has the connection end that has been idle longest, where there is one. It is gone when its task
    /// has had its turn.
    fn make_room(&self) -> bool;
    /// No new work: finish what is under way, close what is idle.
    fn drain(&self);
}

/// How a fleet is laid out.
#[derive(Clone, Debug)]
pub struct FleetOptions {
    /// Number of workers, from 1; see [`suitable_workers`](crate::suitable_workers).
    pub workers: usize,
    /// The process's books of client connections.
    pub descriptors: Arc<Descriptors>,
    /// Seeds the workers' random numbers.
    pub seed: u64,
}

/// The workers, seen from the control side.
pub struct Fleet<A: Application> {
    senders: Vec<mpsc::UnboundedSender<Command<A>>>,
    threads: Vec<JoinHandle<()>>,
    counts: Vec<Arc<WorkerCount>>,
    /// Sockets that workers accept from, or are about to.
    accepting: Arc<AtomicUsize>,
    heartbeats: Heartbeats,
}

enum Command<A: Application> {
    Publish {
        snapshot: Arc<A::Snapshot>,
        opened: Vec<(ListenerId, ListenSocket)>,
        closed: Vec<ListenerId>,
    },
    Land(Arrival),
    Message(A::Message),
    /// There is no room for another client, and another worker has nobody who is idle.
    MakeRoom,
    /// To be answered by its number.
    Beat(u64),
    Drain,
    End,
}

/// Connections one worker holds.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct WorkerCount(AtomicUsize);

impl WorkerCount {
    pub(crate) fn connections(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn remove(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What an application may ask of its worker.
pub struct WorkerHandle<M> {
    worker: WorkerId,
    random: Rc<RefCell<Rng>>,
    tell: Rc<dyn Fn(M)>,
    descriptors: Arc<Descriptors>,
}

impl<M> Clone for WorkerHandle<M> {
    fn clone(&self) -> WorkerHandle<M> {
        let WorkerHandle { worker, random, tell, descriptors } = self;
        WorkerHandle {
            worker: *worker,
            random: random.clone(),
            tell: tell.clone(),
            descriptors: descriptors.clone(),
        }
    }
}

impl<M> WorkerHandle<M> {
    /// Which worker this is.
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// A random number of this worker's own stream.
    #[inline]
    pub fn random(&self) -> u64 {
        self.random.borrow_mut().next_u64()
    }

    /// The process's books of descriptors.
    pub fn descriptors(&self) -> &Arc<Descriptors> {
        &self.descriptors
    }

    /// Tells all other workers.
    pub fn tell_others(&self, message: M) {
        (self.tell)(message);
    }
}

impl<A: Application> Fleet<A> {
    /// Starts the workers. They accept nothing until sockets are published.
    ///
    /// # Errors
    /// When a thread or its runtime cannot be made.
    pub fn start(options: &FleetOptions, snapshot: &Arc<A::Snapshot>) -> io::Result<Fleet<A>> {
        let count = options.workers;
        let processors = cpus::allowed();
        let counts: Vec<_> = (0..count).map(|_| Arc::new(WorkerCount::default())).collect();
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..count).map(|_| mpsc::unbounded_channel()).unzip();
        let mut seeds = Rng::new(options.seed);
        let accepting = Arc::new(AtomicUsize::new(0));
        let heartbeats = Heartbeats::new(count);
        let mut threads = Vec::with_capacity(count);
        for (index, commands) in receivers.into_iter().enumerate() {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let parts = WorkerParts::<A> {
                index,
                commands,
                senders: senders.clone(),
                counts: counts.clone(),
                descriptors: options.descriptors.clone(),
                accepting: accepting.clone(),
                answered: heartbeats.of(index),
                seed: seeds.next_u64(),
                snapshot: snapshot.clone(),
            };
            let processor = (count <= processors.len()).then(|| processors[index]);
            let body = move || {
                if let Some(processor) = processor {
                    cpus::pin(processor);
                }
                ON_WORKER.set(true);
                runtime.block_on(parts.run());
                // Connections that were still open end here, on the thread they belong to.
                drop(runtime);
            };
            threads.push(std::thread::Builder::new().name(format!("worker-{index}")).spawn(body)?);
        }
        Ok(Fleet { senders, threads, counts, accepting, heartbeats })
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.senders.len()
    }

    /// Client connections held now, over all workers.
    pub fn connections(&self) -> usize {
        self.counts.iter().map(|count| count.connections()).sum()
    }

    /// Whether any worker still accepts. After [`Fleet::drain`] this ends when what had connected
    /// before is in the books of [`Fleet::connections`].
    pub fn is_accepting(&self) -> bool {
        self.accepting.load(Ordering::SeqCst) > 0
    }

    /// Gives every worker a snapshot, its sockets of new listeners, and the listeners that go.
    pub fn publish(
        &self,
        snapshot: &Arc<A::Snapshot>,
        opened: Vec<(ListenerId, Vec<ListenSocket>)>,
        closed: &[ListenerId],
    ) {
        let mut shares: Vec<Vec<(ListenerId, ListenSocket)>> =
            self.senders.iter().map(|_| Vec::new()).collect();
        for (listener, sockets) in opened {
            self.accepting.fetch_add(sockets.len(), Ordering::SeqCst);
            for (share, socket) in shares.iter_mut().zip(sockets) {
                share.push((listener, socket));
            }
        }
        for (sender, opened) in self.senders.iter().zip(shares) {
            let closed = closed.to_vec();
            let _ = sender.send(Command::Publish { snapshot: snapshot.clone(), opened, closed });
        }
    }

    /// Asks every worker whether it turns, unless one has not answered the last time.
    pub fn ask_alive(&self) {
        let Some(number) = self.heartbeats.next() else { return };
        for sender in &self.senders {
            let _ = sender.send(Command::Beat(number));
        }
    }

    /// Workers that have not answered the last [`Fleet::ask_alive`].
    pub fn silent(&self) -> impl Iterator<Item = WorkerId> {
        self.heartbeats.silent().map(WorkerId)
    }

    /// Stops accepting, lets what is under way finish, closes what is idle.
    pub fn drain(&self) {
        for sender in &self.senders {
            let _ = sender.send(Command::Drain);
        }
    }

    /// Ends all workers now and waits for their threads.
    pub fn end(self) {
        for sender in &self.senders {
            let _ = sender.send(Command::End);
        }
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

thread_local! {
    static ON_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Spawns a task on this worker. It need not be `Send`: it never leaves the thread.
///
/// # Panics
/// When called from a thread that is no worker.
pub fn spawn(task: impl Future<Output = ()> + 'static) {
    assert!(ON_WORKER.get(), "spawn belongs to worker threads");
    tokio::spawn(StaysHere(task));
}

/// Ends a task's turn: it is polled again once the others that are ready have been, and the system has
/// been asked for whom something has come. Whoever calls returns [`Poll::Pending`](std::task::Poll).
pub fn end_turn(context: &mut Context<'_>) {
    let polled = std::pin::pin!(tokio::task::yield_now()).poll(context);
    debug_assert!(polled.is_pending());
}

/// A future that is only ever touched by one thread.
struct StaysHere<F>(F);

// SAFETY: `spawn`, the only place that makes one, runs on a worker thread inside that worker's
// current-thread runtime. Such a runtime polls its tasks, and drops their futures (at completion, or
// when it is dropped itself), on the thread that runs it; the worker thread both runs and drops it.
// Wakers may travel to other threads; they own the task's header, and the future is gone before the
// header outlives the runtime. No join handle is kept, and the output is `()`.
unsafe impl<F> Send for StaysHere<F> {}

impl<F: Future<Output = ()>> Future for StaysHere<F> {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // SAFETY: structural pinning of the only field; the wrapper is never moved out of.
        unsafe { self.map_unchecked_mut(|this| &mut this.0) }.poll(context)
    }
}

struct WorkerParts<A: Application> {
    index: usize,
    commands: mpsc::UnboundedReceiver<Command<A>>,
    senders: Vec<mpsc::UnboundedSender<Command<A>>>,
    counts: Vec<Arc<WorkerCount>>,
    descriptors: Arc<Descriptors>,
    accepting: Arc<AtomicUsize>,
    answered: Arc<AtomicU64>,
    seed: u64,
    snapshot: Arc<A::Snapshot>,
}

impl<A: Application> WorkerParts<A> {
    async fn run(self) {
        let WorkerParts { index, mut commands, senders, counts, descriptors, .. } = self;
        let WorkerParts { accepting, answered, seed, snapshot, .. } = self;
        let random = Rc::new(RefCell::new(Rng::new(seed)));
        let others: Vec<_> = senders
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != index)
            .map(|(_, sender)| sender.clone())
            .collect();
        let tell = Rc::new(move |message: A::Message| {
            for other in &others {
                let _ = other.send(Command::Message(message.clone()));
            }
        });
        let worker = WorkerId(index);
        let (random_too, books) = (random.clone(), descriptors.clone());
        let handle = WorkerHandle { worker, random: random_too, tell, descriptors: books };
        let application = Rc::new(A::start(handle, snapshot));
        let place =
            Place { application: application.clone(), index, senders, counts, descriptors, random };
        let place = Rc::new(place);
        let mut listening: HashMap<ListenerId, Vec<Arc<Notify>>> = HashMap::new();
        spawn(deadline::turn());
        while let Some(command) = commands.recv().await {
            match command {
                Command::Publish { snapshot, opened, closed } => {
                    application.publish(snapshot);
                    for (listener, socket) in opened {
                        let closing = Arc::new(Notify::new());
                        listening.entry(listener).or_default().push(closing.clone());
                        let (place, accepting) = (place.clone(), accepting.clone());
                        spawn(async move {
                            accept_loop(socket, listener, place, closing).await;
                            accepting.fetch_sub(1, Ordering::SeqCst);
                        });
                    }
                    for listener in closed {
                        close(listening.remove(&listener));
                    }
                }
                Command::Land(arrival) => place.keep(arrival),
                Command::Message(message) => application.receive(message),
                Command::MakeRoom => _ = application.make_room(),
                Command::Beat(number) => answered.store(number, Ordering::Relaxed),
                Command::Drain => {
                    listening.drain().for_each(|(_, notifiers)| close(Some(notifiers)));
                    application.drain();
                }
                Command::End => return,
            }
        }
    }
}

fn close(notifiers: Option<Vec<Arc<Notify>>>) {
    for closing in notifiers.into_iter().flatten() {
        // Kept as a permit when the loop is not waiting at this moment.
        closing.notify_one();
    }
}

/// A worker's place among the others, for its accept loops.
struct Place<A: Application> {
    application: Rc<A>,
    index: usize,
    senders: Vec<mpsc::UnboundedSender<Command<A>>>,
    counts: Vec<Arc<WorkerCount>>,
    descriptors: Arc<Descriptors>,
    random: Rc<RefCell<Rng>>,
}

impl<A: Application> Landing for Rc<Place<A>> {
    fn keep(&self, arrival: Arrival) {
        match arrival.land() {
            Ok(accepted) => self.application.accept(accepted),
            Err(error) => tracing::warn!(%error, "cannot watch an accepted socket; it is closed"),
        }
    }

    fn hand_over(&self, other: usize, arrival: Arrival) {
        if let Err(mpsc::error::SendError(Command::Land(arrival))) =
            self.senders[other].send(Command::Land(arrival))
        {
            self.keep(arrival);
        }
    }

    fn counts(&self) -> (&[Arc<WorkerCount>], usize) {
        (&self.counts, self.index)
    }

    fn random(&self) -> u64 {
        self.random.borrow_mut().next_u64()
    }

    fn make_room(&self) -> bool {
        if self.application.make_room() {
            return true;
        }
        let others = self.senders.iter().enumerate().filter(|(other, _)| *other != self.index);
        others.for_each(|(_, other)| _ = other.send(Command::MakeRoom));
        false
    }

    fn descriptors(&self) -> &Arc<Descriptors> {
        &self.descriptors
    }
}
