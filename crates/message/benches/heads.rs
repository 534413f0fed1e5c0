//! Nanoseconds per head: reading and writing a typical request and answer, and chunk decoding.
//!
//! `cargo bench -p subak-message` prints the best and the median of 21 rounds. One core, no
//! allocation after the first round; compare only runs of one machine.

use std::hint::black_box;
use std::time::Instant;

use subak_message::h1::{
    Asked, ChunkedDecoder, ConnectionOut, RequestOut, ResponseOut, parse_request, parse_response,
    write_request_head, write_response_head,
};
use subak_message::{BodyLength, HeadLimits, Known, RequestHead, ResponseHead};

const SMALL_REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";

const REQUEST: &[u8] = b"GET /catalogue/items/4711?page=2&sort=price HTTP/1.1\r\n\
Host: shop.example.com\r\n\
User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n\
Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
Accept-Language: en-GB,en;q=0.5\r\n\
Accept-Encoding: gzip, deflate, br, zstd\r\n\
Referer: https://shop.example.com/catalogue\r\n\
Connection: keep-alive\r\n\
Cookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\n\
Sec-Fetch-Mode: navigate\r\n\
Cache-Control: max-age=0\r\n\
\r\n";

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\n\
Server: nginx\r\n\
Date: Sat, 21 Nov 2026 10:00:00 GMT\r\n\
Content-Type: text/html; charset=utf-8\r\n\
Content-Length: 1024\r\n\
Last-Modified: Fri, 20 Nov 2026 09:00:00 GMT\r\n\
Connection: keep-alive\r\n\
ETag: \"5f3c-400\"\r\n\
Cache-Control: max-age=60\r\n\
Accept-Ranges: bytes\r\n\
Vary: Accept-Encoding\r\n\
\r\n";

fn main() {
    let limits = HeadLimits::default();
    let mut request = RequestHead::default();
    let mut answer = ResponseHead::default();
    let asked = Asked::default();
    let mut out = Vec::new();

    measure("read a request of 1 field", || {
        parse_request(black_box(SMALL_REQUEST), &limits, &mut request).is_ok()
    });
    measure("read a request of 10 fields", || {
        parse_request(black_box(REQUEST), &limits, &mut request).is_ok()
    });
    measure("read an answer of 10 fields", || {
        parse_response(black_box(ANSWER), &limits, &asked, &mut answer).is_ok()
    });
    measure("write the request", || {
        out.clear();
        let to = RequestOut {
            target: request.forward_target(),
            default_host: b"",
            body: BodyLength::None,
            connection: ConnectionOut::Implied,
            expect_continue: false,
        };
        write_request_head(&mut out, black_box(&request), &to);
        !out.is_empty()
    });
    measure("write the answer", || {
        out.clear();
        let to = ResponseOut { body: BodyLength::Known(1024), connection: ConnectionOut::Implied };
        write_response_head(&mut out, black_box(&answer), &to);
        !out.is_empty()
    });
    measure("read, add X-Forwarded-For and write the request", || {
        out.clear();
        let read = parse_request(black_box(REQUEST), &limits, &mut request).is_ok();
        let _ = request.fields.push_known(Known::XForwardedFor, b"192.0.2.10");
        let to = RequestOut {
            target: request.forward_target(),
            default_host: b"",
            body: BodyLength::None,
            connection: ConnectionOut::Implied,
            expect_continue: false,
        };
        write_request_head(&mut out, &request, &to);
        read
    });
    let body = chunked_body();
    let mut decoder = ChunkedDecoder::new();
    measure("decode 64 chunks of 1 KiB where they stand", || {
        decoder.reset();
        let mut at = 0;
        while at < body.len() {
            match decoder.next(black_box(&body[at..])) {
                Ok(step) => at += step.skip + step.data,
                Err(_) => return false,
            }
        }
        decoder.is_finished()
    });
}

fn chunked_body() -> Vec<u8> {
    let mut body = Vec::new();
    for _ in 0..64 {
        subak_message::h1::write_chunk_prefix(&mut body, 1024);
        body.extend_from_slice(&[b'x'; 1024]);
        subak_message::h1::write_chunk_end(&mut body);
    }
    subak_message::h1::write_last_chunk(&mut body, &subak_message::Fields::new());
    body
}

fn measure(name: &str, mut work: impl FnMut() -> bool) {
    const ROUNDS: usize = 21;
    const CALLS: u32 = 20_000;
    let mut nanos: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..CALLS {
                assert!(black_box(work()), "{name} failed");
            }
            start.elapsed().as_nanos() as f64 / f64::from(CALLS)
        })
        .collect();
    nanos.sort_by(f64::total_cmp);
    println!("{name:<50} best {:7.1} ns   median {:7.1} ns", nanos[0], nanos[ROUNDS / 2]);
}
