//! `drain`: gives an endpoint nothing new, and waits until nobody is left where that is wanted.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use clap::Args;
use hyper::Method;
use serde_json::json;

use super::last::Consent;
use super::names::{Named, find};
use super::show::changed;
use super::{Context, Failure};
use crate::status::{Drain, Endpoint};
use crate::written::{age, harmless, several};

pub(super) const EXAMPLES: &str = "\
With --wait it ends when nothing is under way and no session is left: then the
endpoint can be stopped.

Examples:
  subak ctl drain app 10.0.0.4:8080
  subak ctl drain app 10.0.0.4:8080 --deadline 10m --wait && ssh 10.0.0.4 reboot
  subak ctl ready app 10.0.0.4:8080             back to work";

/// How often it is asked whether somebody is left.
const LOOK: Duration = Duration::from_millis(250);

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    named: Named,
    /// When this has passed, no work at all (maintenance), sessions or not
    #[arg(long, value_name = "DURATION", value_parser = subak_config::duration)]
    deadline: Option<Duration>,
    /// Wait until it is empty
    #[arg(long)]
    wait: bool,
    /// Wait no longer than this; then exit status 1
    #[arg(long, value_name = "DURATION", requires = "wait", value_parser = subak_config::duration)]
    timeout: Option<Duration>,
    #[command(flatten)]
    consent: Consent,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> Result<(), Failure> {
    let (found, _) = find(context, &arguments.named)?;
    arguments.consent.to_lose(context, &found)?;
    let body = match arguments.deadline {
        None => json!({ "state": "drain" }),
        Some(deadline) => {
            json!({ "state": "drain", "deadline": format!("{}ms", deadline.as_millis()) })
        }
    };
    let answer = context.client.send(Method::PATCH, &found.path(), &body)?;
    if !arguments.wait {
        return changed(context, &found.pool, &answer);
    }
    let began = Instant::now();
    let mut line = Progress::new(context.json);
    loop {
        let answer = context.client.get(&found.path())?;
        let endpoint: Endpoint = answer.json()?;
        let drain = endpoint.drain.unwrap_or_default();
        if endpoint.state == "ready" {
            line.end();
            return Err(Failure::Wrong(format!("{} was made ready meanwhile", found.endpoint)));
        }
        if is_empty(&endpoint) {
            line.end();
            let took = age(began.elapsed().as_secs_f64());
            return context.answer(&answer, || {
                Ok(format!("{} is empty after {took}: it can be stopped", found.endpoint))
            });
        }
        line.show(&progress(&endpoint, &drain));
        if let Some(limit) = arguments.timeout.filter(|limit| began.elapsed() >= *limit) {
            line.end();
            let left = progress(&endpoint, &drain);
            return Err(Failure::Waited(format!("{}: {left}", found.endpoint), limit));
        }
        std::thread::sleep(LOOK);
    }
}

/// Nothing under way, and nobody who will come back.
fn is_empty(endpoint: &Endpoint) -> bool {
    match endpoint.drain {
        Some(drain) => drain.is_empty,
        None => endpoint.in_flight == 0 && endpoint.sessions.unwrap_or(0) == 0,
    }
}

/// `3 requests, 12 sessions left, 9 min to its deadline`
pub(crate) fn progress(endpoint: &Endpoint, drain: &Drain) -> String {
    let mut parts = vec![several(endpoint.in_flight.into(), "request")];
    if let Some(sessions) = drain.sessions_left.or(endpoint.sessions) {
        parts.push(several(sessions, "session"));
    }
    let mut text = format!("{} left", parts.join(", "));
    if let Some(left) = drain.deadline_in_s {
        text += &format!(", {} to its deadline", age(left));
    }
    if let Some(empty) = drain.empty_for_s {
        text += &format!(", empty for {}", age(empty));
    }
    harmless(&text)
}

/// One line that is written over on a terminal; elsewhere a line when it changes.
struct Progress {
    quiet: bool,
    over: bool,
    last: String,
}

impl Progress {
    fn new(json: bool) -> Progress {
        Progress { quiet: json, over: io::stderr().is_terminal(), last: String::new() }
    }

    fn show(&mut self, text: &str) {
        if self.quiet || self.last == text {
            return;
        }
        text.clone_into(&mut self.last);
        // A terminal that is gone sees no progress.
        let _ = match self.over {
            true => write!(io::stderr(), "\r{text}\x1b[K").and_then(|()| io::stderr().flush()),
            false => writeln!(io::stderr(), "{text}"),
        };
    }

    fn end(&mut self) {
        if self.over && !self.last.is_empty() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_says_what_is_left() {
        let drain =
            Drain { sessions_left: Some(12), deadline_in_s: Some(540.0), ..Drain::default() };
        let endpoint = Endpoint { in_flight: 1, drain: Some(drain), ..Endpoint::default() };
        let text = "1 request, 12 sessions left, 9 min to its deadline";
        assert_eq!(progress(&endpoint, &drain), text);
        assert!(!is_empty(&endpoint));
        let empty = Endpoint { sessions: Some(0), ..Endpoint::default() };
        assert!(is_empty(&empty), "an older Subak tells no drain");
    }
}
