//! An HTTP/2 connection to an endpoint, shared by the exchanges of one worker.
//!
//! It is ready when the endpoint's SETTINGS have come: only then is it known that HTTP/2 is spoken at
//! all and how many streams may be open, and until then nothing of a request has been sent, so that
//! whatever goes wrong is a connection that could not be made. One round trip for each connection.
//!
//! The connection's window is as large as the windows of all its streams together: a client that takes
//! nothing holds up its own stream and no other. That bounds what one connection can cost:
//! `streams.per_connection` × (`streams.window` + [`SEND_BUFFER`]).

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{Reason, SendStream};
use http::Request;
use subak_base::Tick;
use subak_message::RequestHead;
use subak_net::tls::client::TlsTarget;
use subak_net::{ChunkSize, Counters, Deadline, SharedStream, spawn};
use subak_pool::{Endpoint, WaitQueue};
use subak_telemetry::PoolMetrics;

use super::complaint::complain;
use super::drive::{Driven, drive};
use crate::endpoints::Connection;
use crate::failure::Failure;
use crate::meter::Meter;
use crate::plan::PoolPlan;
use crate::websocket;

/// Bytes of one request that wait in the library while the endpoint's window is open and its socket is
/// not.
pub(super) const SEND_BUFFER: usize = 64 * 1024;
/// The most that a connection's window can be (RFC 9113, 6.9.1).
const MOST_WINDOW: u64 = (1 << 31) - 1;

/// A connection that is ready for streams.
#[derive(Debug)]
pub(crate) struct H2Connection {
    send: RefCell<SendRequest<Bytes>>,
    wire: SharedStream,
    /// How it is secured; none: it is not.
    target: Option<Arc<TlsTarget>>,
    secured_in: Cell<Duration>,
    /// Lent now.
    streams: Cell<u32>,
    /// Whether it has carried a stream before.
    used: Cell<bool>,
    /// Takes no more streams: the endpoint said so, or it has a reason to go.
    leaving: Cell<bool>,
    /// An exchange has timed out, and the endpoint has given no sign of life since.
    suspect: Cell<bool>,
    /// When it has been idle too long, while it has no stream.
    expires: Cell<Tick>,
    driver: RefCell<Waker>,
    /// Who waits for room on it.
    line: Rc<WaitQueue>,
    metrics: (Arc<PoolMetrics>, usize),
    /// Where it leads.
    endpoint: Arc<Endpoint>,
    pub(crate) meter: Meter,
}

/// Speaks HTTP/2 on a new connection, in what is left of `deadline`.
///
/// # Errors
/// [`Failure::Connect`] when the endpoint does not speak it, [`Failure::ConnectTimeout`].
pub(crate) async fn connect(
    opened: Box<Connection>,
    plan: &PoolPlan,
    (line, worker): (Rc<WaitQueue>, usize),
    deadline: &Deadline,
) -> Result<Rc<H2Connection>, Failure> {
    let Connection { stream, target, secured_in, slot, .. } = *opened;
    let wire = SharedStream::new(stream);
    let window = u64::from(plan.streams.window_bytes);
    let all_windows = window * u64::from(plan.streams.per_connection.get());
    let mut builder = Builder::new();
    builder
        .enable_push(false)
        // None before the endpoint has said how many.
        .initial_max_send_streams(0)
        .initial_window_size(plan.streams.window_bytes)
        .initial_connection_window_size(all_windows.min(MOST_WINDOW) as u32)
        .max_send_buffer_size(SEND_BUFFER)
        // Malformed answers to one client must not cut off those to others, however many there are.
        .max_local_error_reset_streams(None)
        .max_header_list_size(ChunkSize::Large.bytes() as u32);
    let mut handshake = std::pin::pin!(builder.handshake::<_, Bytes>(wire.clone()));
    let (send, mut connection) =
        within(deadline, |context| handshake.as_mut().poll(context)).await?.map_err(not_spoken)?;
    within(deadline, |context| match Pin::new(&mut connection).poll(context) {
        Poll::Ready(Err(error)) => Poll::Ready(Err(not_spoken(error))),
        Poll::Ready(Ok(())) => Poll::Ready(Err(not_spoken(Reason::NO_ERROR.into()))),
        Poll::Pending if send.current_max_send_streams() > 0 => Poll::Ready(Ok(())),
        Poll::Pending => Poll::Pending,
    })
    .await??;
    let pings = connection.ping_pong();
    let ready = Rc::new(H2Connection {
        send: RefCell::new(send),
        wire,
        target,
        secured_in: Cell::new(secured_in),
        streams: Cell::new(0),
        used: Cell::new(false),
        leaving: Cell::new(false),
        suspect: Cell::new(false),
        expires: Cell::new(Tick(u64::MAX)),
        driver: RefCell::new(Waker::noop().clone()),
        line,
        metrics: (plan.metrics.clone(), worker),
        endpoint: slot.endpoint().clone(),
        meter: Meter::default(),
    });
    let driven = Driven {
        connection,
        pings,
        shared: Rc::downgrade(&ready),
        silence: plan.streams.ping,
        patience: plan.connect,
        slot,
    };
    spawn(drive(driven));
    Ok(ready)
}

async fn within<T>(
    deadline: &Deadline,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Result<T, Failure> {
    std::future::poll_fn(|context| match poll(context) {
        Poll::Ready(ready) => Poll::Ready(Ok(ready)),
        Poll::Pending if deadline.expired(context) => Poll::Ready(Err(Failure::ConnectTimeout)),
        Poll::Pending => Poll::Pending,
    })
    .await
}

/// No byte of a request has been sent.
fn not_spoken(error: h2::Error) -> Failure {
    Failure::Connect(io::Error::new(
        io::ErrorKind::InvalidData,
        format!("it does not speak HTTP/2 (`protocol` of its pool): {error}"),
    ))
}

impl H2Connection {
    /// Opens a stream. Nothing has been sent when it fails.
    ///
    /// # Errors
    /// What the library reports: the connection is gone, or takes no more.
    pub(super) fn send(
        &self,
        request: Request<()>,
        ended: bool,
    ) -> Result<(ResponseFuture, SendStream<Bytes>), h2::Error> {
        self.used.set(true);
        self.send.borrow_mut().send_request(request, ended)
    }

    /// How many more streams it takes, of at most `most`.
    pub(crate) fn room(&self, most: u32) -> usize {
        if self.leaving.get() || self.suspect.get() {
            return 0;
        }
        let most = self.send.borrow().current_max_send_streams().min(most as usize);
        most.saturating_sub(self.streams.get() as usize)
    }

    /// Whether a request to switch protocols can be made on it.
    ///
    /// # Errors
    /// [`Failure::NoSwitch`], [`Failure::BadHead`] for a handshake that cannot be answered.
    pub(crate) fn takes_websocket(&self, asked: &RequestHead) -> Result<(), Failure> {
        websocket::can_go_on(asked)?;
        match self.send.borrow().is_extended_connect_protocol_enabled() {
            true => Ok(()),
            false => Err(Failure::NoSwitch { websocket: true }),
        }
    }

    /// How long TLS took, for who has made the connection.
    pub(crate) fn take_secured_in(&self) -> Duration {
        self.secured_in.take()
    }

    pub(crate) fn streams(&self) -> u32 {
        self.streams.get()
    }

    pub(crate) fn was_used(&self) -> bool {
        self.used.get()
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.get()
    }

    pub(crate) fn is_idle_since(&self, now: Tick) -> bool {
        self.streams.get() == 0 && self.expires.get() <= now
    }

    pub(crate) fn lend(&self) {
        self.streams.update(|streams| streams + 1);
        self.metrics.0.stream_opened(self.metrics.1);
        self.endpoint.stream_opened();
    }

    /// A stream has ended; without another one, the connection is kept until `expires`.
    pub(crate) fn give_back(&self, expires: Tick) {
        self.streams.update(|streams| streams - 1);
        self.expires.set(expires);
        self.metrics.0.stream_closed(self.metrics.1);
        self.endpoint.stream_closed();
        self.line.notify();
    }

    /// Gives it no more streams.
    pub(crate) fn leave(&self) {
        self.leaving.set(true);
        self.line.notify();
    }

    /// An exchange on it has timed out: the endpoint is asked for a sign of life, and gets no stream
    /// on this connection before it has given one.
    pub(crate) fn suspect(&self) {
        self.suspect.set(true);
        self.driver.borrow().wake_by_ref();
    }

    pub(super) fn is_suspect(&self) -> bool {
        self.suspect.get()
    }

    pub(super) fn clear(&self) {
        if self.suspect.take() {
            self.line.notify();
        }
    }

    /// Looks whether the endpoint still takes streams; to be called by the driver, after it has read.
    pub(super) fn look(&self, context: &mut Context<'_>) {
        {
            let mut driver = self.driver.borrow_mut();
            if !driver.will_wake(context.waker()) {
                driver.clone_from(context.waker());
            }
        }
        if self.leaving.get() {
            return;
        }
        let polled = self.send.borrow_mut().poll_ready(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(Err(error)) = polled {
            if error.is_go_away() && error.is_remote() {
                self.metrics.0.told_goodbye(self.metrics.1);
            }
            tracing::debug!(%error, "a connection to an endpoint takes no more requests");
            self.leave();
        }
    }

    /// Warns that the endpoint has sent something malformed on one stream.
    pub(super) fn complain(&self, fault: &dyn std::fmt::Display) {
        complain(&self.endpoint, fault, "the stream is reset and others go on");
    }

    pub(super) fn count_reset(&self) {
        self.metrics.0.stream_reset(self.metrics.1);
    }

    /// Bytes received so far.
    pub(super) fn read(&self) -> u64 {
        self.wire.read()
    }

    /// Bytes handed to the socket so far.
    pub(super) fn written(&self) -> u64 {
        self.wire.written()
    }

    pub(super) fn counters(&self) -> Counters {
        self.wire.counters()
    }

    /// How it is secured; none: it is not.
    pub(crate) fn target(&self) -> Option<&Arc<TlsTarget>> {
        self.target.as_ref()
    }

    pub(super) fn is_tls(&self) -> bool {
        self.target.is_some()
    }
}

/// One stream's place on its connection, from before it is opened until it is over.
#[derive(Debug)]
pub(crate) struct StreamLease {
    connection: Rc<H2Connection>,
    keep_alive: Duration,
    /// Whether the connection had carried a stream before.
    reused: bool,
}

impl StreamLease {
    /// A place; the caller has seen that there is room.
    pub(crate) fn new(connection: &Rc<H2Connection>, keep_alive: Duration) -> StreamLease {
        connection.lend();
        StreamLease { connection: connection.clone(), keep_alive, reused: connection.was_used() }
    }

    pub(crate) fn connection(&self) -> &Rc<H2Connection> {
        &self.connection
    }

    /// Whether the connection had carried a stream before this one.
    pub(crate) fn is_reused(&self) -> bool {
        self.reused
    }
}

impl Drop for StreamLease {
    fn drop(&mut self) {
        self.connection.give_back(subak_net::now().after(self.keep_alive));
    }
}
