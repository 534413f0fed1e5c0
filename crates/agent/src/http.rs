//! Reports over HTTP: one path, one method, one token.
//!
//! | request | answer |
//! |---|---|
//! | without the token | 401, whatever the path |
//! | `GET` or `HEAD` `/v1/report` | 200 and the report |
//! | another method | 405 |
//! | another path | 404 |
//!
//! A connection has one request, and a limit of time from its first to its last byte: who asks once
//! a second gains little by keeping it, and nobody can hold one for long.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::measure::Sample;
use crate::report::{REPORT_PATH, Report};
use crate::token::Token;

/// What is read of a request's head; a longer one is answered 431.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// Answers the one request of a connection.
pub(crate) async fn answer(stream: TcpStream, token: &Token, sample: Sample, limit: Duration) {
    let service = service_fn(|request: Request<Incoming>| async move {
        Ok::<_, Infallible>(respond(&request, token, &sample))
    });
    let connection = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    match tokio::time::timeout(limit, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a request for the report has failed"),
        Err(_) => tracing::debug!(?limit, "a request for the report has taken too long"),
    }
}

fn respond<B>(request: &Request<B>, token: &Token, sample: &Sample) -> Response<Full<Bytes>> {
    let authorised = request.headers().get(AUTHORIZATION).is_some_and(|field| token.is_in(field));
    if !authorised {
        let says = "this report is given for a token: Authorization: Bearer …\n";
        let mut response = text(StatusCode::UNAUTHORIZED, says);
        let asks = HeaderValue::from_static("Bearer realm=\"subak agent\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, asks);
        return response;
    }
    if request.uri().path() != REPORT_PATH {
        return text(StatusCode::NOT_FOUND, "the report is at /v1/report\n");
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "the report can be read only\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let mut document = Report::of(sample, Instant::now()).to_json();
    document.push('\n');
    response(StatusCode::OK, "application/json", Bytes::from(document))
}

fn text(status: StatusCode, says: &'static str) -> Response<Full<Bytes>> {
    response(status, "text/plain; charset=utf-8", Bytes::from_static(says.as_bytes()))
}

fn response(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::parse_report;
    use http_body_util::BodyExt;
    use subak_balance::weigher::{PerResource, Ppm};

    fn sample() -> Sample {
        Sample {
            at: Instant::now(),
            window: Duration::from_secs(3),
            capacity: PerResource { cpu: Some(2000), ..Default::default() },
            used: PerResource { cpu: Ppm::new(374_000), ..Default::default() },
        }
    }

    fn ask(method: Method, path: &str, authorization: &[&str]) -> Response<Full<Bytes>> {
        let token = Token::new("0123456789abcdef").unwrap();
        let mut request = Request::new(());
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().unwrap();
        for field in authorization {
            request.headers_mut().append(AUTHORIZATION, field.parse().unwrap());
        }
        respond(&request, &token, &sample())
    }

    const RIGHT: &[&str] = &["Bearer 0123456789abcdef"];

    #[test]
    fn who_has_the_token_gets_the_report() {
        for path in ["/v1/report", "/v1/report?a=b"] {
            let response = ask(Method::GET, path, RIGHT);
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
            let mut body = response.into_body();
            let report = parse_report(&whole(&mut body)).unwrap();
            assert_eq!(report.capacity.cpu, Some(2000));
            assert_eq!(report.used.cpu, Ppm::new(374_000));
        }
        assert_eq!(ask(Method::HEAD, "/v1/report", RIGHT).status(), StatusCode::OK);
    }

    /// The only frame of a body that is all there.
    fn whole(body: &mut Full<Bytes>) -> Bytes {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::pin!(body.frame()).as_mut().poll(&mut context) {
            std::task::Poll::Ready(Some(Ok(frame))) => frame.into_data().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn who_has_not_learns_nothing_not_even_which_paths_there_are() {
        for authorization in [&[][..], &["Bearer 0123456789abcdee"], &["Basic 0123456789abcdef"]] {
            for (method, path) in
                [(Method::GET, "/v1/report"), (Method::POST, "/"), (Method::GET, "/x")]
            {
                let response = ask(method, path, authorization);
                assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
                assert_eq!(response.headers()[WWW_AUTHENTICATE], "Bearer realm=\"subak agent\"");
            }
        }
        let second = ["Bearer 0123456789abcdee", RIGHT[0]];
        assert_eq!(ask(Method::GET, "/v1/report", &second).status(), StatusCode::UNAUTHORIZED);
    }

    #[test]
    fn other_paths_and_methods_are_named_as_such() {
        for path in ["/", "/v1", "/v1/report/", "/v2/report", "//v1/report"] {
            assert_eq!(ask(Method::GET, path, RIGHT).status(), StatusCode::NOT_FOUND, "{path}");
        }
        let response = ask(Method::POST, "/v1/report", RIGHT);
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(response.headers()[ALLOW], "GET, HEAD");
    }
}
