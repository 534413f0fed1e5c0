//! What do probes cost the whole process? A thousand endpoints every two seconds, over new connections,
//! each on an address of loopback of its own.
//!
//! Measured is the processor time of the control side's thread, which on loopback includes the
//! kernel's work for the endpoints' ends. It takes a quiet machine and optimised code:
//!
//! `cargo test --profile bench-quick -p subak --test health cost:: -- --ignored --nocapture`

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::{Setup, Subak, ok};

const ENDPOINTS: u16 = 1000;
const SETTLING: Duration = Duration::from_secs(3);
const MEASURED: Duration = Duration::from_secs(8);

/// What the thread that started the process has used so far: the control side's.
fn processor_time(subak: &Subak) -> Duration {
    let pid = subak.pid();
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/schedstat")).expect("proc");
    let nanos = text.split(' ').next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanos.expect("a number"))
}

/// Answers everybody on every address of loopback; their port, and how many requests they had.
fn endpoints() -> (u16, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = requests.clone();
    let listener = TcpListener::bind("0.0.0.0:0").expect("bind");
    let port = listener.local_addr().expect("its address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // A probe by TCP may be gone before it is accepted.
            let Ok(mut stream) = stream else { continue };
            if stream.read(&mut [0; 1024]).is_ok_and(|count| count > 0) {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = stream.write_all(&ok("well"));
            }
        }
    });
    (port, requests)
}

/// The share of a core that the control side uses, and the requests that endpoints had meanwhile.
fn cost(health: &str) -> (f64, usize) {
    let (port, requests) = endpoints();
    let address = |index: u16| {
        let [high, low] = index.to_be_bytes();
        format!("127.1.{high}.{low}:{port}")
    };
    let subak = Setup::before_addresses((0..ENDPOINTS).map(address)).pool(health).start();
    std::thread::sleep(SETTLING);
    let requests_before = requests.load(Ordering::SeqCst);
    let (began, used) = (Instant::now(), processor_time(&subak));
    std::thread::sleep(MEASURED);
    let share = (processor_time(&subak) - used).as_secs_f64() / began.elapsed().as_secs_f64();
    let requests = requests.load(Ordering::SeqCst) - requests_before;
    println!("{health}: {:.1} % of a core, {requests} requests", share * 100.0);
    assert!(!subak.log().contains(" to down"), "{}", subak.log());
    (share, requests)
}

#[test]
#[ignore = "measures: takes a quiet machine and optimised code"]
fn a_thousand_endpoints_every_two_seconds_cost_four_percent_of_a_core_by_tcp_and_six_by_http() {
    let (idle, _) = cost("");
    assert!(idle < 0.01, "without probes: {idle}");
    let (tcp, _) = cost("health = { tcp = true, interval = \"2s\" }");
    assert!(idle < tcp && tcp <= 0.04, "by TCP: {tcp}");
    let (http, requests) = cost("health = { http = \"/healthz\", interval = \"2s\" }");
    assert!(http <= 0.06, "by HTTP: {http}");
    // Everybody's turn comes every two seconds and, on average, half a step of the control side.
    assert!(requests >= 3700, "{requests} requests in {MEASURED:?}");
}
