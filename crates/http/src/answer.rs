//! Answers that Subak makes itself: errors, redirects, fixed ones.

use std::time::SystemTime;

use bytes::Bytes;
use subak_base::DecisionId;
use subak_config::{ErrorPages, HeaderEdits, Page, Part, Redirect, Respond, Variable};
use subak_message::grpc::{self, Code};
use subak_message::{
    BodyLength, Fields, Known, Method, RequestHead, ResponseHead, Scheme, reason_phrase,
};
use subak_net::Chunk;

use crate::decision::Named;
use crate::edit;
use crate::exchange::ClientSide;
use crate::failure::Failure;
use crate::limits::Told;
use crate::route::Route;
use crate::service::Service;

/// An answer that is made here.
struct Made<'a> {
    status: u16,
    content_type: Option<&'a str>,
    body: Bytes,
}

/// Changes to an answer's fields, in order.
#[derive(Clone, Copy)]
pub(crate) struct Changes<'a> {
    edits: &'a [HeaderEdits],
    named: Option<Named<'a>>,
    /// What is told of a rate.
    told: Option<&'a Told>,
}

impl<'a> Changes<'a> {
    /// The same, and what a rate leaves the client.
    pub(crate) fn telling(self, told: Option<&'a Told>) -> Changes<'a> {
        Changes { told, ..self }
    }

    fn apply(&self, fields: &mut Fields) {
        edit::apply(fields, self.edits);
        if let Some(named) = self.named {
            named.set(fields);
        }
        if let Some(told) = self.told {
            told.set(fields);
        }
    }
}

/// The changes to an answer to a request that this route took, or none.
pub(crate) fn changes<'a>(
    service: &'a Service,
    route: Option<&'a Route>,
    decision: Option<DecisionId>,
) -> Changes<'a> {
    let edits = route.map_or(&service.answer_edits, |route| &route.answer_edits);
    Changes { edits, named: service.decisions.shown(decision), told: None }
}

/// Where the page for a status is looked for.
#[derive(Clone, Copy)]
pub(crate) struct Pages<'a> {
    pub(crate) service: &'a Service,
    /// First.
    pub(crate) route: Option<&'a Route>,
}

/// Queues the answer to a failure: the configured page for its status, else one line of plain text.
pub(crate) fn failure<C: ClientSide>(
    client: &mut C,
    (failure, status): (&Failure, u16),
    method: Method,
    head: &mut ResponseHead,
    (Pages { service, route }, changes): (Pages<'_>, Changes<'_>),
) {
    // What is said by TLS alone is not said without it (RFC 6797, 7.2).
    let changes = match failure {
        Failure::NoTls => Changes { edits: &[], ..changes },
        _ => changes,
    };
    let page = |pages: &ErrorPages| pages.get(status).cloned();
    let page =
        route.and_then(|route| page(&route.error_pages)).or_else(|| page(&service.error_pages));
    head.begin(status);
    if let Some(seconds) = failure.retry_after_s() {
        push(head, Known::RetryAfter, seconds.to_string().as_bytes());
    }
    if status == 405 {
        push(head, Known::Allow, b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    }
    let text;
    let made = match &page {
        Some(Page { content_type, body }) => {
            Made { status, content_type: Some(content_type.as_str()), body: body.clone() }
        }
        None => {
            // What went wrong behind Subak is for its log, not for the world.
            text = match failure.fault() {
                crate::failure::Fault::Client => {
                    format!("{status} {}: {}\n", reason_phrase(status), failure.reason())
                }
                _ => format!("{status} {}\n", reason_phrase(status)),
            };
            let body = Bytes::from(text);
            Made { status, content_type: Some("text/plain; charset=utf-8"), body }
        }
    };
    send(client, head, made, method, changes);
}

/// Queues the answer to the failure of a gRPC call: a head alone, whose fields say how it ended.
pub(crate) fn call_failure<C: ClientSide>(
    client: &mut C,
    failure: &Failure,
    code: Code,
    head: &mut ResponseHead,
    changes: Changes<'_>,
) {
    head.begin(200);
    push(head, Known::Date, httpdate::fmt_http_date(SystemTime::now()).as_bytes());
    push(head, Known::ContentType, grpc::CONTENT_TYPE);
    // What went wrong behind Subak is for its log, not for the world.
    let reason = match failure.fault() {
        crate::failure::Fault::Client => failure.reason(),
        _ => code.name().replace('_', " "),
    };
    let mut say = |name: &[u8], value: &[u8]| {
        if let Err(error) = head.fields.push(name, value) {
            tracing::debug!(%error, "a field of a call's answer was left out");
        }
    };
    say(grpc::STATUS, (code as u8).to_string().as_bytes());
    say(grpc::MESSAGE, &grpc::encode_message(&reason));
    changes.apply(&mut head.fields);
    client.send_head(head, BodyLength::None);
    client.send_end(None);
}

/// Queues a redirect.
pub(crate) fn redirect<C: ClientSide>(
    client: &mut C,
    redirect: &Redirect,
    request: &RequestHead,
    head: &mut ResponseHead,
    changes: Changes<'_>,
) {
    let location = location(redirect, request);
    head.begin(redirect.status);
    push(head, Known::Location, &location);
    let made = Made { status: redirect.status, content_type: None, body: Bytes::new() };
    send(client, head, made, request.method, changes);
}

/// Whether a redirect leads to the host that was asked for, and none was: HTTP/1.0 may leave it out.
pub(crate) fn has_nowhere(redirect: &Redirect, request: &RequestHead) -> bool {
    let wants_host = redirect.to.parts.contains(&Part::Variable(Variable::Host));
    wants_host && request.host().is_empty()
}

/// Where a redirect leads: to a site that the configuration names, or to the client's own. Templates
/// do not begin with two slashes or a variable, so a second one here is the client's, and is encoded:
/// browsers take `//` and `/\` for the beginning of a host.
pub(crate) fn location(redirect: &Redirect, request: &RequestHead) -> Vec<u8> {
    let mut location = Vec::new();
    for part in &redirect.to.parts {
        match part {
            Part::Text(text) => location.extend_from_slice(text.as_bytes()),
            Part::Variable(variable) => location.extend_from_slice(value(*variable, request)),
        }
    }
    match location[..] {
        [b'/', b'/', ..] => drop(location.splice(1..2, *b"%2F")),
        [b'/', b'\\', ..] => drop(location.splice(1..2, *b"%5C")),
        _ => {}
    }
    location
}

/// Queues a fixed answer.
pub(crate) fn respond<C: ClientSide>(
    client: &mut C,
    respond: &Respond,
    method: Method,
    head: &mut ResponseHead,
    changes: Changes<'_>,
) {
    head.begin(respond.status);
    let made = Made {
        status: respond.status,
        content_type: respond.page.as_ref().map(|page| page.content_type.as_str()),
        body: respond.page.as_ref().map_or_else(Bytes::new, |page| page.body.clone()),
    };
    send(client, head, made, method, changes);
}

/// Queues what an ACME authority has asked for.
pub(crate) fn challenge<C: ClientSide>(
    client: &mut C,
    answer: Bytes,
    method: Method,
    head: &mut ResponseHead,
    changes: Changes<'_>,
) {
    head.begin(200);
    let made = Made { status: 200, content_type: Some("application/octet-stream"), body: answer };
    send(client, head, made, method, changes);
}

fn value(variable: Variable, request: &RequestHead) -> &[u8] {
    match variable {
        Variable::Scheme => match request.scheme {
            Scheme::Http => b"http",
            Scheme::Https => b"https",
        },
        Variable::Host => request.host(),
        Variable::Path => path(request.path()),
        Variable::Query => request.query().unwrap_or_default(),
        Variable::PathAndQuery => path(request.forward_target()),
    }
}

/// `*`, which stands for the whole server, is no path: behind a host it would belong to its name.
fn path(target: &[u8]) -> &[u8] {
    if target == b"*" { b"/" } else { target }
}

fn send<C: ClientSide>(
    client: &mut C,
    head: &mut ResponseHead,
    made: Made<'_>,
    method: Method,
    changes: Changes<'_>,
) {
    push(head, Known::Date, httpdate::fmt_http_date(SystemTime::now()).as_bytes());
    if let Some(content_type) = made.content_type {
        push(head, Known::ContentType, content_type.as_bytes());
    }
    changes.apply(&mut head.fields);
    let bodiless = made.status == 204 || made.status == 304;
    if bodiless || method == Method::Head {
        if !bodiless {
            push(head, Known::ContentLength, made.body.len().to_string().as_bytes());
        }
        client.send_head(head, BodyLength::None);
    } else {
        client.send_head(head, BodyLength::Known(made.body.len() as u64));
        if !made.body.is_empty() {
            client.send_data(Chunk::shared(made.body));
        }
    }
    client.send_end(None);
}

fn push(head: &mut ResponseHead, known: Known, value: &[u8]) {
    if let Err(error) = head.fields.push_known(known, value) {
        tracing::debug!(%error, field = known.name(), "a field of an answer was left out");
    }
}

#[cfg(test)]
mod tests {
    use subak_config::{Part, Redirect, Template, Variable};
    use subak_message::h1::parse_request;
    use subak_message::{HeadLimits, RequestHead, Scheme};

    use super::location;

    #[test]
    fn no_query_makes_another_site_of_a_location() {
        let query = Part::Variable(Variable::Query);
        for (before, asked, expected) in [
            ("/", "//evil.example", "/%2F/evil.example"),
            ("/", "/evil.example", "/%2Fevil.example"),
            ("/", "\\evil.example", "/%5Cevil.example"),
            ("/", "x//y", "/x//y"),
            ("/go?", "//evil.example", "/go?//evil.example"),
            ("https://a.test/", "/x", "https://a.test//x"),
        ] {
            let text = format!("GET /?{asked} HTTP/1.1\r\nHost: h\r\n\r\n");
            let mut head = RequestHead::new(Scheme::Http);
            parse_request(text.as_bytes(), &HeadLimits::default(), &mut head).expect("a request");
            let to = Template { parts: vec![Part::Text(before.into()), query.clone()] };
            let found = location(&Redirect { to, status: 302 }, &head);
            assert_eq!(String::from_utf8_lossy(&found), expected, "{asked}");
        }
    }
}
