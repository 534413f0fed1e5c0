//! `events`: what has happened, and what happens.

use std::time::Duration;

use serde_json::Value;

use super::{Context, Failure};
use crate::paint::{Paint, Tone};
use crate::status::{Event, Events};
use crate::written::harmless;

/// How often it is asked for what is new.
const LOOK: Duration = Duration::from_millis(500);

pub(super) fn run(context: &Context, follow: bool, count: usize) -> Result<(), Failure> {
    let mut after = 0;
    let mut first = true;
    loop {
        let answer = context.client.get(&format!("/v1/events?after={after}"))?;
        let told: Events = answer.json()?;
        let raw: Value = answer.json()?;
        let skipped = if first { told.events.len().saturating_sub(count) } else { 0 };
        for (index, event) in told.events.iter().enumerate().skip(skipped) {
            match context.json {
                true => context.say(&raw["events"][index].to_string())?,
                false => context.say(&line(event, context.paint))?,
            }
        }
        after = told.next;
        first = false;
        if !follow {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
}

/// `2026-11-21T17:05:44Z  warn  app 10.0.0.4:8080: down: probe refused`
fn line(event: &Event, paint: Paint) -> String {
    let level = match &*event.level {
        "error" => Tone::Bad,
        "warn" => Tone::Warn,
        _ => Tone::Plain,
    };
    let at = paint.text(Tone::Faint, &harmless(&event.at));
    format!("{at}  {}  {}", paint.text(level, &harmless(&event.level)), told(event))
}

/// What has happened, and to whom.
pub(crate) fn told(event: &Event) -> String {
    let whom = [&event.listener, &event.pool, &event.endpoint];
    let whom: Vec<&str> = whom.into_iter().flatten().map(String::as_str).collect();
    let text = match &whom[..] {
        [] => event.text.clone(),
        whom => {
            // A change of state names its endpoint itself.
            let name = whom[whom.len() - 1];
            let text = event.text.strip_prefix(name).and_then(|text| text.strip_prefix(": "));
            format!("{}: {}", whom.join(" "), text.unwrap_or(&event.text))
        }
    };
    harmless(&text)
}
