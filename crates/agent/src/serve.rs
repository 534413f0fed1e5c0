//! The agent as a whole: measures by the clock and answers whoever asks.
//!
//! Bounds: 64 connections of each kind at once, 5 s each. A reading takes some
//! tenths of a millisecond and is taken between two answers, on the same thread.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use subak_balance::weigher::Coefficients;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use crate::listen::{accept, bind};
use crate::measure::{self, MeasureError, Roots, Sample, Sampler};
use crate::token::Token;
use crate::{agent_check, http};

/// Connections that are answered at once, of each kind; the others wait.
const MAX_CONNECTIONS: usize = 64;
/// How long a connection may take from its first to its last byte.
const CONNECTION_LIMIT: Duration = Duration::from_secs(5);
/// What passes between the first two readings, so that the first answer says something.
const FIRST_WINDOW: Duration = Duration::from_millis(250);

/// What an agent measures and where it says so.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is measured.
    pub measure: measure::Options,
    /// Where reports are given, if anywhere.
    pub http: Option<Http>,
    /// Where agent-check is answered.
    pub agent_check: Vec<SocketAddr>,
    /// λ of the load that agent-check tells.
    pub load: Coefficients,
}

/// Reports over HTTP.
#[derive(Clone, Debug)]
pub struct Http {
    /// The addresses.
    pub listen: Vec<SocketAddr>,
    /// What whoever asks must show.
    pub token: Token,
}

/// Why an agent does not start.
#[derive(Debug)]
pub enum StartError {
    /// Nothing can be measured as asked.
    Measure(MeasureError),
    /// An address cannot be listened on.
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, error) = match self {
            StartError::Measure(error) => return error.fmt(out),
            StartError::Bind { address, error } => (address, error),
        };
        write!(out, "cannot listen on {address}: {error}")?;
        match error.kind() {
            io::ErrorKind::AddrInUse => write!(
                out,
                "\n  another process has this port; `ss -ltnp 'sport = :{}'` names it",
                address.port()
            ),
            io::ErrorKind::PermissionDenied => {
                write!(out, "\n  ports below 1024 need a right; choose one above instead")
            }
            io::ErrorKind::AddrNotAvailable => {
                write!(out, "\n  no interface of this machine has it; `ip address` lists them")
            }
            _ => Ok(()),
        }
    }
}

impl Error for StartError {}

impl From<MeasureError> for StartError {
    fn from(error: MeasureError) -> StartError {
        StartError::Measure(error)
    }
}

/// An agent that listens and has taken its first reading.
#[derive(Debug)]
pub struct Agent {
    options: Options,
    sampler: Sampler,
    http: Vec<TcpListener>,
    agent_check: Vec<TcpListener>,
}

impl Agent {
    /// Binds all addresses and takes a first reading. Inside a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// [`StartError`]; then nothing is left open.
    pub fn start(options: Options) -> Result<Agent, StartError> {
        let sampler = Sampler::new(options.measure.clone(), Roots::default())?;
        let bind_all = |addresses: &[SocketAddr]| {
            let bind_one = |address: &SocketAddr| {
                bind(*address).map_err(|error| StartError::Bind { address: *address, error })
            };
            addresses.iter().map(bind_one).collect::<Result<Vec<_>, _>>()
        };
        let http = bind_all(options.http.as_ref().map_or(&[], |http| &http.listen))?;
        let agent_check = bind_all(&options.agent_check)?;
        Ok(Agent { options, sampler, http, agent_check })
    }

    /// Where reports are given; port 0 has become a real one.
    pub fn http_addresses(&self) -> Vec<SocketAddr> {
        addresses(&self.http)
    }

    /// Where agent-check is answered.
    pub fn agent_check_addresses(&self) -> Vec<SocketAddr> {
        addresses(&self.agent_check)
    }

    /// The interfaces that do not count because nothing says how fast they are.
    pub fn interfaces_without_speed(&self) -> impl Iterator<Item = &str> {
        self.sampler.interfaces_without_speed()
    }

    /// Measures and answers until `stop` comes; answers under way are cut off then.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        sleep(FIRST_WINDOW.min(self.options.measure.interval)).await;
        let (publish, latest) = watch::channel(self.sampler.sample());
        let mut listeners = tokio::task::JoinSet::new();
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        if let Some(Http { token, .. }) = self.options.http {
            let token = Arc::new(token);
            for listener in self.http {
                let (token, latest) = (token.clone(), latest.clone());
                listeners.spawn(accept(listener, places.clone(), move |stream| {
                    let (token, sample): (_, Sample) = (token.clone(), *latest.borrow());
                    async move { http::answer(stream, &token, sample, CONNECTION_LIMIT).await }
                }));
            }
        }
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        for listener in self.agent_check {
            let (latest, load) = (latest.clone(), self.options.load);
            listeners.spawn(accept(listener, places.clone(), move |stream| {
                let line = agent_check::line(&latest.borrow().used, &load);
                agent_check::answer(stream, line, CONNECTION_LIMIT)
            }));
        }
        let period = self.options.measure.interval;
        let mut clock = interval_at(Instant::now() + period, period);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                _ = clock.tick() => {
                    publish.send_replace(self.sampler.sample());
                }
            }
        }
    }
}

fn addresses(listeners: &[TcpListener]) -> Vec<SocketAddr> {
    listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect()
}
