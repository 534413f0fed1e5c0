//! What came of one probe.
//!
//! A closed list, so that every line of a log and every answer of the status page says what was
//! wrong, in the same words. A probe that could not be made for want of something on *this* machine
//! says nothing about the endpoint and never counts against it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::expect::BodyMatch;
use crate::status_set::StatusSet;

/// The end of one probe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProbeResult {
    /// The endpoint did what was expected of it.
    Passed,
    /// It did not.
    Failed(ProbeFailure),
    /// Nothing was learnt.
    Inconclusive(Obstacle),
}

/// What was wrong with an endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProbeFailure {
    /// Nothing listens at its port.
    Refused,
    /// The network knows no way to it, or something on the way forbids it.
    Unreachable,
    /// Its unix socket does not exist.
    NoSocket,
    /// It did not take the connection in time.
    ConnectTimeout(Duration),
    /// No TLS session: what the handshake said.
    Tls(Arc<str>),
    /// It reset the connection.
    Reset,
    /// It closed the connection before its answer was complete.
    Closed,
    /// It took the connection and sent nothing in time.
    FirstByteTimeout(Duration),
    /// It began to answer and did not end in time.
    AnswerTimeout(Duration),
    /// What it sent is not HTTP.
    Malformed,
    /// What it sent is not HTTP/2, which was to be spoken.
    NotHttp2,
    /// It answered with another status.
    Status {
        /// The status it sent.
        got: u16,
        /// Those it may send.
        expected: StatusSet,
    },
    /// It answered with another body.
    Body(BodyMatch),
    /// It said by gRPC that it does not serve, or said nothing that could be understood: what it was.
    Grpc(Arc<str>),
}

impl fmt::Display for ProbeFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbeFailure::Refused => out.write_str("connection refused"),
            ProbeFailure::Unreachable => out.write_str("unreachable"),
            ProbeFailure::NoSocket => out.write_str("its socket does not exist"),
            ProbeFailure::ConnectTimeout(limit) => write!(out, "no connection within {limit:?}"),
            ProbeFailure::Tls(said) => write!(out, "TLS handshake failed: {said}"),
            ProbeFailure::Reset => out.write_str("connection reset"),
            ProbeFailure::Closed => out.write_str("closed before the answer was complete"),
            ProbeFailure::FirstByteTimeout(limit) => {
                write!(out, "connected, but no answer within {limit:?}")
            }
            ProbeFailure::AnswerTimeout(limit) => {
                write!(out, "the answer was not complete within {limit:?}")
            }
            ProbeFailure::Malformed => out.write_str("the answer is not HTTP"),
            ProbeFailure::NotHttp2 => out.write_str("it does not speak HTTP/2 here"),
            ProbeFailure::Status { got, expected } => {
                write!(out, "status {got} is not in {expected}")
            }
            ProbeFailure::Body(expected) => write!(out, "the body {}", expected.missing()),
            ProbeFailure::Grpc(said) => write!(out, "gRPC health check: {said}"),
        }
    }
}

/// What this machine lacked for a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// No file descriptor was left.
    Descriptors,
    /// No local port was left towards this endpoint.
    Ports,
    /// The system gave no memory.
    Memory,
    /// Subak is about to end, or the probe was taken back.
    Stopped,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Obstacle::Descriptors => "no file descriptor left for the probe",
            Obstacle::Ports => "no local port left for the probe",
            Obstacle::Memory => "no memory left for the probe",
            Obstacle::Stopped => "the probe was taken back",
        })
    }
}

impl fmt::Display for ProbeResult {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbeResult::Passed => out.write_str("passed"),
            ProbeResult::Failed(failure) => failure.fmt(out),
            ProbeResult::Inconclusive(obstacle) => obstacle.fmt(out),
        }
    }
}
