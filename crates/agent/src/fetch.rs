//! The balancer's side: asks an agent for its report.
//!
//! A connection of its own for each question, closed by the agent after the answer; everything
//! together within the caller's limit of time, and the answer within [`MAX_REPORT_BYTES`].

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, HOST, HeaderValue};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::report::{REPORT_PATH, Report, ReportError, parse_report};
use crate::token::Token;

/// What an answer may have at most. A report has some 400 bytes.
pub const MAX_REPORT_BYTES: usize = 64 * 1024;
/// What the head of an answer may have.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// Asks the agent at `address`. Inside a tokio runtime with I/O and time; dropping the future ends
/// the question.
///
/// # Errors
/// [`AgentError`] says whether the agent could not be reached, did not answer, refused, or said
/// something else.
pub async fn fetch(
    address: SocketAddr,
    token: &Token,
    limit: Duration,
) -> Result<Report, AgentError> {
    match tokio::time::timeout(limit, exchange(address, token)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(AgentError::Late { limit }),
    }
}

async fn exchange(address: SocketAddr, token: &Token) -> Result<Report, AgentError> {
    let stream = TcpStream::connect(address).await.map_err(AgentError::Connect)?;
    let mut builder = http1::Builder::new();
    let handshake = builder.max_buf_size(MAX_HEAD_BYTES).handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.map_err(AgentError::Http)?;
    let question = async {
        let response = sender.send_request(question(address, token)).await?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED => return Err(AgentError::Token),
            status => return Err(AgentError::Status(status.as_u16())),
        }
        let body = Limited::new(response.into_body(), MAX_REPORT_BYTES).collect();
        let document = body.await.map_err(AgentError::of_body)?.to_bytes();
        parse_report(&document).map_err(AgentError::Report)
    };
    tokio::pin!(question, connection);
    let mut connected = true;
    loop {
        tokio::select! {
            outcome = &mut question => return outcome,
            // The agent closes when it has answered; what has arrived by then is still to be read.
            _ = &mut connection, if connected => connected = false,
        }
    }
}

fn question(address: SocketAddr, token: &Token) -> Request<Empty<Bytes>> {
    let mut request = Request::new(Empty::new());
    *request.uri_mut() = Uri::from_static(REPORT_PATH);
    let host = HeaderValue::try_from(address.to_string());
    let host = host.unwrap_or(HeaderValue::from_static("agent"));
    request.headers_mut().insert(HOST, host);
    request.headers_mut().insert(AUTHORIZATION, token.field().clone());
    request
}

/// Why there is no report.
#[derive(Debug)]
pub enum AgentError {
    /// No connection.
    Connect(io::Error),
    /// No answer in time.
    Late {
        /// The limit.
        limit: Duration,
    },
    /// The token is not the agent's.
    Token,
    /// An answer that is no report.
    Status(u16),
    /// More bytes than any report has.
    TooLong,
    /// What came was not HTTP, or ended too early.
    Http(hyper::Error),
    /// The document is not one that is understood.
    Report(ReportError),
}

impl AgentError {
    fn of_body(error: Box<dyn Error + Send + Sync>) -> AgentError {
        match error.downcast::<hyper::Error>() {
            Ok(error) => AgentError::Http(*error),
            Err(error) => {
                debug_assert!(error.is::<LengthLimitError>(), "{error}");
                AgentError::TooLong
            }
        }
    }
}

impl From<hyper::Error> for AgentError {
    fn from(error: hyper::Error) -> AgentError {
        AgentError::Http(error)
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AgentError::Connect(error) => {
                write!(out, "no connection: {error}; does `subak agent` run there?")
            }
            AgentError::Late { limit } => write!(out, "no report within {limit:?}"),
            AgentError::Token => {
                out.write_str("the agent has another token; both sides need the same")
            }
            AgentError::Status(status) => {
                write!(out, "answered {status}; is it `subak agent` that listens there?")
            }
            AgentError::TooLong => {
                write!(out, "more than {MAX_REPORT_BYTES} bytes, which no report has")
            }
            AgentError::Http(error) => {
                write!(out, "no HTTP answer: {error}; is it `subak agent` that listens there?")
            }
            AgentError::Report(error) => error.fmt(out),
        }
    }
}

impl Error for AgentError {}

#[cfg(test)]
mod tests;
