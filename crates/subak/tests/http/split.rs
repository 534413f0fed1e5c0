//! Traffic shared between pools, and paths that are rewritten, over HTTP/1 and HTTP/2.

use crate::support::http2::{h2_exchange, prior_knowledge};
use crate::support::{Endpoint, Setup, Subak, fresh_address};
use http::Request;

fn pools(next: &Endpoint) -> String {
    format!("[pool.next]\nendpoints = [{:?}]\n", next.address())
}

/// A listener that splits between `next` and `app`.
fn split(next: &Endpoint, app: &Endpoint, split: &str, address: &str) -> String {
    let route = format!("[[listener.web.route]]\npath = \"/\"\nsplit = {split}\n");
    Setup::before(&[app]).bind(address).tail(&(route + &pools(next))).text()
}

fn sides(next: u32, app: u32) -> String {
    format!("[{{ pool = \"next\", weight = {next} }}, {{ pool = \"app\", weight = {app} }}]")
}

/// Who answers users 0 to `users`, each by name.
fn by_user(subak: &Subak, users: u32) -> Vec<String> {
    let mut client = subak.client();
    (0..users)
        .map(|user| {
            client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nX-User: {user}\r\n\r\n"));
            client.answer().text()
        })
        .collect()
}

fn count(answers: &[String], name: &str) -> usize {
    answers.iter().filter(|answer| *answer == name).count()
}

#[test]
fn a_tenth_goes_to_the_new_version_and_more_with_the_next_reload_and_nobody_back() {
    let (next, app) = (Endpoint::named("next"), Endpoint::named("app"));
    let address = fresh_address();
    let by_key = |weights: &str| format!("{{ pools = {weights}, by = \"header:X-User\" }}");
    let text = split(&next, &app, &by_key(&sides(10, 90)), &address);
    let subak = Subak::start_at(&text, &address);
    let before = by_user(&subak, 1000);
    let tenth = count(&before, "next");
    // A binomial of 1,000 and 0.1 is within 4.2 deviations.
    assert!((60..=140).contains(&tenth), "{tenth}");
    assert_eq!(by_user(&subak, 1000), before, "a client stays");

    subak.write_config(&split(&next, &app, &by_key(&sides(20, 80)), &address));
    subak.signal("HUP");
    subak.wait_for_log("configuration reloaded");
    let after = by_user(&subak, 1000);
    let fifth = count(&after, "next");
    assert!((147..=253).contains(&fifth), "{fifth}");
    for (user, (before, after)) in before.iter().zip(&after).enumerate() {
        assert!(before == after || after == "next", "user {user} went from {before} to {after}");
    }

    subak.write_config(&split(&next, &app, &by_key(&sides(0, 1)), &address));
    subak.signal("HUP");
    crate::support::wait_until("the second reload", || {
        subak.log().matches("configuration reloaded").count() == 2
    });
    assert_eq!(count(&by_user(&subak, 100), "app"), 100);
}

#[test]
fn each_request_goes_by_chance_without_a_key_by_either_version() {
    let (next, app) = (Endpoint::named("next"), Endpoint::named("app"));
    let address = fresh_address();
    let listener = format!("split = {}", sides(3, 7));
    let text = Setup::before(&[&app]).bind(&address).listener(&listener).tail(&pools(&next)).text();
    let subak = Subak::start_at(&text.replace("pool = \"app\"\nsplit", "split"), &address);
    let mut client = subak.client();
    let answers: Vec<String> = (0..1000).map(|_| client.get("/").text()).collect();
    let third = count(&answers, "next");
    assert!((240..=360).contains(&third), "{third}");
    let answers = prior_knowledge(&subak, async |send| {
        let mut answers = Vec::new();
        for _ in 0..300 {
            let request = Request::get("http://a/").body(()).expect("a request");
            answers.push(h2_exchange(send.clone(), request, None).await.1);
        }
        answers
    });
    let third = count(&answers, "next");
    assert!((57..=123).contains(&third), "{third}");
}

#[test]
fn a_cookie_keeps_a_client_and_no_endpoint_sees_it() {
    let (next, app) = (Endpoint::named("next"), Endpoint::named("app"));
    let address = fresh_address();
    let cookie = format!("{{ pools = {}, cookie = \"SIDE\" }}", sides(1, 1));
    let subak = Subak::start_at(&split(&next, &app, &cookie, &address), &address);
    let mut client = subak.client();
    let mut seen = Vec::new();
    for _ in 0..40 {
        let first = client.get("/");
        let set = first.field("set-cookie").expect("a cookie").to_owned();
        let (pair, attributes) = set.split_once("; ").expect("attributes");
        assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Lax");
        for _ in 0..3 {
            client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: a=b; {pair}\r\n\r\n"));
            let again = client.answer();
            assert_eq!((again.text(), again.field("set-cookie")), (first.text(), None));
        }
        seen.push(first.text());
    }
    assert!(count(&seen, "next") > 0 && count(&seen, "app") > 0, "{seen:?}");
    for request in next.requests().iter().chain(&app.requests()) {
        assert!(request.field("cookie").is_none_or(|cookie| cookie.trim() == "a=b"), "{request:?}");
    }
    // One that was made up is as good as none.
    client.send("GET / HTTP/1.1\r\nHost: a\r\nCookie: SIDE=next\r\n\r\n");
    assert!(client.answer().field("set-cookie").is_some());
}

#[test]
fn the_others_take_what_a_pool_without_endpoints_would_get() {
    let app = Endpoint::named("app");
    let address = fresh_address();
    let start = |more: &str, address: &str| {
        let table = format!("{{ pools = {}{more} }}", sides(1, 1));
        let route = format!(
            "[[listener.web.route]]\npath = \"/\"\nsplit = {table}\n[pool.next]\nendpoints = []\n"
        );
        let text = Setup::before(&[&app]).bind(address).tail(&route).text();
        Subak::start_at(&text, address)
    };
    let statuses = |subak: &Subak| -> Vec<u16> {
        let mut client = subak.client();
        (0..60).map(|_| client.get("/").status).collect()
    };
    assert_eq!(statuses(&start("", &address)), [200; 60]);
    let address = fresh_address();
    let refused = statuses(&start(", fallback = false", &address));
    assert!(refused.contains(&503) && refused.contains(&200), "{refused:?}");
}

#[test]
fn a_path_is_rewritten_and_its_query_kept() {
    for forward in ["original", "normalized"] {
        let app = Endpoint::named("app");
        let routes = "[[listener.web.route]]\npath = \"/v2\"\nstrip_prefix = \"/v2\"\npool = \"app\"\n\
            [[listener.web.route]]\npath = \"/old\"\nrewrite = { prefix = \"/old\", to = \"/new\" }\npool = \"app\"\n\
            [[listener.web.route]]\npath = \"/u/\"\nrewrite = { regex = '^/u/([^/]*)/([^/]*)(.*)$', to = \"/$2$1$3\" }\npool = \"app\"\n\
            [[listener.web.route]]\npath = \"/h/\"\nrewrite = { regex = '^/h/(.)(.*)$', to = \"/$2/$1\" }\npool = \"app\"\n";
        let policy = format!("path = {{ forward = \"{forward}\" }}");
        let subak = Setup::before(&[&app]).listener(&policy).tail(routes).start();
        let mut client = subak.client();
        let cases = [
            ("/v2/x?a=/v2/&b", "/x?a=/v2/&b", Some("/v2")),
            ("/v2", "/", Some("/v2")),
            ("/v20/x", "/v20/x", None),
            ("/%76%32/a%3bb;c/%3f", "/a%3Bb;c/%3F", Some("/v2")),
            ("/v2;c/x", "/x", Some("/v2")),
            ("/old;c/x;d", "/new/x", None),
            ("/v2//x", "/x", Some("/v2")),
            ("/old/x", "/new/x", None),
            ("/old/./a/../b", "/new/b", None),
            ("/older", "/older", None),
            ("/u/a/b/c?d", "/ba/c?d", None),
            ("/plain", "/plain", None),
        ];
        for (asked, seen, stripped) in cases {
            client.send(format!(
                "GET {asked} HTTP/1.1\r\nHost: a\r\nX-Forwarded-Prefix: /forged\r\n\r\n"
            ));
            assert_eq!(client.answer().status, 200, "{asked}");
            let request = app.requests().pop().expect("a request");
            assert_eq!(request.line, format!("GET {seen} HTTP/1.1"), "{asked} {forward}");
            assert_eq!(request.field("x-forwarded-prefix"), stripped, "{asked}");
        }
        // Pieces that would be a dot segment, or a broken escape, side by side.
        let before = app.requests().len();
        for (asked, status) in [("/h/a.", 200), ("/h/x..", 400), ("/h/%3F", 400)] {
            assert_eq!(subak.get(asked).0, status, "{asked}");
        }
        for request in &app.requests()[before..] {
            assert!(
                !request.line.contains("/../") && !request.line.contains("/./"),
                "{}",
                request.line
            );
        }
    }
}
