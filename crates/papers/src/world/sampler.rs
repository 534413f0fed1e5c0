//! How busy each server was: its processes' CPU time, read ten times a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use subak_lab::process;

/// From one reading to the next.
const EVERY: Duration = Duration::from_millis(100);

/// Shares of one core, 1.0 = all of it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct CpuShares {
    /// Over the whole time.
    pub mean: f64,
    /// The highest of any tenth of a second.
    pub max: f64,
}

/// Readings that go on until they are asked for.
#[derive(Debug)]
pub struct Sampler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<CpuShares>>,
}

impl Sampler {
    /// Begins to read the CPU time of process trees, each given by its root.
    pub fn start(roots: Vec<u32>) -> Sampler {
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let thread = thread::spawn(move || readings(&roots, &told));
        Sampler { stop, thread }
    }

    /// What they came to, in the order of the roots.
    pub fn stop(self) -> Vec<CpuShares> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_default()
    }
}

fn readings(roots: &[u32], stop: &AtomicBool) -> Vec<CpuShares> {
    let trees: Vec<Vec<u32>> =
        roots.iter().map(|root| process::tree(*root).unwrap_or_default()).collect();
    // A server that has ended uses nothing more.
    let used = |tree: &Vec<u32>| process::cpu_time(tree).map(process::CpuTime::total).ok();
    let first: Vec<Option<Duration>> = trees.iter().map(used).collect();
    let mut last = first.clone();
    let mut shares = vec![CpuShares::default(); roots.len()];
    let start = Instant::now();
    let mut before = start;
    loop {
        let is_over = stop.load(Ordering::Relaxed);
        if !is_over {
            thread::park_timeout(EVERY);
        }
        let now = Instant::now();
        let step = now.duration_since(before).as_secs_f64();
        for (index, tree) in trees.iter().enumerate() {
            let Some(total) = used(tree) else { continue };
            // The last piece may be too short to say anything.
            if let (Some(last), true) = (last[index], step >= EVERY.as_secs_f64() / 2.0) {
                let share = total.saturating_sub(last).as_secs_f64() / step;
                shares[index].max = shares[index].max.max(share);
            }
            if let Some(first) = first[index] {
                let all = now.duration_since(start).as_secs_f64();
                shares[index].mean = total.saturating_sub(first).as_secs_f64() / all.max(1e-9);
            }
            last[index] = Some(total);
        }
        before = now;
        if is_over {
            return shares;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Sampler;
    use std::time::{Duration, Instant};

    #[test]
    fn a_busy_process_is_seen_and_one_that_is_gone_is_not() {
        let sampler = Sampler::start(vec![std::process::id(), u32::MAX]);
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(400) {
            std::hint::black_box(start.elapsed());
        }
        let shares = sampler.stop();
        assert!(shares[0].mean > 0.05 && shares[0].max >= shares[0].mean * 0.9, "{shares:?}");
        assert_eq!(shares[1].max, 0.0);
    }
}
