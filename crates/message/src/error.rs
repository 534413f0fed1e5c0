//! What can be wrong with a head, and the status each fault is answered with.

use std::fmt;

/// Why a head was refused, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeadError {
    /// What is wrong.
    pub fault: Fault,
    /// Bytes from the start of the buffer to the offending place (the field's line, where a whole
    /// field is at fault; 0 for heads that did not come as text).
    pub offset: usize,
}

impl HeadError {
    /// The status to answer a request with. A faulty answer of an endpoint is always a 502.
    pub fn status(&self) -> u16 {
        self.fault.status()
    }
}

impl fmt::Display for HeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.fault.message(), self.offset)
    }
}

impl std::error::Error for HeadError {}

/// A name or value that can not be written into a head without changing its meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadField {
    /// The name is empty, longer than 65,535 bytes, or not a token.
    Name,
    /// The value has a control character (a line end above all) or does not fit.
    Value,
}

impl fmt::Display for BadField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadField::Name => "a field name must be a token: letters, digits and !#$%&'*+-.^_`|~",
            BadField::Value => "a field value must not contain control characters or line ends",
        })
    }
}

impl std::error::Error for BadField {}

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident => $status:literal, $message:literal;)*) => {
        /// What can be wrong with a head.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Fault {
            $($(#[$doc])* #[doc = concat!("(", $status, ": ", $message, ")")] $name,)*
        }

        impl Fault {
            /// Every fault.
            pub const ALL: &[Fault] = &[$(Fault::$name,)*];

            /// The status a request with this fault is answered with.
            pub fn status(self) -> u16 {
                match self { $(Fault::$name => $status,)* }
            }

            /// What was wrong, for the log and for the body of the answer.
            pub fn message(self) -> &'static str {
                match self { $(Fault::$name => $message,)* }
            }
        }
    };
}

faults! {
    /// The grammar of the first line.
    RequestLine => 400, "the request line is not \"METHOD target HTTP/1.1\" with single spaces";
    /// More than one line end before the request line.
    LeadingEmptyLines => 400, "more than one empty line before the request line";
    /// A method that is no token, too long, or a known one in another case.
    Method => 400, "the method is not a token, is too long, or is a known method in wrong case";
    /// No `HTTP/` at the end of the request line (the HTTP/0.9 form included).
    NotHttp => 400, "the first line names no HTTP version";
    /// Not 1.0 or 1.1.
    Version => 505, "only HTTP/1.0 and HTTP/1.1 are spoken in this form";
    /// Spaces, controls, non-ASCII bytes or a fragment in the target.
    TargetCharacter => 400, "the target has a control, a space, a '#' or a byte that is not ASCII";
    /// Neither a path, nor an http(s) URI, nor `*` with OPTIONS, nor an authority with CONNECT.
    TargetForm => 400, "the target has a form that this method does not allow";
    /// The scheme of an absolute target is not the connection's.
    Misdirected => 421, "the target's scheme is not the one of this connection";
    /// A request on a connection whose client was verified in another way than is asked for now.
    Outdated => 421, "what is asked of clients' certificates has changed since this connection began; connect again";
    /// `%` without two hex digits in the path.
    PathPercent => 400, "a '%' in the path is not followed by two hexadecimal digits";
    /// `%00`, a backslash or an overlong form of UTF-8 in the path.
    PathCharacter => 400, "the path has an encoded NUL, a backslash, or a character in an overlong encoding";
    /// `%2F` or `%5C` in the path, unless the listener allows it.
    PathEncodedSlash => 400, "the path has an encoded slash or backslash (%2F or %5C)";
    /// A dot segment that endpoints resolve differently.
    PathDotSegment => 400, "the path has a dot segment with parameters, beside an encoded slash, or a '..' behind an empty segment";
    /// Dot segments that leave the root.
    PathAboveRoot => 400, "the path's dot segments lead above the root";
    /// HTTP/1.1 without Host.
    HostMissing => 400, "an HTTP/1.1 request must have a Host field";
    /// Two Host lines.
    HostTwice => 400, "more than one Host field";
    /// Neither `host` nor `host:port`.
    HostInvalid => 400, "the host is not a name, an IPv4 or a bracketed IPv6 address, with an optional port";
    /// A WebSocket is asked for without a key that could be answered, where Subak has to answer it.
    WebSocketKey => 400, "the handshake of a WebSocket has no Sec-WebSocket-Key of 24 characters";
    /// Host and `:authority` of an HTTP/2 request differ.
    HostDiffers => 400, "Host and :authority name different hosts";
    /// LF without CR.
    BareLf => 400, "a line ends with LF alone; CR LF is required";
    /// CR without LF.
    BareCr => 400, "a CR that is not followed by LF";
    /// NUL or another control in a field value.
    ValueControl => 400, "a field value contains a control character";
    /// A value of HTTP/2 that begins or ends with a space or a tab (RFC 9113, 8.2.1).
    ValueSpace => 400, "a field value begins or ends with whitespace";
    /// A line that begins with whitespace: obsolete folding, or space before the first field.
    Folded => 400, "a field line begins with whitespace (obsolete line folding)";
    /// Space between name and colon.
    SpaceBeforeColon => 400, "whitespace between a field name and its colon";
    /// A name with other characters than a token's, or no colon.
    FieldName => 400, "a field name is empty, has a character that is not allowed, or lacks its colon";
    /// A Connection list longer than any honest one: each member is compared with each field.
    ConnectionTooLong => 400, "the Connection field has more than 64 members or more than 1024 bytes";
    /// The field in which a trusted proxy names the client is malformed.
    ClientUnreadable => 400, "the field in which the trusted proxy names the client cannot be read";
    /// A Connection list with a field that goes from end to end, or that the configuration reads.
    ConnectionNames => 400, "the Connection field names a field that goes from end to end";
    /// More different values of a name than a limit counts by: any of them may be the endpoint's.
    KeyTooOften => 400, "a field, cookie or parameter that a limit counts by has more than 8 different values";
    /// Head too large.
    HeadTooLarge => 431, "the head is larger than allowed";
    /// Request line too large.
    TargetTooLong => 414, "the request line is longer than allowed";
    /// Too many fields.
    TooManyFields => 431, "the head has more fields than allowed";
    /// Content-Length that is not a plain decimal number.
    ContentLength => 400, "Content-Length is not one plain decimal number";
    /// More than one Content-Length line, equal or not.
    ContentLengthTwice => 400, "more than one Content-Length field";
    /// Both ways of framing.
    LengthAndCoding => 400, "both Content-Length and Transfer-Encoding";
    /// Transfer-Encoding in HTTP/1.0.
    CodingInHttp10 => 400, "Transfer-Encoding in an HTTP/1.0 message";
    /// A coding list that can not be read in one way.
    CodingMalformed => 400, "Transfer-Encoding is malformed, or \"chunked\" is not its only last coding";
    /// A coding that is not chunked.
    CodingUnknown => 501, "a transfer coding other than chunked";
    /// An expectation other than 100-continue.
    Expectation => 417, "an expectation other than 100-continue";
    /// A body where none is possible: CONNECT, or an answer 1xx, 204 or 101.
    BodyForbidden => 400, "framing fields where no body is possible";
    /// A field that belongs to a connection, in a version that has none.
    ConnectionField => 400, "a connection-specific field in an HTTP/2 message";
    /// An extended CONNECT to something else than a WebSocket (RFC 9220, 3).
    StreamProtocol => 501, "only \"websocket\" is spoken over a stream";
    /// The grammar of the status line.
    StatusLine => 400, "the status line is not \"HTTP/1.1 200 reason\" with single spaces";
    /// A status below 100.
    StatusCode => 400, "the status is not between 100 and 999";
    /// A switch of protocols nobody asked for, or to h2c, or to nothing.
    UnaskedUpgrade => 400, "the endpoint switched protocols without being asked to";
    /// A 101 to a handshake of Subak's own without the proof that belongs to its key.
    UnprovenUpgrade => 400, "the endpoint's Sec-WebSocket-Accept does not prove that it speaks WebSocket";
}
