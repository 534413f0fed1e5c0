//! `subak top`: a live view of a process that runs.

mod bar;
mod columns;
mod draw;
mod feed;
mod keys;
mod plain;
mod rows;
mod screen;
mod state;
mod table;
#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use hyper::Method;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

use crate::ask::{AskError, Client};
use crate::paint::{is_dumb, speaks_utf8, wants_colours};
use crate::reach::Reach;
use crate::status::{Event, Status};
use draw::Pen;
use feed::Order;
use keys::Action;
use screen::{Input, Screen};
use state::{State, Update};

/// What `subak top --help` ends with.
pub const EXAMPLES: &str = "\
Pools and their endpoints with hits, rate, requests in flight, latency, failures
and state; what is wrong stands on top in red. The mark in a bar is the share
that the weights in force give. ? shows the keys: d drains, w sets a weight;
both ask first.

Examples:
  subak top
  subak top --once                    as text, once
  subak top --json | jq .connections  a line of JSON each second
  ssh -t balancer subak top";

/// The shortest time from one question to the next.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// How often the picture is drawn without news: ages go on.
const REDRAW: Duration = Duration::from_secs(1);

/// The options of the command.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    reach: Reach,
    /// From one question to the next
    #[arg(short, long, value_name = "DURATION", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// Print it once, as text, and end
    #[arg(long)]
    once: bool,
    /// The status as JSON, a line at every interval; with --once one line
    #[arg(long)]
    json: bool,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = subak_config::duration(text)?;
    match interval < MIN_INTERVAL {
        true => Err(format!("it cannot be shorter than {MIN_INTERVAL:?}")),
        false => Ok(interval),
    }
}

/// Shows it until it is ended; answers with the exit status.
pub fn run(arguments: Arguments) -> ExitCode {
    let Arguments { reach, interval, once, json } = arguments;
    let ran = match (json, once) {
        (true, _) => print_json(&reach, interval, once),
        (false, true) => print_once(&reach),
        (false, false) if !has_screen() => {
            eprintln!(
                "error: no terminal that can be drawn on (standard output is none, or TERM is dumb)\
                 \n  subak top --once prints it as text, --json as JSON"
            );
            return ExitCode::from(2);
        }
        (false, false) => live_view(reach, interval),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            let (text, status) = match failure {
                Failure::Ask(error) => {
                    (error.to_string(), if error.is_wrong_question() { 2 } else { 1 })
                }
                Failure::Output(error) => (format!("the terminal cannot be used: {error}"), 1),
            };
            eprintln!("error: {text}");
            ExitCode::from(status)
        }
    }
}

enum Failure {
    Ask(AskError),
    Output(io::Error),
}

impl From<AskError> for Failure {
    fn from(error: AskError) -> Failure {
        Failure::Ask(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}

fn print_once(reach: &Reach) -> Result<(), Failure> {
    let status: Status = Client::reach(reach)?.get("/v1/status")?.json()?;
    io::stdout().write_all(plain::picture(status, speaks_utf8()).as_bytes())?;
    Ok(())
}

fn print_json(reach: &Reach, interval: Duration, once: bool) -> Result<(), Failure> {
    let client = Client::reach(reach)?;
    loop {
        let status: Value = client.ask(Method::GET, "/v1/status", "")?.json()?;
        writeln!(io::stdout(), "{status}")?;
        io::stdout().flush()?;
        if once {
            return Ok(());
        }
        std::thread::sleep(interval);
    }
}

fn live_view(reach: Reach, interval: Duration) -> Result<(), Failure> {
    // A wrong command line is told on the command line.
    drop(Client::reach(&reach)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (_notes, notes) = mpsc::channel(1);
    runtime.block_on(watch_live(reach, interval, notes, None))?;
    Ok(())
}

/// Something that has happened now, to be shown among the events.
pub fn note(text: &str) -> Event {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (hours, minutes, seconds) = (now / 3600 % 24, now / 60 % 60, now % 60);
    let at = format!("T{hours:02}:{minutes:02}:{seconds:02}Z");
    Event { at, level: "info".to_owned(), text: text.to_owned(), ..Event::default() }
}

/// Whether standard output is a terminal on which something can be drawn.
pub fn has_screen() -> bool {
    io::stdout().is_terminal() && io::stdin().is_terminal() && !is_dumb()
}

/// The live view, until q, a signal, or `length` is over. `notes` are shown among the events. Inside a
/// tokio runtime with I/O and time.
///
/// # Errors
/// When the terminal cannot be used.
pub async fn watch_live(
    reach: Reach,
    interval: Duration,
    mut notes: mpsc::Receiver<Event>,
    length: Option<Duration>,
) -> io::Result<()> {
    let began = Instant::now();
    let pen = Pen { colours: wants_colours(), utf8: speaks_utf8() };
    let mut signals = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()]
        .map(signal)
        .into_iter()
        .collect::<io::Result<Vec<_>>>()?;
    let (order, orders) = mpsc::channel(feed::WAITING);
    let (want, wanted) = watch::channel(Vec::new());
    let (tell, mut told) = mpsc::channel(feed::WAITING);
    let (press, mut inputs) = mpsc::channel(feed::WAITING);
    let mut screen = Screen::take(press)?;
    let feed = tokio::spawn(feed::run(reach, interval, orders, wanted, tell));
    let mut state = State::new();
    let mut redraw = tokio::time::interval(REDRAW);
    loop {
        let now_s = began.elapsed().as_secs_f64();
        screen.terminal.draw(|frame| {
            let area = frame.area();
            draw::screen(&mut state, frame.buffer_mut(), area, pen, now_s);
        })?;
        // Endpoints that came onto the screen are asked for at once.
        let wants = state.wanted();
        if *want.borrow() != wants {
            let more = wants.iter().any(|pool| !want.borrow().contains(pool));
            want.send_replace(wants);
            if more {
                let _ = order.try_send(Order::Refresh);
            }
        }
        let (first, rest) = signals.split_at_mut(1);
        let (second, third) = rest.split_at_mut(1);
        tokio::select! {
            update = told.recv() => match update {
                Some(update) => state.take(update, began.elapsed().as_secs_f64()),
                None => break,
            },
            input = inputs.recv() => match input {
                Some(Input::Key(key)) => match keys::press(&mut state, key) {
                    Action::None => {}
                    Action::Quit => break,
                    Action::Refresh => {
                        let _ = order.try_send(Order::Refresh);
                    }
                    Action::Change(change) => {
                        let _ = order.try_send(Order::Change(change));
                    }
                },
                Some(Input::Resized) => screen.terminal.autoresize()?,
                Some(Input::Gone) | None => break,
            },
            Some(note) = notes.recv() => state.take(Update::Events(vec![note]), now_s),
            _ = redraw.tick() => {
                if length.is_some_and(|length| began.elapsed() >= length) {
                    break;
                }
            }
            _ = first[0].recv() => break,
            _ = second[0].recv() => break,
            _ = third[0].recv() => break,
        }
    }
    feed.abort();
    drop(screen);
    Ok(())
}
