//! The PROXY protocol: from whom it is believed, what becomes of it, what endpoints hear; and HAProxy
//! on either side.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use tokio::io::AsyncWriteExt;

use crate::support::http2::{h2_get, h2_over, run, self_made_certificate, tls_on};
use crate::support::{
    Admin, Client, Endpoint, Nginx, Scrape, Setup, Subak, fresh_address, fresh_directory, ok,
    wait_until,
};

const FROM: &str = "proxy_protocol = { from = [\"127.0.0.0/8\"] }";
const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// A header of version 2 for 203.0.113.7:4000 → 198.51.100.1:443, with these bytes behind its addresses.
fn v2(tlvs: &[u8]) -> Vec<u8> {
    let length = (12 + tlvs.len() as u16).to_be_bytes();
    let addresses = [203, 0, 113, 7, 198, 51, 100, 1, 0x0f, 0xa0, 0x01, 0xbb];
    [SIGNATURE, &[0x21, 0x11], &length, &addresses, tlvs].concat()
}

#[test]
fn the_announced_address_is_the_clients_for_everything() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint])
        .listener(FROM)
        .listener("access_log = { path = \"access.log\", format = \"json\" }")
        .tail("[[listener.web.route]]\nclient = \"203.0.113.7\"\nrespond = 418\npath = \"/who\"\n")
        .start();
    let headers = [b"PROXY TCP4 203.0.113.7 198.51.100.1 4000 443\r\n".to_vec(), v2(&[])];
    for header in headers {
        let mut client = subak.client();
        // Byte by byte, and more than one request behind one header.
        for byte in &header {
            client.send([*byte]);
        }
        client.send(GET);
        assert_eq!(client.answer().status, 200, "{}", subak.log());
        assert_eq!(client.get("/who").status, 418);
    }
    let requests = endpoint.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        assert_eq!(request.field("x-forwarded-for"), Some("203.0.113.7"));
        assert_eq!(request.field("x-forwarded-proto"), Some("http"));
    }
}

#[test]
fn a_proxy_that_speaks_tls_with_the_client_says_so() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).listener(FROM).start();
    let mut client = subak.client();
    // SSL: by this connection, not verified, TLSv1.3.
    let tls = [&[0x20, 0, 15, 1, 0, 0, 0, 1, 0x21, 0, 7][..], b"TLSv1.3"].concat();
    client.send([v2(&tls), GET.into()].concat());
    assert_eq!(client.answer().status, 200, "{}", subak.log());
    assert_eq!(endpoint.request().field("x-forwarded-proto"), Some("https"));
}

#[test]
fn connections_of_the_proxy_itself_keep_their_own_address() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).listener(FROM).start();
    let local = [SIGNATURE, &[0x20, 0, 0, 0]].concat();
    for header in [b"PROXY UNKNOWN\r\n".to_vec(), local] {
        let mut client = subak.client();
        client.send([header, GET.into()].concat());
        assert_eq!(client.answer().status, 200);
    }
    for request in endpoint.requests() {
        let told = request.field("x-forwarded-for").expect("a client");
        assert!(told.starts_with("127."), "{told}");
    }
}

#[test]
fn without_a_header_that_can_be_believed_nobody_is_served() {
    let endpoint = Endpoint::named("x");
    let setup = |accept: &str| Setup::before(&[&endpoint]).listener(accept).start();
    let subak = setup("proxy_protocol = { from = [\"127.0.0.0/8\"], timeout = \"200ms\" }");
    let mut wrong = v2(&[]);
    wrong[12] = 0x31;
    let checksum = v2(&[3, 0, 4, 1, 2, 3, 4]);
    for (begin, why) in [
        (GET.as_bytes().to_vec(), "it begins without a PROXY header"),
        (b"PROXY TCP4 nonsense\r\n".to_vec(), "a malformed PROXY header"),
        (wrong, "its version is neither 1 nor 2"),
        (checksum, "its checksum is wrong"),
        (b"PROXY TC".to_vec(), "no whole PROXY header came in time"),
    ] {
        let mut client = subak.client();
        client.send(begin);
        client.assert_ends();
        subak.wait_for_log(why);
    }
    let mut client = subak.client();
    client.send(b"PROXY TC");
    client.socket().end_sending();
    client.assert_ends();
    subak.wait_for_log("it ended before its PROXY header");
    let turned_away = |subak: &Subak| {
        let listener = Admin::of(subak).status()["listeners"][0].clone();
        assert_eq!(listener["refused"], 0);
        listener["turned_away"].clone()
    };
    let mut expected = serde_json::json!({
        "network": 0, "per_client": 0, "proxy_source": 0, "proxy_absent": 1, "proxy_malformed": 3,
        "proxy_late": 1, "proxy_cut": 1
    });
    assert_eq!(turned_away(&subak), expected);
    let others = setup("proxy_protocol = { from = [\"10.0.0.0/8\"] }");
    let mut client = others.client();
    let _ = client.try_send(v2(&[]));
    client.assert_ends();
    others.wait_for_log("it comes from outside of proxy_protocol.from");
    for (why, count) in expected.as_object_mut().expect("an object") {
        *count = u64::from(why == "proxy_source").into();
    }
    assert_eq!(turned_away(&others), expected);
    let metrics = Admin::of(&others).ask("GET", "/metrics", "").text();
    let series = [("listener", "web"), ("why", "proxy_source")];
    let counted = Scrape::parse(&metrics).value("subak_listener_turned_away_total", &series);
    assert_eq!(counted, 1.0);

    // Where it is optional others are served as they are, and what they say of themselves is no header.
    let optional = setup("proxy_protocol = { from = [\"10.0.0.0/8\"], optional = true }");
    assert_eq!(optional.get("/").0, 200);
    let mut client = optional.client();
    client.send(b"PROXY TCP4 203.0.113.7 198.51.100.1 4000 443\r\n\r\n");
    assert_eq!(client.answer().status, 400);
    let optional = setup("proxy_protocol = { from = [\"127.0.0.0/8\"], optional = true }");
    assert_eq!(optional.get("/").0, 200);
    assert_eq!(endpoint.requests().len(), 2);
}

/// The headers that an endpoint was sent, in the order of its connections.
#[derive(Clone, Default)]
struct Headers(Arc<Mutex<Vec<Vec<u8>>>>);

impl Headers {
    fn all(&self) -> Vec<Vec<u8>> {
        self.0.lock().expect("headers").clone()
    }
}

/// Takes a header of either version off, then answers requests.
fn behind_a_header() -> (Endpoint, Headers) {
    let headers = Headers::default();
    let seen = headers.clone();
    let endpoint = Endpoint::scripted(move |served| {
        let Some(mut header) = served.read(1) else { return };
        if header == b"P" {
            while !header.ends_with(b"\n") {
                let Some(byte) = served.read(1) else { return };
                header.extend(byte);
            }
        } else {
            let Some(head) = served.read(15) else { return };
            let length = u16::from_be_bytes([head[13], head[14]]);
            header.extend(head);
            header.extend(served.read(length.into()).unwrap_or_default());
        }
        seen.0.lock().expect("headers").push(header);
        while served.request().is_some() {
            served.send(ok("x"));
        }
    });
    (endpoint, headers)
}

#[test]
fn endpoints_hear_of_each_client_on_connections_that_serve_no_other() {
    for (version, begin) in [("v1", &b"PROXY TCP4 127."[..]), ("v2", SIGNATURE)] {
        let (endpoint, headers) = behind_a_header();
        let subak =
            Setup::before(&[&endpoint]).pool(&format!("proxy_protocol = {version:?}")).start();
        let (mut one, mut other) = (subak.client(), subak.client());
        for _ in 0..3 {
            assert_eq!(one.get("/").status, 200, "{}", subak.log());
            assert_eq!(other.get("/").status, 200);
        }
        // A client's connection finds its own again; another's has one of its own.
        assert_eq!(endpoint.accepted(), 2, "{version}");
        let headers = headers.all();
        assert!(headers.iter().all(|header| header.starts_with(begin)), "{headers:?}");
        assert_ne!(headers[0], headers[1]);
    }
}

#[test]
fn a_header_comes_before_tls_and_endpoints_hear_what_was_agreed_on() {
    let (endpoint, headers) = behind_a_header();
    let directory = fresh_directory();
    let trusted = self_made_certificate(&directory);
    let file = |name: &str| directory.join(name).to_str().expect("a path").to_owned();
    let subak = Setup::before(&[&endpoint])
        .listener(FROM)
        .listener(&format!(
            "tls = {{ certificates = [{{ chain = {:?}, key = {:?} }}] }}",
            file("site.pem"),
            file("site.key")
        ))
        .pool("proxy_protocol = \"v2\"")
        .start();
    let body = run(async {
        let mut stream =
            tokio::net::TcpStream::connect(subak.socket_address()).await.expect("connect");
        stream.write_all(&v2(&[])).await.expect("sent");
        let stream = tls_on(stream, trusted, &["h2"]).await;
        let local = tokio::task::LocalSet::new();
        let asked = async { h2_get(h2_over(stream).await, "https://localhost/").await.1 };
        local.run_until(asked).await
    });
    assert_eq!(body, "x");
    let header = headers.all().remove(0);
    // The addresses as they were announced, then ALPN, the server name, and TLS with its version.
    let begin = &v2(&[])[16..];
    assert_eq!(&header[16..28], begin, "{header:?}");
    let has = |part: &[u8]| header.windows(part.len()).any(|window| window == part);
    assert!(has(b"\x01\x00\x02h2") && has(b"\x02\x00\x09localhost"), "{header:?}");
    assert!(has(b"\x21\x00\x07TLSv1.3") && has(b"TLS_AES_"), "{header:?}");
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn probes_announce_nobody() {
    for (version, expected) in
        [("v1", b"PROXY UNKNOWN\r\n".to_vec()), ("v2", [SIGNATURE, &[0x20, 0, 0, 0]].concat())]
    {
        let (endpoint, headers) = behind_a_header();
        let subak = Setup::before(&[&endpoint])
            .pool(&format!("proxy_protocol = {version:?}"))
            .pool("health = { http = \"/\", interval = \"200ms\", fast_interval = \"100ms\" }")
            .start();
        let admin = Admin::of(&subak);
        wait_until("the check passes", || {
            admin.endpoint(&endpoint.address())["probe"].to_string().contains("passed")
        });
        assert_eq!(headers.all()[0], expected);
    }
}

#[test]
fn nginx_takes_what_endpoints_are_sent() {
    let (directory, address) = (fresh_directory(), fresh_address());
    let server = format!(
        "server {{ listen {address} proxy_protocol; return 200 \
         \"$proxy_protocol_addr:$proxy_protocol_port $proxy_protocol_server_addr:$proxy_protocol_server_port\"; }}"
    );
    let Some(_nginx) = Nginx::start(&directory, &server, &address) else { return };
    for version in ["v1", "v2"] {
        let subak = Setup::before_addresses([address.clone()])
            .listener(FROM)
            .pool(&format!("proxy_protocol = {version:?}"))
            .start();
        for (line, told) in [
            ("TCP4 203.0.113.7 198.51.100.1 4000 443", "203.0.113.7:4000 198.51.100.1:443"),
            ("TCP6 2001:db8::7 2001:db8::1 4000 443", "2001:db8::7:4000 2001:db8::1:443"),
        ] {
            let mut client = subak.client();
            client.send(format!("PROXY {line}\r\n{GET}"));
            assert_eq!(client.answer().text(), told, "{version}");
        }
    }
    let _ = std::fs::remove_dir_all(directory);
}

/// A running HAProxy with this configuration behind its defaults. None, said loudly, where there is none.
struct HaProxy(Child);

impl HaProxy {
    fn start(text: &str, address: &str) -> Option<HaProxy> {
        let directory = fresh_directory();
        let file = directory.join("haproxy.cfg");
        let defaults =
            "defaults\n mode http\n timeout connect 5s\n timeout client 5s\n timeout server 5s\n";
        std::fs::write(&file, format!("{defaults}{text}")).expect("write");
        let started = Command::new("haproxy")
            .arg("-db")
            .arg("-f")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = started
            .inspect_err(|error| eprintln!("SKIPPED: what is tried with HAProxy: {error}"))
            .ok()?;
        let proxy = HaProxy(child);
        wait_until("HAProxy listens", || TcpStream::connect(address).is_ok());
        let _ = std::fs::remove_dir_all(directory);
        Some(proxy)
    }
}

impl Drop for HaProxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn haproxy_says_who_the_client_is_and_hears_it() {
    // Client → HAProxy → Subak → HAProxy → endpoint, by the header all the way.
    for (send, version) in [
        ("send-proxy", "v1"),
        ("send-proxy-v2", "v2"),
        ("send-proxy-v2 proxy-v2-options crc32c", "v2"),
    ] {
        let endpoint = Endpoint::named("x");
        let (front, back) = (fresh_address(), fresh_address());
        let checksum = send.contains("crc32c");
        let proxy = match version {
            "v2" => format!("{{ version = \"v2\", checksum = {checksum} }}"),
            version => format!("{version:?}"),
        };
        let subak = Setup::before_addresses([back.clone()])
            .listener(FROM)
            .listener("forwarded_headers = { x_forwarded = false }")
            .pool(&format!("proxy_protocol = {proxy}"))
            .start();
        let text = format!(
            "frontend front\n bind {front}\n default_backend subak\n\
             backend subak\n server s {} {send}\n\
             frontend back\n bind {back} accept-proxy\n http-request set-header X-Seen %[src]\n \
             default_backend endpoint\n\
             backend endpoint\n server e {}\n",
            subak.address(),
            endpoint.address()
        );
        let Some(_proxy) = HaProxy::start(&text, &front) else { return };
        let mut client = Client::connect_from("127.9.8.7", &front);
        assert_eq!(client.get("/").status, 200, "{send}: {}", subak.log());
        let seen = endpoint.request().field("x-seen").map(str::to_owned);
        assert_eq!(seen.as_deref(), Some("127.9.8.7"), "{send}");
    }
}
