//! How decoded HTTP/2 heads become the same [`RequestHead`] and [`ResponseHead`] (RFC 9113, 8.3),
//! which of their fields go on in HTTP/2, and which frames pass by on a connection ([`FrameHeads`]).
//!
//! Of a request the caller gives the pseudo-fields to [`begin`], appends the fields by
//! [`push`], and lets [`finish`] check the whole; of an
//! answer it sets the status, appends the fields, and lets [`finish_answer`] check.

mod frames;

pub use frames::{FrameHead, FrameHeads};

use crate::error::{BadField, Fault, HeadError};
use crate::fields::{Field, Fields};
use crate::framing::{self, BodyLength};
use crate::known::Known;
use crate::method::Method;
use crate::path::PathRules;
use crate::request::RequestHead;
use crate::response::ResponseHead;
use crate::version::Version;

/// Fields that only HTTP/1 has.
const HTTP1_ONLY: u64 = Known::Connection.bit()
    | Known::KeepAlive.bit()
    | Known::ProxyConnection.bit()
    | Known::TransferEncoding.bit()
    | Known::Upgrade.bit();

/// Appends a field as the other side has sent it.
///
/// # Errors
/// [`Fault::ValueSpace`] for a value that begins or ends with whitespace (RFC 9113, 8.2.1), [`Fault::FieldName`],
/// [`Fault::ValueControl`].
#[inline]
pub fn push(fields: &mut Fields, name: &[u8], value: &[u8]) -> Result<(), Fault> {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    if is_space(value.first()) || is_space(value.last()) {
        return Err(Fault::ValueSpace);
    }
    fields.push_received(name, value).map_err(|bad| match bad {
        BadField::Name => Fault::FieldName,
        BadField::Value => Fault::ValueControl,
    })
}

/// Starts a head from the pseudo-fields: `:method`, `:path` (`:authority` again for CONNECT) and
/// `:authority`, which becomes the Host field.
///
/// # Errors
/// As for a request line.
pub fn begin(
    head: &mut RequestHead,
    method: &[u8],
    authority: Option<&[u8]>,
    path: &[u8],
    rules: PathRules,
) -> Result<(), HeadError> {
    let fail = |fault| HeadError { fault, offset: 0 };
    head.clear();
    head.version = Version::Http2;
    if !crate::request::is_visible(path) {
        return Err(fail(Fault::TargetCharacter));
    }
    if !crate::fields::is_token(method) {
        return Err(fail(Fault::Method));
    }
    // An absolute target would be a second authority.
    let connect = method == b"CONNECT";
    if !connect && path != b"*" && path.first() != Some(&b'/') {
        return Err(fail(Fault::TargetForm));
    }
    head.set_line(method, path, rules).map_err(fail)?;
    if let Some(authority) = authority {
        head.set_authority(authority).map_err(fail)?;
        head.fields.push_received(b"Host", authority).map_err(|_| fail(Fault::HostInvalid))?;
    }
    Ok(())
}

/// Checks a head whose fields are complete and returns the announced length of its body;
/// [`BodyLength::Chunked`] when none is announced (the stream's end tells, which may be at once).
///
/// # Errors
/// [`Fault::ConnectionField`] for fields that only HTTP/1 has, [`Fault::HostDiffers`],
/// [`Fault::HostMissing`], [`Fault::ContentLength`] and [`Fault::ContentLengthTwice`],
/// [`Fault::Expectation`].
pub fn finish(head: &mut RequestHead) -> Result<BodyLength, HeadError> {
    let fail = |fault| HeadError { fault, offset: 0 };
    let fields = &mut head.fields;
    let te = fields.get_all(Known::Te).any(|te| !te.eq_ignore_ascii_case(b"trailers"));
    if fields.has_any(HTTP1_ONLY) || te {
        return Err(fail(Fault::ConnectionField));
    }
    fields.join_cookies();
    framing::expects_continue(fields).map_err(fail)?;
    let length = framing::content_length(fields).map_err(fail)?;
    head.settle_repeated_host().map_err(fail)?;
    Ok(length.map_or(BodyLength::Chunked, BodyLength::Known))
}

/// Checks the head of an answer to `method` whose status and fields are complete, and returns the
/// length of its body: [`BodyLength::None`] where there can be none, [`BodyLength::Chunked`] where only
/// the stream's end tells. `ended`: the stream has ended with this head.
///
/// # Errors
/// [`Fault::StatusCode`] also for 101, which HTTP/2 does not have, [`Fault::ConnectionField`],
/// [`Fault::ContentLength`] and [`Fault::ContentLengthTwice`], [`Fault::BodyForbidden`] for a length
/// where there is no body.
pub fn finish_answer(
    head: &mut ResponseHead,
    method: Method,
    ended: bool,
) -> Result<BodyLength, HeadError> {
    let fail = |fault| HeadError { fault, offset: 0 };
    head.version = Version::Http2;
    if head.status < 100 || head.status == 101 {
        return Err(fail(Fault::StatusCode));
    }
    if head.fields.has_any(HTTP1_ONLY) {
        return Err(fail(Fault::ConnectionField));
    }
    let length = framing::content_length(&head.fields).map_err(fail)?;
    let bodiless = head.is_interim() || head.status == 204;
    if bodiless && length.is_some_and(|length| length > 0) {
        return Err(fail(Fault::BodyForbidden));
    }
    if bodiless || head.status == 304 || method == Method::Head {
        return Ok(BodyLength::None);
    }
    Ok(match length {
        Some(length) => BodyLength::Known(length),
        None if ended => BodyLength::Known(0),
        None => BodyLength::Chunked,
    })
}

/// The fields of a head or of trailers that go on in HTTP/2: without what concerns the other
/// connection, by its name or because a `Connection` field says so, without framing and without
/// imitations of guarded names.
pub fn onward(fields: &Fields) -> impl Iterator<Item = Field<'_>> {
    const DROPPED: u64 = HTTP1_ONLY
        | Known::Te.bit()
        | Known::Http2Settings.bit()
        | Known::ContentLength.bit()
        | Known::Lookalike.bit();
    let strip = fields.has(Known::Connection);
    let goes_on = move |entry: &&crate::fields::Entry| {
        DROPPED & entry.known.bit() == 0 && !(strip && fields.connection_removes(entry))
    };
    let field = |entry: &crate::fields::Entry| Field {
        known: entry.known,
        name: fields.name(entry),
        value: fields.value(entry),
    };
    fields.entries().iter().filter(goes_on).map(field)
}

/// Whether the receiver of trailers is known to take them: a `TE` field that lists `trailers`, which is
/// all of it that goes on.
pub fn takes_trailers(fields: &Fields) -> bool {
    framing::lists(fields, Known::Te, b"trailers")
}
