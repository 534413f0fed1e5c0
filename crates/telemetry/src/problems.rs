//! What is wrong now? One list for the whole process: status, metrics, terminal view and log show it.
//!
//! Whoever finds something wrong begins a problem, says in `detail` what to do about it, and ends it
//! when all is well again; both are logged. Beginning what has begun already only brings the detail up
//! to date, so a finder may look again and again. Behind a lock: for the control side and writers of
//! logs, never for each request.
//!
//! At most [`MOST`] at once. What does not fit is logged and counted as further ones.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Problems that are kept at once.
const MOST: usize = 1000;

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal,)*) => {
        /// What kind of thing is wrong.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum ProblemKind { $($(#[doc = $doc])+ $variant,)* }

        impl ProblemKind {
            /// Every kind.
            pub const ALL: [ProblemKind; [$($name),*].len()] = [$(ProblemKind::$variant),*];

            /// The value of the label `kind`.
            pub fn name(self) -> &'static str {
                match self { $(ProblemKind::$variant => $name,)* }
            }

            /// What it means, for documents.
            pub fn meaning(self) -> &'static str {
                match self { $(ProblemKind::$variant => concat!($($doc),+).trim_ascii(),)* }
            }
        }
    };
}

kinds! {
    /// An access log takes nothing, or not everything: lines are lost and counted.
    AccessLog "access_log",
    /// The log on standard error takes nothing, or not everything: lines are dropped and counted.
    Log "log",
    /// There are as many client connections as allowed.
    Connections "connections",
    /// No file descriptor was left for a connection.
    Descriptors "descriptors",
    /// Buffers hold as many bytes as they may: new requests are answered 503.
    Memory "memory",
    /// No port was left for connections to the endpoints of a pool.
    Ports "ports",
    /// A name does not resolve, or no DNS server answers.
    Dns "dns",
    /// No endpoint of a pool may take new work.
    Pool "pool",
    /// An endpoint is in back-off: it refused connections or broke requests, and has answered none since.
    Endpoint "endpoint",
    /// The circuit of a pool is open: its requests are answered 503 at once.
    Circuit "circuit",
    /// The latest configuration was refused; the one before is in force.
    Config "config",
    /// The Admin API cannot be opened.
    Admin "admin",
    /// A certificate has expired, or is about to.
    Certificate "certificate",
}

/// One thing that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// What kind of thing.
    pub kind: ProblemKind,
    /// Which one: a path, a name, a pool.
    pub what: String,
    /// Why, and what to do.
    pub detail: String,
    /// Since when.
    pub since: SystemTime,
}

/// The list. A clone is another handle of the same list.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    list: Arc<Mutex<List>>,
}

#[derive(Debug, Default)]
struct List {
    now: BTreeMap<(ProblemKind, String), (String, SystemTime)>,
    /// Those that did not fit.
    further: u64,
}

impl Problems {
    /// Something is wrong from now on, or still.
    pub fn begin(&self, kind: ProblemKind, what: &str, detail: String) {
        let mut list = self.lock();
        let key = (kind, what.to_owned());
        if let Some((known, _)) = list.now.get_mut(&key) {
            *known = detail;
            return;
        }
        if list.now.len() >= MOST {
            list.further += 1;
        } else {
            list.now.insert(key, (detail.clone(), SystemTime::now()));
        }
        drop(list);
        tracing::warn!(kind = kind.name(), what, "problem: {detail}");
    }

    /// It is well again; nothing happens if it was.
    pub fn end(&self, kind: ProblemKind, what: &str) {
        let ended = self.lock().now.remove(&(kind, what.to_owned()));
        if let Some((_, since)) = ended {
            let lasted_s = since.elapsed().unwrap_or_default().as_secs();
            tracing::info!(kind = kind.name(), what, lasted_s, "problem has ended");
        }
    }

    /// These, and no others, are the problems of this kind whose names begin so.
    pub fn replace(&self, kind: ProblemKind, scope: &str, now: Vec<(String, String)>) {
        let known: Vec<String> = {
            let list = self.lock();
            let of_scope =
                list.now.keys().filter(|(one, what)| *one == kind && what.starts_with(scope));
            of_scope.map(|(_, what)| what.clone()).collect()
        };
        for ended in known.iter().filter(|known| !now.iter().any(|(what, _)| what == *known)) {
            self.end(kind, ended);
        }
        now.into_iter().for_each(|(what, detail)| self.begin(kind, &what, detail));
    }

    /// What is wrong now, by kind and name.
    pub fn list(&self) -> Vec<Problem> {
        let list = self.lock();
        let problem = |((kind, what), (detail, since)): (&(ProblemKind, String), &(String, _))| {
            Problem { kind: *kind, what: what.clone(), detail: detail.clone(), since: *since }
        };
        list.now.iter().map(problem).collect()
    }

    /// How many did not fit into the list so far.
    pub fn further(&self) -> u64 {
        self.lock().further
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        // Every change is whole before the lock is given back.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, ProblemKind, Problems};

    #[test]
    fn all_problems_of_a_scope_can_be_told_at_once() {
        let problems = Problems::default();
        let one = |name: &str| (format!("app {name}"), "refused".to_owned());
        problems.begin(ProblemKind::Endpoint, "apple a", "refused".into());
        problems.begin(ProblemKind::Pool, "app b", "nobody".into());
        problems.replace(ProblemKind::Endpoint, "app ", vec![one("a"), one("b")]);
        problems.replace(ProblemKind::Endpoint, "app ", vec![one("b")]);
        let whats: Vec<String> = problems.list().into_iter().map(|problem| problem.what).collect();
        assert_eq!(whats, ["app b", "app b", "apple a"]);
        problems.replace(ProblemKind::Endpoint, "app ", vec![]);
        assert_eq!(problems.list().len(), 2);
    }

    #[test]
    fn a_problem_is_there_from_its_beginning_to_its_end() {
        let problems = Problems::default();
        let elsewhere = problems.clone();
        problems.begin(ProblemKind::AccessLog, "access.json", "disk full".into());
        elsewhere.begin(ProblemKind::Dns, "app.internal", "no answer".into());
        let since = problems.list()[0].since;
        problems.begin(ProblemKind::AccessLog, "access.json", "disk full, 10 lines lost".into());
        let list = elsewhere.list();
        assert_eq!(list.len(), 2);
        assert_eq!((list[0].detail.as_str(), list[0].since), ("disk full, 10 lines lost", since));
        problems.end(ProblemKind::AccessLog, "another.json");
        problems.end(ProblemKind::AccessLog, "access.json");
        assert_eq!(elsewhere.list()[0].kind, ProblemKind::Dns);
        assert_eq!(elsewhere.list().len(), 1);
    }

    #[test]
    fn there_is_an_end_to_them() {
        let problems = Problems::default();
        for number in 0..MOST + 3 {
            problems.begin(ProblemKind::Pool, &number.to_string(), String::new());
        }
        assert_eq!((problems.list().len(), problems.further()), (MOST, 3));
    }
}
