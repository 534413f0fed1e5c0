//! What can go wrong with a request: in which phase, whose fault it is, and what the client is told.

use std::io;

use h2::Reason;
use subak_limits::NoEntry;
use subak_message::HeadError;
use subak_message::grpc::Code;
use subak_message::h1::ChunkedError;
use subak_net::tls::TlsFailure;
use subak_pool::Outcome;
use subak_telemetry::{Blame, Cause};

use crate::limits::{self, Over};

/// Whose fault a failure is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// The client sent nonsense, was too slow, or left.
    Client,
    /// The endpoint refused, was too slow, sent nonsense, or broke off.
    Endpoint,
    /// Subak has no room, or nobody to ask.
    Us,
}

/// What the client did wrong in an exchange.
#[derive(Debug)]
pub(crate) enum ClientFault {
    /// It left or reset the connection.
    Gone,
    /// It ended its side in the middle of a body.
    Cut,
    /// Its chunked body cannot be read.
    Chunked(ChunkedError),
    /// The trailers of its body are malformed.
    Trailers(HeadError),
    /// Its body is larger than allowed.
    BodyTooLarge,
    /// The time is over that it gave its own call.
    Late,
    /// It takes nothing of this answer, nor of as many others as may wait for it.
    Stalled,
}

/// What the endpoint did wrong in an exchange.
#[derive(Debug)]
pub(crate) enum EndpointFault {
    /// The connection failed or was closed.
    Broken(Option<io::Error>),
    /// The head of its answer cannot be read.
    Head(HeadError),
    /// The body of its answer cannot be read.
    Chunked(ChunkedError),
    /// It ended its side in the middle of a body.
    Cut,
    /// The body of its answer is longer than announced.
    TooLong,
    /// It reset the stream.
    Reset(Reason),
    /// It is closing the connection and has not looked at the request.
    Leaving(Reason),
    /// It broke the rules of HTTP/2.
    Protocol(Reason),
    /// The request cannot be written in the endpoint's protocol.
    Unsendable(HeadError),
}

/// Why a request was not served.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request's head cannot be read.
    BadHead(HeadError),
    /// The method is refused by configuration.
    MethodRefused,
    /// The client's network may not in here.
    Denied,
    /// A limit is reached.
    Over(Over),
    /// The pool's circuit lets nothing through, for so long.
    Circuit(NoEntry),
    /// No route matches, and the listener has no pool of its own.
    NoRoute,
    /// The listener does not speak HTTP/1.
    NotSpoken,
    /// The client speaks HTTP without TLS where TLS is spoken.
    NoTls,
    /// The client failed while its body was read or its answer written.
    Client(ClientFault),
    /// The client sent or took too little in too long a time.
    ClientSlow {
        /// Whether it was to send (else to take).
        sending: bool,
    },
    /// No endpoint is left that could serve the request.
    NoEndpoint,
    /// The wait queue is full.
    QueueFull,
    /// Nothing came free in the time a request may wait.
    QueueTimeout,
    /// No connection could be made.
    Connect(io::Error),
    /// A connection was made, and no TLS on it.
    Tls(TlsFailure),
    /// No connection was made in time.
    ConnectTimeout,
    /// This process has no descriptor left for a connection to an endpoint.
    Exhausted(io::Error),
    /// Buffers hold as much as they may.
    NoMemory,
    /// This machine has no port left for a connection to the endpoint.
    NoPort(io::Error),
    /// The endpoint failed in the exchange.
    Endpoint(EndpointFault),
    /// The endpoint did not begin to answer in time.
    FirstByteTimeout,
    /// The endpoint stopped in the middle of its answer, or took nothing of the request for too long.
    EndpointIdle,
    /// The answer has a status that is to be tried elsewhere.
    RetryStatus(u16),
    /// The same of a gRPC call.
    RetryCall(Code),
    /// The client asks to switch protocols, and the endpoint speaks HTTP/2, where nothing but a WebSocket
    /// can be had.
    NoSwitch {
        /// A WebSocket it is, and the endpoint has not said that it takes them.
        websocket: bool,
    },
    /// An endpoint of HTTP/1.1 answered an HTTP/2 client's WebSocket handshake by this status, a success
    /// without the switch. The client would take any 2xx for an open WebSocket (RFC 8441, 5).
    NotSwitched(u16),
}

impl Failure {
    /// Whose fault it is.
    pub(crate) fn fault(&self) -> Fault {
        match self.cause().blame() {
            Blame::Client => Fault::Client,
            Blame::Endpoint => Fault::Endpoint,
            Blame::Subak => Fault::Us,
        }
    }

    /// What it is counted as.
    pub(crate) fn cause(&self) -> Cause {
        match self {
            Failure::BadHead(_) => Cause::BadHead,
            Failure::MethodRefused => Cause::MethodRefused,
            Failure::Denied => Cause::Denied,
            Failure::Over(Over::Rate { .. }) => Cause::RateLimited,
            Failure::Over(Over::InFlight(_)) => Cause::TooManyAtOnce,
            Failure::Circuit(NoEntry::Open(_)) => Cause::CircuitOpen,
            Failure::Circuit(NoEntry::Full) => Cause::CircuitFull,
            Failure::NoRoute => Cause::NoRoute,
            Failure::NotSpoken => Cause::NotSpoken,
            Failure::NoTls => Cause::NoTls,
            Failure::Client(ClientFault::Gone) => Cause::ClientGone,
            Failure::Client(
                ClientFault::Cut | ClientFault::Chunked(_) | ClientFault::Trailers(_),
            ) => Cause::BadBody,
            Failure::Client(ClientFault::BodyTooLarge) => Cause::BodyTooLarge,
            Failure::Client(ClientFault::Late) => Cause::CallDeadline,
            Failure::ClientSlow { .. } | Failure::Client(ClientFault::Stalled) => Cause::ClientSlow,
            Failure::NoEndpoint => Cause::NoEndpoint,
            Failure::QueueFull => Cause::QueueFull,
            Failure::QueueTimeout => Cause::QueueTimeout,
            Failure::Exhausted(_) => Cause::OutOfDescriptors,
            Failure::NoMemory => Cause::OutOfMemory,
            Failure::NoPort(_) => Cause::NoPorts,
            Failure::Connect(_) => Cause::Connect,
            Failure::Tls(_) => Cause::Tls,
            Failure::ConnectTimeout => Cause::ConnectTimeout,
            Failure::Endpoint(_) => Cause::Broken,
            Failure::FirstByteTimeout => Cause::FirstByteTimeout,
            Failure::EndpointIdle => Cause::EndpointIdle,
            Failure::RetryStatus(_) | Failure::RetryCall(_) => Cause::RetryStatus,
            Failure::NoSwitch { .. } | Failure::NotSwitched(_) => Cause::NoSwitch,
        }
    }

    /// The status the client is answered with while nothing of an answer has left; none when there is
    /// nobody to answer.
    pub(crate) fn status(&self) -> Option<u16> {
        Some(match self {
            Failure::BadHead(error) => error.status(),
            Failure::MethodRefused => 405,
            Failure::Denied => 403,
            Failure::Over(over) => over.status(),
            Failure::Circuit(_) => 503,
            Failure::NoRoute => 404,
            Failure::NotSpoken => 505,
            Failure::NoTls => 400,
            Failure::Client(ClientFault::Gone | ClientFault::Stalled) => return None,
            Failure::Client(
                ClientFault::Cut | ClientFault::Chunked(_) | ClientFault::Trailers(_),
            ) => 400,
            Failure::Client(ClientFault::BodyTooLarge) => 413,
            Failure::ClientSlow { sending: true } => 408,
            Failure::ClientSlow { sending: false } => return None,
            Failure::NoEndpoint
            | Failure::QueueFull
            | Failure::QueueTimeout
            | Failure::Exhausted(_)
            | Failure::NoMemory
            | Failure::NoPort(_) => 503,
            Failure::Connect(_)
            | Failure::Tls(_)
            | Failure::Endpoint(_)
            | Failure::NotSwitched(_) => 502,
            Failure::ConnectTimeout
            | Failure::FirstByteTimeout
            | Failure::EndpointIdle
            | Failure::Client(ClientFault::Late) => 504,
            Failure::RetryStatus(status) => *status,
            Failure::RetryCall(_) => 503,
            Failure::NoSwitch { .. } => 501,
        })
    }

    /// The same for the client of a gRPC call: what it would make of the HTTP status itself, where the
    /// failure does not say more.
    pub(crate) fn code(&self, status: u16) -> Code {
        match self {
            Failure::RetryCall(code) => *code,
            // Not "unavailable", which clients take for leave to send it again.
            Failure::FirstByteTimeout
            | Failure::EndpointIdle
            | Failure::Client(ClientFault::Late) => Code::DeadlineExceeded,
            Failure::Client(ClientFault::BodyTooLarge) => Code::ResourceExhausted,
            _ => Code::of_http(status),
        }
    }

    /// Seconds after which a client may try again, where that makes sense.
    pub(crate) fn retry_after_s(&self) -> Option<u32> {
        match self {
            Failure::QueueFull
            | Failure::QueueTimeout
            | Failure::Exhausted(_)
            | Failure::NoMemory
            | Failure::NoPort(_) => Some(1),
            Failure::NoEndpoint => Some(5),
            Failure::Over(over) => Some(over.retry_after_s()),
            Failure::Circuit(NoEntry::Open(wait)) => Some(limits::seconds(*wait).max(1)),
            Failure::Circuit(NoEntry::Full) => Some(1),
            _ => None,
        }
    }

    /// What it says about the endpoint. `is_answered`: something of a response has come.
    pub(crate) fn outcome(&self, is_answered: bool) -> Outcome {
        match self {
            Failure::Connect(_) | Failure::Tls(_) | Failure::ConnectTimeout => Outcome::Unreachable,
            Failure::Endpoint(_) if !is_answered => Outcome::Broken,
            // A client can ask for what takes for ever.
            Failure::FirstByteTimeout | Failure::EndpointIdle => Outcome::Late,
            Failure::Endpoint(_) | Failure::RetryStatus(_) | Failure::RetryCall(_) => {
                Outcome::Failed
            }
            _ => Outcome::Cancelled,
        }
    }

    /// One line for the answer's body and the log.
    pub(crate) fn reason(&self) -> String {
        match self {
            Failure::BadHead(error) => error.to_string(),
            Failure::MethodRefused => "this method is not forwarded".into(),
            Failure::Denied => "this network may not in here".into(),
            Failure::Over(over) => over.to_string(),
            Failure::Circuit(NoEntry::Open(wait)) => {
                format!("the pool's circuit is open for {} s", limits::seconds(*wait))
            }
            Failure::Circuit(NoEntry::Full) => "too many requests are under way to the pool".into(),
            Failure::NoRoute => "nothing is served at this host and path".into(),
            Failure::NotSpoken => "only HTTP/2 is spoken here".into(),
            Failure::NoTls => "this port speaks HTTPS; use https:// and the same port".into(),
            Failure::Client(ClientFault::Gone) => "the client left".into(),
            Failure::Client(ClientFault::Cut) => "the request's body ended early".into(),
            Failure::Client(ClientFault::Chunked(error)) => error.to_string(),
            Failure::Client(ClientFault::Trailers(error)) => format!("its trailers: {error}"),
            Failure::Client(ClientFault::BodyTooLarge) => "the body is larger than allowed".into(),
            Failure::Client(ClientFault::Late) => "the call's own deadline has passed".into(),
            Failure::ClientSlow { .. } => "the client was too slow".into(),
            Failure::Client(ClientFault::Stalled) => {
                "the client takes nothing of too many answers (`http2.stalled_streams`)".into()
            }
            Failure::NoEndpoint => "no endpoint is available".into(),
            Failure::QueueFull => "too many requests are waiting".into(),
            Failure::QueueTimeout => "no endpoint came free in time".into(),
            Failure::Connect(error) => format!("the endpoint cannot be reached: {error}"),
            Failure::Tls(failure) => format!("no TLS with the endpoint: {failure}"),
            Failure::ConnectTimeout => "the endpoint did not accept in time".into(),
            Failure::Exhausted(error) => format!("out of descriptors for endpoints: {error}"),
            Failure::NoMemory => "as many bytes are buffered as allowed".into(),
            Failure::NoPort(error) => {
                format!("this machine has no port left for a connection to the endpoint: {error}")
            }
            Failure::Endpoint(EndpointFault::Broken(Some(error))) => {
                format!("the connection to the endpoint failed: {error}")
            }
            Failure::Endpoint(EndpointFault::Broken(None)) => {
                "the endpoint closed the connection without an answer".into()
            }
            Failure::Endpoint(EndpointFault::Head(error)) => {
                format!("the endpoint's answer is malformed: {error}")
            }
            Failure::Endpoint(EndpointFault::Chunked(error)) => {
                format!("the endpoint's answer is malformed: {error}")
            }
            Failure::Endpoint(EndpointFault::Cut) => "the endpoint's answer ended early".into(),
            Failure::Endpoint(EndpointFault::TooLong) => {
                "the endpoint's answer is longer than announced".into()
            }
            Failure::Endpoint(EndpointFault::Reset(reason)) => {
                format!("the endpoint reset the stream: {reason}")
            }
            Failure::Endpoint(EndpointFault::Leaving(reason)) => {
                format!("the endpoint is closing the connection: {reason}")
            }
            Failure::Endpoint(EndpointFault::Protocol(reason)) => {
                format!("the endpoint breaks the rules of HTTP/2: {reason}")
            }
            Failure::Endpoint(EndpointFault::Unsendable(error)) => error.to_string(),
            Failure::FirstByteTimeout => "the endpoint did not begin to answer in time".into(),
            Failure::EndpointIdle => "the endpoint stopped in the middle of the exchange".into(),
            Failure::RetryStatus(status) => format!("the endpoint answered {status}"),
            Failure::RetryCall(code) => format!("the endpoint ended the call with {code}"),
            Failure::NoSwitch { websocket: false } => {
                "the endpoint speaks HTTP/2, where only WebSocket can be switched to".into()
            }
            Failure::NoSwitch { websocket: true } => {
                "the endpoint speaks HTTP/2 and takes no WebSockets there (RFC 8441)".into()
            }
            Failure::NotSwitched(status) => {
                format!("the endpoint answered the WebSocket handshake by {status} instead of 101")
            }
        }
    }
}

impl From<ClientFault> for Failure {
    fn from(fault: ClientFault) -> Failure {
        Failure::Client(fault)
    }
}

impl From<EndpointFault> for Failure {
    fn from(fault: EndpointFault) -> Failure {
        match fault {
            EndpointFault::Unsendable(error) => Failure::BadHead(error),
            fault => Failure::Endpoint(fault),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_the_names_of_their_codes() {
        assert_eq!(Code::ALL.map(Code::name), subak_telemetry::CALL_STATUSES);
    }

    #[test]
    fn a_failed_call_ends_as_its_client_would_take_the_status() {
        let code = |failure: Failure| failure.code(failure.status().expect("a status")).name();
        assert_eq!(code(Failure::NoEndpoint), "unavailable");
        assert_eq!(code(Failure::ConnectTimeout), "unavailable");
        assert_eq!(code(Failure::NoRoute), "unimplemented");
        assert_eq!(code(Failure::FirstByteTimeout), "deadline_exceeded");
        assert_eq!(code(Failure::Client(ClientFault::Late)), "deadline_exceeded");
        assert_eq!(code(Failure::Client(ClientFault::BodyTooLarge)), "resource_exhausted");
        assert_eq!(code(Failure::RetryCall(Code::Aborted)), "aborted");
    }
}
