//! How a decoded HTTP/2 request becomes the same [`RequestHead`] (RFC 9113, 8.3), and which frames
//! pass by on a connection ([`FrameHeads`]).
//!
//! The caller gives the pseudo-fields to [`begin`], appends the fields by
//! [`Fields::push_received`](crate::Fields::push_received), and lets [`finish`] check the whole.

mod frames;

pub use frames::{FrameHead, FrameHeads};

use crate::error::{Fault, HeadError};
use crate::framing::{self, BodyLength};
use crate::known::Known;
use crate::path::PathRules;
use crate::request::RequestHead;
use crate::version::Version;

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
    const HTTP1_ONLY: u64 = Known::Connection.bit()
        | Known::KeepAlive.bit()
        | Known::ProxyConnection.bit()
        | Known::TransferEncoding.bit()
        | Known::Upgrade.bit();
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
