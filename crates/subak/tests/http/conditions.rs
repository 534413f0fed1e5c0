//! Routes by method, client, header, cookie and query, over HTTP/1 and HTTP/2.

use crate::support::http2::{h2_exchange, prior_knowledge};
use crate::support::{Endpoint, Setup, Subak};
use http::Request;

/// Before a pool that answers "pool": routes that answer their names.
fn routed(listener: &str, routes: &[(&str, &str)]) -> (Subak, Endpoint) {
    let pool = Endpoint::named("pool");
    let text: String = routes
        .iter()
        .map(|(matches, name)| {
            format!(
                "[[listener.web.route]]\n{matches}\nrespond = {{ status = 200, body = {name:?} }}\n"
            )
        })
        .collect();
    (Setup::before(&[&pool]).listener(listener).tail(&text).start(), pool)
}

/// What answers a request, by either version: `GET /x`, then fields.
#[track_caller]
fn assert_taken(subak: &Subak, method: &str, target: &str, fields: &[(&str, &str)], by: &str) {
    let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let mut client = subak.client();
    client.send(format!("{method} {target} HTTP/1.1\r\nHost: a\r\n{lines}\r\n"));
    assert_eq!(client.answer_to(method).text(), by, "HTTP/1: {method} {target} {fields:?}");
    let text = prior_knowledge(subak, async |send| {
        let mut request = Request::builder().method(method).uri(format!("http://a{target}"));
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        h2_exchange(send, request.body(()).expect("a request"), None).await.1
    });
    assert_eq!(text, by, "HTTP/2: {method} {target} {fields:?}");
}

#[test]
fn a_route_takes_what_meets_all_of_its_conditions() {
    let (subak, _pool) = routed(
        "",
        &[
            ("method = [\"PUT\", \"PURGE\"]", "writes"),
            ("header = { X-Env = [\"staging\", { prefix = \"dev-\", suffix = \"-1\" }] }", "env"),
            ("header = { X-A = { present = true }, X-B = { present = false } }", "a without b"),
            ("cookie = { beta = \"yes\" }", "cookie"),
            ("query = { \"the version\" = { regex = '^[23]$' } }", "query"),
            ("path = \"/only\"\nquery = { q = { contains = \"x y\" } }", "contains"),
            ("client = \"192.0.2.0/24\"", "elsewhere"),
            ("path = \"/in\"\nclient = [\"10.0.0.0/8\", \"127.0.0.0/8\"]", "here"),
            ("path = \"/not\"\nnot = { header = { X-No = \"1\" }, method = \"DELETE\" }", "not"),
        ],
    );
    for (method, target, fields, by) in [
        ("GET", "/", &[][..], "pool"),
        ("PUT", "/", &[], "writes"),
        ("PURGE", "/", &[], "writes"),
        ("POST", "/", &[], "pool"),
        ("GET", "/", &[("x-env", "staging")], "env"),
        ("GET", "/", &[("x-env", "prod"), ("x-env", "staging")], "env"),
        ("GET", "/", &[("x-env", "Staging")], "pool"),
        ("GET", "/", &[("x-env", "dev-x-1")], "env"),
        ("GET", "/", &[("x-env", "dev-x")], "pool"),
        ("GET", "/", &[("x-a", "")], "a without b"),
        ("GET", "/", &[("x-a", ""), ("x-b", "")], "pool"),
        ("GET", "/", &[("cookie", "a=b; beta=yes")], "cookie"),
        ("GET", "/", &[("cookie", "a=b"), ("cookie", "beta=yes")], "cookie"),
        ("GET", "/", &[("cookie", "beta=yess")], "pool"),
        ("GET", "/?the+version=3", &[], "query"),
        ("GET", "/?x&the%20version=%32", &[], "query"),
        ("GET", "/?the+version=4", &[], "pool"),
        ("GET", "/only?q=ax+yb", &[], "contains"),
        ("GET", "/only?q=ax%2Byb", &[], "pool"),
        ("GET", "/in", &[], "here"),
        ("GET", "/not", &[], "not"),
        ("GET", "/not", &[("x-no", "1")], "pool"),
        ("DELETE", "/not", &[], "pool"),
    ] {
        assert_taken(&subak, method, target, fields, by);
    }
}

#[test]
fn the_client_is_whom_a_trusted_proxy_names() {
    let (subak, _pool) = routed(
        "trusted_proxies = [\"127.0.0.1\"]",
        &[("client = \"192.0.2.0/24\"", "named"), ("client = \"127.0.0.1\"", "proxy")],
    );
    assert_taken(&subak, "GET", "/", &[("x-forwarded-for", "192.0.2.7")], "named");
    assert_taken(&subak, "GET", "/", &[("x-forwarded-for", "192.0.2.7, 198.51.100.1")], "pool");
    assert_taken(&subak, "GET", "/", &[], "proxy");
    let (subak, _pool) = routed("", &[("client = \"192.0.2.0/24\"", "named")]);
    assert_taken(&subak, "GET", "/", &[("x-forwarded-for", "192.0.2.7")], "pool");
}
