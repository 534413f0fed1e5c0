//! What does a line of the default format cost? `cargo bench -p subak-access-log`; the instructions of
//! it: `valgrind --tool=callgrind` of the same program with two numbers of lines as its argument.

use std::time::{Duration, Instant};

use subak_access_log::{Captured, Destination, Entry, Format, Headers, Sinks, Tails, Wanted};
use subak_base::Tick;
use subak_telemetry::Problems;

#[derive(Debug)]
struct NoHeaders;

impl Headers for NoHeaders {
    fn get(&self, _: &[u8]) -> Option<&[u8]> {
        None
    }
}

fn main() {
    let given = std::env::args().find_map(|argument| argument.parse().ok());
    let count: u64 = given.unwrap_or(1_000_000);
    let mut sinks = Sinks::new(Problems::default());
    let nowhere = Destination::File("/dev/null".into());
    let sink = sinks.sink(&nowhere, Duration::from_secs(1));
    let compiled = Format::default().compile(&mut Wanted::default(), ("web", 1), None);
    let tails = Tails::default();
    let mut request = Captured::default();
    let began = Instant::now();
    for number in 0..count {
        request.begin(b"GET", b"/small", None, b"127.0.0.1");
        request.push(Some(b"subak-bench/0.1"));
        request.push(None);
        // 100,000 requests a second.
        let ended = Tick(number * 10_000 + 300_000);
        let entry = Entry {
            began: Tick(number * 10_000),
            ended,
            client: Some([127, 0, 0, 1].into()),
            peer: Some(([127, 0, 0, 1].into(), 40_000)),
            request: &request,
            is_tls: false,
            tls: None,
            protocol: "HTTP/1.1",
            status: 200,
            answer: &NoHeaders,
            bytes_in: 78,
            bytes_out: 312,
            head_bytes_out: 112,
            route: None,
            pool: Some("bench"),
            endpoint: Some("127.0.0.1:41234"),
            tries: 1,
            stick: None,
            head: Duration::ZERO,
            queue: Duration::ZERO,
            handshake: Duration::ZERO,
            connect: Duration::ZERO,
            endpoint_handshake: Duration::ZERO,
            picked: Some(Tick(number * 10_000 + 20_000)),
            first_byte: Some(Tick(number * 10_000 + 290_000)),
            failure: None,
            grpc_status: None,
            decision: Some(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        };
        tails.append(&sink, &compiled, &entry);
    }
    let each = began.elapsed().as_nanos() as f64 / count as f64;
    println!("{count} lines, {each:.0} ns each");
}
