//! Reading a request head.

use super::block::{empty_slots, offset_in, take_fields};
use super::{MAX_FIELDS, Progress, diagnose};
use crate::HeadLimits;
use crate::error::{Fault, HeadError};
use crate::framing::{self, BodyLength, ConnectionOptions};
use crate::known::Known;
use crate::method::Method;
use crate::request::RequestHead;
use crate::version::Version;

/// What follows a request head on its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestFraming {
    /// The body: [`BodyLength::None`] without framing fields, never [`BodyLength::UntilClose`].
    pub body: BodyLength,
    /// The client wants to send another request on this connection.
    pub keep_alive: bool,
    /// The client waits for 100 (Continue) before it sends the body.
    pub expect_continue: bool,
    /// The client asks to switch protocols (WebSocket). Never for h2c, never with a body, never
    /// in HTTP/1.0: such an `Upgrade` is ignored, as RFC 9110, 7.8 allows.
    pub upgrade: bool,
    /// `Connection` names fields. None of them goes from end to end as such; those that the
    /// configuration reads are for the caller to refuse.
    pub nominates: bool,
}

/// Reads a request head from the start of `buffer` into `head`, whose scheme is the connection's.
///
/// One empty line before the request line is skipped (RFC 9112, 2.2). `head` is meaningful after
/// [`Progress::Complete`] only.
///
/// # Errors
/// Whatever `docs/http-strictness.md` lists; the connection can not be used any further.
pub fn parse_request(
    buffer: &[u8],
    limits: &HeadLimits,
    head: &mut RequestHead,
) -> Result<Progress<RequestFraming>, HeadError> {
    let window = &buffer[..buffer.len().min(limits.max_bytes)];
    let start = match skip_empty_line(window)? {
        Some(start) => start,
        None => return partial(buffer, limits, 0),
    };
    let mut slots = empty_slots();
    let slots = &mut slots[..limits.max_fields.min(MAX_FIELDS)];
    let mut request = httparse::Request::new(&mut []);
    let consumed = match request.parse_with_uninit_headers(&window[start..], slots) {
        Ok(httparse::Status::Complete(length)) => start + length,
        Ok(httparse::Status::Partial) => return partial(buffer, limits, start),
        Err(error) => return Err(diagnose::request(window, start, error)),
    };
    let (Some(method), Some(target)) = (request.method, request.path) else {
        return Err(HeadError { fault: Fault::RequestLine, offset: start });
    };
    let target_start = offset_in(window, target.as_bytes());
    let line_end = target_start + target.len() + b" HTTP/1.1".len();
    if window[line_end] != b'\r' {
        return Err(HeadError { fault: Fault::BareLf, offset: line_end });
    }
    let fields_start = line_end + 2;
    take_fields(&window[..consumed], fields_start, request.headers, &mut head.fields)?;
    head.version = if request.version == Some(0) { Version::Http10 } else { Version::Http11 };
    head.set_line(method.as_bytes(), target.as_bytes(), limits.path).map_err(|fault| {
        let offset = if fault == Fault::Method { start } else { target_start };
        HeadError { fault, offset }
    })?;
    head.settle_host().map_err(|e| HeadError { offset: e.offset + fields_start, ..e })?;
    let framing = framing_of(head).map_err(|(fault, known)| HeadError {
        fault,
        offset: fields_start + head.fields.offset_of(known),
    })?;
    Ok(Progress::Complete { consumed, framing })
}

/// Where the request line begins; `None` when that can not be told yet.
fn skip_empty_line(buffer: &[u8]) -> Result<Option<usize>, HeadError> {
    let start = match buffer {
        [] | [b'\r'] | [b'\r', b'\n'] => return Ok(None),
        [b'\r', b'\n', ..] => 2,
        _ => 0,
    };
    match buffer[start] {
        b'\n' => Err(HeadError { fault: Fault::BareLf, offset: start }),
        b'\r' if start == 0 => Err(HeadError { fault: Fault::BareCr, offset: start }),
        b'\r' => Err(HeadError { fault: Fault::LeadingEmptyLines, offset: start }),
        _ => Ok(Some(start)),
    }
}

/// More bytes are needed: wait for them, unless the limit is reached.
fn partial(
    buffer: &[u8],
    limits: &HeadLimits,
    start: usize,
) -> Result<Progress<RequestFraming>, HeadError> {
    if buffer.len() < limits.max_bytes {
        return Ok(Progress::Partial);
    }
    let in_line = memchr::memchr(b'\n', &buffer[start..limits.max_bytes]).is_none();
    let fault = if in_line { Fault::TargetTooLong } else { Fault::HeadTooLarge };
    Err(HeadError { fault, offset: limits.max_bytes })
}

/// The framing of a request whose line and host are settled; a fault names its field.
fn framing_of(head: &RequestHead) -> Result<RequestFraming, (Fault, Known)> {
    const INTERESTING: u64 = Known::ContentLength.bit()
        | Known::TransferEncoding.bit()
        | Known::Connection.bit()
        | Known::Expect.bit();
    let fields = &head.fields;
    let http11 = head.version == Version::Http11;
    let mut framing = RequestFraming {
        body: BodyLength::None,
        keep_alive: http11,
        expect_continue: false,
        upgrade: false,
        nominates: false,
    };
    if !fields.has_any(INTERESTING) {
        return Ok(framing);
    }
    if fields.has(Known::TransferEncoding) {
        let coding = |fault| (fault, Known::TransferEncoding);
        if fields.has(Known::ContentLength) {
            return Err(coding(Fault::LengthAndCoding));
        }
        if !http11 {
            return Err(coding(Fault::CodingInHttp10));
        }
        framing::transfer_coding(fields).map_err(coding)?;
        framing.body = BodyLength::Chunked;
    } else if let Some(length) =
        framing::content_length(fields).map_err(|fault| (fault, Known::ContentLength))?
    {
        framing.body = BodyLength::Known(length);
    }
    if head.method == Method::Connect && framing.body != BodyLength::None {
        let coded = framing.body == BodyLength::Chunked;
        let known = if coded { Known::TransferEncoding } else { Known::ContentLength };
        return Err((Fault::BodyForbidden, known));
    }
    let expects = framing::expects_continue(fields).map_err(|fault| (fault, Known::Expect))?;
    framing.expect_continue = expects && http11 && !framing.body.is_empty();
    let options =
        ConnectionOptions::received(fields).map_err(|fault| (fault, Known::Connection))?;
    if options.names && framing::nominates_end_to_end(fields) {
        return Err((Fault::ConnectionNames, Known::Connection));
    }
    framing.nominates = options.names;
    framing.keep_alive = (http11 || options.keep_alive) && !options.close && !options.malformed;
    framing.upgrade = http11
        && options.upgrade
        && framing.body.is_empty()
        && fields.has(Known::Upgrade)
        && !framing::upgrades_to_http(fields);
    Ok(framing)
}
