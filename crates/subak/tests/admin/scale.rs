//! 10,000 endpoints in 100 pools: how long do the status and a scrape take, and do requests notice?
//!
//! Measured at the client: from the request to the last byte of the answer. Requests are paced to one a
//! millisecond on a connection of its own; held to a bound is how much longer than usual the slowest of
//! them takes while others ask for the status and for metrics, now and then, or without end, or never
//! read what they asked for. It takes a quiet machine and optimised code:
//!
//! `cargo test --profile bench-quick -p subak --test admin scale:: -- --ignored --nocapture`

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::{Admin, Endpoint, Setup, Subak};

const POOLS: usize = 100;
const ENDPOINTS: usize = 100;
const MEASURED: Duration = Duration::from_secs(5);
const SCRAPERS: usize = 8;
const DEAF: usize = 16;
/// By so much at most a request may take longer while others ask.
const DELAY: Duration = Duration::from_millis(5);
/// And while a storm of them does, which shares its processors with this client and with Subak.
const STORM_DELAY: Duration = Duration::from_millis(20);
/// Each bound is held to the median of so many: whatever else the machine does may spoil two of them.
const ROUNDS: usize = 5;
/// The status and the pools take at most so long.
const STATUS: Duration = Duration::from_millis(100);
/// A scrape takes at most so long.
const SCRAPE: Duration = Duration::from_millis(250);

fn start(endpoint: &Endpoint) -> Subak {
    let mut tail = String::new();
    for pool in 0..POOLS {
        let list: Vec<String> = (0..ENDPOINTS)
            .map(|index| format!("\"127.{}.{}.{}:9\"", 100 + pool / 100, pool % 100, index + 1))
            .collect();
        write!(
            tail,
            "[pool.p{pool}]\nbalance = \"round_robin\"\nendpoints = [{}]\n\
             [[listener.web.route]]\npath = {{ prefix = \"/p{pool}/\" }}\npool = \"p{pool}\"\n",
            list.join(", ")
        )
        .expect("writing to memory");
    }
    Setup::before(&[endpoint]).tail(&tail).start()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// How long an answer takes, the median of several, and its size.
fn takes(admin: &Admin, path: &str) -> (Duration, usize) {
    let mut size = 0;
    let times = (0..9).map(|_| {
        let begun = Instant::now();
        let answer = admin.ask("GET", path, "");
        size = answer.body.len();
        assert_eq!(answer.status, 200);
        begun.elapsed()
    });
    (median(times.collect()), size)
}

/// Times of requests, one a millisecond: the 99.9th percentile and the slowest.
type Delays = (Duration, Duration);

fn delays(subak: &Subak) -> Delays {
    let mut client = subak.client();
    let begun = Instant::now();
    let mut times = Vec::new();
    while begun.elapsed() < MEASURED {
        let asked = Instant::now();
        assert_eq!(client.get("/").status, 200);
        times.push(asked.elapsed());
        std::thread::sleep(Duration::from_millis(1));
    }
    times.sort_unstable();
    (times[times.len() * 999 / 1000], times[times.len() - 1])
}

/// The same while so many ask for each of these paths, with a pause between; and how often they did.
fn delays_beside(subak: &Subak, paths: &[&str], pause: Duration) -> (Delays, usize) {
    let (over, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let delays = std::thread::scope(|scope| {
        for path in paths {
            scope.spawn(|| {
                // On Linux it is the thread's own. Who asks is not to be in the way of who measures:
                // it would be on another machine.
                rustix::process::nice(19).expect("a lower priority");
                let (admin, begun) = (Admin::of(subak), Instant::now());
                while !over.load(Ordering::Relaxed) && begun.elapsed() < 2 * MEASURED {
                    assert_eq!(admin.ask("GET", path, "").status, 200);
                    asked.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(pause);
                }
            });
        }
        let delays = delays(subak);
        over.store(true, Ordering::Relaxed);
        delays
    });
    (delays, asked.into_inner())
}

/// What is measured of one thing, round by round, and the bound of its median.
struct Measure {
    name: &'static str,
    most: Duration,
    rounds: Vec<Duration>,
}

impl Measure {
    fn new(name: &'static str, most: Duration) -> Measure {
        Measure { name, most, rounds: Vec::new() }
    }

    /// All rounds, and whether their median is within the bound.
    fn told(&self) -> (String, bool) {
        let median = median(self.rounds.clone());
        let (name, most, rounds) = (self.name, self.most, &self.rounds);
        let told = format!("{name}: {median:?}, the median of {rounds:?}; at most {most:?}");
        (told, median < self.most)
    }
}

#[test]
#[ignore = "measures; wants a quiet machine and optimised code"]
fn ten_thousand_endpoints_are_shown_in_time_and_traffic_does_not_notice() {
    let endpoint = Endpoint::named("one");
    let subak = start(&endpoint);
    let admin = Admin::of(&subak);
    let begun = Instant::now();
    let body = "{\"endpoint\": \"127.100.50.200:9\"}";
    assert_eq!(admin.ask("POST", "/v1/pools/p50/endpoints", body).status, 201);
    println!("POST endpoint {:?}", begun.elapsed());

    let mut shown = [
        ("/v1/status", Measure::new("the status", STATUS)),
        ("/metrics", Measure::new("a scrape", SCRAPE)),
        ("/v1/pools", Measure::new("all pools", STATUS)),
        ("/v1/pools/p50", Measure::new("one pool", STATUS)),
    ];
    let mut quiet: Vec<Delays> = Vec::new();
    let (mut usual, mut storm) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        println!("round {round}; requests: 99.9 % and slowest");
        for (path, measure) in &mut shown {
            let (time, bytes) = takes(&admin, path);
            println!("  {path}  {time:?} ({bytes} bytes)");
            measure.rounds.push(time);
        }
        quiet.push(delays(&subak));
        println!("  nobody asks  {:?}", quiet[quiet.len() - 1]);
        let paths = ["/v1/status", "/metrics"];
        let (beside, _) = delays_beside(&subak, &paths, Duration::from_millis(500));
        println!("  both asked for twice a second  {beside:?}");
        usual.push(beside);
        let deaf: Vec<_> = (0..DEAF)
            .map(|_| {
                let mut client = admin.client();
                client.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
                client
            })
            .collect();
        let (beside, scrapes) = delays_beside(&subak, &["/metrics"; SCRAPERS], Duration::ZERO);
        drop(deaf);
        println!(
            "  {SCRAPERS} scrapers without end ({scrapes} scrapes), {DEAF} deaf ones  {beside:?}"
        );
        assert!(scrapes > 0, "whoever reads is answered, whatever others do");
        storm.push(beside);
    }
    // The least of several: a disturbed one would excuse whatever comes after it.
    let usually = quiet.iter().map(|(_, slowest)| *slowest).min().unwrap_or_default();
    let later = |name, most, delays: &[Delays]| Measure {
        name,
        most,
        rounds: delays.iter().map(|(_, slowest)| slowest.saturating_sub(usually)).collect(),
    };
    let mut measures: Vec<Measure> = shown.into_iter().map(|(_, measure)| measure).collect();
    measures.push(later("what status and scrapes delay a request by", DELAY, &usual));
    measures.push(later("what a storm of scrapes delays a request by", STORM_DELAY, &storm));
    let told: Vec<(String, bool)> = measures.iter().map(Measure::told).collect();
    told.iter().for_each(|(text, _)| println!("{text}"));
    let failed: Vec<&str> =
        told.iter().filter(|(_, is_kept)| !is_kept).map(|(text, _)| text.as_str()).collect();
    assert!(failed.is_empty(), "too long:\n  {}", failed.join("\n  "));
}
