//! From what the library has decoded to the head of a request.

use h2::ext::Protocol;
use subak_message::{
    BodyLength, Fault, HeadError, HeadLimits, Known, Method, RequestHead, h2 as grammar,
};

use crate::service::Service;
use crate::websocket;

/// How long a body is that ended with its head. Methods that usually have one say that it is empty:
/// some endpoints insist on a length.
pub(super) fn absent_body(head: &RequestHead, announced: BodyLength) -> BodyLength {
    let usual = matches!(head.method, Method::Post | Method::Put | Method::Patch);
    match usual || announced == BodyLength::Known(0) {
        true => BodyLength::Known(0),
        false => BodyLength::None,
    }
}

/// Reads a request's head: the announced length of its body, and whether it asks for a WebSocket, which
/// is then asked for as HTTP/1.1 does it.
pub(super) fn read_head(
    head: &mut RequestHead,
    parts: &http::request::Parts,
    service: &Service,
    random: impl Fn() -> u64,
) -> Result<(BodyLength, bool), HeadError> {
    let fail = |fault| Err(HeadError { fault, offset: 0 });
    let protocol = parts.extensions.get::<Protocol>();
    let method = match protocol {
        Some(protocol) if protocol.as_str() == websocket::PROTOCOL => "GET",
        Some(_) => return fail(Fault::StreamProtocol),
        None => parts.method.as_str(),
    };
    // Behind a proxy that ends TLS it need not be that of the connection, and nothing goes by it.
    if parts.uri.scheme().is_some_and(|scheme| !matches!(scheme.as_str(), "http" | "https")) {
        return fail(Fault::TargetForm);
    }
    let authority = parts.uri.authority().map(|authority| authority.as_str().as_bytes());
    let path = match parts.uri.path_and_query() {
        Some(path) => path.as_str().as_bytes(),
        // Only CONNECT has none.
        None => authority.unwrap_or_default(),
    };
    let HeadLimits { max_bytes, max_fields, path: rules } = service.head_limits;
    let line = method.len() + authority.map_or(0, <[u8]>::len) + path.len();
    // As many bytes as it would have as text, nearly.
    let sizes = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    if line + sizes.sum::<usize>() > max_bytes {
        return fail(Fault::HeadTooLarge);
    }
    grammar::begin(head, method.as_bytes(), authority, path, rules)?;
    if parts.headers.len() > max_fields {
        return fail(Fault::TooManyFields);
    }
    for (name, value) in &parts.headers {
        let pushed = grammar::push(&mut head.fields, name.as_str().as_bytes(), value.as_bytes());
        pushed.map_err(|fault| HeadError { fault, offset: 0 })?;
    }
    let body = grammar::finish(head)?;
    if protocol.is_none() {
        return Ok((body, false));
    }
    if let BodyLength::Known(_) = body {
        return fail(Fault::BodyForbidden);
    }
    head.fields.remove(Known::Expect);
    let begun = websocket::begin(head, [random(), random()]);
    begun.map_err(|_| HeadError { fault: Fault::ValueControl, offset: 0 })?;
    Ok((BodyLength::None, true))
}
