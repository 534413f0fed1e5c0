//! What do probes cost? A thousand endpoints every two seconds, each on an address of loopback of its
//! own, over new connections.
//!
//! Printed is the processor time of the thread that probes, which on loopback includes the kernel's
//! work for the endpoints' ends. The endpoints are threads of their own.
//!
//! `cargo bench -p subak-probe --bench cost -- --check` fails above the promised shares of a core.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use subak_base::{Address, Rng, Tick};
use subak_health::{Expect, ProbeResult, ProbeSpec, ProbeState};
use subak_message::Method;
use subak_probe::{Check, HttpCheck, Prober, Way};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

const ENDPOINTS: u16 = 1000;
const MEASURED: Duration = Duration::from_secs(6);
/// How often the control side looks what is due.
const STEP: Duration = Duration::from_millis(100);

fn main() {
    let checked = std::env::args().any(|argument| argument == "--check");
    let get = HttpCheck::new(Method::Get, "/healthz", None, Expect::default()).expect("a request");
    let port = endpoints();
    for (name, what, most) in [("TCP", Check::Tcp, 0.04), ("HTTP", Check::Http(get), 0.06)] {
        let (share, probes) = measure(port, what);
        let each = share * MEASURED.as_secs_f64() * 1e6 / probes as f64;
        println!("{name}: {:.1} % of a core, {probes} probes, {each:.0} µs each", share * 100.0);
        assert!(!checked || share <= most, "{name}: {share} of a core, promised are {most}");
    }
}

/// Endpoints on every address of loopback; answers with their port.
fn endpoints() -> u16 {
    let listener = std::net::TcpListener::bind("0.0.0.0:0").expect("bind");
    listener.set_nonblocking(true).expect("nonblocking");
    let port = listener.local_addr().expect("its address").port();
    std::thread::spawn(move || {
        runtime().block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            loop {
                // A probe by TCP may be gone before it is accepted.
                let Ok((mut stream, _)) = listener.accept().await else { continue };
                tokio::spawn(async move {
                    let mut request = [0; 1024];
                    if stream.read(&mut request).await.is_ok_and(|count| count > 0) {
                        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                        let _ = stream.write_all(answer).await;
                    }
                });
            }
        });
    });
    port
}

/// Answers with the share of a core and the number of probes.
fn measure(port: u16, what: Check) -> (f64, u64) {
    let spec = ProbeSpec::default();
    let what = Arc::new(what);
    let began = Instant::now();
    let now = || Tick(began.elapsed().as_nanos() as u64);
    let mut rng = Rng::new(1);
    let mut states: Vec<_> =
        (0..ENDPOINTS).map(|_| ProbeState::new(&spec, now(), rng.next_u64())).collect();
    runtime().block_on(async {
        let prober = Prober::new(usize::from(ENDPOINTS));
        let (sender, mut results) = mpsc::unbounded_channel();
        let mut step = tokio::time::interval(STEP);
        let (mut start, mut probes) = (None, 0);
        loop {
            tokio::select! {
                _ = step.tick() => {
                    if start.is_none() && began.elapsed() > spec.interval {
                        start = Some((Instant::now(), processor_time()));
                        probes = 0;
                    }
                    if let Some((at, used)) = start && at.elapsed() >= MEASURED {
                        let share = (processor_time() - used).as_secs_f64() / at.elapsed().as_secs_f64();
                        return (share, probes);
                    }
                    for (index, state) in states.iter_mut().enumerate() {
                        if state.is_due(now()) {
                            let run = state.started(&spec, now());
                            let [high, low] = (index as u16).to_be_bytes();
                            let inet = SocketAddr::from((Ipv4Addr::new(127, 1, high, low), port));
                            let sender = sender.clone();
                            prober.probe(Address::inet(inet), (what.clone(), Way::default()), spec.timeout, move |result| {
                                let _ = sender.send((index, run, result));
                            });
                        }
                    }
                }
                Some((index, run, result)) = results.recv() => {
                    assert_eq!(result, ProbeResult::Passed);
                    probes += 1;
                    states[index].finished(&spec, run, result, now(), rng.next_u64());
                }
            }
        }
    })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// What this thread has used so far.
fn processor_time() -> Duration {
    let text =
        std::fs::read_to_string("/proc/thread-self/schedstat").expect("the kernel's figures");
    let nanos = text.split(' ').next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanos.expect("a number"))
}
