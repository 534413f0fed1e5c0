//! What keeps a connection to an endpoint going: reads and writes for all its streams, notices when
//! the endpoint says goodbye, and asks for a sign of life where there is reason to doubt.
//!
//! Asking costs the endpoint a PING, and some count them (gRPC servers close on more than a few in five
//! minutes). So without `streams.ping` one is sent only after an exchange has timed out.

use std::pin::Pin;
use std::rc::Weak;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::client::Connection;
use h2::{Ping, PingPong};
use subak_net::{Deadline, SharedStream};

use super::complaint::complain;
use super::connection::H2Connection;
use crate::endpoints::Slot;

/// How long an endpoint may take to hear the goodbye.
const GOODBYE: Duration = Duration::from_secs(2);

/// A connection with what its driver needs.
pub(super) struct Driven {
    pub(super) connection: Connection<SharedStream, Bytes>,
    pub(super) pings: Option<PingPong>,
    /// None any more when nobody has a use for it.
    pub(super) shared: Weak<H2Connection>,
    /// Silence after which an endpoint with requests is asked.
    pub(super) silence: Option<Duration>,
    /// How long it may take to answer.
    pub(super) patience: Duration,
    /// After the connection, so that it is closed before its place is free.
    pub(super) slot: Slot,
}

/// Drives a connection to its end.
pub(super) async fn drive(driven: Driven) {
    let Driven { mut connection, pings, shared, silence, patience, slot } = driven;
    let mut watch = Watch { pings, silence, patience, ..Watch::default() };
    let mut goodbye = false;
    std::future::poll_fn(|context| {
        if let Poll::Ready(ended) = Pin::new(&mut connection).poll(context) {
            if let Err(error) = ended {
                if error.is_library() {
                    let consequence = "the connection is closed, and its requests fail";
                    complain(slot.endpoint(), &error, consequence);
                }
                tracing::debug!(%error, "a connection to an endpoint has ended");
            }
            // Its last words may have come together with its end.
            if let Some(shared) = shared.upgrade() {
                shared.look(context);
            }
            return Poll::Ready(());
        }
        if let Some(shared) = shared.upgrade() {
            shared.look(context);
            return watch.poll(&shared, context);
        }
        // The library closes it as soon as the last stream has ended.
        if !std::mem::replace(&mut goodbye, true) {
            watch.deadline.set(GOODBYE);
        }
        match watch.deadline.expired(context) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    drop(connection);
    drop(slot);
    if let Some(shared) = shared.upgrade() {
        shared.leave();
    }
}

/// Looks whether the endpoint is still there.
#[derive(Default)]
struct Watch {
    pings: Option<PingPong>,
    silence: Option<Duration>,
    patience: Duration,
    deadline: Deadline,
    /// Bytes received when it was last looked; none while nothing is waited for.
    seen: Option<u64>,
    /// Whether it has been asked since.
    asked: bool,
    pong_is_due: bool,
}

impl Watch {
    /// Ready when the endpoint is gone.
    fn poll(&mut self, shared: &H2Connection, context: &mut Context<'_>) -> Poll<()> {
        if let (Some(pings), true) = (&mut self.pings, self.pong_is_due)
            && pings.poll_pong(context).is_ready()
        {
            self.pong_is_due = false;
        }
        let read = shared.read();
        if self.seen.is_some_and(|seen| seen != read) {
            (self.seen, self.asked) = (None, false);
            self.deadline.clear();
            shared.clear();
        }
        if self.asked {
            if !self.deadline.expired(context) {
                return Poll::Pending;
            }
            tracing::debug!("an endpoint gives no sign of life: its connection is closed");
            return Poll::Ready(());
        }
        if shared.is_suspect() {
            return self.ask(read, context);
        }
        let Some(silence) = self.silence.filter(|_| shared.streams() > 0) else {
            self.seen = None;
            return Poll::Pending;
        };
        if self.seen.is_none() {
            self.seen = Some(read);
            self.deadline.set(silence);
        }
        match self.deadline.expired(context) {
            true => self.ask(read, context),
            false => Poll::Pending,
        }
    }

    fn ask(&mut self, read: u64, context: &mut Context<'_>) -> Poll<()> {
        if let (Some(pings), false) = (&mut self.pings, self.pong_is_due) {
            self.pong_is_due = pings.send_ping(Ping::opaque()).is_ok();
        }
        (self.seen, self.asked) = (Some(read), true);
        self.deadline.set(self.patience);
        // Also registers for the end of the limit; it cannot be over yet.
        match self.deadline.expired(context) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}
