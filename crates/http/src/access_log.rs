//! The access log of one listener: what is noted of a request on its way, and the line at its end.
//!
//! Off, it costs a branch where something would be noted. On, moments that exist anyway are used, and
//! the clock is read only for what a format wants to know.

use std::cell::Cell;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use subak_access_log::{Captured, Choice, Compiled, Entry, Headers, Sink, Sinks, Sticking, Wanted};
use subak_base::Tick;
use subak_config::AccessLog;
use subak_message::grpc::Code;
use subak_message::{Fields, Known, RequestHead};
use subak_net::{PeerAddress, now};
use subak_telemetry::Cause;

use crate::key::Ends;
use crate::plan::PoolPlan;
use crate::route::Route;
use crate::service::Service;
use crate::worker::{Heads, Worker};

/// Where logs are opened, and what is said of the configuration that names them.
#[derive(Debug)]
pub struct Logging<'a> {
    /// All sinks of the process.
    pub sinks: &'a mut Sinks,
    /// Of the configuration.
    pub generation: u64,
}

/// The access logs of one listener; with at least one.
#[derive(Debug)]
pub(crate) struct AccessLogs {
    logs: Box<[Log]>,
    wanted: Wanted,
    /// The headers that are wanted, told apart once.
    headers: Box<[(Known, Box<[u8]>)]>,
}

#[derive(Debug)]
struct Log {
    sink: Arc<Sink>,
    compiled: Compiled,
    choice: Choice,
}

/// What has happened to one request so far, beside where it went.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Story {
    pub(crate) client: Option<IpAddr>,
    pub(crate) began: Option<Tick>,
    pub(crate) ended: Option<Tick>,
    pub(crate) head: Duration,
    pub(crate) queue: Duration,
    pub(crate) connect: Duration,
    /// Of that, for TLS.
    pub(crate) endpoint_handshake: Duration,
    pub(crate) picked: Option<Tick>,
    pub(crate) first_byte: Option<Tick>,
    pub(crate) tries: u32,
    /// The endpoint that was tried last.
    pub(crate) endpoint: Option<usize>,
    pub(crate) stick: Option<Sticking>,
    /// What the client was answered; 0: nothing.
    pub(crate) status: u16,
    pub(crate) failure: Option<Cause>,
    /// Whether it is a gRPC call,
    pub(crate) is_call: bool,
    /// and how that ended.
    pub(crate) code: Option<Code>,
}

/// Where one request went.
#[derive(Debug, Default)]
pub(crate) struct Went<'a> {
    pub(crate) route: Cell<Option<&'a Route>>,
    pub(crate) plan: Cell<Option<&'a PoolPlan>>,
}

/// What was moved for one request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moved {
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// Of those out, what heads took.
    pub(crate) head_bytes_out: u64,
}

/// The client's connection.
#[derive(Clone, Copy)]
pub(crate) struct Through<'a> {
    pub(crate) worker: &'a Worker,
    pub(crate) ends: &'a Ends,
    pub(crate) is_tls: bool,
    pub(crate) tls: Option<&'static str>,
    /// How long the handshake took that this request is the first behind.
    pub(crate) handshake: Duration,
}

impl AccessLogs {
    /// Compiles the logs of a listener; none where there is none.
    pub(crate) fn build(
        logs: &[AccessLog],
        listener: &str,
        logging: &mut Logging<'_>,
    ) -> Option<AccessLogs> {
        if logs.is_empty() {
            return None;
        }
        let mut wanted = Wanted::default();
        let mut compile = |log: &AccessLog| Log {
            sink: logging.sinks.sink(&log.destination, log.flush),
            compiled: log.format.compile(
                &mut wanted,
                (listener, logging.generation),
                log.syslog.as_ref(),
            ),
            choice: log.choice,
        };
        let logs = logs.iter().map(&mut compile).collect();
        let header = |name: &[u8]| (Known::classify(name), name.into());
        let headers = wanted.request_headers.iter().map(|name| header(name)).collect();
        Some(AccessLogs { logs, wanted, headers })
    }

    /// What the lines want to know.
    pub(crate) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Keeps of a request what is wanted of it, before anything is changed in it.
    pub(crate) fn capture(&self, request: &RequestHead, captured: &mut Captured) {
        captured.begin(request.method_text(), request.path(), request.query(), request.host());
        for (known, name) in &self.headers {
            captured.push(by_name(&request.fields, *known, name));
        }
    }

    /// Writes the lines of a request that is over.
    pub(crate) fn write(
        &self,
        (service, went): (&Service, &Went<'_>),
        heads: &Heads,
        moved: Moved,
        through: Through<'_>,
    ) {
        let story = &heads.story;
        let worker = through.worker;
        let answer = Answer(&heads.answer.fields);
        let mut entry = None;
        for log in &self.logs {
            let random = || worker.handle.random();
            if !log.choice.takes(story.status, story.failure, random) {
                continue;
            }
            let make = || make((service, went), (heads, &answer), moved, through);
            let entry = entry.get_or_insert_with(make);
            worker.logs.append(&log.sink, &log.compiled, entry);
        }
    }
}

fn make<'e, 'w: 'e>(
    (service, went): (&'e Service, &Went<'w>),
    (heads, answer): (&'e Heads, &'e Answer<'e>),
    moved: Moved,
    through: Through<'_>,
) -> Entry<'e> {
    let story = &heads.story;
    let ended = story.ended.unwrap_or_else(now);
    let plan = went.plan.get();
    let endpoint = plan.zip(story.endpoint).and_then(|(plan, index)| plan.pool.endpoint(index));
    let peer = match through.ends.peer {
        PeerAddress::Inet(address) => Some((address.ip(), address.port())),
        PeerAddress::Unix => None,
    };
    Entry {
        began: story.began.unwrap_or(ended),
        ended,
        client: story.client.or(through.ends.peer.ip()),
        peer,
        request: &heads.captured,
        is_tls: through.is_tls,
        tls: through.tls,
        protocol: heads.request.version.as_str(),
        status: story.status,
        grpc_status: story.code.map(|code| code as u8),
        answer,
        bytes_in: moved.bytes_in,
        bytes_out: moved.bytes_out,
        head_bytes_out: moved.head_bytes_out,
        route: went.route.get().and_then(|route| service.place_of(route)),
        pool: plan.map(|plan| plan.pool.name()),
        endpoint: endpoint.map(|endpoint| endpoint.name()),
        tries: story.tries,
        stick: story.stick,
        head: story.head,
        queue: story.queue,
        handshake: through.handshake,
        connect: story.connect,
        endpoint_handshake: story.endpoint_handshake,
        picked: story.picked,
        first_byte: story.first_byte,
        failure: story.failure,
        decision: heads.decision.map(|decision| decision.get()),
    }
}

/// The answer's fields, by name.
#[derive(Debug)]
struct Answer<'a>(&'a Fields);

impl Headers for Answer<'_> {
    fn get(&self, name: &[u8]) -> Option<&[u8]> {
        by_name(self.0, Known::classify(name), name)
    }
}

fn by_name<'a>(fields: &'a Fields, known: Known, name: &[u8]) -> Option<&'a [u8]> {
    match known {
        Known::Other | Known::Lookalike => fields.get_named(name),
        known => fields.get(known),
    }
}
