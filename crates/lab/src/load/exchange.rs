//! HTTP/2 connections that requests share, and one request on them.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use h2::Reason;
use h2::client::{self, SendRequest};
use http::{HeaderName, HeaderValue, Method, Request, Uri, Version};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Mutex;
use tokio_rustls::TlsConnector;

use super::check::{Check, MAX_CHECKED_BODY};
use super::plan::{LoadPlan, Protocol};
use super::recorder::{Answered, Times, nanos};
use super::report::Failure;
use super::secured;
use super::transport::Secured;

/// What a connection, and each of its streams, may send before it is told to go on: enough to keep
/// both ends busy.
const CONNECTION_WINDOW: u32 = 16 << 20;
const STREAM_WINDOW: u32 = 1 << 20;

/// Connections that one request may meet which have said goodbye. The last is opened for it, so that
/// nobody is ahead of it there.
const MOST_TRIES: usize = 8;

/// How an exchange ended, and when.
pub(super) struct Exchanged {
    pub(super) answer: Result<Answered, Failure>,
    pub(super) end_ns: u64,
}

/// Why there is no answer.
enum Broken {
    Failed(Failure),
    /// The other side has said that it did not look at the request: it is asked again, on another
    /// connection (RFC 9113, 6.8 and 8.7).
    Unread,
}

impl Broken {
    /// Of an exchange whose answer has not begun.
    fn by(error: &h2::Error) -> Broken {
        let refused = error.reason() == Some(Reason::REFUSED_STREAM);
        let goodbye = error.is_go_away() && error.reason() == Some(Reason::NO_ERROR);
        match error.is_remote() && (refused || goodbye) {
            true => Broken::Unread,
            false => Broken::Failed(Failure::Closed),
        }
    }
}

/// Bytes that went over all connections, and how many of these there were.
#[derive(Debug, Default)]
struct Traffic {
    received: Cell<u64>,
    sent: Cell<u64>,
    opened: Cell<u64>,
}

/// One connection, again and again.
struct Shared {
    target: SocketAddr,
    sender: Mutex<Option<SendRequest<Bytes>>>,
    streams: Cell<usize>,
}

impl Shared {
    fn to(target: SocketAddr) -> Shared {
        Shared { target, sender: Mutex::default(), streams: Cell::new(0) }
    }
}

/// All of them.
pub(super) struct Connections {
    secured: Option<Secured>,
    all: Vec<Shared>,
    traffic: Rc<Traffic>,
    /// Why connections could not be made, since that was last asked.
    unconnected: RefCell<Vec<io::Error>>,
    next_source: Cell<usize>,
    /// What is asked for, with a place for X-Forwarded-For.
    requests: Vec<(Request<()>, Bytes)>,
    keeps: bool,
}

impl Connections {
    pub(super) fn new(plan: &LoadPlan) -> Connections {
        let count = match plan.protocol {
            Protocol::Http2 { connections } => connections,
            Protocol::Http1 => 1,
        };
        let of = |place: usize| plan.targets[place % plan.targets.len()];
        Connections {
            secured: secured(plan, b"h2"),
            all: (0..count).map(|place| Shared::to(of(place))).collect(),
            traffic: Rc::default(),
            unconnected: RefCell::default(),
            next_source: Cell::new(0),
            requests: plan.requests.iter().filter_map(|one| encode(plan, one)).collect(),
            keeps: plan.checks.iter().any(Check::wants_body),
        }
    }

    pub(super) fn traffic(&self) -> (u64, u64, u64) {
        (self.traffic.received.get(), self.traffic.sent.get(), self.traffic.opened.get())
    }

    pub(super) fn forget_traffic(&self) {
        self.traffic.received.set(0);
        self.traffic.sent.set(0);
        self.traffic.opened.set(0);
    }

    /// Why connections could not be made, since this was last called.
    pub(super) fn unconnected(&self) -> Vec<io::Error> {
        self.unconnected.take()
    }

    /// Asks this target by its connection with the fewest streams; `who` is the place of the address
    /// that X-Forwarded-For names.
    pub(super) async fn exchange(
        &self,
        plan: &LoadPlan,
        target: usize,
        question: usize,
        who: usize,
        times: &mut Times,
        origin: Instant,
    ) -> Exchanged {
        let now = || nanos(origin.elapsed());
        let of_target = self.all.iter().skip(target).step_by(plan.targets.len());
        let shared = of_target.min_by_key(|shared| shared.streams.get());
        let (Some(shared), Some((request, body))) = (shared, self.requests.get(question)) else {
            return Exchanged { answer: Err(Failure::Connect), end_ns: now() };
        };
        let _stream = Counter::new(&shared.streams);
        let mut request = request.clone();
        if let Some(address) = plan.sources.forwarded.get(who)
            && let Ok(address) = HeaderValue::from_str(&address.to_string())
        {
            request.headers_mut().insert("x-forwarded-for", address);
        }
        let mut answer = Err(Failure::Closed);
        for tries in 1..=MOST_TRIES {
            if tries == MOST_TRIES {
                *shared.sender.lock().await = None;
            }
            match self.ask(plan, shared, request.clone(), body.clone(), times, &now).await {
                Ok(answered) => answer = Ok(answered),
                Err(Broken::Failed(kind)) => answer = Err(kind),
                Err(Broken::Unread) => continue,
            }
            break;
        }
        Exchanged { answer, end_ns: now() }
    }

    async fn ask(
        &self,
        plan: &LoadPlan,
        shared: &Shared,
        request: Request<()>,
        body: Bytes,
        times: &mut Times,
        now: &impl Fn() -> u64,
    ) -> Result<Answered, Broken> {
        let mut sender = self.sender(plan, shared, times, now).await?;
        times.ready = now();
        let sent = sender.send_request(request, body.is_empty());
        let (answer, mut stream) = sent.map_err(|error| Broken::by(&error))?;
        if !body.is_empty() {
            stream.send_data(body, true).map_err(|error| Broken::by(&error))?;
        }
        times.sent = now();
        let answer = answer.await.map_err(|error| Broken::by(&error))?;
        let (head, mut received) = answer.into_parts();
        times.first = now();
        let (mut length, mut kept) = (0, Vec::new());
        while let Some(data) = received.data().await {
            let data = data.map_err(|_| Broken::Failed(Failure::Closed))?;
            let _ = received.flow_control().release_capacity(data.len());
            length += data.len() as u64;
            if self.keeps && kept.len() < MAX_CHECKED_BODY {
                kept.extend_from_slice(&data);
            }
        }
        let status = head.status.as_u16();
        let field = |name: &str| head.headers.get(name).map(|value| value.as_bytes());
        let checks = plan.checks.iter().enumerate();
        let failed_checks = checks.fold(0, |failed, (index, check)| {
            failed | u32::from(!check.holds(status, field, &kept)) << index
        });
        Ok(Answered { status, body: length, failed_checks })
    }

    /// The connection, ready for one more stream; opened if it is not there. One that is going away makes
    /// room for another.
    async fn sender(
        &self,
        plan: &LoadPlan,
        shared: &Shared,
        times: &mut Times,
        now: &impl Fn() -> u64,
    ) -> Result<SendRequest<Bytes>, Broken> {
        let mut place = shared.sender.lock().await;
        let sender = match &*place {
            Some(sender) => sender.clone(),
            None => {
                let opened =
                    self.open(plan, shared.target, times, now).await.map_err(Broken::Failed)?;
                *place = Some(opened.clone());
                opened
            }
        };
        drop(place);
        match sender.ready().await {
            Ok(sender) => Ok(sender),
            Err(_) => {
                *shared.sender.lock().await = None;
                Err(Broken::Unread)
            }
        }
    }

    async fn open(
        &self,
        plan: &LoadPlan,
        target: SocketAddr,
        times: &mut Times,
        now: &impl Fn() -> u64,
    ) -> Result<SendRequest<Bytes>, Failure> {
        let start_ns = now();
        let stream = self.connect(plan, target).await.map_err(|error| {
            self.unconnected.borrow_mut().push(error);
            Failure::Connect
        })?;
        times.connecting = now().saturating_sub(start_ns);
        self.traffic.opened.set(self.traffic.opened.get() + 1);
        let stream = Counted { stream, traffic: self.traffic.clone() };
        match &self.secured {
            None => handshake(stream).await,
            Some(Secured { config, name }) => {
                let start_ns = now();
                let connector = TlsConnector::from(config.clone());
                let stream = connector.connect(name.clone(), stream).await;
                let stream = stream.map_err(|_| Failure::Tls)?;
                times.tls = now().saturating_sub(start_ns);
                if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
                    return Err(Failure::Tls);
                }
                handshake(stream).await
            }
        }
    }

    async fn connect(&self, plan: &LoadPlan, target: SocketAddr) -> io::Result<TcpStream> {
        let socket = match target.is_ipv4() {
            true => TcpSocket::new_v4()?,
            false => TcpSocket::new_v6()?,
        };
        let sources = &plan.sources.bind;
        if !sources.is_empty() {
            let index = self.next_source.replace(self.next_source.get() + 1);
            socket.bind((sources[index % sources.len()], 0).into())?;
        }
        socket.set_nodelay(true)?;
        socket.connect(target).await
    }
}

/// HTTP/2's preface and settings; the connection goes on by itself.
async fn handshake<S>(stream: S) -> Result<SendRequest<Bytes>, Failure>
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let mut builder = client::Builder::new();
    builder
        .initial_connection_window_size(CONNECTION_WINDOW)
        .initial_window_size(STREAM_WINDOW)
        .enable_push(false);
    let shaken = builder.handshake(stream).await;
    let (sender, connection) = shaken.map_err(|_| Failure::Connect)?;
    // Why it ends, its streams say.
    tokio::task::spawn_local(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

fn encode(plan: &LoadPlan, request: &super::Request) -> Option<(Request<()>, Bytes)> {
    let scheme = if plan.tls.is_some() { "https" } else { "http" };
    let named = |name: &str| {
        let found = request.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| &**value)
    };
    let uri = Uri::builder()
        .scheme(scheme)
        .authority(named("host").unwrap_or(&plan.host))
        .path_and_query(&*request.path)
        .build()
        .ok()?;
    let mut made = Request::builder()
        .version(Version::HTTP_2)
        .method(Method::from_bytes(request.method.as_bytes()).ok()?)
        .uri(uri)
        .body(())
        .ok()?;
    let fields = request.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host"));
    for (name, value) in fields {
        let name = HeaderName::from_bytes(name.to_ascii_lowercase().as_bytes()).ok()?;
        made.headers_mut().append(name, HeaderValue::from_str(value).ok()?);
    }
    Some((made, Bytes::from(request.body.clone())))
}

/// Why a request cannot be said in HTTP/2, if so.
pub(super) fn fault(plan: &LoadPlan) -> Option<String> {
    let odd = plan.requests.iter().find(|request| encode(plan, request).is_none())?;
    Some(format!("{} {} cannot be asked by HTTP/2", odd.method, odd.path))
}

/// One more while it lives.
struct Counter<'a>(&'a Cell<usize>);

impl Counter<'_> {
    fn new(count: &Cell<usize>) -> Counter<'_> {
        count.set(count.get() + 1);
        Counter(count)
    }
}

impl Drop for Counter<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// A stream whose bytes are counted.
struct Counted {
    stream: TcpStream,
    traffic: Rc<Traffic>,
}

impl AsyncRead for Counted {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(context, buffer);
        let count = buffer.filled().len() - before;
        this.traffic.received.set(this.traffic.received.get() + count as u64);
        polled
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(count)) = polled {
            this.traffic.sent.set(this.traffic.sent.get() + count as u64);
        }
        polled
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
