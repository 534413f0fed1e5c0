//! Guards by path hold in every spelling that an endpoint could resolve to what they guard: towards
//! nginx, in both protocols, for each setting of `encoded_slashes`, and as `subak explain` says.

use std::process::Command;

use bytes::Bytes;
use http::Request;

use crate::support::http2::{h2_exchange, prior_knowledge};
use crate::support::{Endpoint, Nginx, Setup, Subak, fresh_address, fresh_directory};

/// Answers 403 below `/admin/`.
const GUARD: &str = "[[listener.web.route]]\npath = \"/admin/\"\nrespond = 403\n";

/// Spellings of what is below `/admin/`, for some endpoint at least.
const SPELLINGS: &[&str] = &[
    "/admin/x",
    "/%61dmin/x",
    "//admin/x",
    "/./admin/x",
    "/x/../admin/x",
    "/x/%2e%2e/admin/x",
    "/admin%2fx",
    "/admin%2Fx",
    "/admin%5cx",
    "/admin\\x",
    "/x/..%2fadmin/x",
    "/x%2f..%2fadmin/x",
    "/x%2F%2e%2e/admin/x",
    "/admin;a=b/x",
    "/admin;/x",
    "/admin%3b/x",
    "/;x/admin/x",
    "/;/admin/x",
    "/x/..;/admin/x",
    "/x/..;a=b/admin/x",
    "/x/%2e%2e;/admin/x",
    "/x/..%3b/admin/x",
    "/x/.;/../admin/x",
    "/x//../admin/x",
    "/admin//../x",
    "/x/;/../admin/x",
    "/admin/..;/admin/x",
    "/x/%c0%ae%c0%ae/admin/x",
    "/x%c0%af../admin/x",
    "/admin%00/x",
    "/admin/%2e/x",
];

/// nginx with something secret below `/admin/`; its address.
fn nginx() -> Option<(Nginx, String)> {
    let (address, directory) = (fresh_address(), fresh_directory());
    let server = format!(
        "server {{ listen {address}; location / {{ return 200 public; }}\n\
         location /admin/ {{ return 200 secret; }} }}\n"
    );
    Nginx::start(&directory, &server, &address).map(|nginx| (nginx, address))
}

fn ask(subak: &Subak, target: &str) -> (u16, String) {
    let mut client = subak.client();
    client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
    let answer = client.answer();
    (answer.status, answer.text())
}

fn ask_by_http2(subak: &Subak, target: &str) -> (u16, String) {
    let request = Request::get(format!("http://a{target}")).body(()).expect("request");
    let (head, text) =
        prior_knowledge(subak, async |send| h2_exchange(send, request, None::<Bytes>).await);
    (head.status().as_u16(), text)
}

#[test]
fn nginx_gives_nothing_away_that_a_route_guards() {
    let Some((_nginx, address)) = nginx() else { return };
    let setup = Setup::before_addresses([address.clone()]).tail(GUARD);
    let subak = setup.start();
    for target in SPELLINGS {
        let (status, text) = ask(&subak, target);
        assert!(matches!(status, 400 | 403), "{target}: {status} {text}");
        // The library of the test takes no backslash.
        if !target.contains('\\') {
            assert_eq!(ask_by_http2(&subak, target).0, status, "{target} by HTTP/2");
        }
        let absolute = format!("http://a{target}");
        assert_eq!(ask(&subak, &absolute).0, status, "{absolute}");
    }
    for target in ["/", "/x", "/administration", "/x;admin/", "/x/%252fadmin/", "/?x=/admin%2fx"] {
        assert_eq!(ask(&subak, target), (200, "public".to_owned()), "{target}");
        assert_eq!(ask_by_http2(&subak, target).0, 200, "{target} by HTTP/2");
    }
    // As nginx reads it: routes and endpoints see slashes.
    let subak = Setup::before_addresses([address])
        .listener("encoded_slashes = \"decode\"")
        .tail(GUARD)
        .start();
    for target in SPELLINGS {
        let (status, text) = ask(&subak, target);
        assert!(matches!(status, 400 | 403), "{target}: {status} {text}");
    }
    assert_eq!(ask(&subak, "/admin%2Fx").0, 403);
    assert_eq!(ask(&subak, "/x%2Fadmin%2Fx"), (200, "public".to_owned()));
}

#[test]
fn encoded_slashes_are_refused_kept_or_decoded_for_routes_and_endpoints_alike() {
    for (setting, cases) in [
        ("refuse", [("/a%2Fb?c=%2F", None), ("/v2/x%2fy", None), ("/x%2f../y", None)]),
        (
            "keep",
            [
                ("/a%2Fb?c=%2F", Some("/a%2Fb?c=%2F")),
                ("/v2/x%2fy", Some("/x%2Fy")),
                ("/x%2f../y", None),
            ],
        ),
        (
            "decode",
            [
                ("/a%2Fb?c=%2F", Some("/a/b?c=%2F")),
                ("/v2%2fx%2fy", Some("/x/y")),
                ("/x%2f../y", Some("/x/../y")),
            ],
        ),
    ] {
        let endpoint = Endpoint::named("x");
        let strip =
            "[[listener.web.route]]\npath = \"/v2/\"\nstrip_prefix = \"/v2\"\npool = \"app\"\n";
        let subak = Setup::before(&[&endpoint])
            .listener(&format!("encoded_slashes = {setting:?}"))
            .tail(strip)
            .start();
        for (asked, seen) in cases {
            let before = endpoint.requests().len();
            let status = ask(&subak, asked).0;
            assert_eq!(status, if seen.is_some() { 200 } else { 400 }, "{setting} {asked}");
            let lines: Vec<_> =
                endpoint.requests()[before..].iter().map(|one| one.line.clone()).collect();
            let expected: Vec<_> = seen.iter().map(|seen| format!("GET {seen} HTTP/1.1")).collect();
            assert_eq!(lines, expected, "{setting} {asked}");
        }
    }
}

#[test]
fn parameters_of_a_path_reach_the_endpoint_and_make_no_key_of_their_own() {
    let endpoint = Endpoint::named("x");
    let subak =
        Setup::before(&[&endpoint]).listener("rate = { rate = \"1/h\", key = \"path\" }").start();
    assert_eq!(ask(&subak, "/cart;jsessionid=1/x").0, 200);
    assert_eq!(endpoint.request().line, "GET /cart;jsessionid=1/x HTTP/1.1");
    for target in ["/cart;jsessionid=2/x", "/cart/x;y", "/cart%3b3/x", "/cart/x"] {
        assert_eq!(ask(&subak, target).0, 429, "{target}");
    }
    assert_eq!(ask(&subak, "/cart/y").0, 200);
}

#[test]
fn explain_says_what_is_served() {
    let endpoint = Endpoint::named("x");
    for setting in ["refuse", "keep", "decode"] {
        let setup = Setup::before(&[&endpoint])
            .listener(&format!("encoded_slashes = {setting:?}"))
            .tail(GUARD);
        let subak = setup.start();
        let file = fresh_directory().join("subak.toml");
        std::fs::write(&file, setup.text()).expect("written");
        for target in SPELLINGS.iter().chain(&["/x", "/a%2Fb"]) {
            let (status, _) = ask(&subak, target);
            let output = Command::new(env!("CARGO_BIN_EXE_subak"))
                .arg("explain")
                .arg(format!("http://{}{target}", subak.address()))
                .arg("--config")
                .arg(&file)
                .env("NO_COLOR", "1")
                .output()
                .expect("subak explain");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let says = if status == 200 {
                "result    to ".to_owned()
            } else {
                format!("answered {status}")
            };
            assert!(text.contains(&says), "{setting} {target}: served {status}\n{text}");
        }
    }
}
