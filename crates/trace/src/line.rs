//! What one line of a log says, whatever format it was written in.

use crate::moment::Moment;
use crate::pattern::Stamp;

/// One request, as its line tells it. What the line does not say is none.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) moment: Option<Moment>,
    pub(crate) client: Option<&'a [u8]>,
    pub(crate) method: Option<&'a [u8]>,
    /// Path with query.
    pub(crate) uri: Option<&'a [u8]>,
    pub(crate) pool: Option<&'a [u8]>,
    /// The last that was tried.
    pub(crate) endpoint: Option<&'a [u8]>,
    pub(crate) status: Option<u16>,
    pub(crate) bytes_out: Option<u64>,
    /// From the beginning of the request to the end of the answer, in microseconds.
    pub(crate) total: Option<u64>,
    /// From the pick of the last endpoint to the end of its answer.
    pub(crate) at_endpoint: Option<u64>,
    /// From the pick to the first byte of the answer, where nothing better is known.
    pub(crate) first_byte: Option<u64>,
    /// Before the pick: the request's head, and the line for an endpoint.
    pub(crate) before: Option<u64>,
}

impl<'a> Line<'a> {
    /// From the pick of the last endpoint to the end of its answer, as far as that is known.
    pub(crate) fn latency(&self) -> Option<u64> {
        let before = self.before.unwrap_or(0);
        let known = self.at_endpoint.or(self.total.map(|total| total.saturating_sub(before)));
        known.or(self.first_byte)
    }

    /// When its request came, in microseconds since 1970, if `at` is its moment.
    pub(crate) fn arrived(&self, at: i64, stamp: Stamp) -> i64 {
        match stamp {
            Stamp::Began => at,
            Stamp::Ended => at - self.total.or(self.latency()).unwrap_or(0) as i64,
        }
    }

    /// Sets what `meaning` stands for. False when the text cannot be that; `-` and nothing at all are
    /// no value, and fit everywhere.
    pub(crate) fn set(&mut self, meaning: Meaning, text: &'a [u8]) -> bool {
        if matches!(text, b"" | b"-" | b"<NOSRV>" | b"null") {
            return meaning != Meaning::IsoMoment;
        }
        match meaning {
            Meaning::Nothing => true,
            Meaning::IsoMoment => put(&mut self.moment, crate::moment::iso(text)),
            Meaning::DayFirstMoment => put(&mut self.moment, crate::moment::day_first(text)),
            Meaning::EpochMoment => put(&mut self.moment, crate::moment::epoch(text)),
            Meaning::Client | Meaning::ClientAndPort if text.contains(&b' ') => false,
            Meaning::Client => put(&mut self.client, Some(text)),
            Meaning::ClientAndPort => {
                let colon = memchr::memrchr(b':', text);
                put(&mut self.client, colon.map(|colon| &text[..colon]))
            }
            Meaning::Method => put(&mut self.method, Some(text)),
            Meaning::Uri => put(&mut self.uri, Some(text)),
            Meaning::RequestLine => {
                // A request that could not be read is logged as whatever the client sent.
                let mut words = text.split(|byte| *byte == b' ');
                let method = words.next();
                self.uri = words.next();
                self.method = self.uri.and(method);
                true
            }
            Meaning::Pool => put(&mut self.pool, Some(text)),
            Meaning::Endpoint => put(&mut self.endpoint, Some(last_of_list(text))),
            Meaning::Status => {
                let status = last_of_list(text);
                // HAProxy writes -1 where there was no answer.
                if status == b"-1" {
                    return put(&mut self.status, Some(499));
                }
                let status = whole(status).and_then(|status| u16::try_from(status).ok());
                put(&mut self.status, status.filter(|status| (100..=999).contains(status)))
            }
            Meaning::BytesOut => put(&mut self.bytes_out, whole(text)),
            Meaning::Total(unit) => duration(&mut self.total, text, unit),
            Meaning::AtEndpoint(unit) => duration(&mut self.at_endpoint, text, unit),
            Meaning::FirstByte(unit) => duration(&mut self.first_byte, text, unit),
            Meaning::Before(unit) => {
                let mut one = None;
                let is_known = duration(&mut one, text, unit);
                if let Some(one) = one {
                    self.before = Some(self.before.unwrap_or(0).saturating_add(one));
                }
                is_known
            }
        }
    }
}

/// What a place of a format stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meaning {
    /// Something that no replay needs.
    Nothing,
    IsoMoment,
    DayFirstMoment,
    EpochMoment,
    Client,
    /// `192.0.2.7:5000`, `2001:db8::7:5000`
    ClientAndPort,
    Method,
    Uri,
    RequestLine,
    Pool,
    Endpoint,
    Status,
    BytesOut,
    Total(Unit),
    AtEndpoint(Unit),
    FirstByte(Unit),
    Before(Unit),
}

/// The unit of a logged duration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    Seconds,
    Millis,
}

impl Unit {
    /// Microseconds in one.
    pub(crate) fn micros(self) -> u64 {
        match self {
            Unit::Seconds => 1_000_000,
            Unit::Millis => 1_000,
        }
    }
}

fn put<T>(place: &mut Option<T>, value: Option<T>) -> bool {
    let is_known = value.is_some();
    *place = value.or(place.take());
    is_known
}

/// nginx writes one value for each endpoint that was tried: `10.0.0.2:80, 10.0.0.3:80 : 10.0.1.2:80`.
fn last_of_list(text: &[u8]) -> &[u8] {
    let after = |separator: &[u8]| {
        memchr::memmem::rfind(text, separator).map(|place| place + separator.len())
    };
    &text[after(b", ").max(after(b" : ")).unwrap_or(0)..]
}

/// Longer than a month is no duration of a request.
pub(crate) const MONTH_MICROS: u64 = 31 * 86_400 * 1_000_000;

/// A negative duration is one that was not reached; it is no value.
fn duration(place: &mut Option<u64>, text: &[u8], unit: Unit) -> bool {
    let text = last_of_list(text);
    if text.starts_with(b"-") {
        return true;
    }
    put(place, decimal(text, unit.micros()).filter(|micros| *micros < MONTH_MICROS))
}

/// A decimal number times `scale`, which is a power of ten.
fn decimal(text: &[u8], scale: u64) -> Option<u64> {
    // HAProxy marks times of a line that was logged before the end.
    let text = text.strip_prefix(b"+").unwrap_or(text);
    let (before, after) = match text.iter().position(|byte| *byte == b'.') {
        Some(dot) => (&text[..dot], &text[dot + 1..]),
        None => (text, &[][..]),
    };
    let mut value = whole(before)?.checked_mul(scale)?;
    let mut unit = scale;
    for byte in after {
        unit /= 10;
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value = value.checked_add(digit * unit)?;
    }
    Some(value)
}

fn whole(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 15 {
        return None;
    }
    text.iter()
        .try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + u64::from(byte - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_endpoints_the_last_counts() {
        let mut line = Line::default();
        assert!(line.set(Meaning::Endpoint, b"10.0.0.2:80, 10.0.0.3:80 : unix:/a"));
        assert!(line.set(Meaning::AtEndpoint(Unit::Seconds), b"0.001, 1.5, - : 0.020"));
        assert_eq!(line.endpoint, Some(&b"unix:/a"[..]));
        assert_eq!(line.at_endpoint, Some(20_000));
    }

    #[test]
    fn what_is_missing_is_no_error_and_what_is_wrong_is() {
        let mut line = Line::default();
        assert!(line.set(Meaning::Total(Unit::Millis), b"-1"));
        assert!(line.set(Meaning::Endpoint, b"<NOSRV>"));
        assert!(line.set(Meaning::BytesOut, b"-"));
        assert!(line.total.is_none() && line.endpoint.is_none() && line.bytes_out.is_none());
        assert!(!line.set(Meaning::Status, b"2x0"));
        assert!(!line.set(Meaning::Total(Unit::Seconds), b"0.1x"));
        assert!(!line.set(Meaning::DayFirstMoment, b"yesterday"));
    }

    #[test]
    fn times_add_up_in_microseconds() {
        let mut line = Line::default();
        assert!(line.set(Meaning::Before(Unit::Millis), b"3"));
        assert!(line.set(Meaning::Before(Unit::Millis), b"0.5"));
        assert!(line.set(Meaning::Total(Unit::Millis), b"1.3107"));
        assert_eq!((line.before, line.total), (Some(3_500), Some(1_310)));
    }
}
