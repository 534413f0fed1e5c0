//! How long others wait while a client floods. Endpoints are processes of their own, and who attacks
//! and is attacked gets what others leave of the processor: what is left to be seen is Subak's doing.

use std::collections::VecDeque;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::floods::{FLOODS, Flood, LIMITS, measured, p99};
use crate::support::{Lab, Setup, Subak};

/// The lowest priority.
const LEAST: u8 = 19;
/// What a machine's own unrest comes to.
const UNREST: Duration = Duration::from_micros(100);

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

/// Leaves the processor to others: on Linux the priority is the thread's own.
fn give_way() {
    rustix::process::nice(LEAST.into()).expect("a lower priority");
}

/// What floods ask for has endpoints of its own.
fn start() -> (Subak, [Lab; 3]) {
    let calm = Lab::start(0, &["--body", "1"]);
    let never = Lab::start(LEAST, &["--service", "1h"]);
    let large = Lab::start(LEAST, &["--body", "4194304"]);
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
    (setup.start(), [calm, never, large])
}

/// Takes a quiet machine: `cargo test -p subak --release --test h2 flood_latency:: -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement that wants a machine for itself"]
fn every_flood_leaves_the_p99_of_others_within_twice_what_it_was() {
    let (subak, _endpoints) = start();
    let takes = |duration: Duration| {
        let until = Instant::now() + duration;
        measured(&subak, |_| Instant::now() < until)
    };
    takes(Duration::from_secs(1));
    let before = subak.resident_kib();
    let mut worst = Vec::new();
    for Flood { kind, attack } in FLOODS {
        let alone = p99(&takes(Duration::from_secs(1)));
        let is_over = AtomicBool::new(false);
        let (besides, attacks) = thread::scope(|scope| {
            let attacker = scope.spawn(|| {
                give_way();
                let mut attacks = 0;
                while !is_over.load(Ordering::Relaxed) {
                    attack(&subak);
                    attacks += 1;
                    thread::sleep(Duration::from_millis(5));
                }
                attacks
            });
            let times = takes(Duration::from_secs(2));
            is_over.store(true, Ordering::Relaxed);
            (p99(&times), attacker.join().expect("the attacker"))
        });
        let resident = subak.resident_kib();
        println!(
            "{kind:15} {attacks:4} attacks, p99 alone {alone:?}, besides {besides:?}, {resident} KiB"
        );
        assert!(resident < before + 64 * 1024, "{kind}: {resident} KiB, {before} before");
        if besides > 2 * alone + UNREST {
            worst.push((kind, alone, besides));
        }
    }
    assert!(worst.is_empty(), "{worst:?}");
}
