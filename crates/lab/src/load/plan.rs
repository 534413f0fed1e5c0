//! What is asked for: of whom, how much when, over which connections.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::asked::{Request, Sources};
use super::check::Check;
use super::profile::{Profile, Spacing};
use super::timetable::{self, Due};

/// The most connections, or users, of one load.
pub const MAX_CONNECTIONS: usize = 200_000;
/// The most checks of one load: each has a bit.
pub const MAX_CHECKS: usize = 32;

/// How requests follow each other.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Open loop: requests start when the profile (requests per second) says, whether or not
    /// earlier ones are answered.
    Rate {
        /// Requests per second over time.
        profile: Profile,
        /// Their spacing.
        spacing: Spacing,
        /// Connections that are opened beforehand.
        connections: usize,
        /// The most there may be: more are opened when a request is due and all are busy.
        most: usize,
    },
    /// Open loop: requests start at the times of a table, each as its entry says.
    Timetable {
        /// What is due, ascending; what is due within the warm-up is asked and not counted.
        due: Arc<[Due]>,
        /// How long the window is, which begins after the warm-up; what is due later is not asked.
        lasts: Duration,
        /// Connections that are opened beforehand.
        connections: usize,
        /// The most there may be.
        most: usize,
    },
    /// Closed loop: so many users (the profile), each of whom asks, waits for the answer, thinks,
    /// and asks again, on a connection of its own.
    Users {
        /// Users over time.
        profile: Profile,
        /// Time between an answer and the same user's next request.
        think: Think,
    },
}

/// How long a user thinks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Think {
    /// Not at all.
    #[default]
    None,
    /// Always as long.
    Constant(Duration),
    /// Anything from the first to the second, evenly.
    Between(Duration, Duration),
    /// Exponentially distributed, with this mean.
    Exponential(Duration),
}

/// Which HTTP is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2; in cleartext by prior knowledge.
    Http2 {
        /// Connections that all requests share, each target's in turn.
        connections: usize,
    },
}

/// TLS to the target.
#[derive(Clone)]
pub struct Tls {
    /// Whom to trust, and what is offered; the load adds the protocol's name (ALPN).
    pub config: Arc<ClientConfig>,
    /// Whom the certificate has to be for.
    pub name: ServerName<'static>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What is recorded beside counts and latency; each costs a little.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// The phases of a request: connecting, TLS, sending, waiting, receiving.
    pub phases: bool,
    /// What happened in every interval of this length.
    pub every: Option<Duration>,
    /// Requests that have started within the window are waited for after its end (as long as
    /// [`LoadPlan::answer_within`]) and belong to it. Without this the slowest are never counted.
    pub finish: bool,
}

/// What to ask, of whom, and how. [`LoadPlan::get`] makes the usual one.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// Where to connect, at least one. An open loop asks them in turn, request by request; in a closed
    /// one each user has one of them, in turn.
    pub targets: Vec<SocketAddr>,
    /// What Host (`:authority`) says.
    pub host: String,
    /// TLS, if it is to be.
    pub tls: Option<Tls>,
    /// Which HTTP.
    pub protocol: Protocol,
    /// Where clients come from.
    pub sources: Sources,
    /// How requests follow each other, and for how long.
    pub shape: Shape,
    /// Ends after exactly this many requests were asked and answered (or failed), warm-up included.
    pub requests_in_all: Option<u64>,
    /// A new connection for every request.
    pub new_connections: bool,
    /// Time before the measured window, at the profile's first value, in which nothing is counted.
    pub warm_up: Duration,
    /// An answer that takes longer is an error, and its connection is replaced.
    pub answer_within: Duration,
    /// What is asked for, by weight; at least one.
    pub requests: Vec<Request>,
    /// What answers have to be like, beside their status.
    pub checks: Vec<Check>,
    /// What is recorded.
    pub detail: Detail,
    /// Whether the generator comes before what else its core has to do.
    pub precedence: Precedence,
    /// Whatever is drawn by chance follows from it.
    pub seed: u64,
}

/// When a core has others to serve too: who asks late because servers had the core measures the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precedence {
    /// One of many.
    #[default]
    Usual,
    /// Before all others ([`crate::machine::Ahead`]), where rights allow.
    AheadIfAllowed,
    /// Before all others, or not at all.
    Ahead,
}

impl LoadPlan {
    /// GET `path` from `target` over 64 kept connections, as fast as answers come, for five seconds
    /// after one second of warm-up. Change what should be different.
    pub fn get(target: SocketAddr, path: &str) -> LoadPlan {
        LoadPlan {
            targets: vec![target],
            host: target.to_string(),
            tls: None,
            protocol: Protocol::Http1,
            sources: Sources::default(),
            shape: Shape::Users {
                profile: Profile::constant(64.0, Duration::from_secs(5)),
                think: Think::None,
            },
            requests_in_all: None,
            new_connections: false,
            warm_up: Duration::from_secs(1),
            answer_within: Duration::from_secs(10),
            requests: vec![Request::get(path)],
            checks: Vec::new(),
            detail: Detail::default(),
            precedence: Precedence::Usual,
            seed: 1,
        }
    }

    /// So many users, who do not think.
    #[must_use]
    pub fn users(mut self, users: usize) -> LoadPlan {
        let profile = Profile::constant(users as f64, self.length());
        self.shape = Shape::Users { profile, think: Think::None };
        self
    }

    /// So many requests per second, over so many connections.
    #[must_use]
    pub fn rate(mut self, per_second: f64, connections: usize) -> LoadPlan {
        let profile = Profile::constant(per_second, self.length());
        self.shape =
            Shape::Rate { profile, spacing: Spacing::Even, connections, most: connections };
        self
    }

    /// For so long, warm-up not counted; for a timetable, and a profile that is constant.
    #[must_use]
    pub fn lasting(mut self, time: Duration) -> LoadPlan {
        self.shape = match self.shape {
            Shape::Users { profile, think } => {
                Shape::Users { profile: profile.lasting(time), think }
            }
            Shape::Rate { profile, spacing, connections, most } => {
                Shape::Rate { profile: profile.lasting(time), spacing, connections, most }
            }
            Shape::Timetable { due, connections, most, .. } => {
                Shape::Timetable { due, lasts: time, connections, most }
            }
        };
        self
    }

    /// Exactly so many requests, however long they take; without warm-up.
    #[must_use]
    pub fn requests(mut self, requests: u64) -> LoadPlan {
        self.requests_in_all = Some(requests);
        self.warm_up = Duration::ZERO;
        self.lasting(Duration::MAX)
    }

    /// Asks with a new connection each time, and says so to the other side.
    #[must_use]
    pub fn with_new_connections(mut self) -> LoadPlan {
        self.new_connections = true;
        self
    }

    /// How long its window is.
    pub fn length(&self) -> Duration {
        match &self.shape {
            Shape::Rate { profile, .. } | Shape::Users { profile, .. } => profile.length(),
            Shape::Timetable { lasts, .. } => *lasts,
        }
    }

    /// Users or requests per second, so long after the beginning of the window.
    pub fn load_at(&self, elapsed: Duration) -> f64 {
        match &self.shape {
            Shape::Rate { profile, .. } | Shape::Users { profile, .. } => profile.at(elapsed),
            Shape::Timetable { due, .. } => {
                timetable::per_second(due, self.warm_up.saturating_add(elapsed))
            }
        }
    }

    /// Connections it may need.
    pub fn most_connections(&self) -> usize {
        match (self.protocol, &self.shape) {
            (Protocol::Http2 { connections }, _) => connections,
            (_, Shape::Rate { most, .. } | Shape::Timetable { most, .. }) => *most,
            (_, Shape::Users { profile, .. }) => profile.largest().ceil() as usize,
        }
    }

    /// What makes no sense about it.
    pub(super) fn fault(&self) -> Option<String> {
        let none = |what: &str| Some(what.to_owned());
        let connections = self.most_connections();
        match &self.shape {
            _ if self.targets.is_empty() => return none("a load needs a target"),
            _ if connections == 0 => return none("a load needs at least one connection"),
            _ if connections > MAX_CONNECTIONS => {
                return Some(format!("a load has {MAX_CONNECTIONS} connections at most"));
            }
            Shape::Rate { profile, .. } if !profile.makes_sense() => {
                return none("a rate is a number, and not negative");
            }
            Shape::Users { profile, .. } if !profile.makes_sense() => {
                return none("a number of users is a number, and not negative");
            }
            Shape::Rate { profile, .. } if profile.largest() == 0.0 => {
                return none("a rate must be positive");
            }
            Shape::Rate { connections, most, .. } | Shape::Timetable { connections, most, .. }
                if connections > most =>
            {
                return none("more connections beforehand than there may be");
            }
            Shape::Timetable { due, .. } => {
                if let Some(fault) = timetable::fault(due, self) {
                    return Some(fault);
                }
            }
            _ if self.requests.iter().all(|request| request.weight == 0) => {
                return none("nothing to ask for: a request with a weight is missing");
            }
            _ => {}
        }
        if matches!(self.protocol, Protocol::Http2 { .. }) {
            if self.new_connections {
                return none("a connection for every request is a thing of HTTP/1.1");
            }
            if connections < self.targets.len() {
                return none("requests of HTTP/2 need at least one connection to each target");
            }
            if let Some(fault) = super::exchange::fault(self) {
                return Some(fault);
            }
        }
        if self.checks.len() > MAX_CHECKS {
            return Some(format!("a load has {MAX_CHECKS} checks at most"));
        }
        self.requests.iter().find_map(Request::fault).and_then(none)
    }
}
