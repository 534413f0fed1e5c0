//! Reading the head of an endpoint's answer.

use super::block::{empty_slots, take_fields};
use super::{MAX_FIELDS, Progress, diagnose};
use crate::HeadLimits;
use crate::error::{Fault, HeadError};
use crate::framing::{self, BodyLength, ConnectionOptions};
use crate::known::Known;
use crate::method::Method;
use crate::response::ResponseHead;
use crate::version::Version;

/// What was asked, as far as it decides how the answer is framed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Asked {
    /// The method of the request.
    pub method: Method,
    /// The request that was sent asked to switch protocols.
    pub upgrade: bool,
}

/// What follows an answer's head on its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResponseFraming {
    /// The body. [`BodyLength::None`] for answers to HEAD and for 1xx, 204 and 304, whatever
    /// their fields say.
    pub body: BodyLength,
    /// The connection can carry another request after this answer.
    pub keep_alive: bool,
    /// The connection is a tunnel from here on: 101, or a successful answer to CONNECT.
    pub upgrade: bool,
}

/// Reads an answer's head from the start of `buffer` into `head`.
///
/// After an interim answer (1xx other than 101) the next head follows.
///
/// # Errors
/// Whatever `docs/http-strictness.md` lists. The status is always 502, whatever
/// [`HeadError::status`] says, and the connection can not be used any further.
pub fn parse_response(
    buffer: &[u8],
    limits: &HeadLimits,
    asked: &Asked,
    head: &mut ResponseHead,
) -> Result<Progress<ResponseFraming>, HeadError> {
    let window = &buffer[..buffer.len().min(limits.max_bytes)];
    // httparse skips empty lines before a head; an endpoint has no reason to send one.
    if let Some(b'\r' | b'\n') = window.first() {
        return Err(HeadError { fault: Fault::StatusLine, offset: 0 });
    }
    let mut slots = empty_slots();
    let slots = &mut slots[..limits.max_fields.min(MAX_FIELDS)];
    let mut response = httparse::Response::new(&mut []);
    let parser = httparse::ParserConfig::default();
    let consumed = match parser.parse_response_with_uninit_headers(&mut response, window, slots) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if buffer.len() < limits.max_bytes => {
            return Ok(Progress::Partial);
        }
        Ok(httparse::Status::Partial) => {
            return Err(HeadError { fault: Fault::HeadTooLarge, offset: limits.max_bytes });
        }
        Err(error) => return Err(diagnose::response(window, error)),
    };
    head.version = if response.version == Some(0) { Version::Http10 } else { Version::Http11 };
    head.status = response.code.unwrap_or_default();
    if head.status < 100 {
        return Err(HeadError { fault: Fault::StatusCode, offset: 9 });
    }
    let (reason, fields_start) = status_line(window)?;
    head.set_reason(reason);
    take_fields(&window[..consumed], fields_start, response.headers, &mut head.fields)?;
    let framing = framing_of(head, asked).map_err(|(fault, known)| HeadError {
        fault,
        offset: fields_start + head.fields.offset_of(known),
    })?;
    Ok(Progress::Complete { consumed, framing })
}

/// The reason phrase of a status line that httparse has accepted, and where the next line begins.
fn status_line(head: &[u8]) -> Result<(&[u8], usize), HeadError> {
    const STATUS_END: usize = b"HTTP/1.1 200".len();
    let end = memchr::memchr(b'\n', head).unwrap_or(head.len());
    if end <= STATUS_END || head[end - 1] != b'\r' {
        return Err(HeadError { fault: Fault::BareLf, offset: end });
    }
    // Some endpoints leave the space out together with an empty reason.
    let reason = &head[STATUS_END..end - 1];
    let reason = reason.strip_prefix(b" ").unwrap_or(reason);
    if !crate::fields::is_value(reason) {
        return Err(HeadError { fault: Fault::StatusLine, offset: STATUS_END });
    }
    Ok((reason, end + 1))
}

/// The framing of an answer; a fault names its field.
fn framing_of(head: &ResponseHead, asked: &Asked) -> Result<ResponseFraming, (Fault, Known)> {
    let fields = &head.fields;
    let http11 = head.version == Version::Http11;
    let coded = fields.has(Known::TransferEncoding);
    if coded {
        let coding = |fault| (fault, Known::TransferEncoding);
        if fields.has(Known::ContentLength) {
            return Err(coding(Fault::LengthAndCoding));
        }
        if !http11 {
            return Err(coding(Fault::CodingInHttp10));
        }
        framing::transfer_coding(fields).map_err(coding)?;
    }
    let length = framing::content_length(fields).map_err(|fault| (fault, Known::ContentLength))?;
    let bodiless = head.is_interim() || head.status == 204;
    if bodiless && (coded || length.is_some_and(|length| length > 0)) {
        let known = if coded { Known::TransferEncoding } else { Known::ContentLength };
        return Err((Fault::BodyForbidden, known));
    }
    let options =
        ConnectionOptions::received(fields).map_err(|fault| (fault, Known::Connection))?;
    let switch = head.status == 101;
    if switch && !is_switch_allowed(head, asked, &options) {
        return Err((Fault::UnaskedUpgrade, Known::Upgrade));
    }
    let tunnel = switch || (asked.method == Method::Connect && (200..300).contains(&head.status));
    let body = if bodiless || tunnel || head.status == 304 || asked.method == Method::Head {
        BodyLength::None
    } else if coded {
        BodyLength::Chunked
    } else {
        length.map_or(BodyLength::UntilClose, BodyLength::Known)
    };
    let keep_alive = (http11 || options.keep_alive)
        && !options.close
        && !options.malformed
        && !tunnel
        && body != BodyLength::UntilClose;
    Ok(ResponseFraming { body, keep_alive, upgrade: tunnel })
}

/// A switch must have been asked for, name its protocol, and that may not be HTTP itself, which would carry
/// requests past everything that looks at them.
fn is_switch_allowed(head: &ResponseHead, asked: &Asked, options: &ConnectionOptions) -> bool {
    asked.upgrade
        && head.version == Version::Http11
        && options.upgrade
        && head.fields.has(Known::Upgrade)
        && !framing::upgrades_to_http(&head.fields)
}
