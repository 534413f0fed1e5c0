//! When was that? Moments as logs write them, in microseconds since 1970.
//!
//! Dates by Howard Hinnant's `days_from_civil` and `civil_from_days` (proleptic Gregorian, public domain).

use std::ops::RangeInclusive;

use subak_base::Rng;

/// How finely a log tells the time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Grain {
    Micros,
    Millis,
    Seconds,
}

impl Grain {
    pub(crate) fn micros(self) -> u64 {
        match self {
            Grain::Micros => 1,
            Grain::Millis => 1_000,
            Grain::Seconds => 1_000_000,
        }
    }
}

/// A moment, and how finely it was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Moment {
    pub(crate) micros: i64,
    pub(crate) grain: Grain,
}

impl Moment {
    /// With the digits that were not written dealt by a fixed hash of the line's number: the same log is
    /// always the same requests.
    pub(crate) fn dealt(self, line: u64) -> i64 {
        self.micros + Rng::new(line).below(self.grain.micros()) as i64
    }
}

/// Moments further than 200 days from the median one are no part of a log: a clock was wrong, or two
/// logs were put together.
const MOST_APART_MICROS: i64 = 200 * 86_400 * 1_000_000;

/// Where the moments of a log that are part of it lie.
pub(crate) fn usual(mut moments: Vec<i64>) -> RangeInclusive<i64> {
    let middle = moments.len() / 2;
    let median = match moments.is_empty() {
        true => 0,
        false => *moments.select_nth_unstable(middle).1,
    };
    median.saturating_sub(MOST_APART_MICROS)..=median.saturating_add(MOST_APART_MICROS)
}

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// `2026-11-21T17:12:33.123Z`, `2026-11-21T17:12:33+02:00`
pub(crate) fn iso(text: &[u8]) -> Option<Moment> {
    let (date, rest) = text.split_at_checked(10)?;
    if date[4] != b'-' || date[7] != b'-' || !matches!(rest.first()?, b'T' | b' ') {
        return None;
    }
    let days = days(number(&date[..4])?, number(&date[5..7])?, number(&date[8..])?)?;
    clock(days, &rest[1..])
}

/// `21/Nov/2026:17:12:33 +0000`, `21/Nov/2026:17:12:33.123`
pub(crate) fn day_first(text: &[u8]) -> Option<Moment> {
    let mut parts = text.splitn(3, |byte| *byte == b'/');
    let day = number(parts.next()?)?;
    let name = parts.next()?;
    let month = MONTHS.iter().position(|month| month.as_slice() == name)? as i64 + 1;
    let (year, rest) = parts.next()?.split_at_checked(4)?;
    let rest = rest.strip_prefix(b":")?;
    clock(days(number(year)?, month, day)?, rest)
}

/// `1795281153.123`: seconds since 1970.
pub(crate) fn epoch(text: &[u8]) -> Option<Moment> {
    let (seconds, fraction) = match text.iter().position(|byte| *byte == b'.') {
        Some(dot) => (&text[..dot], &text[dot + 1..]),
        None => (text, &[][..]),
    };
    let (micros, grain) = fraction_micros(fraction)?;
    Some(Moment { micros: number(seconds)?.checked_mul(1_000_000)? + micros, grain })
}

/// `17:12:33`, a fraction or none, and `Z`, ` +0200`, `+02:00` or nothing (then it is UTC).
fn clock(days: i64, text: &[u8]) -> Option<Moment> {
    let (clock, rest) = text.split_at_checked(8)?;
    if clock[2] != b':' || clock[5] != b':' {
        return None;
    }
    let (hour, minute) = (number(&clock[..2])?, number(&clock[3..5])?);
    let second = number(&clock[6..])?;
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (fraction, rest) = match rest.strip_prefix(b".") {
        Some(rest) => {
            let end = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
            rest.split_at(end)
        }
        None => (&[][..], rest),
    };
    let (micros, grain) = fraction_micros(fraction)?;
    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second - offset(rest)?;
    Some(Moment { micros: seconds * 1_000_000 + micros, grain })
}

/// Seconds east of Greenwich.
fn offset(text: &[u8]) -> Option<i64> {
    let text = text.strip_prefix(b" ").unwrap_or(text);
    let (sign, rest) = match text.split_first() {
        None => return Some(0),
        Some((b'Z', [])) => return Some(0),
        Some((b'+', rest)) => (1, rest),
        Some((b'-', rest)) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match rest.len() {
        4 => (&rest[..2], &rest[2..]),
        5 if rest[2] == b':' => (&rest[..2], &rest[3..]),
        _ => return None,
    };
    Some(sign * (number(hours)? * 3_600 + number(minutes)? * 60))
}

fn fraction_micros(digits: &[u8]) -> Option<(i64, Grain)> {
    let grain = match digits.len() {
        0 => Grain::Seconds,
        1..=3 => Grain::Millis,
        _ => Grain::Micros,
    };
    let mut micros = 0;
    for place in 0..6 {
        let digit = digits.get(place).map_or(Some(0), |byte| digit(*byte))?;
        micros = micros * 10 + digit;
    }
    Some((micros, grain))
}

fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

/// Year, month and day, so many days after 1 January 1970.
pub(crate) fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn number(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > 12 {
        return None;
    }
    digits.iter().try_fold(0, |sum, byte| Some(sum * 10 + digit(*byte)?))
}

fn digit(byte: u8) -> Option<i64> {
    byte.is_ascii_digit().then(|| i64::from(byte - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICROS: i64 = 1_795_281_153_000_000;

    #[test]
    fn one_moment_in_all_writings() {
        let at = |found: Option<Moment>| found.map(|found| (found.micros - MICROS, found.grain));
        assert_eq!(at(iso(b"2026-11-21T17:12:33.123Z")), Some((123_000, Grain::Millis)));
        assert_eq!(at(iso(b"2026-11-21T19:12:33+02:00")), Some((0, Grain::Seconds)));
        assert_eq!(at(day_first(b"21/Nov/2026:17:12:33 +0000")), Some((0, Grain::Seconds)));
        assert_eq!(at(day_first(b"21/Nov/2026:12:12:33 -0500")), Some((0, Grain::Seconds)));
        assert_eq!(at(day_first(b"21/Nov/2026:17:12:33.007")), Some((7_000, Grain::Millis)));
        assert_eq!(at(epoch(b"1795281153.5")), Some((500_000, Grain::Millis)));
        assert_eq!(at(epoch(b"1795281153.000001")), Some((1, Grain::Micros)));
        assert_eq!(iso(b"2000-02-29T00:00:00Z").unwrap().micros, 951_782_400_000_000);
    }

    #[test]
    fn a_day_is_the_same_both_ways() {
        for day in (-200_000..200_000).step_by(7) {
            let (year, month, date) = civil(day);
            assert_eq!(days(year, month, date), Some(day), "{year}-{month}-{date}");
        }
    }

    #[test]
    fn what_is_no_moment_is_none() {
        for text in ["", "2026-11-21", "2026-13-21T17:12:33Z", "2026-11-21T25:12:33Z", "-"] {
            assert_eq!(iso(text.as_bytes()), None, "{text}");
        }
        for text in ["", "21/Nob/2026:17:12:33 +0000", "21/Nov/2026", "21/Nov/2026:17:12:33 CET"] {
            assert_eq!(day_first(text.as_bytes()), None, "{text}");
        }
        for text in ["", "-", "12a", "99999999999999"] {
            assert_eq!(epoch(text.as_bytes()), None, "{text}");
        }
    }
}
