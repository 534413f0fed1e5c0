//! The cases: what is asked of every balancer, and what Subak promises there.

use std::time::Duration;

/// How HTTP reaches the balancer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ask {
    /// HTTP/1.1 on connections that stay.
    KeepAlive { connections: usize, path: &'static str },
    /// HTTP/1.1, a new connection each time.
    NewConnections { connections: usize },
    /// HTTP/1.1 at this many requests per second.
    Rate { connections: usize, per_second: f64 },
    /// By `h2load`, which speaks what the load generator here does not.
    ByH2load { clients: usize, streams: usize, version: Version, secure: bool },
    /// TLS handshakes and nothing after them.
    Handshakes { resumed: bool },
    /// Connections that asked once and are silent.
    Idle { connections: usize, silent: Silent, most: Most },
}

/// Which HTTP `h2load` speaks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Version {
    /// HTTP/1.1 on connections that stay.
    Http1,
    /// HTTP/2: by ALPN over TLS, by prior knowledge without.
    Http2,
}

/// What a silent connection has spoken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Silent {
    Http1,
    Tls,
    Http2,
    WebSocket,
}

/// The most memory of its own that a silent connection may cost Subak.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Most {
    /// This many bytes.
    Bytes(f64),
    /// What it costs the better of the others.
    Better,
}

/// How busy the balancer's core must be for its figure to count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Busy {
    /// At least [`SATURATED`].
    Saturated,
    /// All balancers within [`NEAR`] of each other: two cores cannot carry the client
    /// side of a case in which both sides spend their time opening connections.
    Alike,
    /// However busy it is.
    Any,
}

/// The least share of its core a saturated balancer uses.
pub(crate) const SATURATED: f64 = 0.97;
/// The widest spread of utilisation in a case that cannot saturate.
pub(crate) const NEAR: f64 = 0.10;
/// The most of the balancer's core that others may use: the measured gap is below 0.03
/// on a quiet machine.
pub(crate) const OTHERS: f64 = 0.05;
/// The least share of a fixed rate that must be reached.
pub(crate) const RATE_KEPT: f64 = 0.99;

/// Whom a promise compares Subak with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Against {
    /// Whichever of the others is cheaper.
    Better,
    /// nginx.
    Nginx,
}

/// What Subak promises in a case (SPECIFICATION.md).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Promise {
    /// CPU per request: at most this share of the other's.
    pub(crate) cost: f64,
    /// The other.
    pub(crate) against: Against,
    /// Median p99: at most this share of the other's.
    pub(crate) p99: f64,
}

/// One case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) ask: Ask,
    pub(crate) busy: Busy,
    pub(crate) promise: Option<Promise>,
}

/// What Subak promises of small answers when all of them write access logs.
const LOGGED_COST: f64 = 0.85;

impl Case {
    /// The case with access logs: CPU per request of small answers is promised, nothing else.
    pub(crate) fn log(&mut self) {
        let is_small = matches!(self.ask, Ask::KeepAlive { path: "/small", .. });
        self.promise =
            is_small.then_some(Promise { cost: LOGGED_COST, against: Against::Better, p99: 1.05 });
    }
}

/// Longest wait for one answer.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(10);

const fn promise(cost: f64, against: Against) -> Option<Promise> {
    Some(Promise { cost, against, p99: 1.05 })
}

/// All cases, in the order they are run.
pub(crate) const CASES: [Case; 16] = [
    Case {
        name: "keepalive-64",
        about: "small answers, 64 kept connections",
        ask: Ask::KeepAlive { connections: 64, path: "/small" },
        busy: Busy::Saturated,
        promise: promise(0.80, Against::Better),
    },
    Case {
        name: "keepalive-256",
        about: "small answers, 256 kept connections",
        ask: Ask::KeepAlive { connections: 256, path: "/small" },
        busy: Busy::Saturated,
        promise: promise(0.80, Against::Better),
    },
    Case {
        name: "body-64k",
        about: "64 KiB answers, 64 kept connections",
        ask: Ask::KeepAlive { connections: 64, path: "/64k" },
        busy: Busy::Saturated,
        promise: promise(1.0, Against::Nginx),
    },
    Case {
        name: "new-connections",
        about: "a new connection for every request, 64 at a time",
        ask: Ask::NewConnections { connections: 64 },
        busy: Busy::Alike,
        promise: promise(1.0, Against::Better),
    },
    Case {
        name: "fixed-15000",
        about: "15,000 requests/s over 64 kept connections",
        ask: Ask::Rate { connections: 64, per_second: 15_000.0 },
        busy: Busy::Any,
        promise: None,
    },
    Case {
        name: "h2-clients",
        about: "HTTP/2 from 16 clients with 16 streams each, HTTP/1.1 to endpoints",
        ask: Ask::ByH2load { clients: 16, streams: 16, version: Version::Http2, secure: false },
        busy: Busy::Saturated,
        promise: None,
    },
    Case {
        name: "idle-10000",
        about: "10,000 kept connections that asked once and are silent",
        ask: Ask::Idle {
            connections: 10_000,
            silent: Silent::Http1,
            most: Most::Bytes(4.0 * 1024.0),
        },
        busy: Busy::Any,
        promise: None,
    },
    Case {
        name: "tls-keepalive-64",
        about: "small answers over TLS, 64 kept connections",
        ask: Ask::ByH2load { clients: 64, streams: 1, version: Version::Http1, secure: true },
        busy: Busy::Saturated,
        promise: promise(0.85, Against::Better),
    },
    Case {
        name: "tls-keepalive-256",
        about: "small answers over TLS, 256 kept connections",
        ask: Ask::ByH2load { clients: 256, streams: 1, version: Version::Http1, secure: true },
        busy: Busy::Saturated,
        promise: promise(0.85, Against::Better),
    },
    Case {
        name: "h2-100",
        about: "HTTP/2 from 16 clients with 100 streams each, HTTP/1.1 to endpoints",
        ask: Ask::ByH2load { clients: 16, streams: 100, version: Version::Http2, secure: false },
        busy: Busy::Saturated,
        promise: promise(1.0, Against::Better),
    },
    Case {
        name: "h2-tls-100",
        about: "HTTP/2 over TLS from 16 clients with 100 streams each, HTTP/1.1 to endpoints",
        ask: Ask::ByH2load { clients: 16, streams: 100, version: Version::Http2, secure: true },
        busy: Busy::Saturated,
        promise: promise(1.0, Against::Better),
    },
    Case {
        name: "tls-full",
        about: "full TLS 1.3 handshakes: ECDSA P-256, X25519, AES-128-GCM",
        ask: Ask::Handshakes { resumed: false },
        busy: Busy::Alike,
        promise: promise(1.0, Against::Better),
    },
    Case {
        name: "tls-resumed",
        about: "TLS 1.3 handshakes resumed by ticket: X25519, AES-128-GCM",
        ask: Ask::Handshakes { resumed: true },
        busy: Busy::Alike,
        promise: promise(1.0, Against::Better),
    },
    Case {
        name: "idle-tls-10000",
        about: "10,000 kept TLS connections that asked once and are silent",
        ask: Ask::Idle { connections: 10_000, silent: Silent::Tls, most: Most::Better },
        busy: Busy::Any,
        promise: None,
    },
    Case {
        name: "idle-ws-10000",
        about: "10,000 WebSockets that are open and silent, both sides of each",
        ask: Ask::Idle { connections: 10_000, silent: Silent::WebSocket, most: Most::Better },
        busy: Busy::Any,
        promise: None,
    },
    Case {
        name: "idle-h2-10000",
        about: "10,000 HTTP/2 connections that asked once and are silent",
        ask: Ask::Idle {
            connections: 10_000,
            silent: Silent::Http2,
            most: Most::Bytes(24.0 * 1024.0),
        },
        busy: Busy::Any,
        promise: None,
    },
];

/// The cases with these names, in the usual order; all when none is given.
pub(crate) fn choose(names: &[String]) -> Result<Vec<Case>, String> {
    if let Some(unknown) = names.iter().find(|name| CASES.iter().all(|case| case.name != **name)) {
        let known: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        return Err(format!("no case is called {unknown:?}; there are {}", known.join(", ")));
    }
    let chosen = |case: &&Case| names.is_empty() || names.iter().any(|name| name == case.name);
    Ok(CASES.iter().filter(chosen).copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_chosen_by_name_in_the_usual_order() {
        let names = ["idle-10000".to_owned(), "keepalive-64".to_owned()];
        let chosen: Vec<&str> = choose(&names).expect("known").iter().map(|c| c.name).collect();
        assert_eq!(chosen, ["keepalive-64", "idle-10000"]);
        assert_eq!(choose(&[]).expect("all").len(), CASES.len());
        let error = choose(&["keepalive".to_owned()]).expect_err("no such case");
        assert!(error.contains("keepalive-64"), "{error}");
    }
}
