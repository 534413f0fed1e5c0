//! Health probes of pools that speak HTTP/2.

use crate::support::http2_endpoint::{Http2Endpoint, answer};
use crate::support::{Endpoint, Setup, wait_until};
use h2::server::Builder;
use http::Response;

#[test]
fn an_http_probe_speaks_http2_to_a_pool_that_does() {
    let endpoint = Http2Endpoint::serving(Builder::new, |exchange| {
        Box::pin(async move {
            let (asked, respond) = exchange.read().await;
            let body =
                if asked.is_some_and(|asked| asked.uri.ends_with("/fit")) { "fit" } else { "ill" };
            answer(respond, Response::new(()), body).await;
        })
    });
    let probe = |path: &str| {
        Setup::before_addresses([endpoint.address()]).pool("protocol = \"h2\"").pool(&format!(
            "health = {{ http = {path:?}, body = \"fit\", host = \"app.example\", interval = \"100ms\", \
             timeout = \"100ms\", jitter = 0 }}"
        ))
    };
    let subak = probe("/fit").start();
    wait_until("it is probed", || endpoint.requests().len() >= 4);
    let asked = endpoint.requests().remove(0);
    assert_eq!((&*asked.method, &*asked.uri), ("GET", "http://app.example/fit"));
    assert_eq!(asked.field("user-agent"), "subak");
    assert!(!subak.log().contains("probes in a row failed"), "{}", subak.log());
    let subak = probe("/ill").start();
    subak.wait_for_log("the body does not contain");
    // One that speaks HTTP/1.1 alone could not be sent requests either.
    let old = Endpoint::named("old");
    let subak = Setup::before(&[&old])
        .pool("protocol = \"h2\"")
        .pool("health = { http = \"/\", interval = \"1s\", timeout = \"1s\", jitter = 0 }");
    subak.start().wait_for_log("it does not speak HTTP/2 here");
}
