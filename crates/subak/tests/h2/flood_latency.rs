//! How long others wait while a client floods, and what a flood costs Subak. Endpoints are processes
//! of their own, and who attacks and is attacked gets what others leave of the processor: what is left
//! to be seen is Subak's doing.

use std::collections::VecDeque;
use std::net::TcpListener;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::floods::{FLOODS, Flood, LIMITS, measured, p99};
use crate::support::{Lab, Setup, Subak};

/// What a machine's own unrest comes to.
const UNREST: Duration = Duration::from_micros(100);
/// How long others are looked at, with a flood and without.
const LOOK: Duration = Duration::from_secs(2);

/// An endpoint that takes connections and reads nothing.
fn unread() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
    let address = listener.local_addr().expect("its address").to_string();
    thread::spawn(move || {
        give_way();
        let mut held = VecDeque::new();
        for connection in listener.incoming() {
            held.push_back(connection);
            if held.len() > 100 {
                held.pop_front();
            }
        }
    });
    address
}

/// This thread gets what others leave of the processor, as if it were on another machine: a low priority
/// alone still makes others wait.
fn give_way() {
    let thread = rustix::thread::gettid().as_raw_pid().to_string();
    let idle = Command::new("chrt").args(["--idle", "--pid", "0", &thread]).status();
    assert!(idle.expect("chrt").success());
}

/// What floods ask for has endpoints of its own.
fn start() -> (Subak, [Lab; 3]) {
    let calm = Lab::start(&["--body", "1"]);
    let never = Lab::start_last(&["--service", "60s"]);
    let large = Lab::start_last(&["--body", "4194304"]);
    let tail: String =
        [("never", never.address()), ("large", large.address()), ("unread", &unread())]
            .map(|(name, address)| {
                format!(
                    "[[listener.web.route]]\npath = \"/{name}\"\npool = {name:?}\n\
                     [pool.{name}]\nendpoints = [{address:?}]\n"
                )
            })
            .concat();
    let setup = Setup::before_addresses([calm.address().to_owned()]).listener(LIMITS).tail(&tail);
    (setup.start_quietly(), [calm, never, large])
}

/// How long requests take that come one after the other for so long, sorted.
fn others(subak: &Subak, duration: Duration) -> Vec<Duration> {
    let until = Instant::now() + duration;
    measured(subak, |_| Instant::now() < until)
}

/// Attacks again and again until it is over; how often.
fn attacks(subak: &Subak, flood: &Flood, is_over: impl Fn() -> bool) -> u32 {
    let mut count = 0;
    while !is_over() {
        (flood.attack)(subak);
        count += 1;
        thread::sleep(Duration::from_millis(5));
    }
    count
}

/// Takes a quiet machine: `cargo test -p subak --release --test h2 flood_latency:: -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement that wants a machine for itself"]
fn every_flood_leaves_the_p99_of_others_within_twice_what_it_was() {
    let (subak, _endpoints) = start();
    others(&subak, LOOK / 2);
    let before = subak.resident_kib();
    let mut worst = Vec::new();
    for flood in FLOODS {
        let (until, spent) = (Instant::now() + LOOK / 2, subak.processor_time());
        let count = attacks(&subak, &flood, || Instant::now() > until);
        let cost = (subak.processor_time() - spent) / count;
        let alone = p99(&others(&subak, LOOK));
        let is_over = AtomicBool::new(false);
        let (besides, count) = thread::scope(|scope| {
            let attacker = scope.spawn(|| {
                give_way();
                attacks(&subak, &flood, || is_over.load(Ordering::Relaxed))
            });
            let times = others(&subak, LOOK);
            is_over.store(true, Ordering::Relaxed);
            (p99(&times), attacker.join().expect("the attacker"))
        });
        let resident = subak.resident_kib();
        let kind = flood.kind;
        println!(
            "{kind:15} {count:4} attacks that cost {cost:?} each, p99 alone {alone:?}, \
             besides {besides:?}, {resident} KiB"
        );
        assert!(resident < before + 64 * 1024, "{kind}: {resident} KiB, {before} before");
        if besides > 2 * alone + UNREST {
            worst.push((kind, alone, besides));
        }
    }
    assert!(worst.is_empty(), "{worst:?}");
}
