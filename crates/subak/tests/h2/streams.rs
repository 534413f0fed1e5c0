//! Streams of HTTP/2 to endpoints: how requests share connections, and what counts them.

use std::sync::Arc;
use std::time::Duration;

use crate::endpoints::{before, endpoint, metric};
use crate::support::http2::{h2_get, prior_knowledge};
use crate::support::http2_endpoint::{Http2Endpoint, answer};
use crate::support::{Setup, wait_until};
use h2::server::Builder;
use http::Response;

#[test]
fn requests_of_many_clients_share_connections_and_no_more_are_opened_than_needed() {
    let endpoint = Arc::new(endpoint(|exchange| {
        Box::pin(async move {
            let shared = exchange.shared.clone();
            let (_, respond) = exchange.read().await;
            // All of them at once: nobody is answered before the last has come.
            while shared.read_so_far() < 30 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            answer(respond, Response::new(()), "x").await;
        })
    }));
    let subak = before(&[&endpoint]).pool("streams = { per_connection = 10 }").start();
    assert_eq!(subak.at_once(30), [200; 30]);
    assert_eq!((endpoint.accepted(), endpoint.under_way().1), (3, 30));
    let mut by_connection = [0; 3];
    for asked in endpoint.requests() {
        by_connection[asked.connection] += 1;
    }
    assert_eq!(by_connection, [10; 3]);
    wait_until("all streams are over", || metric(&subak, "subak_pool_streams") == 0.0);
}

#[test]
fn a_limit_that_the_endpoint_sets_is_kept() {
    let few = || {
        let mut builder = Builder::new();
        builder.max_concurrent_streams(2);
        builder
    };
    let endpoint = Http2Endpoint::serving(few, |exchange| {
        Box::pin(async move {
            let (_, respond) = exchange.read().await;
            tokio::time::sleep(Duration::from_millis(30)).await;
            answer(respond, Response::new(()), "x").await;
        })
    });
    let subak = before(&[&endpoint]).pool("max_connections = 2").start();
    assert_eq!(subak.at_once(12), [200; 12]);
    assert!(endpoint.under_way().1 <= 4, "{:?} at once", endpoint.under_way());
    assert!(endpoint.accepted() <= 2, "{} connections", endpoint.accepted());
    assert_eq!(metric(&subak, "subak_pool_stream_resets_total"), 0.0);
}

#[test]
fn hits_are_exact_with_streams() {
    let endpoints =
        [Http2Endpoint::named("a"), Http2Endpoint::named("b"), Http2Endpoint::named("c")];
    let subak = Setup::before_addresses(endpoints.iter().map(Http2Endpoint::address))
        .pool("protocol = \"h2\"\nbalance = \"round_robin\"")
        .workers(2)
        .start();
    let answers: Vec<_> = (0..60).map(|_| subak.at_once(1)[0]).collect();
    assert_eq!(answers, [200; 60]);
    let hits: Vec<_> = endpoints.iter().map(|endpoint| endpoint.requests().len()).collect();
    assert_eq!(hits, [20, 20, 20]);
    // Each of two workers has one of its own.
    assert!(endpoints.iter().all(|endpoint| endpoint.accepted() <= 2));
}

#[test]
fn least_connections_counts_streams() {
    let busy = endpoint(|exchange| {
        Box::pin(async move {
            let shared = exchange.shared.clone();
            let (_, respond) = exchange.read().await;
            if shared.read_so_far() == 1 {
                // Holds its first request for good.
                std::future::pending::<()>().await;
            }
            answer(respond, Response::new(()), "busy").await;
        })
    });
    let free = Http2Endpoint::named("free");
    let subak = before(&[&busy, &free]).pool("balance = \"least_connections\"").start();
    let mut held = Vec::new();
    // Whoever gets the one that never answers, all others go elsewhere.
    while busy.requests().is_empty() {
        let mut client = subak.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        wait_until("it has arrived", || busy.requests().len() + free.requests().len() > held.len());
        held.push(client);
    }
    for _ in 0..10 {
        assert_eq!(subak.get("/").1, "free");
    }
    assert_eq!(busy.requests().len(), 1);
}

#[test]
fn streams_are_counted_while_they_are_open_at_the_listener_and_at_the_endpoint() {
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let gone = Arc::new(std::sync::Mutex::new(gone));
    let endpoint = endpoint(move |exchange| {
        let gone = gone.clone();
        Box::pin(async move {
            let (_, respond) = exchange.read().await;
            while gone.lock().expect("alone").try_recv().is_err() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            answer(respond, Response::new(()), "x").await;
        })
    });
    let subak = before(&[&endpoint]).start();
    let open = || {
        let status = crate::support::Admin::of(&subak).status();
        let of = |what: &serde_json::Value| what["streams"].as_u64().expect("a number");
        (of(&status["listeners"][0]), of(&status["pools"][0]["endpoints"][0]))
    };
    prior_knowledge(&subak, async |send| {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..3 {
            let send = send.clone();
            tasks.spawn_local(async move { h2_get(send, "http://example.com/").await.1 });
        }
        let begun = std::time::Instant::now();
        while open() != (3, 3) {
            assert!(begun.elapsed() < crate::support::PATIENCE, "{:?} are open", open());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        (0..3).for_each(|_| go.send(()).expect("an endpoint"));
        assert_eq!(tasks.join_all().await, ["x"; 3]);
    });
    wait_until("none is open", || open() == (0, 0));
    let text = crate::support::Admin::of(&subak).ask("GET", "/metrics", "").text();
    let scrape = crate::support::Scrape::parse(&text);
    assert_eq!(scrape.value("subak_listener_streams", &[("listener", "web")]), 0.0);
}
