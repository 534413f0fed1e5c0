//! Endpoints that speak HTTP/2: a thread with a runtime of its own, and a script for each connection.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use h2::server::{Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What a script is.
pub(crate) type Task = Pin<Box<dyn Future<Output = ()>>>;

/// An endpoint that speaks HTTP/2 by prior knowledge.
pub(crate) struct Http2Endpoint {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// What the endpoint has seen.
#[derive(Default)]
pub(crate) struct Shared {
    stopped: AtomicBool,
    accepted: AtomicUsize,
    ended: AtomicUsize,
    now: AtomicUsize,
    most: AtomicUsize,
    refused: AtomicUsize,
    requests: Mutex<Vec<Asked>>,
    resets: Mutex<Vec<Reason>>,
}

/// A request that was read to its end.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Counts the endpoint's connections, from 0.
    pub(crate) connection: usize,
    pub(crate) method: String,
    pub(crate) uri: String,
    pub(crate) fields: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Option<HeaderMap>,
}

impl Asked {
    /// The value of a field, empty without one.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", |value| value.to_str().expect("text"))
    }
}

/// One request as its script sees it.
pub(crate) struct Exchange {
    pub(crate) connection: usize,
    pub(crate) request: Request<RecvStream>,
    pub(crate) respond: SendResponse<Bytes>,
    pub(crate) shared: Arc<Shared>,
}

impl Http2Endpoint {
    /// Runs `script` for every connection; gives its number.
    pub(crate) fn scripted(
        script: impl Fn(usize, TcpStream, Arc<Shared>) -> Task + Send + 'static,
    ) -> Http2Endpoint {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bind an endpoint");
        listener.set_nonblocking(true).expect("non-blocking");
        let address = listener.local_addr().expect("its address");
        let shared = Arc::new(Shared::default());
        let seen = shared.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let accept = async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("register");
                while let Ok((stream, _)) = listener.accept().await {
                    if seen.stopped.load(Ordering::SeqCst) {
                        return;
                    }
                    let number = seen.accepted.fetch_add(1, Ordering::SeqCst);
                    let (task, seen) = (script(number, stream, seen.clone()), seen.clone());
                    tokio::task::spawn_local(async move {
                        task.await;
                        seen.ended.fetch_add(1, Ordering::SeqCst);
                    });
                }
            };
            tokio::task::LocalSet::new().block_on(&runtime.expect("runtime"), accept);
        });
        Http2Endpoint { address, shared }
    }

    /// Runs `script` for every request, on connections made by `builder`.
    pub(crate) fn serving(
        builder: impl Fn() -> h2::server::Builder + Send + 'static,
        script: impl Fn(Exchange) -> Task + Send + Sync + 'static,
    ) -> Http2Endpoint {
        let script = Arc::new(script);
        Http2Endpoint::scripted(move |number, stream, shared| {
            let (builder, script) = (builder(), script.clone());
            Box::pin(async move {
                let Ok(connection) = builder.handshake::<_, Bytes>(stream).await else { return };
                serve(number, connection, shared, &*script).await;
            })
        })
    }

    /// Answers every request by 200 and this.
    pub(crate) fn named(name: &'static str) -> Http2Endpoint {
        Http2Endpoint::serving(h2::server::Builder::new, move |exchange| {
            Box::pin(async move {
                let (_, respond) = exchange.read().await;
                answer(respond, Response::new(()), name).await;
            })
        })
    }

    /// As a configuration writes it.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Connections accepted so far.
    pub(crate) fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Connections that are open.
    pub(crate) fn open(&self) -> usize {
        self.accepted() - self.shared.ended.load(Ordering::SeqCst)
    }

    /// Requests under way, and the most there have been at once.
    pub(crate) fn under_way(&self) -> (usize, usize) {
        (self.shared.now.load(Ordering::SeqCst), self.shared.most.load(Ordering::SeqCst))
    }

    /// Requests read to their ends, in that order.
    pub(crate) fn requests(&self) -> Vec<Asked> {
        lock(&self.shared.requests).clone()
    }

    /// The only one.
    #[track_caller]
    pub(crate) fn request(&self) -> Asked {
        let mut requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        requests.remove(0)
    }

    /// Why streams were reset by Subak, as far as scripts have noted it.
    pub(crate) fn resets(&self) -> Vec<Reason> {
        lock(&self.shared.resets).clone()
    }
}

impl Drop for Http2Endpoint {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Only to wake the thread that accepts.
        let _ = std::net::TcpStream::connect(self.address);
    }
}

impl Shared {
    /// Requests read to their ends so far.
    pub(crate) fn read_so_far(&self) -> usize {
        lock(&self.requests).len()
    }

    /// Counts a stream that is refused; says how many were before.
    pub(crate) fn refuse_one(&self) -> usize {
        self.refused.fetch_add(1, Ordering::SeqCst)
    }

    /// Notes that Subak has reset a stream.
    pub(crate) fn note_reset(&self, reason: Reason) {
        lock(&self.resets).push(reason);
    }
}

/// Counts a request as under way.
struct UnderWay(Arc<Shared>);

impl UnderWay {
    fn begin(shared: &Arc<Shared>) -> UnderWay {
        let now = shared.now.fetch_add(1, Ordering::SeqCst) + 1;
        shared.most.fetch_max(now, Ordering::SeqCst);
        UnderWay(shared.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Serves a connection to its end: each request by the script, on a task of its own.
pub(crate) async fn serve(
    number: usize,
    mut connection: Connection<TcpStream, Bytes>,
    shared: Arc<Shared>,
    script: &dyn Fn(Exchange) -> Task,
) {
    while let Some(Ok((request, respond))) = connection.accept().await {
        let exchange = Exchange { connection: number, request, respond, shared: shared.clone() };
        let under_way = UnderWay::begin(&shared);
        let task = script(exchange);
        tokio::task::spawn_local(async move {
            task.await;
            drop(under_way);
        });
    }
}

impl Exchange {
    /// Reads the request to its end and notes it; nothing when it does not end.
    pub(crate) async fn read(self) -> (Option<Asked>, SendResponse<Bytes>) {
        let Exchange { connection, request, respond, shared } = self;
        let (parts, mut receive) = request.into_parts();
        let mut body = Vec::new();
        while let Some(data) = receive.data().await {
            let Ok(data) = data else { return (None, respond) };
            let _ = receive.flow_control().release_capacity(data.len());
            body.extend_from_slice(&data);
        }
        let Ok(trailers) = receive.trailers().await else { return (None, respond) };
        let asked = Asked {
            connection,
            method: parts.method.to_string(),
            uri: parts.uri.to_string(),
            fields: parts.headers,
            body,
            trailers,
        };
        lock(&shared.requests).push(asked.clone());
        (Some(asked), respond)
    }
}

/// Answers with a body, as fast as it is taken.
pub(crate) async fn answer(
    mut respond: SendResponse<Bytes>,
    head: Response<()>,
    body: impl Into<Bytes>,
) {
    let mut body = body.into();
    let Ok(mut send) = respond.send_response(head, body.is_empty()) else { return };
    while !body.is_empty() {
        send.reserve_capacity(body.len());
        let capacity = std::future::poll_fn(|context| send.poll_capacity(context)).await;
        let Some(Ok(capacity)) = capacity else { return };
        let part = body.split_to(capacity.min(body.len()));
        if send.send_data(part, body.is_empty()).is_err() {
            return;
        }
    }
}

/// Takes two streams, says goodbye naming only the first as looked at, and then answers that by
/// `body`. By hand, for the library looks at all that it has received.
pub(crate) async fn goodbye_after_one(mut stream: TcpStream, shared: Arc<Shared>, body: &str) {
    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await.expect("the preface");
    stream.write_all(&frame(SETTINGS, 0, 0, b"")).await.expect("settings");
    let mut under_way = Vec::new();
    while under_way.len() < 2 {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.expect("a frame");
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        stream.read_exact(&mut payload).await.expect("its payload");
        match (head[3], head[4]) {
            (HEADERS, _) => under_way.push(UnderWay::begin(&shared)),
            (SETTINGS, 0) => {
                stream.write_all(&frame(SETTINGS, 1, 0, b"")).await.expect("acknowledged");
            }
            _ => {}
        }
    }
    let goaway = frame(7, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]);
    // `:status: 200`, by its number in HPACK's table.
    let head = frame(HEADERS, 4, 1, &[0x88]);
    let data = frame(0, 1, 1, body.as_bytes());
    for part in [goaway, head, data] {
        stream.write_all(&part).await.expect("sent");
    }
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
    let head = [length[1], length[2], length[3], kind, flags];
    [&head, &stream.to_be_bytes()[..], payload].concat()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
