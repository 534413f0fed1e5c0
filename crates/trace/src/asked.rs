//! What the clients of a log asked, so that it can be asked again: when, which path, in whose name.
//!
//! Every request of the log counts, whatever became of it. Only GET can be asked again: what was sent
//! with other methods is in no log.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use subak_sim::{Trace, TracedRequest};

use crate::format::Format;
use crate::line::Line;
use crate::log::MOST_REQUESTS;
use crate::moment::usual;
use crate::pattern::Stamp;
use crate::reading::{self, LogError, Opened, Reading, shown};

/// Paths that are kept; lines with others are counted.
const MOST_PATHS: usize = 500_000;

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedOnce {
    /// From the first request on.
    pub at: Duration,
    /// Its place in [`Asked::paths`].
    pub path: u32,
    /// Its place in [`Asked::clients`]; none where the line names no address.
    pub client: Option<u32>,
}

/// What a log's clients asked.
#[derive(Clone, Debug)]
pub struct Asked {
    /// In the order of arrival.
    pub requests: Vec<AskedOnce>,
    /// Paths with their queries, as a request can name them.
    pub paths: Vec<String>,
    /// Who asked.
    pub clients: Vec<IpAddr>,
    /// Lines that are none of these requests.
    pub left_out: LeftOut,
}

impl Asked {
    /// The same as arrivals of the simulator: objects are paths with their queries. A request in nobody's
    /// name is this machine's.
    pub fn trace(self) -> Trace {
        let mut clients = self.clients;
        let nobody = clients.len() as u32;
        clients.push(Ipv4Addr::LOCALHOST.into());
        let one = |request: &AskedOnce| TracedRequest {
            at_ns: request.at.as_nanos() as u64,
            client: request.client.unwrap_or(nobody),
            object: request.path,
            ..TracedRequest::default()
        };
        Trace {
            requests: self.requests.iter().map(one).collect(),
            clients,
            objects: self.paths.into_iter().map(|path| path.into_bytes().into()).collect(),
        }
    }
}

/// Lines that cannot be asked again, or are not to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// With other methods than GET.
    pub other_methods: u64,
    /// Without a path.
    pub pathless: u64,
    /// Of other pools than the one that is wanted.
    pub other_pools: u64,
    /// Of another format; the first of them: its number, and what it says.
    pub bad: u64,
    /// The first of these.
    pub first_bad: Option<(u64, String)>,
    /// Far away in time from all others.
    pub astray: u64,
    /// Past the bound on requests or paths.
    pub beyond: u64,
}

/// Reads what was asked from a log; `-` is standard input. Without a pool in `reading`, of all pools.
/// `seen` hears now and then of how many lines there were.
///
/// # Errors
/// The log cannot be read, is empty, is in no known format or has no GET.
pub fn asked(path: &Path, reading: &Reading, seen: impl FnMut(u64)) -> Result<Asked, LogError> {
    asked_opened(Opened::file(path)?, reading, seen)
}

/// The same of a log in memory.
///
/// # Errors
/// As [`asked`].
pub fn asked_bytes(bytes: Vec<u8>, reading: &Reading) -> Result<Asked, LogError> {
    asked_opened(Opened::bytes(bytes)?, reading, |_| {})
}

fn asked_opened(log: Opened, reading: &Reading, seen: impl FnMut(u64)) -> Result<Asked, LogError> {
    let mut gathering = Gathering::default();
    let wanted = reading.pool.as_deref();
    let format = reading::each_line(log, reading, seen, |text, is_whole, format, stamp| {
        gathering.line(text, is_whole, format, stamp, wanted);
    })?;
    gathering.finish(&format)
}

#[derive(Default)]
struct Gathering {
    /// Microseconds since 1970, path, client.
    requests: Vec<(i64, u32, Option<u32>)>,
    paths: Places<String>,
    clients: Places<IpAddr>,
    left_out: LeftOut,
    lines: u64,
    /// For a path with its query, from line to line.
    room: Vec<u8>,
}

impl Gathering {
    fn line(
        &mut self,
        text: &[u8],
        is_whole: bool,
        format: &Format,
        stamp: Stamp,
        wanted: Option<&str>,
    ) {
        if text.is_empty() {
            return;
        }
        let mut room = std::mem::take(&mut self.room);
        let mut has_moment = false;
        let fits = is_whole
            && format.line(text, &mut room, |line| {
                has_moment = self.take(line, stamp, wanted).is_some();
            });
        self.room = room;
        self.lines += 1;
        if !fits || !has_moment {
            self.left_out.bad += 1;
            self.left_out.first_bad.get_or_insert_with(|| (self.lines, shown(text)));
        }
    }

    /// None when the line has no moment.
    fn take(&mut self, line: &Line<'_>, stamp: Stamp, wanted: Option<&str>) -> Option<()> {
        let at = line.moment?.dealt(self.lines);
        let left_out = &mut self.left_out;
        if wanted.is_some_and(|wanted| line.pool != Some(wanted.as_bytes())) {
            left_out.other_pools += 1;
        } else if line.method.is_some_and(|method| method != b"GET") {
            left_out.other_methods += 1;
        } else if let Some(path) = line.uri.and_then(as_asked) {
            let client = line.client.and_then(|client| std::str::from_utf8(client).ok());
            let client = client.and_then(|client| client.parse().ok());
            let path = match self.requests.len() < MOST_REQUESTS {
                true => self.paths.place(path, MOST_PATHS),
                false => None,
            };
            match path {
                None => left_out.beyond += 1,
                Some(path) => {
                    let client = client.and_then(|client| self.clients.place(client, usize::MAX));
                    self.requests.push((line.arrived(at, stamp), path, client));
                }
            }
        } else {
            left_out.pathless += 1;
        }
        Some(())
    }

    fn finish(mut self, format: &Format) -> Result<Asked, LogError> {
        if self.lines == self.left_out.bad {
            return Err(reading::nothing_fits(format, self.left_out.first_bad.as_ref()));
        }
        let usual = usual(self.requests.iter().map(|(at, _, _)| *at).collect());
        let before = self.requests.len();
        self.requests.retain(|(at, _, _)| usual.contains(at));
        self.left_out.astray = (before - self.requests.len()) as u64;
        self.requests.sort_by_key(|(at, _, _)| *at);
        let Some((first, _, _)) = self.requests.first().copied() else {
            let why = "the log has no GET that could be asked again";
            return Err(LogError::Empty(format!("{why}: {}", self.left_out)));
        };
        let once = |(at, path, client): (i64, u32, Option<u32>)| AskedOnce {
            at: Duration::from_micros((at - first) as u64),
            path,
            client,
        };
        Ok(Asked {
            requests: self.requests.into_iter().map(once).collect(),
            paths: self.paths.all,
            clients: self.clients.all,
            left_out: self.left_out,
        })
    }
}

impl LeftOut {
    /// How many lines these are.
    pub fn total(&self) -> u64 {
        self.other_methods + self.pathless + self.other_pools + self.bad + self.astray + self.beyond
    }
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bad = match &self.first_bad {
            Some((number, _)) => format!("of another format (the first is line {number})"),
            None => String::new(),
        };
        let parts = [
            (self.other_methods, "with other methods than GET, whose bodies are in no log"),
            (self.pathless, "without a path"),
            (self.other_pools, "of other pools"),
            (self.bad, &bad),
            (self.astray, "more than 200 days from the others"),
            (self.beyond, "past the bound on requests or paths"),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<_> = parts.map(|(count, what)| format!("{count} {what}")).collect();
        f.write_str(&parts.join(", "))
    }
}

/// The path as a request names it: what may not stand in one is encoded. None where it is no path.
fn as_asked(uri: &[u8]) -> Option<String> {
    if uri.first() != Some(&b'/') {
        return None;
    }
    let letter = |byte: &u8| match byte.is_ascii_graphic() {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    Some(uri.iter().map(letter).collect())
}

/// Values as numbers: each is kept once.
struct Places<T> {
    places: HashMap<T, u32>,
    all: Vec<T>,
}

impl<T> Default for Places<T> {
    fn default() -> Places<T> {
        Places { places: HashMap::new(), all: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash> Places<T> {
    /// None for one more than `most`.
    fn place(&mut self, value: T, most: usize) -> Option<u32> {
        if let Some(place) = self.places.get(&value) {
            return Some(*place);
        }
        if self.all.len() >= most {
            return None;
        }
        let place = self.all.len() as u32;
        self.all.push(value.clone());
        self.places.insert(value, place);
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, text: &str) -> Result<Asked, LogError> {
        let format = Format::read(name).expect("a format");
        let mut gathering = Gathering::default();
        for line in text.lines() {
            gathering.line(line.as_bytes(), true, &format, format.stamp(), None);
        }
        gathering.finish(&format)
    }

    #[test]
    fn what_was_asked_is_there_in_its_order_and_the_rest_is_counted() {
        let asked = of(
            "$remote_addr $msec \"$request\" $request_time",
            "10.0.0.1 1000.500 \"GET /b HTTP/1.1\" 0.200\n\
             10.0.0.2 1000.600 \"GET /a?x HTTP/1.1\" 0.400\n\
             unix: 1001.000 \"GET /b HTTP/1.1\" 0.000\n\
             10.0.0.1 1001.000 \"POST /b HTTP/1.1\" 0.000\n\
             10.0.0.1 1001.000 \"OPTIONS * HTTP/1.1\" 0.000\n\
             10.0.0.1 1001.000 \"\\x16\\x03\" 0.000\n\
             torn",
        );
        let asked = asked.expect("requests");
        // The second line's began first, at 1000.200, the first line's 100 ms later.
        let times: Vec<u128> = asked.requests.iter().map(|one| one.at.as_millis()).collect();
        assert_eq!(times, [0, 100, 800]);
        let path = |one: &AskedOnce| &*asked.paths[one.path as usize];
        assert_eq!(asked.requests.iter().map(path).collect::<Vec<_>>(), ["/a?x", "/b", "/b"]);
        let clients: Vec<_> = asked.requests.iter().map(|one| one.client).collect();
        assert_eq!((clients, asked.clients.len()), (vec![Some(1), Some(0), None], 2));
        let LeftOut { other_methods, pathless, bad, .. } = asked.left_out;
        assert_eq!((other_methods, pathless, bad, asked.left_out.total()), (2, 1, 1, 4));
    }

    #[test]
    fn a_wrong_clock_puts_nothing_off() {
        let line = |at: u64| format!("{at}.0 \"GET / HTTP/1.1\"\n");
        let text = [1_000, 1_795_219_200, 1_795_219_201, 9_000_000_000].map(line).concat();
        let asked = of("$msec \"$request\"", &text).expect("requests");
        let times: Vec<u64> = asked.requests.iter().map(|one| one.at.as_secs()).collect();
        assert_eq!((times, asked.left_out.astray), (vec![0, 1], 2));
    }

    #[test]
    fn letters_that_no_path_has_are_encoded() {
        assert_eq!(as_asked("/a b\u{e9}?c=\"".as_bytes()).as_deref(), Some("/a%20b%C3%A9?c=\""));
        assert_eq!((as_asked(b"*"), as_asked(b"http://a/"), as_asked(b"")), (None, None, None));
    }

    #[test]
    fn a_log_without_times_or_without_a_get_says_so() {
        let said = |name: &str, text: &str| of(name, text).expect_err("an error").to_string();
        let timeless = said("$remote_addr \"$request\"", "10.0.0.1 \"GET / HTTP/1.1\"");
        assert!(timeless.contains("tells when the request was"), "{timeless}");
        let posted = said("$msec \"$request\"", "1.0 \"POST / HTTP/1.1\"");
        assert!(posted.contains("no GET") && posted.contains("1 with other methods"), "{posted}");
        assert_eq!(said("json", ""), "the log is empty");
    }
}
