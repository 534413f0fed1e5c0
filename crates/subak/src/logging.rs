//! What the process says of itself, on standard error.
//!
//! As text with a time; straight to systemd's journal without one and with a priority before each line,
//! as the journal wants it (sd-daemon(3)); or as JSON, an object a line. Lines go by a queue
//! ([`queue`]), so that a reader that stops blocks nothing else.

mod queue;

pub(crate) use queue::Flush;

use std::backtrace::BacktraceStatus;
use std::fmt;
use std::io::IsTerminal;
use std::sync::OnceLock;

use clap::ValueEnum;
use subak_service::leads_to_journal;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// How a line of the log looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// Time, level, message
    Text,
    /// A priority for systemd's journal, message
    Journal,
    /// One JSON object a line
    Json,
}

/// Libraries that warn of what anybody can send them, as many lines as somebody cares to cause. What
/// comes of forged answers to the resolver is a problem, which is logged once; what comes of odd HTTP/2
/// frames is counted. Each with the words that stand in a filter which wants to hear them.
const QUIET: [(&str, &str); 2] = [
    ("hickory", "hickory_net=error,hickory_resolver=error,hickory_proto=error"),
    ("h2=", "h2=error"),
];

/// The queue of the process, as tracing has one subscriber; empty while nothing logs.
static QUEUE: OnceLock<queue::Queue> = OnceLock::new();

/// Lines of the log that were dropped so far.
pub(crate) fn dropped() -> u64 {
    QUEUE.get().map_or(0, queue::Queue::dropped)
}

/// Begins to log by a filter such as `info` or `warn,subak_http=debug`. Without a format it is the
/// journal's where standard error leads there, else text.
///
/// # Errors
/// A message for the user when the filter cannot be read, or standard error cannot be duplicated.
pub(crate) fn start(filter: &str, format: Option<LogFormat>) -> Result<Flush, String> {
    let mut wanted = filter.to_owned();
    for (asked, quiet) in QUIET {
        if !filter.contains(asked) {
            wanted = format!("{wanted},{quiet}");
        }
    }
    let parsed = EnvFilter::try_new(wanted).map_err(|error| {
        format!("--log {filter}: {error}\n  one of error, warn, info, debug, or target=level pairs")
    })?;
    let detected = || match leads_to_journal(std::io::stderr()) {
        true => LogFormat::Journal,
        false => LogFormat::Text,
    };
    let (lines, flush) =
        queue::Queue::new().map_err(|error| format!("the log cannot be started: {error}"))?;
    let lines = QUEUE.get_or_init(|| lines).clone();
    let builder = tracing_subscriber::fmt()
        .with_env_filter(parsed)
        .with_writer(lines)
        .with_target(false)
        // Its way to report a log that takes nothing would end the process.
        .log_internal_errors(false);
    match format.unwrap_or_else(detected) {
        LogFormat::Text => {
            let on_terminal = std::io::stderr().is_terminal();
            builder.with_ansi(on_terminal && std::env::var_os("NO_COLOR").is_none()).init();
        }
        LogFormat::Journal => builder.with_ansi(false).event_format(Journal::new()).init(),
        LogFormat::Json => builder.with_ansi(false).json().flatten_event(true).init(),
    }
    log_panics();
    Ok(flush)
}

/// Writes lines on a thread of their own from now on, so that a reader that stops blocks no other thread.
/// Call it after root's rights are given up.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn write_by_thread() -> std::io::Result<()> {
    QUEUE.get().map_or(Ok(()), queue::Queue::write_by_thread)
}

/// Panics go the way of the log: the standard hook would block the thread on standard error.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let thread = thread.name().unwrap_or("unnamed");
        let trace = std::backtrace::Backtrace::capture();
        match trace.status() {
            BacktraceStatus::Captured => tracing::error!("thread {thread} {panic}\n{trace}"),
            _ => tracing::error!("thread {thread} {panic}"),
        }
    }));
}

/// Lines with a priority in front. The journal adds the time, and takes each line for an entry of its
/// own: so each line of a longer message has the priority.
struct Journal {
    message: Format<Full, ()>,
}

impl Journal {
    fn new() -> Journal {
        let message = Format::default().without_time().with_level(false).with_target(false);
        Journal { message }
    }
}

impl<S, N> FormatEvent<S, N> for Journal
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut text = String::new();
        self.message.format_event(context, Writer::new(&mut text), event)?;
        let priority = priority(*event.metadata().level());
        text.lines().try_for_each(|line| writeln!(out, "<{priority}>{line}"))
    }
}

/// As syslog counts.
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    }
}
