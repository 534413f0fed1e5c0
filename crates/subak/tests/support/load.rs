//! Clients that ask without end, in the background of a test.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{Client, wait_until};

/// Clients that ask until they are told to stop, and remember every request that failed.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    served: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<Vec<String>>>,
}

impl Load {
    /// `fresh` clients with a connection per request, and `kept` with one that stays.
    pub(crate) fn begin(address: &str, fresh: usize, kept: usize) -> Load {
        Load::paced(address, fresh, kept, Duration::ZERO)
    }

    /// The same, each resting so long between two requests.
    pub(crate) fn paced(address: &str, fresh: usize, kept: usize, rest: Duration) -> Load {
        let (stop, served) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let threads = (0..fresh + kept).map(|number| {
            let (stop, served) = (stop.clone(), served.clone());
            let address = address.to_owned();
            thread::spawn(move || {
                let mut failures = Vec::new();
                let mut connection: Option<Client> = None;
                while !stop.load(Ordering::SeqCst) {
                    let mut client = connection.take().unwrap_or_else(|| Client::connect(&address));
                    match ask(&mut client) {
                        Ok(()) => _ = served.fetch_add(1, Ordering::SeqCst),
                        Err(failure) => {
                            failures.push(failure);
                            continue;
                        }
                    }
                    if number >= fresh {
                        connection = Some(client);
                    }
                    thread::sleep(rest);
                }
                failures
            })
        });
        let threads = threads.collect();
        Load { stop, served, threads }
    }

    pub(crate) fn served(&self) -> usize {
        self.served.load(Ordering::SeqCst)
    }

    /// Waits until `count` more requests were served.
    #[track_caller]
    pub(crate) fn wait_for(&self, count: usize) {
        let goal = self.served() + count;
        wait_until("the load goes on", || self.served() >= goal);
    }

    /// Ends it; every request that failed.
    pub(crate) fn end(self) -> Vec<String> {
        self.stop.store(true, Ordering::SeqCst);
        self.threads.into_iter().flat_map(|thread| thread.join().expect("a client")).collect()
    }
}

fn ask(client: &mut Client) -> Result<(), String> {
    let broken = |error: io::Error| format!("no answer: {error}");
    client.try_send("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n").map_err(broken)?;
    let answer = client.try_answer("GET").map_err(broken)?;
    match answer.status {
        200 => Ok(()),
        status => Err(format!("{status}: {}", answer.text())),
    }
}
