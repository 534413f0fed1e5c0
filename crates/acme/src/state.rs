//! What is known of each certificate: shared by the thread that orders and the control side that tells.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use rustls::sign::CertifiedKey;
use serde::{Deserialize, Serialize};
use subak_certificate::Certificate;
use subak_telemetry::{ProblemKind, Problems};

use crate::certificate::Held;
use crate::due::{Failures, Patience, Window, due};
use crate::storage::Stamp;

/// How far a certificate is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Ordered for the first time; clients see one that nobody trusts.
    Placeholder,
    /// In force.
    Issued,
    /// Its time is over, and there is no other yet.
    Expired,
}

impl State {
    /// As status and metrics name it.
    pub fn name(self) -> &'static str {
        match self {
            State::Placeholder => "placeholder",
            State::Issued => "issued",
            State::Expired => "expired",
        }
    }
}

/// What became of orders of this process.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Certificates received.
    pub issued: u64,
    /// Orders that came to nothing.
    pub failed: u64,
}

/// What is told of one certificate.
#[derive(Clone, Debug)]
pub struct Told {
    /// What it stands for, the first one first.
    pub names: Vec<Box<str>>,
    /// How far it is.
    pub state: State,
    /// Who has issued it.
    pub issuer: Option<String>,
    /// When the one in force begins and ends.
    pub life: Option<(SystemTime, SystemTime)>,
    /// When it is ordered next; none: as soon as it can be.
    pub next_order: Option<SystemTime>,
    /// Whether that moment was suggested by the authority.
    pub by_window: bool,
    /// In a row, of all processes.
    pub failures: u32,
    /// Why the last order came to nothing, if it did.
    pub problem: Option<String>,
    /// Whether another process orders now, so that this one waits.
    pub waits: bool,
    /// Key and chain.
    pub file: PathBuf,
    /// Of this process.
    pub counts: Counts,
}

/// Something that has happened, in words.
pub type News = String;

/// Failures as they are kept, for all processes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) count: u32,
    at_s: u64,
    not_before_s: Option<u64>,
    pub(crate) detail: String,
}

impl Record {
    pub(crate) fn new(
        before: Option<&Record>,
        at: SystemTime,
        not_before: Option<SystemTime>,
        detail: String,
    ) -> Record {
        let count = before.map_or(0, |record| record.count).saturating_add(1);
        Record { count, at_s: seconds(at), not_before_s: not_before.map(seconds), detail }
    }

    fn failures(&self) -> Failures {
        Failures {
            count: self.count,
            at: moment(self.at_s),
            not_before: self.not_before_s.map(moment),
        }
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// What a file says that anybody may have written: a time that cannot be is the beginning.
fn moment(seconds: u64) -> SystemTime {
    let since = Duration::from_secs(seconds);
    SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// One certificate that listeners want.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) names: Vec<Box<str>>,
    pub(crate) placeholder: Certificate,
    pub(crate) held: Option<Held>,
    pub(crate) file: PathBuf,
    pub(crate) file_seen: Option<Stamp>,
    pub(crate) record: Option<Record>,
    pub(crate) record_file: PathBuf,
    pub(crate) record_seen: Option<Stamp>,
    pub(crate) window: Option<Window>,
    /// When the authority is asked for its window.
    pub(crate) ask_window_at: SystemTime,
    /// When somebody last said that failures may be over.
    pub(crate) hurried_at: Option<SystemTime>,
    pub(crate) waits: bool,
    pub(crate) counts: Counts,
}

impl Entry {
    /// What clients see: the one that was issued, or what stands in for it.
    pub(crate) fn in_force(&self) -> &Certificate {
        self.held.as_ref().map_or(&self.placeholder, |held| &held.certificate)
    }

    /// When it is ordered next.
    pub(crate) fn due(&self, patience: Patience) -> SystemTime {
        let failures = self.record.as_ref().map(Record::failures);
        let is_hurried =
            failures.zip(self.hurried_at).is_some_and(|(failures, hurried)| failures.at <= hurried);
        due(self.held.as_ref().map(|held| held.life), self.window, failures, patience, is_hurried)
    }

    /// What messages call it.
    pub(crate) fn name(&self) -> &str {
        self.names.first().map_or("", |name| name)
    }

    /// Has whoever looks at problems know of this one's.
    pub(crate) fn note(&self, problems: &Problems) {
        let what = format!("acme {}", self.name());
        let Some(record) = &self.record else {
            problems.end(ProblemKind::Certificate, &what);
            return;
        };
        let meanwhile = match &self.held {
            Some(held) if held.life.ends > SystemTime::now() => "the one before is in force",
            Some(_) => "the one before has expired",
            None => "clients see a placeholder that nobody trusts",
        };
        let Record { count, detail, .. } = record;
        let detail = format!("no new certificate ({count} failed in a row), {meanwhile}: {detail}");
        problems.begin(ProblemKind::Certificate, &what, detail);
    }

    fn told(&self, patience: Patience) -> Told {
        let life = self.held.as_ref().map(|held| (held.life.begins, held.life.ends));
        Told {
            names: self.names.clone(),
            state: match life {
                None => State::Placeholder,
                Some((_, ends)) if ends <= SystemTime::now() => State::Expired,
                Some(_) => State::Issued,
            },
            issuer: self.held.as_ref().map(|held| held.certificate.about().issuer.to_string()),
            life,
            next_order: Some(self.due(patience)).filter(|due| *due > SystemTime::now()),
            by_window: self.window.is_some(),
            failures: self.record.as_ref().map_or(0, |record| record.count),
            problem: self.record.as_ref().map(|record| record.detail.clone()),
            waits: self.waits,
            file: self.file.clone(),
            counts: self.counts,
        }
    }
}

/// What waits for a validator: certificates by name, and answers by token.
#[derive(Clone, Default, Debug)]
pub struct Challenges {
    /// For names that are proven over TLS.
    pub over_tls: Vec<(Box<str>, Arc<CertifiedKey>)>,
    /// For tokens that are asked for over HTTP.
    pub over_http: Vec<(Box<str>, Box<str>)>,
}

/// Every certificate that listeners want, by id, and what waits. Locks are held for a moment only,
/// never over I/O.
#[derive(Debug)]
pub(crate) struct Books {
    entries: Mutex<BTreeMap<String, Entry>>,
    challenges: Mutex<Challenges>,
    /// Counts changes of what workers are to use.
    version: AtomicU64,
    pub(crate) problems: Problems,
}

impl Books {
    pub(crate) fn new(problems: Problems) -> Books {
        let (entries, challenges) = (Mutex::default(), Mutex::default());
        Books { entries, challenges, version: AtomicU64::new(0), problems }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        // Every change is whole before the lock is given back.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something else is to be used by workers now.
    pub(crate) fn has_changed(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(crate) fn set_challenges(&self, challenges: Challenges) {
        *self.challenges.lock().unwrap_or_else(PoisonError::into_inner) = challenges;
        self.has_changed();
    }

    pub(crate) fn challenges(&self) -> Challenges {
        self.challenges.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn told(&self, patience: Patience) -> Vec<Told> {
        self.lock().values().map(|entry| entry.told(patience)).collect()
    }
}
