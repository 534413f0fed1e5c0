//! Lines by the letter: what is there, what is not, and what somebody made up.

use super::*;
use crate::captured::Captured;
use crate::compiled::Wanted;
use crate::entry::Headers;
use crate::format::Format;

#[derive(Debug)]
struct Server(&'static [u8]);

impl Headers for Server {
    fn get(&self, name: &[u8]) -> Option<&[u8]> {
        name.eq_ignore_ascii_case(b"server").then_some(self.0)
    }
}

fn line_of(format: &Format, entry: &Entry<'_>, headers: &[Option<&[u8]>]) -> String {
    let mut wanted = Wanted::default();
    let compiled = format.compile(&mut wanted, ("w\"eb", 7), None);
    assert_eq!(wanted.request_headers.len(), headers.len());
    let mut page = Page::default();
    let mut wall = Wall::default();
    wall.read(Tick(0), 1_795_281_153_123_000_000);
    line(&compiled, entry, &mut wall, &mut page);
    String::from_utf8(page.exchange(Vec::new())).unwrap()
}

fn of_keys(keys: &str) -> Format {
    Format::of_keys(keys.split(' ')).unwrap()
}

/// A request of which everything is known.
fn full<'a>(request: &'a Captured, answer: &'a Server) -> Entry<'a> {
    Entry {
        began: Tick(0),
        ended: Tick(12_345_678),
        client: Some("203.0.113.9".parse().unwrap()),
        peer: Some(("2001:db8::1".parse().unwrap(), 54_321)),
        request,
        is_tls: true,
        tls: Some("TLSv1.3"),
        protocol: "HTTP/1.1",
        status: 200,
        grpc_status: Some(14),
        answer,
        bytes_in: 78,
        bytes_out: 1_234_567,
        head_bytes_out: 67,
        route: Some(3),
        pool: Some("app"),
        endpoint: Some("10.0.0.2:8080"),
        tries: 2,
        stick: Some(Sticking::Moved),
        head: Duration::ZERO,
        queue: Duration::from_micros(7),
        handshake: Duration::from_micros(900),
        connect: Duration::from_micros(1_500),
        endpoint_handshake: Duration::from_micros(1_250),
        picked: Some(Tick(1_000_000)),
        first_byte: Some(Tick(9_999_999)),
        failure: None,
        decision: Some(0xc0_ffee),
    }
}

/// One of which nothing is.
fn empty<'a>(request: &'a Captured, answer: &'a Server) -> Entry<'a> {
    Entry {
        client: None,
        peer: None,
        is_tls: false,
        tls: None,
        protocol: "HTTP/2",
        status: 0,
        grpc_status: None,
        route: None,
        pool: None,
        endpoint: None,
        tries: 0,
        stick: None,
        queue: Duration::ZERO,
        picked: None,
        first_byte: None,
        failure: Some(Cause::BadHead),
        decision: None,
        ..full(request, answer)
    }
}

fn request(headers: &[Option<&[u8]>]) -> Captured {
    let mut request = Captured::default();
    request.begin(b"GET", b"/a/long/path", Some(b"b=c"), b"example.com");
    headers.iter().for_each(|header| request.push(*header));
    request
}

#[test]
fn a_calls_status_is_a_number_or_nothing() {
    let request = request(&[]);
    let format = of_keys("status grpc_status");
    let line = |entry: &Entry<'_>| line_of(&format, entry, &[]);
    let calls = [full(&request, &Server(b"s")), empty(&request, &Server(b"s"))];
    assert_eq!(line(&calls[0]), "{\"status\":200,\"grpc_status\":14}\n");
    assert_eq!(line(&calls[1]), "{\"status\":null,\"grpc_status\":null}\n");
}

#[test]
fn a_default_line_is_this_one() {
    let headers = [Some(&b"agent/1 \"x\"\n"[..]), None];
    let request = request(&headers);
    let line = line_of(&Format::default(), &full(&request, &Server(b"s")), &headers);
    let expected = "{\"time\":\"2026-11-21T17:12:33.123Z\",\"listener\":\"w\\\"eb\",\
        \"client\":\"203.0.113.9\",\"client_port\":54321,\"method\":\"GET\",\"scheme\":\"https\",\
        \"host\":\"example.com\",\"path\":\"/a/long/path\",\"query\":\"b=c\",\
        \"protocol\":\"HTTP/1.1\",\"status\":200,\"bytes_in\":78,\"bytes_out\":1234567,\"route\":3,\
        \"pool\":\"app\",\"endpoint\":\"10.0.0.2:8080\",\"tries\":2,\"queue_ms\":0.007,\
        \"connect_ms\":1.500,\"first_byte_ms\":8.999,\"total_ms\":12.345,\"end\":\"ok\",\
        \"fault\":null,\"user_agent\":\"agent/1 \\\"x\\\"\\n\",\"referer\":null,\
        \"decision\":\"0000000000c0ffee\"}\n";
    assert_eq!(line, expected);
}

#[test]
fn what_is_not_there_is_null() {
    let headers = [None, None];
    let line = line_of(&Format::default(), &empty(&Captured::default(), &Server(b"s")), &headers);
    let expected = "{\"time\":\"2026-11-21T17:12:33.123Z\",\"listener\":\"w\\\"eb\",\
        \"client\":null,\"client_port\":null,\"method\":null,\"scheme\":\"http\",\"host\":null,\
        \"path\":null,\"query\":null,\"protocol\":\"HTTP/2\",\"status\":null,\"bytes_in\":78,\
        \"bytes_out\":1234567,\"route\":null,\"pool\":null,\"endpoint\":null,\"tries\":0,\
        \"queue_ms\":null,\"connect_ms\":null,\"first_byte_ms\":null,\"total_ms\":12.345,\
        \"end\":\"bad_head\",\"fault\":\"client\",\"user_agent\":null,\"referer\":null,\
        \"decision\":null}\n";
    assert_eq!(line, expected);
}

#[test]
fn handshakes_are_a_phase_of_their_own_or_took_no_time() {
    let request = request(&[]);
    let format = of_keys("tls_ms connect_ms endpoint_tls_ms");
    let entry = full(&request, &Server(b"s"));
    let line = |entry: &Entry<'_>| line_of(&format, entry, &[]);
    assert_eq!(line(&entry), "{\"tls_ms\":0.900,\"connect_ms\":1.500,\"endpoint_tls_ms\":1.250}\n");
    let kept = Entry {
        handshake: Duration::ZERO,
        connect: Duration::ZERO,
        endpoint_handshake: Duration::ZERO,
        ..entry
    };
    assert_eq!(line(&kept), "{\"tls_ms\":0,\"connect_ms\":0,\"endpoint_tls_ms\":0}\n");
    let untried = empty(&request, &Server(b"s"));
    assert_eq!(line(&untried), "{\"tls_ms\":0.900,\"connect_ms\":null,\"endpoint_tls_ms\":null}\n");
}

#[test]
fn the_other_keys_say_theirs() {
    let request = request(&[]);
    let format =
        of_keys("peer url request body_bytes_out stick head_ms endpoint_ms tls generation");
    let line = line_of(&format, &full(&request, &Server(b"s")), &[]);
    let expected = "{\"peer\":\"2001:db8::1\",\"url\":\"/a/long/path?b=c\",\
        \"request\":\"GET /a/long/path?b=c HTTP/1.1\",\"body_bytes_out\":1234500,\
        \"stick\":\"moved\",\"head_ms\":0,\"endpoint_ms\":11.345,\"tls\":\"TLSv1.3\",\
        \"generation\":7}\n";
    assert_eq!(line, expected);
    let nothing = line_of(&format, &empty(&Captured::default(), &Server(b"s")), &[]);
    let expected = "{\"peer\":null,\"url\":null,\"request\":null,\"body_bytes_out\":1234500,\
        \"stick\":null,\"head_ms\":0,\"endpoint_ms\":null,\"tls\":null,\"generation\":7}\n";
    assert_eq!(nothing, expected);
}

#[test]
fn texts_say_what_nginx_and_haproxy_would() {
    let headers = [Some(&b"agent"[..]), Some(b"")];
    let request = request(&headers);
    let server = Server(b"a b\"");
    let format = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \
                  $msec $request_time $upstream_connect_time $upstream_header_time \
                  $upstream_response_time $request_id $scheme $sent_http_server $http_user_agent \
                  $http_x | %t %f %Ts %TR/%Tw/%Tc/%Tr/%Ta %ST %rc %ts %HU";
    let format = Format::read(format).unwrap();
    let expected = "203.0.113.9 - - [21/Nov/2026:17:12:33 +0000] \
        \"GET /a/long/path?b=c HTTP/1.1\" 200 1234500 1795281153.123 0.012 0.001 0.008 0.011 \
        0000000000c0ffee https a b\\x22 agent - | 21/Nov/2026:17:12:33.123 w\\x22eb 1795281153 \
        0/0/1/8/12 200 1 -- /a/long/path?b=c\n";
    assert_eq!(line_of(&format, &full(&request, &server), &headers), expected);
    let expected = "- - - [21/Nov/2026:17:12:33 +0000] \"-\" 499 1234500 1795281153.123 0.012 - - \
        - - http - - - | 21/Nov/2026:17:12:33.123 w\\x22eb 1795281153 0/-1/-1/-1/12 -1 0 PR -\n";
    assert_eq!(line_of(&format, &empty(&Captured::default(), &server), &headers), expected);
}

#[test]
fn a_long_text_between_two_fields_is_whole() {
    let request = request(&[]);
    for length in 0..100 {
        let text = "x".repeat(length);
        let format = Format::read(&format!("{text}${{status}}{text}${{status}}{text}")).unwrap();
        let line = line_of(&format, &full(&request, &Server(b"s")), &[]);
        assert_eq!(line, format!("{text}200{text}200{text}\n"));
    }
}
