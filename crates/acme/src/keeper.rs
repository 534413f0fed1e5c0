//! The thread that looks what waits and what is due, and orders one certificate at a time.
//!
//! Every [`LOOK`] it looks which challenges wait in the storage, so that this process can answer those
//! of another; once a second it takes over what others have got, and begins what is due: an order, if
//! it gets the storage's lock, or the question when the authority suggests to renew. Its file access may
//! block it; nothing else waits for it.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::pki_types::CertificateDer;
use subak_config::AcmeChallenge;
use subak_telemetry::ProblemKind;
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;

use crate::acme::patience;
use crate::certificate::{self, Held};
use crate::due::Window;
use crate::order::{Desk, Failure, LOOK};
use crate::state::{Books, Challenges, Entry, News, Record};
use crate::storage::{self, Lock, Stamp};

/// Of so many looks at challenges, one also looks at certificates and at what is due.
const LOOKS: u32 = 10;
/// One order, however slow the authority.
const ORDER: Duration = Duration::from_secs(180);
/// Between two questions for one certificate's window, whatever the authority asks for.
const WINDOW_AGAIN: (Duration, Duration) =
    (Duration::from_secs(60), Duration::from_secs(24 * 60 * 60));
/// After a question that was not answered.
const WINDOW_RETRY: Duration = Duration::from_secs(60 * 60);

/// Starts it; it ends when `desk` has no sender any more.
pub(crate) fn start(
    books: Arc<Books>,
    desk: watch::Receiver<Option<Desk>>,
    news: mpsc::Sender<News>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let keeper = Keeper { books, news, waiting: Waiting::default() };
    let thread = std::thread::Builder::new().name("acme".into());
    thread.spawn(move || runtime.block_on(keeper.keep(desk)))?;
    Ok(())
}

struct Keeper {
    books: Arc<Books>,
    news: mpsc::Sender<News>,
    waiting: Waiting,
}

/// Challenges that wait: by HTTP and by TLS.
#[derive(PartialEq, Eq, Default, Clone)]
struct Waiting {
    over_http: Vec<(String, String)>,
    over_tls: Vec<(String, String)>,
}

/// What takes its time.
type Job = Pin<Box<dyn Future<Output = Done>>>;

enum Done {
    Ordered { id: String, ordered: Result<Held, Record> },
    Window { id: String, answer: Result<Option<(Window, Duration)>, String> },
}

impl Keeper {
    async fn keep(mut self, mut desks: watch::Receiver<Option<Desk>>) {
        let mut desk = desks.borrow_and_update().clone();
        let mut job: Option<Job> = None;
        let mut tick = tokio::time::interval(LOOK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut looks = 0;
        loop {
            let finished = async {
                match &mut job {
                    Some(job) => job.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = desks.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    // What was under way goes by what was wanted before.
                    job = None;
                    desk = desks.borrow_and_update().clone();
                }
                done = finished => {
                    job = None;
                    self.done(done);
                }
                // Nothing is looked at while nothing is wanted.
                _ = tick.tick(), if desk.is_some() => {
                    let Some(desk) = &desk else { continue };
                    self.look_for_challenges(desk);
                    looks += 1;
                    if looks % LOOKS == 1 {
                        self.look_for_files();
                        job = job.or_else(|| self.begin(desk));
                    }
                }
            }
        }
    }

    /// Has workers answer what waits in the storage now.
    fn look_for_challenges(&mut self, desk: &Desk) {
        let waiting = desk.storage.waiting(AcmeChallenge::Http01).and_then(|over_http| {
            let over_tls = desk.storage.waiting(AcmeChallenge::TlsAlpn01)?;
            Ok(Waiting { over_http, over_tls })
        });
        let what = desk.acme.storage.display().to_string();
        let waiting = match waiting {
            Ok(waiting) => waiting,
            Err(error) => {
                let detail = format!("the storage of ACME cannot be read: {error}");
                self.books.problems.begin(ProblemKind::Certificate, &what, detail);
                // Somebody may have taken it away.
                _ = desk.storage.prepare();
                return;
            }
        };
        self.books.problems.end(ProblemKind::Certificate, &what);
        if waiting == self.waiting {
            return;
        }
        let mut challenges = Challenges::default();
        for (name, answer) in &waiting.over_tls {
            match certificate::for_challenge(name, answer) {
                Ok(key) => challenges.over_tls.push((name.as_str().into(), key)),
                Err(why) => tracing::warn!(%name, "a challenge cannot be answered: {why}"),
            }
        }
        let over_http = waiting.over_http.iter();
        let over_http =
            over_http.map(|(token, answer)| (token.as_str().into(), answer.as_str().into()));
        challenges.over_http.extend(over_http);
        self.books.set_challenges(challenges);
        self.waiting = waiting;
    }

    /// Takes over what other processes have got, and how they have failed.
    fn look_for_files(&self) {
        let known: Vec<_> = {
            let entries = self.books.lock();
            let known = |(id, entry): (&String, &Entry)| {
                let certificate = (entry.file.clone(), entry.file_seen);
                let record = (entry.record_file.clone(), entry.record_seen);
                (id.clone(), entry.names.clone(), certificate, record)
            };
            entries.iter().map(known).collect()
        };
        for (id, names, certificate, record) in known {
            let seen = look(&names, (&certificate.0, certificate.1), (&record.0, record.1));
            if seen.certificate.is_none() && seen.record.is_none() {
                continue;
            }
            let mut entries = self.books.lock();
            let Some(entry) = entries.get_mut(&id) else { continue };
            if take_in(entry, seen) {
                self.tell(format!("{}: another process has renewed the certificate", entry.name()));
                self.books.has_changed();
            }
            entries.get(&id).into_iter().for_each(|entry| entry.note(&self.books.problems));
        }
    }

    /// What is due most.
    fn begin(&self, desk: &Desk) -> Option<Job> {
        let now = SystemTime::now();
        let patience = patience(&desk.acme);
        let first = {
            let entries = self.books.lock();
            let due = entries.iter().map(|(id, entry)| (entry.due(patience), id));
            due.min().filter(|(due, _)| *due <= now).map(|(_, id)| id.clone())
        };
        let Some(id) = first else { return self.begin_window(desk, now) };
        let lock = match desk.storage.try_lock() {
            Ok(Some(lock)) => lock,
            Ok(None) => {
                self.books.lock().get_mut(&id)?.waits = true;
                return None;
            }
            Err(error) => {
                let detail = format!("its lock cannot be taken: {error}");
                let what = desk.acme.storage.display().to_string();
                self.books.problems.begin(ProblemKind::Certificate, &what, detail);
                return None;
            }
        };
        // Whoever had the lock a moment ago may have done what was due.
        self.look_for_files();
        let mut entries = self.books.lock();
        entries.values_mut().for_each(|entry| entry.waits = false);
        let entry = entries.get(&id).filter(|entry| entry.due(patience) <= now)?;
        Some(Box::pin(order(desk.clone(), lock, id, Wanted::of(entry))))
    }

    /// Asks when the authority suggests to renew, where that is not known.
    fn begin_window(&self, desk: &Desk, now: SystemTime) -> Option<Job> {
        let entries = self.books.lock();
        let mut unknown = entries.iter().filter(|(_, entry)| entry.ask_window_at <= now);
        let (id, leaf) = unknown.find_map(|(id, entry)| {
            let held = entry.held.as_ref()?;
            Some((id.clone(), held.certificate.key().cert.first()?.clone()))
        })?;
        let desk = desk.clone();
        Some(Box::pin(async move {
            let answer = tokio::time::timeout(ORDER, desk.window(&leaf)).await;
            let answer = answer.unwrap_or_else(|_| Err("no answer in time".into()));
            Done::Window { id, answer }
        }))
    }

    fn done(&self, done: Done) {
        let mut entries = self.books.lock();
        match done {
            Done::Ordered { id, ordered } => {
                let Some(entry) = entries.get_mut(&id) else { return };
                entry.record_seen = storage::stamp(&entry.record_file);
                match ordered {
                    Ok(held) => {
                        tracing::info!(name = entry.name(), issuer = %held.certificate.about().issuer, "a certificate was issued");
                        self.tell(format!("{}: a certificate was issued", entry.name()));
                        entry.counts.issued += 1;
                        entry.file_seen = storage::stamp(&entry.file);
                        (entry.held, entry.record) = (Some(held), None);
                        (entry.window, entry.ask_window_at) = (None, SystemTime::now());
                    }
                    Err(record) => {
                        tracing::warn!(
                            name = entry.name(),
                            failures = record.count,
                            "an order came to nothing: {}",
                            record.detail
                        );
                        entry.counts.failed += 1;
                        entry.record = Some(record);
                    }
                }
                entry.note(&self.books.problems);
                self.books.has_changed();
            }
            Done::Window { id, answer } => {
                let Some(entry) = entries.get_mut(&id) else { return };
                let (soonest, latest) = WINDOW_AGAIN;
                let again = match answer {
                    Ok(Some((window, again))) => {
                        entry.window = Some(window);
                        again.clamp(soonest, latest)
                    }
                    Ok(None) => {
                        entry.window = None;
                        latest
                    }
                    Err(why) => {
                        tracing::debug!(name = entry.name(), "when to renew is not known: {why}");
                        WINDOW_RETRY
                    }
                };
                entry.ask_window_at = SystemTime::now() + again;
            }
        }
    }

    fn tell(&self, news: News) {
        // The log has it, should nobody take news out.
        _ = self.news.try_send(news);
    }
}

/// What an order needs of an entry.
struct Wanted {
    names: Vec<Box<str>>,
    file: std::path::PathBuf,
    record_file: std::path::PathBuf,
    record: Option<Record>,
    leaf: Option<CertificateDer<'static>>,
}

impl Wanted {
    fn of(entry: &Entry) -> Wanted {
        let leaf = entry.held.as_ref().and_then(|held| held.certificate.key().cert.first());
        Wanted {
            names: entry.names.clone(),
            file: entry.file.clone(),
            record_file: entry.record_file.clone(),
            record: entry.record.clone(),
            leaf: leaf.cloned(),
        }
    }
}

/// Orders, and keeps how it went while the lock is held.
async fn order(desk: Desk, lock: Lock, id: String, wanted: Wanted) -> Done {
    let Wanted { names, file, record_file, record, leaf } = wanted;
    let failed = record.as_ref().map_or(0, |record| record.count as usize);
    let challenge = desk.acme.challenges[failed % desk.acme.challenges.len()];
    tracing::info!(name = %names[0], challenge = challenge.name(), directory = %desk.acme.directory, "a certificate is ordered");
    let ordering = desk.order(&lock, &names, &file, challenge, leaf.as_ref());
    let ordered = tokio::time::timeout(ORDER, ordering).await.unwrap_or_else(|_| {
        let detail = format!("the authority has taken longer than {} s", ORDER.as_secs());
        Err(Failure { detail, not_before: None })
    });
    // What was asked for is asked for no more; the next order does this too, should it fail.
    _ = desk.storage.ask_nothing(&lock);
    let ordered = ordered.map_err(|Failure { detail, not_before }| {
        let detail = format!("{} by {}: {detail}", desk.acme.directory, challenge.name());
        Record::new(record.as_ref(), SystemTime::now(), not_before, detail)
    });
    let kept = match &ordered {
        Ok(_) => storage::remove(&record_file),
        Err(record) => serde_json::to_vec_pretty(record)
            .map_err(io::Error::other)
            .and_then(|text| storage::write(&record_file, &text)),
    };
    if let Err(error) = kept {
        tracing::warn!(
            "{}: {error}; other processes do not know how the order went",
            record_file.display()
        );
    }
    drop(lock);
    Done::Ordered { id, ordered }
}

/// What has changed in the storage for one certificate.
#[derive(Default)]
pub(crate) struct Seen {
    certificate: Option<(Option<Stamp>, Option<Held>)>,
    record: Option<(Option<Stamp>, Option<Record>)>,
}

/// Reads certificate and failures, where they are not those that were seen before.
pub(crate) fn look(
    names: &[Box<str>],
    (file, file_seen): (&Path, Option<Stamp>),
    (record_file, record_seen): (&Path, Option<Stamp>),
) -> Seen {
    let mut seen = Seen::default();
    let stamp = storage::stamp(file);
    if stamp != file_seen {
        let read = storage::read(file).map_err(|error| error.to_string());
        let held =
            read.and_then(|pem| pem.map(|pem| certificate::read(&pem, file, names)).transpose());
        let held = held.unwrap_or_else(|why| {
            tracing::warn!("{}: {why}; it is ordered anew when it is needed", file.display());
            None
        });
        seen.certificate = Some((stamp, held));
    }
    let stamp = storage::stamp(record_file);
    if stamp != record_seen {
        let text = storage::read(record_file).ok().flatten();
        let record = text.and_then(|text| serde_json::from_str(&text).ok());
        seen.record = Some((stamp, record));
    }
    seen
}

/// Takes over what was seen. Whether another certificate is in force now.
pub(crate) fn take_in(entry: &mut Entry, seen: Seen) -> bool {
    if let Some((stamp, record)) = seen.record {
        (entry.record_seen, entry.record) = (stamp, record);
    }
    let Some((stamp, held)) = seen.certificate else { return false };
    entry.file_seen = stamp;
    // A file that is gone or of no use takes nothing out of force.
    let Some(held) = held else { return false };
    let is_other = entry.held.as_ref().is_none_or(|before| {
        before.certificate.about().fingerprint != held.certificate.about().fingerprint
    });
    if is_other {
        (entry.held, entry.window) = (Some(held), None);
        entry.ask_window_at = SystemTime::now();
    }
    is_other
}
