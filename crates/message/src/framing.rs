//! Where does a message's body end? The rules of RFC 9112, 6.3, without the guesses.

use crate::claims::is_claim;
use crate::error::Fault;
use crate::fields::Fields;
use crate::known::Known;

/// How long a body is, as framed on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BodyLength {
    /// There is no body.
    #[default]
    None,
    /// Exactly so many bytes; 0 is a body that was announced and is empty.
    Known(u64),
    /// Chunked (HTTP/1.1), or until the stream ends (HTTP/2).
    Chunked,
    /// Until the endpoint closes the connection; answers only.
    UntilClose,
}

impl BodyLength {
    /// True when no byte of body follows.
    pub fn is_empty(self) -> bool {
        matches!(self, BodyLength::None | BodyLength::Known(0))
    }
}

/// What the `Connection` fields of a message say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ConnectionOptions {
    /// `close`
    pub close: bool,
    /// `keep-alive`
    pub keep_alive: bool,
    /// `upgrade`
    pub upgrade: bool,
    /// Names of fields that must not be forwarded.
    pub names: bool,
    /// Something that is not a list of tokens. The connection is then not reused; the field itself
    /// never goes further, so that no body is at stake.
    pub malformed: bool,
}

/// The most members a `Connection` list may have, empty ones included.
pub(crate) const MAX_CONNECTION_MEMBERS: usize = 64;
/// The most bytes of all `Connection` values: each field's name is looked for among them.
pub(crate) const MAX_CONNECTION_BYTES: usize = 1024;

impl ConnectionOptions {
    /// Reads the `Connection` fields of a received head.
    ///
    /// # Errors
    /// [`Fault::ConnectionTooLong`]
    pub(crate) fn received(fields: &Fields) -> Result<ConnectionOptions, Fault> {
        let (mut bytes, mut members) = (0, 0);
        for value in fields.get_all(Known::Connection) {
            bytes += value.len();
            if bytes > MAX_CONNECTION_BYTES {
                return Err(Fault::ConnectionTooLong);
            }
            members += 1 + memchr::memchr_iter(b',', value).count();
        }
        if members > MAX_CONNECTION_MEMBERS {
            return Err(Fault::ConnectionTooLong);
        }
        Ok(ConnectionOptions::of(fields))
    }

    /// Reads all `Connection` fields.
    pub fn of(fields: &Fields) -> ConnectionOptions {
        let mut options = ConnectionOptions::default();
        if !fields.has(Known::Connection) {
            return options;
        }
        for value in fields.get_all(Known::Connection) {
            // The two values that nearly every message has, without the list machinery.
            if value.eq_ignore_ascii_case(b"keep-alive") {
                options.keep_alive = true;
            } else {
                for member in members(value) {
                    options.add(member);
                }
            }
        }
        options
    }

    fn add(&mut self, member: &[u8]) {
        if member.eq_ignore_ascii_case(b"close") {
            self.close = true;
        } else if member.eq_ignore_ascii_case(b"keep-alive") {
            self.keep_alive = true;
        } else if member.eq_ignore_ascii_case(b"upgrade") {
            self.upgrade = true;
        } else if crate::fields::is_token(member) {
            self.names = true;
        } else {
            self.malformed = true;
        }
    }
}

/// The members of a comma-separated list, without surrounding whitespace; empty ones are skipped.
pub(crate) fn members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(value);
    let all = std::iter::from_fn(move || {
        let list = rest?;
        let end = memchr::memchr(b',', list);
        rest = end.map(|end| &list[end + 1..]);
        Some(&list[..end.unwrap_or(list.len())])
    });
    all.map(<[u8]>::trim_ascii).filter(|member| !member.is_empty())
}

/// Whether a request's `Connection` field names a field that goes from end to end: what endpoints read
/// of every request, or by what proxies tell of a client.
#[cold]
pub(crate) fn nominates_end_to_end(fields: &Fields) -> bool {
    /// Names that begin so are not all [`Known`].
    const BEGINNINGS: [&[u8]; 5] = [b"accept-", b"access-control-", b"content-", b"if-", b"sec-"];
    let is_end_to_end = |member: &[u8]| {
        let begins = |beginning: &&[u8]| {
            member.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning))
        };
        !Known::classify(member).is_nominable() || is_claim(member) || BEGINNINGS.iter().any(begins)
    };
    fields.get_all(Known::Connection).any(|value| members(value).any(is_end_to_end))
}

/// Whether `Upgrade` names HTTP itself: h2c in any version or spelling, h2, or HTTP. A connection that
/// became one of them would carry requests that nobody looks at.
pub(crate) fn upgrades_to_http(fields: &Fields) -> bool {
    fields.get_all(Known::Upgrade).any(|value| {
        value.windows(3).any(|part| part.eq_ignore_ascii_case(b"h2c"))
            || members(value).any(|member| {
                let name = member.split(|byte| *byte == b'/').next().unwrap_or(member).trim_ascii();
                name.eq_ignore_ascii_case(b"h2") || name.eq_ignore_ascii_case(b"http")
            })
    })
}

/// True when any field of this name has `token` in its list, in any case.
pub(crate) fn lists(fields: &Fields, known: Known, token: &[u8]) -> bool {
    fields.get_all(known).any(|value| members(value).any(|m| m.eq_ignore_ascii_case(token)))
}

/// The value of Content-Length; `None` without one.
///
/// # Errors
/// [`Fault::ContentLengthTwice`] for a second line even if equal, [`Fault::ContentLength`] for
/// anything but 1 to 19 digits: no sign, list, space, fraction or other base.
pub(crate) fn content_length(fields: &Fields) -> Result<Option<u64>, Fault> {
    if !fields.has(Known::ContentLength) {
        return Ok(None);
    }
    let mut values = fields.get_all(Known::ContentLength);
    let value = values.next().unwrap_or_default();
    if values.next().is_some() {
        return Err(Fault::ContentLengthTwice);
    }
    parse_length(value).map(Some).ok_or(Fault::ContentLength)
}

/// 1 to 19 decimal digits up to 2⁶³ − 1, which is what the signed arithmetic of others can hold.
fn parse_length(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    let mut length = 0u64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        // 19 nines fit into 64 bits.
        length = length * 10 + u64::from(digit - b'0');
    }
    (length <= i64::MAX as u64).then_some(length)
}

/// Checks that the Transfer-Encoding fields say `chunked` and nothing else.
///
/// # Errors
/// [`Fault::CodingMalformed`] when the list has something that is no token, nothing at all, or
/// `chunked` twice or before another coding; [`Fault::CodingUnknown`] for other codings.
pub(crate) fn transfer_coding(fields: &Fields) -> Result<(), Fault> {
    let (mut codings, mut chunked) = (0u32, 0u32);
    let mut chunked_is_last = false;
    for value in fields.get_all(Known::TransferEncoding) {
        for member in value.split(|&byte| byte == b',') {
            let member = trim_ows(member);
            let name = member.split(|&byte| byte == b';').next().unwrap_or_default();
            if !crate::fields::is_token(trim_ows(name)) {
                return Err(Fault::CodingMalformed);
            }
            codings += 1;
            chunked_is_last = member.eq_ignore_ascii_case(b"chunked");
            // Counted with its parameters, which it must not have.
            chunked += u32::from(trim_ows(name).eq_ignore_ascii_case(b"chunked"));
        }
    }
    match (codings, chunked, chunked_is_last) {
        (1, 1, true) => Ok(()),
        (_, 1, true) | (1.., 0, _) => Err(Fault::CodingUnknown),
        _ => Err(Fault::CodingMalformed),
    }
}

/// True when `Expect: 100-continue` is there.
///
/// # Errors
/// [`Fault::Expectation`] for any other expectation.
pub(crate) fn expects_continue(fields: &Fields) -> Result<bool, Fault> {
    if !fields.has(Known::Expect) {
        return Ok(false);
    }
    let all = fields.get_all(Known::Expect).all(|v| v.eq_ignore_ascii_case(b"100-continue"));
    if all { Ok(true) } else { Err(Fault::Expectation) }
}

pub(crate) fn trim_ows(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(text.len());
    let end =
        text.iter().rposition(|byte| !matches!(byte, b' ' | b'\t')).map_or(start, |at| at + 1);
    &text[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_field_is_bounded_in_members_and_bytes() {
        let received = |values: &[&str]| {
            let mut fields = Fields::new();
            for value in values {
                fields.push_received(b"Connection", value.as_bytes()).unwrap();
            }
            ConnectionOptions::received(&fields)
        };
        let names = "x,".repeat(63) + "close";
        assert!(received(&[&names]).is_ok_and(|options| options.close && options.names));
        let long = format!("close,{}", "x".repeat(1018));
        assert!(received(&[&long]).is_ok_and(|options| options.close));
        for values in [
            &[&*",".repeat(64)][..],
            &[&*",".repeat(30_000)],
            &[&*" ,".repeat(65)],
            &[&names, "close"],
            &[&*"x".repeat(1025)],
            &[&*format!("a,{}b", " ".repeat(30_000))],
            &["close"; 65],
        ] {
            assert_eq!(received(values), Err(Fault::ConnectionTooLong));
        }
    }
}
