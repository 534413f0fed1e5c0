//! Every destination of the process, on the control side: opened by configurations, closed when none
//! names them any more, watched for troubles.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use subak_telemetry::{ProblemKind, Problems};

use crate::destination::Destination;
use crate::sink::{MOST_BUFFERS, Message, Sink, State, Totals};
use crate::writer::Writer;

/// Lines that were dropped are a problem for so long.
const REMEMBERED: Duration = Duration::from_secs(10);

/// The sinks of a process.
#[derive(Debug)]
pub struct Sinks {
    problems: Problems,
    open: BTreeMap<Destination, Open>,
    /// Those that are not in use any more and may still be writing.
    leaving: Vec<Ending>,
}

#[derive(Debug)]
struct Open {
    sink: Arc<Sink>,
    /// Until its writer is started.
    messages: Option<Receiver<Message>>,
    ending: Option<Ending>,
    /// Lines dropped when it was last looked, and when there last were more.
    dropped: u64,
    dropped_at: Option<Instant>,
}

/// How the end of a writer is found out.
#[derive(Debug)]
struct Ending {
    /// Closed when its writer has ended.
    ended: Receiver<()>,
    state: Arc<State>,
    thread: JoinHandle<()>,
}

impl Sinks {
    /// None open.
    pub fn new(problems: Problems) -> Sinks {
        Sinks { problems, open: BTreeMap::new(), leaving: Vec::new() }
    }

    /// The sink of a destination, whose lines reach it within `flush` (of several logs: the least).
    /// Nothing is opened yet: see [`start`](Sinks::start).
    pub fn sink(&mut self, destination: &Destination, flush: Duration) -> Arc<Sink> {
        if !self.open.contains_key(destination) {
            let taken: Vec<usize> = self.open.values().map(|open| open.sink.slot).collect();
            let slot = (0..).find(|slot| !taken.contains(slot)).unwrap_or(taken.len());
            let (queue, messages) = mpsc::sync_channel(MOST_BUFFERS);
            let sink = Arc::new(Sink::new(destination.clone(), slot, queue));
            let messages = Some(messages);
            let open = Open { sink, messages, ending: None, dropped: 0, dropped_at: None };
            self.open.insert(destination.clone(), open);
        }
        let sink = self.open[destination].sink.clone();
        sink.flush_ns.fetch_min(flush.as_nanos() as u64, Ordering::Relaxed);
        sink
    }

    /// Opens what is new. To be called when the configuration that names it is in force, with the
    /// rights that the process is to keep. What cannot be opened is a problem, and tried again.
    pub fn start(&mut self) {
        for (destination, open) in &mut self.open {
            let Some(messages) = open.messages.take() else { continue };
            match begin(destination, &open.sink.state, messages) {
                Ok(ending) => open.ending = Some(ending),
                // Its queue is closed now: lines are dropped and counted.
                Err(error) => {
                    let trouble = format!("no thread could be made to write it: {error}");
                    open.sink.state.set_trouble(Some(trouble));
                }
            }
        }
    }

    /// Lets those go that are not used any more; what they hold is written first.
    pub fn keep(&mut self, used: impl Fn(&Destination) -> bool) {
        let unused = self.open.extract_if(.., |destination, _| !used(destination));
        for (destination, open) in unused {
            open.sink.retired.store(true, Ordering::Relaxed);
            self.problems.end(ProblemKind::AccessLog, &destination.to_string());
            self.leaving.extend(open.ending);
        }
        self.leaving.retain(|ending| !ending.thread.is_finished());
    }

    /// Opens files again, after somebody has moved them away, and sockets.
    pub fn reopen(&self) {
        for open in self.open.values() {
            open.sink.state.reopen.store(true, Ordering::Relaxed);
            open.sink.wake();
            if let Some(ending) = &open.ending {
                ending.thread.thread().unpark();
            }
        }
    }

    /// Looks for troubles; some ten times a second.
    pub fn look(&mut self) {
        for (destination, open) in &mut self.open {
            let now = Instant::now();
            let dropped = open.sink.state.dropped_lines();
            if dropped > open.dropped {
                (open.dropped, open.dropped_at) = (dropped, Some(now));
            }
            let lately = open.dropped_at.is_some_and(|at| now.duration_since(at) < REMEMBERED);
            let trouble = open.sink.state.trouble().clone();
            let what = || destination.to_string();
            let detail = match trouble {
                Some(trouble) => format!("{trouble} ({dropped} so far)"),
                None if lately => format!(
                    "takes lines too slowly: {dropped} were dropped so far; make it faster, or log less \
                     (sample, statuses)"
                ),
                None => {
                    self.problems.end(ProblemKind::AccessLog, &what());
                    continue;
                }
            };
            self.problems.begin(ProblemKind::AccessLog, &what(), detail);
        }
    }

    /// What became of all lines, of the sinks in use.
    pub fn totals(&self) -> Vec<Totals> {
        self.open.values().map(|open| open.sink.state.totals(&open.sink.destination)).collect()
    }

    /// Writes what has been handed over, for at most `limit`. To be called when no worker can log any
    /// more.
    pub fn close(mut self, limit: Duration) {
        self.keep(|_| false);
        let until = Instant::now() + limit;
        for Ending { ended, state, thread } in &self.leaving {
            state.closing.store(true, Ordering::Relaxed);
            thread.thread().unpark();
            let left = until.saturating_duration_since(Instant::now());
            if let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(left) {
                tracing::warn!("an access log took nothing at the end; its last lines are lost");
            }
            let dropped = state.dropped_lines();
            if dropped > 0 {
                tracing::warn!(dropped, "lines of an access log were dropped");
            }
        }
    }
}

fn begin(
    destination: &Destination,
    state: &Arc<State>,
    messages: Receiver<Message>,
) -> std::io::Result<Ending> {
    let writer = Writer::new(destination.clone(), state.clone());
    let (running, ended) = mpsc::channel();
    let body = move || {
        writer.run(&messages);
        drop::<mpsc::Sender<()>>(running);
    };
    let thread = thread::Builder::new().name("access-log".into()).spawn(body)?;
    Ok(Ending { ended, state: state.clone(), thread })
}
