//! The head of an answer.

use crate::fields::Fields;
use crate::version::Version;

/// An answer's status, reason and fields. Reused: [`ResponseHead::clear`] keeps the buffers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ResponseHead {
    /// 100 to 999.
    pub status: u16,
    /// The version it was received in; the serialiser always writes 1.1.
    pub version: Version,
    /// The fields.
    pub fields: Fields,
    reason: Vec<u8>,
}

impl ResponseHead {
    /// An empty head with status 0.
    pub fn new() -> ResponseHead {
        ResponseHead::default()
    }

    /// Empties it and keeps the buffers.
    pub fn clear(&mut self) {
        self.status = 0;
        self.version = Version::Http11;
        self.reason.clear();
        self.fields.clear();
    }

    /// Empties it and starts an answer of our own.
    pub fn begin(&mut self, status: u16) {
        self.clear();
        self.status = status;
    }

    /// The reason phrase as received, or the usual one where there was none.
    pub fn reason(&self) -> &[u8] {
        if self.reason.is_empty() { reason_phrase(self.status).as_bytes() } else { &self.reason }
    }

    pub(crate) fn set_reason(&mut self, reason: &[u8]) {
        self.reason.clear();
        self.reason.extend_from_slice(reason);
    }

    /// 100 to 199: another head follows, unless the connection switches protocols (101).
    pub fn is_interim(&self) -> bool {
        (100..200).contains(&self.status)
    }

    /// Whether no other head follows for this request: 101, and everything from 200.
    pub fn is_final(&self) -> bool {
        self.status == 101 || self.status >= 200
    }
}

/// The registered reason phrase of a status, empty for an unregistered one.
pub fn reason_phrase(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        102 => "Processing",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        207 => "Multi-Status",
        208 => "Already Reported",
        226 => "IM Used",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        305 => "Use Proxy",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        423 => "Locked",
        424 => "Failed Dependency",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        506 => "Variant Also Negotiates",
        507 => "Insufficient Storage",
        508 => "Loop Detected",
        510 => "Not Extended",
        511 => "Network Authentication Required",
        _ => "",
    }
}
