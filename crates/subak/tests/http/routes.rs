//! Where a request goes and what it is told on the way: routes, redirects, fixed answers, error pages,
//! header changes, who the client is.

use crate::support::{Answer, Client, Endpoint, Setup, Subak, fresh_directory};

#[track_caller]
fn ask(subak: &Subak, host: &str, target: &str) -> Answer {
    let mut client = subak.client();
    client.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    client.answer()
}

/// A route to a fixed answer that says which it was.
fn route(matches: &str, name: &str) -> String {
    format!("[[listener.web.route]]\n{matches}\nrespond = {{ status = 200, body = {name:?} }}\n")
}

/// A listener with these routes in front of a pool that answers "pool".
fn routed(pool: &Endpoint, routes: &[(&str, &str)]) -> Subak {
    let text: String = routes.iter().map(|(matches, name)| route(matches, name)).collect();
    Setup::before(&[pool]).tail(&text).start()
}

#[test]
fn hosts_are_matched_exactly_or_by_wildcard_without_port_case_or_trailing_dot() {
    let pool = Endpoint::named("pool");
    let subak = routed(
        &pool,
        &[
            ("host = \"example.com\"", "exact"),
            ("host = \"*.example.com\"", "wildcard"),
            ("host = [\"a.test\", \"b.test\"]", "list"),
        ],
    );
    for (host, expected) in [
        ("example.com", "exact"),
        ("EXAMPLE.com", "exact"),
        ("example.com:8443", "exact"),
        ("example.com.", "exact"),
        ("www.example.com", "wildcard"),
        ("a.b.example.com:80", "wildcard"),
        ("notexample.com", "pool"),
        ("example.com.evil.test", "pool"),
        ("a.test", "list"),
        ("b.test", "list"),
        ("c.test", "pool"),
    ] {
        assert_eq!(ask(&subak, host, "/").text(), expected, "{host}");
    }
}

#[test]
fn paths_are_matched_exactly_by_prefix_or_regex_in_the_order_of_the_file() {
    let pool = Endpoint::named("pool");
    let subak = routed(
        &pool,
        &[
            ("path = { exact = \"/api/health\" }", "exact"),
            ("path = \"/api/\"", "prefix"),
            ("path = { regex = '\\.(css|js)$' }", "regex"),
            ("path = \"/static\"", "static"),
        ],
    );
    for (target, expected) in [
        ("/api/health", "exact"),
        ("/api/health?x=1", "exact"),
        ("/api/health/", "prefix"),
        ("/api/", "prefix"),
        ("/api", "pool"),
        ("/apiary", "pool"),
        ("/static/site.css", "regex"),
        ("/static/site.cssx", "static"),
        ("/statically", "static"),
        ("/x?y=.css", "pool"),
        ("/API/", "pool"),
    ] {
        assert_eq!(ask(&subak, "a", target).text(), expected, "{target}");
    }
}

#[test]
fn no_spelling_of_a_path_slips_past_its_route() {
    let pool = Endpoint::named("pool");
    let subak =
        routed(&pool, &[("path = \"/admin/\"", "admin"), ("path = { exact = \"/\" }", "root")]);
    for target in [
        "/admin/x",
        "/%61dmin/x",
        "/%61%64%6D%69%6e/x",
        "//admin/x",
        "///admin//x",
        "/./admin/x",
        "/%2e/admin/x",
        "/x/../admin/x",
        "/x/%2e%2e/admin/x",
        "/x/%2E./admin/x",
        "/x/y/../../admin/x",
        "/admin;a=b/x",
        "/admin;/x",
        "/%61dmin%3ba/x",
        "/;x/admin/x",
        "/x;y/../admin/x",
        "/admin/./x",
        "/admin/x/../y",
        "/admin/x;y.css",
    ] {
        assert_eq!(ask(&subak, "a", target).text(), "admin", "{target}");
    }
    for target in [
        "/..",
        "/../admin/x",
        "/x/../../admin/x",
        "/%2e%2e/x",
        "/admin%2Fx",
        "/admin%5cx",
        "/x/..%2fadmin/x",
        "/x/..;/admin/x",
        "/x/%c0%ae%c0%ae/admin/x",
        "/x//../admin/x",
        "/admin//../x",
        "/x/;/../admin/x",
    ] {
        assert_eq!(ask(&subak, "a", target).status, 400, "{target}");
    }
    assert_eq!(ask(&subak, "a", "/admin/..").text(), "root");
    assert!(pool.requests().is_empty(), "something came past the route");
}

#[test]
fn the_endpoint_sees_what_the_client_wrote_unless_told_otherwise() {
    let target = "/a;v=1/./b/%2e%2e//%63%3Fd?q=/../%41";
    let pool = Endpoint::named("x");
    let subak = Setup::before(&[&pool]).start();
    assert_eq!(ask(&subak, "a", target).status, 200);
    assert_eq!(pool.request().line, format!("GET {target} HTTP/1.1"));
    let pool = Endpoint::named("x");
    let subak = Setup::before(&[&pool]).listener("path = { forward = \"normalized\" }").start();
    assert_eq!(ask(&subak, "a", target).status, 200);
    assert_eq!(pool.request().line, "GET /a;v=1/c%3Fd?q=/../%41 HTTP/1.1");
}

#[test]
fn slashes_are_kept_apart_where_a_listener_says_so() {
    let pool = Endpoint::named("pool");
    let subak = Setup::before(&[&pool])
        .listener("path = { merge_slashes = false }")
        .tail(&route("path = \"/admin/\"", "admin"))
        .start();
    assert_eq!(ask(&subak, "a", "/admin/x").text(), "admin");
    assert_eq!(ask(&subak, "a", "//admin/x").text(), "pool");
}

#[test]
fn what_no_route_takes_is_answered_404_where_there_is_no_pool() {
    let pool = Endpoint::named("pool");
    let subak = Setup::before(&[&pool])
        .listener("# no pool =")
        .tail("[[listener.web.route]]\nhost = \"known\"\npool = \"app\"\n")
        .start();
    assert_eq!(ask(&subak, "known", "/").text(), "pool");
    let mut client = subak.client();
    client.send("POST / HTTP/1.1\r\nHost: unknown\r\nContent-Length: 2\r\n\r\nhi");
    assert_eq!(client.answer().status, 404);
    assert_eq!(pool.requests().len(), 1);
}

#[test]
fn an_http2_or_absolute_host_chooses_the_route_and_not_the_host_field() {
    let pool = Endpoint::named("pool");
    let subak =
        routed(&pool, &[("host = \"inner.test\"", "inner"), ("host = \"outer.test\"", "outer")]);
    assert_eq!(ask(&subak, "inner.test", "http://outer.test/").text(), "outer");
    assert_eq!(ask(&subak, "outer.test", "HTTP://INNER.test:80/").text(), "inner");
}

#[test]
fn redirects_say_where_to_by_their_variables() {
    let pool = Endpoint::named("pool");
    let redirect = |path: &str, to: &str| {
        format!("[[listener.web.route]]\npath = {path:?}\nredirect = {to}\n")
    };
    let subak = Setup::before(&[&pool])
        .tail(&redirect("/secure", "{ to = \"https://{host}{path_and_query}\", status = 308 }"))
        .tail(&redirect(
            "/parts",
            "{ to = \"{scheme}://new.test/?old={path}&{query}\", status = 301 }",
        ))
        .tail(&redirect("/short", "\"/long\""))
        .start();
    let answer = ask(&subak, "example.com:8080", "/secure/a%20b?c=d&e");
    assert_eq!(answer.status, 308);
    assert_eq!(answer.field("location"), Some("https://example.com/secure/a%20b?c=d&e"));
    assert!(answer.field("date").is_some());
    let answer = ask(&subak, "a", "/parts?x=y");
    assert_eq!(
        (answer.status, answer.field("location")),
        (301, Some("http://new.test/?old=/parts&x=y"))
    );
    let answer = ask(&subak, "a", "/short");
    assert_eq!((answer.status, answer.field("location")), (302, Some("/long")));
    assert_eq!(answer.field("content-length"), Some("0"));
}

#[test]
fn a_redirect_of_options_for_the_whole_server_leads_to_a_url() {
    let pool = Endpoint::named("pool");
    let subak = Setup::before(&[&pool])
        .tail("[[listener.web.route]]\nredirect = \"https://{host}{path_and_query}\"\n")
        .start();
    let mut client = subak.client();
    client.send("OPTIONS * HTTP/1.1\r\nHost: example.com\r\n\r\n");
    assert_eq!(client.answer().field("location"), Some("https://example.com/"));
}

#[test]
fn fixed_answers_have_their_status_type_and_body() {
    let pool = Endpoint::named("pool");
    let directory = fresh_directory();
    std::fs::write(directory.join("busy.html"), "<h1>busy</h1>").expect("write");
    let subak = Setup::before(&[&pool])
        .tail("[[listener.web.route]]\npath = \"/status\"\nrespond = 403\n")
        .tail("[[listener.web.route]]\npath = \"/text\"\nrespond = { status = 200, body = \"ok\\n\" }\n")
        .tail("[[listener.web.route]]\npath = \"/json\"\nrespond = { status = 201, body = \"{}\", content_type = \"application/json\" }\n")
        .tail(&format!(
            "[[listener.web.route]]\npath = \"/file\"\nrespond = {{ status = 503, file = {:?} }}\n",
            directory.join("busy.html")
        ))
        .tail("[[listener.web.route]]\npath = \"/none\"\nrespond = 204\n")
        .start();
    let mut client = subak.client();
    let answer = client.get("/status");
    assert_eq!(
        (answer.status, &*answer.text(), answer.field("content-length")),
        (403, "", Some("0"))
    );
    let answer = client.get("/text");
    assert_eq!((answer.status, &*answer.text()), (200, "ok\n"));
    assert_eq!(answer.field("content-type"), Some("text/plain; charset=utf-8"));
    let answer = client.get("/json");
    assert_eq!((answer.status, answer.field("content-type")), (201, Some("application/json")));
    let answer = client.get("/file");
    assert_eq!((answer.status, &*answer.text()), (503, "<h1>busy</h1>"));
    assert!(answer.field("content-type").is_some_and(|kind| kind.starts_with("text/html")));
    assert_eq!(client.get("/none").status, 204);
    client.send("HEAD /text HTTP/1.1\r\nHost: a\r\n\r\n");
    let answer = client.answer_to("HEAD");
    assert_eq!((answer.status, answer.field("content-length")), (200, Some("3")));
    assert_eq!(client.get("/text").text(), "ok\n", "nothing was left on the connection");
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn a_request_with_a_body_to_a_fixed_answer_does_not_become_the_next_request() {
    let pool = Endpoint::named("pool");
    let subak = routed(&pool, &[("path = \"/fixed\"", "fixed")]);
    let mut client = subak.client();
    let inner = "GET /inner HTTP/1.1\r\nHost: a\r\n\r\n";
    client.send(format!(
        "POST /fixed HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{inner}",
        inner.len()
    ));
    assert_eq!(client.answer().text(), "fixed");
    client.assert_ends();
    assert!(pool.requests().is_empty());
}

#[test]
fn errors_that_subak_answers_have_the_configured_pages() {
    let directory = fresh_directory();
    let page = |name: &str, text: &str| {
        std::fs::write(directory.join(name), text).expect("write");
        format!("{:?}", directory.join(name))
    };
    let (not_found, others, route_page) = (
        page("404.html", "<p>not here</p>"),
        page("5xx.html", "<p>broken</p>"),
        page("r.json", "{}"),
    );
    let endpoint = Endpoint::answering("HTTP/1.1 500 Own\r\nContent-Length: 3\r\n\r\nown");
    let subak = Setup::before(&[&endpoint])
        .listener("# no pool =")
        .listener(&format!("error_pages = {{ 404 = {not_found}, 5xx = {others} }}"))
        .tail("[[listener.web.route]]\npath = \"/own\"\npool = \"app\"\n")
        .tail("[[listener.web.route]]\npath = \"/empty\"\npool = \"none\"\n")
        .tail(&format!(
            "[[listener.web.route]]\npath = \"/api\"\npool = \"none\"\nerror_pages = {{ 503 = {route_page} }}\n"
        ))
        .tail("[pool.none]\nendpoints = []\n")
        .start();
    let answer = ask(&subak, "a", "/nowhere");
    assert_eq!((answer.status, &*answer.text()), (404, "<p>not here</p>"));
    assert!(answer.field("content-type").is_some_and(|kind| kind.starts_with("text/html")));
    assert_eq!(ask(&subak, "a", "/empty").text(), "<p>broken</p>");
    let answer = ask(&subak, "a", "/api");
    assert_eq!((answer.status, &*answer.text()), (503, "{}"));
    assert_eq!(answer.field("content-type"), Some("application/json"));
    // What an endpoint says is its own.
    assert_eq!(ask(&subak, "a", "/own").text(), "own");
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn header_changes_apply_from_the_listener_to_the_pool_and_back() {
    let endpoint = Endpoint::answering(
        "HTTP/1.1 200 OK\r\nServer: secret\r\nX-Powered-By: php\r\nX-Kept: 1\r\nX-Order: endpoint\r\n\
         Content-Length: 0\r\n\r\n",
    );
    let subak = Setup::before(&[&endpoint])
        .listener("# no pool =")
        .listener("request_headers = { set = { X-Order = \"listener\", X-Env = \"prod\" }, remove = [\"X-Debug\"] }")
        .listener("response_headers = { set = { X-Order = \"listener\" }, remove = [\"Server\"], add = { Vary = [\"Accept\", \"Origin\"] } }")
        .tail(
            "[[listener.web.route]]\npath = \"/\"\npool = \"app\"\n\
             request_headers = { set = { X-Order = \"route\" }, add = { X-Many = [\"1\", \"2\"] } }\n\
             response_headers = { set = { X-Order = \"route\" }, add = { X-Route = \"r\" } }\n",
        )
        .pool("request_headers = { set = { X-Order = \"pool\" } }")
        .pool("response_headers = { set = { X-Order = \"pool\" }, remove = [\"X-Powered-By\"] }")
        .start();
    let mut client = subak.client();
    client.send(
        "GET / HTTP/1.1\r\nHost: a\r\nX-Debug: 1\r\nx-debug: 2\r\nX-Env: evil\r\nX-Env: twice\r\nX-Many: 0\r\n\r\n",
    );
    let answer = client.answer();
    assert_eq!(answer.all("x-order"), ["listener"]);
    assert_eq!(answer.field("server"), None);
    assert_eq!(answer.field("x-powered-by"), None);
    assert_eq!(answer.all("vary"), ["Accept", "Origin"]);
    assert_eq!(answer.all("x-route"), ["r"]);
    assert_eq!(answer.all("x-kept"), ["1"]);
    let request = endpoint.request();
    assert_eq!(request.all("x-order"), ["pool"]);
    assert_eq!(request.all("x-env"), ["prod"]);
    assert_eq!(request.field("x-debug"), None);
    assert_eq!(request.all("x-many"), ["0", "1", "2"]);
}

#[test]
fn header_changes_apply_to_answers_that_subak_makes() {
    let pool = Endpoint::named("pool");
    let subak = Setup::before(&[&pool])
        .listener("response_headers = { set = { Strict-Transport-Security = \"max-age=1\" } }")
        .tail(&route("path = \"/fixed\"", "fixed"))
        .tail("[[listener.web.route]]\npath = \"/moved\"\nredirect = \"/new\"\n")
        .start();
    for target in ["/fixed", "/moved", "/pool"] {
        let answer = ask(&subak, "a", target);
        assert_eq!(answer.all("strict-transport-security"), ["max-age=1"], "{target}");
    }
}

#[test]
fn endpoints_see_the_host_that_the_pool_says() {
    let endpoint = Endpoint::named("x");
    let host = |pool: &str| {
        let subak = Setup::before(&[&endpoint]).pool(pool).start();
        assert_eq!(ask(&subak, "client.test:81", "/").status, 200);
        let request = endpoint.requests().pop().expect("a request");
        assert_eq!(request.all("x-forwarded-host"), ["client.test:81"], "{pool}");
        assert_eq!(request.all("host").len(), 1);
        request.field("host").expect("a host").to_owned()
    };
    assert_eq!(host(""), "client.test:81");
    assert_eq!(host("host = \"endpoint\""), endpoint.address());
    assert_eq!(host("host = \"inner.test\""), "inner.test");
}

const CLAIMS: &str = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\n\
    X-Forwarded-Host: claimed.test\r\nForwarded: for=6.6.6.6;proto=https\r\nX-Real-IP: 6.6.6.6\r\n\
    X-Forwarded-Port: 443\r\nX-Forwarded-Ssl: on\r\nX-Forwarded-Scheme: https\r\n\
    True-Client-IP: 6.6.6.6\r\nCF-Connecting-IP: 6.6.6.6\r\nX-Original-URL: /admin\r\n\
    x_forwarded_port: 444\r\nX-Tenant: a\r\n\r\n";

/// What of them Subak says nothing of itself, and proxies say beside X-Forwarded-For.
const PASSED: [(&str, &str); 3] =
    [("x-forwarded-port", "443"), ("x-forwarded-ssl", "on"), ("x-forwarded-scheme", "https")];

/// What proxies say that write another field.
const OTHERS: [&str; 4] = ["true-client-ip", "cf-connecting-ip", "x-original-url", "x-real-ip"];

#[test]
fn what_a_client_claims_about_itself_is_dropped() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).listener("trusted_proxies = [\"127.0.0.77\"]").start();
    let mut client = subak.client();
    client.send(CLAIMS);
    assert_eq!(client.answer().status, 200);
    let request = endpoint.request();
    assert_eq!(request.all("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(request.all("x-forwarded-proto"), ["http"]);
    assert_eq!(request.all("x-forwarded-host"), ["a"]);
    assert_eq!(request.all("forwarded"), [""; 0]);
    assert_eq!(request.all("x-real-ip"), [""; 0]);
    for name in PASSED.iter().map(|(name, _)| name).chain(&OTHERS) {
        assert_eq!(request.all(name), [""; 0], "{name}");
    }
    assert_eq!(request.all("x_forwarded_port"), [""; 0]);
    assert_eq!(request.all("x-tenant"), ["a"]);
}

#[test]
fn what_the_configuration_says_of_a_client_goes_on() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint])
        .pool("request_headers = { set = { X-Forwarded-Port = \"8443\" } }")
        .start();
    let mut client = subak.client();
    client.send(CLAIMS);
    assert_eq!(client.answer().status, 200);
    assert_eq!(endpoint.request().all("x-forwarded-port"), ["8443"]);
}

#[test]
fn what_a_trusted_proxy_says_is_continued() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint])
        .listener("trusted_proxies = [\"127.0.0.77\"]\nforwarded_headers = { forwarded = true }")
        .start();
    let mut client = Client::connect_from("127.0.0.77", subak.address());
    client.send(CLAIMS);
    assert_eq!(client.answer().status, 200);
    let request = endpoint.request();
    assert_eq!(request.all("x-forwarded-for"), ["6.6.6.6, 127.0.0.77"]);
    assert_eq!(request.all("x-forwarded-proto"), ["https"]);
    assert_eq!(request.all("x-forwarded-host"), ["claimed.test"]);
    for (name, value) in PASSED {
        assert_eq!(request.all(name), [value], "{name}");
    }
    assert_eq!(request.all("x_forwarded_port"), [""; 0]);
    assert_eq!(
        request.all("forwarded"),
        ["for=6.6.6.6;proto=https, for=127.0.0.77;host=\"a\";proto=http"]
    );
    for name in OTHERS {
        assert_eq!(request.all(name), [""; 0], "{name}");
    }
}

#[test]
fn a_pool_by_address_balances_over_whom_a_trusted_proxy_names() {
    let endpoints: Vec<_> = (0..8).map(|number| Endpoint::named(&number.to_string())).collect();
    let all: Vec<_> = endpoints.iter().collect();
    let subak = Setup::before(&all)
        .listener("trusted_proxies = [\"127.0.0.77\"]")
        .pool("balance = \"ip_hash\"")
        .start();
    let mut spread = std::collections::HashSet::new();
    let mut trusted = Client::connect_from("127.0.0.77", subak.address());
    let mut untrusted = subak.client();
    let mut same = std::collections::HashSet::new();
    for number in 0..40 {
        let request =
            format!("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 10.{number}.3.4\r\n\r\n");
        trusted.send(&request);
        spread.insert(trusted.answer().text());
        untrusted.send(&request);
        same.insert(untrusted.answer().text());
    }
    assert!(spread.len() >= 6, "{spread:?}");
    assert_eq!(same.len(), 1, "an untrusted client chose its endpoint: {same:?}");
}

#[test]
fn forwarding_fields_are_left_out_where_a_listener_says_so() {
    let endpoint = Endpoint::named("x");
    let subak =
        Setup::before(&[&endpoint]).listener("forwarded_headers = { x_forwarded = false }").start();
    let mut client = subak.client();
    client.send(CLAIMS);
    assert_eq!(client.answer().status, 200);
    let request = endpoint.request();
    for name in
        ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded", "x-real-ip"]
    {
        assert_eq!(request.field(name), None, "{name}");
    }
}
