//! Workers and the control side at once: nothing is lost, nobody waits for ever.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::support::{OK, World, spec};
use subak_balance::Key;
use subak_base::{BitSet, Rng, Tick, Weight};
use subak_health::{EjectionSpec, ProbeSpec, SlowStart};
use subak_pool::{Acquire, Outcome, PoolSpec, StickTableSpec};

const WORKERS: u64 = 4;
const REQUESTS: u64 = 20_000;

#[test]
fn workers_and_the_control_side_do_not_get_in_each_others_way() {
    for name in ["least_connections", "least_packets", "peak_ewma", "round_robin"] {
        let eject = EjectionSpec {
            consecutive: NonZeroU32::new(2),
            base: Duration::from_millis(300),
            ..EjectionSpec::default()
        };
        let world = World::new(&PoolSpec {
            eject: Some(eject),
            probe: Some(ProbeSpec::default()),
            slow_start: Some(SlowStart::over(Duration::from_secs(1))),
            stick_table: Some(StickTableSpec { expire: Duration::from_secs(60), entries: 64 }),
            pick_log: std::num::NonZeroUsize::new(16),
            ..spec(name, &[1, 2, 3, 4])
        });
        let (pool, start) = (&world.pool, world.now);
        let clock = AtomicU64::new(start.0);
        let now = || Tick(clock.load(Ordering::Relaxed));
        let has_ended = AtomicBool::new(false);
        let served = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = Rng::new(1);
                while !has_ended.load(Ordering::Relaxed) {
                    clock.fetch_add(50_000_000, Ordering::Relaxed);
                    pool.tick(now(), random.next_u64());
                    let weight = Some(Weight(1 + random.below(4) as u16));
                    pool.set_weight("e1", weight, now()).unwrap();
                    assert_eq!(pool.status(now()).endpoints.len(), 4);
                }
            });
            let workers: Vec<_> = (0..WORKERS)
                .map(|worker| {
                    let (now, served) = (&now, &served);
                    scope.spawn(move || {
                        let mut random = Rng::new(worker + 2);
                        for _ in 0..REQUESTS {
                            let request = Acquire {
                                key: Key::None,
                                random: random.next_u64(),
                                now: now(),
                                client: (random.below(2) == 0).then(|| random.below(100) << 57),
                                ..crate::support::key(b"")
                            };
                            let Ok(lease) = pool.acquire(&request, &BitSet::EMPTY) else {
                                continue;
                            };
                            served.fetch_add(1, Ordering::Relaxed);
                            lease.count(10, 1000, now());
                            let outcome = match random.below(4) {
                                0 => Outcome::Failed,
                                _ => OK,
                            };
                            lease.settle(outcome, now());
                        }
                    })
                })
                .collect();
            workers.into_iter().for_each(|worker| worker.join().unwrap());
            has_ended.store(true, Ordering::Relaxed);
        });
        let hits: u64 = pool.endpoints().map(|endpoint| endpoint.hits()).sum();
        assert_eq!(hits, served.load(Ordering::Relaxed), "{name}");
        assert!(hits > WORKERS * REQUESTS * 9 / 10, "{name}: {hits}");
        assert!(pool.endpoints().all(|endpoint| endpoint.in_flight() == 0), "{name}");
    }
}
