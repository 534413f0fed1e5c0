//! An HTTP probe on a connection of HTTP/2: one stream, and as much of its answer as the verdict needs.
//!
//! At most [`BODY_MAX`] bytes of a body and [`HEAD_MAX`] of a head are taken; interim answers are
//! passed over.

use bytes::Bytes;
use h2::client::SendRequest;
use http::{Request, Uri};
use subak_base::Address;
use subak_health::{BODY_MAX, ProbeFailure};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::check::Phase;
use crate::miss::Miss;
use crate::request::HttpCheck;

/// Bytes of a head.
const HEAD_MAX: u32 = 16 * 1024;

/// Asks on a connection that was just opened. For how long is up to the caller.
pub(crate) async fn ask(
    check: &HttpCheck,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    scheme: &str,
    to: &Address,
    phase: &mut Phase,
) -> Result<(), Miss> {
    *phase = Phase::Waiting;
    let uri = format!("{scheme}://{}{}", check.authority(to), check.target());
    // What this form of a target does not take, no endpoint of HTTP/2 could be sent by Subak either.
    let uri: Uri = uri.parse().map_err(|_| ProbeFailure::Malformed)?;
    let mut builder = h2::client::Builder::new();
    builder.max_header_list_size(HEAD_MAX).enable_push(false);
    let shaken = builder.handshake::<_, Bytes>(stream).await;
    let (send, connection) = shaken.map_err(|error| broken(&error))?;
    tokio::select! {
        biased;
        asked = stream_of(check, send, uri, phase) => asked,
        ended = connection => Err(match ended {
            Ok(()) => ProbeFailure::Closed.into(),
            Err(error) => broken(&error),
        }),
    }
}

async fn stream_of(
    check: &HttpCheck,
    send: SendRequest<Bytes>,
    uri: Uri,
    phase: &mut Phase,
) -> Result<(), Miss> {
    let request = Request::builder()
        .method(check.method())
        .uri(uri)
        .header("user-agent", "subak")
        .header("accept", "*/*")
        .body(())
        .map_err(|_| ProbeFailure::Malformed)?;
    let mut send = send.ready().await.map_err(|error| broken(&error))?;
    let (answer, _) = send.send_request(request, true).map_err(|error| broken(&error))?;
    let (head, mut body) = answer.await.map_err(|error| broken(&error))?.into_parts();
    *phase = Phase::Reading;
    let (status, expect) = (head.status.as_u16(), check.expect());
    let mut received = Vec::new();
    if expect.needs_body() && expect.status.contains(status) {
        while received.len() < BODY_MAX
            && let Some(data) = body.data().await
        {
            let data = data.map_err(|error| broken(&error))?;
            received.extend_from_slice(&data);
            body.flow_control().release_capacity(data.len()).map_err(|error| broken(&error))?;
        }
    }
    Ok(expect.judge(status, &received)?)
}

/// What an error of the connection means.
fn broken(error: &h2::Error) -> Miss {
    match error.get_io() {
        Some(io) if io.kind() == std::io::ErrorKind::UnexpectedEof => ProbeFailure::Closed.into(),
        Some(io) => Miss::of(io),
        None if error.is_reset() && error.is_remote() => ProbeFailure::Reset.into(),
        None if error.is_go_away() && error.is_remote() => ProbeFailure::Closed.into(),
        None => ProbeFailure::NotHttp2.into(),
    }
}
