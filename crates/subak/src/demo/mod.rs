//! `subak demo`: the real serving path before three endpoints of its own, with real requests.
//!
//! One thread runs the endpoints, the clients and the screen; Subak's workers run as they always do.
//! Every now and then one endpoint is stopped and comes back, and no request fails by it. On a
//! terminal this is `subak top`, which asks this process as it would any other; elsewhere lines.

mod client;
mod endpoint;
mod lines;
mod secure;

use std::fmt::Write as _;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use subak_admin::Command;
use subak_console::{Reach, top};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::admin::AdminServer;
use crate::cli::{FAILED, OK, WRONG};
use crate::control::{Control, Loaded, NotInForce};
use client::Way;
use endpoint::Endpoint;
use lines::Lines;
use secure::Secure;

/// Names, answer times and weights of the endpoints.
const ENDPOINTS: [(&str, Duration, u16); 3] = [
    ("a", Duration::from_millis(2), 2),
    ("b", Duration::from_millis(4), 1),
    ("c", Duration::from_millis(8), 1),
];
/// One endpoint is stopped and comes back once in this time, or in the whole time if that is less.
const PERIOD: Duration = Duration::from_secs(15);
/// How long it runs where nobody can end it by Ctrl-C.
const WITHOUT_TERMINAL: Duration = Duration::from_secs(10);
/// Where clients are served if nothing else is asked for and the port is free.
const USUAL_PORT: u16 = 8080;
/// Requests under way at the most; a demonstration that falls behind sends fewer.
const MOST_UNDER_WAY: u64 = 1000;
/// How often back-offs are looked at.
const TICK: Duration = Duration::from_millis(100);
/// How often the live view asks.
const LOOK: Duration = Duration::from_millis(500);
/// Notes that wait to be shown; there is one each few seconds.
const NOTES: usize = 16;
/// How long requests under way may take at the end.
const LAST_REQUESTS: Duration = Duration::from_secs(2);

/// What the command line says.
#[derive(Debug)]
pub(crate) struct Options {
    /// How long; none = until Ctrl-C on a terminal, else [`WITHOUT_TERMINAL`].
    pub(crate) seconds: Option<u32>,
    /// By its name in the configuration.
    pub(crate) algorithm: String,
    /// From 1.
    pub(crate) requests_per_second: u32,
    /// Where clients are served; 0 = any free port.
    pub(crate) port: Option<u16>,
    /// Whether clients are served by TLS.
    pub(crate) tls: bool,
}

/// What has happened so far.
#[derive(Debug, Default)]
struct Tally {
    sent: u64,
    answered: [u64; ENDPOINTS.len()],
    failed: u64,
    /// Endpoints of the last answers, the newest last.
    last: Vec<usize>,
    first_failure: Option<String>,
}

impl Tally {
    fn take_in(&mut self, outcome: Result<String, String>) {
        let by_name =
            |name: &String| ENDPOINTS.iter().position(|(endpoint, _, _)| endpoint == name);
        match outcome.map(|name| by_name(&name).ok_or(name)) {
            Ok(Ok(index)) => {
                self.answered[index] += 1;
                self.last.push(index);
                let old = self.last.len().saturating_sub(lines::LAST);
                self.last.drain(..old);
            }
            Ok(Err(problem)) | Err(problem) => {
                self.failed += 1;
                self.first_failure.get_or_insert(problem);
            }
        }
    }

    fn under_way(&self) -> u64 {
        self.sent - self.failed - self.answered.iter().sum::<u64>()
    }
}

/// Runs the demonstration; answers with the exit status.
pub(crate) fn run(options: &Options) -> u8 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let shown = runtime.map(|runtime| runtime.block_on(show(options)));
    match shown.map_err(Problem::System).flatten() {
        Ok(0) => OK,
        // The screen has told.
        Ok(_) => FAILED,
        // Whoever read the output has left: `subak demo | head`.
        Err(Problem::System(error)) if error.kind() == io::ErrorKind::BrokenPipe => OK,
        Err(Problem::System(error)) => {
            eprintln!("error: the demonstration cannot run: {error}");
            FAILED
        }
        Err(Problem::NotInForce(reason)) => {
            eprintln!("error: {reason}");
            match reason {
                NotInForce::Wrong(_) => WRONG,
                _ => FAILED,
            }
        }
    }
}

enum Problem {
    System(io::Error),
    NotInForce(NotInForce),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Problem {
        Problem::System(error)
    }
}

/// Shows it to the end; answers how many requests have failed.
async fn show(options: &Options) -> Result<u64, Problem> {
    let descriptor_limit = subak_net::raise_descriptor_limit()?;
    let mut endpoints = Vec::new();
    for (name, delay, _) in ENDPOINTS {
        endpoints.push(Endpoint::start(name, delay).await?);
    }
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port(options.port)?));
    let secure = options.tls.then(Secure::new).transpose()?;
    let text = configuration(listen, secure.as_ref(), &options.algorithm, &endpoints);
    let tls = secure.as_ref().map(|secure| secure.connector().clone());
    let way = Way { listen, tls };
    let path = Path::new("demo.toml");
    let loaded = Loaded::parse(&text, path).map_err(Problem::NotInForce)?;
    let control =
        Control::with(loaded, path, descriptor_limit).await.map_err(Problem::NotInForce)?;

    let (mut admin, asked) = AdminServer::new();
    let mut lines = Lines::new();
    lines.introduce(&text)?;
    if let Some(secure) = &secure {
        lines.explain_tls(listen, &secure.chain())?;
    }
    let mut place = None;
    if top::has_screen() {
        admin.follow(&control.config().admin, control.problems()).await;
        place = admin.place().map(PathBuf::from);
    }
    let length = match options.seconds {
        Some(seconds) => Some(Duration::from_secs(seconds.into())),
        None => place.is_none().then_some(WITHOUT_TERMINAL),
    };
    let (notes, told) = mpsc::channel(NOTES);
    let notes = match place {
        Some(_) => Notes::View(notes),
        None => Notes::Lines,
    };
    let mut stage =
        Stage { control, asked, endpoints, tally: Tally::default(), began: Instant::now(), notes };
    stage.introduce();
    let played = match place {
        None => stage.play(&mut lines, options, &way, length).await,
        Some(place) => {
            let reach = Reach { socket: Some(place), ..Reach::default() };
            let view = top::watch_live(reach, LOOK, told, length);
            stage.play_beside(view, &mut lines, options, &way, length).await
        }
    };
    let Stage { mut control, mut tally, began, .. } = stage;
    let deadline = Instant::now() + LAST_REQUESTS;
    let mut answers = played?;
    while tally.under_way() > 0 {
        match tokio::time::timeout_at(deadline, answers.recv()).await {
            Ok(Some(outcome)) => tally.take_in(outcome),
            _ => break,
        }
    }
    control.drain();
    control.end();
    admin.close();
    lines.conclude(&tally, began.elapsed())?;
    Ok(tally.failed)
}

struct Stage {
    control: Control,
    /// What the view asks of the control side.
    asked: mpsc::Receiver<Command>,
    endpoints: Vec<Endpoint>,
    tally: Tally,
    began: Instant,
    notes: Notes,
}

/// Where it is told what happens.
enum Notes {
    /// Among the events of the live view.
    View(mpsc::Sender<subak_console::status::Event>),
    /// Among the lines.
    Lines,
}

impl Notes {
    fn tell(&self, lines: &mut Lines, text: &str) -> io::Result<()> {
        match self {
            // A view that is behind by so many notes has other news.
            Notes::View(notes) => {
                let _ = notes.try_send(top::note(text));
                Ok(())
            }
            Notes::Lines => lines.tell(text),
        }
    }
}

/// Where the last answers will arrive.
type Answers = mpsc::UnboundedReceiver<Result<String, String>>;

impl Stage {
    /// Says in the live view, which has no configuration beside it, who is who.
    fn introduce(&self) {
        let Notes::View(notes) = &self.notes else { return };
        for (endpoint, (name, delay, _)) in self.endpoints.iter().zip(ENDPOINTS) {
            let text = format!("{name} is {}, {} ms", endpoint.address(), delay.as_millis());
            let _ = notes.try_send(top::note(&text));
        }
    }

    /// Plays until the view ends, which is what a person ends it by.
    async fn play_beside(
        &mut self,
        view: impl Future<Output = io::Result<()>>,
        lines: &mut Lines,
        options: &Options,
        way: &Way,
        length: Option<Duration>,
    ) -> io::Result<Answers> {
        let (ended, end) = oneshot::channel();
        let viewed = async {
            let viewed = view.await;
            // Whoever plays may have ended before.
            let _ = ended.send(());
            viewed
        };
        let (viewed, played) =
            tokio::join!(viewed, self.play_until(end, lines, options, way, length));
        viewed.and(played)
    }

    /// Plays until the time is over or a signal comes.
    async fn play(
        &mut self,
        lines: &mut Lines,
        options: &Options,
        way: &Way,
        length: Option<Duration>,
    ) -> io::Result<Answers> {
        let (_ended, end) = oneshot::channel();
        self.play_until(end, lines, options, way, length).await
    }

    /// Sends requests, stops and starts endpoints, and shows it, until the end.
    async fn play_until(
        &mut self,
        mut end: oneshot::Receiver<()>,
        lines: &mut Lines,
        options: &Options,
        way: &Way,
        length: Option<Duration>,
    ) -> io::Result<Answers> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let (report, mut answers) = mpsc::unbounded_channel();
        let mut send = interval(Duration::from_secs(1) / options.requests_per_second);
        send.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                _ = send.tick() => if self.tally.under_way() < MOST_UNDER_WAY {
                    let (number, report) = (self.tally.sent, report.clone());
                    let way = way.clone();
                    self.tally.sent += 1;
                    tokio::spawn(async move {
                        // Whoever listens may have left already.
                        let _ = report.send(client::ask(way, number).await);
                    });
                },
                Some(outcome) = answers.recv() => self.tally.take_in(outcome),
                Some(command) = self.asked.recv() => self.control.obey(command),
                _ = tick.tick() => {
                    let elapsed = self.began.elapsed();
                    if length.is_some_and(|length| elapsed >= length) {
                        return Ok(answers);
                    }
                    self.direct(lines, outage(elapsed, length)).await?;
                    self.control.tick_pools();
                    if let Notes::Lines = self.notes {
                        lines.show(&self.tally, elapsed)?;
                    }
                }
                _ = &mut end => return Ok(answers),
                _ = interrupt.recv() => return Ok(answers),
                _ = terminate.recv() => return Ok(answers),
                _ = hangup.recv() => return Ok(answers),
            }
        }
    }

    /// Stops and starts endpoints so that exactly `down` is stopped.
    async fn direct(&mut self, lines: &mut Lines, down: Option<usize>) -> io::Result<()> {
        for (index, endpoint) in self.endpoints.iter_mut().enumerate() {
            let must_stop = down == Some(index);
            if must_stop == endpoint.is_stopped() {
                continue;
            }
            match must_stop {
                true => endpoint.stop().await,
                false => endpoint.start_again().await?,
            }
            let name = endpoint.name();
            let text = match must_stop {
                true => format!("{name} is stopped: its requests go to the others"),
                false => format!("{name} is back"),
            };
            self.notes.tell(lines, &text)?;
        }
        Ok(())
    }
}

/// Which endpoint is stopped at this moment: from 40 % to 70 % of each period, the last one first.
fn outage(elapsed: Duration, length: Option<Duration>) -> Option<usize> {
    let period = length.unwrap_or(PERIOD).min(PERIOD).as_millis().max(1);
    let (turn, within) = (elapsed.as_millis() / period, elapsed.as_millis() % period);
    let down = (within * 10 >= period * 4) && (within * 10 < period * 7);
    down.then(|| ENDPOINTS.len() - 1 - (turn % ENDPOINTS.len() as u128) as usize)
}

/// The port that was asked for; else the usual one if it is free, else any.
fn free_port(asked: Option<u16>) -> io::Result<u16> {
    let free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port))?.local_addr();
    let found = match asked {
        None => free(USUAL_PORT).or_else(|_| free(0)),
        Some(0) => free(0),
        Some(port) => return Ok(port),
    };
    found.map(|address| address.port())
}

/// The configuration, as a person would write it.
fn configuration(
    listen: SocketAddr,
    secure: Option<&Secure>,
    algorithm: &str,
    endpoints: &[Endpoint],
) -> String {
    let tls = secure.map_or_else(String::new, |secure| {
        let (chain, key) = (secure.chain(), secure.key());
        format!("tls = {{ certificates = [{{ chain = {chain:?}, key = {key:?} }}] }}\n")
    });
    let mut text = format!(
        "[listener.demo]\nbind = \"{listen}\"\n{tls}pool = \"app\"\n\n[pool.app]\nbalance = {algorithm:?}\n\
         back_off = {{ initial = \"200ms\", max = \"500ms\" }}\nendpoints = [\n"
    );
    for (endpoint, (_, _, weight)) in endpoints.iter().zip(ENDPOINTS) {
        let weight = if weight == 1 { String::new() } else { format!(" weight={weight}") };
        // Writing to memory does not fail.
        let _ = writeln!(text, "    \"{}{weight}\",", endpoint.address());
    }
    text + "]\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_endpoint_after_the_other_is_stopped_for_a_while_in_every_period() {
        let at = |seconds: f64| outage(Duration::from_secs_f64(seconds), None);
        assert_eq!(
            [at(0.0), at(5.9), at(6.0), at(10.4), at(10.5)],
            [None, None, Some(2), Some(2), None]
        );
        assert_eq!([at(22.0), at(37.0), at(52.0)], [Some(1), Some(0), Some(2)]);
    }

    #[test]
    fn a_short_demonstration_has_its_outage_too() {
        let at =
            |seconds: f64| outage(Duration::from_secs_f64(seconds), Some(Duration::from_secs(10)));
        assert_eq!([at(3.9), at(4.0), at(6.9), at(7.0)], [None, Some(2), Some(2), None]);
        assert_eq!(outage(Duration::ZERO, Some(Duration::ZERO)), None);
    }
}
