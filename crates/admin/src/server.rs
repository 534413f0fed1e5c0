//! Accepts, reads requests, asks the control side, answers.
//!
//! Bounds, for a client that does its worst: 64 connections, of which those that have not passed the
//! gate give way ([`places`](crate::places)), a head of 16 KiB in 5 s, a body of 4 KiB in 5 s, 60 s of
//! idleness, 10 s in which nothing of an answer is taken. An answer is made whole before it is sent:
//! one in memory for each connection at most; long ones are [written](crate::writer) one at a time.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::TRANSFER_ENCODING;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::answer::{Answer, Refusal};
use crate::command::{Command, Overview};
use crate::explain;
use crate::gate::Gate;
use crate::places::{Acquaintance, Places};
use crate::resource::Resource;
use crate::routes::{self, Asked};
use crate::socket::{Listening, Opened, SocketFile};
use crate::who;
use crate::writer::Writer;

/// Bytes of a head.
const HEAD_BYTES: usize = 16 * 1024;
/// Bytes of a body; the largest that says something has about forty.
const BODY_BYTES: usize = 4 * 1024;
/// For a head, for a body, and for the control side to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// For a connection on which nothing comes.
const IDLE: Duration = Duration::from_secs(60);
/// For a client to take something of its answer.
const TAKES: Duration = Duration::from_secs(10);
/// Before accepting is tried again when there is no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// An Admin API that answers. Ends with all its connections when it is dropped; on a tokio runtime.
#[derive(Debug)]
pub struct Serving {
    place: String,
    file: Option<SocketFile>,
    closing: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// What all connections of one server share.
pub(crate) struct Shared {
    pub(crate) gate: Gate,
    commands: mpsc::Sender<Command>,
    writer: Writer,
}

/// Somebody who has connected.
struct Arrival<S> {
    stream: S,
    from: Option<IpAddr>,
    by: Arc<str>,
}

impl Serving {
    /// Answers who comes through this door and passes the gate. What is asked goes to `commands`.
    ///
    /// # Errors
    /// When the runtime cannot watch the socket, or there can be no thread to write answers.
    pub fn begin(
        opened: Opened,
        gate: Gate,
        commands: mpsc::Sender<Command>,
    ) -> io::Result<Serving> {
        let Opened { listening, place, file } = opened;
        let shared = Arc::new(Shared { gate, commands, writer: Writer::start()? });
        let (closing, closed) = watch::channel(false);
        let task = match listening {
            Listening::Unix(listener) => {
                let listener = UnixListener::from_std(listener)?;
                let accept = async move || {
                    let (stream, _) = listener.accept().await?;
                    let by = who::at_socket(&stream);
                    Ok(Arrival { stream, from: None, by })
                };
                tokio::spawn(accept_all(accept, shared, closed))
            }
            Listening::Tcp(listener) => {
                let listener = TcpListener::from_std(listener)?;
                let accept = async move || {
                    let (stream, peer) = listener.accept().await?;
                    let by = who::at_address(peer.ip());
                    Ok(Arrival { stream, from: Some(peer.ip()), by })
                };
                tokio::spawn(accept_all(accept, shared, closed))
            }
        };
        Ok(Serving { place, file, closing, task })
    }

    /// Where clients go.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Accepts nobody any more and leaves the path to a successor; who is here may go on.
    pub fn close(&mut self) {
        self.file = None;
        self.closing.send_replace(true);
    }

    /// Ends it with all its connections. Afterwards its address is free.
    pub async fn end(mut self) {
        self.close();
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Its connections are tasks that belong to it.
        self.task.abort();
    }
}

async fn accept_all<S>(
    accept: impl AsyncFn() -> io::Result<Arrival<S>>,
    shared: Arc<Shared>,
    mut closed: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut connections, mut places) = (JoinSet::new(), Places::default());
    // Without a place it waits for one, and those behind it to be accepted.
    let mut newcomer: Option<Arrival<S>> = None;
    loop {
        if let Some(Arrival { stream, from, by }) =
            newcomer.take_if(|newcomer| places.make_room(newcomer.from))
        {
            let acquaintance = Acquaintance::default();
            let task = connections.spawn(serve(stream, by, shared.clone(), acquaintance.clone()));
            places.take(from, acquaintance, task);
        }
        tokio::select! {
            _ = closed.changed() => break,
            Some(ended) = connections.join_next_with_id() => {
                places.leave(ended.map_or_else(|error| error.id(), |(id, ())| id));
            }
            accepted = accept(), if newcomer.is_none() => match accepted {
                Ok(accepted) => newcomer = Some(accepted),
                Err(error) => {
                    tracing::debug!(%error, "the Admin API cannot accept");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop((accept, newcomer));
    while connections.join_next().await.is_some() {}
}

async fn serve<S>(stream: S, by: Arc<str>, shared: Arc<Shared>, acquaintance: Acquaintance)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = TokioIo::new(crate::patience::Patient::new(stream, IDLE, TAKES));
    let service = service_fn(|request| {
        let (by, shared, acquaintance) = (by.clone(), shared.clone(), acquaintance.clone());
        async move { Ok::<_, Infallible>(answer(request, &by, &shared, &acquaintance).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(HEAD_BYTES);
    if let Err(error) = pin!(builder.serve_connection(stream, service)).await {
        tracing::debug!(%error, "a connection to the Admin API ended early");
    }
}

async fn answer(
    request: Request<Incoming>,
    by: &Arc<str>,
    shared: &Shared,
    acquaintance: &Acquaintance,
) -> Answer {
    respond(request, by, shared, acquaintance).await.unwrap_or_else(Refusal::into_answer)
}

async fn respond(
    request: Request<Incoming>,
    by: &Arc<str>,
    shared: &Shared,
    acquaintance: &Acquaintance,
) -> Result<Answer, Refusal> {
    let (parts, body) = request.into_parts();
    shared.gate.check(&parts.uri, &parts.headers)?;
    acquaintance.make_known();
    check_framing(&parts.headers)?;
    let resource = Resource::find(parts.uri.path())?;
    resource.check(&parts.method)?;
    let most = match resource.route.path {
        "/v1/explain" => explain::BODY_BYTES,
        _ => BODY_BYTES,
    };
    let body = read(body, most).await?;
    let (method, target, fields) = (&parts.method, &parts.uri, &parts.headers);
    let asked = Asked { resource, method, target, fields, body, by };
    routes::answer(asked, shared).await
}

impl Shared {
    /// Asks the control side, which may be in the middle of a reload.
    pub(crate) async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, Refusal> {
        let (reply, told) = oneshot::channel();
        let asked = async {
            self.commands.send(command(reply)).await.ok()?;
            told.await.ok()
        };
        timeout(PATIENCE, asked).await.ok().flatten().ok_or_else(|| {
            let error = "there was no answer in time";
            let hint = "it may be busy with a reload, or about to end; try again";
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error, hint)
        })
    }

    /// Writes a long answer in its turn, on another thread: of a thousand endpoints that takes
    /// milliseconds, which the control side has better uses for.
    pub(crate) async fn written(
        &self,
        write: impl FnOnce() -> Answer + Send + 'static,
    ) -> Result<Answer, Refusal> {
        let turn = self.writer.turn().await;
        let written = match turn {
            Some(turn) => turn.write(write).await,
            None => None,
        };
        written.ok_or_else(not_written)
    }

    /// Looks, and writes what there is to see: of it all, or of one pool.
    pub(crate) async fn shown(
        &self,
        pool: Option<String>,
        write: impl FnOnce(&Overview) -> Answer + Send + 'static,
    ) -> Result<Answer, Refusal> {
        let turn = self.writer.turn().await.ok_or_else(not_written)?;
        let overview = self.ask(|reply| Command::Look { pool, reply }).await?;
        turn.write(move || write(&overview)).await.ok_or_else(not_written)
    }
}

fn not_written() -> Refusal {
    let hint = "that is a fault of Subak's; its log says more";
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the answer could not be written", hint)
}

/// No `Transfer-Encoding`: hyper drops a `Content-Length` beside one, so that here the two together,
/// which another hop may read otherwise, look the same as one alone. A body of 4 KiB needs no chunks.
fn check_framing(fields: &HeaderMap) -> Result<(), Refusal> {
    if !fields.contains_key(TRANSFER_ENCODING) {
        return Ok(());
    }
    let error = "a request may not have Transfer-Encoding here";
    let hint = "send the body at once, with its Content-Length alone";
    Err(Refusal::new(StatusCode::BAD_REQUEST, error, hint).closing())
}

async fn read(body: Incoming, most: usize) -> Result<Bytes, Refusal> {
    let too_large = || {
        let error = format!("the body has more than {most} bytes");
        let hint = "what can be set fits into forty";
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, error, hint).closing()
    };
    if body.size_hint().lower() > most as u64 {
        return Err(too_large());
    }
    match timeout(PATIENCE, Limited::new(body, most).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => {
            let error = format!("the body cannot be read: {error}");
            Err(Refusal::new(StatusCode::BAD_REQUEST, error, "send it again").closing())
        }
        Err(_) => {
            let error = "the body did not come in time";
            Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, error, "send it at once").closing())
        }
    }
}
