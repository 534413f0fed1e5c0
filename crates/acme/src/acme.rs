//! What the control side holds: which certificates are wanted, and the thread that gets them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use subak_certificate::Certificate;
use subak_config::{self as config, Config};
use subak_telemetry::{ProblemKind, Problems};
use tokio::sync::{mpsc, watch};

use crate::certificate;
use crate::due::Patience;
use crate::http::Http;
use crate::keeper;
use crate::order::Desk;
use crate::state::{Books, Challenges, Counts, Entry, News, Told};
use crate::storage::{self, Storage};

/// News that nobody has asked for yet.
const NEWS: usize = 64;
/// What problems with everything are called.
const WHAT: &str = "acme";

/// Certificates by themselves, for one process.
#[derive(Debug)]
pub struct Acme {
    books: Arc<Books>,
    /// As configured now, if anything is wanted.
    acme: Option<config::Acme>,
    /// How the thread hears of another configuration; it ends with this.
    desk: Option<watch::Sender<Option<Desk>>>,
    news: (mpsc::Sender<News>, mpsc::Receiver<News>),
    /// The version that was asked for last.
    taken: u64,
}

impl Acme {
    /// Wants nothing yet.
    pub fn new(problems: Problems) -> Acme {
        let books = Arc::new(Books::new(problems));
        Acme { books, acme: None, desk: None, news: mpsc::channel(NEWS), taken: 0 }
    }

    /// Whether workers are to use something else than when this was asked last.
    pub fn has_changed(&mut self) -> bool {
        let version = self.books.version();
        std::mem::replace(&mut self.taken, version) != version
    }

    /// What a listener with these lists of names is to show, in their order.
    pub fn certificates(&self, lists: &[Vec<Box<str>>]) -> Vec<Certificate> {
        let Some(acme) = &self.acme else { return Vec::new() };
        let entries = self.books.lock();
        let of = |names: &Vec<Box<str>>| {
            entries.get(&id(acme, names)).map(|entry| entry.in_force().clone())
        };
        lists.iter().filter_map(of).collect()
    }

    /// What waits for a validator, at whatever listener it comes to.
    pub fn challenges(&self) -> Challenges {
        self.books.challenges()
    }

    /// Takes a configuration over: whatever is wanted has a certificate in force when this returns, of
    /// the storage or a placeholder.
    pub fn configure(&mut self, config: &Config) {
        let wanted = wanted(config);
        let Some(acme) = config.acme.as_ref().filter(|_| !wanted.is_empty()) else {
            self.nothing();
            return;
        };
        let storage = Storage::new(acme.storage.clone());
        let mut fresh = Vec::new();
        let known = self.books.lock().keys().cloned().collect::<Vec<_>>();
        let is_elsewhere = self.acme.as_ref().is_some_and(|before| before.storage != acme.storage);
        for (id, names) in &wanted {
            if is_elsewhere || !known.contains(id) {
                fresh.extend(self.entry(&storage, id, names).map(|entry| (id.clone(), entry)));
            }
        }
        let mut entries = self.books.lock();
        let gone = entries.extract_if(.., |id, _| !wanted.contains_key(id));
        for (_, mut entry) in gone {
            entry.record = None;
            entry.note(&self.books.problems);
        }
        entries.extend(fresh);
        drop(entries);
        self.books.has_changed();
        if self.acme.as_ref() != Some(acme) {
            self.desk(acme, storage);
            self.acme = Some(acme.clone());
        }
    }

    /// Somebody has looked after what was wrong: waiting after failures begins anew.
    pub fn hurry(&mut self) {
        for entry in self.books.lock().values_mut() {
            entry.hurried_at = Some(SystemTime::now());
        }
    }

    /// What is known of every certificate that is wanted.
    pub fn told(&self) -> Vec<Told> {
        match &self.acme {
            Some(acme) => self.books.told(patience(acme)),
            None => Vec::new(),
        }
    }

    /// What has happened since this was asked last.
    pub fn news(&mut self) -> Vec<News> {
        std::iter::from_fn(|| self.news.1.try_recv().ok()).collect()
    }

    fn nothing(&mut self) {
        if self.acme.take().is_none() {
            return;
        }
        let mut entries = self.books.lock();
        for entry in entries.values_mut() {
            entry.record = None;
            entry.note(&self.books.problems);
        }
        entries.clear();
        drop(entries);
        self.books.has_changed();
        self.books.set_challenges(Challenges::default());
        self.books.problems.end(ProblemKind::Certificate, WHAT);
        if let Some(desk) = &self.desk {
            desk.send_replace(None);
        }
    }

    /// A certificate that is wanted for the first time: what the storage has of it.
    fn entry(&self, storage: &Storage, id: &str, names: &[Box<str>]) -> Option<Entry> {
        let placeholder = certificate::placeholder(names);
        let placeholder = placeholder
            .inspect_err(|why| tracing::error!(name = %names[0], "no placeholder: {why}"))
            .ok()?;
        let mut entry = Entry {
            names: names.to_vec(),
            placeholder,
            held: None,
            file: storage.certificate_file(id),
            file_seen: None,
            record: None,
            record_file: storage.failures_file(id),
            record_seen: None,
            window: None,
            ask_window_at: SystemTime::UNIX_EPOCH,
            hurried_at: None,
            waits: false,
            counts: Counts::default(),
        };
        let seen = keeper::look(&entry.names, (&entry.file, None), (&entry.record_file, None));
        keeper::take_in(&mut entry, seen);
        entry.note(&self.books.problems);
        if entry.held.is_none() {
            tracing::info!(name = entry.name(), "no certificate yet; a placeholder is in force");
        }
        Some(entry)
    }

    /// Has the thread work by other settings; starts it when it is the first time.
    fn desk(&mut self, acme: &config::Acme, storage: Storage) {
        let http = storage
            .prepare()
            .map_err(|error| {
                format!(
                    "the storage {} cannot be used: {error}; the account that subak runs as must \
                     be able to write there",
                    acme.storage.display()
                )
            })
            .and_then(|()| Http::new(acme.ca.as_ref()));
        let desk = match http {
            Ok(http) => {
                self.books.problems.end(ProblemKind::Certificate, WHAT);
                if storage.is_open_to_others() {
                    let path = acme.storage.display();
                    tracing::warn!(
                        "others may look into {path}, which holds private keys: chmod 700 {path}"
                    );
                }
                Some(Desk { acme: acme.clone(), storage, http })
            }
            Err(why) => {
                self.books.problems.begin(ProblemKind::Certificate, WHAT, why);
                None
            }
        };
        if let Some(sender) = &self.desk {
            sender.send_replace(desk);
            return;
        }
        let (sender, receiver) = watch::channel(desk);
        let (books, news) = (self.books.clone(), self.news.0.clone());
        match keeper::start(books, receiver, news) {
            Ok(()) => self.desk = Some(sender),
            Err(error) => {
                let why = format!("no thread can be started: {error}; try again by a reload");
                self.books.problems.begin(ProblemKind::Certificate, WHAT, why);
            }
        }
    }
}

/// How long is waited between attempts.
pub(crate) fn patience(acme: &config::Acme) -> Patience {
    Patience { initial: acme.back_off.initial, max: acme.back_off.max }
}

/// Every certificate that listeners want, by id: its first name and what tells it from others.
fn wanted(config: &Config) -> BTreeMap<String, Vec<Box<str>>> {
    let Some(acme) = &config.acme else { return BTreeMap::new() };
    let lists = config.listeners.iter().filter_map(|listener| listener.tls.as_ref());
    let lists = lists.flat_map(|tls| &tls.acme);
    lists.filter(|names| !names.is_empty()).map(|names| (id(acme, names), names.clone())).collect()
}

/// What a certificate for these names is kept by: its first name, and what tells it from others.
fn id(acme: &config::Acme, names: &[Box<str>]) -> String {
    let mut words: Vec<_> = names.iter().map(|name| &**name).collect();
    words.sort_unstable();
    words.extend([&*acme.directory, acme.key_type.name()]);
    words.extend(acme.profile.as_deref());
    format!("{}-{}", names.first().map_or("", |name| name), storage::digest(&words))
}
