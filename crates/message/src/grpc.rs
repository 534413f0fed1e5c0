//! What Subak has to understand of gRPC, which is HTTP/2 with a status of its own in the trailers: what
//! is a call, how it ended, how long its client waits, and what an error of Subak's own looks like.
//!
//! A call that fails before its first message has one head for an answer, status 200 with `grpc-status`
//! in it, and no body: *trailers only*. Messages are passed through and never looked at.
//!
//! Source: the protocol's own description, "gRPC over HTTP2", and its mapping of HTTP statuses.

use std::fmt;
use std::time::Duration;

use crate::fields::Fields;
use crate::known::Known;
use crate::request::RequestHead;
use crate::version::Version;

/// The field that says how a call ended.
pub const STATUS: &[u8] = b"grpc-status";
/// The field that says so in words.
pub const MESSAGE: &[u8] = b"grpc-message";
/// The field that says how long the client waits.
const TIMEOUT: &[u8] = b"grpc-timeout";
/// What every content type of gRPC begins with, and the one of answers without messages.
pub const CONTENT_TYPE: &[u8] = b"application/grpc";

/// Digits of a timeout.
const TIMEOUT_DIGITS: usize = 8;

macro_rules! codes {
    ($($number:literal $variant:ident $name:literal)*) => {
        /// How a call ended.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum Code { $(#[doc = concat!("`", $name, "`, ", $number)] $variant = $number,)* }

        impl Code {
            /// Every code, in the order of its number.
            pub const ALL: [Code; 17] = [$(Code::$variant,)*];

            /// Its name, as metrics, logs and configurations have it.
            pub const fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }
        }
    };
}

codes! {
    0 Ok "ok"
    1 Cancelled "cancelled"
    2 Unknown "unknown"
    3 InvalidArgument "invalid_argument"
    4 DeadlineExceeded "deadline_exceeded"
    5 NotFound "not_found"
    6 AlreadyExists "already_exists"
    7 PermissionDenied "permission_denied"
    8 ResourceExhausted "resource_exhausted"
    9 FailedPrecondition "failed_precondition"
    10 Aborted "aborted"
    11 OutOfRange "out_of_range"
    12 Unimplemented "unimplemented"
    13 Internal "internal"
    14 Unavailable "unavailable"
    15 DataLoss "data_loss"
    16 Unauthenticated "unauthenticated"
}

impl Code {
    /// The code with this name.
    pub fn by_name(name: &str) -> Option<Code> {
        Code::ALL.into_iter().find(|code| code.name() == name)
    }

    /// How the call ended whose trailers (or only head) these are; none where they do not say. What
    /// is no number of a code counts as [`Code::Unknown`], as clients take it.
    pub fn of(fields: &Fields) -> Option<Code> {
        let text = fields.get_named(STATUS)?;
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<usize>().ok());
        Some(number.and_then(|number| Code::ALL.get(number).copied()).unwrap_or(Code::Unknown))
    }

    /// What a client that finds no `grpc-status` makes of an HTTP status.
    pub fn of_http(status: u16) -> Code {
        match status {
            400 => Code::Internal,
            401 => Code::Unauthenticated,
            403 => Code::PermissionDenied,
            404 => Code::Unimplemented,
            429 | 502..=504 => Code::Unavailable,
            _ => Code::Unknown,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({})", *self as u8, self.name())
    }
}

/// Some of the codes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Codes(u32);

impl Codes {
    /// With one more.
    #[must_use]
    pub fn with(self, code: Code) -> Codes {
        Codes(self.0 | 1 << code as u8)
    }

    /// Whether it is one of them.
    pub fn contains(self, code: Code) -> bool {
        self.0 & 1 << code as u8 != 0
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Whether this request is a call: gRPC is spoken over HTTP/2 alone, and its content types begin alike.
#[inline]
pub fn is_call(head: &RequestHead) -> bool {
    head.version == Version::Http2
        && head.fields.get(Known::ContentType).is_some_and(is_content_type)
}

fn is_content_type(value: &[u8]) -> bool {
    let Some((begin, rest)) = value.split_at_checked(CONTENT_TYPE.len()) else { return false };
    begin.eq_ignore_ascii_case(CONTENT_TYPE) && matches!(rest.first(), None | Some(b'+' | b';'))
}

/// How long the client of this call waits; none where it waits for ever, or says something that cannot
/// be read, which is for the endpoint to refuse.
pub fn timeout(fields: &Fields) -> Option<Duration> {
    let (unit, digits) = fields.get_named(TIMEOUT)?.split_last()?;
    if !(1..=TIMEOUT_DIGITS).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let count = std::str::from_utf8(digits).ok()?.parse::<u64>().ok()?;
    Some(match unit {
        b'H' => Duration::from_secs(3600 * count),
        b'M' => Duration::from_secs(60 * count),
        b'S' => Duration::from_secs(count),
        b'm' => Duration::from_millis(count),
        b'u' => Duration::from_micros(count),
        b'n' => Duration::from_nanos(count),
        _ => return None,
    })
}

/// A message as the field has it: visible ASCII and spaces, all else as `%` and two digits.
pub fn encode_message(text: &str) -> Vec<u8> {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut encoded = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'%' => encoded.extend_from_slice(b"%25"),
            b' '..=b'~' => encoded.push(byte),
            _ => {
                encoded.push(b'%');
                encoded.push(DIGITS[usize::from(byte >> 4)]);
                encoded.push(DIGITS[usize::from(byte & 15)]);
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(name: &[u8], value: &[u8]) -> Fields {
        let mut fields = Fields::new();
        fields.push(name, value).expect("a field");
        fields
    }

    #[test]
    fn codes_have_their_numbers_and_names() {
        for (number, code) in Code::ALL.into_iter().enumerate() {
            assert_eq!(code as usize, number);
            assert_eq!(Code::by_name(code.name()), Some(code));
            assert_eq!(Code::of(&fields(STATUS, number.to_string().as_bytes())), Some(code));
            let only = Codes::default().with(code);
            assert!(Code::ALL.into_iter().all(|other| only.contains(other) == (other == code)));
        }
        assert_eq!(Code::of(&Fields::new()), None);
        for odd in ["", "17", "-1", "4294967296", "x"] {
            assert_eq!(Code::of(&fields(STATUS, odd.as_bytes())), Some(Code::Unknown), "{odd:?}");
        }
        assert!(Codes::default().is_empty());
    }

    #[test]
    fn http_statuses_are_mapped_as_clients_map_them() {
        let of = |status| Code::of_http(status).name();
        assert_eq!(
            [400, 401, 403, 404].map(of),
            ["internal", "unauthenticated", "permission_denied", "unimplemented"]
        );
        assert_eq!([429, 502, 503, 504].map(of), ["unavailable"; 4]);
        assert_eq!([200, 405, 413, 500, 505].map(of), ["unknown"; 5]);
    }

    #[test]
    fn a_call_is_known_by_its_content_type() {
        let mut head = RequestHead::default();
        for (content_type, is) in [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("Application/gRPC; charset=utf-8", true),
            ("application/grpc-web", false),
            ("application/grpcx", false),
            ("application/json", false),
            ("application", false),
        ] {
            head.clear();
            head.fields.push_known(Known::ContentType, content_type.as_bytes()).expect("a field");
            assert!(!is_call(&head), "not by HTTP/1.1: {content_type}");
            head.version = Version::Http2;
            assert_eq!(is_call(&head), is, "{content_type}");
        }
    }

    #[test]
    fn timeouts_have_digits_and_a_unit() {
        let timeout = |text: &str| timeout(&fields(TIMEOUT, text.as_bytes()));
        assert_eq!(timeout("1H"), Some(Duration::from_secs(3600)));
        assert_eq!(timeout("2M"), Some(Duration::from_secs(120)));
        assert_eq!(timeout("3S"), Some(Duration::from_secs(3)));
        assert_eq!(timeout("250m"), Some(Duration::from_millis(250)));
        assert_eq!(timeout("7u"), Some(Duration::from_micros(7)));
        assert_eq!(timeout("99999999n"), Some(Duration::from_nanos(99_999_999)));
        assert_eq!(timeout("0S"), Some(Duration::ZERO));
        for odd in ["", "S", "1", "1s", "-1S", "+1S", "1 S", "123456789S", "1.5S", "é"] {
            assert_eq!(timeout(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn messages_are_visible_ascii() {
        assert_eq!(encode_message("50 % of Ubud\n"), b"50 %25 of Ubud%0A");
        assert_eq!(encode_message("ä~"), b"%C3%A4~");
    }
}
