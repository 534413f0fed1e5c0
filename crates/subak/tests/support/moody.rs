//! An endpoint that behaves in another way whenever its test says so.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::endpoint::{Endpoint, Served};
use super::ok;

/// The path that is probed.
pub(crate) const HEALTH: &str = "/healthz";

/// How it behaves, towards clients and probes alike unless it says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mood {
    /// Answers by its name.
    Well,
    /// Takes requests and says nothing.
    Hanging,
    /// Resets the connection instead of an answer.
    Resetting,
    /// Closes the connection instead of an answer.
    Closing,
    /// Answers with what is no HTTP, and closes.
    Babbling,
    /// Breaks its answers off.
    Cutting,
    /// Answers 500.
    Failing,
    /// Answers by its name, after this long.
    Slow(Duration),
    /// Answers clients by its name and probes 503.
    Sick,
}

/// An endpoint with a mood.
pub(crate) struct Moody {
    endpoint: Endpoint,
    state: Arc<State>,
}

struct State {
    name: &'static str,
    mood: Mutex<Mood>,
    changed: Condvar,
    probes: AtomicUsize,
    hits: AtomicUsize,
}

impl Moody {
    /// At an address of its own, well.
    pub(crate) fn new(name: &'static str) -> Moody {
        Moody::at("127.0.0.1:0", name)
    }

    /// At this address, well.
    pub(crate) fn at(address: &str, name: &'static str) -> Moody {
        let state = Arc::new(State {
            name,
            mood: Mutex::new(Mood::Well),
            changed: Condvar::new(),
            probes: AtomicUsize::new(0),
            hits: AtomicUsize::new(0),
        });
        let serving = state.clone();
        let endpoint = Endpoint::on_inet(address, move |served| serving.serve(served));
        Moody { endpoint, state }
    }

    /// As a configuration writes it.
    pub(crate) fn address(&self) -> String {
        self.endpoint.address()
    }

    /// From now on; a request that hangs is answered when it changes.
    pub(crate) fn set(&self, mood: Mood) {
        *self.state.mood.lock().unwrap_or_else(PoisonError::into_inner) = mood;
        self.state.changed.notify_all();
    }

    /// Probes so far.
    pub(crate) fn probes(&self) -> usize {
        self.state.probes.load(Ordering::SeqCst)
    }

    /// Requests of clients so far.
    pub(crate) fn hits(&self) -> usize {
        self.state.hits.load(Ordering::SeqCst)
    }
}

impl State {
    fn serve(&self, served: &mut Served) {
        while let Some(request) = served.head() {
            let is_probe = request.line.contains(HEALTH);
            let count = if is_probe { &self.probes } else { &self.hits };
            count.fetch_add(1, Ordering::SeqCst);
            match self.mood_to_answer_in() {
                Mood::Resetting => return served.reset(),
                Mood::Closing => return,
                Mood::Babbling => return served.send("SSH-2.0-OpenSSH_9.6\r\n\r\n"),
                Mood::Cutting => {
                    return served.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
                }
                Mood::Failing => served.send("HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"),
                Mood::Sick if is_probe => {
                    served.send("HTTP/1.1 503 Ill\r\nContent-Length: 0\r\n\r\n");
                }
                Mood::Slow(delay) => {
                    std::thread::sleep(delay);
                    served.send(ok(self.name));
                }
                Mood::Well | Mood::Sick | Mood::Hanging => served.send(ok(self.name)),
            }
        }
    }

    /// Waits while it hangs.
    fn mood_to_answer_in(&self) -> Mood {
        let mood = self.mood.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_while(mood, |mood| *mood == Mood::Hanging);
        *waited.unwrap_or_else(PoisonError::into_inner)
    }
}
