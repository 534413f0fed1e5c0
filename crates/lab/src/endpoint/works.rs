//! Threads that really work: each job burns so much of a core's time, by the thread's own CPU clock, so
//! that a limit on the CPU (a cgroup's quota, neighbours) makes it longer.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::place::Job;
use crate::process;

/// The most threads of one endpoint.
pub(super) const MOST_THREADS: usize = 256;
/// Rounds of arithmetic between two looks at the clock: some 2 µs.
const ROUNDS: u32 = 2_000;

type Done = Arc<Mutex<Vec<Job>>>;

/// One endpoint's threads. They end when this is dropped.
pub(super) struct Works {
    jobs: Sender<(Job, Duration)>,
    done: Done,
}

impl Works {
    /// Starts them; `wake` is written to when a job is done.
    pub(super) fn start(threads: usize, wake: &UnixStream) -> io::Result<Works> {
        let (jobs, taken) = mpsc::channel();
        let taken = Arc::new(Mutex::new(taken));
        let done = Done::default();
        for index in 0..threads.clamp(1, MOST_THREADS) {
            let (taken, done, wake) = (taken.clone(), done.clone(), wake.try_clone()?);
            thread::Builder::new()
                .name(format!("work-{index}"))
                .spawn(move || work(&taken, &done, &wake))?;
        }
        Ok(Works { jobs, done })
    }

    pub(super) fn begin(&self, job: Job, time: Duration) {
        // Threads end only with the sender, which is here.
        let _ = self.jobs.send((job, time));
    }

    pub(super) fn done(&self) -> Vec<Job> {
        std::mem::take(&mut *self.done.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn work(jobs: &Mutex<Receiver<(Job, Duration)>>, done: &Done, mut wake: &UnixStream) {
    loop {
        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((job, time)) = next else { return };
        burn(time);
        done.lock().unwrap_or_else(PoisonError::into_inner).push(job);
        // A full pipe wakes as well.
        let _ = wake.write(&[1]);
    }
}

fn burn(time: Duration) {
    let clock = || process::thread_cpu().unwrap_or(Duration::MAX);
    let until = clock().saturating_add(time);
    let mut number = 1_u64;
    while clock() < until {
        for _ in 0..ROUNDS {
            number = std::hint::black_box(number.wrapping_mul(6_364_136_223_846_793_005) ^ 1);
        }
    }
}
