//! Names among endpoints: asked on the control side's runtime, their answers gathered for the next
//! snapshot.
//!
//! Ten times a second whoever is due is asked, and what has come in is taken; so there are at most ten
//! snapshots a second, however many names change. Nothing here blocks: a question is a task, with a
//! time limit of its own.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use subak_base::{Rng, Tick};
use subak_config::names::{Answers, Oddity};
use subak_config::{Config, Dns, Origin};
use subak_names::{Book, Bounds, Change, Reply, Resolver, Told, Waiting, resolv_conf};
use subak_net::now;
use subak_telemetry::{ProblemKind, Problems};
use tokio::sync::mpsc;

use crate::events::Events;

/// Where servers are found when the configuration names none.
const RESOLV_CONF: &str = "/etc/resolv.conf";
/// The least from one look at that file to the next.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// Addresses that a log line names.
const MAX_SHOWN: usize = 8;

type Answered = (Waiting, Result<Reply, String>);

/// The names of the configuration in force.
pub(crate) struct Names {
    book: Book,
    dns: Dns,
    servers: Result<Vec<SocketAddr>, String>,
    resolver: Result<Resolver, String>,
    looked_at: Tick,
    answered: (mpsc::Sender<Answered>, mpsc::Receiver<Answered>),
    random: Rng,
    /// Whether another list stands for some name since [`Names::attend`] said so.
    has_news: bool,
    /// The names of the configuration in force.
    origins: BTreeSet<Origin>,
    /// What has been said of the latest answers.
    oddities: Vec<Oddity>,
    /// Names that are problems now.
    problems: BTreeSet<String>,
    events: Events,
}

impl Names {
    /// Those of a configuration, none of them asked yet. On a runtime.
    pub(crate) fn new(config: &Config, seed: u64, events: Events) -> Names {
        let dns = config.dns.clone();
        let servers = servers(&dns);
        let mut names = Names {
            book: Book::new(bounds(&dns)),
            resolver: resolver(&servers, &dns),
            servers,
            dns,
            looked_at: now(),
            answered: mpsc::channel(subak_names::MAX_ASKING),
            random: Rng::new(seed),
            has_news: false,
            origins: BTreeSet::new(),
            oddities: Vec::new(),
            problems: BTreeSet::new(),
            events,
        };
        names.keep(config);
        names
    }

    /// Waits until every name has been answered or has failed, for as long as one answer may take.
    pub(crate) async fn first(&mut self) {
        let limit = tokio::time::sleep(self.dns.timeout);
        tokio::pin!(limit);
        while !self.book.is_decided() {
            self.ask(now());
            tokio::select! {
                Some(answered) = self.answered.1.recv() => {
                    self.take(answered, now());
                }
                () = &mut limit => break,
            }
        }
    }

    /// Takes on the names of a configuration that is about to come in force, beside those it has. Whether
    /// it has new ones. Where other servers are to be asked then, it waits for that.
    pub(crate) fn expect(&mut self, config: &Config) -> bool {
        let all: BTreeSet<_> = origins(config).chain(self.origins.iter().cloned()).collect();
        let has_new = config.dns == self.dns && all.len() > self.origins.len();
        if has_new {
            self.book.keep(bounds(&self.dns), all);
        }
        has_new
    }

    /// Asks who is due, and takes what comes within this time. Whether each name has been answered or has
    /// failed.
    pub(crate) async fn wait(&mut self, most: Duration) -> bool {
        self.ask(now());
        if !self.book.is_decided()
            && let Ok(Some(answered)) = tokio::time::timeout(most, self.answered.1.recv()).await
        {
            self.has_news |= self.take(answered, now());
        }
        self.book.is_decided()
    }

    /// Forgets the names that a configuration does not have.
    pub(crate) fn forget_others(&mut self, config: &Config) {
        self.keep(config);
    }

    /// All that has been answered is in force.
    pub(crate) fn are_in_force(&mut self) {
        self.has_news = false;
    }

    /// How long one answer may take.
    pub(crate) fn patience(&self) -> Duration {
        self.dns.timeout
    }

    /// Takes a changed configuration over, and looks again who is to be asked.
    pub(crate) fn configure(&mut self, config: &Config) {
        let is_other = self.dns != config.dns;
        self.dns = config.dns.clone();
        self.keep(config);
        self.look_for_servers(is_other);
    }

    /// Takes what has been answered and asks who is due. Whether another list stands for some name.
    pub(crate) fn attend(&mut self, problems: &Problems) -> bool {
        if self.book.is_empty() && self.problems.is_empty() {
            return false;
        }
        let now = now();
        let mut has_changed = std::mem::take(&mut self.has_news);
        while let Ok(answered) = self.answered.1.try_recv() {
            has_changed |= self.take(answered, now);
        }
        if self.problems_now(now, problems) && now.since(self.looked_at) >= LOOK_AGAIN {
            self.look_for_servers(false);
        }
        self.ask(now);
        has_changed
    }

    /// What names stand for.
    pub(crate) fn answers(&self) -> Answers {
        self.book.answers()
    }

    /// What is known of each.
    pub(crate) fn told(&self, now: Tick) -> Vec<Told> {
        self.book.told(now)
    }

    /// Tells what is odd about the answers that are in force now, or not taken, once.
    pub(crate) fn note(&mut self, oddities: &[Oddity]) {
        for oddity in oddities.iter().filter(|oddity| !self.oddities.contains(oddity)) {
            let Oddity { pool, origin, what } = oddity;
            tracing::warn!(%pool, name = %origin, "{what}");
            self.events.keep("warn", Some(pool), None, format!("{origin}: {what}"));
        }
        self.oddities = oddities.to_vec();
    }

    fn keep(&mut self, config: &Config) {
        self.origins = origins(config).collect();
        self.book.keep(bounds(&config.dns), self.origins.clone());
    }

    /// Other servers are asked at once for whatever has failed.
    fn look_for_servers(&mut self, is_other: bool) {
        self.looked_at = now();
        let servers = servers(&self.dns);
        if is_other || servers != self.servers {
            if let Ok(servers) = &servers
                && !self.book.is_empty()
            {
                let servers = servers.iter().map(SocketAddr::to_string).collect::<Vec<_>>();
                tracing::info!(servers = servers.join(", "), "names are asked for at");
            }
            self.resolver = resolver(&servers, &self.dns);
            self.servers = servers;
            self.book.hurry(now());
        }
    }

    fn ask(&mut self, now: Tick) {
        for waiting in self.book.due(now) {
            let resolver = self.resolver.clone();
            let answered = self.answered.0.clone();
            tokio::spawn(async move {
                let reply = match resolver {
                    Ok(resolver) => resolver.ask(&waiting.origin).await,
                    Err(why) => Err(why),
                };
                // Nobody waits for it when the process ends.
                _ = answered.send((waiting, reply)).await;
            });
        }
    }

    fn take(&mut self, (waiting, reply): Answered, now: Tick) -> bool {
        let change = self.book.answered(&waiting, reply, now, &mut self.random);
        if let Some(Change { came, left }) = &change {
            let shown = |list: &[subak_config::names::Found]| {
                let mut shown: Vec<_> =
                    list.iter().take(MAX_SHOWN).map(|one| one.address.to_string()).collect();
                if list.len() > MAX_SHOWN {
                    shown.push(format!("and {} more", list.len() - MAX_SHOWN));
                }
                shown.join(", ")
            };
            let (came, left) = (shown(came), shown(left));
            tracing::info!(name = %waiting.origin, came, left, "a name stands for other endpoints");
            let parts = [("came", came), ("left", left)];
            let parts = parts.into_iter().filter(|(_, list)| !list.is_empty());
            let parts: Vec<_> = parts.map(|(what, list)| format!("{what} {list}")).collect();
            let text =
                format!("{} stands for other endpoints: {}", waiting.origin, parts.join("; "));
            self.events.keep("info", None, None, text);
        }
        change.is_some()
    }

    /// Brings the list of problems up to date. Whether there is one.
    fn problems_now(&mut self, now: Tick, problems: &Problems) -> bool {
        let mut failing = BTreeSet::new();
        for (origin, why, age) in self.book.failures(now) {
            let stays = match age {
                Some(age) => format!("what was answered {} s ago is in force", age.as_secs()),
                None => "it has no endpoints until it is answered".to_owned(),
            };
            let detail =
                format!("{why}; {stays}. Try `dig {}` at the servers asked", origin.name());
            problems.begin(ProblemKind::Dns, &origin.to_string(), detail);
            failing.insert(origin.to_string());
        }
        for well in self.problems.difference(&failing) {
            problems.end(ProblemKind::Dns, well);
        }
        self.problems = failing;
        !self.problems.is_empty()
    }
}

fn origins(config: &Config) -> impl Iterator<Item = Origin> {
    let names = config.pools.iter().flat_map(|pool| &pool.names);
    names.map(|by_name| by_name.origin.clone())
}

fn bounds(dns: &Dns) -> Bounds {
    Bounds { min_ttl: dns.min_ttl, max_ttl: dns.max_ttl, negative_ttl: dns.negative_ttl }
}

fn servers(dns: &Dns) -> Result<Vec<SocketAddr>, String> {
    match dns.servers.is_empty() {
        true => resolv_conf(Path::new(RESOLV_CONF)),
        false => Ok(dns.servers.clone()),
    }
}

fn resolver(servers: &Result<Vec<SocketAddr>, String>, dns: &Dns) -> Result<Resolver, String> {
    let servers = servers.as_ref().map_err(String::clone)?;
    Resolver::new(servers, dns.families, dns.timeout)
}
