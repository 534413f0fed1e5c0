//! gRPC's own health check: `grpc.health.v1.Health/Check`, asked over HTTP/2.
//!
//! ```text
//! request  { 1: service (text) }                              none: the server as a whole
//! answer   { 1: status (UNKNOWN 0, SERVING 1, NOT_SERVING 2, SERVICE_UNKNOWN 3) }
//! ```
//!
//! Each message has five bytes before it: not compressed, and its length. Only SERVING passes. One
//! call a connection; at most [`ANSWER_MAX`] bytes of a message and [`HEAD_MAX`] of a head are taken.

use bytes::Bytes;
use h2::RecvStream;
use h2::client::SendRequest;
use http::{HeaderMap, Request, Uri};
use subak_base::Address;
use subak_health::ProbeFailure;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::check::Phase;
use crate::miss::Miss;
use crate::request::authority;

const PATH: &str = "/grpc.health.v1.Health/Check";
/// Bytes of an answer's message, its five included; an honest one has 7.
const ANSWER_MAX: usize = 1024;
/// Bytes of a head.
const HEAD_MAX: u32 = 16 * 1024;
/// Characters of an endpoint's own words that are shown.
const SHOWN_MAX: usize = 120;
/// Bytes of a service's name.
pub const SERVICE_MAX: usize = 256;

/// A gRPC probe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GrpcCheck {
    message: Bytes,
    host: Option<String>,
}

impl GrpcCheck {
    /// Asks for this service; "" asks for the server as a whole. None for names above [`SERVICE_MAX`].
    pub fn new(service: &str, host: Option<&str>) -> Option<GrpcCheck> {
        if service.len() > SERVICE_MAX {
            return None;
        }
        let mut field = Vec::new();
        if !service.is_empty() {
            // Field 1 with a length; lengths of up to 256 have at most two bytes.
            field.push(0x0a);
            if service.len() >= 0x80 {
                field.push(0x80 | service.len() as u8);
                field.push((service.len() >> 7) as u8);
            } else {
                field.push(service.len() as u8);
            }
            field.extend_from_slice(service.as_bytes());
        }
        let mut message = vec![0];
        message.extend_from_slice(&(field.len() as u32).to_be_bytes());
        message.extend_from_slice(&field);
        Some(GrpcCheck { message: message.into(), host: host.map(str::to_owned) })
    }

    /// The same for an endpoint that has a name; where no other host was given it is asked by that.
    #[must_use]
    pub fn named(&self, name: &str) -> GrpcCheck {
        let host = self.host.clone().or_else(|| Some(name.to_owned()));
        GrpcCheck { host, ..self.clone() }
    }

    /// The target as it goes to this endpoint.
    fn uri(&self, scheme: &str, to: &Address) -> Option<Uri> {
        let authority = authority(self.host.as_deref(), to);
        format!("{scheme}://{authority}{PATH}").parse().ok()
    }

    /// Asks on a connection that was just opened. For how long is up to the caller.
    pub(crate) async fn ask(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        scheme: &str,
        to: &Address,
        phase: &mut Phase,
    ) -> Result<(), Miss> {
        *phase = Phase::Waiting;
        let uri = self.uri(scheme, to).ok_or_else(|| said("its name cannot be sent"))?;
        let mut builder = h2::client::Builder::new();
        builder.max_header_list_size(HEAD_MAX).enable_push(false);
        let shaken = builder.handshake::<_, Bytes>(stream).await;
        let (send, connection) = shaken.map_err(|error| broken(&error))?;
        tokio::select! {
            biased;
            asked = self.call(send, uri, phase) => asked,
            ended = connection => Err(ended.err().map_or(ProbeFailure::Closed.into(), |error| broken(&error))),
        }
    }

    async fn call(
        &self,
        send: SendRequest<Bytes>,
        uri: Uri,
        phase: &mut Phase,
    ) -> Result<(), Miss> {
        let request = Request::post(uri)
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("user-agent", "subak")
            .body(())
            .map_err(|_| said("its name cannot be sent"))?;
        let mut send = send.ready().await.map_err(|error| broken(&error))?;
        let (answer, mut body) =
            send.send_request(request, false).map_err(|error| broken(&error))?;
        body.send_data(self.message.clone(), true).map_err(|error| broken(&error))?;
        let (head, mut body) = answer.await.map_err(|error| broken(&error))?.into_parts();
        *phase = Phase::Reading;
        if head.status.as_u16() != 200 {
            return Err(said(&format!("HTTP status {} instead of 200", head.status.as_u16())));
        }
        if let Some(status) = head.headers.get("grpc-status") {
            return Err(refusal(status.as_bytes(), &head.headers));
        }
        let message = message(&mut body).await?;
        let trailers = body.trailers().await.map_err(|error| broken(&error))?.unwrap_or_default();
        match trailers.get("grpc-status").map(|status| status.as_bytes()) {
            Some(b"0") => judge(&message),
            Some(status) => Err(refusal(status, &trailers)),
            None => Err(said("its answer has no grpc-status")),
        }
    }
}

/// All that comes of the answer's body, within the bound.
async fn message(body: &mut RecvStream) -> Result<Vec<u8>, Miss> {
    let mut message = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.map_err(|error| broken(&error))?;
        if message.len() + data.len() > ANSWER_MAX {
            return Err(said("its answer is too long for a health check"));
        }
        message.extend_from_slice(&data);
        body.flow_control().release_capacity(data.len()).map_err(|error| broken(&error))?;
    }
    Ok(message)
}

/// What the message of a call that ended well says.
fn judge(message: &[u8]) -> Result<(), Miss> {
    let Some((0, status)) = status_of(message) else {
        return Err(said("its answer is not one to a health check"));
    };
    match status {
        1 => Ok(()),
        0 => Err(said("UNKNOWN")),
        2 => Err(said("NOT_SERVING")),
        3 => Err(said("SERVICE_UNKNOWN")),
        _ => Err(said("a state that the protocol does not have")),
    }
}

/// Whether the message is compressed, and its field 1; 0 where it has none.
fn status_of(message: &[u8]) -> Option<(u8, u64)> {
    let (head, mut rest) = message.split_first_chunk::<5>()?;
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    if rest.len() != length as usize {
        return None;
    }
    let mut status = 0;
    while !rest.is_empty() {
        let tag = varint(&mut rest)?;
        match tag & 7 {
            0 => {
                let value = varint(&mut rest)?;
                if tag >> 3 == 1 {
                    status = value;
                }
            }
            1 => rest = rest.get(8..)?,
            2 => {
                let length = usize::try_from(varint(&mut rest)?).ok()?;
                rest = rest.get(length..)?;
            }
            5 => rest = rest.get(4..)?,
            _ => return None,
        }
    }
    Some((head[0], status))
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// A call that ended otherwise than well.
fn refusal(status: &[u8], fields: &HeaderMap) -> Miss {
    let what = match status {
        b"0" => "an answer without a message",
        b"5" => "the server does not know this service (NOT_FOUND)",
        b"12" => "the server has no health service (UNIMPLEMENTED)",
        _ => "",
    };
    if !what.is_empty() {
        return said(what);
    }
    let words = fields.get("grpc-message").map(|words| words.as_bytes()).unwrap_or_default();
    let shown = |bytes: &[u8]| -> String {
        let text = String::from_utf8_lossy(bytes);
        text.chars().filter(|character| !character.is_control()).take(SHOWN_MAX).collect()
    };
    match words {
        b"" => said(&format!("grpc-status {}", shown(status))),
        _ => said(&format!("grpc-status {}: {}", shown(status), shown(words))),
    }
}

fn said(what: &str) -> Miss {
    ProbeFailure::Grpc(what.into()).into()
}

/// What an error of the HTTP/2 connection means.
fn broken(error: &h2::Error) -> Miss {
    match error.get_io() {
        Some(io) if io.kind() == std::io::ErrorKind::UnexpectedEof => ProbeFailure::Closed.into(),
        Some(io) => Miss::of(io),
        None if error.is_reset() || error.is_go_away() && error.is_remote() => {
            said(&format!("the call was broken off: {error}"))
        }
        None => said("it does not speak HTTP/2 here"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(message: &[u8]) -> Vec<u8> {
        let mut framed = vec![0];
        framed.extend_from_slice(&(message.len() as u32).to_be_bytes());
        framed.extend_from_slice(message);
        framed
    }

    #[test]
    fn a_service_is_asked_for_by_its_name() {
        let message = |service: &str| GrpcCheck::new(service, None).map(|check| check.message);
        assert_eq!(message("").as_deref(), Some(&[0, 0, 0, 0, 0][..]));
        assert_eq!(message("app").as_deref(), Some(&b"\0\0\0\0\x05\x0a\x03app"[..]));
        let long = message(&"x".repeat(200)).expect("a check");
        assert_eq!(long[..8], [0, 0, 0, 0, 203, 0x0a, 0xc8, 0x01]);
        assert_eq!(message(&"x".repeat(257)), None);
    }

    #[test]
    fn only_serving_passes() {
        let judged = |message: &[u8]| judge(message).map_err(|miss| miss.to_string());
        assert_eq!(judged(&framed(&[8, 1])), Ok(()));
        // Other fields are passed over, whatever their kind.
        assert_eq!(judged(&framed(&[0x12, 1, 7, 8, 1, 0x1d, 1, 2, 3, 4])), Ok(()));
        for (message, word) in [
            (&[][..], "UNKNOWN"),
            (&[8, 0], "UNKNOWN"),
            (&[8, 2], "NOT_SERVING"),
            (&[8, 3], "SERVICE_UNKNOWN"),
            (&[8, 9], "a state"),
            (&[8], "not one to a health check"),
            (&[0x12, 9, 7], "not one to a health check"),
            (&[8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1], "not one to"),
        ] {
            let judged = judged(&framed(message)).expect_err("no pass");
            assert!(judged.contains(word), "{message:?}: {judged}");
        }
        for cut in [&[0, 0, 0, 0][..], &[0, 0, 0, 0, 9, 8, 1], &[1, 0, 0, 0, 2, 8, 1]] {
            assert!(judged(cut).expect_err("no pass").contains("not one to"), "{cut:?}");
        }
    }
}
