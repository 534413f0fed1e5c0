//! One of something for each worker.
//!
//! Two workers that add to one counter pass its cache line to and fro, a miss for every addition; a
//! line that stays with its core costs none. 128 bytes, because processors fetch lines in pairs.

/// One `T` for each worker, on cache lines of its own.
#[derive(Debug)]
pub struct Shards<T>(Box<[Padded<T>]>);

#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded<T>(T);

impl<T: Default> Shards<T> {
    /// For so many workers, at least one.
    pub fn new(workers: usize) -> Shards<T> {
        Shards((0..workers.max(1)).map(|_| Padded::default()).collect())
    }

    /// That of one worker. Whoever is not among them shares the first: slower, not wrong.
    #[inline]
    pub fn of(&self, worker: usize) -> &T {
        &self.0.get(worker).unwrap_or(&self.0[0]).0
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|padded| &padded.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Shards;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn every_worker_has_its_own_and_nobody_is_without() {
        let shards: Shards<AtomicU64> = Shards::new(2);
        for worker in [0, 1, 1, 7] {
            shards.of(worker).fetch_add(1, Ordering::Relaxed);
        }
        let counts: Vec<u64> = shards.iter().map(|one| one.load(Ordering::Relaxed)).collect();
        assert_eq!(counts, [2, 2]);
        let (first, second) =
            (shards.of(0) as *const _ as usize, shards.of(1) as *const _ as usize);
        assert!(first.abs_diff(second) >= 128, "{first:x} {second:x}");
        assert_eq!(Shards::<AtomicU64>::new(0).iter().count(), 1);
    }
}
