//! Request methods: what may be repeated, and what changes nothing.

/// A request method. The spelling of [`Method::Other`] is kept by
/// [`RequestHead::method_text`](crate::RequestHead::method_text).
///
/// Methods are case-sensitive (RFC 9110, 9.1). A token that differs from a method of this list only
/// by case is refused when a head is read, because endpoints disagree on whether `head` has a body.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Method {
    /// GET
    #[default]
    Get,
    /// HEAD: the answer has the head of GET's answer and no body.
    Head,
    /// POST
    Post,
    /// PUT
    Put,
    /// DELETE
    Delete,
    /// OPTIONS
    Options,
    /// PATCH
    Patch,
    /// CONNECT: a successful answer turns the connection into a tunnel.
    Connect,
    /// TRACE
    Trace,
    /// Any other token.
    Other,
}

/// The longest method that is accepted, in bytes.
pub(crate) const MAX_METHOD_BYTES: usize = 32;

impl Method {
    /// All methods known by name.
    pub const NAMED: [Method; 9] = [
        Method::Get,
        Method::Head,
        Method::Post,
        Method::Put,
        Method::Delete,
        Method::Options,
        Method::Patch,
        Method::Connect,
        Method::Trace,
    ];

    /// Which method this exact spelling is.
    pub fn from_bytes(text: &[u8]) -> Method {
        match text {
            b"GET" => Method::Get,
            b"HEAD" => Method::Head,
            b"POST" => Method::Post,
            b"PUT" => Method::Put,
            b"DELETE" => Method::Delete,
            b"OPTIONS" => Method::Options,
            b"PATCH" => Method::Patch,
            b"CONNECT" => Method::Connect,
            b"TRACE" => Method::Trace,
            _ => Method::Other,
        }
    }

    /// The method's name; `None` for [`Method::Other`].
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
            Method::Options => "OPTIONS",
            Method::Patch => "PATCH",
            Method::Connect => "CONNECT",
            Method::Trace => "TRACE",
            Method::Other => return None,
        })
    }

    /// Asks for nothing to change (RFC 9110, 9.2.1).
    pub fn is_safe(self) -> bool {
        matches!(self, Method::Get | Method::Head | Method::Options | Method::Trace)
    }

    /// Twice has the effect of once (RFC 9110, 9.2.2), so that a failed one may be repeated.
    pub fn is_idempotent(self) -> bool {
        self.is_safe() || matches!(self, Method::Put | Method::Delete)
    }
}

/// Reads a method token: `None` when it is too long or imitates a known method by case.
pub(crate) fn parse_method(text: &[u8]) -> Option<Method> {
    let method = Method::from_bytes(text);
    if method != Method::Other {
        return Some(method);
    }
    let imitates = Method::NAMED
        .iter()
        .any(|m| m.name().is_some_and(|name| name.as_bytes().eq_ignore_ascii_case(text)));
    (text.len() <= MAX_METHOD_BYTES && !text.is_empty() && !imitates).then_some(Method::Other)
}
