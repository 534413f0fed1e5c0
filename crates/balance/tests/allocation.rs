//! No pick allocates, whatever the algorithm, the key, the load and the number of endpoints; nor does
//! what is learnt from a dispatch or an answer.
#![allow(unsafe_code, reason = "a global allocator that counts")]

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use subak_base::{BitSet, Rng};
use support::{Pool, algorithms, client, endpoints, some_of};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to `System` unchanged; counting neither allocates nor unwinds, as the cell
// is initialised by a constant and needs no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `block` came from `System`, as `alloc` is the only source.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(of: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    of();
    ALLOCATIONS.get() - before
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

#[test]
fn no_pick_allocates() {
    for algorithm in algorithms() {
        for count in [0, 1, 3, 100, 3_000] {
            let mut rng = Rng::new(count as u64);
            let weights: Vec<u16> = (0..count).map(|_| 1 + rng.below(3) as u16).collect();
            let mut pool = Pool::new(algorithm.clone(), endpoints(&weights));
            // The request's set differs from the one compiled from, and some were tried.
            pool.eligible = some_of(count, 90, &mut rng);
            let sets = [BitSet::EMPTY, some_of(count, 10, &mut rng), some_of(count, 97, &mut rng)];
            let counted = allocations(|| {
                for tried in &sets {
                    for _ in 0..100 {
                        pool.loads
                            .in_flight
                            .iter_mut()
                            .for_each(|load| *load = rng.below(3) as u32);
                        let picked = pool.pick_for(client(&mut rng), tried);
                        if let Some(index) = picked {
                            pool.dispatch(index);
                            let elapsed = Duration::from_micros(rng.below(50_000));
                            pool.complete(index, elapsed, rng.below(9) == 0);
                        }
                        pool.loads.in_flight.fill(0);
                        pool.pick_with(subak_balance::Key::None, tried);
                    }
                }
            });
            assert_eq!(counted, 0, "{algorithm:?} with {count} endpoints");
        }
    }
}
