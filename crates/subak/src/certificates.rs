//! Certificates while they are served: read again when their files change, and watched as they expire.
//!
//! Every [`LOOK_EVERY`] the files' times are looked at: one system call each. What has changed is read,
//! and put in force if chain and key go together. What does not stays out: the old one goes on, and
//! log and problems say so. So does what clients would refuse today (expired, or not good yet) while
//! they still take the old one; it is tried again at every look. Chain and key are replaced one after the other by whoever renews them, so
//! a pair that does not match is a problem only when it is still one at the next look.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use subak_certificate::{Certificate, OcspStatus, Pem, date};
use subak_config::defaults::{EXPIRES_SOON, MAX_PEM_BYTES};
use subak_config::{ClientVerification, Disk, Files, PemFile, Tls};
use subak_net::tls::{Origin, ServerTls};
use subak_telemetry::{ProblemKind, Problems};

use crate::events::Events;

/// Between two looks at the files.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const DAY_S: i64 = 24 * 3600;

/// The certificates of all listeners.
#[derive(Default)]
pub(crate) struct Certificates {
    listeners: HashMap<Arc<str>, Watched>,
    next: Option<Instant>,
    /// What was a problem at the last look.
    problems: Vec<(String, String)>,
}

/// One listener's.
struct Watched {
    tls: Arc<ServerTls>,
    certificates: Vec<Entry>,
    client: Option<(Group, ClientVerification)>,
}

/// One certificate.
struct Entry {
    group: Group,
    served: Certificate,
}

/// Files that are read together.
struct Group {
    files: Vec<Pem>,
    /// When they were changed last, as far as was seen; none: not looked at yet.
    stamps: Option<Vec<Option<Stamp>>>,
    /// Why what they hold now is not in force, and whether that was so at the look before.
    refused: Option<(String, bool)>,
}

/// What tells a file from its next version.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    changed: (i64, i64),
    inode: u64,
    bytes: u64,
}

impl Certificates {
    /// Looks at the files, where that is due. `listeners`: what is in force.
    pub(crate) fn attend<'a>(
        &mut self,
        listeners: impl Iterator<Item = (&'a Arc<str>, &'a Tls, &'a Arc<ServerTls>)>,
        (problems, events): (&Problems, &Events),
    ) {
        if self.next.is_some_and(|next| Instant::now() < next) {
            return;
        }
        self.next = Some(Instant::now() + LOOK_EVERY);
        let now = seconds(SystemTime::now());
        let mut before = std::mem::take(&mut self.listeners);
        let mut found = Vec::new();
        for (name, configured, tls) in listeners {
            let known = before.remove(name).filter(|known| Arc::ptr_eq(&known.tls, tls));
            let mut watched = known.unwrap_or_else(|| Watched::new(configured, tls));
            watched.look(name, now, events);
            watched.judge(now, &mut found);
            self.listeners.insert(name.clone(), watched);
        }
        self.tell(found, problems);
    }

    /// The next look is at once: something else is in force.
    pub(crate) fn look_soon(&mut self) {
        self.next = None;
    }

    /// Begins and ends problems; of two about the same file the first counts.
    fn tell(&mut self, found: Vec<(String, String)>, problems: &Problems) {
        for (what, _) in &self.problems {
            if found.iter().all(|(now, _)| now != what) {
                problems.end(ProblemKind::Certificate, what);
            }
        }
        let before = std::mem::take(&mut self.problems);
        for (what, detail) in found {
            if self.problems.iter().any(|(known, _)| *known == what) {
                continue;
            }
            // The list tells the log of beginnings alone.
            if before.iter().any(|(known, told)| *known == what && *told != detail) {
                let kind = ProblemKind::Certificate.name();
                tracing::warn!(kind, what, "problem, by now: {detail}");
            }
            problems.begin(ProblemKind::Certificate, &what, detail.clone());
            self.problems.push((what, detail));
        }
    }
}

impl Watched {
    fn new(configured: &Tls, tls: &Arc<ServerTls>) -> Watched {
        let in_store = tls.store().of(Origin::Files);
        let entry = |(at, one): (usize, &subak_config::Certificate)| {
            let files = [Some(&one.chain), Some(&one.key), one.ocsp.as_ref()];
            let mut group = Group::of(files.into_iter().flatten());
            let served = in_store.get(at).unwrap_or(&one.loaded).clone();
            // A reload has kept an older one: what the files hold is still to be judged.
            if !Arc::ptr_eq(served.key(), one.loaded.key()) {
                group.files.iter_mut().for_each(|file| file.contents = Default::default());
            }
            Entry { group, served }
        };
        let client = configured.client.as_ref().map(|client| {
            let files = [Some(&client.ca), client.crl.as_ref()];
            (Group::of(files.into_iter().flatten()), client.clone())
        });
        let certificates = configured.certificates.iter().enumerate().map(entry).collect();
        Watched { tls: tls.clone(), certificates, client }
    }

    /// Puts in force what has changed.
    fn look(&mut self, listener: &str, now: i64, events: &Events) {
        let mut has_changed = false;
        for entry in &mut self.certificates {
            let served = &entry.served;
            let loaded = entry.group.look(|files| {
                let new = Certificate::load(&files[0], &files[1], files.get(2))
                    .map_err(|one| one.to_string())?;
                match new.is_worse_than(served, now) {
                    true => Err(not_in_force(&new, now)),
                    false => Ok(new),
                }
            });
            if let Some(loaded) = loaded {
                entry.served = loaded;
                has_changed = true;
                let about = entry.served.about();
                let until = date_of(about.validity.to);
                let text = format!(
                    "listener {listener}: the certificate {} was read again; it is good until {until}",
                    about.source.display()
                );
                tracing::info!("{text}");
                events.keep("info", None, None, text);
            }
            // Clients would take a stale answer for an attack.
            let is_stale = |ocsp: &subak_certificate::OcspResponse| {
                ocsp.status != OcspStatus::Good || !ocsp.holds(now)
            };
            if entry.served.ocsp().is_some_and(is_stale) {
                entry.served = entry.served.without_ocsp();
                has_changed = true;
            }
        }
        if has_changed {
            let served = self.certificates.iter().map(|entry| entry.served.clone()).collect();
            self.tls.store().set(Origin::Files, served);
        }
        let Some((group, client)) = &mut self.client else { return };
        let tls = &self.tls;
        let renewed = group.look(|files| {
            let file =
                |pem: &Pem| PemFile { path: pem.path.clone(), contents: pem.contents.clone() };
            let crl = files.get(1).map(file);
            let renewed = ClientVerification { ca: file(&files[0]), crl, ..client.clone() };
            let asked = subak_http::client_certificates(&renewed).map_err(|one| one.to_string())?;
            tls.set_client(asked).map_err(|one| one.to_string())
        });
        if renewed.is_some() {
            let text = format!("listener {listener}: who may sign for clients was read again");
            tracing::info!("{text}");
            events.keep("info", None, None, text);
        }
    }

    /// What is wrong, as files and details.
    fn judge(&self, now: i64, found: &mut Vec<(String, String)>) {
        let groups = self.certificates.iter().map(|entry| &entry.group);
        for group in groups.chain(self.client.iter().map(|(group, _)| group)) {
            if let Some((reason, true)) = &group.refused {
                let what = group.files[0].path.display().to_string();
                found.push((
                    what,
                    format!("the new file is not used, the old one goes on: {reason}"),
                ));
            }
        }
        for (origin, certificate) in self.tls.store().all() {
            let about = certificate.about();
            let (from, to) = (about.validity.from, about.validity.to);
            let left = to - now;
            let until = date_of(to);
            let remedy = match origin {
                Origin::Files => "replace the files; they are read again by themselves",
                Origin::Acme => "it has not been renewed: see what the log says of acme",
            };
            let detail = if left < 0 {
                format!("has expired ({until}): clients refuse it; {remedy}")
            } else if from > now {
                format!("is not good before {}: clients refuse it", date_of(from))
            } else if left < soon(origin, to - from) {
                format!("expires in {} days ({until}); {remedy}", left / DAY_S)
            } else {
                continue;
            };
            found.push((about.source.display().to_string(), detail));
        }
        for entry in &self.certificates {
            if let (Some(file), None) = (entry.group.files.get(2), entry.served.ocsp()) {
                let detail =
                    "the OCSP response is stale or not good, and not stapled; fetch another";
                found.push((file.path.display().to_string(), detail.into()));
            }
        }
    }
}

/// Why clients refuse a certificate now.
fn not_in_force(certificate: &Certificate, now: i64) -> String {
    let validity = certificate.about().validity;
    match validity.to < now {
        true => format!("it has expired ({}); put a new one there", date_of(validity.to)),
        false => format!("it is good from {} on, and used then", date_of(validity.from)),
    }
}

/// How many seconds before its end a certificate is a problem. One that comes by ACME is renewed by
/// itself, however short its life: only when that has not happened.
fn soon(origin: Origin, life_s: i64) -> i64 {
    let soon = EXPIRES_SOON.as_secs().cast_signed();
    match origin {
        Origin::Files => soon,
        Origin::Acme => soon.min(life_s / 10),
    }
}

impl Group {
    fn of<'a>(files: impl Iterator<Item = &'a PemFile>) -> Group {
        Group { files: files.map(PemFile::pem).collect(), stamps: None, refused: None }
    }

    /// Reads the files if they have changed, and gives what `load` makes of them if that is new.
    fn look<T>(&mut self, load: impl FnOnce(&[Pem]) -> Result<T, String>) -> Option<T> {
        let stamps: Vec<_> = self.files.iter().map(|file| Stamp::of(&file.path)).collect();
        let is_same = self.stamps.as_ref() == Some(&stamps);
        if is_same && self.refused.is_none() {
            return None;
        }
        self.stamps = Some(stamps);
        let again = self.refused.is_some();
        let read: Result<Vec<Pem>, String> =
            self.files.iter().map(|file| read(&file.path)).collect();
        let loaded = match read {
            Ok(files) if files == self.files => {
                self.refused = None;
                return None;
            }
            Ok(files) => load(&files).map(|loaded| (files, loaded)),
            Err(reason) => Err(reason),
        };
        match loaded {
            Ok((files, loaded)) => {
                (self.files, self.refused) = (files, None);
                Some(loaded)
            }
            Err(reason) => {
                self.refused = Some((reason, again));
                None
            }
        }
    }
}

impl Stamp {
    fn of(path: &Path) -> Option<Stamp> {
        let about = std::fs::metadata(path).ok()?;
        let changed = (about.mtime(), about.mtime_nsec());
        Some(Stamp { changed, inode: about.ino(), bytes: about.size() })
    }
}

fn read(path: &Path) -> Result<Pem, String> {
    match Disk.read(path, MAX_PEM_BYTES) {
        Ok(contents) => Ok(Pem { path: path.to_owned(), contents: contents.into() }),
        Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
    }
}

fn date_of(seconds: i64) -> String {
    date(UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or_default()))
}

fn seconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
