//! Malformed messages on one stream of HTTP/2: the stream ends, or the request is answered 400, and all
//! others of the connection go on, towards clients and towards endpoints (RFC 9113, 8.1.1).

use std::sync::Arc;

use crate::support::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, Frame, Frames, GOAWAY, HEADERS, PING, RST_STREAM,
    SETTINGS, field, frame, request,
};
use crate::support::http2_endpoint::Http2Endpoint;
use crate::support::{Endpoint, Setup, ok};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PROTOCOL_ERROR: u32 = 1;
/// `:status: 400` and `:status: 200` by their numbers in HPACK's table.
const STATUS_400: u8 = 0x8c;
const STATUS_200: u8 = 0x88;

/// Fields behind a head that make it malformed, whoever sends them.
fn malformed_fields() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("upper case", field("X-Upper", "1")),
        ("no name", field("", "1")),
        ("space in a name", field("x a", "1")),
        ("NUL", field("x-a", "a\0b")),
        ("line end", field("x-a", "a\r\nx-b: c")),
        ("line end of a known name", [&[0x0f, 0x2b, 3], &b"a\nb"[..]].concat()),
        ("unknown pseudo-field", field(":unknown", "1")),
        ("late pseudo-field", [field("x-a", "1"), field(":path", "/b")].concat()),
        ("connection", field("connection", "close")),
        ("transfer-encoding", field("transfer-encoding", "chunked")),
        ("a length that is none", field("content-length", "1x")),
        ("two lengths", [field("content-length", "1"), field("content-length", "2")].concat()),
    ]
}

/// The pseudo-fields of a request, but for one.
fn without(name: &str) -> Vec<u8> {
    let fields = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a.b")];
    let others = fields.into_iter().filter(|(other, _)| *other != name);
    others.flat_map(|(name, value)| field(name, value)).collect()
}

fn malformed_requests() -> Vec<(&'static str, Vec<u8>)> {
    let get = || request("GET", "/");
    let mut kinds: Vec<_> = malformed_fields()
        .into_iter()
        .map(|(kind, fields)| (kind, [get(), fields].concat()))
        .collect();
    kinds.extend([
        ("no path", without(":path")),
        ("no scheme", without(":scheme")),
        ("no method", without(":method")),
        ("doubled path", [get(), field(":path", "/")].concat()),
        ("method that is none", [without(":method"), field(":method", "G T")].concat()),
        ("status", [get(), field(":status", "200")].concat()),
        ("status that is none", [get(), field(":status", "x")].concat()),
        (
            "path that is no text",
            [without(":path"), vec![0, 5], b":path\x02/\xff".to_vec()].concat(),
        ),
        ("te", [get(), field("te", "gzip")].concat()),
    ]);
    kinds
}

/// Requests that the library takes and Subak refuses.
fn refused_requests() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("space before", [request("GET", "/"), field("x-a", " a")].concat()),
        ("space behind", [request("GET", "/"), field("x-a", "a ")].concat()),
        ("tab behind", [request("GET", "/"), field("x-a", "a\t")].concat()),
        ("only a space", [request("GET", "/"), field("cookie", " ")].concat()),
        ("another scheme", [without(":scheme"), field(":scheme", "ftp")].concat()),
    ]
}

/// The next frame of a stream; the connection must not end.
#[track_caller]
fn next_of(client: &mut Frames, stream: u32) -> Frame {
    loop {
        let frame = client.next().expect("the connection goes on");
        assert_ne!(frame.kind, GOAWAY, "{frame:?}");
        if frame.stream == stream {
            return frame;
        }
    }
}

#[track_caller]
fn is_reset(frame: &Frame, kind: &str) {
    assert_eq!(frame.kind, RST_STREAM, "{kind}: {frame:?}");
    assert_eq!(frame.payload, PROTOCOL_ERROR.to_be_bytes(), "{kind}");
}

#[test]
fn a_malformed_request_ends_its_stream_and_an_upload_beside_it_goes_on() {
    let endpoint = Endpoint::scripted(|served| {
        while let Some(request) = served.request() {
            served.send(ok(&request.text()));
        }
    });
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = Frames::connect(&subak, &[]);
    client.send(HEADERS, END_HEADERS, 1, &request("POST", "/upload")).expect("send");
    client.send(DATA, 0, 1, b"begun").expect("send");
    let mut stream = 1;
    for (kind, block) in malformed_requests() {
        stream += 2;
        client.send(HEADERS, END_HEADERS | END_STREAM, stream, &block).expect("send");
        is_reset(&next_of(&mut client, stream), kind);
        // In pieces too, wherever the block is cut.
        for cut in [1, block.len() / 2, block.len() - 1, block.len()] {
            stream += 2;
            client.send(HEADERS, END_STREAM, stream, &block[..cut]).expect("send");
            client.send(CONTINUATION, END_HEADERS, stream, &block[cut..]).expect("send");
            is_reset(&next_of(&mut client, stream), kind);
        }
    }
    for (kind, block) in refused_requests() {
        stream += 2;
        client.send(HEADERS, END_HEADERS | END_STREAM, stream, &block).expect("send");
        let head = next_of(&mut client, stream);
        assert_eq!((head.kind, head.payload[0]), (HEADERS, STATUS_400), "{kind}: {head:?}");
    }
    client.send(DATA, END_STREAM, 1, b" and ended").expect("send");
    assert_eq!(next_of(&mut client, 1).payload[0], STATUS_200);
    assert_eq!(next_of(&mut client, 1).payload, b"begun and ended");
    assert_eq!(endpoint.requests().len(), 1, "something malformed got through");
}

#[test]
fn a_malformed_field_keeps_its_place_in_the_compressors_table() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    let mut client = Frames::connect(&subak, &[]);
    let remembered = |name: &str, value: &str| {
        let mut field = field(name, value);
        field[0] = 0x40;
        field
    };
    // Newest first: 62 is X-Bad, 63 is x-odd, 64 is x-good.
    let fields = [
        request("GET", "/"),
        remembered("x-good", "kept"),
        remembered("x-odd", "a\0"),
        remembered("X-Bad", "1"),
    ];
    client.send(HEADERS, END_HEADERS | END_STREAM, 1, &fields.concat()).expect("send");
    is_reset(&next_of(&mut client, 1), "all three");
    for (stream, index) in [(3, 62), (5, 63)] {
        let block = [request("GET", "/"), vec![0x80 | index]].concat();
        client.send(HEADERS, END_HEADERS | END_STREAM, stream, &block).expect("send");
        is_reset(&next_of(&mut client, stream), "an entry that is malformed");
    }
    // The name of a malformed field with another value, and a good one as it was.
    let mut block = request("GET", "/well");
    block.extend([0x0f, 63 - 15, 3]);
    block.extend(b"new");
    block.push(0x80 | 64);
    client.send(HEADERS, END_HEADERS | END_STREAM, 7, &block).expect("send");
    assert_eq!(next_of(&mut client, 7).payload[0], STATUS_200);
    let request = endpoint.request();
    assert_eq!((request.field("x-odd"), request.field("x-good")), (Some("new"), Some("kept")));
    // The name of a field that has none.
    let bad_name = [fields[0].clone(), vec![0x0f, 62 - 15, 1, b'2']].concat();
    client.send(HEADERS, END_HEADERS | END_STREAM, 9, &bad_name).expect("send");
    is_reset(&next_of(&mut client, 9), "a name in upper case");
}

#[test]
fn malformed_trailers_are_refused() {
    let endpoint = Endpoint::scripted(|served| {
        while let Some(request) = served.request() {
            served.send(ok(&request.text()));
        }
    });
    let subak = Setup::before(&[&endpoint]).pool("retry = { attempts = 1 }").start();
    let mut client = Frames::connect(&subak, &[]);
    let mut stream = 1;
    for trailers in [
        field(":path", "/admin"),
        field(":status", "200"),
        [field("x-a", "1"), field(":authority", "other")].concat(),
        field("X-A", "1"),
        field("x-a", "a\0"),
    ] {
        client.send(HEADERS, END_HEADERS, stream, &request("POST", "/")).expect("send");
        client.send(DATA, 0, stream, b"body").expect("send");
        client.send(HEADERS, END_HEADERS | END_STREAM, stream, &trailers).expect("send");
        is_reset(&next_of(&mut client, stream), "trailers");
        stream += 2;
    }
    client.send(HEADERS, END_HEADERS, stream, &request("POST", "/")).expect("send");
    client.send(HEADERS, END_HEADERS | END_STREAM, stream, &field("x-a", "a ")).expect("send");
    assert_eq!(next_of(&mut client, stream).payload[0], STATUS_400);
    assert!(
        endpoint.requests().is_empty(),
        "a body with malformed trailers was taken for complete"
    );
}

#[test]
fn an_early_answer_comes_well_before_the_reset() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).listener("limits = { body = 1000 }").start();
    let mut client = Frames::connect(&subak, &[]);
    let upload = [request("POST", "/"), field("content-length", "5000000")].concat();
    client.send(HEADERS, END_HEADERS, 1, &upload).expect("send");
    let end = std::iter::from_fn(|| client.next())
        .find(|frame| frame.stream == 1 && frame.flags & END_STREAM != 0);
    assert!(end.is_some(), "no answer");
    // Nothing but the answer to this is behind it.
    client.send(PING, 0, 0, &[5; 8]).expect("send");
    let next = std::iter::from_fn(|| client.next()).find(|frame| frame.kind != SETTINGS);
    assert_eq!(next.expect("the connection goes on").kind, PING);
    // Who goes on all the same is told to stop.
    let piece = vec![b'x'; 16 * 1024];
    client.send(DATA, 0, 1, &piece).expect("send");
    let reset = std::iter::from_fn(|| client.next()).find(|frame| frame.kind == RST_STREAM);
    assert_eq!(reset.expect("a reset").payload, [0; 4], "NO_ERROR");
    // Who ends the request is not.
    client.send(HEADERS, END_HEADERS, 3, &upload).expect("send");
    while next_of(&mut client, 3).flags & END_STREAM == 0 {}
    client.send(RST_STREAM, 0, 3, &[0, 0, 0, 8]).expect("send");
    assert!(client.sync());
    assert!(endpoint.requests().is_empty());
}

#[test]
fn curl_hears_an_early_answer() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).listener("limits = { body = 1000 }").start();
    let upload = subak.directory().join("upload");
    std::fs::write(&upload, vec![b'x'; 3_000_000]).expect("written");
    for _ in 0..6 {
        let ran = std::process::Command::new("curl")
            .args(["-sS", "--http2-prior-knowledge", "-m", "10", "-o", "/dev/null", "-w"])
            .arg("%{http_code} %{exitcode}")
            .arg("--data-binary")
            .arg(format!("@{}", upload.display()))
            .arg(format!("http://{}/", subak.address()))
            .output()
            .expect("curl");
        assert_eq!(String::from_utf8_lossy(&ran.stdout), "413 0", "{ran:?}");
    }
}

/// Answers the first stream by half a body, those behind it by malformed heads, one kind after the other,
/// then one well, and ends the first.
async fn malformed_answers(mut stream: TcpStream, kinds: Arc<Vec<Vec<u8>>>) {
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await.expect("the preface");
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.expect("settings");
    let mut asked = 0;
    loop {
        let mut head = [0; 9];
        if stream.read_exact(&mut head).await.is_err() {
            return;
        }
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        stream.read_exact(&mut payload).await.expect("its payload");
        let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let answer = match head[3] {
            SETTINGS if head[4] == 0 => frame(SETTINGS, 1, 0, &[]),
            HEADERS if asked == 0 => {
                [frame(HEADERS, END_HEADERS, id, &[STATUS_200]), frame(DATA, 0, id, b"begun")]
                    .concat()
            }
            HEADERS if asked <= kinds.len() => {
                frame(HEADERS, END_HEADERS | END_STREAM, id, &kinds[asked - 1])
            }
            HEADERS => [
                frame(HEADERS, END_HEADERS, id, &[STATUS_200]),
                frame(DATA, END_STREAM, id, b"well"),
                frame(DATA, END_STREAM, 1, b" and ended"),
            ]
            .concat(),
            _ => continue,
        };
        asked += usize::from(head[3] == HEADERS);
        stream.write_all(&answer).await.expect("sent");
    }
}

#[test]
fn an_endpoints_malformed_answer_cuts_off_nobody_else_and_is_logged() {
    let mut kinds: Vec<_> = malformed_fields()
        .into_iter()
        .map(|(kind, fields)| (kind, [vec![STATUS_200], fields].concat()))
        .collect();
    kinds.extend([
        ("no status", field("x-a", "1")),
        ("status that is none", field(":status", "abc")),
        ("doubled status", vec![STATUS_200, STATUS_200]),
        ("space", [vec![STATUS_200], field("x-a", "a ")].concat()),
    ]);
    let blocks = Arc::new(kinds.iter().map(|(_, block)| block.clone()).collect::<Vec<_>>());
    let endpoint = Http2Endpoint::scripted(move |_, stream, _| {
        let blocks = blocks.clone();
        Box::pin(malformed_answers(stream, blocks))
    });
    let subak = Setup::before_addresses([endpoint.address()])
        .workers(1)
        .pool("protocol = \"h2\"\nretry = { attempts = 1 }")
        .start();
    let mut slow = subak.client();
    slow.send("GET /slow HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n");
    assert_eq!(slow.head().status, 200);
    for (kind, _) in &kinds {
        assert_eq!(subak.get("/bad").0, 502, "{kind}");
    }
    assert_eq!(subak.get("/well"), (200, "well".into()));
    let rest = String::from_utf8(slow.read_to_end().0).expect("text");
    assert!(rest.contains("begun") && rest.contains(" and ended"), "{rest:?}");
    assert!(rest.ends_with("\r\n0\r\n\r\n"), "it was cut off: {rest:?}");
    assert_eq!(endpoint.accepted(), 1, "another connection was needed");
    let warnings = subak.log();
    let warned: Vec<_> =
        warnings.lines().filter(|line| line.contains("WARN an endpoint breaks")).collect();
    assert!(!warned.is_empty() && warned.len() <= 2, "{warned:?}");
    assert!(warned[0].contains(&endpoint.address()), "{warned:?}");
}
