//! A log as it is kept for a replay: one small record for each request, in the order of arrival.
//!
//! About 50 bytes a request and each client, path and endpoint once. Lines that do not fit the format
//! are counted and left out. A log that tells moments or durations only coarsely gets the missing
//! digits by a fixed hash of the line's number: the same log is always the same requests.

use std::path::Path;

use subak_base::Rng;

use crate::format::Format;
use crate::line::Line;
use crate::moment::{Grain, usual};
use crate::names::Names;
use crate::pattern::Stamp;
use crate::reading::{self, LogError, Opened, Reading, shown};

/// Requests that are kept; what follows is counted.
pub const MOST_REQUESTS: usize = 4_000_000;

/// Endpoints and pools that a log may name.
const MOST_ENDPOINTS: usize = 4096;
const MOST_POOLS: usize = 1024;

/// A request of the log. Moments are nanoseconds since the log's first request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    /// When it came to the balancer.
    pub(crate) arrived: u64,
    /// When it was sent to its endpoint.
    pub(crate) reached: u64,
    /// From there to the end of the answer; [`UNKNOWN`] where the log does not say.
    pub(crate) latency: u64,
    pub(crate) client: u32,
    pub(crate) uri: u32,
    pub(crate) bytes: u32,
    /// [`NOWHERE`] where the log does not say.
    pub(crate) endpoint: u16,
    /// It was not answered, or by a status of 5xx.
    pub(crate) has_failed: bool,
}

/// A latency that the log does not tell.
pub(crate) const UNKNOWN: u64 = u64::MAX;

/// No endpoint.
pub(crate) const NOWHERE: u16 = u16::MAX;

/// The requests of one pool.
#[derive(Clone, Debug)]
pub struct Log {
    pub(crate) requests: Vec<Request>,
    pub(crate) clients: Names,
    pub(crate) uris: Names,
    /// As the log names them, sorted.
    pub(crate) endpoints: Vec<String>,
    /// What was read, and what became of it.
    pub counts: Counts,
    pub(crate) grain: Grain,
    /// Whether durations are whole milliseconds.
    pub(crate) is_coarse: bool,
    /// The format's name.
    pub format: String,
    /// The pool the requests are of, where the log names pools.
    pub pool: Option<String>,
}

/// What became of the lines of a log.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// All of them, without empty ones.
    pub lines: u64,
    /// Those of another format.
    pub bad: u64,
    /// The first of these: its number, and what it says.
    pub first_bad: Option<(u64, String)>,
    /// Requests that were sent to no endpoint.
    pub not_balanced: u64,
    /// Requests of other pools.
    pub other_pools: u64,
    /// Lines past the bound on requests or names.
    pub beyond: u64,
}

/// Reads a log; `-` is standard input. `seen` hears now and then of how many lines there were.
pub fn read(path: &Path, reading: &Reading, seen: impl FnMut(u64)) -> Result<Log, LogError> {
    read_opened(Opened::file(path)?, reading, seen)
}

/// The same of a log in memory.
pub fn read_bytes(bytes: Vec<u8>, reading: &Reading) -> Result<Log, LogError> {
    read_opened(Opened::bytes(bytes)?, reading, |_| {})
}

fn read_opened(log: Opened, reading: &Reading, seen: impl FnMut(u64)) -> Result<Log, LogError> {
    let mut gathering = Gathering::default();
    let format =
        reading::each_line(log, reading, seen, |text, is_whole, format, stamp| match is_whole {
            true => gathering.line(text, format, stamp),
            false => gathering.bad(text),
        })?;
    gathering.finish(&format, reading.pool.as_deref())
}

/// What has been read so far.
struct Gathering {
    /// With the pool's number; moments are microseconds since 1970.
    requests: Vec<(u16, Raw)>,
    clients: Names,
    uris: Names,
    endpoints: Names,
    pools: Names,
    counts: Counts,
    grain: Grain,
    /// Whether all durations were whole milliseconds.
    is_by_millis: bool,
    /// For a path with its query, from line to line.
    room: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Raw {
    arrived: i64,
    reached: i64,
    latency: Option<u64>,
    client: u32,
    uri: u32,
    bytes: u32,
    endpoint: u16,
    has_failed: bool,
}

impl Default for Gathering {
    fn default() -> Gathering {
        Gathering {
            requests: Vec::new(),
            clients: Names::default(),
            uris: Names::default(),
            endpoints: Names::default(),
            pools: Names::default(),
            counts: Counts::default(),
            grain: Grain::Micros,
            is_by_millis: true,
            room: Vec::new(),
        }
    }
}

impl Gathering {
    fn line(&mut self, text: &[u8], format: &Format, stamp: Stamp) {
        if text.is_empty() {
            return;
        }
        let mut room = std::mem::take(&mut self.room);
        let mut is_whole = false;
        let fits = format.line(text, &mut room, |line| is_whole = self.take(line, stamp));
        self.room = room;
        if !fits || !is_whole {
            return self.bad(text);
        }
        self.counts.lines += 1;
    }

    fn bad(&mut self, text: &[u8]) {
        self.counts.lines += 1;
        self.counts.bad += 1;
        if self.counts.first_bad.is_none() {
            self.counts.first_bad = Some((self.counts.lines, shown(text)));
        }
    }

    /// False when the line has no moment.
    fn take(&mut self, line: &Line<'_>, stamp: Stamp) -> bool {
        let Some(moment) = line.moment else { return false };
        if self.requests.len() == MOST_REQUESTS {
            self.counts.beyond += 1;
            return true;
        }
        self.grain = self.grain.max(moment.grain);
        let at = moment.dealt(self.counts.lines);
        let before = line.before.unwrap_or(0);
        let latency = line.latency();
        self.is_by_millis &= latency.is_none_or(|latency| latency.is_multiple_of(1000));
        let arrived = line.arrived(at, stamp);
        let reached = match (stamp, line.at_endpoint) {
            (Stamp::Ended, Some(latency)) => (at - latency as i64).max(arrived),
            _ => arrived + before as i64,
        };
        let endpoint = match line.endpoint {
            Some(name) => bounded(&mut self.endpoints, name, MOST_ENDPOINTS),
            None => Some(NOWHERE),
        };
        let pool = match line.pool {
            Some(name) => bounded(&mut self.pools, name, MOST_POOLS),
            None => Some(NOWHERE),
        };
        let (Some(endpoint), Some(pool)) = (endpoint, pool) else {
            self.counts.beyond += 1;
            return true;
        };
        let request = Raw {
            arrived,
            reached,
            latency,
            client: self.clients.number(line.client.unwrap_or_default()),
            uri: self.uris.number(line.uri.unwrap_or_default()),
            bytes: line.bytes_out.unwrap_or(0).min(u64::from(u32::MAX)) as u32,
            endpoint,
            has_failed: line.status.is_some_and(|status| status == 499 || status >= 500),
        };
        self.requests.push((pool, request));
        true
    }

    fn leave_out_strays(&mut self) {
        let usual = usual(self.requests.iter().map(|(_, request)| request.arrived).collect());
        let before = self.requests.len();
        self.requests.retain(|(_, request)| usual.contains(&request.arrived));
        self.counts.beyond += (before - self.requests.len()) as u64;
    }

    fn finish(mut self, format: &Format, wanted: Option<&str>) -> Result<Log, LogError> {
        if self.counts.lines == self.counts.bad {
            return Err(reading::nothing_fits(format, self.counts.first_bad.as_ref()));
        }
        let pool = self.choose_pool(wanted)?;
        let before = self.requests.len();
        self.requests.retain(|(of, _)| pool.is_none_or(|pool| *of == pool));
        self.counts.other_pools = (before - self.requests.len()) as u64;
        // Where nobody has an endpoint the log does not tell; where some have, the others had none.
        if self.endpoints.len() > 0 {
            let before = self.requests.len();
            self.requests.retain(|(_, request)| request.endpoint != NOWHERE);
            self.counts.not_balanced = (before - self.requests.len()) as u64;
        }
        self.leave_out_strays();
        let name = |names: &Names, number: u16| {
            String::from_utf8_lossy(names.text(u32::from(number))).into_owned()
        };
        // Only those of this pool, in an order that does not depend on who came first.
        let mut used: Vec<u16> =
            self.requests.iter().map(|(_, request)| request.endpoint).collect();
        used.sort_unstable();
        used.dedup();
        used.retain(|number| *number != NOWHERE);
        used.sort_by_cached_key(|number| natural(&name(&self.endpoints, *number)));
        let mut place = vec![NOWHERE; self.endpoints.len()];
        for (index, number) in used.iter().enumerate() {
            place[usize::from(*number)] = index as u16;
        }
        let first = self.requests.iter().map(|(_, request)| request.arrived).min().unwrap_or(0);
        let is_by_millis = self.is_by_millis;
        let mut requests: Vec<Request> = (0_u64..)
            .zip(&self.requests)
            .map(|(number, (_, raw))| {
                // A whole number of milliseconds was rounded down.
                let more = if is_by_millis { Rng::new(!number).below(1_000_000) } else { 0 };
                let nanos = |micros: i64| (micros - first).max(0) as u64 * 1000;
                Request {
                    arrived: nanos(raw.arrived),
                    reached: nanos(raw.reached),
                    latency: raw.latency.map_or(UNKNOWN, |latency| latency * 1000 + more),
                    client: raw.client,
                    uri: raw.uri,
                    bytes: raw.bytes,
                    endpoint: place.get(usize::from(raw.endpoint)).copied().unwrap_or(NOWHERE),
                    has_failed: raw.has_failed,
                }
            })
            .collect();
        requests.sort_by_key(|request| request.arrived);
        Ok(Log {
            requests,
            endpoints: used.iter().map(|number| name(&self.endpoints, *number)).collect(),
            clients: self.clients,
            uris: self.uris,
            counts: self.counts,
            grain: self.grain,
            is_coarse: is_by_millis,
            format: format.name().to_owned(),
            pool: pool.filter(|pool| *pool != NOWHERE).map(|pool| name(&self.pools, pool)),
        })
    }

    /// The pool of that name, or the one with the most requests.
    fn choose_pool(&self, wanted: Option<&str>) -> Result<Option<u16>, LogError> {
        if let Some(wanted) = wanted {
            let mut names = (0..self.pools.len() as u32).map(|pool| self.pools.text(pool));
            let found = names.position(|name| name == wanted.as_bytes());
            let Some(found) = found else {
                let why = format!("the log has no pool \"{wanted}\"");
                let names = (0..self.pools.len() as u32).take(20);
                let names: Vec<_> = names.map(|pool| shown(self.pools.text(pool))).collect();
                return Err(LogError::Format(format!("{why}; it has: {}", names.join(", "))));
            };
            return Ok(Some(found as u16));
        }
        let mut counts = vec![0_u64; self.pools.len()];
        for (pool, _) in &self.requests {
            if let Some(count) = counts.get_mut(usize::from(*pool)) {
                *count += 1;
            }
        }
        let most = (0..counts.len()).max_by_key(|pool| (counts[*pool], std::cmp::Reverse(*pool)));
        Ok(most.map(|pool| pool as u16))
    }
}

fn bounded(names: &mut Names, name: &[u8], most: usize) -> Option<u16> {
    names.number_within(name, most).map(|number| number as u16)
}

/// Sorts numbers in names by their value: 10.0.0.9 before 10.0.0.10.
fn natural(name: &str) -> Vec<(u64, String)> {
    let mut parts: Vec<(u64, String)> = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let end = rest.find(|letter: char| letter.is_ascii_digit()).unwrap_or(rest.len());
        let (text, after) = rest.split_at(end);
        let end = after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len());
        let (digits, after) = after.split_at(end);
        parts.push((0, text.to_owned()));
        parts.push((digits.parse().unwrap_or(u64::MAX), String::new()));
        rest = after;
    }
    parts
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A log of requests (reached, latency, endpoint), in milliseconds.
    pub(crate) fn log_of(endpoints: &[&str], requests: &[(u64, u64, u16)]) -> Log {
        let request = |(reached, latency, endpoint): &(u64, u64, u16)| Request {
            arrived: reached * 1_000_000,
            reached: reached * 1_000_000,
            latency: latency.checked_mul(1_000_000).unwrap_or(UNKNOWN),
            client: 0,
            uri: 0,
            bytes: 0,
            endpoint: *endpoint,
            has_failed: false,
        };
        let mut names = Names::default();
        names.number(b"");
        Log {
            requests: requests.iter().map(request).collect(),
            clients: names.clone(),
            uris: names,
            endpoints: endpoints.iter().map(|name| (*name).to_owned()).collect(),
            counts: Counts::default(),
            grain: Grain::Micros,
            is_coarse: false,
            format: "made".to_owned(),
            pool: None,
        }
    }
}
