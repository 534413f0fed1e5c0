//! The Admin API by TCP: nothing without the token, nothing for a page in somebody's browser.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::support::{Admin, Endpoint, Setup, Subak, fresh_address, fresh_directory};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// An instance that is asked at an address of its own.
fn start(endpoint: &Endpoint) -> (Subak, String, std::path::PathBuf) {
    let (directory, address) = (fresh_directory(), fresh_address());
    let token_file = directory.join("token");
    std::fs::write(&token_file, format!("{TOKEN}\n")).expect("write the token");
    let line = admin_line(&address, &token_file);
    (Setup::before(&[endpoint]).top(&line).start(), address, token_file)
}

fn admin_line(address: &str, token_file: &std::path::Path) -> String {
    let file = token_file.display().to_string();
    format!("admin = {{ tcp = {address:?}, token_file = {file:?} }}")
}

/// The status of an answer to a request with these fields.
fn status(subak: &Subak, request: &str, fields: &str) -> u16 {
    let (method, path) = request.split_once(' ').expect("a method and a path");
    Admin::of(subak).with(fields).ask(method, path, "").status
}

#[test]
fn the_token_opens_and_nothing_else_does() {
    let endpoint = Endpoint::named("one");
    let (subak, address, _file) = start(&endpoint);
    let host = format!("Host: {address}\r\n");
    let with = |authorization: &str| format!("{host}Authorization: {authorization}\r\n");
    let path = crate::support::admin::path(&endpoint.address());
    for request in ["GET /v1/status", "GET /metrics", &format!("GET {path}")] {
        assert_eq!(status(&subak, request, &with(&format!("Bearer {TOKEN}"))), 200, "{request}");
        assert_eq!(status(&subak, request, &host), 401, "{request}");
        assert_eq!(status(&subak, request, &with("Bearer nonsense")), 401, "{request}");
        let short = &TOKEN[..TOKEN.len() - 1];
        assert_eq!(status(&subak, request, &with(&format!("Bearer {short}"))), 401, "{request}");
    }
    let body = r#"{"state": "drain"}"#;
    let admin = Admin::of(&subak).with(&host);
    let (error, hint) = admin.refused(("PATCH", &path, body), 401);
    assert!(error.contains("token") && hint.contains("token_file"), "{error} {hint}");
    let admin = Admin::of(&subak).with(&with(&format!("Bearer {TOKEN}")));
    assert_eq!(admin.endpoint(&endpoint.address())["state"], "ready", "nothing was changed");
    assert_eq!(admin.patch(&endpoint.address(), body)["state"], "drain");
}

#[test]
fn a_name_that_was_made_to_point_here_is_refused() {
    let endpoint = Endpoint::named("one");
    let (subak, address, _file) = start(&endpoint);
    let port = address.rsplit_once(':').expect("a port").1;
    let ask = |host: &str| {
        let fields = format!("Host: {host}\r\nAuthorization: Bearer {TOKEN}\r\n");
        status(&subak, "GET /v1/status", &fields)
    };
    assert_eq!(ask(&address), 200);
    assert_eq!(ask(&format!("localhost:{port}")), 200);
    for host in ["evil.example", &format!("evil.example:{port}"), "localhost.evil.example"] {
        assert_eq!(ask(host), 403, "{host}");
    }
    assert_eq!(ask(""), 400);
}

#[test]
fn a_page_of_another_origin_is_refused() {
    let endpoint = Endpoint::named("one");
    let (subak, address, _file) = start(&endpoint);
    let ask = |request: &str, origin: &str| {
        let fields =
            format!("Host: {address}\r\nAuthorization: Bearer {TOKEN}\r\nOrigin: {origin}\r\n");
        status(&subak, request, &fields)
    };
    assert_eq!(ask("GET /v1/status", &format!("http://{address}")), 200);
    for origin in ["https://evil.example", "null", "http://127.0.0.1:1"] {
        assert_eq!(ask("GET /v1/status", origin), 403, "{origin}");
        assert_eq!(ask("OPTIONS /v1/status", origin), 403, "no page is let in: {origin}");
    }
}

#[test]
fn a_reload_puts_a_new_token_in_force() {
    let endpoint = Endpoint::named("one");
    let (subak, address, file) = start(&endpoint);
    let new = "fedcba9876543210fedcba9876543210";
    std::fs::write(&file, new).expect("write the token");
    subak.signal("HUP");
    subak.wait_for_log("configuration reloaded generation=2\n");
    let ask = |token: &str| {
        let fields = format!("Host: {address}\r\nAuthorization: Bearer {token}\r\n");
        status(&subak, "GET /v1/status", &fields)
    };
    assert_eq!(ask(new), 200);
    assert_eq!(ask(TOKEN), 401);
}

#[test]
fn a_port_that_is_taken_keeps_nobody_from_serving() {
    let endpoint = Endpoint::named("one");
    let (first, address, file) = start(&endpoint);
    let second = Setup::before(&[&endpoint]).top(&admin_line(&address, &file)).start();
    assert!(second.log().contains("there is no Admin API"), "{}", second.log());
    assert_eq!((first.get("/").0, second.get("/").0), (200, 200));
}

#[test]
fn silent_connections_keep_nobody_out_who_has_the_token() {
    let endpoint = Endpoint::named("one");
    let (subak, address, _file) = start(&endpoint);
    let fields = format!("Host: {address}\r\nAuthorization: Bearer {TOKEN}\r\n");
    let admin = Admin::of(&subak).with(&fields);
    let ask = format!("GET /v1/status HTTP/1.1\r\n{fields}\r\n");
    let mut known = admin.client();
    known.send(&ask);
    assert_eq!(known.answer().status, 200);
    let connect = |_| TcpStream::connect(&address).expect("connect");
    let silent: Vec<TcpStream> = (0..200).map(connect).collect();
    let begun = Instant::now();
    assert_eq!(admin.status()["pid"], subak.pid());
    let took = begun.elapsed();
    // Silence is given up after 5 s: this one did not wait for that.
    assert!(took < Duration::from_secs(3), "{took:?}");
    known.send(&ask);
    assert_eq!(known.answer().status, 200, "who has shown the token keeps its place");
    drop(silent);
}

#[test]
fn a_body_whose_length_could_be_read_in_two_ways_is_refused() {
    let endpoint = Endpoint::named("one");
    let (subak, address, _file) = start(&endpoint);
    let path = crate::support::admin::path(&endpoint.address());
    let fields = format!("Host: {address}\r\nAuthorization: Bearer {TOKEN}\r\n");
    let admin = Admin::of(&subak).with(&fields);
    let (chunked, length) = ("Transfer-Encoding: chunked\r\n", "Content-Length: 22\r\n");
    let body = "12\r\n{\"state\": \"drain\"}\r\n0\r\n\r\n";
    for lengths in [format!("{chunked}{length}"), format!("{length}{chunked}"), chunked.into()] {
        let mut client = admin.client();
        client.send(format!("PATCH {path} HTTP/1.1\r\n{fields}{lengths}\r\n{body}"));
        let answer = client.answer();
        assert_eq!(answer.status, 400, "{lengths}");
        assert!(answer.text().contains("Transfer-Encoding"), "{}", answer.text());
        assert_eq!(answer.field("connection"), Some("close"));
        client.assert_ends();
    }
    assert_eq!(admin.endpoint(&endpoint.address())["state"], "ready", "nothing was changed");
}

#[test]
fn by_tcp_no_endpoint_on_a_unix_socket_is_added_unless_the_file_allows_it() {
    let endpoint = Endpoint::named("one");
    let body = r#"{"endpoint": "unix:/run/other.sock weight=2"}"#;
    let request = ("POST", "/v1/pools/app/endpoints", body);
    let (subak, address, file) = start(&endpoint);
    let fields = format!("Host: {address}\r\nAuthorization: Bearer {TOKEN}\r\n");
    let (error, hint) = Admin::of(&subak).with(&fields).refused(request, 403);
    assert!(error.contains("unix") && hint.contains("admin.unix_endpoints"), "{error} {hint}");
    let inet = r#"{"endpoint": "127.0.0.1:9"}"#;
    let admin = Admin::of(&subak).with(&fields);
    assert_eq!(admin.ask("POST", "/v1/pools/app/endpoints", inet).status, 201);
    drop(subak);
    let line = admin_line(&address, &file).replace(" }", ", unix_endpoints = true }");
    let subak = Setup::before(&[&endpoint]).top(&line).start();
    let admin = Admin::of(&subak).with(&fields);
    assert_eq!(admin.ask("POST", "/v1/pools/app/endpoints", body).status, 201);
}
