//! The thread that writes long answers: one after the other, so that a storm of them takes no more
//! than one processor and the memory of one answer; and with less claim to that processor than the
//! workers have, so that a request never waits behind ten megabytes of metrics.
//!
//! Whoever wants something written takes a [`Turn`] before asking the control side what to write: so
//! that is asked at the pace at which it is written, too.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::answer::Answer;

/// About a ninth of the time of a processor that is wanted by a worker too.
const NICE: i32 = 10;

type Job = Box<dyn FnOnce() + Send>;

/// Lives as long as its thread is of use.
#[derive(Debug)]
pub(crate) struct Writer {
    jobs: SyncSender<Job>,
    turn: Arc<Semaphore>,
}

/// The right to have one answer written.
#[derive(Debug)]
pub(crate) struct Turn {
    jobs: SyncSender<Job>,
    permit: OwnedSemaphorePermit,
}

impl Writer {
    /// # Errors
    /// When no thread can be made.
    pub(crate) fn start() -> io::Result<Writer> {
        // There is one turn, so there is room for its job.
        let (jobs, given) = sync_channel::<Job>(1);
        let work = move || {
            // On Linux it is the thread's own. It may be refused, and is of no use to processors that
            // have nothing else to do.
            if let Err(error) = rustix::process::nice(NICE) {
                tracing::debug!(%error, "long answers are written with the priority of the rest");
            }
            for job in given {
                // Whoever waits for it is told by the end of its channel; the panic is logged.
                _ = catch_unwind(AssertUnwindSafe(job));
            }
        };
        std::thread::Builder::new().name("admin-writer".into()).spawn(work)?;
        Ok(Writer { jobs, turn: Arc::new(Semaphore::new(1)) })
    }

    /// Waits for it. First come, first served; none when nothing can be written any more.
    pub(crate) async fn turn(&self) -> Option<Turn> {
        let permit = self.turn.clone().acquire_owned().await.ok()?;
        Some(Turn { jobs: self.jobs.clone(), permit })
    }
}

impl Turn {
    /// The answer; none where writing it went wrong. The turn is over when it is written, whether
    /// somebody still waits for it or not.
    pub(crate) async fn write(
        self,
        write: impl FnOnce() -> Answer + Send + 'static,
    ) -> Option<Answer> {
        let Turn { jobs, permit } = self;
        let (reply, written) = oneshot::channel();
        let job = move || {
            let answer = write();
            drop(permit);
            _ = reply.send(answer);
        };
        jobs.try_send(Box::new(job)).ok()?;
        written.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::text_answer;
    use http::StatusCode;

    fn answer() -> Answer {
        text_answer(StatusCode::OK, "written".to_owned(), "text/plain")
    }

    #[tokio::test]
    async fn one_after_the_other_is_written_and_a_fault_ends_only_itself() {
        let writer = Writer::start().expect("a thread");
        let turn = writer.turn().await.expect("a turn");
        assert!(writer.turn.try_acquire().is_err(), "the turn is taken");
        assert!(turn.write(|| panic!("for the test")).await.is_none());
        for _ in 0..3 {
            let turn = writer.turn().await.expect("another turn");
            assert_eq!(
                turn.write(answer).await.map(|answer| answer.status()),
                Some(StatusCode::OK)
            );
        }
    }

    #[tokio::test]
    async fn who_leaves_does_not_keep_the_turn() {
        let writer = Writer::start().expect("a thread");
        for _ in 0..3 {
            let turn = writer.turn().await.expect("a turn");
            drop(Box::pin(turn.write(answer)));
        }
        let (begin, begun) = std::sync::mpsc::channel::<()>();
        let turn = writer.turn().await.expect("a turn");
        let task = tokio::spawn(turn.write(move || {
            _ = begun.recv();
            answer()
        }));
        tokio::task::yield_now().await;
        task.abort();
        _ = task.await;
        assert!(writer.turn.try_acquire().is_err(), "it is still being written");
        begin.send(()).expect("it waits");
        assert!(writer.turn().await.expect("a turn").write(answer).await.is_some());
    }
}
